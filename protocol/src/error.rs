//! Errors on the wire: JSON-RPC's own, LSP's, and those of this protocol (SPEC.md, "Errors").

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The kinds of error of this protocol, each with its code and its name in `data.kind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The message is not JSON.
    Parse,
    /// The message is JSON but not a request, notification or response.
    InvalidRequest,
    /// No such method.
    MethodNotFound,
    /// The parameters do not fit the method.
    InvalidParams,
    /// A fault of the daemon itself.
    Internal,
    /// A request came before `initialize`.
    NotInitialized,
    /// The client cancelled the request.
    RequestCancelled,
    /// `session/open` was never called for this session, or it was closed.
    UnknownSession,
    /// Another daemon owns the session.
    SessionHeld,
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
    /// A queue, message or value is larger than its limit.
    LimitExceeded,
    /// The store failed; nothing was told.
    StoreFailed,
    /// Too much is being worked on; try again.
    Overloaded,
    /// A record is not whole, or not of this scope.
    BadRecord,
    /// A method of the protocol that this build lacks.
    NotYet,
}

impl ErrorKind {
    /// The JSON-RPC error code.
    pub const fn code(self) -> i64 {
        match self {
            Self::Parse => -32700,
            Self::InvalidRequest => -32600,
            Self::MethodNotFound => -32601,
            Self::InvalidParams => -32602,
            Self::Internal => -32603,
            Self::NotInitialized => -32002,
            Self::RequestCancelled => -32800,
            Self::UnknownSession => -33001,
            Self::SessionHeld => -33002,
            Self::UnknownAgent => -33003,
            Self::NoTurn => -33004,
            Self::NotReady => -33005,
            Self::UnknownToken => -33006,
            Self::TokenReleased => -33007,
            Self::TokenExpired => -33008,
            Self::LimitExceeded => -33009,
            Self::StoreFailed => -33010,
            Self::Overloaded => -33011,
            Self::BadRecord => -33013,
            Self::NotYet => -33014,
        }
    }

    /// The name that stands in `data.kind`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Parse => "parse",
            Self::InvalidRequest => "invalidRequest",
            Self::MethodNotFound => "methodNotFound",
            Self::InvalidParams => "invalidParams",
            Self::Internal => "internal",
            Self::NotInitialized => "notInitialized",
            Self::RequestCancelled => "requestCancelled",
            Self::UnknownSession => "unknownSession",
            Self::SessionHeld => "sessionHeld",
            Self::UnknownAgent => "unknownAgent",
            Self::NoTurn => "noTurn",
            Self::NotReady => "notReady",
            Self::UnknownToken => "unknownToken",
            Self::TokenReleased => "tokenReleased",
            Self::TokenExpired => "tokenExpired",
            Self::LimitExceeded => "limitExceeded",
            Self::StoreFailed => "storeFailed",
            Self::Overloaded => "overloaded",
            Self::BadRecord => "badRecord",
            Self::NotYet => "notYet",
        }
    }
}

/// The `error` member of a response. The message names the thing, the reason and the next step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ErrorObject {
    /// JSON-RPC error code.
    pub code: i64,
    /// For people: what, why, and what to do.
    pub message: String,
    /// `{kind, hint?, …}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

impl ErrorObject {
    /// An error of a kind. `data.kind` is its name, and `data.hint` the next step: what stands in
    /// the message behind its last `: `, or in brackets at its end.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        let message = shortened(message.into());
        let mut data = json!({ "kind": kind.name() });
        if let Some(hint) = hint(&message) {
            data["hint"] = hint.into();
        }
        Self { code: kind.code(), message, data: Some(data) }
    }

    /// The same error with one more member in `data`.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        let data = self.data.get_or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(members) = data {
            let value = match value.into() {
                Value::String(text) => Value::String(shortened(text)),
                value => value,
            };
            members.insert(name.to_owned(), value);
        }
        self
    }
}

/// Characters that a text of an error keeps at each end. It may quote names of any length.
const ENDS_CHARS: usize = 1_000;

/// A text without the middle of what is too long to be read; its reason and next step stand at the
/// ends.
fn shortened(text: String) -> String {
    let count = text.chars().count();
    let Some(more) = count.checked_sub(2 * ENDS_CHARS).filter(|more| *more > 0) else {
        return text;
    };
    let begin: String = text.chars().take(ENDS_CHARS).collect();
    let end: String = text.chars().skip(ENDS_CHARS + more).collect();
    format!("{begin}… (+{more} characters) …{end}")
}

/// The next step that a message names.
fn hint(message: &str) -> Option<&str> {
    if let Some(open) = message.strip_suffix(')') {
        return open.rsplit_once('(').map(|(_, hint)| hint);
    }
    message.rsplit_once(": ").map(|(_, hint)| hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_step_of_a_message_is_its_hint() {
        for (message, hint) in [
            ("no turn is open on the root: send turn/begin first", "send turn/begin first"),
            ("cannot commit t: its turn ended (send it again)", "send it again"),
        ] {
            let error = ErrorObject::new(ErrorKind::NoTurn, message);
            let data = error.data.expect("data");
            assert_eq!(data["hint"], hint);
            assert_eq!(data["kind"], "noTurn");
        }
        assert_eq!(hint("no such method"), None);
    }

    #[test]
    fn a_name_of_any_length_is_quoted_short() {
        let name = "n".repeat(1 << 20);
        let message = format!("turn {name:?} is not open: send turn/begin first");
        let error = ErrorObject::new(ErrorKind::NoTurn, message).with("turn", name);
        assert!(error.message.starts_with("turn \"nnn"));
        assert!(error.message.ends_with("nnn\" is not open: send turn/begin first"));
        let data = error.data.expect("data");
        assert_eq!(data["hint"], "send turn/begin first");
        assert!(error.message.chars().count() < 2_100 && data.to_string().chars().count() < 2_300);
    }
}
