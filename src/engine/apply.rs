//! What openings and events do to a session. Each is checked whole before anything changes, so
//! that a refusal changes nothing, and what outlives the process becomes a ledger line.

use std::collections::BTreeSet;

use super::event::{Applied, Audience, Definition, Event, Opening, Retained, Switch, Switches};
use super::facts::{WriteMark, too_many};
use super::ledger::{Delivered, Line, Loss, Millis};
use super::queue::{Acknowledged, Pending, Staged, TurnEvent};
use super::refusal::{Refusal, RefusalKind};
use super::reminder::member;
use super::scope::{Member, Scope, ScopePath, Source, Turn};
use super::token::Expiry;
use super::{Session, SettleOutcome, TurnOutcome};

/// Agents that a session holds at most, settled ones included.
const AGENTS_MAX: usize = 10_000;
/// Reminders that a roster holds at most.
const ROSTER_MAX: usize = 1_000;
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
            let member = member(registry, definition.clone(), Source::Client)?;
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

    /// Takes the records that the client's history holds as what is held: theirs stand, and one
    /// whose commit was lost counts as told.
    fn adopt(&mut self, at: Millis, records: &[super::Record]) -> Result<Opened, Refusal> {
        let mut opened = Opened::default();
        for record in records {
            let reason = if !record.is_whole(self.kit.digest) {
                Some("its digest does not fit its content".to_owned())
            } else if record.session != self.id {
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
                    let scope = self.scope_mut(&ScopePath::ROOT)?;
                    if scope.history.record(&record.id).is_none() {
                        let ordinals = record.ordinals;
                        scope.requests = scope.requests.max(ordinals.request);
                        scope.prompts = scope.prompts.max(ordinals.prompt);
                        // The turn of a record that history holds has ended: nothing of it is open.
                        scope.turns_ended = scope.turns_ended.max(ordinals.turn);
                        scope.history.add(Delivered {
                            record: record.clone(),
                            at,
                            placement: None,
                            lost: None,
                        });
                    }
                    opened.accepted.push(record.id.clone());
                }
            }
        }
        self.history_holds(&ScopePath::ROOT, &opened.accepted)?;
        Ok(opened)
    }

    /// Something happened on a scope.
    pub fn apply(
        &mut self,
        at: Millis,
        path: &ScopePath,
        event: Event,
    ) -> Result<Applied, Refusal> {
        let applied = self.take_effect(path, &event)?;
        if event.is_durable() {
            self.lines.push(Line::Reported { at, scope: path.clone(), event });
        }
        Ok(applied)
    }

    fn take_effect(&mut self, path: &ScopePath, event: &Event) -> Result<Applied, Refusal> {
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
            | Event::HistoryReported { .. } => self.change_history(path, event)?,
            Event::ModeSet(mode) => {
                let name = Some(mode.name.clone());
                if mode.overrides {
                    self.facts.mode_override = name;
                } else {
                    self.facts.mode = name;
                }
            }
            Event::PlanSet(plan) => self.facts.plan = plan.clone(),
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
                let scope = self.scope_mut(path)?;
                let told = scope.history.records().len();
                scope.facts.set_pool(pool, names.as_deref(), *baseline, told)?;
            }
            Event::FactSet { name, value } => {
                self.scope_mut(path)?.facts.set_fact(name, value)?;
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

    /// The turn is over: its undelivered events, staged entries and open calls are gone.
    fn end_turn(&mut self, path: &ScopePath, _outcome: TurnOutcome) -> Result<(), Refusal> {
        self.expire(path, Expiry::TurnEnded, |_| true);
        let scope = self.scope_mut(path)?;
        if scope.turn.take().is_some() {
            scope.turns_ended += 1;
        }
        scope.queue.end_turn();
        scope.calls.clear();
        Ok(())
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

    // Queues

    fn queue(&mut self, path: &ScopePath, event: &Event) -> Result<Applied, Refusal> {
        self.scope(path)?.running()?;
        let serial = self.next_serial();
        match event {
            Event::Enqueued { name, body } => {
                let body = spoken(body)?;
                self.fifo.push(Pending { serial, name: name.clone(), body })?;
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

    fn change_history(&mut self, path: &ScopePath, event: &Event) -> Result<(), Refusal> {
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
            Event::Compacted { retained } => {
                if let Retained::Records(ids) = retained {
                    ids.iter().try_for_each(known)?;
                }
                self.expire(path, Expiry::HistoryChanged, |_| true);
                let history = &mut self.scope_mut(path)?.history;
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
        let stands = |roster: &[Member]| {
            roster
                .iter()
                .any(|member| member.id() == definition.id && member.source != Source::Client)
        };
        if stands(&self.scope(path)?.roster) || stands(&self.for_agents) {
            return Err(Refusal::invalid(format!(
                "{:?} is a built-in kind: retune it with roster/configure, or register another id",
                definition.id
            )));
        }
        let mut member = member(self.kit.registry, definition.clone(), Source::Client)?;
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
