//! Announced deltas: names that came to or went from a pool since they were last told.
//!
//! Order does not matter, a pool that is not known now is not an empty one, and what came and went
//! before it was told is not told. What the model knows is the baseline and, after it, every
//! telling that history still holds.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::names;
use super::settings::{self, Tuning};
use super::template::Template;
use crate::engine::{Definition, Lane, Policy, Proposal, Refusal, Reminder, Speech, Trigger, View};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Settings {
    pool: String,
    baseline: Option<BTreeSet<String>>,
    added: Option<String>,
    removed: Option<String>,
    lane: Option<Lane>,
    label: Option<String>,
}

/// A pool whose changes are announced.
#[derive(Debug)]
pub struct AnnouncedDelta {
    pool: String,
    baseline: BTreeSet<String>,
    added: Template,
    removed: Template,
    lane: Lane,
    label: String,
    policy: Policy,
}

impl AnnouncedDelta {
    /// Makes it of `{pool, baseline?, added?, removed?, policy?, lane?, label?}`. The policy takes
    /// no `every`: a standing interval has no meaning for a delta (`configuration.md`).
    pub fn new(definition: &Definition) -> Result<Self, Refusal> {
        let Settings { pool, baseline, added, removed, lane, label } = settings::read(definition)?;
        let template = |name: &str, source: Option<String>, default: &str| {
            Template::new(source.as_deref().unwrap_or(default))
                .map_err(|error| Refusal::invalid(format!("{}: {name}: {error}", definition.id)))
        };
        let policy = Tuning::of(definition)?.over(Policy::new(Trigger::OnChange));
        if let Trigger::Every(_) = policy.trigger {
            return Err(Refusal::invalid(format!(
                "{}: a pool takes no `every`: leave it out, changes are told when they come",
                definition.id
            )));
        }
        Ok(Self {
            added: template("added", added, "New: {{ names | join(', ') }}.")?,
            removed: template("removed", removed, "Gone: {{ names | join(', ') }}.")?,
            baseline: baseline.unwrap_or_default(),
            lane: lane.unwrap_or_default(),
            label: label.unwrap_or_else(|| definition.id.clone()),
            pool,
            policy,
        })
    }
}

impl Reminder for AnnouncedDelta {
    fn policy(&self) -> Policy {
        self.policy
    }

    fn lane(&self) -> Lane {
        self.lane
    }

    fn propose(&self, view: &View<'_>) -> Proposal {
        let Some(pool) = view.scope.facts.pools.get(&self.pool).filter(|pool| pool.known) else {
            return Proposal::silent(
                format!("pool {:?} is not known now", self.pool),
                "when the client reports it",
            );
        };
        let (baseline, from) = match &pool.baseline {
            Some(declared) => (declared, pool.declared_at),
            None => (&self.baseline, 0),
        };
        let marks = view.scope.history.held_marks(view.id, None, from);
        let known = known_names(baseline, marks);
        let listed = || pool.names.keys().map(String::as_str);
        let added: Vec<_> =
            listed().filter(|name| !known.contains(name)).map(str::to_owned).collect();
        let removed: Vec<_> = known
            .into_iter()
            .filter(|name| !pool.names.contains_key(*name))
            .map(str::to_owned)
            .collect();
        if added.is_empty() && removed.is_empty() {
            return Proposal::silent(
                format!("pool {:?} is as the model knows it", self.pool),
                "when a name comes or goes",
            );
        }
        let mut lines = Vec::new();
        for (template, names) in [(&self.added, &added), (&self.removed, &removed)] {
            if names.is_empty() {
                continue;
            }
            match template.render(|| names::context(view, Some(names))) {
                Ok(line) => lines.push(line),
                Err(error) => return Proposal::Fail(error),
            }
        }
        let mut speech = Speech::new(self.label.clone(), lines.join("\n"));
        speech.marks = marks_of(&added, &removed);
        // The same names may come again after they went, and behind a list that was declared told:
        // what is told is the change, not the list.
        speech.fingerprint = Some(view.fingerprint(&format!(
            "{from}\n{}\n{}",
            listed().collect::<Vec<_>>().join("\n"),
            speech.marks.join("\n")
        )));
        Proposal::Speak(vec![speech])
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

fn marks_of(added: &[String], removed: &[String]) -> Vec<String> {
    let came = added.iter().map(|name| format!("+{name}"));
    came.chain(removed.iter().map(|name| format!("-{name}"))).collect()
}
