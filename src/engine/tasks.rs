//! The session's tasks: one list, each task under its owner.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::facts::too_many;
use super::path::ScopePath;
use super::refusal::Refusal;

/// Tasks that a session holds at most.
pub const TASKS_MAX: usize = 10_000;

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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriteMark {
    /// Turns up to and with the one that wrote.
    pub turns: u64,
    /// Requests committed by then.
    pub requests: u64,
}

/// The session's tasks, by owner and id, each with its place in the order of writing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "KeptTasks", into = "KeptTasks")]
pub struct Tasks {
    by_owner: BTreeMap<(ScopePath, String), (u64, Task)>,
    written: u64,
    open: usize,
    /// When they were last written; `None` while nobody ever wrote.
    pub last_write: Option<WriteMark>,
}

/// The tasks as a snapshot keeps them: text has no maps whose names are pairs.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct KeptTasks {
    placed: Vec<(u64, Task)>,
    written: u64,
    last_write: Option<WriteMark>,
}

impl From<Tasks> for KeptTasks {
    fn from(tasks: Tasks) -> Self {
        let Tasks { by_owner, written, open: _, last_write } = tasks;
        Self { placed: by_owner.into_values().collect(), written, last_write }
    }
}

impl From<KeptTasks> for Tasks {
    fn from(kept: KeptTasks) -> Self {
        let KeptTasks { placed, written, last_write } = kept;
        let open = placed.iter().filter(|(_, task)| task.status.is_open()).count();
        let keyed =
            |(place, task): (u64, Task)| ((task.owner.clone(), task.id.clone()), (place, task));
        Self { by_owner: placed.into_iter().map(keyed).collect(), written, open, last_write }
    }
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
