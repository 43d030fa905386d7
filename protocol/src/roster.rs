//! The roster: which reminders a scope has, and the forms of a user's own.

use crate::scope::Scope;
use crate::wire::{NullOr, null_default, open_enum};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// `roster/register`: add a reminder, or replace the one with its id.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RosterRegisterParams {
    /// Whose roster.
    #[serde(flatten)]
    pub scope: Scope,
    /// The reminder.
    pub reminder: ReminderForm,
}

/// `roster/remove`: take a registered reminder away and forget what it told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RosterRemoveParams {
    /// Whose roster.
    #[serde(flatten)]
    pub scope: Scope,
    /// The reminder's id.
    pub id: String,
}

/// The answer to `roster/remove`, when it is sent as a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RosterRemoveResult {
    /// Whether there was one.
    pub removed: bool,
}

/// `roster/configure`: switch and retune kinds, from the next WAIT on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RosterConfigureParams {
    /// Whose roster.
    #[serde(flatten)]
    pub scope: Scope,
    /// Switches and settings by kind, merged into those in force.
    pub kinds: KindSwitches,
}

/// A row of the answer to `roster/list`, of `session/open` and of `session/fork`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RosterRow {
    /// The reminder's id; a built-in one's is its kind's name.
    pub id: String,
    /// Its kind.
    pub kind: String,
    /// Whether it can speak at all.
    pub enabled: bool,
    /// Its policy, for people.
    pub policy: String,
    /// Who put it there.
    pub source: RosterSource,
}

/// Who put a reminder on the roster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum RosterSource {
    /// The profile.
    Default,
    /// A configuration file.
    Config,
    /// A client, over the wire.
    Client,
}

/// The answer to `reminder/explain`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExplainResult {
    /// A row for each roster entry and queue.
    pub rows: Vec<ExplainRow>,
}

/// Whether a reminder would speak at a WAIT now, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExplainRow {
    /// The reminder's id, or the queue's name.
    pub id: String,
    /// Its kind.
    pub kind: String,
    /// Whether it would speak.
    pub speaks: bool,
    /// Why or why not: one sentence, with the numbers.
    pub reason: String,
    /// What it would cost in tokens, estimated; 0 when it is silent.
    pub tokens: u64,
    /// When it can next speak, for people; `null` when nobody can say.
    #[schemars(with = "NullOr<String>")]
    pub next: Option<String>,
}

/// `reminder/compute`: the daemon asks for a client generator's body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ComputeParams {
    /// The id under which the generator was registered.
    pub generator: String,
    /// Who would be told.
    #[serde(flatten)]
    pub scope: Scope,
    /// Whether it is due, so that an unchanged body is wanted too.
    pub force: bool,
}

/// The client's answer to `reminder/compute`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ComputeResult {
    /// What the model reads; `null` for silence.
    #[schemars(with = "NullOr<String>")]
    pub body: Option<String>,
}

/// Switches and settings by kind: `false` is off, `true` or a table is on. Ordered by name.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct KindSwitches(pub BTreeMap<String, Value>);

impl<'de> Deserialize<'de> for KindSwitches {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut kinds = BTreeMap::<String, Value>::deserialize(deserializer)?;
        kinds.retain(|_, value| !value.is_null());
        for (kind, value) in &kinds {
            if !value.is_boolean() && !value.is_object() {
                return Err(D::Error::custom(format!(
                    "kinds.{kind}: expected true, false or a table of settings, found {value}"
                )));
            }
        }
        Ok(Self(kinds))
    }
}

impl JsonSchema for KindSwitches {
    fn schema_name() -> Cow<'static, str> {
        "KindSwitches".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Switches and settings by kind: `false` is off, `true` or a table is on.",
            "type": "object",
            "additionalProperties": { "type": ["boolean", "object", "null"] },
        })
    }
}

/// A reminder of the user's own. Which members belong together is told in `SPEC.md`, "Forms".
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReminderForm {
    /// The reminder's id, its own on the roster.
    pub id: String,
    /// What it says: a template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// When it speaks: an expression over state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// It speaks when one of these matches a path touched in this turn, relative to the root.
    #[serde(default, deserialize_with = "null_default", skip_serializing_if = "Vec::is_empty")]
    pub globs: Vec<String>,
    /// It speaks when a finished call of this turn matches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<ToolPattern>,
    /// The pool whose changes it announces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// The names of the pool that count as told from the start; absent announces all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Vec<String>>,
    /// What it says of names that entered the pool: a template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added: Option<String>,
    /// What it says of names that left the pool: a template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removed: Option<String>,
    /// Whether the client computes its body (`reminder/compute`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<bool>,
    /// How often it speaks; its sort decides when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicyForm>,
    /// Which conversations have it; the root alone when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scopes: Option<Vec<ReminderScope>>,
    /// Its place in the message; the roster's when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lane: Option<Lane>,
    /// What is kept first when a budget or limit bites: higher; 0 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i64>,
    /// It is silent unless the scope has this tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requires_tool: Option<String>,
    /// The short name shown in a row; the id when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

/// A pattern over finished tool calls; each member that is there must match.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolPattern {
    /// A pattern over the tool's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// A pattern over the call's input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// Whether the call succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ok: Option<bool>,
}

open_enum! {
    /// Which conversations have a reminder.
    pub enum ReminderScope {
        /// The session's root.
        Root = "root",
        /// Its agents.
        Agents = "agents",
    }
}

open_enum! {
    /// A place in the message, in this order.
    pub enum Lane {
        /// Things that the person pointed at.
        Mention = "mention",
        /// Skills that were attached.
        Skill = "skill",
        /// The roster's own entries.
        Roster = "roster",
        /// What a compaction took.
        Compaction = "compaction",
        /// Guidance that came during the turn.
        Steering = "steering",
        /// Named sections.
        Sections = "sections",
        /// Turn events.
        Events = "events",
    }
}

/// How often a reminder speaks, as it was written: a word, or a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PolicyForm {
    /// `"once"`, `"onChange"` or `"always"`.
    Word(PolicyWord),
    /// A rhythm and bounds beside it.
    Table(PolicyTable),
}

impl PolicyForm {
    /// The same policy as a table.
    pub fn table(&self) -> PolicyTable {
        match self {
            Self::Word(word) => {
                PolicyTable { rhythm: Some(word.rhythm()), ..PolicyTable::default() }
            }
            Self::Table(table) => *table,
        }
    }
}

/// A policy in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PolicyWord {
    /// Until history has it.
    Once,
    /// Whenever its fingerprint differs from the last told.
    OnChange,
    /// At every WAIT.
    Always,
}

impl PolicyWord {
    const ALL: [Self; 3] = [Self::Once, Self::OnChange, Self::Always];

    /// The word as it stands on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::OnChange => "onChange",
            Self::Always => "always",
        }
    }

    /// What it means.
    pub const fn rhythm(self) -> Rhythm {
        match self {
            Self::Once => Rhythm::Once,
            Self::OnChange => Rhythm::OnChange,
            Self::Always => Rhythm::Always,
        }
    }
}

/// When a reminder that has something to say says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rhythm {
    /// Until history has it.
    Once,
    /// Whenever its fingerprint differs from the last told.
    OnChange,
    /// At every WAIT.
    Always,
    /// When this much has passed since it last spoke; never having spoken counts as passed.
    Every(Span),
}

/// A policy with its bounds; what is `None` was not said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PolicyTable {
    /// When it speaks; its sort decides when absent.
    pub rhythm: Option<Rhythm>,
    /// Whether it speaks again when history lost the telling; `dropped` when absent.
    pub rearm: Option<Rearm>,
    /// The least distance between two tellings.
    pub cooldown: Option<Span>,
    /// The most tellings in one turn, at least 1.
    pub max_per_turn: Option<u32>,
    /// The most tellings in the session, at least 1.
    pub max_per_session: Option<u32>,
}

/// Whether a reminder speaks again when history lost the telling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rearm {
    /// It does.
    Dropped,
    /// It does not.
    Never,
}

impl Rearm {
    /// The word as it stands on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Dropped => "dropped",
            Self::Never => "never",
        }
    }
}

/// A distance between tellings: `{turns: N}`, `{requests: N}` or `{prompts: N}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Span {
    /// What is counted.
    pub unit: Unit,
    /// How many, at least 1.
    pub count: u32,
}

/// What a span counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unit {
    /// Ended turns.
    Turns,
    /// Committed WAITs.
    Requests,
    /// Turns whose first WAIT was committed.
    Prompts,
}

impl Unit {
    const ALL: [Self; 3] = [Self::Turns, Self::Requests, Self::Prompts];

    /// The word as it stands on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Turns => "turns",
            Self::Requests => "requests",
            Self::Prompts => "prompts",
        }
    }
}

impl Span {
    /// Reads a span; `name` is how a complaint calls it.
    fn read(name: &str, value: &Value) -> Result<Self, String> {
        let expected = "{ turns = N }, { requests = N } or { prompts = N }";
        let Value::Object(members) = value else {
            return Err(format!("{name}: expected {expected}, found {value}"));
        };
        let mut members = members.iter();
        let (Some((word, count)), None) = (members.next(), members.next()) else {
            return Err(format!("{name}: expected exactly one of {expected}, found {value}"));
        };
        let Some(unit) = Unit::ALL.into_iter().find(|unit| unit.as_str() == word) else {
            return Err(format!("{name}: no such unit {word:?}; expected {expected}"));
        };
        Ok(Self { unit, count: at_least_one(&format!("{name}.{word}"), count)? })
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry(self.unit.as_str(), &self.count)?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        Self::read("span", &value).map_err(D::Error::custom)
    }
}

impl JsonSchema for Span {
    fn schema_name() -> Cow<'static, str> {
        "Span".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let count = json_schema!({ "type": "integer", "minimum": 1, "maximum": u32::MAX });
        json_schema!({
            "description": "A distance between tellings.",
            "type": "object",
            "minProperties": 1,
            "maxProperties": 1,
            "properties": { "turns": count, "requests": count, "prompts": count },
            "additionalProperties": false,
        })
    }
}

fn at_least_one(name: &str, value: &Value) -> Result<u32, String> {
    match value.as_u64().map(u32::try_from) {
        Some(Ok(0)) => Err(format!("{name}: 0 is no count; leave it out for no limit")),
        Some(Ok(count)) => Ok(count),
        _ => Err(format!("{name}: expected a whole number from 1 to {}, found {value}", u32::MAX)),
    }
}

impl PolicyTable {
    fn read(members: &Map<String, Value>) -> Result<Self, String> {
        let member = |name: &str| members.get(name).filter(|value| !value.is_null());
        let mut table = Self::default();
        let mut said: Option<&str> = None;
        let mut speaks = |name: &'static str, rhythm: Rhythm| {
            if let Some(other) = said {
                return Err(format!("policy: `{other}` and `{name}` exclude each other"));
            }
            said = Some(name);
            table.rhythm = Some(rhythm);
            Ok(())
        };
        for word in PolicyWord::ALL {
            let name = word.as_str();
            match member(name) {
                None => {}
                Some(Value::Bool(true)) => speaks(name, word.rhythm())?,
                Some(other) => {
                    return Err(format!(
                        "policy.{name}: can only be true or left out, found {other}"
                    ));
                }
            }
        }
        if let Some(value) = member("every") {
            speaks("every", Rhythm::Every(Span::read("policy.every", value)?))?;
        }
        table.rearm = match member("rearm") {
            None => None,
            Some(Value::String(word)) if word == "dropped" => Some(Rearm::Dropped),
            Some(Value::String(word)) if word == "never" => Some(Rearm::Never),
            Some(other) => {
                return Err(format!(
                    "policy.rearm: expected \"dropped\" or \"never\", found {other}"
                ));
            }
        };
        let span = |name: &str| {
            member(name).map(|value| Span::read(&format!("policy.{name}"), value)).transpose()
        };
        let count = |name: &str| {
            member(name).map(|value| at_least_one(&format!("policy.{name}"), value)).transpose()
        };
        table.cooldown = span("cooldown")?;
        table.max_per_turn = count("maxPerTurn")?;
        table.max_per_session = count("maxPerSession")?;
        Ok(table)
    }
}

impl Serialize for PolicyForm {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let table = match self {
            Self::Word(word) => return serializer.serialize_str(word.as_str()),
            Self::Table(table) => table,
        };
        let mut map = serializer.serialize_map(None)?;
        match table.rhythm {
            None => {}
            Some(Rhythm::Once) => map.serialize_entry("once", &true)?,
            Some(Rhythm::OnChange) => map.serialize_entry("onChange", &true)?,
            Some(Rhythm::Always) => map.serialize_entry("always", &true)?,
            Some(Rhythm::Every(span)) => map.serialize_entry("every", &span)?,
        }
        if let Some(rearm) = table.rearm {
            map.serialize_entry("rearm", rearm.as_str())?;
        }
        if let Some(cooldown) = table.cooldown {
            map.serialize_entry("cooldown", &cooldown)?;
        }
        if let Some(count) = table.max_per_turn {
            map.serialize_entry("maxPerTurn", &count)?;
        }
        if let Some(count) = table.max_per_session {
            map.serialize_entry("maxPerSession", &count)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for PolicyForm {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(text) => PolicyWord::ALL
                .into_iter()
                .find(|word| word.as_str() == text)
                .map(Self::Word)
                .ok_or_else(|| {
                    D::Error::custom(format!(
                        "policy: no such word {text:?}; expected \"once\", \"onChange\", \
                         \"always\" or a table"
                    ))
                }),
            Value::Object(members) => {
                PolicyTable::read(&members).map(Self::Table).map_err(D::Error::custom)
            }
            other => Err(D::Error::custom(format!(
                "policy: expected \"once\", \"onChange\", \"always\" or a table, found {other}"
            ))),
        }
    }
}

impl JsonSchema for PolicyForm {
    fn schema_name() -> Cow<'static, str> {
        "PolicyForm".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let span = generator.subschema_for::<Span>();
        json_schema!({
            "description": "How often a reminder speaks: a word, or a table with at most one of \
                            `once`, `onChange`, `always` and `every`.",
            "anyOf": [
                { "enum": ["once", "onChange", "always"] },
                {
                    "type": "object",
                    "properties": {
                        "once": { "const": true },
                        "onChange": { "const": true },
                        "always": { "const": true },
                        "every": span,
                        "rearm": {
                            "enum": ["dropped", "never"],
                            "description": "Whether it speaks again when history lost the telling.",
                        },
                        "cooldown": span,
                        "maxPerTurn": { "type": "integer", "minimum": 1, "maximum": u32::MAX },
                        "maxPerSession": { "type": "integer", "minimum": 1, "maximum": u32::MAX },
                    },
                },
            ],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn complaint(policy: Value) -> String {
        serde_json::from_value::<PolicyForm>(policy).unwrap_err().to_string()
    }

    #[test]
    fn a_policy_is_written_back_as_it_was_read() {
        for policy in [
            json!("onChange"),
            json!({ "once": true, "rearm": "never" }),
            json!({ "every": { "turns": 3 }, "cooldown": { "requests": 5 }, "maxPerSession": 10 }),
            json!({ "maxPerTurn": 1 }),
        ] {
            let form: PolicyForm = serde_json::from_value(policy.clone()).unwrap();
            assert_eq!(serde_json::to_value(form).unwrap(), policy);
        }
    }

    #[test]
    fn a_bad_policy_is_refused_by_name() {
        assert!(complaint(json!("sometimes")).contains("no such word \"sometimes\""));
        assert!(complaint(json!({ "every": { "days": 3 } })).contains("no such unit \"days\""));
        assert!(complaint(json!({ "every": { "turns": 0 } })).contains("policy.every.turns: 0"));
        assert!(complaint(json!({ "maxPerTurn": 0 })).contains("policy.maxPerTurn: 0"));
        assert!(complaint(json!({ "once": false })).contains("policy.once"));
        assert!(complaint(json!({ "rearm": "often" })).contains("policy.rearm"));
        assert!(
            complaint(json!({ "once": true, "every": { "turns": 1 } }))
                .contains("`once` and `every` exclude each other")
        );
        assert!(
            complaint(json!({ "cooldown": { "turns": 1, "requests": 1 } }))
                .contains("policy.cooldown: expected exactly one")
        );
    }

    #[test]
    fn a_kind_is_switched_by_a_boolean_or_a_table() {
        let kinds: KindSwitches =
            serde_json::from_value(json!({ "a": false, "b": {}, "c": null })).unwrap();
        assert_eq!(kinds.0.len(), 2);
        let error = serde_json::from_value::<KindSwitches>(json!({ "a": 3 })).unwrap_err();
        assert!(error.to_string().contains("kinds.a"));
    }
}
