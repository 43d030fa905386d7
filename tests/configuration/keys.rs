//! Every key of every kind changes what is told, in `keys/KIND.KEY.jsonl`: of two sessions with the
//! same events, `a` goes by the defaults and `b` by the key. `$ROOT` is a directory with some files.

use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Stdio};

use reminderd::engine::{Registry as _, Value};
use reminderd::reminders::keys::Shape;
use reminderd::reminders::{self, Catalogue};

/// What lies in `$ROOT`.
const FILES: &[(&str, &str)] = &[
    ("nine.txt", "1\n2\n3\n4\n5\n6\n7\n8\n9\n"),
    ("small.txt", "new\n"),
    ("AGENTS.md", "Of the root.\n"),
    ("lib/AGENTS.md", "Keep functions short.\n"),
    ("lib/NOTES.md", "Notes of the library.\n"),
    ("lib/x.rs", ""),
    ("a.rs", ""),
    ("b.rs", ""),
    ("a.sql", ""),
    ("src/a.rs", ""),
    ("src/b.rs", ""),
    ("folder/one", ""),
    ("folder/two", ""),
    ("two.pdf", include_str!("two-pages.pdf")),
];

/// Keys that every kind takes.
const COMMON: [&str; 4] = ["policy", "maxPerTurn", "maxPerSession", "priority"];

fn scenarios() -> BTreeSet<String> {
    let folder = fs::read_dir(crate::root().join("tests/configuration/keys"));
    let entries = folder.expect("the scenarios").map(|entry| entry.expect("an entry").file_name());
    entries.map(|name| name.to_string_lossy().into_owned()).collect()
}

fn text(scenario: &str) -> String {
    let path = crate::root().join("tests/configuration/keys").join(scenario);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn every_key_has_a_scenario() {
    let mut wanted: BTreeSet<_> = COMMON.iter().map(|key| format!("all.{key}.jsonl")).collect();
    for kind in reminders::kind_names() {
        for key in reminders::own_keys(kind) {
            wanted.insert(format!("{kind}.{}.jsonl", key.name));
        }
    }
    assert_eq!(scenarios(), wanted, "a scenario for each key, and a key for each scenario");
    for scenario in wanted {
        let key = scenario.split('.').nth(1).expect("a key");
        assert!(text(&scenario).contains(&format!("{key:?}: ")), "{scenario} does not set it");
    }
}

#[test]
fn every_key_changes_what_is_told() {
    let directory = tempfile::tempdir().expect("a directory");
    let real = directory.path().canonicalize().expect("its real path");
    let root = real.join("root");
    for (path, content) in FILES {
        let path = root.join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        fs::write(path, content).expect("a file");
    }
    let scripts: Vec<_> = scenarios()
        .into_iter()
        .map(|name| {
            let path = real.join(&name);
            let script = text(&name).replace("$ROOT", root.to_str().expect("UTF-8"));
            fs::write(&path, script).expect("a script");
            path
        })
        .collect();
    let output = Command::new(env!("CARGO_BIN_EXE_reminderd"))
        .args(["run", "--timeout", "10m"])
        .args(&scripts)
        .stdin(Stdio::null())
        .output()
        .expect("reminderd starts");
    let (told, wrong) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{told}{wrong}");
}

/// The range that is documented is the one that is held to.
#[test]
fn ranges_are_held() {
    let build = |kind: &str, key: &str, value: Value| {
        let mut definition = Catalogue.kind(kind).expect("a kind");
        definition.settings.merge(&Value::Map([(key.to_owned(), value)].into()));
        Catalogue.build(&definition)
    };
    let signed = |number: u64| i64::try_from(number).expect("no bound is that large");
    for kind in reminders::kind_names() {
        for key in reminders::own_keys(kind) {
            let (shape, in_list) = match &key.shape {
                Shape::List(inner) => (&**inner, true),
                shape => (shape, false),
            };
            let Shape::Whole { least, most } = *shape else { continue };
            let mut numbers = vec![(signed(least), true), (signed(least) - 1, false)];
            if let Some(most) = most {
                numbers.extend([(signed(most), true), (signed(most) + 1, false)]);
            }
            for (number, fits) in numbers {
                let value = Value::Integer(number);
                let value = if in_list { Value::List(vec![value]) } else { value };
                match build(kind, &key.name, value) {
                    Ok(_) => assert!(fits, "{kind}.{} = {number}", key.name),
                    Err(refusal) => {
                        assert!(!fits, "{refusal}");
                        assert_eq!(refusal.at.expect("a place").key[0], key.name);
                    }
                }
            }
        }
    }
}
