//! What a client puts in directly.

use crate::roster::Lane;
use crate::scope::Scope;
use crate::wire::scoped;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

scoped! {
    /// `reminder/stage`: one entry for the next WAIT of this turn.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct StageParams {
        /// Who is told.
        pub scope: Scope,
        /// The entry's type, as the client names it.
        #[serde(rename = "type")]
        pub entry_type: String,
        /// What the model reads.
        pub body: String,
        /// The member that it is about.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub key: Option<String>,
        /// Its place in the message: `mention`, `skill`, `compaction` or `steering`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub lane: Option<Lane>,
        /// The short name shown in a row; the type when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub label: Option<String>,
    }
}

scoped! {
    /// `reminder/observe`: an event of the open turn, coalesced by key.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ObserveParams {
        /// Who is told.
        pub scope: Scope,
        /// The turn that the event belongs to; another one than the open one is refused.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub turn: Option<String>,
        /// What coalesces: a later event under the same key replaces this one and goes last.
        pub key: String,
        /// The entry's type, as the client names it.
        #[serde(rename = "type")]
        pub entry_type: String,
        /// What the model reads.
        pub body: String,
    }
}

/// `reminder/enqueue`: a body for the session's pending queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EnqueueParams {
    /// The session's id.
    pub session: String,
    /// A name for it in `reminder/explain`.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub entry_type: Option<String>,
    /// What the model reads.
    pub body: String,
}

scoped! {
    /// `reminder/withdraw`: take back what was observed or staged under a key.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct WithdrawParams {
        /// Whose.
        pub scope: Scope,
        /// The key.
        pub key: String,
    }
}

scoped! {
    /// `reminder/acknowledge`: the prompt itself carries this already.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct AcknowledgeParams {
        /// Whose.
        pub scope: Scope,
        /// The kind, or the id of a registered reminder.
        pub kind: String,
        /// The member that it is about; absent for all of the kind.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub key: Option<String>,
        /// The state that the prompt carries; absent for the present one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub fingerprint: Option<String>,
    }
}
