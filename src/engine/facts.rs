//! What clients reported and reminders speak about: plain state, changed by events, read by
//! reminders. Nothing here knows what was told.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::diagnosis::Checked;
use super::record::Serial;
use super::refusal::{Refusal, RefusalKind};
use super::tasks::Tasks;
use super::unconfirmed::{Taken, take_out};
use super::value::Value;
use super::watched::WatchedFiles;

/// Names that a pool holds at most.
pub const POOL_NAMES_MAX: usize = 10_000;
/// Pools, and facts, that a scope holds at most.
pub const NAMED_MAX: usize = 1_000;
/// Revisions of patches that a session remembers.
const REVISIONS_MAX: usize = 256;
/// Paths that one turn touches at most, and files whose contents history is known to hold.
const TOUCHED_MAX: usize = 50_000;
/// Items of one sort that wait to be told at most.
pub const WAITING_MAX: usize = 1_000;

/// A permission mode as the client named it: `ask`, `edits`, `full-auto`, `plan`, or another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mode {
    /// Its name.
    pub name: String,
    /// Whether it holds for one request only.
    pub overrides: bool,
}

/// The name of the mode in which a plan is made.
pub const PLAN_MODE: &str = "plan";

/// Where a plan stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PlanState {
    /// There is none.
    #[default]
    None,
    /// It is being made.
    Active,
    /// It was accepted.
    Accepted,
}

/// What `plan/set` brings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PlanReport {
    /// Where it stands.
    pub state: PlanState,
    /// Whether the conversation is for planning alone.
    pub directive: bool,
    /// The client's name of the episode.
    pub episode: Option<String>,
    /// Where the plan is kept.
    pub address: Option<String>,
    /// What it says.
    pub content: Option<String>,
    /// Whether an accepted plan awaits its verification.
    pub verification_pending: bool,
}

/// A name in a pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolName {
    /// The name.
    pub name: String,
    /// What it is, told when it comes.
    pub description: Option<String>,
}

/// A pool of names: agents, tools, skills…
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pool {
    /// Whether the pool is known now.
    pub known: bool,
    /// The names, with their descriptions.
    pub names: BTreeMap<String, Option<String>>,
    /// What the conversation was given from the start; the first known list unless the client
    /// gives another.
    pub seed: Option<BTreeSet<String>>,
    /// The latest list that the client declared told (`pool/set` with `baseline`).
    pub baseline: Option<BTreeSet<String>>,
    /// When the client last declared a list told, among all that is told.
    pub declared: Serial,
    /// How many records history had then: what they told of the pool is behind that list.
    pub declared_at: usize,
}

/// What a goal is (`goal/set`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GoalReport {
    /// The client's id of it.
    pub id: String,
    /// What is to be reached.
    pub objective: String,
    /// Tokens that it may cost; none is no limit.
    pub budget: Option<u64>,
    /// The address of the plan that it carries.
    pub plan: Option<String>,
}

/// The active goal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Goal {
    /// What it is.
    pub report: GoalReport,
    /// The budget that it began with: what a change is first compared with.
    pub first_budget: Option<u64>,
    /// Tokens that were charged to it.
    pub used: u64,
}

/// A revision of a patch by the person.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Revision {
    /// Its number in the session, from 1.
    pub number: u64,
    /// What was revised.
    pub summary: String,
    /// The root turn in which it happened.
    pub turn: u64,
}

/// Where a forked session comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fork {
    /// The session that it was forked from.
    pub source: String,
    /// Its own worktree, if it has one.
    pub worktree: Option<Worktree>,
}

/// A worktree of a forked session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worktree {
    /// Where it is.
    pub directory: String,
    /// Its branch.
    pub branch: String,
    /// The commit that the branch began at.
    pub base: String,
}

/// What is known of the whole session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SessionFacts {
    /// The permission mode; silent until the first one.
    pub mode: Option<String>,
    /// The mode that holds for the next request only, and when it was set.
    pub mode_override: Option<(Serial, String)>,
    /// The plan.
    pub plan: PlanReport,
    /// The root turn in which the plan was accepted.
    pub plan_accepted_in: u64,
    /// The name of the planning episode, or of the last one; empty before the first.
    pub episode: String,
    /// Planning episodes that the daemon named itself.
    pub episodes: u64,
    /// The tasks.
    pub tasks: Tasks,
    /// The active goal.
    pub goal: Option<Goal>,
    /// Revisions of patches by the person, oldest first.
    pub revisions: Vec<Revision>,
    /// The date.
    pub date: Option<String>,
    /// The first date that was set.
    pub first_date: Option<String>,
    /// The limits with which goals began that were active before the daemon heard of them.
    pub first_limits: BTreeMap<String, Option<u64>>,
    /// Where the session was forked from.
    pub fork: Option<Fork>,
}

impl SessionFacts {
    /// The mode that holds for the next request.
    pub fn effective_mode(&self) -> Option<&str> {
        let once = self.mode_override.as_ref().map(|(_, mode)| mode.as_str());
        once.or(self.mode.as_deref())
    }

    /// Whether the conversation is making a plan.
    pub fn is_planning(&self) -> bool {
        self.plan.state == PlanState::Active
            || self.plan.directive
            || self.effective_mode() == Some(PLAN_MODE)
    }

    /// Names the planning episode after a change of mode or plan. `continued` is the episode that
    /// a resumed conversation was in: planning that is reported again then goes on with it.
    pub fn name_episode(&mut self, was_planning: bool, continued: Option<String>) {
        if !self.is_planning() {
            return;
        }
        match &self.plan.episode {
            Some(named) => self.episode.clone_from(named),
            None if was_planning => {}
            None => match continued {
                Some(continued) => self.episode = continued,
                None => {
                    self.episodes += 1;
                    self.episode = format!("#{}", self.episodes);
                }
            },
        }
    }

    /// Notes that the person revised a patch.
    pub fn revise(&mut self, summary: &str, turn: u64) {
        let number = self.revisions.last().map_or(1, |last| last.number + 1);
        // The oldest gives way: what the newest says of the applied content holds for all.
        if self.revisions.len() >= REVISIONS_MAX {
            self.revisions.remove(0);
        }
        self.revisions.push(Revision { number, summary: summary.to_owned(), turn });
    }
}

/// How much of its context a conversation has used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens in use.
    pub used: u64,
    /// Tokens that can be used.
    pub usable: u64,
    /// Where compaction starts, if it can run.
    pub compacts_at: Option<u64>,
}

impl Usage {
    /// Used in hundredths of usable; 0 when nothing is usable.
    pub fn percent(self) -> u64 {
        self.used.saturating_mul(100).checked_div(self.usable).unwrap_or(0)
    }

    /// Whether at least this many hundredths are used.
    pub fn reaches(self, percent: u64) -> bool {
        self.usable > 0
            && u128::from(self.used) * 100 >= u128::from(self.usable) * u128::from(percent)
    }
}

/// A named section of context.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Section {
    /// Its name.
    pub name: String,
    /// What it says; empty when it was emptied, `None` while it is unavailable.
    pub content: Option<String>,
    /// The content's fingerprint.
    pub fingerprint: String,
}

/// A skill that may become relevant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfferedSkill {
    /// Its name.
    pub name: String,
    /// Patterns of paths that make it relevant, gitignore style.
    pub globs: Vec<String>,
}

/// A background job that ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// The client's name of it.
    pub job: String,
    /// How it ended.
    pub state: String,
    /// What came of it.
    pub summary: Option<String>,
}

/// Something that the person pointed at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mention {
    /// What it is.
    pub kind: MentionKind,
    /// The thing: a path, a resource, an agent.
    pub target: String,
    /// Lines of it, from 1, the last included.
    pub range: Option<(u64, u64)>,
    /// What it holds, if the client knows.
    pub content: Option<String>,
    /// Why it was rejected, if it was.
    pub rejected: Option<String>,
}

/// What a mention points at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MentionKind {
    /// A reference that the client resolves.
    Ref,
    /// A file or directory.
    File,
    /// A resource of a tool server.
    Mcp,
    /// An agent.
    Agent,
}

impl MentionKind {
    /// The name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ref => "ref",
            Self::File => "file",
            Self::Mcp => "mcp",
            Self::Agent => "agent",
        }
    }
}

/// A skill that was attached, without those that it requires.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttachedSkill {
    /// Its name.
    pub name: String,
    /// What it says.
    pub body: String,
}

/// A hook that blocked something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookOutcome {
    /// The hook's event.
    pub event: String,
    /// Why.
    pub reason: Option<String>,
}

/// What a turn did to a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Touch {
    /// Whether it was written.
    pub wrote: bool,
    /// Whether an edit of it was made.
    pub edited: bool,
    /// When it was last touched, among all that happened.
    pub at: Serial,
}

/// What is known of one scope. What a snapshot leaves out does not outlive the process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ScopeFacts {
    /// Pools of names.
    pub pools: BTreeMap<String, Pool>,
    /// Facts for the user's own rules.
    pub named: BTreeMap<String, Value>,
    /// How much context is used; unknown before the first report and after a compaction.
    pub usage: Option<Usage>,
    /// Named sections, in the order in which they were first set.
    pub sections: Vec<Section>,
    /// Skills that may become relevant.
    pub skills: Vec<OfferedSkill>,
    /// Background jobs that ended, each with its place among all that is told.
    pub jobs: Vec<(Serial, Job)>,
    /// Whether the agent was charged to the goal.
    pub charged: bool,
    /// How often its effects may have been left partial: a cold resume, a cancelled turn.
    pub recoveries: u64,
    /// Paths that this turn touched.
    pub touched: BTreeMap<String, Touch>,
    /// Paths that the latest ended turn wrote.
    pub written_before: Vec<String>,
    /// Files whose contents history holds.
    pub contents: BTreeSet<String>,
    /// Files whose contents a compaction dropped and that were not named yet.
    pub dropped: BTreeSet<String>,
    /// Directories of successful reads whose instructions were not looked at yet, with the last
    /// read of each.
    pub reads: BTreeMap<String, Serial>,
    /// What the person mentioned in this turn.
    #[serde(skip)]
    pub mentions: Vec<(Serial, Mention)>,
    /// The files that it read or wrote, and what it knows of them.
    pub watched: WatchedFiles,
    /// Skills that were attached in this turn, dependencies first.
    #[serde(skip)]
    pub attached: Vec<(Serial, AttachedSkill)>,
    /// Hooks that blocked something in this turn, the latest of each event last.
    #[serde(skip)]
    pub blocked: Vec<(Serial, HookOutcome)>,
    /// Files that this turn read whole.
    pub whole_reads: Vec<(Serial, String)>,
    /// What was told of diagnostics.
    pub checked: Checked,
    /// Ends of jobs that were reported before, so that the same one is told once.
    pub ended: BTreeSet<(String, String)>,
}

impl ScopeFacts {
    /// The turn is over: what it owned is gone.
    pub fn end_turn(&mut self) {
        let touched = std::mem::take(&mut self.touched);
        self.written_before =
            touched.into_iter().filter(|(_, touch)| touch.wrote).map(|(path, _)| path).collect();
        self.mentions.clear();
        self.attached.clear();
        self.blocked.clear();
        self.whole_reads.clear();
        self.dropped.clear();
        self.checked.states.clear();
    }

    /// Takes out one item that was told.
    pub fn take(&mut self, serial: Serial) -> Option<Taken> {
        take_out(&mut self.jobs, serial)
            .map(Taken::Job)
            .or_else(|| take_out(&mut self.mentions, serial).map(Taken::Mention))
            .or_else(|| take_out(&mut self.attached, serial).map(Taken::Attached))
            .or_else(|| take_out(&mut self.blocked, serial).map(Taken::Blocked))
            .or_else(|| take_out(&mut self.whole_reads, serial).map(Taken::WholeRead))
    }

    /// Notes that an edit of a path was made. Its contents are not in history for that.
    pub fn edit(&mut self, path: &str, at: Serial) -> Result<(), Refusal> {
        self.touched(path, at)?.edited = true;
        Ok(())
    }

    fn touched(&mut self, path: &str, at: Serial) -> Result<&mut Touch, Refusal> {
        if !self.touched.contains_key(path) && self.touched.len() >= TOUCHED_MAX {
            return Err(too_many("a turn's touched paths", TOUCHED_MAX, "end the turn"));
        }
        let touch = self.touched.entry(path.to_owned()).or_default();
        touch.at = at;
        Ok(touch)
    }

    /// Notes that a path was read or written.
    pub fn touch(&mut self, path: &str, wrote: bool, at: Serial) -> Result<(), Refusal> {
        self.touched(path, at)?.wrote |= wrote;
        // Its contents are in history again.
        self.dropped.remove(path);
        if self.contents.len() < TOUCHED_MAX {
            self.contents.insert(path.to_owned());
        }
        Ok(())
    }

    /// Sets a section. `content` is `None` when it is unavailable.
    pub fn set_section(
        &mut self,
        name: &str,
        content: Option<&str>,
        fingerprint: String,
    ) -> Result<(), Refusal> {
        let content = content.map(str::to_owned);
        if let Some(known) = self.sections.iter_mut().find(|section| section.name == name) {
            (known.content, known.fingerprint) = (content, fingerprint);
            return Ok(());
        }
        if self.sections.len() >= NAMED_MAX {
            return Err(too_many("a scope's sections", NAMED_MAX, "use fewer sections"));
        }
        self.sections.push(Section { name: name.to_owned(), content, fingerprint });
        Ok(())
    }

    /// Sets a pool, or marks it as not known now. `baseline` comes with a list that counts as told:
    /// its place among all that is told, and how many records history has.
    pub fn set_pool(
        &mut self,
        pool: &str,
        names: Option<&[PoolName]>,
        baseline: Option<(Serial, usize)>,
    ) -> Result<(), Refusal> {
        if !self.pools.contains_key(pool) && self.pools.len() >= NAMED_MAX {
            return Err(too_many("a scope's pools", NAMED_MAX, "use fewer pools"));
        }
        let Some(names) = names else {
            if let Some(pool) = self.pools.get_mut(pool) {
                pool.known = false;
            }
            return Ok(());
        };
        if names.len() > POOL_NAMES_MAX {
            return Err(too_many("a pool's names", POOL_NAMES_MAX, "send fewer"));
        }
        let pool = self.pools.entry(pool.to_owned()).or_default();
        pool.known = true;
        pool.names =
            names.iter().map(|name| (name.name.clone(), name.description.clone())).collect();
        let listed = || names.iter().map(|name| name.name.clone()).collect::<BTreeSet<_>>();
        if let Some((serial, records)) = baseline {
            pool.baseline = Some(listed());
            (pool.declared, pool.declared_at) = (serial, records);
        }
        if baseline.is_some() || pool.seed.is_none() {
            pool.seed = Some(listed());
        }
        Ok(())
    }

    /// Sets a fact; `null` removes it.
    pub fn set_fact(&mut self, name: &str, value: &Value) -> Result<(), Refusal> {
        if *value == Value::Null {
            self.named.remove(name);
            return Ok(());
        }
        if !self.named.contains_key(name) && self.named.len() >= NAMED_MAX {
            return Err(too_many("a scope's facts", NAMED_MAX, "set unused ones to null"));
        }
        self.named.insert(name.to_owned(), value.clone());
        Ok(())
    }
}

/// The refusal for a list that is at its bound.
pub fn too_many(what: &str, most: usize, next: &str) -> Refusal {
    Refusal::new(RefusalKind::LimitExceeded, format!("{what} are at most {most}: {next}"))
}
