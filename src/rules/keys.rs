//! The members of a form and of a kind's table as JSON Schema, for the file's readers: people, their
//! editors, and the search for misspelt names. What the members mean is read in `form.rs`,
//! `settings.rs` and `policy.rs`; the wire has types of its own.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::json;

/// A reminder of the user's own. It has one of `body`, `pool` and `client = true`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReminderKeys {
    /// Its name, once in a file; no built-in kind's.
    #[schemars(length(min = 1, max = 200))]
    pub id: String,
    /// What it says: a template.
    pub body: Option<String>,
    /// When it speaks: an expression over the session's state.
    pub when: Option<String>,
    /// It speaks when one of these globs matches a path touched in this turn, relative to the root.
    pub globs: Option<Vec<String>>,
    /// It speaks when a finished call of this turn matches.
    pub tool: Option<ToolKeys>,
    /// The pool whose changes it announces.
    pub pool: Option<String>,
    /// The names of the pool that count as told from the start; without it, none.
    pub baseline: Option<Vec<String>>,
    /// What it says of names that came into the pool: a template.
    pub added: Option<String>,
    /// What it says of names that left the pool: a template.
    pub removed: Option<String>,
    /// Whether the client computes its body (`reminder/compute`).
    pub client: Option<bool>,
    /// How often it speaks.
    pub policy: Option<PolicyKeys>,
    /// How often it speaks in a turn at most.
    #[schemars(range(min = 1))]
    pub max_per_turn: Option<u64>,
    /// How often it speaks in a session at most.
    #[schemars(range(min = 1))]
    pub max_per_session: Option<u64>,
    /// Which conversations have it: the root's, its agents'.
    pub scopes: Option<Vec<ScopeKey>>,
    /// Its place in the message.
    pub lane: Option<LaneKey>,
    /// What is kept first when a budget or limit bites: higher.
    pub priority: Option<i64>,
    /// It is silent unless the conversation has this tool.
    pub requires_tool: Option<String>,
    /// The short name that a row shows; without it, the id.
    pub label: Option<String>,
}

/// What every kind's table takes beside the kind's own keys.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TuningKeys {
    /// How often the kind speaks; replaces its own policy.
    pub policy: Option<PolicyKeys>,
    /// How often it speaks in a turn at most.
    #[schemars(range(min = 1))]
    pub max_per_turn: Option<u64>,
    /// How often it speaks in a session at most.
    #[schemars(range(min = 1))]
    pub max_per_session: Option<u64>,
    /// What is kept first when a budget or limit bites: higher.
    pub priority: Option<i64>,
}

/// A pattern over finished calls; each member that is there must match.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolKeys {
    /// A pattern over the tool's name.
    pub name: Option<String>,
    /// A pattern over the call's input.
    pub input: Option<String>,
    /// Whether the call succeeded.
    pub ok: Option<bool>,
}

/// A conversation.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ScopeKey {
    /// The root's.
    Root,
    /// Its agents'.
    Agents,
}

/// A place in the message.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum LaneKey {
    /// Where mentions are.
    Mention,
    /// Where skills are.
    Skill,
    /// Where it was registered, among the roster's own.
    Roster,
    /// Where it is said what a compaction dropped.
    Compaction,
    /// Where corrections of course are.
    Steering,
    /// Where named sections are.
    Sections,
    /// Where the turn's events are.
    Events,
}

/// A policy: a word, or a table.
#[derive(Debug, Deserialize)]
pub struct PolicyKeys;

impl JsonSchema for PolicyKeys {
    fn schema_name() -> Cow<'static, str> {
        "Policy".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let most = |meaning| json!({ "description": meaning, "type": "integer", "minimum": 1 });
        let span = |meaning| {
            json!({
                "description": meaning,
                "type": "object",
                "properties": {
                    "turns": most("Ended turns."),
                    "requests": most("Committed WAITs."),
                    "prompts": most("Turns whose first WAIT was committed."),
                },
                "additionalProperties": false,
                "minProperties": 1,
                "maxProperties": 1,
            })
        };
        let only_true = |meaning| json!({ "description": meaning, "const": true });
        json_schema!({
            "anyOf": [
                { "type": "string", "enum": ["once", "onChange", "always"] },
                {
                    "type": "object",
                    "properties": {
                        "once": only_true("Told once, and again when history lost it."),
                        "onChange": only_true("Told when what it says is not what was last told."),
                        "always": only_true("Told whenever it has something to say."),
                        "every": span("Told when this much has passed since it was last told."),
                        "rearm": {
                            "description": "Whether a telling that history lost is told again.",
                            "type": "string",
                            "enum": ["dropped", "never"],
                            "default": "dropped",
                        },
                        "cooldown": span("The least distance between two tellings."),
                        "maxPerTurn": most("How often it speaks in a turn at most."),
                        "maxPerSession": most("How often it speaks in a session at most."),
                    },
                    "additionalProperties": false,
                },
            ],
        })
    }
}
