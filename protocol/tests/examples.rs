//! Every method has one example, which the types and the schema both accept.

use reminderd_protocol::methods::{METHODS, Method, MethodKind, WireType};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::PathBuf;

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("examples")
}

fn file_name(method: &Method) -> String {
    format!("{}.json", method.name.replace('/', "."))
}

fn example(method: &Method) -> Value {
    let path = directory().join(file_name(method));
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{} has no example: {error}", method.name));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn no_example_is_orphaned() {
    let wanted: BTreeSet<String> = METHODS.iter().map(file_name).collect();
    let found: BTreeSet<String> = std::fs::read_dir(directory())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(found, wanted);
}

#[test]
fn examples_say_what_their_method_says() {
    for method in METHODS {
        let example = example(method);
        let members: Vec<&str> = example.as_object().unwrap().keys().map(String::as_str).collect();
        // An event has a result worth showing only where it is not `null`.
        let answered = match (method.kind, method.result) {
            (MethodKind::Request | MethodKind::ServerRequest, Some(_)) => true,
            (MethodKind::Event, Some(result)) => result.name != "()",
            (MethodKind::Notification | MethodKind::ServerNotification, None) => false,
            (kind, _) => panic!("{}: a {kind:?} with the wrong sort of result", method.name),
        };
        let wanted: &[&str] =
            if answered { &["method", "params", "result"] } else { &["method", "params"] };
        assert_eq!(BTreeSet::from_iter(members), wanted.iter().copied().collect());
        assert_eq!(example["method"], method.name);
    }
}

#[test]
fn examples_are_canonical_and_fit_the_schema() {
    let document = reminderd_protocol::schema::document();
    for method in METHODS {
        let example = example(method);
        let row = &document["methods"][method.name];
        check(method.name, "params", &method.params, &document, row, &example);
        if let (Some(result), true) = (&method.result, example.get("result").is_some()) {
            check(method.name, "result", result, &document, row, &example);
        }
    }
}

fn check(name: &str, part: &str, wire: &WireType, document: &Value, row: &Value, example: &Value) {
    let value = &example[part];
    let written = (wire.canonical)(value)
        .unwrap_or_else(|error| panic!("{name}: {part} is no {}: {error}", wire.name));
    assert_eq!(&written, value, "{name}: {part} is not written back as it stands");

    let schema = json!({ "allOf": [row[part]], "$defs": document["$defs"] });
    let validator = jsonschema::validator_for(&schema).unwrap();
    if let Err(error) = validator.validate(value) {
        panic!("{name}: {part} does not fit the schema at {}: {error}", error.instance_path());
    }
}

#[test]
fn the_schema_lets_an_optional_member_be_null() {
    let document = reminderd_protocol::schema::document();
    for (method, params) in [
        (
            "reminder/wait",
            json!({ "session": "s", "agent": null, "autoCommit": null, "limit": null }),
        ),
        ("session/open", json!({ "session": "s", "reminders": null, "deny": null, "host": null })),
        (
            "task/put",
            json!({
                "session": "s", "task": { "id": "1", "subject": "x", "status": "new", "blocks": null }
            }),
        ),
        ("agent/spawn", json!({ "session": "s", "agent": "/a", "kinds": { "sections": null } })),
    ] {
        let row = &document["methods"][method];
        let schema = json!({ "allOf": [row["params"]], "$defs": document["$defs"] });
        assert!(jsonschema::validator_for(&schema).unwrap().is_valid(&params), "{method}");
        let wire = reminderd_protocol::methods::find(method).unwrap().params;
        (wire.canonical)(&params).unwrap();
    }
}
