//! The life of a connection: the methods of LSP, with what this protocol adds to them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The version of the protocol; it moves only when something breaks.
pub const PROTOCOL_VERSION: u32 = 1;

/// `initialize`. Members of LSP that mean nothing here are ignored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InitializeParams {
    /// The client's process; when it dies, so does the daemon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process_id: Option<i64>,
    /// Who the client is, as in LSP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_info: Option<ClientInfo>,
    /// The workspace directory of sessions that name none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root_uri: Option<String>,
    /// What the client can do; nothing here depends on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Value>,
    /// What this protocol adds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initialization_options: Option<InitializationOptions>,
}

/// Who a client is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClientInfo {
    /// Its name.
    pub name: String,
    /// Its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// What this protocol adds to `initialize`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InitializationOptions {
    /// The version that the client speaks; [`PROTOCOL_VERSION`] when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol_version: Option<i64>,
    /// Who the client is; decides before `clientInfo`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<ClientInfo>,
    /// A whole configuration file in JSON, laid over the workspace's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<Value>,
    /// Whether workspaces' own configuration is trusted; no when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trusted: Option<bool>,
    /// Whether failed notifications are reported with `reminderd/problem`; yes when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problems: Option<bool>,
    /// Whether the client wants `file/changed` while watched files change; no when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_changed: Option<bool>,
}

/// The answer to `initialize`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InitializeResult {
    /// Who answers.
    pub server_info: ServerInfo,
    /// What it can do.
    pub capabilities: ServerCapabilities,
}

/// Who a server is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServerInfo {
    /// `reminderd`.
    pub name: String,
    /// The build's version.
    pub version: String,
}

/// What the server can do, in LSP's words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServerCapabilities {
    /// Which document notifications it wants.
    pub text_document_sync: TextDocumentSync,
    /// What is beyond LSP.
    pub experimental: ExperimentalCapabilities,
}

/// Which document notifications a server wants.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TextDocumentSync {
    /// `didOpen` and `didClose`.
    pub open_close: bool,
    /// `didChange`: 2, incremental.
    pub change: u32,
    /// `didSave`: `true`, or an object with `includeText`.
    pub save: Value,
}

/// What is beyond LSP.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExperimentalCapabilities {
    /// This protocol.
    pub reminderd: ReminderdCapabilities,
}

/// What this build of the protocol has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReminderdCapabilities {
    /// The version in use.
    pub protocol_version: u32,
    /// The names of the kinds.
    pub kinds: Vec<String>,
    /// The names of the profiles.
    pub profiles: Vec<String>,
    /// The limits in force.
    pub limits: Limits,
}

/// The limits in force. Names end in their unit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// The largest message, in bytes.
    pub message_bytes: u64,
    /// The others, by name.
    #[serde(flatten)]
    pub others: BTreeMap<String, u64>,
}

/// `$/cancelRequest`, as in LSP.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CancelParams {
    /// The id of the request, a string or an integer.
    pub id: Value,
}

/// `$/setTrace`, as in LSP; taken and ignored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SetTraceParams {
    /// `off`, `messages` or `verbose`.
    pub value: String,
}

/// `reminderd/clock`: move the clock of a deterministic daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClockParams {
    /// By how much, in milliseconds; 0 only asks.
    pub advance_ms: u64,
}

/// `reminderd/surroundings`: what a recording gives a deterministic daemon that plays it, in place of
/// its machine. Each member holds from the next message on. Their insides are the recording build's
/// own, and no client's business.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SurroundingsParams {
    /// The client that the messages from here on come from: its number and what it said of itself
    /// in `initialize`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connection: Option<Value>,
    /// The number of a client that is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub closed: Option<u64>,
    /// The randomness of the next WAIT: its token and the id of its record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub random: Option<Value>,
    /// What was kept of the session before the recording began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ledger: Option<Value>,
    /// What stands in configuration files; sessions take it over at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub configuration: Option<Value>,
    /// What looks at files find.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub seen: Vec<Value>,
    /// Whether the next request is not answered before it is cancelled.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unanswered: bool,
}

/// The answer to `reminderd/clock`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClockResult {
    /// The time after the move, in milliseconds since the Unix epoch.
    pub now: u64,
}
