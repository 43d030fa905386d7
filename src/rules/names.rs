//! The names that conditions and bodies may use (`configuration.md`, "Names in conditions and
//! bodies"). Names of things stand on one line, wherever a body puts them.
//!
//! Each name is worked out once a WAIT, for the first reminder that may use it.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use minijinja::Value;
use minijinja::value::Serde;
use serde::Serialize;

use super::language::has_word;
use crate::engine::{self, FinishedCall, PlanState, Touch, View, one_line};

/// A name of the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    Facts,
    Mode,
    Plan,
    OpenTasks,
    Tasks,
    Goal,
    Usage,
    Turn,
    Request,
    Agent,
    Paths,
    Written,
    Calls,
    Pools,
    Date,
    /// The names that came or went, in templates of pools alone.
    Names,
}

/// How each is spelt, and the members that it has; none where they are the client's.
const NAMES: &[(Name, &str, &[&str])] = &[
    (Name::Facts, "facts", &[]),
    (Name::Mode, "mode", &[]),
    (Name::Plan, "plan", &["active", "accepted"]),
    (Name::OpenTasks, "openTasks", &[]),
    (Name::Tasks, "tasks", &[]),
    (Name::Goal, "goal", &["used", "budget"]),
    (Name::Usage, "usage", &["used", "usable", "ratio"]),
    (Name::Turn, "turn", &[]),
    (Name::Request, "request", &[]),
    (Name::Agent, "agent", &[]),
    (Name::Paths, "paths", &[]),
    (Name::Written, "written", &[]),
    (Name::Calls, "calls", &[]),
    (Name::Pools, "pools", &[]),
    (Name::Date, "date", &[]),
    (Name::Names, "names", &[]),
];

/// The members of a name, if there is such a name: none where they are the client's.
pub fn members(name: &str, of_pools: bool) -> Option<&'static [&'static str]> {
    let mut rows = NAMES.iter().filter(|(it, ..)| of_pools || *it != Name::Names);
    rows.find(|(_, spelt, _)| *spelt == name).map(|(.., members)| *members)
}

/// All names that a source may use.
pub fn all(of_pools: bool) -> impl Iterator<Item = &'static str> {
    let rows = NAMES.iter().filter(move |(it, ..)| of_pools || *it != Name::Names);
    rows.map(|(_, spelt, _)| *spelt)
}

impl Name {
    /// Those that a source may ask for: every one that stands in it as a word.
    pub fn used_in(source: &str) -> Vec<Self> {
        let used = NAMES.iter().filter(|(_, spelt, _)| has_word(source, spelt));
        used.map(|(name, ..)| *name).collect()
    }

    fn spelt(self) -> &'static str {
        NAMES[self as usize].1
    }

    /// What it stands for, unless the reminder has an own meaning for it; nothing while it is
    /// unknown.
    fn of(self, view: &View<'_>) -> Option<Value> {
        let facts = view.facts;
        let own = &view.scope.facts;
        Some(match self {
            Self::Facts => Value::from(Serde(&own.named)),
            Self::Mode => Value::from(facts.effective_mode().map(line)),
            Self::Plan => Value::from(Serde(Plan {
                active: facts.is_planning(),
                accepted: facts.plan.state == PlanState::Accepted,
            })),
            Self::OpenTasks => Value::from(facts.tasks.open()),
            Self::Tasks => facts
                .tasks
                .all()
                .into_iter()
                .map(|task| {
                    Value::from(Serde(Task {
                        id: line(&task.id),
                        subject: line(&task.subject),
                        status: line(task.status.name()),
                        owner: line(task.owner.as_str()),
                    }))
                })
                .collect(),
            Self::Goal => {
                let goal = facts.goal.as_ref()?;
                Value::from(Serde(Goal { used: goal.used, budget: goal.report.budget }))
            }
            Self::Usage => Value::from(Serde(Usage::of(own.usage?))),
            Self::Turn => Value::from(view.moment.ordinals.turn),
            Self::Request => Value::from(view.moment.ordinals.request),
            Self::Agent => {
                Value::from(Some(view.scope.path.as_str()).filter(|it| !it.is_empty()).map(line))
            }
            Self::Paths => paths(view, own.touched.iter()),
            Self::Written => written(view, own.touched.iter()),
            Self::Calls => calls(view.scope.calls.finished()),
            Self::Pools => {
                let known = own.pools.iter().filter(|(_, pool)| pool.known);
                let listed = known.map(|(name, pool)| {
                    (name.clone(), pool.names.keys().map(|name| line(name)).collect::<Value>())
                });
                Value::from(listed.collect::<BTreeMap<_, _>>())
            }
            Self::Date => Value::from(line(facts.date.as_deref()?)),
            Self::Names => return None,
        })
    }
}

#[derive(Serialize)]
struct Plan {
    active: bool,
    accepted: bool,
}

#[derive(Serialize)]
struct Task {
    id: String,
    subject: String,
    status: String,
    owner: String,
}

#[derive(Serialize)]
struct Goal {
    used: u64,
    budget: Option<u64>,
}

#[derive(Serialize)]
struct Usage {
    used: u64,
    usable: u64,
    ratio: f64,
}

impl Usage {
    fn of(usage: engine::Usage) -> Self {
        let engine::Usage { used, usable, .. } = usage;
        // Tokens are counted far below where a float would round them.
        #[allow(clippy::cast_precision_loss)]
        let ratio = if usable == 0 { 0.0 } else { used as f64 / usable as f64 };
        Self { used, usable, ratio }
    }
}

#[derive(Serialize)]
struct Call<'a> {
    name: String,
    ok: bool,
    input: Option<&'a engine::Value>,
}

fn line(text: &str) -> String {
    one_line(text).into_owned()
}

/// A path below the root, relative to it.
pub fn below_root<'a>(view: &View<'_>, path: &'a str) -> Option<&'a str> {
    path.strip_prefix(view.root?.trim_end_matches('/'))?.strip_prefix('/')
}

fn paths<'a>(view: &View<'_>, touched: impl Iterator<Item = (&'a String, &'a Touch)>) -> Value {
    touched.map(|(path, _)| line(below_root(view, path).unwrap_or(path))).collect()
}

fn written<'a>(view: &View<'_>, touched: impl Iterator<Item = (&'a String, &'a Touch)>) -> Value {
    paths(view, touched.filter(|(_, touch)| touch.wrote || touch.edited))
}

fn calls<'a>(finished: impl Iterator<Item = &'a FinishedCall>) -> Value {
    let call = |call: &'a FinishedCall| {
        let input = call.input.as_ref().map(|input| &input.value);
        Value::from(Serde(Call { name: line(&call.name), ok: call.ok, input }))
    };
    finished.map(call).collect()
}

/// What a reminder itself gives some names to mean, in place of what they stand for elsewhere.
#[derive(Clone, Copy, Debug, Default)]
pub struct Own<'a> {
    /// The names that came to or went from its pool.
    pub names: Option<&'a [String]>,
    /// The touched paths that its globs matched.
    pub touched: Option<&'a [(&'a String, &'a Touch)]>,
    /// The finished calls that its pattern matched.
    pub calls: Option<&'a [&'a FinishedCall]>,
}

impl Own<'_> {
    fn of(&self, name: Name, view: &View<'_>) -> Option<Value> {
        match name {
            Name::Names => Some(self.names?.iter().map(|name| line(name)).collect()),
            Name::Paths => Some(paths(view, self.touched?.iter().copied())),
            Name::Written => Some(written(view, self.touched?.iter().copied())),
            Name::Calls => Some(calls(self.calls?.iter().copied())),
            _ => None,
        }
    }
}

/// What was worked out for one WAIT.
#[derive(Default)]
struct State([OnceCell<Option<Value>>; NAMES.len()]);

/// The context of a template or expression that may ask for these names.
pub fn context(view: &View<'_>, uses: &[Name], own: Own<'_>) -> Value {
    let state = view.workings.of::<State>();
    let known = uses.iter().filter_map(|name| {
        let value = own.of(*name, view);
        let value = value.or_else(|| state.0[*name as usize].get_or_init(|| name.of(view)).clone());
        Some((name.spelt(), value?))
    });
    Value::from(known.collect::<BTreeMap<_, _>>())
}

/// Whether the scope offers a tool: by the pool `tools` where it is known, else by the host's
/// report. Where neither is known, no tool is.
pub fn offers_tool(view: &View<'_>, tool: &str) -> bool {
    if let Some(pool) = view.scope.facts.pools.get("tools").filter(|pool| pool.known) {
        return pool.names.contains_key(tool);
    }
    view.moment.host.tools.as_ref().is_some_and(|tools| tools.iter().any(|name| name == tool))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_finds_its_row() {
        for (place, (name, ..)) in NAMES.iter().enumerate() {
            assert_eq!(*name as usize, place);
        }
    }
}
