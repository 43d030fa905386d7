//! What is wrong with a document, as compilers say it: place, line, caret, and the way out.

use super::place::Place;

/// How bad a mistake is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The part that it is in is left out.
    Mistake,
    /// A key or name that nobody knows: it alone is left out. A warning in the daemon, a mistake
    /// for `config check`.
    Unknown,
}

/// One thing that is wrong with a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// How bad it is.
    pub severity: Severity,
    /// Where it stands.
    pub at: Place,
    /// The key it is about, from the top: `kinds.task-nudge.after`, `reminders[2].policy`. Empty
    /// for the document itself.
    pub key: String,
    /// What is wrong, in one sentence.
    pub message: String,
    /// What to do about it, where there is something to say beside the message.
    pub help: Option<String>,
}
