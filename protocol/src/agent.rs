//! Agents: child conversations with their own roster, queue, turn and history.

use crate::roster::KindSwitches;
use crate::wire::open_enum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `agent/spawn`: an agent begins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentSpawnParams {
    /// The session's id.
    pub session: String,
    /// The agent's path; its parent is the path's parent and must exist.
    pub agent: String,
    /// Switches by kind, laid over the session's reminders for agents; an empty table switches
    /// a kind on. The roster is frozen with them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kinds: Option<KindSwitches>,
    /// The most requests that the agent may make; absent for no cap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_requests: Option<u64>,
    /// What the agent is for, as the client names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
}

/// `agent/settle`: an agent is done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentSettleParams {
    /// The session's id.
    pub session: String,
    /// The agent's path.
    pub agent: String,
    /// How it ended.
    pub outcome: AgentOutcome,
}

open_enum! {
    /// How an agent ended.
    pub enum AgentOutcome {
        /// With its work done: its open tasks are completed.
        Succeeded = "succeeded",
        /// Without: its tasks stay open.
        Failed = "failed",
        /// Stopped by somebody: its tasks stay open.
        Interrupted = "interrupted",
    }
}
