//! What clients reported and reminders speak about: plain state, changed by events, read by
//! reminders. Nothing here knows what was told.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::refusal::{Refusal, RefusalKind};
use super::scope::ScopePath;
use super::value::Value;

/// Tasks that a session holds at most.
pub const TASKS_MAX: usize = 10_000;
/// Names that a pool holds at most.
pub const POOL_NAMES_MAX: usize = 10_000;
/// Pools, and facts, that a scope holds at most.
pub const NAMED_MAX: usize = 1_000;

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

/// How far a task is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// Not begun.
    Pending,
    /// Under way.
    InProgress,
    /// Done.
    Completed,
    /// A status that this build does not know: kept as given, and not open.
    Other(String),
}

impl TaskStatus {
    /// Whether work is left.
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Pending | Self::InProgress)
    }

    /// The name on the wire.
    pub fn name(&self) -> &str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Other(name) => name,
        }
    }
}

/// One task of the session's list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// Unique for its owner.
    pub id: String,
    /// What is to be done.
    pub subject: String,
    /// How far it is.
    pub status: TaskStatus,
    /// Whose it is.
    pub owner: ScopePath,
    /// Tasks that must be done before.
    pub blocked_by: Vec<String>,
    /// Tasks that wait for this one.
    pub blocks: Vec<String>,
    /// More about it; never in a reminder.
    pub description: Option<String>,
}

/// Where the root conversation stood when tasks were last written: what the nudge counts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteMark {
    /// Turns up to and with the one that wrote.
    pub turns: u64,
    /// Requests committed by then.
    pub requests: u64,
}

/// The session's tasks, by owner and id, each with its place in the order of writing.
#[derive(Debug, Default)]
pub struct Tasks {
    by_owner: BTreeMap<(ScopePath, String), (u64, Task)>,
    written: u64,
    open: usize,
    /// When they were last written; `None` while nobody ever wrote.
    pub last_write: Option<WriteMark>,
}

impl Tasks {
    /// Writes a task. One that names another owner than its former is moved there: `from` is the
    /// scope that wrote it.
    pub fn put(&mut self, task: Task, from: &ScopePath, reassigns: bool) -> Result<(), Refusal> {
        let key = (task.owner.clone(), task.id.clone());
        if !self.by_owner.contains_key(&key) {
            if reassigns && task.owner != *from {
                self.take(&(from.clone(), task.id.clone()));
            }
            if self.by_owner.len() >= TASKS_MAX {
                return Err(too_many("a session's tasks", TASKS_MAX, "remove finished ones"));
            }
        }
        let place = self.take(&key).unwrap_or_else(|| {
            self.written += 1;
            self.written
        });
        self.open += usize::from(task.status.is_open());
        self.by_owner.insert(key, (place, task));
        Ok(())
    }

    /// Removes a task of the scope, or else the only one of the session with this id.
    pub fn remove(&mut self, scope: &ScopePath, id: &str) -> bool {
        let own = (scope.clone(), id.to_owned());
        if self.take(&own).is_some() {
            return true;
        }
        let mut others = self.by_owner.keys().filter(|(_, other)| other == id);
        let (Some(only), None) = (others.next().cloned(), others.next()) else { return false };
        self.take(&only).is_some()
    }

    /// Replaces the tasks that a scope owns; nobody else's are touched.
    pub fn replace(&mut self, scope: &ScopePath, tasks: Vec<Task>) -> Result<(), Refusal> {
        let others = self.by_owner.keys().filter(|(owner, _)| owner != scope).count();
        if others + tasks.len() > TASKS_MAX {
            return Err(too_many("a session's tasks", TASKS_MAX, "send fewer"));
        }
        let own: Vec<_> =
            self.by_owner.keys().filter(|(owner, _)| owner == scope).cloned().collect();
        for key in own {
            self.take(&key);
        }
        for task in tasks {
            self.put(task, scope, false)?;
        }
        Ok(())
    }

    /// Completes an agent's open tasks and drops them from everyone's blockers.
    pub fn complete_all_of(&mut self, owner: &ScopePath) {
        let mut done = BTreeSet::new();
        for (_, task) in self.by_owner.values_mut() {
            if task.owner == *owner && task.status.is_open() {
                task.status = TaskStatus::Completed;
                done.insert(task.id.clone());
                self.open -= 1;
            }
        }
        for (_, task) in self.by_owner.values_mut() {
            task.blocked_by.retain(|blocker| !done.contains(blocker));
        }
    }

    /// How many tasks are open.
    pub fn open(&self) -> usize {
        self.open
    }

    /// All tasks: by owner, root first, in the order of writing.
    pub fn all(&self) -> Vec<&Task> {
        let mut tasks: Vec<_> = self.by_owner.values().collect();
        tasks.sort_by(|(one, first), (two, second)| (&first.owner, one).cmp(&(&second.owner, two)));
        tasks.into_iter().map(|(_, task)| task).collect()
    }

    fn take(&mut self, key: &(ScopePath, String)) -> Option<u64> {
        let (place, task) = self.by_owner.remove(key)?;
        self.open -= usize::from(task.status.is_open());
        Some(place)
    }
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
#[derive(Clone, Debug, Default)]
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
    /// How many records history had when the client last declared a list told: what earlier ones
    /// told of the pool is behind that list.
    pub declared_at: usize,
}

/// What is known of the whole session.
#[derive(Debug, Default)]
pub struct SessionFacts {
    /// The permission mode; silent until the first one.
    pub mode: Option<String>,
    /// The mode that holds for the next request only.
    pub mode_override: Option<String>,
    /// The plan.
    pub plan: PlanReport,
    /// The tasks.
    pub tasks: Tasks,
}

impl SessionFacts {
    /// The mode that holds for the next request.
    pub fn effective_mode(&self) -> Option<&str> {
        self.mode_override.as_deref().or(self.mode.as_deref())
    }

    /// Whether the conversation is making a plan.
    pub fn is_planning(&self) -> bool {
        self.plan.state == PlanState::Active || self.effective_mode() == Some(PLAN_MODE)
    }
}

/// What is known of one scope.
#[derive(Debug, Default)]
pub struct ScopeFacts {
    /// Pools of names.
    pub pools: BTreeMap<String, Pool>,
    /// Facts for the user's own rules.
    pub named: BTreeMap<String, Value>,
}

impl ScopeFacts {
    /// Sets a pool, or marks it as not known now. `records_told` says how many records history has.
    pub fn set_pool(
        &mut self,
        pool: &str,
        names: Option<&[PoolName]>,
        baseline: bool,
        records_told: usize,
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
        if baseline {
            pool.baseline = Some(listed());
            pool.declared_at = records_told;
        }
        if baseline || pool.seed.is_none() {
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
