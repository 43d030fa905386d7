//! Files: what the agent read and wrote, what the person does in the editor, and edits.

use crate::scope::Scope;
use crate::wire::{is_false, null_default, scoped};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

scoped! {
    /// `file/read`: a read that succeeded.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct FileReadParams {
        /// Who read.
        pub scope: Scope,
        /// The file, as a `file:` URI or an absolute path.
        pub uri: String,
        /// What was read; absent lets the daemon look at the file.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub text: Option<String>,
        /// The pages of a paged document that were read, such as `1-5`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub pages: Option<String>,
        /// Whether only a part was read, which starts the watch but tells nothing.
        #[serde(default, deserialize_with = "null_default", skip_serializing_if = "is_false")]
        pub partial: bool,
    }
}

scoped! {
    /// `file/wrote`: the agent's own write that succeeded.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct FileWroteParams {
        /// Who wrote.
        pub scope: Scope,
        /// The file, as a `file:` URI or an absolute path.
        pub uri: String,
        /// What was written; absent lets the daemon look at the file.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub text: Option<String>,
    }
}

scoped! {
    /// `file/forget`: stop watching a file for the scope.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct FileForgetParams {
        /// Whose file.
        pub scope: Scope,
        /// The file, as a `file:` URI or an absolute path.
        pub uri: String,
    }
}

/// `file/changed`: an event named a file that a session of the client watches. A hint for status
/// lines; whether it truly changed is told at the next WAIT.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileChangedParams {
    /// The file, as a session spells it.
    pub uri: String,
}

/// `textDocument/didOpen`, as in LSP.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DidOpenParams {
    /// The document.
    pub text_document: TextDocumentItem,
}

/// A document with its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TextDocumentItem {
    /// The file.
    pub uri: String,
    /// Its language, as the editor names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language_id: Option<String>,
    /// Its version, which starts over when it is reopened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<i64>,
    /// Its text.
    pub text: String,
}

/// `textDocument/didChange`, as in LSP.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DidChangeParams {
    /// The document and its version after the changes.
    pub text_document: VersionedUri,
    /// The changes, each applied to the outcome of the one before it.
    pub content_changes: Vec<ContentChange>,
}

/// A change of a document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContentChange {
    /// What is replaced; absent for the whole document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<Range>,
    /// What replaces it.
    pub text: String,
}

/// A stretch of a document; its end is not included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Range {
    /// Where it starts.
    pub start: Position,
    /// Where it ends.
    pub end: Position,
}

/// A place in a document.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct Position {
    /// The line, from 0.
    pub line: u32,
    /// The UTF-16 code unit in the line, from 0.
    pub character: u32,
}

/// `textDocument/didSave`, as in LSP.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DidSaveParams {
    /// The document.
    pub text_document: VersionedUri,
    /// Its text as saved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// `textDocument/didClose`, as in LSP.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DidCloseParams {
    /// The document.
    pub text_document: VersionedUri,
}

/// A file, with its version where that is known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VersionedUri {
    /// The file, as a `file:` URI or an absolute path.
    pub uri: String,
    /// Its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<i64>,
}

/// `workspace/didChangeWatchedFiles`, as in LSP: hints that widen the next comparison.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DidChangeWatchedFilesParams {
    /// The files that changed.
    pub changes: Vec<FileEvent>,
}

/// A file that changed on disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileEvent {
    /// The file.
    pub uri: String,
    /// 1 created, 2 changed, 3 deleted; the file itself decides, whatever is said here.
    #[serde(rename = "type")]
    pub change_type: i64,
}

scoped! {
    /// `edit/begin`: an edit of these files is about to be made.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct EditBeginParams {
        /// Who edits.
        pub scope: Scope,
        /// The files.
        pub uris: Vec<String>,
    }
}

scoped! {
    /// `edit/end`: the edit was made, or failed.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct EditEndParams {
        /// Who edited.
        pub scope: Scope,
        /// The files, with the versions that the edit made.
        pub uris: Vec<VersionedUri>,
        /// Whether it was made.
        pub ok: bool,
    }
}

scoped! {
    /// `edit/settle`: wait until checkers have reported on the edited versions.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct EditSettleParams {
        /// Who edited.
        pub scope: Scope,
        /// The files to wait for; absent for all that the scope edited in this turn.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub uris: Option<Vec<String>>,
        /// The most time to wait, in milliseconds, for all files together.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub timeout_ms: Option<u64>,
    }
}

/// The answer to `edit/settle`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EditSettleResult {
    /// A row for each file.
    pub files: Vec<SettledFile>,
}

/// How waiting for one file's checkers ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SettledFile {
    /// The file, as the client spelled it.
    pub uri: String,
    /// How it ended.
    pub outcome: SettleOutcome,
}

/// How waiting for a file's checkers ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum SettleOutcome {
    /// They reported on the edited version.
    Ready,
    /// They did not in time: the file is not checked, which is not the same as clean.
    Timeout,
    /// The file changed again meanwhile.
    Stale,
    /// No checker looks at it.
    None,
}
