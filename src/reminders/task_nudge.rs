//! `task-nudge`: open tasks that nobody has written for a while (`reminders.md` §3).
//!
//! It speaks to the root alone, when tasks are open, none was written for `after` turns (or
//! requests), and the last nudge is `cooldown` of them ago. It never speaks before the first write,
//! nor while a plan is being made: it must not pull a planning model towards the work.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::engine::{
    Definition, Policy, Proposal, Refusal, Reminder, ScopePath, Span, Speech, Task, Trigger, Unit,
    Value, View, short_name,
};
use crate::rules::read_settings;

/// Characters of a subject that are shown.
const SUBJECT_CHARS_MAX: usize = 200;
/// Tasks that are shown; a longer list says how many more there are.
const ROWS_MAX: usize = 100;

/// What the kind counts.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Counted {
    Turns,
    Requests,
}

/// The kind's own keys.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Settings {
    /// What is counted: ended turns, or committed WAITs. Profile `nudge` counts requests.
    unit: Counted,
    /// How many of them pass without a write of a task before it nudges.
    #[schemars(range(min = 1))]
    after: u64,
    /// How many of them lie at least between two nudges.
    #[schemars(range(min = 1))]
    cooldown: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { unit: Counted::Turns, after: 8, cooldown: 8 }
    }
}

/// The settings of profile `nudge`.
pub fn by_requests() -> Value {
    Value::Map([("unit".to_owned(), Value::from("requests"))].into())
}

/// Reminds of open tasks.
#[derive(Debug)]
pub struct TaskNudge {
    after: Span,
    cooldown: Span,
}

impl TaskNudge {
    /// Makes it of `{unit: "turns" | "requests", after, cooldown}`.
    pub fn new(definition: &Definition) -> Result<Self, Refusal> {
        let Settings { unit, after, cooldown } = read_settings(definition)?;
        let unit = match unit {
            Counted::Turns => Unit::Turns,
            Counted::Requests => Unit::Requests,
        };
        Ok(Self { after: Span { unit, count: after }, cooldown: Span { unit, count: cooldown } })
    }
}

impl Reminder for TaskNudge {
    fn policy(&self) -> Policy {
        Policy::new(Trigger::Always).cooling(self.cooldown)
    }

    fn propose(&self, view: &View<'_>) -> Proposal {
        let tasks = &view.facts.tasks;
        let Some(written) = tasks.last_write else {
            return Proposal::silent("no task was ever written", "after a task is written");
        };
        if tasks.open() == 0 {
            return Proposal::silent("no task is open", "after a task is opened");
        }
        if view.facts.is_planning() {
            return Proposal::silent("a plan is being made", "when planning ends");
        }
        let (unit, since) = match self.after.unit {
            Unit::Requests => (Unit::Requests, view.scope.requests - written.requests),
            unit => (unit, view.scope.turns_ended.saturating_sub(written.turns)),
        };
        if since < self.after.count {
            let numbers = [tasks.open() as u64, since, self.after.count];
            return match unit {
                Unit::Requests => Proposal::counting(
                    numbers,
                    |numbers| waits(numbers, Unit::Requests),
                    |numbers| left(numbers, Unit::Requests),
                ),
                _ => Proposal::counting(
                    numbers,
                    |numbers| waits(numbers, Unit::Turns),
                    |numbers| left(numbers, Unit::Turns),
                ),
            };
        }
        Proposal::Speak(vec![Speech::new("tasks", body(view, Span { unit, count: since }))])
    }
}

/// Why it is silent while tasks are open.
fn waits([open, since, after]: [u64; 3], unit: Unit) -> String {
    let (tasks, are) = if open == 1 { ("task", "is") } else { ("tasks", "are") };
    let (passed, after) = (Span { unit, count: since }, Span { unit, count: after });
    format!("{open} {tasks} {are} open, last written {passed} ago, and nudges after {after}")
}

/// When it nudges, unless a task is written.
fn left([_, since, after]: [u64; 3], unit: Unit) -> String {
    format!("in {}", Span { unit, count: after - since })
}

fn body(view: &View<'_>, stale: Span) -> String {
    let all = view.facts.tasks.all();
    let open: Vec<&Task> = all.iter().filter(|task| task.status.is_open()).copied().collect();
    // A blocker may be said from either side.
    // An id is unique for its owner only.
    let mut blockers: BTreeMap<(&ScopePath, &str), BTreeSet<&str>> = BTreeMap::new();
    let owned: BTreeSet<_> = open.iter().map(|task| (&task.owner, task.id.as_str())).collect();
    let ids: BTreeSet<&str> = open.iter().map(|task| task.id.as_str()).collect();
    for task in &open {
        for blocker in task.blocked_by.iter().filter(|blocker| ids.contains(blocker.as_str())) {
            blockers.entry((&task.owner, &task.id)).or_default().insert(blocker);
        }
        for blocked in &task.blocks {
            let own = owned.contains(&(&task.owner, blocked.as_str()));
            let meant =
                owned.iter().filter(|(owner, id)| id == blocked && (!own || **owner == task.owner));
            for meant in meant {
                blockers.entry(*meant).or_default().insert(&task.id);
            }
        }
    }
    let (own, children): (Vec<&Task>, Vec<&Task>) =
        open.iter().take(ROWS_MAX).partition(|task| task.owner.is_root());

    let mut text = format!("The task list has open work and was last written {stale} ago.\n");
    if !own.is_empty() {
        text.push_str("Your open tasks:\n");
        own.iter()
            .for_each(|task| row(&mut text, task, blockers.get(&(&task.owner, task.id.as_str()))));
    }
    if !children.is_empty() {
        text.push_str("Open tasks of agents:\n");
        children
            .iter()
            .for_each(|task| row(&mut text, task, blockers.get(&(&task.owner, task.id.as_str()))));
    }
    if open.len() > ROWS_MAX {
        let _ = writeln!(text, "… and {} more open tasks.", open.len() - ROWS_MAX);
    }
    if !children.is_empty() {
        text.push_str(
            "Reconcile an agent's tasks with its result, or follow up with it, before you change \
             their status.\n",
        );
    }
    text.push_str("If the list no longer matches the work, bring it up to date.");
    text
}

/// `- id [status] subject (owner) (blocked by …)`, on one line.
fn row(text: &mut String, task: &Task, blockers: Option<&BTreeSet<&str>>) {
    let id = short_name(&task.id, SUBJECT_CHARS_MAX);
    let subject = short_name(&task.subject, SUBJECT_CHARS_MAX);
    let _ = write!(text, "- {id} [{}] {subject}", task.status.name());
    if !task.owner.is_root() {
        let _ = write!(text, " (owner {})", short_name(task.owner.as_str(), SUBJECT_CHARS_MAX));
    }
    if let Some(blockers) = blockers {
        let blockers: Vec<_> =
            blockers.iter().map(|blocker| short_name(blocker, SUBJECT_CHARS_MAX)).collect();
        let _ = write!(text, " (blocked by {})", blockers.join(", "));
    }
    text.push('\n');
}
