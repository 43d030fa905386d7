//! What a conversation knew from the start: a first list, a first date, a first limit. Nobody was
//! ever told it, yet every change is judged by it, so that commits note it silently in the records
//! that history holds. A session that is rebuilt from records alone then judges alike.

use super::Session;
use super::facts::{Pool, SessionFacts};
use super::ledger::History;
use super::path::ScopePath;
use super::record::{Digest, Record, SilentEntry};
use super::scope::Scope;

/// The kind, and the type, of the silent entries.
const KIND: &str = "start";

/// What a reminder tells changes of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start<'a> {
    /// The first list of a pool that was known.
    FirstList(&'a str),
    /// The list of a pool that the client last declared told.
    DeclaredList(&'a str),
    /// The first date that was set.
    Date,
    /// The limit with which the active goal began.
    GoalLimit,
}

impl Start<'_> {
    /// The key of its silent entry and what was known, if anything was.
    fn noted(self, facts: &SessionFacts, scope: &Scope) -> Option<(String, Vec<String>)> {
        let listed = |pool: &str| scope.facts.pools.get(pool);
        match self {
            Self::FirstList(pool) => {
                let names = listed(pool)?.seed.as_ref()?;
                Some((format!("first list {pool}"), names.iter().cloned().collect()))
            }
            Self::DeclaredList(pool) => {
                let names = listed(pool)?.baseline.as_ref()?;
                Some((format!("declared list {pool}"), names.iter().cloned().collect()))
            }
            Self::Date => Some(("date".to_owned(), vec![facts.first_date.clone()?])),
            Self::GoalLimit => {
                let goal = facts.goal.as_ref()?;
                let limit = goal.first_budget.map(|limit| limit.to_string());
                Some((format!("goal limit {}", goal.report.id), limit.into_iter().collect()))
            }
        }
    }
}

/// The silent entries that history lacks, so that a record carries them.
pub(super) fn unnoted(facts: &SessionFacts, scope: &Scope, digest: Digest) -> Vec<SilentEntry> {
    let members = scope.roster.iter().filter(|member| member.enabled);
    let starts = members.filter_map(|member| member.reminder.starts_from());
    let noted = starts.filter_map(|start| start.noted(facts, scope));
    let mut entries: Vec<SilentEntry> = Vec::new();
    for (key, marks) in noted {
        let fingerprint = digest(marks.join("\n").as_bytes());
        let is_held = is_held(&scope.history, &key, &fingerprint);
        if !is_held && !entries.iter().any(|entry| entry.key.as_ref() == Some(&key)) {
            let (entry_type, kind) = (KIND.to_owned(), KIND.to_owned());
            entries.push(SilentEntry { entry_type, key: Some(key), kind, fingerprint, marks });
        }
    }
    entries
}

/// Whether a silent entry is such a note, rather than something that rides in the prompt text.
pub(super) fn is_note(entry: &SilentEntry) -> bool {
    entry.kind == KIND
}

fn is_held(history: &History, key: &str, fingerprint: &str) -> bool {
    history.told(KIND, Some(key)).held == Some(fingerprint)
}

impl Session {
    /// Takes over what a record that a client kept says of the start of its conversation. What this
    /// session knows already stands.
    pub(super) fn adopt_start(&mut self, path: &ScopePath, index: usize, record: &Record) {
        let declared = self.next_serial();
        let Some(scope) = self.scopes.get_mut(path) else { return };
        let starts = record.silent.iter().filter(|silent| is_note(silent));
        for (key, marks) in starts.filter_map(|silent| Some((silent.key.as_ref()?, &silent.marks)))
        {
            let names = || marks.iter().cloned().collect();
            if let Some(pool) = key.strip_prefix("first list ") {
                let pool = scope.facts.pools.entry(pool.to_owned()).or_default();
                pool.seed.get_or_insert_with(names);
            } else if let Some(pool) = key.strip_prefix("declared list ") {
                let pool: &mut Pool = scope.facts.pools.entry(pool.to_owned()).or_default();
                if pool.baseline.is_none() {
                    (pool.seed, pool.baseline) = (Some(names()), Some(names()));
                    (pool.declared, pool.declared_at) = (declared, index);
                }
            } else if let Some(goal) = key.strip_prefix("goal limit ") {
                let limit = marks.first().and_then(|limit| limit.parse().ok());
                self.facts.first_limits.entry(goal.to_owned()).or_insert(limit);
            } else if key == "date" && self.facts.first_date.is_none() {
                self.facts.first_date = marks.first().cloned();
            }
        }
    }
}
