//! What became of the conversation's history.

use crate::record::InjectionRecord;
use crate::scope::Scope;
use crate::wire::{NullOr, is_false, null_default, open_enum, present, scoped};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use std::borrow::Cow;

scoped! {
    /// `history/compacted`: older messages gave way to a summary.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct HistoryCompactedParams {
        /// Whose history.
        pub scope: Scope,
        /// Which records it still holds.
        pub retained: Retained,
        /// Who compacted; `client` when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub engine: Option<CompactionEngine>,
    }
}

open_enum! {
    /// Who compacted a history.
    pub enum CompactionEngine {
        /// The client did.
        Client = "client",
        /// The host that owns the conversation did.
        Native = "native",
    }
}

/// Which records a compacted history still holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Retained {
    /// None of them.
    None,
    /// All of them.
    All,
    /// Exactly these.
    Records(Vec<String>),
    /// A word that this build does not know.
    Unknown(String),
}

impl Serialize for Retained {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::None => serializer.serialize_str("none"),
            Self::All => serializer.serialize_str("all"),
            Self::Records(ids) => ids.serialize(serializer),
            Self::Unknown(text) => serializer.serialize_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for Retained {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(text) => Ok(match text.as_str() {
                "none" => Self::None,
                "all" => Self::All,
                _ => Self::Unknown(text),
            }),
            ids @ Value::Array(_) => {
                serde_json::from_value(ids).map(Self::Records).map_err(|error| {
                    D::Error::custom(format!("retained: not a list of record ids: {error}"))
                })
            }
            other => Err(D::Error::custom(format!(
                "retained: expected \"none\", \"all\" or a list of record ids, found {other}"
            ))),
        }
    }
}

impl JsonSchema for Retained {
    fn schema_name() -> Cow<'static, str> {
        "Retained".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Which records a compacted history still holds.",
            "anyOf": [
                { "const": "none", "description": "None of them." },
                { "const": "all", "description": "All of them." },
                {
                    "type": "array",
                    "items": { "type": "string" },
                    "description": "Exactly these.",
                },
                { "type": "string", "description": "Any other word is skipped and counted." },
            ],
        })
    }
}

scoped! {
    /// `history/rewound`: the conversation went back to an earlier point.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct HistoryRewoundParams {
        /// Whose history.
        pub scope: Scope,
        /// The last record that it still holds; `null` for none.
        #[serde(deserialize_with = "present")]
        #[schemars(with = "NullOr<String>")]
        pub through: Option<String>,
    }
}

scoped! {
    /// `history/reported`: exactly these records are in the payload now.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct HistoryReportedParams {
        /// Whose history.
        pub scope: Scope,
        /// The ids of the records.
        pub records: Vec<String>,
    }
}

scoped! {
    /// `reminder/history`: what was told.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct HistoryParams {
        /// Whose history.
        pub scope: Scope,
        /// Whether to leave out what history no longer holds.
        #[serde(default, deserialize_with = "null_default", skip_serializing_if = "is_false")]
        pub retained: bool,
        /// The most records to answer with; absent for all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub limit: Option<u64>,
        /// Only records older than the one with this id.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub before: Option<String>,
    }
}

/// The answer to `reminder/history`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HistoryResult {
    /// The records, newest first.
    pub records: Vec<HistoryRow>,
}

/// A record and what is known about it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HistoryRow {
    /// When it was committed, in milliseconds since the Unix epoch.
    pub at: u64,
    /// Whether history still holds it.
    pub retained: bool,
    /// Where the host put it, as its commit said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<String>,
    /// The record itself, its members beside these.
    #[serde(flatten)]
    pub record: InjectionRecord,
}
