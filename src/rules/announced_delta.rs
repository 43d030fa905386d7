//! Announced deltas: names that came to or went from a pool since they were last told.
//!
//! Order does not matter, a pool that is not known now is not an empty one, and what came and went
//! before it was told is not told. What the model knows is the baseline and, after it, every
//! telling that history still holds.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::common::Common;
use super::effort::Effort;
use super::names::{self, Own};
use super::settings;
use super::template::Template;
use crate::engine::{
    Definition, Lane, Policy, Proposal, Refusal, Reminder, Silence, Speech, Start, Trigger, View,
};

#[derive(Debug, Deserialize)]
struct Settings {
    pool: String,
    baseline: Option<BTreeSet<String>>,
    added: Option<String>,
    removed: Option<String>,
}

/// A pool whose changes are announced.
#[derive(Debug)]
pub struct AnnouncedDelta {
    pool: String,
    baseline: Option<BTreeSet<String>>,
    added: Template,
    removed: Template,
    common: Common,
}

impl AnnouncedDelta {
    /// Makes it of `{pool, baseline?, added?, removed?}` and what all forms share. The policy takes
    /// no `every`: a standing interval has no meaning for a delta (`configuration.md`).
    pub fn new(definition: &Definition) -> Result<Self, Refusal> {
        let Settings { pool, baseline, added, removed } = settings::read(definition)?;
        let template = |name: &str, source: Option<String>, default: &str| {
            Template::of_pool(source.as_deref().unwrap_or(default))
                .map_err(|mistake| mistake.refusal(&definition.id, name))
        };
        let common = Common::of(definition, Trigger::OnChange)?;
        if let Trigger::Every(_) = common.policy.trigger {
            let refusal = Refusal::invalid(
                "a pool takes no `every`: leave it out, changes are told when they come",
            );
            return Err(refusal.about(["policy", "every"]).of(&definition.id));
        }
        Ok(Self {
            added: template("added", added, "New: {{ names | join(', ') }}.")?,
            removed: template("removed", removed, "Gone: {{ names | join(', ') }}.")?,
            baseline,
            pool,
            common,
        })
    }
}

impl Reminder for AnnouncedDelta {
    fn policy(&self) -> Policy {
        self.common.policy
    }

    fn lane(&self) -> Lane {
        self.common.lane
    }

    fn priority(&self) -> i64 {
        self.common.priority
    }

    fn starts_from(&self) -> Option<Start<'_>> {
        Some(Start::DeclaredList(&self.pool))
    }

    fn propose(&self, view: &View<'_>) -> Proposal {
        if let Some(silence) = self.common.silence(view) {
            return silence;
        }
        let changes =
            match PoolChanges::of(view, &self.pool, Baseline::Declared(self.baseline.as_ref())) {
                Ok(changes) => changes,
                Err(silence) => return Proposal::Silent(silence),
            };
        let mut lines = Vec::new();
        for (template, names) in [(&self.added, &changes.added), (&self.removed, &changes.removed)]
        {
            if names.is_empty() {
                continue;
            }
            match template.render(&Effort::of(view), |uses| {
                names::context(view, uses, Own { names: Some(names), ..Own::default() })
            }) {
                Ok(line) => lines.push(line),
                Err(error) => return Proposal::Fail(error),
            }
        }
        let speech = Speech::new(self.common.label.clone(), lines.join("\n"));
        Proposal::Speak(vec![changes.told_by(speech, view)])
    }
}

/// What the model knew of a pool from the start.
#[derive(Clone, Copy, Debug)]
pub enum Baseline<'a> {
    /// The one that was registered, or the list that the client declared told since.
    Declared(Option<&'a BTreeSet<String>>),
    /// The first list that was known.
    FirstKnown,
}

/// The names by which a pool differs from what the model knows of it.
#[derive(Debug)]
pub struct PoolChanges {
    /// Names that came, sorted.
    pub added: Vec<String>,
    /// Names that went, sorted.
    pub removed: Vec<String>,
}

impl PoolChanges {
    /// Compares a pool with what the model knows, or says why there is nothing to tell.
    pub fn of(view: &View<'_>, name: &str, baseline: Baseline<'_>) -> Result<Self, Silence> {
        let Some(pool) = view.scope.facts.pools.get(name).filter(|pool| pool.known) else {
            return Err(Silence::nothing(
                format!("pool {name:?} is not known now"),
                "when the client reports it",
            ));
        };
        let nothing = BTreeSet::new();
        let (baseline, from) = match (baseline, &pool.baseline) {
            (Baseline::FirstKnown, _) => (pool.seed.as_ref().unwrap_or(&nothing), pool.declared_at),
            (Baseline::Declared(None), Some(declared)) => (declared, pool.declared_at),
            // The latest that was given holds, whichever way it came.
            (Baseline::Declared(Some(_)), Some(declared)) if pool.declared > view.since => {
                (declared, pool.declared_at)
            }
            (Baseline::Declared(given), _) => (given.unwrap_or(&nothing), 0),
        };
        let known = known_names(baseline, view.scope.history.held_marks(view.id, None, from));
        let listed = pool.names.keys();
        let added: Vec<_> = listed.filter(|name| !known.contains(name.as_str())).cloned().collect();
        let gone = known.into_iter().filter(|name| !pool.names.contains_key(*name));
        let removed: Vec<_> = gone.map(str::to_owned).collect();
        if added.is_empty() && removed.is_empty() {
            return Err(Silence::nothing(
                format!("pool {name:?} is as the model knows it"),
                "when a name comes or goes",
            ));
        }
        Ok(Self { added, removed })
    }

    /// A speech that tells these changes. The same names may come again after they went, so that
    /// each telling is one of its own.
    pub fn told_by(&self, speech: Speech, view: &View<'_>) -> Speech {
        let came = self.added.iter().map(|name| format!("+{name}"));
        let marks: Vec<_> =
            came.chain(self.removed.iter().map(|name| format!("-{name}"))).collect();
        let told = view.scope.history.spoken(view.id, 0).in_session;
        let state = format!("{told}\n{}", marks.join("\n"));
        speech.telling(view.fingerprint(&state)).marking(marks)
    }
}

/// What the model knows of a pool: a baseline, and the changes that it was told.
fn known_names<'a>(
    baseline: &'a BTreeSet<String>,
    told: impl Iterator<Item = &'a str>,
) -> BTreeSet<&'a str> {
    let mut known: BTreeSet<&str> = baseline.iter().map(String::as_str).collect();
    for mark in told {
        if let Some(name) = mark.strip_prefix('+') {
            known.insert(name);
        } else if let Some(name) = mark.strip_prefix('-') {
            known.remove(name);
        }
    }
    known
}
