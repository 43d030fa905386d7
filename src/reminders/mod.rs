//! The kinds of reminder, one file each, and the registry that lists them.
//!
//! To add a kind: write its file, and a row in `KINDS`. The order of the rows is the order in
//! which a default roster speaks.

mod compacted_files;
mod compaction_available;
mod date_change;
mod diagnostics;
mod edited_files;
mod fork_provenance;
mod goal_budget;
mod hook_context;
mod hook_outcome;
pub mod keys;
mod large_attachment;
mod listing_delta;
mod max_requests;
mod mention;
mod mode_constraints;
mod notice;
mod pending_events;
mod plan_mode;
mod plan_reference;
mod recovery;
mod sections;
mod skill_activation;
mod skill_attachment;
mod task_nudge;
mod token_usage;
mod user_revised_patch;
mod verification_suggestion;
mod workspace_instructions;

use std::sync::{Arc, LazyLock};

use schemars::JsonSchema as _;

pub use edited_files::EditedFilesSettings;

use crate::engine::{
    Audience, Definition, Lane, Member, Policy, Profile, Proposal, Refusal, Registry, Reminder,
    Silence, Source, Start, Usage, Value, View, member,
};
use crate::rules::{AnnouncedDelta, ClientGenerator, Rule, StandingText, Tuning};

/// When a kind is in a roster without being asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// In the default roster of a root scope, in these profiles.
    Default(&'static [Profile]),
    /// In every roster of profile `staged` that it is for, behind the default one: it speaks of
    /// what waits in the scope, and only `explain` lists it.
    Standing,
    /// In the roster of an agent whose requests are capped.
    CappedAgents,
    /// Only as what a client registers, under an id of its own.
    Registered,
}

/// One row of the registry.
struct Kind {
    name: &'static str,
    /// Whose rosters it is in by itself.
    audience: Audience,
    /// Whose rosters it joins when it is switched on by name.
    joins: Audience,
    place: Place,
    build: Build,
    /// The schema of its own keys, if it has some.
    settings: Option<keys::SettingsSchema>,
}

/// Makes a reminder of its definition.
type Build = fn(&Definition) -> Result<Arc<dyn Reminder>, Refusal>;

impl Kind {
    const fn default(name: &'static str, profiles: &'static [Profile], build: Build) -> Self {
        let audience = Audience::ROOT;
        Self {
            name,
            audience,
            joins: audience,
            place: Place::Default(profiles),
            build,
            settings: None,
        }
    }

    const fn standing(name: &'static str, audience: Audience, build: Build) -> Self {
        Self { name, audience, joins: audience, place: Place::Standing, build, settings: None }
    }

    const fn for_capped_agents(name: &'static str, build: Build) -> Self {
        let audience = Audience::AGENTS;
        Self { name, audience, joins: audience, place: Place::CappedAgents, build, settings: None }
    }

    const fn registered(name: &'static str, build: Build) -> Self {
        let audience = Audience::ROOT;
        Self { name, audience, joins: audience, place: Place::Registered, build, settings: None }
    }

    /// It has keys of its own.
    const fn keyed(mut self, settings: keys::SettingsSchema) -> Self {
        self.settings = Some(settings);
        self
    }

    /// It speaks of what every scope has: an agent can have it switched on.
    const fn of_any_scope(mut self) -> Self {
        self.joins = Audience::ALL;
        self
    }
}

const STAGED: &[Profile] = &[Profile::Staged];
const STAGED_AND_NUDGE: &[Profile] = &[Profile::Staged, Profile::Nudge];
const ROOT: Audience = Audience::ROOT;
const ALL: Audience = Audience::ALL;

/// Every kind, in the order of delivery.
#[rustfmt::skip]
static KINDS: &[Kind] = &[
    Kind::default("pending-events", STAGED_AND_NUDGE, |_| share(pending_events::PendingEvents)),
    Kind::default("compaction-available", STAGED, |it| share(compaction_available::CompactionAvailable::new(it)?)).of_any_scope().keyed(compaction_available::Settings::json_schema),
    Kind::default("token-usage", STAGED, |it| share(token_usage::TokenUsage::new(it)?)).of_any_scope().keyed(token_usage::Settings::json_schema),
    Kind::default("listing-delta", STAGED, |it| share(listing_delta::ListingDelta::new(it)?)).of_any_scope().keyed(listing_delta::Settings::json_schema),
    Kind::default("mode-constraints", STAGED, |_| share(mode_constraints::ModeConstraints)),
    Kind::default("plan-mode", STAGED, |it| share(plan_mode::PlanMode::new(it)?)).keyed(plan_mode::Settings::json_schema),
    Kind::default("edited-files", STAGED, |it| share(edited_files::EditedFiles::new(it)?)).of_any_scope().keyed(EditedFilesSettings::json_schema),
    Kind::default("task-nudge", STAGED_AND_NUDGE, |it| share(task_nudge::TaskNudge::new(it)?)).keyed(task_nudge::Settings::json_schema),
    Kind::default("verification-suggestion", STAGED, |it| share(verification_suggestion::VerificationSuggestion::new(it)?)).of_any_scope().keyed(verification_suggestion::Settings::json_schema),
    Kind::default("plan-reference", STAGED, |it| share(plan_reference::PlanReference::new(it)?)).keyed(plan_reference::Settings::json_schema),
    Kind::default("fork-provenance", STAGED, |it| share(fork_provenance::ForkProvenance::new(it)?)).keyed(fork_provenance::Settings::json_schema),

    Kind::standing("recovery", ALL, |_| share(recovery::Recovery)),
    Kind::standing("user-revised-patch", ROOT, |_| share(user_revised_patch::UserRevisedPatch)),
    Kind::standing("date-change", ROOT, |_| share(date_change::DateChange)),
    Kind::standing("mention", ALL, |it| share(mention::Mentions::new(it)?)).keyed(mention::Settings::json_schema),
    Kind::standing("skill-attachment", ALL, |_| share(skill_attachment::SkillAttachment)),
    Kind::standing("skill-activation", ALL, |it| share(skill_activation::SkillActivation::new(it)?)).keyed(skill_activation::Settings::json_schema),
    Kind::standing("compacted-files", ALL, |it| share(compacted_files::CompactedFiles::new(it)?)).keyed(compacted_files::Settings::json_schema),
    Kind::standing("hook-context", ROOT, |_| share(hook_context::HookContexts)),
    Kind::standing("sections", ALL, |_| share(sections::Sections)),
    Kind::standing("goal-budget", ALL, |it| share(goal_budget::GoalBudget::new(it)?)).keyed(goal_budget::Settings::json_schema),
    Kind::standing("hook-outcome", ALL, |_| share(hook_outcome::HookOutcomes)),
    Kind::standing("workspace-instructions", ALL, |it| share(workspace_instructions::WorkspaceInstructions::new(it)?)).keyed(workspace_instructions::Settings::json_schema),
    Kind::standing("large-attachment", ALL, |it| share(large_attachment::LargeAttachment::new(it)?)).keyed(large_attachment::Settings::json_schema),
    Kind::standing("diagnostics", ALL, |it| share(diagnostics::Diagnostics::new(it)?)).keyed(diagnostics::Settings::json_schema),
    Kind::standing("notice", ALL, |_| share(notice::Notice)),

    Kind::for_capped_agents("max-requests-warning", |it| share(max_requests::Warning::new(it)?)).keyed(max_requests::Settings::json_schema),
    Kind::for_capped_agents("max-requests-limit", |_| share(max_requests::AtLimit)),

    Kind::registered("standing-text", |it| share(StandingText::new(it)?)),
    Kind::registered("rule", |it| share(Rule::new(it)?)),
    Kind::registered("announced-delta", |it| share(AnnouncedDelta::new(it)?)),
    Kind::registered("client-generator", |it| share(ClientGenerator::new(it)?)),
];

/// The keys of every kind that is not registered, in the order of the rows.
static KEYS: LazyLock<Vec<(&'static str, Vec<keys::Key>)>> = LazyLock::new(|| {
    let kinds = KINDS.iter().filter(|kind| kind.place != Place::Registered);
    kinds.map(|kind| (kind.name, kind.settings.map(keys::of).unwrap_or_default())).collect()
});

/// The own keys of a built-in kind; none where there is no such kind.
pub fn own_keys(kind: &str) -> &'static [keys::Key] {
    KEYS.iter().find(|(name, _)| *name == kind).map_or(&[], |(_, keys)| keys)
}

fn share(reminder: impl Reminder + 'static) -> Result<Arc<dyn Reminder>, Refusal> {
    Ok(Arc::new(reminder))
}

pub use fork_provenance::report as fork_report;

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
        for key in own_keys(kind.name) {
            if let Some(value) = definition.settings.get(&key.name) {
                key.check(value).map_err(|refusal| refusal.of(&definition.id))?;
            }
        }
        let reminder = (kind.build)(definition)?;
        let tuning = Tuning::of(definition)?;
        // Registered forms read the same keys themselves, with defaults of their own.
        if kind.place == Place::Registered || tuning == Tuning::default() {
            return Ok(reminder);
        }
        let policy = tuning.over(reminder.policy());
        Ok(Arc::new(Tuned { reminder, policy, priority: tuning.priority() }))
    }

    fn defaults(&self, profile: Profile) -> Vec<Member> {
        static MADE: LazyLock<Vec<(Profile, Vec<Member>)>> = LazyLock::new(|| {
            let members = |profile| made(|kind: &Kind| kind.source(profile), profile);
            Profile::ALL.map(|profile| (profile, members(profile))).into()
        });
        let known = MADE.iter().find(|(known, _)| *known == profile);
        known.map(|(_, members)| members.clone()).unwrap_or_default()
    }

    fn for_capped_agents(&self) -> Vec<Member> {
        static MADE: LazyLock<Vec<Member>> = LazyLock::new(|| {
            let capped = |kind: &Kind| kind.place == Place::CappedAgents;
            made(|kind| capped(kind).then_some(Source::Default), Profile::default())
        });
        MADE.clone()
    }

    fn kind(&self, name: &str) -> Result<Definition, Refusal> {
        let kind = KINDS.iter().find(|kind| kind.name == name && kind.place != Place::Registered);
        let kind = kind.ok_or_else(|| unknown_kind(name))?;
        Ok(Definition { audience: kind.joins, ..kind.definition(Profile::default()) })
    }
}

/// The members of the rows that have a source.
fn made(source: impl Fn(&Kind) -> Option<Source>, profile: Profile) -> Vec<Member> {
    let rows = KINDS.iter().filter_map(|kind| Some((kind.definition(profile), source(kind)?)));
    let members = rows.map(|(definition, source)| member(&Catalogue, definition, source));
    members.collect::<Result<_, _>>().expect("every kind takes its own defaults")
}

impl Kind {
    /// Where it comes from in the rosters of a profile, if it is in them by itself.
    fn source(&self, profile: Profile) -> Option<Source> {
        match self.place {
            Place::Default(profiles) => profiles.contains(&profile).then_some(Source::Default),
            Place::Standing => (profile == Profile::Staged).then_some(Source::Standing),
            Place::CappedAgents | Place::Registered => None,
        }
    }

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

/// Silent below a share of the context.
fn below(used: u64, percent: u64) -> Proposal {
    Proposal::counting(
        [used, percent, 0],
        |[used, percent, _]| format!("{used}% of the context is used, and speaks from {percent}%"),
        |[_, percent, _]| format!("at {percent}%"),
    )
}

/// How much context is used, or why nothing can be said of it.
fn known_usage(view: &View<'_>) -> Result<Usage, Silence> {
    if view.moment.host.native == Some(true) {
        return Err(Silence::nothing("the host owns the conversation", "never in this host"));
    }
    view.scope.facts.usage.ok_or_else(|| {
        Silence::nothing("how much context is used is unknown", "when the client reports it")
    })
}

fn unknown_kind(name: &str) -> Refusal {
    let names: Vec<_> = kind_names().collect();
    Refusal::invalid(format!(
        "no kind or reminder is called {name:?}: write one of {}, or an id that is registered",
        names.join(", ")
    ))
}

/// A kind whose policy, caps or priority were retuned.
#[derive(Debug)]
struct Tuned {
    reminder: Arc<dyn Reminder>,
    policy: Policy,
    priority: i64,
}

impl Reminder for Tuned {
    fn policy(&self) -> Policy {
        self.policy
    }

    fn stated_policy(&self) -> Policy {
        self.policy
    }

    fn lane(&self) -> Lane {
        self.reminder.lane()
    }

    fn priority(&self) -> i64 {
        self.priority
    }

    fn looks_at_reads(&self) -> bool {
        self.reminder.looks_at_reads()
    }

    fn rides_seams(&self) -> bool {
        self.reminder.rides_seams()
    }

    fn starts_from(&self) -> Option<Start<'_>> {
        self.reminder.starts_from()
    }

    fn propose(&self, view: &View<'_>) -> Proposal {
        self.reminder.propose(view)
    }
}
