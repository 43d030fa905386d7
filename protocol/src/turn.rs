//! Turns and the tool calls in them.

use crate::scope::Scope;
use crate::wire::{open_enum, scoped};
use serde_json::Value;

scoped! {
    /// `turn/begin`: a user-level exchange begins.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct TurnBeginParams {
        /// Whose turn.
        pub scope: Scope,
        /// The turn's id: the client's own string, used once on the scope.
        pub turn: String,
        /// The user's message, for rules that look at it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub prompt: Option<String>,
    }
}

scoped! {
    /// `turn/end`: the exchange is over.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct TurnEndParams {
        /// Whose turn.
        pub scope: Scope,
        /// The turn's id.
        pub turn: String,
        /// How it ended.
        pub outcome: TurnOutcome,
    }
}

open_enum! {
    /// How a turn ended.
    pub enum TurnOutcome {
        /// The model had nothing more to do.
        Completed = "completed",
        /// The person stopped it.
        Cancelled = "cancelled",
        /// The host or the provider failed.
        Failed = "failed",
    }
}

scoped! {
    /// `tool/begin`: a tool call starts.
    #[derive(Clone, Debug, PartialEq)]
    pub struct ToolBeginParams {
        /// Whose call.
        pub scope: Scope,
        /// The call's id: the client's own string.
        pub call: String,
        /// The tool's name.
        pub name: String,
        /// What the model passed: any JSON.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub input: Option<Value>,
    }
}

scoped! {
    /// `tool/end`: a tool call is over.
    #[derive(Clone, Debug, PartialEq)]
    pub struct ToolEndParams {
        /// Whose call.
        pub scope: Scope,
        /// The call's id.
        pub call: String,
        /// The tool's name.
        pub name: String,
        /// Whether it succeeded.
        pub ok: bool,
        /// What came back: any JSON.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub output: Option<Value>,
    }
}
