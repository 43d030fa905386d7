//! What happens to a session: everything that clients report, in the engine's own terms.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::calls::CallInput;
use super::configuration::Configuration;
use super::facts::{
    AttachedSkill, GoalReport, Job, Mention, Mode, OfferedSkill, PlanReport, PoolName, Usage,
};
use super::files::FileState;
use super::record::{Lane, Record, Serial};
use super::tasks::Task;
use super::value::Value;

/// Which reminders a session begins with (`reminders.md` §3, "Profiles").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// Every kind.
    #[default]
    Staged,
    /// The task nudge by requests, the pending FIFO, turn events.
    Nudge,
    /// Only the user's own reminders, collected at turn starts, in one block.
    Prompt,
}

impl Profile {
    /// Every profile, the default first.
    pub const ALL: [Self; 3] = [Self::Staged, Self::Nudge, Self::Prompt];

    /// The name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Staged => "staged",
            Self::Nudge => "nudge",
            Self::Prompt => "prompt",
        }
    }
}

/// Which scopes a reminder is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Audience {
    /// The root conversation.
    pub root: bool,
    /// Agents, cloned at their spawn.
    pub agents: bool,
}

impl Audience {
    /// The root conversation alone.
    pub const ROOT: Self = Self { root: true, agents: false };
    /// Agents alone.
    pub const AGENTS: Self = Self { root: false, agents: true };
    /// Both.
    pub const ALL: Self = Self { root: true, agents: true };
}

/// A reminder as data: the registry makes the reminder from it, again after every restart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Definition {
    /// Its id in the roster; the kind's name for a built-in kind.
    pub id: String,
    /// Which kind makes it.
    pub kind: String,
    /// The kind's own keys.
    #[serde(default)]
    pub settings: Value,
    /// Which scopes it is for.
    pub audience: Audience,
}

/// Off, on, or retuned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Switch {
    /// Does not speak.
    Off,
    /// Speaks, with these keys over its own.
    On(Value),
}

/// Kinds, or ids of registered reminders, to switch or retune.
pub type Switches = BTreeMap<String, Switch>;

/// What the client's host does with a message. Every member that is given replaces the former.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostReport {
    /// Whether the host owns the conversation.
    pub native: Option<bool>,
    /// Whether the proof of arrival may trail the next seam.
    pub late_receipts: Option<bool>,
    /// Whether the host wraps text itself.
    pub plain: Option<bool>,
    /// Whether the host keeps nothing, so that every WAIT replays what was told.
    pub replays: Option<bool>,
    /// What fits into one message.
    pub limit: Limit,
    /// The tools that the host offers.
    pub tools: Option<Vec<String>>,
}

impl HostReport {
    /// Takes over what a later report gives.
    pub fn merge(&mut self, later: &Self) {
        let Self { native, late_receipts, plain, replays, limit, tools } = later;
        self.native = native.or(self.native);
        self.late_receipts = late_receipts.or(self.late_receipts);
        self.plain = plain.or(self.plain);
        self.replays = replays.or(self.replays);
        self.limit = Limit {
            bytes: limit.bytes.or(self.limit.bytes),
            chars: limit.chars.or(self.limit.chars),
            utf16: limit.utf16.or(self.limit.utf16),
            tokens: limit.tokens.or(self.limit.tokens),
        };
        if tools.is_some() {
            self.tools.clone_from(tools);
        }
    }
}

/// How large a message's content may be, tags included; the smallest holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limit {
    /// In UTF-8 bytes.
    pub bytes: Option<u64>,
    /// In characters.
    pub chars: Option<u64>,
    /// In UTF-16 code units.
    pub utf16: Option<u64>,
    /// In estimated tokens.
    pub tokens: Option<u64>,
}

impl Limit {
    /// The smaller of two limits, unit by unit.
    #[must_use]
    pub fn smaller(self, other: Self) -> Self {
        let least = |one: Option<u64>, two: Option<u64>| match (one, two) {
            (Some(one), Some(two)) => Some(one.min(two)),
            (one, two) => one.or(two),
        };
        Self {
            bytes: least(self.bytes, other.bytes),
            chars: least(self.chars, other.chars),
            utf16: least(self.utf16, other.utf16),
            tokens: least(self.tokens, other.tokens),
        }
    }
}

/// What `session/open` brings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Opening {
    /// The session's root directory.
    pub root: Option<String>,
    /// The profile; counts at the first opening only.
    pub profile: Option<Profile>,
    /// Kinds to switch or retune.
    pub kinds: Switches,
    /// Reminders to register.
    pub reminders: Vec<Definition>,
    /// What the host does.
    pub host: HostReport,
    /// The records that the client's history holds; the ledger stands when absent.
    pub records: Option<Vec<Record>>,
    /// Whether the workspace's own text may be used.
    pub trusted: Option<bool>,
    /// Globs of files whose content is never shown, in order.
    pub deny: Vec<String>,
    /// The session's bookkeeping directories, which are never watched.
    pub own: Vec<String>,
    /// The configuration file that the client gave, as data; the former one stands when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub configuration_file: Option<Value>,
}

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TurnOutcome {
    /// The model finished.
    Completed,
    /// Someone stopped it.
    Cancelled,
    /// Something broke.
    Failed,
    /// Nobody ended it: another began, its agent settled, or the process died.
    Abandoned,
}

/// How an agent ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SettleOutcome {
    /// It did its work: its open tasks are completed.
    Succeeded,
    /// It could not.
    Failed,
    /// It was stopped.
    Interrupted,
}

/// Which records a compaction kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Retained {
    /// None.
    None,
    /// All that history held.
    All,
    /// These.
    Records(Vec<String>),
}

/// One thing that happened on a scope. What a client reports for the whole session comes with the
/// root scope.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Event {
    /// A user-level exchange began.
    TurnBegan {
        /// The client's id of it.
        turn: String,
    },
    /// It ended.
    TurnEnded {
        /// The client's id of it.
        turn: String,
        /// How.
        outcome: TurnOutcome,
    },
    /// A tool call began: a WAIT is not possible until it ends.
    CallBegan {
        /// The client's id of it.
        call: String,
        /// What the model passed, where the client says so.
        input: Option<CallInput>,
    },
    /// A tool call ended.
    CallEnded {
        /// The client's id of it.
        call: String,
        /// The tool's name.
        name: String,
        /// Whether it succeeded.
        ok: bool,
    },
    /// An agent began; the scope is its own path.
    AgentSpawned {
        /// Kinds to switch for it.
        kinds: Switches,
        /// How many requests it may make.
        max_requests: Option<u64>,
        /// What it is for.
        role: Option<String>,
    },
    /// An agent ended; the scope is its own path.
    AgentSettled {
        /// How.
        outcome: SettleOutcome,
    },
    /// A client puts an entry into the next WAIT of this turn.
    Staged {
        /// Where in the message.
        lane: Lane,
        /// The entry's type.
        entry_type: String,
        /// The member it is about.
        key: Option<String>,
        /// What a row calls it.
        label: Option<String>,
        /// What to tell.
        body: String,
    },
    /// Something was observed during the turn.
    Observed {
        /// Which turn; the open one when absent.
        turn: Option<String>,
        /// Later observations with this key replace it.
        key: String,
        /// The entry's type.
        entry_type: String,
        /// What to tell.
        body: String,
    },
    /// Something to tell at the session's next chance.
    Enqueued {
        /// What the sender calls it.
        name: Option<String>,
        /// What to tell.
        body: String,
    },
    /// Staged entries and observations of a key are taken back.
    Withdrawn {
        /// The key.
        key: String,
    },
    /// Something rides in the prompt text and need not be told.
    Acknowledged {
        /// The reminder.
        reminder: String,
        /// The member of it.
        key: Option<String>,
        /// The state that the prompt text shows.
        fingerprint: Option<String>,
    },
    /// A reminder of the user's own joins the roster, or replaces the one with its id.
    Registered(Definition),
    /// A reminder leaves the roster, and what it told is forgotten.
    Removed {
        /// Its id.
        id: String,
    },
    /// Kinds are switched or retuned.
    Configured(Switches),
    /// The configuration was read, for the whole session.
    ConfigurationRead(Box<Configuration>),
    /// What was told is forgotten; what is registered stays.
    Reset,
    /// History was compacted.
    Compacted {
        /// What it still holds.
        retained: Retained,
        /// Whether the host did it.
        native: bool,
    },
    /// History was cut back.
    Rewound {
        /// To behind this record; to the beginning when absent.
        through: Option<String>,
    },
    /// History is empty.
    Cleared,
    /// Exactly these records are in the payload now.
    HistoryReported {
        /// Their ids.
        records: Vec<String>,
    },
    /// The permission mode changed.
    ModeSet(Mode),
    /// The plan changed.
    PlanSet(PlanReport),
    /// A task was written.
    TaskPut {
        /// The task; its owner is filled in.
        task: Task,
        /// Whether the client named the owner.
        reassigns: bool,
    },
    /// A task was removed.
    TaskRemoved {
        /// Its id.
        id: String,
    },
    /// The scope's own tasks were replaced.
    TasksReplaced {
        /// By these; their owners are filled in.
        tasks: Vec<Task>,
    },
    /// A pool of names is known, or not known now.
    PoolSet {
        /// The pool.
        pool: String,
        /// The names in it.
        names: Option<Vec<PoolName>>,
        /// Whether they count as told.
        baseline: bool,
    },
    /// A fact for the user's own rules.
    FactSet {
        /// Its name.
        name: String,
        /// Its value.
        value: Value,
    },
    /// The active goal changed.
    GoalSet(Option<GoalReport>),
    /// Something was charged to the goal.
    GoalCharged(Charge),
    /// How much context is used.
    UsageReported(Usage),
    /// A named section of context changed.
    SectionSet {
        /// Its name.
        section: String,
        /// What it says; empty when it was emptied, `None` when it is unavailable.
        content: Option<String>,
    },
    /// The person pointed at something.
    Mentioned(Mention),
    /// The skills that may become relevant.
    SkillsOffered(Vec<OfferedSkill>),
    /// A skill was attached, with those that it requires before it.
    SkillAttached(Vec<AttachedSkill>),
    /// A hook has something to add.
    HookContext {
        /// The hook's event.
        event: String,
        /// What it adds.
        body: String,
        /// Whether it rides in the prompt text already.
        accepted: bool,
    },
    /// A hook blocked something.
    HookBlocked {
        /// The hook's event.
        event: String,
        /// Why.
        reason: Option<String>,
    },
    /// The person revised a patch before it was applied.
    PatchRevised {
        /// What was revised.
        summary: String,
    },
    /// A verifier began: the accepted plan no longer awaits one.
    VerifierStarted,
    /// A background job of the scope ended.
    JobEnded(Job),
    /// The date.
    DateSet {
        /// As the client writes it.
        date: String,
    },
    /// A file was read, or written by the scope itself.
    Touched {
        /// Its path.
        path: String,
        /// Whether it was written.
        wrote: bool,
        /// Whether it was read whole.
        whole: bool,
    },
    /// An edit of a file was made. What it wrote is reported by itself.
    FileEdited {
        /// Its path.
        path: String,
    },
    /// How a file stood when the scope read or wrote it.
    FileKnown {
        /// Its path.
        path: String,
        /// What stood there.
        state: FileState,
        /// When it was read or written, among all that happened.
        at: Serial,
        /// Whether this only starts the watch: the scope read a part of it.
        starts: bool,
    },
    /// A file is not watched any more.
    FileForgotten {
        /// Its path.
        path: String,
    },
    /// A value that this build does not know was left out of an event.
    Skipped {
        /// What kind of value: a lane, a task's status…
        what: String,
    },
}

impl Event {
    /// Whether the turn that was open on its scope is over once it took effect.
    pub fn ends_turn(&self) -> bool {
        matches!(self, Self::TurnBegan { .. } | Self::TurnEnded { .. } | Self::AgentSettled { .. })
    }

    /// Whether what an agent knew is gone with it.
    pub fn begins_or_ends_agent(&self) -> bool {
        matches!(self, Self::AgentSpawned { .. } | Self::AgentSettled { .. })
    }

    /// Whether it outlives the process, and so belongs into the ledger. What waits in queues does
    /// not (`reminders.md` §2).
    pub fn is_durable(&self) -> bool {
        !matches!(
            self,
            Self::CallBegan { .. }
                | Self::CallEnded { .. }
                | Self::Staged { .. }
                | Self::Observed { .. }
                | Self::Enqueued { .. }
                | Self::Withdrawn { .. }
                | Self::Acknowledged { .. }
                | Self::Mentioned(_)
                | Self::SkillAttached(_)
                | Self::HookContext { .. }
                | Self::HookBlocked { .. }
                | Self::Skipped { .. }
        )
    }
}

/// What was charged to a goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Charge {
    /// The goal's running total.
    Total(u64),
    /// What comes on top.
    Delta(u64),
}

/// What an event changed, for methods that answer it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Applied {
    /// Whether there was anything to change: a reminder to remove, a key to withdraw.
    pub changed: bool,
}

impl From<bool> for Applied {
    fn from(changed: bool) -> Self {
        Self { changed }
    }
}
