//! The roster: which reminders a scope has, and the forms of a user's own.

use crate::scope::Scope;
use crate::state::Spent;
use crate::wire::{NullOr, null_default, open_enum, scoped};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;

scoped! {
    /// `roster/register`: add a reminder, or replace the one with its id.
    #[derive(Clone, Debug, PartialEq)]
    pub struct RosterRegisterParams {
        /// Whose roster.
        pub scope: Scope,
        /// The reminder.
        pub reminder: ReminderForm,
    }
}

scoped! {
    /// `roster/remove`: take a registered reminder away and forget what it told.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct RosterRemoveParams {
        /// Whose roster.
        pub scope: Scope,
        /// The reminder's id.
        pub id: String,
    }
}

/// The answer to `roster/remove`, when it is sent as a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RosterRemoveResult {
    /// Whether there was one.
    pub removed: bool,
}

scoped! {
    /// `roster/configure`: switch and retune kinds, from the next WAIT on.
    #[derive(Clone, Debug, PartialEq)]
    pub struct RosterConfigureParams {
        /// Whose roster.
        pub scope: Scope,
        /// Switches and settings by kind, merged into those in force.
        pub kinds: KindSwitches,
    }
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
    /// What it has cost so far; absent when it was never told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<Spent>,
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
    /// How often it speaks in a turn at most, from 1; absent means no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_per_turn: Option<u64>,
    /// How often it speaks in a session at most, from 1; absent means no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_per_session: Option<u64>,
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

/// How often a reminder speaks, as it was written: a word, or a table with at most one of `once`,
/// `onChange`, `always` and `every`. The daemon reads it where it reads that of a file, so that
/// both get the same messages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PolicyForm(pub Value);

impl JsonSchema for PolicyForm {
    fn schema_name() -> Cow<'static, str> {
        "PolicyForm".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let count = json!({ "type": "integer", "minimum": 1 });
        let span = json!({
            "description": "A number of one unit.",
            "type": "object",
            "properties": { "turns": count, "requests": count, "prompts": count },
            "minProperties": 1,
            "maxProperties": 1,
            "additionalProperties": false,
        });
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
                        "maxPerTurn": count,
                        "maxPerSession": count,
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

    #[test]
    fn a_kind_is_switched_by_a_boolean_or_a_table() {
        let kinds: KindSwitches =
            serde_json::from_value(json!({ "a": false, "b": {}, "c": null })).unwrap();
        assert_eq!(kinds.0.len(), 2);
        let error = serde_json::from_value::<KindSwitches>(json!({ "a": 3 })).unwrap_err();
        assert!(error.to_string().contains("kinds.a"));
    }
}
