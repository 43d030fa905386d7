//! The records in the examples carry the digest that SPEC.md defines.
//!
//! This follows the text of the specification and shares no code with the engine, so that each
//! is a check on the other.

use serde_json::Value;

fn string(hasher: &mut blake3::Hasher, text: &str) {
    hasher.update(format!("{}:{text},", text.len()).as_bytes());
}

fn member(hasher: &mut blake3::Hasher, object: &Value, name: &str) {
    match &object[name] {
        Value::String(text) => string(hasher, text),
        Value::Number(number) => string(hasher, &number.to_string()),
        Value::Null => string(hasher, ""),
        other => panic!("{name} is {other}"),
    }
}

fn key(hasher: &mut blake3::Hasher, entry: &Value) {
    string(hasher, if entry["key"].is_string() { "1" } else { "0" });
    member(hasher, entry, "key");
}

fn marks(hasher: &mut blake3::Hasher, entry: &Value) {
    let none = Vec::new();
    let marks = entry["marks"].as_array().unwrap_or(&none);
    string(hasher, &marks.len().to_string());
    for mark in marks {
        string(hasher, mark.as_str().expect("a mark is a string"));
    }
}

fn digest(record: &Value) -> String {
    let mut hasher = blake3::Hasher::new();
    for name in ["type", "version", "id", "session", "agent", "turn", "phase", "form"] {
        member(&mut hasher, record, name);
    }
    for name in ["turn", "request", "prompt"] {
        member(&mut hasher, &record["ordinals"], name);
    }
    let none = Vec::new();
    let entries = record["entries"].as_array().unwrap();
    string(&mut hasher, &entries.len().to_string());
    for entry in entries {
        member(&mut hasher, entry, "id");
        member(&mut hasher, entry, "type");
        key(&mut hasher, entry);
        for name in ["kind", "label", "body", "fingerprint"] {
            member(&mut hasher, entry, name);
        }
        marks(&mut hasher, entry);
    }
    let silent = record["silent"].as_array().unwrap_or(&none);
    string(&mut hasher, &silent.len().to_string());
    for entry in silent {
        member(&mut hasher, entry, "type");
        key(&mut hasher, entry);
        member(&mut hasher, entry, "kind");
        member(&mut hasher, entry, "fingerprint");
        marks(&mut hasher, entry);
    }
    format!("blake3:{}", hasher.finalize())
}

fn records<'a>(value: &'a Value, found: &mut Vec<&'a Value>) {
    if value["type"] == "injected-reminders" {
        found.push(value);
    }
    match value {
        Value::Object(members) => members.values().for_each(|value| records(value, found)),
        Value::Array(items) => items.iter().for_each(|value| records(value, found)),
        _ => {}
    }
}

#[test]
fn digests_in_the_examples_follow_the_specification() {
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let mut seen = 0;
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let example: Value =
            serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let mut found = Vec::new();
        records(&example, &mut found);
        for record in found {
            assert_eq!(record["digest"], digest(record), "{}: {}", path.display(), record["id"]);
            seen += 1;
        }
    }
    assert!(seen > 0, "no example has a record");
}
