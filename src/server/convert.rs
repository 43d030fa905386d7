//! Wire types to the engine's, and back: the only place that knows both (law 10 of the
//! architecture).

use reminderd_protocol::agent::{AgentOutcome, AgentSettleParams, AgentSpawnParams};
use reminderd_protocol::error::{ErrorKind, ErrorObject};
use reminderd_protocol::files::{FileReadParams, FileWroteParams};
use reminderd_protocol::history::{self as wire_history, CompactionEngine};
use reminderd_protocol::queue::{
    AcknowledgeParams, EnqueueParams, ObserveParams, StageParams, WithdrawParams,
};
use reminderd_protocol::record as wire_record;
use reminderd_protocol::roster::{
    ExplainRow, KindSwitches, Lane as WireLane, ReminderForm, ReminderScope, RosterConfigureParams,
    RosterRegisterParams, RosterRemoveParams, RosterRow, RosterSource,
};
use reminderd_protocol::scope::Scope as WireScope;
use reminderd_protocol::session::{
    ForkReport, ForkWorktree, HostForm, HostHistory, HostPersists, HostReceipts, HostRender,
    RecordsReport, RejectedRecord, SessionOpenParams,
};
use reminderd_protocol::state as wire_state;
use reminderd_protocol::turn::{
    ToolBeginParams, ToolEndParams, TurnBeginParams, TurnEndParams, TurnOutcome as WireTurnOutcome,
};
use reminderd_protocol::wait as wire_wait;

use crate::engine::{
    AttachedSkill, Audience, Charge, Definition, Delivered, Delivery, Entry, Event, Explanation,
    Form, GoalReport, HostReport, Job, Lane, Limit, Member, Mention, MentionKind, Mode,
    OfferedSkill, Opened, Opening, Ordinals, Phase, PlanReport, PlanState, PoolName, Profile,
    Record, Refusal, RefusalKind, Retained, Scope, ScopePath, Seam, Session, SettleOutcome,
    SilentEntry, Source, Switch, Switches, Task, TaskStatus, TurnOutcome, Usage, Value,
    WaitRequest, Waiter, Worktree,
};
use crate::{files, reminders};

/// An event of a client, and which of its values this build does not know.
#[derive(Debug)]
pub struct Reported {
    /// The session's name.
    pub session: String,
    /// The scope within it.
    pub scope: ScopePath,
    /// What happened; nothing when only unknown values came.
    pub event: Option<Event>,
    /// What unknown values were, as `session/state` counts them.
    pub skipped: Vec<&'static str>,
}

type Result<T> = std::result::Result<T, ErrorObject>;

/// A refusal of the engine as an error on the wire.
pub fn error(refusal: &Refusal) -> ErrorObject {
    let kind = match refusal.kind {
        RefusalKind::InvalidParams => ErrorKind::InvalidParams,
        RefusalKind::UnknownAgent => ErrorKind::UnknownAgent,
        RefusalKind::NoTurn => ErrorKind::NoTurn,
        RefusalKind::NotReady => ErrorKind::NotReady,
        RefusalKind::UnknownToken => ErrorKind::UnknownToken,
        RefusalKind::TokenReleased => ErrorKind::TokenReleased,
        RefusalKind::TokenExpired => ErrorKind::TokenExpired,
        RefusalKind::LimitExceeded => ErrorKind::LimitExceeded,
        RefusalKind::BadRecord => ErrorKind::BadRecord,
    };
    ErrorObject::new(kind, refusal.message.clone())
}

fn invalid(message: impl Into<String>) -> ErrorObject {
    ErrorObject::new(ErrorKind::InvalidParams, message)
}

/// The scope within its session.
pub fn path(scope: &WireScope) -> Result<ScopePath> {
    agent_path(scope.agent.as_deref())
}

fn agent_path(agent: Option<&str>) -> Result<ScopePath> {
    match agent {
        None | Some("") => Ok(ScopePath::ROOT),
        Some(agent) => ScopePath::agent(agent).map_err(|refusal| error(&refusal)),
    }
}

fn on_scope(scope: WireScope, event: Event) -> Result<Reported> {
    let path = path(&scope)?;
    Ok(Reported { session: scope.session, scope: path, event: Some(event), skipped: Vec::new() })
}

fn on_session(session: String, event: Event) -> Reported {
    Reported { session, scope: ScopePath::ROOT, event: Some(event), skipped: Vec::new() }
}

impl Reported {
    /// Notes a value that this build does not know.
    fn skipping(mut self, what: impl IntoIterator<Item = &'static str>) -> Self {
        self.skipped.extend(what);
        self
    }
}

/// Plain data of the wire as the engine's. Not by serde, whose way to find the variant is to try
/// one after the other, with an error for each that it is not.
fn value(json: serde_json::Value) -> Value {
    match json {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(bool) => Value::Bool(bool),
        serde_json::Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => Value::Integer(number),
            (None, Some(number)) => Value::Unsigned(number),
            (None, None) => number.as_f64().map_or(Value::Null, Value::Float),
        },
        serde_json::Value::String(text) => Value::Text(text),
        serde_json::Value::Array(items) => Value::List(items.into_iter().map(value).collect()),
        serde_json::Value::Object(members) => {
            Value::Map(members.into_iter().map(|(name, json)| (name, value(json))).collect())
        }
    }
}

// Sessions and rosters

/// What `session/open` brings.
#[derive(Debug)]
pub struct Parsed {
    /// What the engine opens with.
    pub opening: Opening,
    /// Records that cannot even be read: rejected alone.
    pub unreadable: Vec<RejectedRecord>,
    /// What values were that this build does not know.
    pub skipped: Vec<&'static str>,
}

/// `session/open`
pub fn opening(params: SessionOpenParams) -> Result<Parsed> {
    let profile = match params.profile.as_deref() {
        None => None,
        Some(name) => {
            let known = Profile::ALL.into_iter().find(|profile| profile.name() == name);
            Some(known.ok_or_else(|| {
                let names = Profile::ALL.map(Profile::name).join(", ");
                invalid(format!("profile {name:?} is unknown: write one of {names}"))
            })?)
        }
    };
    let mut unreadable = Vec::new();
    let records = params.records.map(|records| {
        let mut read = Vec::with_capacity(records.len());
        for (index, json) in records.into_iter().enumerate() {
            // A record that does not even say its id goes by its place.
            let id = json["id"].as_str().map_or_else(|| format!("#{}", index + 1), str::to_owned);
            match serde_json::from_value::<wire_record::InjectionRecord>(json) {
                Ok(record) => match self::record(record) {
                    Ok(record) => read.push(record),
                    Err(error) => {
                        unreadable.push(RejectedRecord { id, reason: error.message });
                    }
                },
                Err(error) => {
                    unreadable
                        .push(RejectedRecord { id, reason: format!("is no record: {error}") });
                }
            }
        }
        read
    });
    let mut skipped = Vec::new();
    let host = params.host.map(|form| host(form, &mut skipped)).unwrap_or_default();
    let mut reminders = Vec::with_capacity(params.reminders.len());
    for form in params.reminders {
        reminders.push(definition(form, &mut skipped)?);
    }
    let opening = Opening {
        root: params.root.map(|root| files::identity::path_of(&root)),
        profile,
        kinds: params.kinds.map(switches).unwrap_or_default(),
        reminders,
        host,
        records,
        trusted: params.trusted,
    };
    Ok(Parsed { opening, unreadable, skipped })
}

/// The worktree of a fork, and the report that its model is told.
pub fn fork(
    worktree: Option<ForkWorktree>,
    report: Option<ForkReport>,
) -> (Option<Worktree>, Option<String>) {
    let worktree =
        worktree.map(|it| Worktree { directory: it.directory, branch: it.branch, base: it.base });
    let report = report
        .map(|it| reminders::fork_report(it.restored, &it.unrestored, &it.external, &it.dropped));
    (worktree, report)
}

/// What the host does. A word that this build does not know changes nothing.
fn host(form: HostForm, skipped: &mut Vec<&'static str>) -> HostReport {
    let mut known = |what: &'static str, value: Option<bool>, is_unknown: bool| {
        if is_unknown {
            skipped.push(what);
            return None;
        }
        value
    };
    let HostForm { history, receipts, render, persists, .. } = &form;
    HostReport {
        native: known(
            "host.history",
            history.as_ref().map(|it| *it == HostHistory::Native),
            history.as_ref().is_some_and(HostHistory::is_unknown),
        ),
        late_receipts: known(
            "host.receipts",
            receipts.as_ref().map(|it| *it == HostReceipts::Late),
            receipts.as_ref().is_some_and(HostReceipts::is_unknown),
        ),
        plain: known(
            "host.render",
            render.as_ref().map(|it| *it == HostRender::Plain),
            render.as_ref().is_some_and(HostRender::is_unknown),
        ),
        replays: known(
            "host.persists",
            persists.as_ref().map(|it| *it == HostPersists::None),
            persists.as_ref().is_some_and(HostPersists::is_unknown),
        ),
        limit: Limit {
            bytes: form.max_bytes,
            chars: form.max_chars,
            utf16: form.max_utf16,
            tokens: None,
        },
        tools: form.tools,
    }
}

fn switches(kinds: KindSwitches) -> Switches {
    let switch = |json: serde_json::Value| match json {
        serde_json::Value::Bool(false) => Switch::Off,
        serde_json::Value::Object(_) => Switch::On(value(json)),
        _ => Switch::On(Value::empty_map()),
    };
    kinds.0.into_iter().map(|(name, json)| (name, switch(json))).collect()
}

/// A reminder of the user's own, as data.
fn definition(mut form: ReminderForm, skipped: &mut Vec<&'static str>) -> Result<Definition> {
    let id = form.id.clone();
    if id.trim().is_empty() || id.len() > 200 {
        return Err(invalid("a reminder's id has 1 to 200 bytes: give it a name"));
    }
    if form.when.is_some() || form.tool.is_some() || !form.globs.is_empty() {
        return Err(ErrorObject::new(
            ErrorKind::NotYet,
            format!("{id}: this build has no conditions yet: leave out when, globs and tool"),
        ));
    }
    let kind = match (&form.body, &form.pool, form.client == Some(true)) {
        (Some(_), None, false) => "standing-text",
        (None, Some(_), false) => "announced-delta",
        (None, None, true) => "client-generator",
        _ => {
            return Err(invalid(format!(
                "{id}: a reminder has one of body (a text), pool (announced changes) and client = \
                 true (computed by the client)"
            )));
        }
    };
    if form.lane.take_if(|lane| lane.is_unknown()).is_some() {
        skipped.push("reminder.lane");
    }
    let scopes = form.scopes.iter().flatten();
    skipped.extend(scopes.filter(|scope| scope.is_unknown()).map(|_| "reminder.scopes"));
    let audience = match form.scopes.as_deref() {
        None => Audience::ROOT,
        Some(scopes) => Audience {
            root: scopes.contains(&ReminderScope::Root),
            agents: scopes.contains(&ReminderScope::Agents),
        },
    };
    let mut settings = serde_json::to_value(form).map_err(|error| invalid(error.to_string()))?;
    if let Some(members) = settings.as_object_mut() {
        for name in ["id", "scopes", "client"] {
            members.remove(name);
        }
    }
    Ok(Definition { id, kind: kind.to_owned(), settings: value(settings), audience })
}

/// The roster of a scope: what was asked for, not what the daemon always has.
pub fn roster(scope: &Scope) -> Vec<RosterRow> {
    let listed = scope.roster.iter().filter(|member| member.source != Source::Standing);
    listed.map(roster_row).collect()
}

fn roster_row(member: &Member) -> RosterRow {
    RosterRow {
        id: member.id().to_owned(),
        kind: member.definition.kind.clone(),
        enabled: member.enabled,
        policy: member.reminder.stated_policy().to_string(),
        source: match member.source {
            Source::Default | Source::Standing => RosterSource::Default,
            Source::Client => RosterSource::Client,
        },
    }
}

/// `roster/register`
pub fn register(params: RosterRegisterParams) -> Result<Reported> {
    let mut skipped = Vec::new();
    let definition = definition(params.reminder, &mut skipped)?;
    Ok(on_scope(params.scope, Event::Registered(definition))?.skipping(skipped))
}

/// `roster/remove`
pub fn remove(params: RosterRemoveParams) -> Result<Reported> {
    on_scope(params.scope, Event::Removed { id: params.id })
}

/// `roster/configure`
pub fn configure(params: RosterConfigureParams) -> Result<Reported> {
    on_scope(params.scope, Event::Configured(switches(params.kinds)))
}

/// `roster/reset`
pub fn reset(scope: WireScope) -> Result<Reported> {
    on_scope(scope, Event::Reset)
}

// Turns and agents

/// `turn/begin`
pub fn turn_begin(params: TurnBeginParams) -> Result<Reported> {
    on_scope(params.scope, Event::TurnBegan { turn: params.turn })
}

/// `turn/end`. An outcome that this build does not know ends the turn all the same.
pub fn turn_end(params: TurnEndParams) -> Result<Reported> {
    let (outcome, skipped) = match params.outcome {
        WireTurnOutcome::Completed => (TurnOutcome::Completed, None),
        WireTurnOutcome::Cancelled => (TurnOutcome::Cancelled, None),
        WireTurnOutcome::Failed => (TurnOutcome::Failed, None),
        WireTurnOutcome::Unknown(_) => (TurnOutcome::Abandoned, Some("turn.outcome")),
    };
    let reported = on_scope(params.scope, Event::TurnEnded { turn: params.turn, outcome })?;
    Ok(reported.skipping(skipped))
}

/// `tool/begin`
pub fn tool_begin(params: ToolBeginParams) -> Result<Reported> {
    on_scope(params.scope, Event::CallBegan { call: params.call })
}

/// `tool/end`
pub fn tool_end(params: ToolEndParams) -> Result<Reported> {
    on_scope(params.scope, Event::CallEnded { call: params.call })
}

/// `agent/spawn`
pub fn agent_spawn(params: AgentSpawnParams) -> Result<Reported> {
    let scope = WireScope { session: params.session, agent: Some(params.agent) };
    on_scope(
        scope,
        Event::AgentSpawned {
            kinds: params.kinds.map(switches).unwrap_or_default(),
            max_requests: params.max_requests,
            role: params.role,
        },
    )
}

/// `agent/settle`. An outcome that this build does not know leaves the agent's tasks open.
pub fn agent_settle(params: AgentSettleParams) -> Result<Reported> {
    let (outcome, skipped) = match params.outcome {
        AgentOutcome::Succeeded => (SettleOutcome::Succeeded, None),
        AgentOutcome::Failed => (SettleOutcome::Failed, None),
        AgentOutcome::Interrupted => (SettleOutcome::Interrupted, None),
        AgentOutcome::Unknown(_) => (SettleOutcome::Interrupted, Some("agent.outcome")),
    };
    let scope = WireScope { session: params.session, agent: Some(params.agent) };
    Ok(on_scope(scope, Event::AgentSettled { outcome })?.skipping(skipped))
}

// What a client puts in directly

/// `reminder/stage`
pub fn stage(params: StageParams) -> Result<Reported> {
    let (lane, skipped) = match params.lane {
        None | Some(WireLane::Mention) => (Lane::Mention, None),
        Some(WireLane::Skill) => (Lane::Skill, None),
        Some(WireLane::Compaction) => (Lane::Compaction, None),
        Some(WireLane::Steering) => (Lane::Steering, None),
        // The other lanes are not a client's to stage in.
        Some(_) => (Lane::Mention, Some("stage.lane")),
    };
    let event = Event::Staged {
        lane,
        entry_type: named("type", params.entry_type)?,
        key: params.key,
        label: params.label,
        body: params.body,
    };
    Ok(on_scope(params.scope, event)?.skipping(skipped))
}

/// `reminder/observe`
pub fn observe(params: ObserveParams) -> Result<Reported> {
    let event = Event::Observed {
        turn: params.turn,
        key: params.key,
        entry_type: named("type", params.entry_type)?,
        body: params.body,
    };
    on_scope(params.scope, event)
}

/// `reminder/enqueue`
pub fn enqueue(params: EnqueueParams) -> Result<Reported> {
    let event = Event::Enqueued { name: params.entry_type, body: params.body };
    Ok(on_session(params.session, event))
}

/// `reminder/withdraw`
pub fn withdraw(params: WithdrawParams) -> Result<Reported> {
    on_scope(params.scope, Event::Withdrawn { key: params.key })
}

/// `reminder/acknowledge`
pub fn acknowledge(params: AcknowledgeParams) -> Result<Reported> {
    let event = Event::Acknowledged {
        reminder: params.kind,
        key: params.key,
        fingerprint: params.fingerprint,
    };
    on_scope(params.scope, event)
}

fn named(member: &str, name: String) -> Result<String> {
    if name.trim().is_empty() {
        return Err(invalid(format!("`{member}` is blank: say what the entry is about")));
    }
    Ok(name)
}

// History

/// `history/compacted`. A word that this build does not know changes nothing.
pub fn compacted(params: wire_history::HistoryCompactedParams) -> Result<Reported> {
    let retained = match params.retained {
        wire_history::Retained::None => Retained::None,
        wire_history::Retained::All => Retained::All,
        wire_history::Retained::Records(ids) => Retained::Records(ids),
        wire_history::Retained::Unknown(_) => {
            let nothing = Event::Compacted { retained: Retained::All, native: false };
            let reported = on_scope(params.scope, nothing)?;
            return Ok(Reported { event: None, ..reported }.skipping(["history.retained"]));
        }
    };
    let (native, skipped) = match params.engine {
        None | Some(CompactionEngine::Client) => (false, None),
        Some(CompactionEngine::Native) => (true, None),
        Some(CompactionEngine::Unknown(_)) => (false, Some("history.engine")),
    };
    Ok(on_scope(params.scope, Event::Compacted { retained, native })?.skipping(skipped))
}

/// `history/rewound`
pub fn rewound(params: wire_history::HistoryRewoundParams) -> Result<Reported> {
    on_scope(params.scope, Event::Rewound { through: params.through })
}

/// `history/cleared`
pub fn cleared(scope: WireScope) -> Result<Reported> {
    on_scope(scope, Event::Cleared)
}

/// `history/reported`
pub fn history_reported(params: wire_history::HistoryReportedParams) -> Result<Reported> {
    on_scope(params.scope, Event::HistoryReported { records: params.records })
}

/// A row of `reminder/history`.
pub fn history_row(delivered: &Delivered) -> wire_history::HistoryRow {
    wire_history::HistoryRow {
        at: delivered.at,
        retained: delivered.lost.is_none(),
        placement: delivered.placement.clone(),
        record: wire_record(delivered.record.clone()),
    }
}

// State

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

/// `file/read`. Addresses that are no files are never looked at.
pub fn file_read(params: FileReadParams) -> Result<Reported> {
    let whole = !params.partial && params.pages.is_none();
    touched(params.scope, &params.uri, false, whole)
}

/// `file/wrote`
pub fn file_wrote(params: FileWroteParams) -> Result<Reported> {
    touched(params.scope, &params.uri, true, false)
}

fn touched(scope: WireScope, uri: &str, wrote: bool, whole: bool) -> Result<Reported> {
    let uri = named("uri", uri.to_owned())?;
    let event = Event::Touched { path: files::identity::path_of(&uri), wrote, whole };
    on_scope(scope, event)
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

// The WAIT

/// `reminder/wait`. A seam that this build does not know counts as unsaid.
pub fn wait(params: wire_wait::WaitParams, waiter: Waiter) -> Result<WaitRequest> {
    Ok(WaitRequest {
        scope: path(&params.scope)?,
        seam: match params.seam {
            Some(wire_wait::Seam::Prompt) => Seam::Prompt,
            Some(wire_wait::Seam::Tools) => Seam::Tools,
            Some(wire_wait::Seam::Continuation) => Seam::Continuation,
            Some(wire_wait::Seam::Unknown(_)) | None => Seam::Unsaid,
        },
        turn: params.turn,
        history: params.history.map(|history| history.records),
        limit: params.limit.map_or_else(Limit::default, |limit| Limit {
            bytes: limit.bytes,
            chars: limit.chars,
            utf16: limit.utf16,
            tokens: limit.tokens,
        }),
        waiter,
    })
}

/// The answer to a WAIT.
pub fn delivery(delivery: Delivery, committed: bool) -> wire_wait::Delivery {
    let record = delivery.record.clone().map(wire_record);
    let entries = delivery.record.into_iter().flat_map(|record| record.entries);
    wire_wait::Delivery {
        token: delivery.token,
        phase: wire_phase(delivery.phase),
        entries: entries
            .zip(delivery.prices)
            .map(|(entry, tokens)| wire_wait::Entry {
                id: entry.id,
                entry_type: entry.entry_type,
                key: entry.key,
                label: entry.label,
                body: entry.body,
                tokens,
            })
            .collect(),
        message: delivery
            .content
            .map(|content| wire_wait::Message { role: wire_wait::Role::User, content }),
        record,
        row: delivery.row,
        held: delivery
            .held
            .into_iter()
            .map(|held| wire_wait::Held {
                entry_type: held.entry_type,
                key: held.key,
                reason: held.reason.to_owned(),
            })
            .collect(),
        tokens: delivery.tokens,
        oversize: delivery.oversize,
        replay: delivery.replay.map(|told| told.iter().map(replay).collect()),
        committed,
    }
}

/// A committed record that the host has lost, and where it stood: in the host's own words, or else
/// the turn.
fn replay(delivered: &Delivered) -> wire_wait::Replay {
    let anchor = delivered.placement.as_ref().unwrap_or(&delivered.record.turn);
    let anchor = anchor.clone();
    wire_wait::Replay { record: wire_record(delivered.record.clone()), anchor }
}

/// A row of `reminder/explain`.
pub fn explanation(row: Explanation) -> ExplainRow {
    ExplainRow {
        id: row.id,
        kind: row.kind,
        speaks: row.speaks,
        reason: row.reason,
        tokens: row.tokens,
        next: row.next,
    }
}

/// What became of the records that an opening brought.
pub fn records_report(opened: Opened, unreadable: Vec<RejectedRecord>) -> RecordsReport {
    let rejected = opened
        .rejected
        .into_iter()
        .map(|rejected| RejectedRecord { id: rejected.id, reason: rejected.reason });
    RecordsReport {
        accepted: opened.accepted,
        rejected: unreadable.into_iter().chain(rejected).collect(),
    }
}

// Records

fn wire_phase(phase: Phase) -> wire_record::Phase {
    match phase {
        Phase::TurnStart => wire_record::Phase::TurnStart,
        Phase::MidTurn => wire_record::Phase::MidTurn,
    }
}

/// A record as a client keeps it.
pub fn wire_record(record: Record) -> wire_record::InjectionRecord {
    let Ordinals { turn, request, prompt } = record.ordinals;
    wire_record::InjectionRecord {
        record_type: wire_record::RecordType::InjectedReminders,
        version: 1,
        id: record.id,
        session: record.session,
        agent: (!record.agent.is_root()).then(|| record.agent.as_str().to_owned()),
        turn: record.turn,
        phase: wire_phase(record.phase),
        form: match record.form {
            Form::Blocks => wire_record::RecordForm::Blocks,
            Form::Block => wire_record::RecordForm::Block,
            Form::Plain => wire_record::RecordForm::Plain,
        },
        ordinals: wire_record::Ordinals { turn, request, prompt },
        entries: record
            .entries
            .into_iter()
            .map(|entry| wire_record::RecordEntry {
                id: entry.id,
                entry_type: entry.entry_type,
                key: entry.key,
                kind: entry.kind,
                label: entry.label,
                body: entry.body,
                fingerprint: entry.fingerprint,
                marks: entry.marks,
            })
            .collect(),
        silent: record
            .silent
            .into_iter()
            .map(|silent| wire_record::SilentEntry {
                entry_type: silent.entry_type,
                key: silent.key,
                kind: silent.kind,
                fingerprint: silent.fingerprint,
                marks: silent.marks,
            })
            .collect(),
        digest: record.digest,
    }
}

/// A record that a client hands back.
pub fn record(given: wire_record::InjectionRecord) -> Result<Record> {
    if given.version != 1 {
        return Err(ErrorObject::new(
            ErrorKind::BadRecord,
            format!("is of version {}, and this build reads version 1", given.version),
        ));
    }
    let wire_record::Ordinals { turn, request, prompt } = given.ordinals;
    Ok(Record {
        id: given.id,
        session: given.session,
        agent: agent_path(given.agent.as_deref())?,
        turn: given.turn,
        phase: match given.phase {
            wire_record::Phase::TurnStart => Phase::TurnStart,
            wire_record::Phase::MidTurn => Phase::MidTurn,
        },
        form: match given.form {
            wire_record::RecordForm::Blocks => Form::Blocks,
            wire_record::RecordForm::Block => Form::Block,
            wire_record::RecordForm::Plain => Form::Plain,
        },
        ordinals: Ordinals { turn, request, prompt },
        entries: given
            .entries
            .into_iter()
            .map(|entry| Entry {
                id: entry.id,
                entry_type: entry.entry_type,
                key: entry.key,
                kind: entry.kind,
                label: entry.label,
                body: entry.body,
                fingerprint: entry.fingerprint,
                marks: entry.marks,
            })
            .collect(),
        silent: given
            .silent
            .into_iter()
            .map(|silent| SilentEntry {
                entry_type: silent.entry_type,
                key: silent.key,
                kind: silent.kind,
                fingerprint: silent.fingerprint,
                marks: silent.marks,
            })
            .collect(),
        digest: given.digest,
    })
}
