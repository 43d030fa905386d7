//! The state that reminders speak about, and what the daemon believes of it.

use crate::scope::Scope;
use crate::wire::{NullOr, is_false, null_default, open_enum, present, scoped};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The answer to `session/state`: everything that the daemon believes about a scope.
///
/// It is for people and for tests; the members that are plain JSON may grow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionState {
    /// Which scope.
    #[serde(flatten)]
    pub scope: Scope,
    /// The workspace directory.
    #[schemars(with = "NullOr<String>")]
    pub root: Option<String>,
    /// The profile in force.
    pub profile: String,
    /// Whether the workspace's own configuration is trusted.
    pub trusted: bool,
    /// The open turn.
    #[schemars(with = "NullOr<TurnState>")]
    pub turn: Option<TurnState>,
    /// What was counted since the scope began.
    pub counters: Counters,
    /// How many tokens of the scope are open.
    pub open_tokens: u64,
    /// How much is waiting to be told.
    pub queues: QueueLengths,
    /// The permission mode; `null` until the first `mode/set`.
    #[schemars(with = "NullOr<String>")]
    pub mode: Option<String>,
    /// The plan, as last set; `null` when there is none.
    pub plan: Value,
    /// The session's tasks.
    pub tasks: Vec<Task>,
    /// The goal and what was charged to it; `null` when there is none.
    pub goal: Value,
    /// The context's use, as last reported; `null` when unknown.
    pub usage: Value,
    /// The pools by name.
    pub pools: BTreeMap<String, Value>,
    /// The sections by name.
    pub sections: BTreeMap<String, Value>,
    /// The facts by name.
    pub facts: BTreeMap<String, Value>,
    /// The files that the scope edited in its turn, with what checkers said of them since.
    pub diagnostics: Vec<EditedFileState>,
    /// The files that the session watches.
    pub files: WatchedFilesState,
    /// What telling each kind has cost the scope so far, by kind.
    #[serde(default)]
    pub spent: BTreeMap<String, Spent>,
    /// What telling may cost the scope.
    #[serde(default)]
    pub budget: BudgetState,
    /// The session's agents, each an object with at least its path as `agent`.
    pub agents: Vec<Value>,
    /// How many values were skipped because this build does not know them, by where they stood
    /// (`"task.status"`).
    pub skipped: BTreeMap<String, u64>,
    /// What else a person should know, a sentence each.
    pub notes: Vec<String>,
}

/// What telling something has cost so far, whether history still holds it or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Spent {
    /// Entries that were told.
    pub entries: u64,
    /// What their bodies cost in tokens, estimated.
    pub tokens: u64,
}

/// What telling may cost a scope, in estimated tokens; a budget that is absent is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BudgetState {
    /// For all entries of one WAIT.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_wait: Option<u64>,
    /// For all entries that the scope is ever told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_session: Option<u64>,
    /// What is left of `perSession`; at 0 nothing is told any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<u64>,
}

/// The files that a session watches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WatchedFilesState {
    /// How many paths are watched, counted once for each scope.
    pub watched: u64,
    /// How many contents are kept to show differences from.
    pub contents: u64,
    /// How many paths are watched no more because there were too many.
    pub dropped: u64,
    /// How well the daemon hears of changes; `null` when it does not listen.
    #[schemars(with = "NullOr<WatcherState>")]
    pub watcher: Option<WatcherState>,
}

/// How well a daemon hears of changes, over all of its sessions. What it does not hear of it finds by
/// comparing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WatcherState {
    /// How many directories hold watched files.
    pub directories: u64,
    /// In how many of them changes are heard.
    pub heard: u64,
    /// How often events were lost, so that everything was compared.
    pub rescans: u64,
    /// How often events came too late to be waited for.
    pub late: u64,
    /// Why files are compared without the help of events; `null` where events are heard of all.
    #[schemars(with = "NullOr<String>")]
    pub degraded: Option<String>,
}

/// A file that a scope edited in its turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EditedFileState {
    /// Its path.
    pub path: String,
    /// Whether a checker has reported on the edit.
    pub reported: bool,
    /// Problems that the edits brought and that were not told yet.
    pub new: u64,
    /// Problems that were there before.
    pub before: u64,
    /// Problems that are gone.
    pub resolved: u64,
}

/// An open turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnState {
    /// The turn's id.
    pub id: String,
    /// Which turn of the scope it is, from 1.
    pub ordinal: u64,
}

/// What was counted since a scope began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Counters {
    /// Ended turns.
    pub turns: u64,
    /// Committed WAITs.
    pub requests: u64,
    /// Turns whose first WAIT was committed.
    pub prompts: u64,
}

/// How much is waiting to be told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueueLengths {
    /// In the session's pending queue.
    pub pending: u64,
    /// Turn events of the open turn.
    pub turn_events: u64,
    /// Staged entries of the open turn.
    pub staged: u64,
}

/// `mode/set`: the permission mode.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModeSetParams {
    /// The session's id.
    pub session: String,
    /// `ask`, `edits`, `full-auto`, `plan`, or a name of the client's own.
    pub mode: String,
    /// Whether it holds for one request only.
    #[serde(
        rename = "override",
        default,
        deserialize_with = "null_default",
        skip_serializing_if = "is_false"
    )]
    pub override_once: bool,
}

/// `plan/set`: where planning stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanSetParams {
    /// The session's id.
    pub session: String,
    /// Where planning stands.
    pub state: PlanState,
    /// Whether this request may only plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directive: Option<bool>,
    /// The episode's id; without one an episode lasts while the state stays `active`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub episode: Option<String>,
    /// Where the plan can be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The plan's text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// Whether the accepted plan still awaits verification.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verification_pending: Option<bool>,
}

open_enum! {
    /// Where planning stands.
    pub enum PlanState {
        /// A plan is being made.
        Active = "active",
        /// The person accepted one.
        Accepted = "accepted",
        /// There is none.
        None = "none",
    }
}

/// A task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Task {
    /// Its id: the client's own string, one list a session.
    pub id: String,
    /// What it is about, in a line.
    pub subject: String,
    /// How far it is.
    pub status: TaskStatus,
    /// The path of the agent that owns it; the scope's own when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// The ids of tasks that must be completed first.
    #[serde(default, deserialize_with = "null_default", skip_serializing_if = "Vec::is_empty")]
    pub blocked_by: Vec<String>,
    /// The ids of tasks that wait for this one.
    #[serde(default, deserialize_with = "null_default", skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<String>,
    /// More about it; never told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

open_enum! {
    /// How far a task is.
    pub enum TaskStatus {
        /// Not begun.
        Pending = "pending",
        /// Begun.
        InProgress = "in_progress",
        /// Done.
        Completed = "completed",
    }
}

scoped! {
    /// `task/put`: write one task.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct TaskPutParams {
        /// Who writes.
        pub scope: Scope,
        /// The task, whole.
        pub task: Task,
    }
}

scoped! {
    /// `task/remove`: take one task away.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct TaskRemoveParams {
        /// Who writes.
        pub scope: Scope,
        /// The task's id.
        pub id: String,
    }
}

scoped! {
    /// `task/replace`: write the whole list.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct TaskReplaceParams {
        /// Who writes.
        pub scope: Scope,
        /// The tasks; an empty or equal list is a write as well.
        pub tasks: Vec<Task>,
    }
}

/// `goal/set`: set, change or drop the session's goal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GoalSetParams {
    /// The session's id.
    pub session: String,
    /// The goal; `null` drops it.
    #[serde(deserialize_with = "present")]
    #[schemars(with = "NullOr<Goal>")]
    pub goal: Option<Goal>,
}

/// A goal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Goal {
    /// Its id: the client's own string.
    pub id: String,
    /// What is to be reached.
    pub objective: String,
    /// The most tokens that it may use; absent for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<u64>,
    /// The address of the plan that it carries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
}

scoped! {
    /// `goal/charge`: tokens were used for the goal. Exactly one of `used` and `delta` is there.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct GoalChargeParams {
        /// Who used them.
        pub scope: Scope,
        /// The goal's running total.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub used: Option<u64>,
        /// What came on top of what was charged before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub delta: Option<u64>,
        /// Whether it is an estimate of a turn that is still running.
        #[serde(default, deserialize_with = "null_default", skip_serializing_if = "is_false")]
        pub in_flight: bool,
    }
}

scoped! {
    /// `usage/report`: how full the context is.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct UsageReportParams {
        /// Whose context.
        pub scope: Scope,
        /// Tokens in use.
        pub used: u64,
        /// Tokens that can be used.
        pub usable: u64,
        /// The tokens in use at which compaction starts; present says that it can run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub compacts_at: Option<u64>,
    }
}

scoped! {
    /// `pool/set`: the names that a pool holds now.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct PoolSetParams {
        /// Whose pool.
        pub scope: Scope,
        /// The pool: `agents`, `tools`, `skills`, or a name of the client's own.
        pub pool: String,
        /// All of its names, in any order; `null` when they are not known now.
        #[serde(deserialize_with = "present")]
        #[schemars(with = "NullOr<Vec<PoolName>>")]
        pub names: Option<Vec<PoolName>>,
        /// Whether these count as told.
        #[serde(default, deserialize_with = "null_default", skip_serializing_if = "is_false")]
        pub baseline: bool,
    }
}

/// A name in a pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PoolName {
    /// The name, which alone decides whether something changed.
    pub name: String,
    /// What it is, told when it is added.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

scoped! {
    /// `section/set`: what a named section says now.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct SectionSetParams {
        /// Whose section.
        pub scope: Scope,
        /// The section's name.
        pub section: String,
        /// Its complete contents; `null` when it has none.
        #[serde(default)]
        pub content: Option<String>,
        /// Whether it is there; `present` with content and `absent` without, when not said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub state: Option<SectionState>,
    }
}

open_enum! {
    /// Whether a section is there.
    pub enum SectionState {
        /// It is.
        Present = "present",
        /// It is not, which is told.
        Absent = "absent",
        /// It cannot be read now, which is not told.
        Unavailable = "unavailable",
    }
}

scoped! {
    /// `mention/add`: the person pointed at something.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct MentionAddParams {
        /// Who is told.
        pub scope: Scope,
        /// What sort of thing.
        pub kind: MentionKind,
        /// Which one: a path, URI or name.
        pub target: String,
        /// The lines of a file that are meant; absent for all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub range: Option<LineRange>,
        /// Its content; absent lets the daemon read it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub content: Option<String>,
        /// Why it was rejected, if it was.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub rejected: Option<String>,
    }
}

open_enum! {
    /// What sort of thing was mentioned.
    pub enum MentionKind {
        /// A symbol or another reference.
        Ref = "ref",
        /// A file or directory.
        File = "file",
        /// A resource of an MCP server.
        Mcp = "mcp",
        /// An agent.
        Agent = "agent",
    }
}

/// Lines of a file, from 1, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LineRange {
    /// The first line.
    pub start: u64,
    /// The last line.
    pub end: u64,
}

scoped! {
    /// `skill/offer`: skills that lie dormant until a matching path is touched.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct SkillOfferParams {
        /// Who could use them.
        pub scope: Scope,
        /// The skills.
        pub skills: Vec<OfferedSkill>,
    }
}

/// A skill that lies dormant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OfferedSkill {
    /// Its name.
    pub name: String,
    /// Globs in gitignore style, relative to the root.
    pub globs: Vec<String>,
    /// Whether the model can see it already, so that it needs no telling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visible: Option<bool>,
}

scoped! {
    /// `skill/attach`: a skill is part of the conversation now.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct SkillAttachParams {
        /// Who is told.
        pub scope: Scope,
        /// The skill, its members beside the scope's.
        #[serde(flatten)]
        pub skill: AttachedSkill,
    }
}

/// A skill with its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AttachedSkill {
    /// Its name.
    pub name: String,
    /// What the model reads.
    pub body: String,
    /// The skills that it needs, which are told first.
    #[serde(default, deserialize_with = "null_default", skip_serializing_if = "Vec::is_empty")]
    pub requires: Vec<AttachedSkill>,
}

/// `hook/context`: a hook has something to add.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HookContextParams {
    /// The session's id.
    pub session: String,
    /// The hook event.
    pub event: String,
    /// What the model reads.
    pub body: String,
    /// Whether the host has put it into the conversation already.
    #[serde(default, deserialize_with = "null_default", skip_serializing_if = "is_false")]
    pub accepted: bool,
}

scoped! {
    /// `hook/outcome`: a hook decided.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct HookOutcomeParams {
        /// Who is told.
        pub scope: Scope,
        /// The hook event.
        pub event: String,
        /// What it decided.
        pub decision: HookDecision,
        /// Why, as the hook says.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub reason: Option<String>,
    }
}

open_enum! {
    /// What a hook decided.
    pub enum HookDecision {
        /// It stands in the way.
        Block = "block",
        /// It does not.
        Allow = "allow",
    }
}

/// `patch/revised`: the person edited a patch before it was applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PatchRevisedParams {
    /// The session's id.
    pub session: String,
    /// What was changed.
    pub summary: String,
}

/// `verifier/started`: the accepted plan is being verified.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VerifierStartedParams {
    /// The session's id.
    pub session: String,
}

scoped! {
    /// `job/ended`: a background job of the scope ended.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct JobEndedParams {
        /// Whose job.
        pub scope: Scope,
        /// The job's id or name.
        pub job: String,
        /// How it ended, as the client names it.
        pub state: String,
        /// What it says for itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub summary: Option<String>,
    }
}

/// `date/set`: today's date, for hosts that want its changes told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DateSetParams {
    /// The session's id.
    pub session: String,
    /// The date as it is to be told, such as `2026-03-21`.
    pub date: String,
}

scoped! {
    /// `fact/set`: a fact for the user's own rules.
    #[derive(Clone, Debug, PartialEq)]
    pub struct FactSetParams {
        /// Whose fact.
        pub scope: Scope,
        /// Its name: `facts.NAME` in conditions and bodies.
        pub name: String,
        /// Its value: any JSON.
        pub value: Value,
    }
}
