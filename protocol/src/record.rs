//! The injection record: what a client keeps beside its transcript.
//!
//! The digest is defined in `SPEC.md`, "Records"; computing and checking it is the engine's.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One told message, whole: it suffices to rebuild `message.content` byte for byte.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InjectionRecord {
    /// Always `injected-reminders`.
    #[serde(rename = "type")]
    pub record_type: RecordType,
    /// The version of this form: 1.
    pub version: u32,
    /// The record's id; the one made by a partial commit ends in `p`.
    pub id: String,
    /// The session that was told.
    pub session: String,
    /// The agent that was told; absent for the root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The turn in which it was told.
    pub turn: String,
    /// Where in the turn.
    pub phase: Phase,
    /// How the entries' bodies become the message.
    pub form: RecordForm,
    /// The scope's counters at the WAIT, the request being prepared included.
    pub ordinals: Ordinals,
    /// What was told, in the message's order.
    pub entries: Vec<RecordEntry>,
    /// What was marked as told without text of its own.
    #[serde(
        default,
        deserialize_with = "crate::wire::null_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub silent: Vec<SilentEntry>,
    /// `blake3:` and 64 lower-case hexadecimal digits, over everything above.
    pub digest: String,
}

/// The word that tells an injection record from other things in a transcript.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RecordType {
    /// An injection record.
    InjectedReminders,
}

/// Where in a turn a WAIT stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// No WAIT of the turn was committed before it.
    TurnStart,
    /// At least one was.
    MidTurn,
}

impl Phase {
    /// The word as it stands on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TurnStart => "turn-start",
            Self::MidTurn => "mid-turn",
        }
    }
}

/// How bodies are joined into `message.content`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RecordForm {
    /// A tagged block for each entry, joined by one newline.
    Blocks,
    /// One tagged block, the bodies in it joined by a blank line.
    Block,
    /// No tags, the bodies joined by a blank line.
    Plain,
}

impl RecordForm {
    /// The word as it stands on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Blocks => "blocks",
            Self::Block => "block",
            Self::Plain => "plain",
        }
    }
}

/// A scope's counters, each from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Ordinals {
    /// Which turn of the scope.
    pub turn: u64,
    /// Which request of the scope.
    pub request: u64,
    /// Which prompt of the scope.
    pub prompt: u64,
}

/// A told entry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecordEntry {
    /// The entry's id, new at each WAIT.
    pub id: String,
    /// Its kind's name; a registered reminder's is its id, a staged one's as given.
    #[serde(rename = "type")]
    pub entry_type: String,
    /// The member that it is about: a section, path, hook event…
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The kind that made it.
    pub kind: String,
    /// The short name shown in a row.
    pub label: String,
    /// What the model reads, without tags, already made harmless.
    pub body: String,
    /// What the kind compares to find a change.
    pub fingerprint: String,
    /// Named values that it told: thresholds, names that came (`+`) or went (`-`).
    #[serde(
        default,
        deserialize_with = "crate::wire::null_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub marks: Vec<String>,
}

/// Something marked as told without a body in the message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SilentEntry {
    /// As in [`RecordEntry`].
    #[serde(rename = "type")]
    pub entry_type: String,
    /// As in [`RecordEntry`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The kind that was silently told.
    pub kind: String,
    /// As in [`RecordEntry`].
    pub fingerprint: String,
    /// Named values that it told.
    #[serde(
        default,
        deserialize_with = "crate::wire::null_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub marks: Vec<String>,
}
