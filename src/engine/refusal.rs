//! Why the engine refuses something. A refusal changes nothing.

use std::fmt;

/// The kinds of refusal, each of which the wire has an error for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalKind {
    /// A value does not fit.
    InvalidParams,
    /// No such agent, or one that has settled.
    UnknownAgent,
    /// No turn is open on the scope, or not this one.
    NoTurn,
    /// A tool call of the scope is still open.
    NotReady,
    /// Nobody was ever given this token.
    UnknownToken,
    /// The token was released.
    TokenReleased,
    /// The token expired.
    TokenExpired,
    /// A queue or value is larger than its limit.
    LimitExceeded,
    /// No such record, or one that is not whole.
    BadRecord,
}

/// A refusal: what, why and what to do, in one sentence for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What kind it is.
    pub kind: RefusalKind,
    /// The thing, the reason and the next step.
    pub message: String,
}

impl Refusal {
    /// A refusal of a kind.
    pub fn new(kind: RefusalKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// A value does not fit.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(RefusalKind::InvalidParams, message)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Refusal {}
