//! The schema and the reference of the file, as the kinds declare their keys.

use std::fmt::Write as _;
use std::fs;

use reminderd::configuration::schema;
use reminderd::reminders::keys::{Shape, Untrusted};
use reminderd::{reminders, server, store};
use serde_json::Value as Json;

const REFERENCE: &str = "protocol/CONFIGURATION.md";

#[test]
fn the_schema_is_up_to_date() {
    crate::hold("protocol/schema/reminderd.toml.schema.json", &format!("{:#}\n", schema()));
}

#[test]
fn the_reference_is_up_to_date() {
    let text = fs::read_to_string(crate::root().join(REFERENCE)).expect("the reference");
    let text = put(&text, "kinds", &kinds());
    let text = put(
        &text,
        "common",
        &table(&schema()["properties"]["kinds"]["properties"]["sections"]["anyOf"][1]),
    );
    let text = put(&text, "reminders", &table(&schema()["properties"]["reminders"]["items"]));
    let daemon: String = ["budget", "limits", "store"]
        .map(|name| format!("\n`[{name}]`\n\n{}", table(&schema()["properties"][name])))
        .concat();
    let text = put(&text, "tables", &daemon);
    crate::hold(REFERENCE, &text);
}

/// The text with what stands between two markers replaced.
fn put(text: &str, name: &str, generated: &str) -> String {
    let (begin, end) = (format!("<!-- generated: {name} -->\n"), format!("<!-- end: {name} -->"));
    let (before, rest) = text.split_once(&begin).unwrap_or_else(|| panic!("no {begin}"));
    let (_, after) = rest.split_once(&end).unwrap_or_else(|| panic!("no {end}"));
    format!("{before}{begin}\n{}\n\n{end}{after}", generated.trim())
}

fn kinds() -> String {
    let mut text = String::new();
    for kind in reminders::kind_names() {
        let keys = reminders::own_keys(kind);
        if keys.is_empty() {
            continue;
        }
        let _ = write!(
            text,
            "\n#### `{kind}`\n\n| key | takes | default | means | untrusted |\n|---|---|---|---|---|\n"
        );
        for key in keys {
            let default = &key.schema["default"];
            let default =
                if default.is_null() { "none".to_owned() } else { format!("`{default}`") };
            let untrusted = match key.untrusted {
                Untrusted::Sets => "sets",
                Untrusted::Lowers => "lowers",
                Untrusted::Adds => "adds",
                Untrusted::LeavesAlone => "–",
            };
            let _ = writeln!(
                text,
                "| `{}` | {} | {default} | {} | {untrusted} |",
                key.name, key.shape, key.meaning
            );
        }
    }
    let without = reminders::kind_names().filter(|kind| reminders::own_keys(kind).is_empty());
    let without: Vec<_> = without.map(|kind| format!("`{kind}`")).collect();
    let _ = write!(text, "\nWithout keys of their own: {}.", without.join(", "));
    text
}

/// A table of the members of a schema.
fn table(schema: &Json) -> String {
    let mut text = "| key | takes | default | means |\n|---|---|---|---|\n".to_owned();
    for (name, member) in schema["properties"].as_object().expect("members") {
        let takes = match Shape::of(member) {
            Some(shape) => shape.to_string(),
            None if member["anyOf"].is_array() => {
                "a word or a table, see [Policies](#policies)".to_owned()
            }
            None => {
                let members = member["properties"].as_object().expect("a table");
                let members: Vec<_> = members
                    .iter()
                    .map(|(name, it)| format!("`{name}` ({})", Shape::of(it).expect("a shape")))
                    .collect();
                format!("a table of {}", members.join(", "))
            }
        };
        let default = &member["default"];
        let default = if default.is_null() { "none".to_owned() } else { format!("`{default}`") };
        let meaning = member["description"].as_str().expect("a meaning").replace('\n', " ");
        let _ = writeln!(text, "| `{name}` | {takes} | {default} | {meaning} |");
    }
    text
}

/// Editors show the meaning of every key.
#[test]
fn every_key_has_a_meaning() {
    fn look(schema: &Json, way: &str, without: &mut Vec<String>) {
        for (name, member) in schema["properties"].as_object().into_iter().flatten() {
            let way = format!("{way}.{name}");
            let inner = member["anyOf"].as_array().into_iter().flatten();
            if member["description"].is_null() {
                without.push(way.clone());
            }
            look(member, &way, without);
            inner.for_each(|inner| look(inner, &way, without));
        }
    }
    let mut without = Vec::new();
    look(schema(), "", &mut without);
    without.retain(|way| !reminders::kind_names().any(|kind| *way == format!(".kinds.{kind}")));
    assert_eq!(without, Vec::<String>::new());
}

/// What is told of the daemon's own limits is so.
#[test]
fn defaults_of_the_daemon_are_its_own() {
    let default = |table: &str, key: &str| {
        schema()["properties"][table]["properties"][key]["default"].as_u64().expect("a default")
    };
    let store = store::Options::default();
    assert_eq!(default("limits", "messageBytes"), server::Limits::default().message_bytes as u64);
    assert_eq!(default("store", "keepDays") * 86_400, store.age.as_secs());
    assert_eq!(default("store", "keepSessions"), store.sessions);
    assert_eq!(default("store", "keepBytes"), store.bytes);
}

/// An editor with the schema says of a file what the daemon says of it.
#[test]
fn examples_are_valid_for_both() {
    let validator = jsonschema::validator_for(schema()).expect("a schema");
    let errors = |toml: &str| {
        let json: Json = toml::from_str(toml).expect("TOML");
        validator.iter_errors(&json).map(|error| error.to_string()).collect::<Vec<_>>()
    };
    let read = |name: &str| fs::read_to_string(crate::root().join(name)).expect("a text");
    let mut good = vec![include_str!("good.toml").to_owned()];
    good.extend(crate::examples(&read(REFERENCE)));
    good.extend(crate::examples(&read("README.md")));
    for toml in good {
        assert_eq!(errors(&toml), Vec::<String>::new(), "{toml}");
        let origin =
            reminderd::configuration::Origin::new(reminderd::configuration::Layer::User, "f");
        let document = reminderd::configuration::Document::read(&toml, origin);
        assert_eq!(document.mistakes, [], "{toml}");
    }
    for bad in [
        "[kinds]\ntask-nudge = { aftr = 3 }",
        "[kinds]\ntask-nudge = { unit = \"prompts\" }",
        "[kinds]\ntoken-usage = { percent = 101 }",
        "[kinds]\nsections = 3",
        "[kinds]\ngoal-budget = { thresholds = [200] }",
        "[kinds]\nsections = { policy = \"sometimes\" }",
        "[kinds]\nsections = { policy = { every = { turns = 1, requests = 2 } } }",
        "[[reminders]]\nbody = \"b\"",
        "[[reminders]]\nid = \"a\"\nlane = \"x\"",
        "[[reminders]]\nid = \"a\"\nscopes = [\"x\"]",
        "[[reminders]]\nid = \"a\"\nmaxPerTurn = 0",
        "[budget]\nperwait = 3",
        "[bugdet]",
    ] {
        assert!(!errors(bad).is_empty(), "{bad}");
    }
}

/// The reminder's keys are those of the wire's form.
#[test]
fn files_and_wire_know_the_same_forms() {
    let wire = reminderd_protocol::schema::document();
    let wire = wire["$defs"]["ReminderForm"]["properties"].as_object().expect("members");
    let file = schema()["properties"]["reminders"]["items"]["properties"].as_object();
    let file: Vec<_> = file.expect("members").keys().collect();
    let mut wire: Vec<_> = wire.keys().collect();
    wire.sort();
    assert_eq!(file, wire);
}
