//! Which conversation a message is about.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A conversation: a session's root, or one of its agents. Written flat into the params.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct Scope {
    /// The session's id: the client's own string.
    pub session: String,
    /// The agent's path, such as `"/reviewer/linter"`; absent for the root conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
}
