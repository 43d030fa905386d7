//! The file as JSON Schema: every table, key, type, range and default, for editors and for the
//! search for what nobody knows. The kinds' keys come from their own files, those of reminders from
//! `rules::keys`, the others from here.

use std::sync::LazyLock;

use schemars::JsonSchema as _;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value as Json, json};

use crate::reminders;
use crate::rules::keys::{ReminderKeys, TuningKeys};

static DOCUMENT: LazyLock<Json> = LazyLock::new(make);

/// The schema of the file, in draft 7, which the editors' TOML extensions read.
pub fn document() -> &'static Json {
    &DOCUMENT
}

/// The schema of a kind's table.
pub(super) fn kind(name: &str) -> &'static Json {
    &DOCUMENT["properties"]["kinds"]["properties"][name]["anyOf"][1]
}

/// The schema of one reminder.
pub(super) fn reminder() -> &'static Json {
    &DOCUMENT["properties"]["reminders"]["items"]
}

fn make() -> Json {
    let mut generator = SchemaSettings::draft07()
        .with(|settings| settings.inline_subschemas = true)
        .into_generator();
    let inlined = |schema: schemars::Schema| {
        let mut schema = Json::from(schema);
        close(&mut schema);
        schema
    };
    let reminder = inlined(ReminderKeys::json_schema(&mut generator));
    let tuning = inlined(TuningKeys::json_schema(&mut generator));
    let kinds: Map<String, Json> = reminders::kind_names()
        .map(|name| {
            let own = reminders::own_keys(name).iter();
            let mut properties: Map<String, Json> =
                own.map(|key| (key.name.clone(), key.schema.clone())).collect();
            if let Some(common) = tuning["properties"].as_object() {
                properties.extend(common.clone());
            }
            let table = json!({
                "type": "object",
                "properties": properties,
                "additionalProperties": false,
            });
            (name.to_owned(), json!({ "anyOf": [{ "type": "boolean" }, table] }))
        })
        .collect();
    sorted(json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "reminderd.toml",
        "description": "Configuration of reminderd; protocol/CONFIGURATION.md tells all of it.",
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "$schema": { "type": "string", "description": "For editors; means nothing here." },
            "kinds": {
                "description": "Kinds, and reminders by their ids: false is off, true is on, a table retunes.",
                "type": "object",
                "properties": kinds,
                "additionalProperties": { "type": ["boolean", "object"] },
            },
            "reminders": {
                "description": "Reminders of your own.",
                "type": "array",
                "items": reminder,
                "maxItems": super::REMINDERS_MAX,
            },
            "budget": table(
                "What entries may cost, in estimated tokens. Without a key there is no limit.",
                &[
                    ("perWait", "Tokens of one WAIT; what does not fit waits, by priority.", 1, None),
                    ("perSession", "Tokens of a session, for each of its conversations by itself.", 1, None),
                ],
            ),
            "limits": table(
                "What the daemon takes. In the user's file alone; read when the daemon starts.",
                &[("messageBytes", "The longest message that is taken, in bytes.", 1 << 16, Some(64 << 20))],
            ),
            "store": table(
                "What is kept of sessions. In the user's file alone; read when the daemon starts. The \
                 command line's --keep-days, --keep-sessions and --keep-bytes win.",
                &[
                    ("keepDays", "Days without a message after which a session goes.", 1, Some(90)),
                    ("keepSessions", "Sessions that are kept; those quiet longest go first.", 1, Some(100_000)),
                    ("keepBytes", "Bytes that they take.", 1, Some(1 << 30)),
                ],
            ),
        },
    }))
}

/// A table of whole numbers: name, meaning, least value, default.
fn table(meaning: &str, keys: &[(&str, &str, u64, Option<u64>)]) -> Json {
    let properties: Map<String, Json> = keys
        .iter()
        .map(|(name, meaning, least, default)| {
            let mut schema = json!({
                "description": meaning,
                "type": "integer",
                "minimum": least,
                "maximum": i64::MAX,
            });
            if let Some(default) = default {
                schema["default"] = json!(default);
            }
            ((*name).to_owned(), schema)
        })
        .collect();
    json!({
        "description": meaning,
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
    })
}

/// Makes of a generated schema what a file is held to: no `null`, which TOML has not; no member
/// beside those that are named.
fn close(schema: &mut Json) {
    match schema {
        Json::Array(items) => items.iter_mut().for_each(close),
        Json::Object(members) => {
            members.values_mut().for_each(close);
            if let Some(Json::Array(types)) = members.get_mut("type") {
                types.retain(|it| it != "null");
                if let [only] = types.as_slice() {
                    members["type"] = only.clone();
                }
            }
            if let Some(Json::Array(branches)) = members.get_mut("anyOf") {
                branches.retain(|it| it["type"] != "null");
                if let [Json::Object(only)] = branches.as_mut_slice() {
                    let only = std::mem::take(only);
                    members.remove("anyOf");
                    for (name, value) in only {
                        members.entry(name).or_insert(value);
                    }
                }
            }
            for word in ["$schema", "title", "format"] {
                if members.get(word).is_some_and(Json::is_string) {
                    members.remove(word);
                }
            }
            if members.contains_key("properties") {
                members.insert("additionalProperties".to_owned(), Json::Bool(false));
            }
        }
        _ => {}
    }
}

/// The same value with sorted members, whatever order this build's maps keep.
fn sorted(value: Json) -> Json {
    match value {
        Json::Object(members) => {
            let mut members: Vec<_> = members.into_iter().collect();
            members.sort_by(|(left, _), (right, _)| left.cmp(right));
            members.into_iter().map(|(name, value)| (name, sorted(value))).collect()
        }
        Json::Array(items) => items.into_iter().map(sorted).collect(),
        other => other,
    }
}
