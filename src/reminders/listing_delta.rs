//! `listing-delta`: names entered or left a pool, `agents` unless configured (`reminders.md` §3).
//!
//! The first list that is known is what the conversation began with, and is not told.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::engine::{
    Definition, Policy, Proposal, Refusal, Reminder, Speech, Start, Trigger, View, short_name,
};
use crate::rules::{Baseline, PoolChanges, read_settings};

/// Characters of a description that are shown.
const DESCRIPTION_CHARS_MAX: usize = 200;

/// The kind's own keys.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Settings {
    /// The pool whose changes are told (`pool/set`).
    pool: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self { pool: "agents".to_owned() }
    }
}

/// Tells the changes of a pool.
#[derive(Debug)]
pub struct ListingDelta {
    pool: String,
}

impl ListingDelta {
    /// Makes it of `{pool}`.
    pub fn new(definition: &Definition) -> Result<Self, Refusal> {
        let Settings { pool } = read_settings(definition)?;
        Ok(Self { pool })
    }
}

impl Reminder for ListingDelta {
    fn policy(&self) -> Policy {
        Policy::new(Trigger::OnChange)
    }

    fn rides_seams(&self) -> bool {
        true
    }

    fn starts_from(&self) -> Option<Start<'_>> {
        Some(Start::FirstList(&self.pool))
    }

    fn propose(&self, view: &View<'_>) -> Proposal {
        let changes = match PoolChanges::of(view, &self.pool, Baseline::FirstKnown) {
            Ok(changes) => changes,
            Err(silence) => return Proposal::Silent(silence),
        };
        let names = &view.scope.facts.pools[&self.pool].names;
        let pool = short_name(&self.pool, 100);
        let mut body = String::new();
        if !changes.added.is_empty() {
            let _ = writeln!(body, "New in {pool}:");
        }
        for name in &changes.added {
            let _ = write!(body, "- {}", short_name(name, 200));
            if let Some(description) = names.get(name).and_then(Option::as_deref) {
                let _ = write!(body, ": {}", short_name(description, DESCRIPTION_CHARS_MAX));
            }
            body.push('\n');
        }
        if !changes.removed.is_empty() {
            let _ = writeln!(body, "Gone from {pool}:");
        }
        for name in &changes.removed {
            let _ = writeln!(body, "- {}", short_name(name, 200));
        }
        let speech = Speech::new(pool, body.trim_end().to_owned());
        Proposal::Speak(vec![changes.told_by(speech, view)])
    }
}
