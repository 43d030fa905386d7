//! What events do to a session. Each is checked whole before anything changes, so
//! that a refusal changes nothing, and what outlives the process becomes a ledger line.

use super::Session;
use super::delivery::{Candidate, Outcome, Seam};
use super::event::{Applied, Charge, Event};
use super::facts::{Goal, HookOutcome, PlanState, WAITING_MAX, too_many};
use super::ledger::Line;
use super::path::ScopePath;
use super::queue::{Acknowledged, HookContext, PENDING_MAX, Pending, Staged, TurnEvent};
use super::record::Millis;
use super::refusal::Refusal;
use super::reminder::{Findings, Workings};
use super::tasks::WriteMark;

/// Directories of reads whose instructions wait to be looked at, at most.
const READS_MAX: usize = 10_000;

impl Session {
    /// Something happened on a scope.
    pub fn apply(
        &mut self,
        at: Millis,
        path: &ScopePath,
        event: Event,
    ) -> Result<Applied, Refusal> {
        let serial = self.serial;
        let applied = self.take_effect(at, path, &event)?;
        let is_news = applied.changed || !matches!(event, Event::ConfigurationRead(_));
        if event.is_durable() && is_news {
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
            Event::CallBegan { call, input } => {
                let scope = self.scope_mut(path)?;
                scope.running()?;
                scope.calls.begin(call, input.clone())?;
            }
            Event::CallEnded { call, name, ok } => {
                let serial = self.next_serial();
                let scope = self.scope_mut(path)?;
                scope.calls.end(call, name, *ok, serial, scope.turn.is_some());
            }
            Event::AgentSpawned { kinds, max_requests, role } => {
                self.spawn(at, path, kinds, *max_requests, role.as_deref())?;
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
            Event::ConfigurationRead(configuration) => {
                return Ok(self.read_configuration(configuration)?.into());
            }
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
                self.facts.first_date.get_or_insert_with(|| date.clone());
                self.facts.date = Some(date.clone());
            }
            Event::Touched { .. } | Event::FileEdited { .. } => self.touch(path, event)?,
            Event::FileKnown { .. } | Event::FileForgotten { .. } => {
                return self.watch(path, event);
            }
            Event::Skipped { what } => *self.skipped.entry(what.clone()).or_default() += 1,
        }
        Ok(true.into())
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
            Event::GoalSet(None) => {
                self.facts.goal = None;
                self.forget_charges();
            }
            Event::GoalSet(Some(report)) => match &mut self.facts.goal {
                Some(goal) if goal.report.id == report.id => goal.report = report.clone(),
                goal => {
                    let known = self.facts.first_limits.remove(&report.id);
                    let first_budget = known.unwrap_or(report.budget);
                    *goal = Some(Goal { report: report.clone(), first_budget, used: 0 });
                    self.forget_charges();
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
            // What waits is the net change: it gives way to what would be said now.
            self.fifo.withdraw("goal-budget");
            self.speak_through_fifo(at, "goal-budget")?;
        }
        Ok(())
    }

    /// Another goal: nobody was charged to it yet.
    fn forget_charges(&mut self) {
        for scope in self.scopes.values_mut() {
            scope.facts.charged = false;
        }
    }

    /// What a kind of the root would say now waits in the FIFO, where no turn is open to tell it
    /// in. Where the FIFO is full the kind says it itself at the next WAIT.
    pub(super) fn speak_through_fifo(&mut self, at: Millis, kind: &str) -> Result<bool, Refusal> {
        let root = self.scope(&ScopePath::ROOT)?;
        let Some(member) = root.roster.iter().find(|member| member.definition.kind == kind) else {
            return Ok(false);
        };
        let Outcome::Speaks(candidates, _) = self.outcome(
            root,
            member,
            0,
            self.moment(root, Seam::Unsaid, at),
            &Findings::new(),
            &Workings::default(),
        ) else {
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
                    // A dependency of two skills comes once, where it is needed first, with the
                    // body that came last.
                    match facts.attached.iter_mut().find(|(_, known)| known.name == skill.name) {
                        Some((_, known)) => known.body.clone_from(&skill.body),
                        None => facts.attached.push((serial, skill.clone())),
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

    fn touch(&mut self, path: &ScopePath, event: &Event) -> Result<(), Refusal> {
        let serial = self.next_serial();
        let scope = self.scope_mut(path)?;
        let (file, wrote, whole) = match event {
            Event::Touched { path: file, wrote, whole } => (file, *wrote, *whole),
            Event::FileEdited { path: file } => return scope.facts.edit(file, serial),
            _ => unreachable!("only what touches a file comes here"),
        };
        scope.facts.touch(file, wrote, serial)?;
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

    fn watch(&mut self, path: &ScopePath, event: &Event) -> Result<Applied, Refusal> {
        let watched = &mut self.scope_mut(path)?.facts.watched;
        match event {
            Event::FileKnown { path: file, state, at, starts } => {
                watched.know(file, state.clone(), *at, *starts);
                Ok(true.into())
            }
            Event::FileForgotten { path: file } => Ok(watched.forget(file).into()),
            _ => unreachable!("only what is watched comes here"),
        }
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

    fn mark_task_write(&mut self) -> Result<(), Refusal> {
        let root = self.scope(&ScopePath::ROOT)?;
        self.facts.tasks.last_write = Some(WriteMark {
            turns: root.turns_ended + u64::from(root.turn.is_some()),
            requests: root.requests,
        });
        Ok(())
    }
}

/// A body that says something.
fn spoken(body: &str) -> Result<String, Refusal> {
    if body.trim().is_empty() {
        return Err(Refusal::invalid("the body is blank: send what the model is to read"));
    }
    Ok(body.to_owned())
}
