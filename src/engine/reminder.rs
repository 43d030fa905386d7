//! What a reminder is: it looks at a view of its scope and proposes, or says why it is silent.
//! It reads only; what telling it would consume is data, applied by the commit.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::event::{Definition, HostReport, Profile};
use super::facts::SessionFacts;
use super::ledger::{Digest, Effect, Millis, Phase};
use super::policy::{Ordinals, Policy, Told, Withheld};
use super::queue::{Fifo, Serial};
use super::refusal::Refusal;
use super::scope::{Member, Scope, Source};

/// Where in one message an entry stands (`reminders.md` §1, "Order in one message").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Lane {
    /// What the person mentioned.
    Mention,
    /// Skills.
    Skill,
    /// The roster, in the order of registration.
    #[default]
    Roster,
    /// What a compaction dropped.
    Compaction,
    /// Corrections of course.
    Steering,
    /// Named sections of context.
    Sections,
    /// What was observed during the turn.
    Events,
}

/// Everything that a reminder may look at.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// What is known of the session.
    pub facts: &'a SessionFacts,
    /// The session's pending FIFO.
    pub fifo: &'a Fifo,
    /// The scope, with what it was told.
    pub scope: &'a Scope,
    /// The id under which the reminder stands in the roster.
    pub id: &'a str,
    /// The moment of the WAIT.
    pub moment: Moment<'a>,
}

/// When, and under what circumstances, a reminder is asked.
#[derive(Clone, Copy, Debug)]
pub struct Moment<'a> {
    /// The time.
    pub at: Millis,
    /// Where the scope stands.
    pub ordinals: Ordinals,
    /// Where in its turn.
    pub phase: Phase,
    /// The session's profile.
    pub profile: Profile,
    /// What the client's host does.
    pub host: &'a HostReport,
    /// Makes fingerprints.
    pub digest: Digest,
}

impl View<'_> {
    /// What this reminder, or one member of it, was told.
    pub fn told(&self, key: Option<&str>) -> Told<'_> {
        self.scope.history.told(self.id, key)
    }

    /// The fingerprint of a text.
    pub fn fingerprint(&self, text: &str) -> String {
        (self.moment.digest)(text.as_bytes())
    }
}

/// One piece of a body, with what telling it consumes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The text.
    pub body: String,
    /// What telling it consumes.
    pub effects: Vec<Effect>,
}

/// What a reminder would say: one entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Speech {
    /// Which member of the reminder it is about.
    pub key: Option<String>,
    /// What a row calls it.
    pub label: Cow<'static, str>,
    /// The body. Several parts are joined by blank lines; when not all fit into a message, the
    /// leading ones that do are told and the rest wait.
    pub parts: Vec<Part>,
    /// The state that it tells, compared by `onChange`; the body's digest when absent.
    pub fingerprint: Option<String>,
    /// Named values that it tells.
    pub marks: Vec<String>,
    /// Its place among the entries of its lane: that of the event behind it, or 0.
    pub serial: Serial,
}

impl Speech {
    /// A speech with one body.
    pub fn new(label: impl Into<Cow<'static, str>>, body: String) -> Self {
        Self {
            key: None,
            label: label.into(),
            parts: vec![Part { body, effects: Vec::new() }],
            fingerprint: None,
            marks: Vec::new(),
            serial: 0,
        }
    }
}

/// Why a reminder is silent, and when it can next speak.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Silence {
    /// Its policy keeps it silent.
    Withheld(Withheld),
    /// It has nothing to say.
    Nothing {
        /// Why, with the numbers.
        reason: Cow<'static, str>,
        /// When it can next speak.
        next: Cow<'static, str>,
    },
}

impl Silence {
    /// Nothing to say.
    pub fn nothing(
        reason: impl Into<Cow<'static, str>>,
        next: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self::Nothing { reason: reason.into(), next: next.into() }
    }

    /// When it can next speak, in a few words.
    pub fn next(&self) -> String {
        match self {
            Self::Withheld(withheld) => withheld.next(),
            Self::Nothing { next, .. } => next.to_string(),
        }
    }
}

impl fmt::Display for Silence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Withheld(withheld) => withheld.fmt(f),
            Self::Nothing { reason, .. } => f.write_str(reason),
        }
    }
}

/// A reminder's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proposal {
    /// It is silent.
    Silent(Silence),
    /// It would say these, each judged by the policy.
    Speak(Vec<Speech>),
    /// The client computes its body; the WAIT asks it.
    Ask {
        /// Whether the generator is to speak even without news.
        force: bool,
    },
    /// It cannot be worked out: left out and reported, the others are delivered.
    Fail(String),
}

impl Proposal {
    /// Silent, with a reason.
    pub fn silent(
        reason: impl Into<Cow<'static, str>>,
        next: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self::Silent(Silence::nothing(reason, next))
    }
}

/// A reminder: one file under `src/reminders` each.
pub trait Reminder: fmt::Debug + Send + Sync {
    /// When it may speak; enforced by the engine, never counted by the reminder.
    fn policy(&self) -> Policy;

    /// Where in the message it stands.
    fn lane(&self) -> Lane {
        Lane::Roster
    }

    /// What it would say now, or why nothing. Reads only.
    fn propose(&self, view: &View<'_>) -> Proposal;
}

/// Makes reminders of definitions and knows the defaults: the engine's only link to the kinds.
pub trait Registry: fmt::Debug + Send + Sync {
    /// The reminder of a definition, or what is wrong with its settings.
    fn build(&self, definition: &Definition) -> Result<Arc<dyn Reminder>, Refusal>;

    /// The members that a session of this profile begins with, in order.
    fn defaults(&self, profile: Profile) -> Vec<(Definition, Source)>;

    /// The members that an agent with a cap on its requests gets beside its roster.
    fn for_capped_agents(&self) -> Vec<(Definition, Source)>;

    /// The definition of a built-in kind with its default settings, or a refusal that names the
    /// nearest one.
    fn kind(&self, name: &str) -> Result<Definition, Refusal>;
}

/// A member of a definition.
pub fn member(
    registry: &dyn Registry,
    definition: Definition,
    source: Source,
) -> Result<Member, Refusal> {
    let reminder = registry.build(&definition)?;
    Ok(Member { definition, enabled: true, source, reminder })
}
