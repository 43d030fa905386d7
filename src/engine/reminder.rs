//! What a reminder is: it looks at a view of its scope and proposes, or says why it is silent.
//! It reads only; what telling it would consume is data, applied by the commit.

use std::any::{Any, TypeId};
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::delivery::Seam;
use super::diagnosis::Diagnosis;
use super::event::{Definition, HostReport, Profile};
use super::facts::SessionFacts;
use super::files::{DiffLimits, Edited};
use super::policy::{Ordinals, Policy, Told, Withheld};
use super::queue::{Fifo, HookContext};
use super::record::{Digest, Effect, Lane, Millis, Phase, Serial, SilentEntry};
use super::refusal::Refusal;
use super::scope::{Member, Scope, Source};
use super::start::Start;

/// Everything that a reminder may look at.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// What is known of the session.
    pub facts: &'a SessionFacts,
    /// The session's root directory.
    pub root: Option<&'a str>,
    /// The session's pending FIFO.
    pub fifo: &'a Fifo,
    /// What hooks have to add.
    pub hook_contexts: &'a [HookContext],
    /// What stands in the files that were asked for.
    pub findings: &'a Findings,
    /// What reminders of this roster worked out for this WAIT and share.
    pub workings: &'a Workings,
    /// The scope, with what it was told.
    pub scope: &'a Scope,
    /// The id under which the reminder stands in the roster.
    pub id: &'a str,
    /// When it was registered, among all that is told; 0 from the start.
    pub since: Serial,
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
    /// Where in the conversation, if the client says so.
    pub seam: Seam,
    /// The session's profile.
    pub profile: Profile,
    /// What the client's host does.
    pub host: &'a HostReport,
    /// Makes fingerprints.
    pub digest: Digest,
    /// The last queued item that the WAIT may see.
    pub until: Serial,
}

/// A file to be looked at before a reminder can say what it would say.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Wanted {
    /// Its absolute path.
    pub path: String,
    /// What for.
    pub reading: Reading,
}

/// What a file is looked at for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Reading {
    /// Its instructions: whole, or not at all.
    Instructions,
    /// What the person pointed at: the beginning of a text, or the names in a directory.
    Mention,
    /// These lines of what the person pointed at, from 1, the last included; a directory is listed.
    Lines(u64, u64),
    /// Its size, and the number of its pages.
    Attachment,
    /// All files that the scope watches, for what changed in them. The path is empty.
    Edits(DiffLimits),
    /// What checkers found after the scope's edits; of no one file, and never looked for. Prepared
    /// with the WAIT, or pending where edited files are still looked at.
    Diagnostics,
    /// Not at all: whether what the client itself gave of it may be shown. It may be an address that
    /// is no path.
    Given,
}

/// What stands in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Found {
    /// Text.
    Text {
        /// The real path of the file.
        real: String,
        /// What it says, up to the cap of the reading.
        text: String,
        /// Its size in bytes, where the text is only the beginning.
        cut_from: Option<u64>,
    },
    /// A directory.
    Listing {
        /// The real path of the directory.
        real: String,
        /// The first names in it, sorted.
        names: Vec<String>,
        /// How many more there are.
        more: u64,
    },
    /// An attachment.
    Attachment {
        /// Its size in bytes.
        bytes: u64,
        /// Its pages, where that can be told.
        pages: Option<u64>,
        /// The content's fingerprint.
        fingerprint: String,
    },
    /// The watched files that are not as the scope knows them, sorted by their newest spelling.
    Edits(Vec<Edited>),
    /// What checkers found after the scope's edits. Worked out from what clients report, so that no
    /// recording holds it.
    #[serde(skip)]
    Diagnosis(Diagnosis),
    /// It is not there yet, and can be waited for.
    #[serde(skip)]
    Pending,
    /// What the client gave of it may be shown.
    Showable,
    /// There is nothing.
    Missing,
    /// It is there, but is not read.
    Unread {
        /// The real path of the file.
        real: String,
        /// Why: too large, binary, a device, a secret, outside the root…
        reason: String,
    },
}

/// What reminders work out for one WAIT and share, each thing made when it is first asked for: a
/// roster of many rules then looks at the state once.
#[derive(Debug, Default)]
pub struct Workings(RefCell<BTreeMap<TypeId, Rc<dyn Any>>>);

impl Workings {
    /// The thing of this type; its default before anybody asked.
    pub fn of<T: Default + 'static>(&self) -> Rc<T> {
        let mut made = self.0.borrow_mut();
        let thing = made.entry(TypeId::of::<T>()).or_insert_with(|| Rc::new(T::default()));
        let thing: Rc<dyn Any> = Rc::clone(thing);
        thing.downcast().unwrap_or_default()
    }
}

/// What stands in the files that were asked for.
pub type Findings = BTreeMap<Wanted, Found>;

impl Wanted {
    /// What checkers found after the scope's edits.
    pub const DIAGNOSTICS: Self = Self { path: String::new(), reading: Reading::Diagnostics };
}

impl Moment<'_> {
    /// Whether the request stands at the prompt, rather than after tool calls.
    pub fn is_prompt(&self) -> bool {
        match self.seam {
            Seam::Unsaid => self.phase == Phase::TurnStart,
            Seam::Prompt | Seam::Continuation => true,
            Seam::Tools => false,
        }
    }
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
    /// What telling it tells besides.
    pub tells: Option<SilentEntry>,
}

impl Part {
    /// A piece whose telling takes one item out of the queues.
    pub fn taking(body: String, serial: Serial) -> Self {
        Self { body, effects: vec![Effect::Take(serial)], tells: None }
    }
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
    /// Whether the conversation holds it already, so that it is told without being said.
    pub rides: bool,
}

impl Speech {
    /// A speech with one body.
    pub fn new(label: impl Into<Cow<'static, str>>, body: String) -> Self {
        Self {
            key: None,
            label: label.into(),
            parts: vec![Part { body, effects: Vec::new(), tells: None }],
            fingerprint: None,
            marks: Vec::new(),
            serial: 0,
            rides: false,
        }
    }

    /// The same speech about one member.
    #[must_use]
    pub fn about(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// The same speech telling this state.
    #[must_use]
    pub fn telling(mut self, fingerprint: impl Into<String>) -> Self {
        self.fingerprint = Some(fingerprint.into());
        self
    }

    /// The same speech telling these named values.
    #[must_use]
    pub fn marking(mut self, marks: Vec<String>) -> Self {
        self.marks = marks;
        self
    }

    /// The same speech, made of a queued item that telling it takes out.
    #[must_use]
    pub fn taking(mut self, serial: Serial) -> Self {
        self.serial = serial;
        self.parts[0].effects.push(Effect::Take(serial));
        self
    }
}

/// Why a reminder is silent, and when it can next speak.
#[derive(Clone, Debug)]
pub enum Silence {
    /// Its policy keeps it silent.
    Withheld(Withheld),
    /// It has nothing to say yet, for reasons in numbers. Worded only when somebody asks: a WAIT
    /// does not.
    Counting {
        /// The numbers.
        numbers: [u64; 3],
        /// Why, given the numbers.
        reason: fn([u64; 3]) -> String,
        /// When it can next speak, given the numbers.
        next: fn([u64; 3]) -> String,
    },
    /// It has nothing to say, for a reason that quotes a text. Worded only when somebody asks.
    Quoting {
        /// The text.
        text: Arc<str>,
        /// Why, given the text.
        reason: fn(&str) -> String,
        /// When it can next speak.
        next: &'static str,
    },
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
            Self::Counting { numbers, next, .. } => next(*numbers),
            Self::Quoting { next, .. } => (*next).to_owned(),
            Self::Nothing { next, .. } => next.to_string(),
        }
    }
}

impl fmt::Display for Silence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Withheld(withheld) => withheld.fmt(f),
            Self::Counting { numbers, reason, .. } => f.write_str(&reason(*numbers)),
            Self::Quoting { text, reason, .. } => f.write_str(&reason(text)),
            Self::Nothing { reason, .. } => f.write_str(reason),
        }
    }
}

/// A reminder's answer.
#[derive(Clone, Debug)]
pub enum Proposal {
    /// It is silent.
    Silent(Silence),
    /// It is silent, and need not look at this again once everything is told.
    Note(Silence, Vec<Effect>),
    /// It would say these, each judged by the policy.
    Speak(Vec<Speech>),
    /// The client computes its body; the WAIT asks it.
    Ask {
        /// Whether the generator is to speak even without news.
        force: bool,
    },
    /// It needs to know what stands in these files first.
    Read(Vec<Wanted>),
    /// It cannot be worked out: left out and reported, the others are delivered.
    Fail(String),
}

impl Proposal {
    /// Silent, with reasons in numbers.
    pub fn counting(
        numbers: [u64; 3],
        reason: fn([u64; 3]) -> String,
        next: fn([u64; 3]) -> String,
    ) -> Self {
        Self::Silent(Silence::Counting { numbers, reason, next })
    }

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

    /// The policy as it was asked for, where the engine is given another.
    fn stated_policy(&self) -> Policy {
        self.policy()
    }

    /// Where in the message it stands.
    fn lane(&self) -> Lane {
        Lane::Roster
    }

    /// What a row calls what the client answered for it; its id when absent.
    fn label(&self) -> Option<&str> {
        None
    }

    /// Whether it is kept before others where a budget or a limit does not let everything pass: the
    /// higher first, then what stands earlier in the message (`configuration.md`, "Keys").
    fn priority(&self) -> i64 {
        0
    }

    /// Whether it looks at what lies on the way to files that were read. What it was not asked for
    /// stays to be looked at.
    fn looks_at_reads(&self) -> bool {
        false
    }

    /// Whether it is collected after tool calls too where the host owns the conversation
    /// (`reminders.md`, "Native hosts"). What waits in lanes of its own always is.
    fn rides_seams(&self) -> bool {
        self.lane() != Lane::Roster
    }

    /// What the conversation knew from the start of what it tells changes of, if it is such.
    fn starts_from(&self) -> Option<Start<'_>> {
        None
    }

    /// What it would say now, or why nothing. Reads only.
    fn propose(&self, view: &View<'_>) -> Proposal;
}

/// Makes reminders of definitions and knows the defaults: the engine's only link to the kinds.
pub trait Registry: fmt::Debug + Send + Sync {
    /// The reminder of a definition, or what is wrong with its settings.
    fn build(&self, definition: &Definition) -> Result<Arc<dyn Reminder>, Refusal>;

    /// The members that a session of this profile begins with, in order. All sessions share what
    /// they are made of.
    fn defaults(&self, profile: Profile) -> Vec<Member>;

    /// The members that an agent with a cap on its requests gets beside its roster.
    fn for_capped_agents(&self) -> Vec<Member>;

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
    Ok(Member { definition: Arc::new(definition), enabled: true, source, since: 0, reminder })
}
