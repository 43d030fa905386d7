//! The kinds of reminder, one file each, and the registry that lists them.
//!
//! To add a kind: write its file, and a row in [`KINDS`]. The order of the rows is the order in
//! which a default roster speaks.

mod max_requests;
mod pending_events;
mod task_nudge;

use std::sync::Arc;

use crate::engine::{
    Audience, Definition, Policy, Profile, Proposal, Refusal, Registry, Reminder, Source, Value,
    View,
};
use crate::rules::{AnnouncedDelta, ClientGenerator, StandingText, Tuning};

/// When a kind is in a roster without being asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// In the default roster of a root scope, in these profiles.
    Default(&'static [Profile]),
    /// In the roster of an agent whose requests are capped.
    CappedAgents,
    /// Only as what a client registers, under an id of its own.
    Registered,
}

/// One row of the registry.
struct Kind {
    name: &'static str,
    audience: Audience,
    place: Place,
    build: fn(&Definition) -> Result<Arc<dyn Reminder>, Refusal>,
}

const STAGED: &[Profile] = &[Profile::Staged, Profile::Nudge];

/// Every kind, in the order of delivery.
static KINDS: &[Kind] = &[
    Kind {
        name: "pending-events",
        audience: Audience::ROOT,
        place: Place::Default(STAGED),
        build: |_| share(pending_events::PendingEvents),
    },
    Kind {
        name: "task-nudge",
        audience: Audience::ROOT,
        place: Place::Default(STAGED),
        build: |definition| share(task_nudge::TaskNudge::new(definition)?),
    },
    Kind {
        name: "max-requests-warning",
        audience: Audience::AGENTS,
        place: Place::CappedAgents,
        build: |_| share(max_requests::Warning),
    },
    Kind {
        name: "max-requests-limit",
        audience: Audience::AGENTS,
        place: Place::CappedAgents,
        build: |_| share(max_requests::AtLimit),
    },
    Kind {
        name: "standing-text",
        audience: Audience::ROOT,
        place: Place::Registered,
        build: |definition| share(StandingText::new(definition)?),
    },
    Kind {
        name: "announced-delta",
        audience: Audience::ROOT,
        place: Place::Registered,
        build: |definition| share(AnnouncedDelta::new(definition)?),
    },
    Kind {
        name: "client-generator",
        audience: Audience::ROOT,
        place: Place::Registered,
        build: |definition| share(ClientGenerator::new(definition)?),
    },
];

fn share(reminder: impl Reminder + 'static) -> Result<Arc<dyn Reminder>, Refusal> {
    Ok(Arc::new(reminder))
}

/// The names of the built-in kinds, in order, as `initialize` announces them.
pub fn kind_names() -> impl Iterator<Item = &'static str> {
    KINDS.iter().filter(|kind| kind.place != Place::Registered).map(|kind| kind.name)
}

/// The registry that sessions are given.
#[derive(Clone, Copy, Debug, Default)]
pub struct Catalogue;

impl Registry for Catalogue {
    fn build(&self, definition: &Definition) -> Result<Arc<dyn Reminder>, Refusal> {
        let kind = KINDS.iter().find(|kind| kind.name == definition.kind);
        let kind = kind.ok_or_else(|| unknown_kind(&definition.kind))?;
        let reminder = (kind.build)(definition)?;
        let tuning = Tuning::of(definition)?;
        // Registered forms read the same keys themselves, with defaults of their own.
        if kind.place == Place::Registered || tuning == Tuning::default() {
            return Ok(reminder);
        }
        let policy = tuning.over(reminder.policy());
        Ok(Arc::new(Tuned { reminder, policy }))
    }

    fn defaults(&self, profile: Profile) -> Vec<(Definition, Source)> {
        let rows = KINDS.iter().filter(|kind| match kind.place {
            Place::Default(profiles) => profiles.contains(&profile),
            Place::CappedAgents | Place::Registered => false,
        });
        rows.map(|kind| (kind.definition(profile), Source::Default)).collect()
    }

    fn for_capped_agents(&self) -> Vec<(Definition, Source)> {
        let rows = KINDS.iter().filter(|kind| kind.place == Place::CappedAgents);
        rows.map(|kind| (kind.definition(Profile::default()), Source::Default)).collect()
    }

    fn kind(&self, name: &str) -> Result<Definition, Refusal> {
        let kind = KINDS.iter().find(|kind| kind.name == name && kind.place != Place::Registered);
        kind.map(|kind| kind.definition(Profile::default())).ok_or_else(|| unknown_kind(name))
    }
}

impl Kind {
    fn definition(&self, profile: Profile) -> Definition {
        let mut settings = Value::empty_map();
        if profile == Profile::Nudge && self.name == "task-nudge" {
            settings.merge(&task_nudge::by_requests());
        }
        Definition {
            id: self.name.to_owned(),
            kind: self.name.to_owned(),
            settings,
            audience: self.audience,
        }
    }
}

fn unknown_kind(name: &str) -> Refusal {
    let names: Vec<_> = kind_names().collect();
    Refusal::invalid(format!(
        "no kind or reminder is called {name:?}: write one of {}, or an id that is registered",
        names.join(", ")
    ))
}

/// A kind whose policy or caps were retuned.
#[derive(Debug)]
struct Tuned {
    reminder: Arc<dyn Reminder>,
    policy: Policy,
}

impl Reminder for Tuned {
    fn policy(&self) -> Policy {
        self.policy
    }

    fn lane(&self) -> crate::engine::Lane {
        self.reminder.lane()
    }

    fn propose(&self, view: &View<'_>) -> Proposal {
        self.reminder.propose(view)
    }
}
