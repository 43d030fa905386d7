//! The state that reminders speak about.

use super::{Reported, Result, agent_path, invalid, named, on_scope, on_session, path, value};
use crate::engine::{
    AttachedSkill, Budget, Charge, Event, GoalReport, Job, Mention, MentionKind, Mode,
    OfferedSkill, PlanReport, PlanState, PoolName, Scope, ScopePath, Session, Spent, Task,
    TaskStatus, Usage, Value,
};
use crate::files;
use reminderd_protocol::scope::Scope as WireScope;
use reminderd_protocol::state as wire_state;

/// `mode/set`
pub fn mode_set(params: wire_state::ModeSetParams) -> Result<Reported> {
    let name = named("mode", params.mode)?;
    let mode = Mode { name, overrides: params.override_once };
    Ok(on_session(params.session, Event::ModeSet(mode)))
}

/// `plan/set`. A state that this build does not know changes nothing.
pub fn plan_set(params: wire_state::PlanSetParams) -> Result<Reported> {
    let state = match params.state {
        wire_state::PlanState::Active => PlanState::Active,
        wire_state::PlanState::Accepted => PlanState::Accepted,
        wire_state::PlanState::None => PlanState::None,
        wire_state::PlanState::Unknown(_) => {
            let event = Event::PlanSet(PlanReport::default());
            let reported = on_session(params.session, event);
            return Ok(Reported { event: None, ..reported }.skipping(["plan.state"]));
        }
    };
    let plan = PlanReport {
        state,
        directive: params.directive.unwrap_or(false),
        episode: params.episode,
        address: params.address,
        content: params.content,
        verification_pending: params.verification_pending.unwrap_or(false),
    };
    Ok(on_session(params.session, Event::PlanSet(plan)))
}

/// `task/put`
pub fn task_put(params: wire_state::TaskPutParams) -> Result<Reported> {
    let path = path(&params.scope)?;
    let reassigns = params.task.owner.is_some();
    let (task, skipped) = task(params.task, &path)?;
    Ok(on_scope(params.scope, Event::TaskPut { task, reassigns })?.skipping(skipped))
}

/// `task/remove`
pub fn task_remove(params: wire_state::TaskRemoveParams) -> Result<Reported> {
    on_scope(params.scope, Event::TaskRemoved { id: params.id })
}

/// `task/replace`: the scope's own list, so that an owner that is named is the scope.
pub fn task_replace(params: wire_state::TaskReplaceParams) -> Result<Reported> {
    let path = path(&params.scope)?;
    let mut tasks = Vec::with_capacity(params.tasks.len());
    let mut skipped = Vec::new();
    for given in params.tasks {
        let (mut task, unknown) = task(given, &path)?;
        task.owner.clone_from(&path);
        skipped.extend(unknown);
        tasks.push(task);
    }
    Ok(on_scope(params.scope, Event::TasksReplaced { tasks })?.skipping(skipped))
}

fn task(given: wire_state::Task, scope: &ScopePath) -> Result<(Task, Option<&'static str>)> {
    let (status, skipped) = match given.status {
        wire_state::TaskStatus::Pending => (TaskStatus::Pending, None),
        wire_state::TaskStatus::InProgress => (TaskStatus::InProgress, None),
        wire_state::TaskStatus::Completed => (TaskStatus::Completed, None),
        wire_state::TaskStatus::Unknown(name) => (TaskStatus::Other(name), Some("task.status")),
    };
    let owner = match given.owner.as_deref() {
        None => scope.clone(),
        // A model's own name for the root conversation.
        Some("/") => ScopePath::ROOT,
        owner => agent_path(owner)?,
    };
    let task = Task {
        id: named("task.id", given.id)?,
        subject: given.subject,
        status,
        owner,
        blocked_by: given.blocked_by,
        blocks: given.blocks,
        description: given.description,
    };
    Ok((task, skipped))
}

/// A task on the wire.
pub fn wire_task(task: &Task) -> wire_state::Task {
    wire_state::Task {
        id: task.id.clone(),
        subject: task.subject.clone(),
        status: task.status.name().into(),
        owner: (!task.owner.is_root()).then(|| task.owner.as_str().to_owned()),
        blocked_by: task.blocked_by.clone(),
        blocks: task.blocks.clone(),
        description: task.description.clone(),
    }
}

/// What telling something has cost so far.
pub fn spent(spent: Spent) -> wire_state::Spent {
    wire_state::Spent { entries: spent.entries, tokens: spent.tokens }
}

fn budget(session: &Session, scope: &Scope) -> wire_state::BudgetState {
    let Budget { per_wait, per_session } = session.configuration().budget;
    let left = per_session.map(|budget| budget.saturating_sub(scope.history.tokens()));
    wire_state::BudgetState { per_wait, per_session, left }
}

/// `pool/set`
pub fn pool_set(params: wire_state::PoolSetParams) -> Result<Reported> {
    let name =
        |given: wire_state::PoolName| PoolName { name: given.name, description: given.description };
    let event = Event::PoolSet {
        pool: named("pool", params.pool)?,
        names: params.names.map(|names| names.into_iter().map(name).collect()),
        baseline: params.baseline,
    };
    on_scope(params.scope, event)
}

/// `fact/set`
pub fn fact_set(params: wire_state::FactSetParams) -> Result<Reported> {
    let event = Event::FactSet { name: named("name", params.name)?, value: value(params.value) };
    on_scope(params.scope, event)
}

/// `goal/set`
pub fn goal_set(params: wire_state::GoalSetParams) -> Result<Reported> {
    let goal = |goal: wire_state::Goal| GoalReport {
        id: goal.id,
        objective: goal.objective,
        budget: goal.budget,
        plan: goal.plan,
    };
    Ok(on_session(params.session, Event::GoalSet(params.goal.map(goal))))
}

/// `goal/charge`
pub fn goal_charge(params: wire_state::GoalChargeParams) -> Result<Reported> {
    let charge = match (params.used, params.delta) {
        (Some(used), None) => Charge::Total(used),
        (None, Some(delta)) => Charge::Delta(delta),
        _ => {
            return Err(invalid(
                "goal/charge has one of used (the running total) and delta (what comes on top)",
            ));
        }
    };
    on_scope(params.scope, Event::GoalCharged(charge))
}

/// `usage/report`
pub fn usage_report(params: wire_state::UsageReportParams) -> Result<Reported> {
    let usage = Usage { used: params.used, usable: params.usable, compacts_at: params.compacts_at };
    on_scope(params.scope, Event::UsageReported(usage))
}

/// `section/set`: absent content is an emptied section, and only `unavailable` is silent.
pub fn section_set(params: wire_state::SectionSetParams) -> Result<Reported> {
    let (content, skipped) = match (params.state, params.content) {
        (Some(wire_state::SectionState::Unavailable), _) => (None, None),
        (Some(wire_state::SectionState::Absent), _) => (Some(String::new()), None),
        (Some(wire_state::SectionState::Unknown(_)), content) => {
            (Some(content.unwrap_or_default()), Some("section.state"))
        }
        (_, content) => (Some(content.unwrap_or_default()), None),
    };
    let event = Event::SectionSet { section: named("section", params.section)?, content };
    Ok(on_scope(params.scope, event)?.skipping(skipped))
}

/// `mention/add`. A kind that this build does not know counts as a reference.
pub fn mention_add(params: wire_state::MentionAddParams) -> Result<Reported> {
    let (kind, skipped) = match params.kind {
        wire_state::MentionKind::Ref => (MentionKind::Ref, None),
        wire_state::MentionKind::File => (MentionKind::File, None),
        wire_state::MentionKind::Mcp => (MentionKind::Mcp, None),
        wire_state::MentionKind::Agent => (MentionKind::Agent, None),
        wire_state::MentionKind::Unknown(_) => (MentionKind::Ref, Some("mention.kind")),
    };
    let range = match params.range {
        None => None,
        Some(range) if range.start >= 1 && range.start <= range.end => {
            Some((range.start, range.end))
        }
        Some(range) => {
            return Err(invalid(format!(
                "mention/add: range {}-{} is none: lines count from 1, and the end is not before \
                 the start",
                range.start, range.end
            )));
        }
    };
    let target = named("target", params.target)?;
    let mention = Mention {
        kind,
        target: if kind == MentionKind::File { files::identity::path_of(&target) } else { target },
        range,
        content: params.content,
        rejected: params.rejected,
    };
    Ok(on_scope(params.scope, Event::Mentioned(mention))?.skipping(skipped))
}

/// `skill/offer`
pub fn skill_offer(params: wire_state::SkillOfferParams) -> Result<Reported> {
    // A skill that is visible already has nothing to activate.
    let dormant = params.skills.into_iter().filter(|skill| skill.visible != Some(true));
    let skills =
        dormant.map(|skill| OfferedSkill { name: skill.name, globs: skill.globs }).collect();
    on_scope(params.scope, Event::SkillsOffered(skills))
}

/// `skill/attach`: what a skill requires comes before it, each once.
pub fn skill_attach(params: wire_state::SkillAttachParams) -> Result<Reported> {
    let mut skills = Vec::new();
    flatten(params.skill, &mut skills)?;
    on_scope(params.scope, Event::SkillAttached(skills))
}

fn flatten(skill: wire_state::AttachedSkill, flat: &mut Vec<AttachedSkill>) -> Result<()> {
    for required in skill.requires {
        flatten(required, flat)?;
    }
    if !flat.iter().any(|known| known.name == skill.name) {
        flat.push(AttachedSkill { name: named("name", skill.name)?, body: skill.body });
    }
    Ok(())
}

/// `hook/context`
pub fn hook_context(params: wire_state::HookContextParams) -> Result<Reported> {
    let event = Event::HookContext {
        event: named("event", params.event)?,
        body: params.body,
        accepted: params.accepted,
    };
    Ok(on_session(params.session, event))
}

/// `hook/outcome`: only what blocked is told.
pub fn hook_outcome(params: wire_state::HookOutcomeParams) -> Result<Reported> {
    let event = named("event", params.event)?;
    let reported = on_scope(params.scope, Event::HookBlocked { event, reason: params.reason })?;
    Ok(match params.decision {
        wire_state::HookDecision::Block => reported,
        wire_state::HookDecision::Allow => Reported { event: None, ..reported },
        wire_state::HookDecision::Unknown(_) => {
            Reported { event: None, ..reported }.skipping(["hook.decision"])
        }
    })
}

/// `patch/revised`
pub fn patch_revised(params: wire_state::PatchRevisedParams) -> Result<Reported> {
    Ok(on_session(params.session, Event::PatchRevised { summary: params.summary }))
}

/// `verifier/started`
pub fn verifier_started(params: wire_state::VerifierStartedParams) -> Result<Reported> {
    Ok(on_session(params.session, Event::VerifierStarted))
}

/// `job/ended`
pub fn job_ended(params: wire_state::JobEndedParams) -> Result<Reported> {
    let job = Job { job: named("job", params.job)?, state: params.state, summary: params.summary };
    on_scope(params.scope, Event::JobEnded(job))
}

/// `date/set`
pub fn date_set(params: wire_state::DateSetParams) -> Result<Reported> {
    Ok(on_session(params.session, Event::DateSet { date: named("date", params.date)? }))
}

/// A scope of a session and a file that it names; addresses that are no files are never looked at.
pub fn file(scope: &WireScope, uri: &str) -> Result<(ScopePath, String)> {
    let uri = named("uri", uri.to_owned())?;
    Ok((path(scope)?, files::identity::path_of(&uri)))
}

/// The watched files of a session, for its state.
pub fn watched_files(
    count: files::Count,
    health: Option<files::Health>,
) -> wire_state::WatchedFilesState {
    let files::Count { watched, contents, dropped } = count;
    let watcher = health.map(|health| wire_state::WatcherState {
        degraded: health.shortfall(),
        directories: health.directories,
        heard: health.seen,
        rescans: health.rescans,
        late: health.late,
    });
    wire_state::WatchedFilesState { watched, contents, dropped, watcher }
}

/// Everything that the daemon believes about a scope.
pub fn state(session: &Session, scope: &Scope, wire_scope: WireScope) -> wire_state::SessionState {
    let facts = session.facts();
    let plan = &facts.plan;
    let plan = serde_json::json!({
        "state": match plan.state {
            PlanState::None => "none",
            PlanState::Active => "active",
            PlanState::Accepted => "accepted",
        },
        "directive": plan.directive,
        "episode": plan.episode,
        "address": plan.address,
        "verificationPending": plan.verification_pending,
    });
    let json = |given: &Value| serde_json::to_value(given).unwrap_or_default();
    let pool = |pool: &crate::engine::Pool| {
        if pool.known {
            serde_json::json!(pool.names.keys().collect::<Vec<_>>())
        } else {
            serde_json::Value::Null
        }
    };
    let agents = session.scopes().filter(|scope| !scope.path.is_root());
    wire_state::SessionState {
        root: session.root().map(str::to_owned),
        profile: session.profile().name().to_owned(),
        trusted: session.is_trusted(),
        turn: scope.turn.as_ref().map(|turn| wire_state::TurnState {
            id: turn.id.clone(),
            ordinal: scope.turns_ended + 1,
        }),
        counters: wire_state::Counters {
            turns: scope.turns_ended,
            requests: scope.requests,
            prompts: scope.prompts,
        },
        open_tokens: scope.tokens.open.len() as u64,
        queues: wire_state::QueueLengths {
            pending: if scope.path.is_root() { session.fifo().len() as u64 } else { 0 },
            turn_events: scope.queue.events().len() as u64,
            staged: scope.queue.staged().len() as u64,
        },
        mode: facts.effective_mode().map(str::to_owned),
        plan,
        tasks: facts.tasks.all().into_iter().map(wire_task).collect(),
        goal: facts.goal.as_ref().map_or(serde_json::Value::Null, |goal| {
            serde_json::json!({
                "id": goal.report.id,
                "objective": goal.report.objective,
                "budget": goal.report.budget,
                "plan": goal.report.plan,
                "used": goal.used,
            })
        }),
        usage: scope.facts.usage.map_or(serde_json::Value::Null, |usage| {
            serde_json::json!({
                "used": usage.used, "usable": usage.usable, "compactsAt": usage.compacts_at,
            })
        }),
        pools: scope.facts.pools.iter().map(|(name, it)| (name.clone(), pool(it))).collect(),
        sections: scope
            .facts
            .sections
            .iter()
            .map(|section| (section.name.clone(), serde_json::json!(section.content)))
            .collect(),
        facts: scope.facts.named.iter().map(|(name, it)| (name.clone(), json(it))).collect(),
        diagnostics: Vec::new(),
        files: wire_state::WatchedFilesState::default(),
        spent: scope.history.spent().map(|(kind, it)| (kind.to_owned(), spent(it))).collect(),
        budget: budget(session, scope),
        agents: agents
            .map(|agent| {
                serde_json::json!({
                    "agent": agent.path.as_str(),
                    "state": if agent.settled { "settled" } else { "running" },
                    "role": agent.role,
                    "maxRequests": agent.max_requests,
                    "requests": agent.requests,
                })
            })
            .collect(),
        skipped: session.skipped().clone(),
        notes: Vec::new(),
        scope: wire_scope,
    }
}
