//! The WAIT and what becomes of its token.

use crate::record::{InjectionRecord, Phase};
use crate::scope::Scope;
use crate::wire::{NullOr, is_false, null_default, open_enum, scoped};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

scoped! {
    /// `reminder/wait`: what should the model be told before the request that is being prepared?
    #[derive(Clone, Debug, PartialEq)]
    pub struct WaitParams {
        /// Whose request.
        pub scope: Scope,
        /// The turn that the client believes to be open; another one is refused.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub turn: Option<String>,
        /// The client's own id of the request, for logs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub request: Option<String>,
        /// Where the message will stand.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub seam: Option<Seam>,
        /// Which records the payload holds, when the client knows it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub history: Option<WaitHistory>,
        /// How large the message may be; of this and the host's the smaller holds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub limit: Option<Limit>,
        /// The time for slow parts, in milliseconds; 2000 when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub deadline_ms: Option<u64>,
        /// Whether the reply is committed at once, for clients that have no later moment.
        #[serde(default, deserialize_with = "null_default", skip_serializing_if = "is_false")]
        pub auto_commit: bool,
    }
}

open_enum! {
    /// Where in the conversation a message will stand.
    pub enum Seam {
        /// At the end of the user's message.
        Prompt = "prompt",
        /// After the complete results of a batch of tool calls.
        Tools = "tools",
        /// Where the host goes on by itself.
        Continuation = "continuation",
    }
}

/// The records that a payload holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WaitHistory {
    /// Exactly these are in the payload.
    pub records: Vec<String>,
}

/// The size that `message.content` may have, its tags included. Each member is a bound of its
/// own; all of them hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Limit {
    /// In bytes of UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// In characters (Unicode scalar values).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chars: Option<u64>,
    /// In UTF-16 code units.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub utf16: Option<u64>,
    /// In estimated tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
}

/// The answer to a WAIT.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Delivery {
    /// What to commit or release; there is one also when nothing speaks.
    pub token: String,
    /// Where in the turn the WAIT stands.
    pub phase: Phase,
    /// What speaks, in the message's order.
    pub entries: Vec<Entry>,
    /// The message to put into the payload; `null` when nothing speaks.
    #[schemars(with = "NullOr<Message>")]
    pub message: Option<Message>,
    /// The record to keep if all of it is told; `null` when nothing speaks.
    #[schemars(with = "NullOr<InjectionRecord>")]
    pub record: Option<InjectionRecord>,
    /// The line that a view shows for it; `null` when nothing speaks.
    #[schemars(with = "NullOr<String>")]
    pub row: Option<String>,
    /// What would have spoken but was kept for a later WAIT.
    pub held: Vec<Held>,
    /// The estimated price of the message in tokens.
    pub tokens: u64,
    /// `true` when the size limit is smaller than the first entry alone; otherwise absent.
    #[serde(default, deserialize_with = "null_default", skip_serializing_if = "is_false")]
    pub oversize: bool,
    /// The committed records that the host has lost, for hosts that persist nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<Vec<Replay>>,
    /// `true` when the WAIT asked for `autoCommit`; otherwise absent.
    #[serde(default, deserialize_with = "null_default", skip_serializing_if = "is_false")]
    pub committed: bool,
}

/// One thing that is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// The entry's id, new at each WAIT.
    pub id: String,
    /// Its kind's name; a registered reminder's is its id, a staged one's as given.
    #[serde(rename = "type")]
    pub entry_type: String,
    /// The member that it is about: a section, path, hook event…
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The short name shown in a row.
    pub label: String,
    /// What the model reads, without tags.
    pub body: String,
    /// Its estimated price in tokens.
    pub tokens: u64,
}

/// A message as a provider takes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Message {
    /// Always `user`.
    pub role: Role,
    /// The rendered text.
    pub content: String,
}

/// Who speaks in a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Role {
    /// The user's side of the conversation.
    #[default]
    User,
}

/// Something that was kept for a later WAIT.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Held {
    /// As in [`Entry`].
    #[serde(rename = "type")]
    pub entry_type: String,
    /// As in [`Entry`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Why, in a word: `limit`, `budget`, `deadline`, `receipt`…
    pub reason: String,
}

/// A committed record that the host has lost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Replay {
    /// The record; its message is rebuilt from it.
    pub record: InjectionRecord,
    /// Where it stood: what its commit said as `placement`, else the id of its turn.
    pub anchor: String,
}

/// `reminder/commit`: the payload that will be sent contains the message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommitParams {
    /// The token of the WAIT.
    pub token: String,
    /// The ids of the entries that arrived; absent for all, empty for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entries: Option<Vec<String>>,
    /// Where the host put the message: free text, noted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<String>,
    /// `false` when the client keeps no records: noted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<bool>,
}

/// The answer to `reminder/commit`, given once it is durable.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommitResult {
    /// The whole record of what was told; `null` when nothing was.
    #[schemars(with = "NullOr<InjectionRecord>")]
    pub record: Option<InjectionRecord>,
    /// The ids of the entries that are now told.
    pub committed: Vec<String>,
    /// The ids of the entries of the WAIT that stay eligible.
    pub held: Vec<String>,
    /// Whether the token had been committed before.
    pub already: bool,
}

/// `reminder/release`: the message never came to be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReleaseParams {
    /// The token of the WAIT.
    pub token: String,
    /// Why, for logs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The answer to `reminder/release`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReleaseResult {
    /// Whether this call released it; `false` when it was not open.
    pub released: bool,
}
