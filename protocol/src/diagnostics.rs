//! Diagnostics: what checkers say about files.
//!
//! Lists of diagnostics stay raw JSON in the params, because one that cannot be read must not
//! take the others with it; [`Diagnostic::read`] reads one.

use crate::files::Range;
use crate::wire::open_enum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// `diagnostic/publish`: a checker's results for a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DiagnosticPublishParams {
    /// The file, as a `file:` URI or an absolute path.
    pub uri: String,
    /// The version that was checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<i64>,
    /// The checker's name; its results are replaced only by its own.
    pub checker: String,
    /// Where the checker stands; `done` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<DiagnosticState>,
    /// What it found, each as in LSP; absent is the same as empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diagnostics: Option<Vec<Value>>,
}

open_enum! {
    /// Where a checker stands with a file.
    pub enum DiagnosticState {
        /// It is at work; its former results stay.
        Running = "running",
        /// These are its results.
        Done = "done",
        /// It could not check.
        Failed = "failed",
        /// It does not handle the file.
        None = "none",
    }
}

/// `textDocument/publishDiagnostics`, as an LSP server sends it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PublishDiagnosticsParams {
    /// The file.
    pub uri: String,
    /// The version that was checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<i64>,
    /// The checker's name, beyond LSP; without it one checker per client name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checker: Option<String>,
    /// What was found, each as in LSP.
    pub diagnostics: Vec<Value>,
}

/// A diagnostic as far as this protocol looks at it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Where; a diagnostic without a readable range is about the whole file.
    pub range: Option<Range>,
    /// 1 error, 2 warning, 3 information, 4 hint; others and none sort after these.
    pub severity: Option<i64>,
    /// The code as it would be printed; of an object, its `value`.
    pub code: Option<String>,
    /// Who says so.
    pub source: Option<String>,
    /// What it says.
    pub message: String,
}

impl Diagnostic {
    /// Reads one diagnostic; `None` when it has no message. Every other member that cannot be
    /// read counts as absent.
    pub fn read(value: &Value) -> Option<Self> {
        let printed = |code: &Value| match code {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        };
        let code = value.get("code").and_then(|code| match code.get("value") {
            Some(inner) => printed(inner),
            None => printed(code),
        });
        // Newer servers may send marked-up text in an object.
        let message = value.get("message")?;
        Some(Self {
            range: value.get("range").and_then(|range| Range::deserialize(range).ok()),
            severity: value.get("severity").and_then(Value::as_i64),
            code,
            source: value.get("source").and_then(Value::as_str).map(str::to_owned),
            message: message.as_str().or_else(|| message.get("value")?.as_str())?.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_diagnostic_needs_a_message_only() {
        assert_eq!(Diagnostic::read(&json!({ "severity": 1 })), None);
        assert_eq!(Diagnostic::read(&json!("text")), None);
        let odd = json!({
            "message": "unused", "severity": 9, "range": "here", "code": { "value": 12 }
        });
        let read = Diagnostic::read(&odd).unwrap();
        assert_eq!((read.severity, read.range), (Some(9), None));
        assert_eq!(read.code.as_deref(), Some("12"));
        let plain = json!({ "message": "unused", "code": "E0308" });
        assert_eq!(Diagnostic::read(&plain).unwrap().code.as_deref(), Some("E0308"));
    }
}
