//! What checkers found after a scope's edits, prepared for telling: compared, put in order and cut
//! to the caps (`reminders.md` §6). The engine is given it with each WAIT and never asks a checker.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// How grave a checker calls a problem, in the order of telling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// 1.
    Error,
    /// 2.
    Warning,
    /// 3.
    Information,
    /// 4.
    Hint,
    /// A number that this build does not know.
    Other(i64),
    /// The checker did not say.
    Unsaid,
}

impl Severity {
    /// The severity of a number of the Language Server Protocol.
    pub const fn of(number: Option<i64>) -> Self {
        match number {
            Some(1) => Self::Error,
            Some(2) => Self::Warning,
            Some(3) => Self::Information,
            Some(4) => Self::Hint,
            Some(other) => Self::Other(other),
            None => Self::Unsaid,
        }
    }
}

/// One problem, as it is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file's absolute path.
    pub path: String,
    /// The line, from 1.
    pub line: u64,
    /// The UTF-16 code unit in the line, from 1, at the start of a character.
    pub column: u64,
    /// How grave it is.
    pub severity: Severity,
    /// The code, as printed.
    pub code: Option<String>,
    /// Who says so.
    pub source: Option<String>,
    /// What it says; `None` where text of the file must not be shown.
    pub message: Option<String>,
}

/// How much there is of what, over all files that a scope edited in its turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiagnosisCounts {
    /// Files that were edited.
    pub edited: u64,
    /// Further ones that nothing is told of until they were looked at.
    pub unseen: u64,
    /// Those of them that a checker has reported on since.
    pub reported: u64,
    /// Problems that the edits brought and that were not told yet.
    pub new: u64,
    /// Problems that were there before.
    pub before: u64,
    /// Problems that are gone.
    pub resolved: u64,
}

/// What checkers found after a scope's edits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnosis {
    /// Problems that the edits brought, in the order of telling.
    pub new: Vec<Problem>,
    /// Problems that were there before, of files that are reported for the first time in the turn.
    pub before: Vec<Problem>,
    /// New problems beyond the caps.
    pub more_new: u64,
    /// Problems that were there before, beyond the caps.
    pub more_before: u64,
    /// Files on which none of the checkers, or not all that were at work, reported in time.
    pub unchecked: Vec<String>,
    /// Checkers that failed.
    pub failed: Vec<String>,
    /// The numbers.
    pub counts: DiagnosisCounts,
    /// The state of each reported file that telling this, or being told nothing, makes the one to
    /// compare with: its path, and the state's number.
    pub states: BTreeMap<String, u64>,
}

/// What a scope was told of diagnostics.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checked {
    /// The state of each file that the last committed WAIT of the turn reflected, by path.
    pub states: BTreeMap<String, u64>,
    /// Checkers whose failure was mentioned.
    pub failed: BTreeSet<String>,
}
