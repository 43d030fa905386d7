//! The names that conditions and bodies may use (`configuration.md`, "Names in conditions and
//! bodies"). Names of things stand on one line, wherever a body puts them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;

use crate::engine::{PlanState, Value, View, one_line};

/// Everything that a template can name, taken from a view.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Names<'a> {
    facts: &'a BTreeMap<String, Value>,
    mode: Option<Cow<'a, str>>,
    plan: Plan,
    open_tasks: usize,
    tasks: Vec<Task<'a>>,
    turn: u64,
    request: u64,
    agent: Option<Cow<'a, str>>,
    pools: BTreeMap<&'a str, Vec<Cow<'a, str>>>,
    /// The names that came or went, in templates of pools alone.
    #[serde(rename = "names", skip_serializing_if = "Option::is_none")]
    changed: Option<Vec<Cow<'a, str>>>,
}

#[derive(Debug, Serialize)]
struct Plan {
    active: bool,
    accepted: bool,
}

#[derive(Debug, Serialize)]
struct Task<'a> {
    id: Cow<'a, str>,
    subject: Cow<'a, str>,
    status: Cow<'a, str>,
    owner: Cow<'a, str>,
}

/// The context of a template. `changed` are the names that came to or
/// went from a pool.
pub fn context(view: &View<'_>, changed: Option<&[String]>) -> minijinja::Value {
    let facts = view.facts;
    let known = view.scope.facts.pools.iter().filter(|(_, pool)| pool.known);
    minijinja::Value::from(minijinja::value::Serde(Names {
        facts: &view.scope.facts.named,
        mode: facts.effective_mode().map(one_line),
        plan: Plan {
            active: facts.is_planning(),
            accepted: facts.plan.state == PlanState::Accepted,
        },
        open_tasks: facts.tasks.open(),
        tasks: facts
            .tasks
            .all()
            .into_iter()
            .map(|task| Task {
                id: one_line(&task.id),
                subject: one_line(&task.subject),
                status: one_line(task.status.name()),
                owner: one_line(task.owner.as_str()),
            })
            .collect(),
        turn: view.moment.ordinals.turn,
        request: view.moment.ordinals.request,
        agent: Some(view.scope.path.as_str()).filter(|path| !path.is_empty()).map(one_line),
        pools: known
            .map(|(name, pool)| {
                (name.as_str(), pool.names.keys().map(|name| one_line(name)).collect())
            })
            .collect(),
        changed: changed.map(|names| names.iter().map(|name| one_line(name)).collect()),
    }))
}

/// Whether the scope offers a tool: by the pool `tools` where it is known, else by the host's
/// report. Where neither is known, no tool is.
pub fn offers_tool(view: &View<'_>, tool: &str) -> bool {
    if let Some(pool) = view.scope.facts.pools.get("tools").filter(|pool| pool.known) {
        return pool.names.contains_key(tool);
    }
    view.moment.host.tools.as_ref().is_some_and(|tools| tools.iter().any(|name| name == tool))
}
