//! Sessions: opening, closing, forking, listing.

use crate::roster::{KindSwitches, ReminderForm, RosterRow};
use crate::wire::{NullOr, null_default, open_enum};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// `session/open`: create, restore or join a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionOpenParams {
    /// The session's id: the client's own string.
    pub session: String,
    /// The workspace directory, as a `file:` URI or an absolute path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// The profile to start from: one of `profiles` in the reply to `initialize`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// Switches and settings by kind; on a live session merged, later wins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kinds: Option<KindSwitches>,
    /// The client's own reminders; on a live session merged by id, later wins.
    #[serde(default, deserialize_with = "null_default", skip_serializing_if = "Vec::is_empty")]
    pub reminders: Vec<ReminderForm>,
    /// What the client's host does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostForm>,
    /// The injection records that the client kept, oldest first. Absent: what the daemon has
    /// stored stands. Empty: history holds nothing.
    ///
    /// They are read one by one as [`InjectionRecord`](crate::record::InjectionRecord), so that
    /// a bad one is rejected alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub records: Option<Vec<Value>>,
    /// Whether the workspace's own configuration is trusted; decides before `initialize`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trusted: Option<bool>,
    /// Globs of files whose content is never shown.
    #[serde(default, deserialize_with = "null_default", skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<String>,
    /// The session's bookkeeping directories, which are never watched.
    #[serde(default, deserialize_with = "null_default", skip_serializing_if = "Vec::is_empty")]
    pub own: Vec<String>,
}

/// What the client's host does. An absent member leaves what was said before, or the default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostForm {
    /// Who owns the conversation; `client` unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<HostHistory>,
    /// When the proof of arrival comes; `immediate` unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receipts: Option<HostReceipts>,
    /// Whether the daemon writes the tags; `tagged` unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub render: Option<HostRender>,
    /// Who keeps injected messages; `host` unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persists: Option<HostPersists>,
    /// Most bytes of UTF-8 that `message.content` may have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<u64>,
    /// Most characters (Unicode scalar values) that `message.content` may have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_chars: Option<u64>,
    /// Most UTF-16 code units that `message.content` may have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_utf16: Option<u64>,
    /// The names of the tools that the model has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
}

open_enum! {
    /// Who owns the conversation.
    pub enum HostHistory {
        /// The client builds each payload itself.
        Client = "client",
        /// The host does; its context is not estimated here.
        Native = "native",
    }
}

open_enum! {
    /// When the proof arrives that a message was taken.
    pub enum HostReceipts {
        /// Before the next seam.
        Immediate = "immediate",
        /// Perhaps after the next seam; a WAIT then does not supersede an open token.
        Late = "late",
    }
}

open_enum! {
    /// Who writes the reminder tags.
    pub enum HostRender {
        /// The daemon does.
        Tagged = "tagged",
        /// The host does; `content` is the bodies alone.
        Plain = "plain",
    }
}

open_enum! {
    /// Who keeps injected messages for later requests.
    pub enum HostPersists {
        /// The host's transcript does.
        Host = "host",
        /// The client does, from its records.
        Client = "client",
        /// Nobody does; each WAIT replays the committed records.
        None = "none",
    }
}

/// The answer to `session/open` and `session/fork`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionOpenResult {
    /// The session's id.
    pub session: String,
    /// Where its state came from.
    pub state: OpenState,
    /// What became of the client's records.
    pub records: RecordsReport,
    /// The root's roster, in order.
    pub roster: Vec<RosterRow>,
    /// Ids from the workspace's configuration that were left out because it is not trusted.
    pub untrusted: Vec<String>,
}

/// Where an opened session's state came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum OpenState {
    /// Nothing was known of it.
    New,
    /// It was open already; this connection joined it.
    Live,
    /// It was rebuilt from what is stored.
    Restored,
}

/// Which of a client's records were taken.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecordsReport {
    /// Ids of the records that history now holds.
    pub accepted: Vec<String>,
    /// The others.
    pub rejected: Vec<RejectedRecord>,
}

/// A record that was not taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RejectedRecord {
    /// Its id, or its place in the list (`"#3"`) when it has none.
    pub id: String,
    /// Why, in one sentence.
    pub reason: String,
}

/// `session/close`: this session is done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionCloseParams {
    /// The session's id.
    pub session: String,
    /// Whether everything stored about it is erased.
    #[serde(
        default,
        deserialize_with = "null_default",
        skip_serializing_if = "crate::wire::is_false"
    )]
    pub forget: bool,
}

/// `session/fork`: begin a session from another one's history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionForkParams {
    /// The session to copy from.
    pub session: String,
    /// The id of the new session.
    pub into: String,
    /// The last record to copy; absent for all of history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub through: Option<String>,
    /// The worktree in which the fork works, if it has its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<ForkWorktree>,
    /// What making the worktree could and could not restore.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<ForkReport>,
}

/// The worktree of a fork.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ForkWorktree {
    /// Its directory, as a `file:` URI or an absolute path.
    pub directory: String,
    /// The branch checked out in it.
    pub branch: String,
    /// The commit that it starts from.
    pub base: String,
}

/// What making a fork's worktree could and could not restore.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ForkReport {
    /// How many files were restored.
    pub restored: u64,
    /// Paths of files that could not be restored.
    #[serde(default, deserialize_with = "null_default")]
    pub unrestored: Vec<String>,
    /// Paths outside the worktree that both sessions share.
    #[serde(default, deserialize_with = "null_default")]
    pub external: Vec<String>,
    /// Names of state that was left behind.
    #[serde(default, deserialize_with = "null_default")]
    pub dropped: Vec<String>,
}

/// A row of the answer to `session/list`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionSummary {
    /// The session's id.
    pub session: String,
    /// Its workspace directory, if it has one.
    #[schemars(with = "NullOr<String>")]
    pub root: Option<String>,
    /// Whether it is in memory.
    pub state: SessionLife,
    /// The root's open turn.
    #[schemars(with = "NullOr<String>")]
    pub turn: Option<String>,
    /// How many tokens are open, over all its scopes.
    pub open_tokens: u64,
    /// When a message last named it, in milliseconds since the Unix epoch.
    pub last_active: u64,
}

/// Whether a listed session is in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum SessionLife {
    /// It is open in this daemon.
    Live,
    /// It is only stored; `session/open` restores it.
    Stored,
}
