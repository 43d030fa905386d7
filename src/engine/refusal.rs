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

/// Where in a form, or in the table of a kind, something does not fit: whoever read it from a text
/// can point at it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct At {
    /// The names of the members that lead to it, from the outside in; a list's member goes by its
    /// place, from 0.
    pub key: Vec<String>,
    /// Where within a template or an expression: line and column, both from 1, the column in
    /// characters.
    pub within: Option<(u32, u32)>,
}

/// A refusal: what, why and what to do, in one sentence for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What kind it is.
    pub kind: RefusalKind,
    /// The thing, the reason and the next step. Whole without `at`.
    pub message: String,
    /// Where in the form or the table, if it is about a member of one.
    pub at: Option<At>,
}

impl Refusal {
    /// A refusal of a kind.
    pub fn new(kind: RefusalKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), at: None }
    }

    /// A value does not fit.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(RefusalKind::InvalidParams, message)
    }

    /// The same refusal, about the member that these names lead to.
    #[must_use]
    pub fn about<K: Into<String>>(mut self, key: impl IntoIterator<Item = K>) -> Self {
        let key = key.into_iter().map(Into::into).collect();
        self.at = Some(At { key, within: None });
        self
    }

    /// The same refusal, about a place within the text of its member: line and column from 1.
    #[must_use]
    pub fn within(mut self, place: Option<(u32, u32)>) -> Self {
        self.at.get_or_insert_default().within = place;
        self
    }

    /// The same refusal, saying first whose form or table it is about.
    #[must_use]
    pub fn of(mut self, id: &str) -> Self {
        self.message = format!("{id}: {}", self.message);
        self
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Refusal {}
