//! What openings and events do to a session. Each is checked whole before anything changes, so
//! that a refusal changes nothing, and what outlives the process becomes a ledger line.

use std::collections::BTreeSet;

use super::delivery::{Candidate, Outcome, Seam};
use super::event::{
    Applied, Audience, Charge, Definition, Event, Opening, Retained, Switch, Switches,
};
use super::facts::{
    Fork, Goal, HookOutcome, PlanState, ScopeFacts, SessionFacts, WAITING_MAX, Worktree, too_many,
};
use super::ledger::{Delivered, Line, Loss};
use super::path::ScopePath;
use super::policy::Ordinals;
use super::queue::{Acknowledged, HookContext, PENDING_MAX, Pending, Staged, TurnEvent};
use super::record::Millis;
use super::refusal::{Refusal, RefusalKind};
use super::reminder::{Findings, member};
use super::scope::{Member, Scope, Source, Turn};
use super::tasks::WriteMark;
use super::token::Expiry;
use super::{Session, SettleOutcome, TurnOutcome};

/// Agents that a session holds at most, settled ones included.
const AGENTS_MAX: usize = 10_000;
/// Reminders that a roster holds at most.
const ROSTER_MAX: usize = 1_000;
/// Directories of reads whose instructions wait to be looked at, at most.
const READS_MAX: usize = 10_000;
/// Tool calls of a scope that are open at most.
const CALLS_MAX: usize = 10_000;

/// Why a record that a client handed in is not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// The record's id.
    pub id: String,
    /// Why.
    pub reason: String,
}

/// What became of the records that an opening brought.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Opened {
    /// Ids of those that history now holds.
    pub accepted: Vec<String>,
    /// The others.
    pub rejected: Vec<Rejected>,
}

impl Session {
    /// Opens the session, or merges into an open one: kinds, reminders and host, later wins.
    pub fn open(&mut self, at: Millis, opening: Opening) -> Result<Opened, Refusal> {
        let first = !self.opened;
        let profile = match opening.profile {
            Some(profile) if first => profile,
            _ => self.profile,
        };
        let registry = self.kit.registry;
        let mut root = self.scope(&ScopePath::ROOT)?.roster.clone();
        let mut agents = self.for_agents.clone();
        let mut capped = self.for_capped_agents.clone();
        if first {
            for (definition, source) in registry.defaults(profile) {
                enlist(&mut root, &mut agents, &member(registry, definition, source)?)?;
            }
            for (definition, source) in registry.for_capped_agents() {
                capped.push(member(registry, definition, source)?);
            }
        }
        for definition in &opening.reminders {
            refuse_built_in(definition, root.iter().chain(&agents))?;
            let mut member = member(registry, definition.clone(), Source::Client)?;
            member.since = self.next_serial();
            enlist(&mut root, &mut agents, &member)?;
        }
        let others = [&mut agents, &mut capped];
        self.switch(&mut root, &opening.kinds, &ScopePath::ROOT, others)?;

        // Nothing can be refused from here on.
        self.opened = true;
        self.profile = profile;
        if opening.root.is_some() {
            self.root.clone_from(&opening.root);
        }
        self.trusted = opening.trusted.unwrap_or(self.trusted);
        self.host.merge(&opening.host);
        self.for_agents = agents;
        self.for_capped_agents = capped;
        self.scope_mut(&ScopePath::ROOT)?.roster = root;
        let mut opened = Opened::default();
        if let Some(records) = &opening.records {
            opened = self.adopt(at, records)?;
        }
        self.lines.push(Line::Opened { at, opening });
        Ok(opened)
    }

    /// A session that goes on from this one: history up to a record, tasks, mode, plan, sections,
    /// pools and the root's roster; never what waits in queues, turns, agents, or the goal.
    /// `report` waits in its FIFO.
    pub fn fork(
        &self,
        into: &str,
        through: Option<&str>,
        worktree: Option<Worktree>,
        report: Option<String>,
    ) -> Result<Self, Refusal> {
        let root = self.scope(&ScopePath::ROOT)?;
        let last = match through {
            None => None,
            Some(id) => Some(root.history.position(id).ok_or_else(|| {
                Refusal::new(
                    RefusalKind::BadRecord,
                    format!("cannot fork through record {id:?}: the root was never told it"),
                )
            })?),
        };
        let mut forked = Self::new(self.kit, into);
        forked.root = worktree.as_ref().map(|it| it.directory.clone()).or(self.root.clone());
        forked.profile = self.profile;
        forked.trusted = self.trusted;
        forked.host = self.host.clone();
        forked.for_agents.clone_from(&self.for_agents);
        forked.for_capped_agents.clone_from(&self.for_capped_agents);
        forked.opened = true;
        forked.ancestors.clone_from(&self.ancestors);
        forked.ancestors.push(self.id.clone());
        forked.facts = SessionFacts {
            goal: None,
            mode_override: None,
            fork: Some(Fork { source: self.id.clone(), worktree }),
            ..self.facts.clone()
        };
        let mut facts = ScopeFacts {
            pools: root.facts.pools.clone(),
            sections: root.facts.sections.clone(),
            named: root.facts.named.clone(),
            contents: root.facts.contents.clone(),
            ..ScopeFacts::default()
        };
        facts.recoveries = root.facts.recoveries;
        let scope = forked.scope_mut(&ScopePath::ROOT)?;
        scope.roster.clone_from(&root.roster);
        scope.history = root.history.through(last);
        scope.turns_ended = root.turns_ended + u64::from(root.turn.is_some());
        (scope.requests, scope.prompts) = (root.requests, root.prompts);
        scope.facts = facts;
        if let Some(body) = report {
            let serial = forked.next_serial();
            let name = Some("fork-report".to_owned());
            forked.fifo.push(Pending { serial, name, body, tells: None })?;
        }
        Ok(forked)
    }

    /// Takes the records that the client's history holds as what is held: theirs stand, and one
    /// whose commit was lost counts as told.
    fn adopt(&mut self, at: Millis, records: &[super::Record]) -> Result<Opened, Refusal> {
        let mut opened = Opened::default();
        for record in records {
            let reason = if !record.is_whole(self.kit.digest) {
                Some("its digest does not fit its content".to_owned())
            } else if record.session != self.id && !self.ancestors.contains(&record.session) {
                Some(format!("it belongs to session {:?}", record.session))
            } else if !record.agent.is_root() {
                Some(format!("it belongs to agent {}", record.agent))
            } else {
                None
            };
            match reason {
                Some(reason) => {
                    opened.rejected.push(Rejected { id: record.id.clone(), reason });
                }
                None => {
                    self.adopt_record(at, record)?;
                    opened.accepted.push(record.id.clone());
                }
            }
        }
        self.history_holds(&ScopePath::ROOT, &opened.accepted)?;
        self.continued_episode = self.episode_in_history();
        Ok(opened)
    }

    /// A record that history holds counts as told, whatever became of its commit.
    fn adopt_record(&mut self, at: Millis, record: &super::Record) -> Result<(), Refusal> {
        let scope = self.scope(&ScopePath::ROOT)?;
        let open = scope.tokens.open.iter().find(|open| open.record == record.id);
        if let Some(token) = open.map(|open| open.token.clone()) {
            self.commit(at, &token, None, None)?;
            return Ok(());
        }
        let scope = self.scope_mut(&ScopePath::ROOT)?;
        if scope.history.record(&record.id).is_some() {
            return Ok(());
        }
        let Ordinals { turn, request, prompt } = record.ordinals;
        scope.requests = scope.requests.max(request);
        scope.prompts = scope.prompts.max(prompt);
        match &mut scope.turn {
            Some(open) if open.id == record.turn => open.committed = open.committed.max(1),
            // Its turn has ended: nothing of it is open here.
            _ => scope.turns_ended = scope.turns_ended.max(turn),
        }
        scope.history.add(Delivered { record: record.clone(), at, placement: None, lost: None });
        Ok(())
    }

    /// The planning episode in which the conversation was when its newest record was made: one that
    /// told of the plan, and nothing of the mode after it.
    fn episode_in_history(&self) -> Option<String> {
        let held = self.scopes[&ScopePath::ROOT].history.records().iter().rev();
        let mut entries = held
            .filter(|delivered| delivered.lost.is_none())
            .flat_map(|delivered| delivered.record.entries.iter().rev());
        let last = entries
            .find(|entry| matches!(entry.kind.as_str(), "plan-mode" | "mode-constraints"))?;
        (last.kind == "plan-mode").then(|| last.marks.first().cloned()).flatten()
    }

    /// Something happened on a scope.
    pub fn apply(
        &mut self,
        at: Millis,
        path: &ScopePath,
        event: Event,
    ) -> Result<Applied, Refusal> {
        let serial = self.serial;
        let applied = self.take_effect(at, path, &event)?;
        if event.is_durable() {
            self.lines.push(Line::Reported { at, serial, scope: path.clone(), event });
        }
        Ok(applied)
    }

    fn take_effect(
        &mut self,
        at: Millis,
        path: &ScopePath,
        event: &Event,
    ) -> Result<Applied, Refusal> {
        match event {
            Event::TurnBegan { turn } => self.begin_turn(path, turn)?,
            Event::TurnEnded { turn, outcome } => {
                self.scope(path)?.open_turn(Some(turn))?;
                self.end_turn(path, *outcome)?;
            }
            Event::CallBegan { call } => {
                let scope = self.scope_mut(path)?;
                scope.running()?;
                if scope.calls.len() >= CALLS_MAX {
                    return Err(too_many(
                        "a scope's open tool calls",
                        CALLS_MAX,
                        "send tool/end for those that ended",
                    ));
                }
                scope.calls.insert(call.clone());
            }
            Event::CallEnded { call } => drop(self.scope_mut(path)?.calls.remove(call)),
            Event::AgentSpawned { kinds, max_requests, role } => {
                self.spawn(path, kinds, *max_requests, role.as_deref())?;
            }
            Event::AgentSettled { outcome } => self.settle(path, *outcome)?,
            Event::Staged { .. }
            | Event::Observed { .. }
            | Event::Enqueued { .. }
            | Event::Withdrawn { .. }
            | Event::Acknowledged { .. } => return self.queue(path, event),
            Event::Registered(definition) => self.register(path, definition)?,
            Event::Removed { id } => return Ok(self.remove(path, id)?.into()),
            Event::Configured(kinds) => self.configure(path, kinds)?,
            Event::Reset => self.scope_mut(path)?.history.forget(None),
            Event::Compacted { .. }
            | Event::Rewound { .. }
            | Event::Cleared
            | Event::HistoryReported { .. } => self.change_history(at, path, event)?,
            Event::ModeSet(_) | Event::PlanSet(_) => self.plan(event)?,
            Event::GoalSet(_) | Event::GoalCharged(_) => self.charge(at, path, event)?,
            Event::TaskPut { task, reassigns } => {
                self.scope(path)?;
                self.facts.tasks.put(task.clone(), path, *reassigns)?;
                self.mark_task_write()?;
            }
            Event::TaskRemoved { id } => {
                self.scope(path)?;
                let changed = self.facts.tasks.remove(path, id);
                self.mark_task_write()?;
                return Ok(changed.into());
            }
            Event::TasksReplaced { tasks } => {
                self.scope(path)?;
                self.facts.tasks.replace(path, tasks.clone())?;
                self.mark_task_write()?;
            }
            Event::PoolSet { pool, names, baseline } => {
                let serial = self.next_serial();
                let scope = self.scope_mut(path)?;
                let told = scope.history.records().len();
                scope.facts.set_pool(pool, names.as_deref(), baseline.then_some((serial, told)))?;
            }
            Event::FactSet { name, value } => {
                self.scope_mut(path)?.facts.set_fact(name, value)?;
            }
            Event::UsageReported(usage) => self.scope_mut(path)?.facts.usage = Some(*usage),
            Event::SectionSet { section, content } => {
                let digest = self.kit.digest;
                let fingerprint = content.as_deref().map(|text| digest(text.as_bytes()));
                let facts = &mut self.scope_mut(path)?.facts;
                facts.set_section(section, content.as_deref(), fingerprint.unwrap_or_default())?;
            }
            Event::SkillsOffered(skills) => {
                if skills.len() > WAITING_MAX {
                    return Err(too_many("a scope's offered skills", WAITING_MAX, "offer fewer"));
                }
                self.scope_mut(path)?.facts.skills.clone_from(skills);
            }
            Event::Mentioned(_)
            | Event::SkillAttached(_)
            | Event::HookBlocked { .. }
            | Event::JobEnded(_)
            | Event::HookContext { .. } => self.note(path, event)?,
            Event::PatchRevised { summary } => {
                let root = self.scope(&ScopePath::ROOT)?;
                let turn = root.turns_ended + u64::from(root.turn.is_some());
                self.facts.revise(summary, turn);
            }
            Event::VerifierStarted => self.facts.plan.verification_pending = false,
            Event::DateSet { date } => {
                let first = self.facts.date.take().map_or_else(|| date.clone(), |(_, first)| first);
                self.facts.date = Some((date.clone(), first));
            }
            Event::Touched { path: file, wrote, whole } => {
                self.touch(path, file, *wrote, *whole)?;
            }
            Event::Skipped { what } => *self.skipped.entry(what.clone()).or_default() += 1,
        }
        Ok(true.into())
    }

    // Turns and agents

    fn begin_turn(&mut self, path: &ScopePath, turn: &str) -> Result<(), Refusal> {
        let scope = self.scope(path)?;
        scope.running()?;
        if scope.used_turns.contains(turn) {
            return Err(Refusal::new(
                RefusalKind::NoTurn,
                format!("turn {turn:?} was used on {path} before: give every turn a new id"),
            ));
        }
        if scope.turn.is_some() {
            self.end_turn(path, TurnOutcome::Abandoned)?;
        }
        let scope = self.scope_mut(path)?;
        scope.used_turns.insert(turn.to_owned());
        scope.turn = Some(Turn { id: turn.to_owned(), committed: 0 });
        Ok(())
    }

    /// The turn is over: its undelivered events, staged entries and open calls are gone. A root
    /// turn that was cancelled after something went out leaves effects that may be partial.
    fn end_turn(&mut self, path: &ScopePath, outcome: TurnOutcome) -> Result<(), Refusal> {
        self.expire(path, Expiry::TurnEnded, |_| true);
        let scope = self.scope_mut(path)?;
        if let Some(turn) = scope.turn.take() {
            scope.turns_ended += 1;
            let partial = outcome == TurnOutcome::Cancelled && turn.committed > 0;
            scope.facts.recoveries += u64::from(partial && path.is_root());
        }
        scope.queue.end_turn();
        scope.facts.end_turn();
        scope.calls.clear();
        Ok(())
    }

    /// A session that was restored: a turn that was open when its process died has ended, and its
    /// effects may be partial. Its id may be used again. Says whether there was any.
    pub(super) fn resume_cold(&mut self) -> Result<bool, Refusal> {
        let mut any = false;
        let paths: Vec<_> = self.scopes.keys().cloned().collect();
        for path in paths {
            let scope = self.scope_mut(&path)?;
            if let Some(turn) = &scope.turn {
                let id = turn.id.clone();
                scope.used_turns.remove(&id);
                scope.facts.recoveries += 1;
                self.end_turn(&path, TurnOutcome::Abandoned)?;
                any = true;
            }
        }
        Ok(any)
    }

    fn spawn(
        &mut self,
        path: &ScopePath,
        kinds: &Switches,
        max_requests: Option<u64>,
        role: Option<&str>,
    ) -> Result<(), Refusal> {
        let Some(parent) = path.parent() else {
            return Err(Refusal::invalid("the root is no agent: name a path such as \"/name\""));
        };
        self.scope(&parent)?;
        match self.scopes.get(path) {
            Some(known) if !known.settled => {
                return Err(Refusal::new(
                    RefusalKind::UnknownAgent,
                    format!("agent {path} is running: settle it with agent/settle first"),
                ));
            }
            None if self.scopes.len() > AGENTS_MAX => {
                return Err(too_many("a session's agents", AGENTS_MAX, "open another session"));
            }
            _ => {}
        }
        let mut scope = Scope::new(path.clone());
        scope.max_requests = max_requests;
        scope.role = role.map(str::to_owned);
        scope.roster.clone_from(&self.for_agents);
        if max_requests.unwrap_or(0) > 0 {
            scope.roster.extend_from_slice(&self.for_capped_agents);
        }
        let mut roster = std::mem::take(&mut scope.roster);
        self.switch(&mut roster, kinds, path, [])?;
        scope.roster = roster;
        let former = self.scopes.insert(path.clone(), scope);
        for delivered in former.iter().flat_map(|former| former.history.records()) {
            self.former.insert(delivered.record.id.clone(), delivered.record.clone());
        }
        Ok(())
    }

    fn settle(&mut self, path: &ScopePath, outcome: SettleOutcome) -> Result<(), Refusal> {
        if path.is_root() {
            return Err(Refusal::invalid(
                "the root does not settle: end the session with session/close",
            ));
        }
        self.scope(path)?.running()?;
        self.end_turn(path, TurnOutcome::Abandoned)?;
        self.scope_mut(path)?.settled = true;
        if outcome == SettleOutcome::Succeeded {
            self.facts.tasks.complete_all_of(path);
        }
        Ok(())
    }

    // Modes, plans, goals

    fn plan(&mut self, event: &Event) -> Result<(), Refusal> {
        let was_planning = self.facts.is_planning();
        match event {
            Event::ModeSet(mode) if mode.overrides => {
                self.facts.mode_override = Some((self.next_serial(), mode.name.clone()));
            }
            Event::ModeSet(mode) => self.facts.mode = Some(mode.name.clone()),
            Event::PlanSet(plan) => {
                if plan.state == PlanState::Accepted && self.facts.plan.state != PlanState::Accepted
                {
                    let root = self.scope(&ScopePath::ROOT)?;
                    self.facts.plan_accepted_in = root.turns_ended + u64::from(root.turn.is_some());
                }
                self.facts.plan = plan.clone();
            }
            _ => unreachable!("only modes and plans come here"),
        }
        let continued = self.continued_episode.take();
        self.facts.name_episode(was_planning, continued);
        Ok(())
    }

    fn charge(&mut self, at: Millis, path: &ScopePath, event: &Event) -> Result<(), Refusal> {
        self.scope(path)?;
        match event {
            Event::GoalSet(None) => self.facts.goal = None,
            Event::GoalSet(Some(report)) => match &mut self.facts.goal {
                Some(goal) if goal.report.id == report.id => goal.report = report.clone(),
                goal => {
                    *goal =
                        Some(Goal { report: report.clone(), first_budget: report.budget, used: 0 });
                }
            },
            Event::GoalCharged(charge) => {
                let Some(goal) = &mut self.facts.goal else {
                    return Err(Refusal::invalid(
                        "no goal is set: send goal/set before goal/charge",
                    ));
                };
                goal.used = match charge {
                    Charge::Total(used) => *used,
                    Charge::Delta(delta) => goal.used.saturating_add(*delta),
                };
                self.scope_mut(path)?.facts.charged = true;
            }
            _ => unreachable!("only goals come here"),
        }
        if self.scope(&ScopePath::ROOT)?.turn.is_none() {
            self.speak_through_fifo(at, "goal-budget")?;
        }
        Ok(())
    }

    /// What a kind of the root would say now waits in the FIFO, where no turn is open to tell it
    /// in. Where the FIFO is full the kind says it itself at the next WAIT.
    fn speak_through_fifo(&mut self, at: Millis, kind: &str) -> Result<bool, Refusal> {
        let root = self.scope(&ScopePath::ROOT)?;
        let Some(member) = root.roster.iter().find(|member| member.definition.kind == kind) else {
            return Ok(false);
        };
        let Outcome::Speaks(candidates) =
            self.outcome(root, member, 0, self.moment(root, Seam::Unsaid, at), &Findings::new())
        else {
            return Ok(false);
        };
        let waiting: Vec<_> = candidates.into_iter().map(Candidate::into_pending).collect();
        if self.fifo.len() + waiting.len() > PENDING_MAX {
            return Ok(false);
        }
        for (body, tells) in waiting {
            let serial = self.next_serial();
            let name = Some(kind.to_owned());
            self.fifo.push(Pending { serial, name, body, tells: Some(tells) })?;
        }
        Ok(true)
    }

    /// A compaction drops the contents of files from history, unless it retained everything.
    fn drop_contents(&mut self, at: Millis, path: &ScopePath, all: bool) -> Result<(), Refusal> {
        if all {
            return Ok(());
        }
        let scope = self.scope_mut(path)?;
        let dropped = std::mem::take(&mut scope.facts.contents);
        if dropped.is_empty() {
            return Ok(());
        }
        scope.facts.dropped.extend(dropped);
        if path.is_root()
            && scope.turn.is_none()
            && self.speak_through_fifo(at, "compacted-files")?
        {
            self.scope_mut(path)?.facts.dropped.clear();
        }
        Ok(())
    }

    // What waits to be told

    fn note(&mut self, path: &ScopePath, event: &Event) -> Result<(), Refusal> {
        let serial = self.next_serial();
        let full = |what: &str| {
            Err(too_many(what, WAITING_MAX, "commit a WAIT first, then send this again"))
        };
        if let Event::HookContext { event, body, accepted } = event {
            // What rides in the prompt text already is consumed at once.
            if !accepted {
                if self.hook_contexts.len() >= WAITING_MAX {
                    return full("the contexts of hooks that wait");
                }
                let (event, body) = (event.clone(), spoken(body)?);
                self.hook_contexts.push(HookContext { serial, event, body });
            }
            return Ok(());
        }
        let scope = self.scope_mut(path)?;
        if let Event::JobEnded(job) = event {
            if scope.facts.jobs.len() >= WAITING_MAX {
                return full("the ended jobs that wait");
            }
            // The same end of a job, sent twice, is one.
            if !scope.facts.ended.insert((job.job.clone(), job.state.clone())) {
                return Ok(());
            }
            scope.facts.jobs.push((serial, job.clone()));
            return Ok(());
        }
        scope.running()?;
        scope.open_turn(None)?;
        let facts = &mut scope.facts;
        match event {
            Event::Mentioned(mention) => {
                if facts.mentions.len() >= WAITING_MAX {
                    return full("the mentions of a turn");
                }
                facts.mentions.retain(|(_, known)| {
                    known.kind != mention.kind
                        || known.target != mention.target
                        || known.range != mention.range
                });
                facts.mentions.push((serial, mention.clone()));
            }
            Event::SkillAttached(skills) => {
                for skill in skills {
                    if facts.attached.len() >= WAITING_MAX {
                        return full("the attached skills of a turn");
                    }
                    // A dependency of two skills comes once, where it is needed first.
                    if !facts.attached.iter().any(|(_, known)| known.name == skill.name) {
                        facts.attached.push((serial, skill.clone()));
                    }
                }
            }
            Event::HookBlocked { event, reason } => {
                facts.blocked.retain(|(_, known)| known.event != *event);
                if facts.blocked.len() >= WAITING_MAX {
                    return full("the hooks that blocked in a turn");
                }
                let outcome = HookOutcome { event: event.clone(), reason: reason.clone() };
                facts.blocked.push((serial, outcome));
            }
            _ => unreachable!("only what waits comes here"),
        }
        Ok(())
    }

    fn touch(
        &mut self,
        path: &ScopePath,
        file: &str,
        wrote: bool,
        whole: bool,
    ) -> Result<(), Refusal> {
        let serial = self.next_serial();
        let scope = self.scope_mut(path)?;
        scope.facts.touch(file, wrote)?;
        if wrote {
            return Ok(());
        }
        if let Some((directory, _)) = file.rsplit_once('/')
            && (scope.facts.reads.contains_key(directory) || scope.facts.reads.len() < READS_MAX)
        {
            scope.facts.reads.insert(directory.to_owned(), serial);
        }
        if whole && scope.turn.is_some() && scope.facts.whole_reads.len() < WAITING_MAX {
            scope.facts.whole_reads.retain(|(_, known)| known != file);
            scope.facts.whole_reads.push((serial, file.to_owned()));
        }
        Ok(())
    }

    // Queues

    fn queue(&mut self, path: &ScopePath, event: &Event) -> Result<Applied, Refusal> {
        self.scope(path)?.running()?;
        let serial = self.next_serial();
        match event {
            Event::Enqueued { name, body } => {
                let body = spoken(body)?;
                self.fifo.push(Pending { serial, name: name.clone(), body, tells: None })?;
            }
            Event::Observed { turn, key, entry_type, body } => {
                let scope = self.scope_mut(path)?;
                scope.open_turn(turn.as_deref())?;
                let (key, entry_type) = (key.clone(), entry_type.clone());
                scope.queue.observe(TurnEvent { serial, key, entry_type, body: spoken(body)? })?;
            }
            Event::Staged { lane, entry_type, key, label, body } => {
                let scope = self.scope_mut(path)?;
                scope.open_turn(None)?;
                scope.queue.stage(Staged {
                    serial,
                    lane: *lane,
                    entry_type: entry_type.clone(),
                    key: key.clone(),
                    label: label.clone(),
                    body: spoken(body)?,
                })?;
            }
            Event::Withdrawn { key } => {
                return Ok(self.scope_mut(path)?.queue.withdraw(key).into());
            }
            Event::Acknowledged { reminder, key, fingerprint } => {
                let scope = self.scope_mut(path)?;
                scope.open_turn(None)?;
                scope.queue.acknowledge(Acknowledged {
                    serial,
                    reminder: reminder.clone(),
                    key: key.clone(),
                    fingerprint: fingerprint.clone(),
                })?;
            }
            _ => unreachable!("only events of queues come here"),
        }
        Ok(true.into())
    }

    // History

    fn change_history(
        &mut self,
        at: Millis,
        path: &ScopePath,
        event: &Event,
    ) -> Result<(), Refusal> {
        let history = &self.scope(path)?.history;
        let known = |id: &String| {
            if history.record(id).is_some() {
                return Ok(());
            }
            Err(Refusal::new(
                RefusalKind::BadRecord,
                format!(
                    "{path} was never told record {id:?}: name ids of reminder/history, or hand \
                     the records themselves to session/open"
                ),
            ))
        };
        match event {
            Event::Compacted { retained, native } => {
                if let Retained::Records(ids) = retained {
                    ids.iter().try_for_each(known)?;
                }
                self.expire(path, Expiry::HistoryChanged, |_| true);
                self.drop_contents(at, path, *retained == Retained::All)?;
                let scope = self.scope_mut(path)?;
                // What was used is unknown until it is reported anew.
                scope.facts.usage = None;
                scope.native_compaction |= *native;
                let history = &mut scope.history;
                match retained {
                    Retained::All => {}
                    Retained::None => {
                        history.reconcile(|_, _, lost| lost.or(Some(Loss::Compacted)));
                    }
                    Retained::Records(ids) => {
                        let ids: BTreeSet<_> = ids.iter().map(String::as_str).collect();
                        history.reconcile(|_, id, lost| {
                            if ids.contains(id) { None } else { lost.or(Some(Loss::Compacted)) }
                        });
                    }
                }
            }
            Event::Rewound { through } => {
                through.iter().try_for_each(known)?;
                let last = through.as_ref().and_then(|id| history.position(id));
                self.expire(path, Expiry::HistoryChanged, |_| true);
                self.scope_mut(path)?.history.reconcile(|index, _, lost| {
                    if last.is_some_and(|last| index <= last) { lost } else { Some(Loss::Removed) }
                });
            }
            Event::Cleared => {
                self.expire(path, Expiry::HistoryChanged, |_| true);
                self.scope_mut(path)?.history.reconcile(|_, _, _| Some(Loss::Removed));
            }
            Event::HistoryReported { records } => {
                records.iter().try_for_each(known)?;
                self.history_holds(path, records)?;
            }
            _ => unreachable!("only events of history come here"),
        }
        Ok(())
    }

    /// Exactly these records are held. What a compaction had lost stays so.
    fn history_holds(&mut self, path: &ScopePath, ids: &[String]) -> Result<(), Refusal> {
        let ids: BTreeSet<_> = ids.iter().map(String::as_str).collect();
        self.scope_mut(path)?.history.reconcile(|_, id, lost| {
            if ids.contains(id) { None } else { lost.or(Some(Loss::Removed)) }
        });
        Ok(())
    }

    // Rosters

    fn register(&mut self, path: &ScopePath, definition: &Definition) -> Result<(), Refusal> {
        let rosters = self.scope(path)?.roster.iter().chain(&self.for_agents);
        refuse_built_in(definition, rosters)?;
        let mut member = member(self.kit.registry, definition.clone(), Source::Client)?;
        member.since = self.next_serial();
        if !path.is_root() {
            // Registered on an agent, it is that agent's, whatever scopes it names.
            member.definition.audience = Audience::AGENTS;
            return place(&mut self.scope_mut(path)?.roster, &member);
        }
        let mut root = self.scope(path)?.roster.clone();
        let mut agents = self.for_agents.clone();
        enlist(&mut root, &mut agents, &member)?;
        self.for_agents = agents;
        self.scope_mut(path)?.roster = root;
        Ok(())
    }

    fn remove(&mut self, path: &ScopePath, id: &str) -> Result<bool, Refusal> {
        let is_it = |member: &Member| member.id() == id && member.source == Source::Client;
        let scope = self.scope_mut(path)?;
        let mut before = scope.roster.len();
        scope.roster.retain(|member| !is_it(member));
        let mut after = scope.roster.len();
        if path.is_root() {
            before += self.for_agents.len();
            self.for_agents.retain(|member| !is_it(member));
            after += self.for_agents.len();
        }
        if after < before {
            // Also what it told before it moved to the agents' roster.
            let scope = self.scope_mut(path)?;
            scope.history.forget(Some(id));
            scope.queue.forget_answer(id);
        }
        Ok(after < before)
    }

    fn configure(&mut self, path: &ScopePath, kinds: &Switches) -> Result<(), Refusal> {
        let mut roster = self.scope(path)?.roster.clone();
        if path.is_root() {
            let mut agents = self.for_agents.clone();
            let mut capped = self.for_capped_agents.clone();
            self.switch(&mut roster, kinds, path, [&mut agents, &mut capped])?;
            self.for_agents = agents;
            self.for_capped_agents = capped;
        } else {
            self.switch(&mut roster, kinds, path, [])?;
        }
        self.scope_mut(path)?.roster = roster;
        Ok(())
    }

    /// Switches and retunes the members of a roster. A kind that is switched on and not there
    /// joins at the end; one that nobody knows is refused.
    fn switch<const OTHERS: usize>(
        &self,
        roster: &mut Vec<Member>,
        kinds: &Switches,
        path: &ScopePath,
        mut others: [&mut Vec<Member>; OTHERS],
    ) -> Result<(), Refusal> {
        let registry = self.kit.registry;
        for (name, switch) in kinds {
            let mut known = false;
            let others = others.iter_mut().flat_map(|others| others.iter_mut());
            for meant in roster.iter_mut().chain(others).filter(|one| one.answers_to(name)) {
                known = true;
                match switch {
                    Switch::Off => meant.enabled = false,
                    Switch::On(settings) => {
                        let mut definition = meant.definition.clone();
                        definition.settings.merge(settings);
                        meant.reminder = registry.build(&definition)?;
                        meant.definition = definition;
                        meant.enabled = true;
                    }
                }
            }
            if known {
                continue;
            }
            let mut definition = registry.kind(name)?;
            if let Switch::On(settings) = switch {
                definition.settings.merge(settings);
                let joining = member(registry, definition, Source::Client)?;
                if joining.is_for(path) {
                    place(roster, &joining)?;
                }
            }
        }
        Ok(())
    }

    fn mark_task_write(&mut self) -> Result<(), Refusal> {
        let root = self.scope(&ScopePath::ROOT)?;
        self.facts.tasks.last_write = Some(WriteMark {
            turns: root.turns_ended + u64::from(root.turn.is_some()),
            requests: root.requests,
        });
        Ok(())
    }
}

/// A built-in kind is retuned, not replaced: it may stand for what the daemon itself must say.
fn refuse_built_in<'a>(
    definition: &Definition,
    mut rosters: impl Iterator<Item = &'a Member>,
) -> Result<(), Refusal> {
    let id = &definition.id;
    if rosters.any(|member| member.id() == id && member.source != Source::Client) {
        return Err(Refusal::invalid(format!(
            "{id:?} is a built-in kind: retune it with kinds or roster/configure, or register \
             another id"
        )));
    }
    Ok(())
}

/// Puts a member into the rosters that it is for; one that is there keeps its place.
fn enlist(
    root: &mut Vec<Member>,
    agents: &mut Vec<Member>,
    member: &Member,
) -> Result<(), Refusal> {
    let audience = member.definition.audience;
    for (wanted, roster) in [(audience.root, root), (audience.agents, agents)] {
        if wanted {
            place(roster, member)?;
        } else {
            roster.retain(|known| known.id() != member.id());
        }
    }
    Ok(())
}

/// Replaces the member with this id in its place, or adds it at the end.
fn place(roster: &mut Vec<Member>, member: &Member) -> Result<(), Refusal> {
    if let Some(known) = roster.iter_mut().find(|known| known.id() == member.id()) {
        *known = member.clone();
        return Ok(());
    }
    if roster.len() >= ROSTER_MAX {
        return Err(too_many("a roster's reminders", ROSTER_MAX, "remove some first"));
    }
    roster.push(member.clone());
    Ok(())
}

/// A body that says something.
fn spoken(body: &str) -> Result<String, Refusal> {
    if body.trim().is_empty() {
        return Err(Refusal::invalid("the body is blank: send what the model is to read"));
    }
    Ok(body.to_owned())
}
