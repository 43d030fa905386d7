//! How a session comes to be: opened, resumed with the records that a client kept, or forked from
//! another. Everything is checked before anything changes.

use std::collections::BTreeMap;

use super::Session;
use super::configuration::Derived;
use super::event::Opening;
use super::facts::{Fork, ScopeFacts, SessionFacts, Worktree};
use super::ledger::{Delivered, Line};
use super::path::ScopePath;
use super::policy::Ordinals;
use super::queue::Pending;
use super::record::{Millis, Record};
use super::refusal::{Refusal, RefusalKind};
use super::reminder::member;
use super::rosters::{enlist, refuse_built_in};
use super::scope::Source;
use super::watched::WatchedFiles;

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
        let serial = self.serial;
        let profile = match opening.profile {
            Some(profile) if first => profile,
            _ => self.profile,
        };
        let registry = self.kit.registry;
        let Derived { mut root, mut agents, mut capped, left_out } = if first {
            let since = self.next_serial();
            self.derive(profile, since)?
        } else {
            Derived {
                root: self.scope(&ScopePath::ROOT)?.roster.clone(),
                agents: self.for_agents.clone(),
                capped: self.for_capped_agents.clone(),
                left_out: self.left_out.clone(),
            }
        };
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
        // What one client denied stays denied when another opens the session.
        add_new(&mut self.deny, &opening.deny);
        add_new(&mut self.own, &opening.own);
        self.host.merge(&opening.host);
        if opening.configuration_file.is_some() {
            self.configuration_file.clone_from(&opening.configuration_file);
        }
        self.take_rosters(Derived { root, agents, capped, left_out })?;
        for definition in &opening.reminders {
            self.note_registered(definition);
        }
        self.note_switches(&opening.kinds);
        self.settle_rosters()?;
        let mut opened = Opened::default();
        if let Some(records) = &opening.records {
            opened = self.adopt(at, records)?;
        }
        self.lines.push(Line::Opened { at, serial, opening });
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
        forked.deny.clone_from(&self.deny);
        forked.own.clone_from(&self.own);
        forked.host = self.host.clone();
        forked.for_agents.clone_from(&self.for_agents);
        forked.for_capped_agents.clone_from(&self.for_capped_agents);
        forked.configuration.clone_from(&self.configuration);
        forked.left_out.clone_from(&self.left_out);
        forked.configuration_file.clone_from(&self.configuration_file);
        forked.tunings.clone_from(&self.tunings);
        forked.removed.clone_from(&self.removed);
        forked.opened = true;
        forked.ancestors.clone_from(&self.ancestors);
        forked.ancestors.push(self.id.clone());
        forked.facts = SessionFacts {
            goal: None,
            mode_override: None,
            fork: Some(Fork { source: self.id.clone(), worktree }),
            ..self.facts.clone()
        };
        // In a worktree of its own the paths are others.
        let watched = match &forked.facts.fork {
            Some(Fork { worktree: Some(_), .. }) => WatchedFiles::default(),
            _ => root.facts.watched.anew(),
        };
        let mut facts = ScopeFacts {
            pools: root.facts.pools.clone(),
            sections: root.facts.sections.clone(),
            named: root.facts.named.clone(),
            contents: root.facts.contents.clone(),
            watched,
            ..ScopeFacts::default()
        };
        facts.recoveries = root.facts.recoveries;
        let scope = forked.scope_mut(&ScopePath::ROOT)?;
        scope.roster.clone_from(&root.roster);
        scope.history = root.history.through(last);
        // Where the source came from is not where the fork does.
        scope.history.forget(Some("fork-provenance"));
        scope.turns_ended = root.turns_ended + u64::from(root.turn.is_some());
        (scope.requests, scope.prompts) = (root.requests, root.prompts);
        scope.facts = facts;
        scope.facts.watched.judge(&scope.history);
        if let Some(body) = report {
            let serial = forked.next_serial();
            let name = Some("fork-report".to_owned());
            forked.fifo.push(Pending { serial, name, body, tells: None })?;
        }
        Ok(forked)
    }

    /// Takes the records that the client's history holds as what is held: theirs stand, and one
    /// whose commit was lost counts as told.
    fn adopt(&mut self, at: Millis, records: &[Record]) -> Result<Opened, Refusal> {
        let mut opened = Opened::default();
        // The root's are all that its history holds, even when there are none.
        let mut of_scopes = BTreeMap::from([(&ScopePath::ROOT, Vec::new())]);
        for record in records {
            let reason = if !record.is_whole(self.kit.digest) {
                Some("its digest does not fit its content".to_owned())
            } else if record.session != self.id && !self.ancestors.contains(&record.session) {
                Some(format!("it belongs to session {:?}", record.session))
            } else {
                None
            };
            match reason {
                Some(reason) => {
                    opened.rejected.push(Rejected { id: record.id.clone(), reason });
                }
                None => {
                    of_scopes.entry(&record.agent).or_default().push(record);
                    opened.accepted.push(record.id.clone());
                }
            }
        }
        for (path, records) in of_scopes {
            // An agent whose process is gone with the daemon is spawned again first.
            if self.scope(path).is_ok_and(|scope| !scope.settled) {
                self.adopt_records(at, path, records)?;
            } else {
                self.awaited.insert(path.clone(), records.into_iter().cloned().collect());
            }
        }
        self.continued_episode = self.episode_in_history();
        Ok(opened)
    }

    /// Exactly these records are what the history of a scope holds.
    pub(super) fn adopt_records<'a>(
        &mut self,
        at: Millis,
        path: &ScopePath,
        records: impl IntoIterator<Item = &'a Record>,
    ) -> Result<(), Refusal> {
        let mut held = Vec::new();
        for record in records {
            self.adopt_record(at, path, record)?;
            held.push(record.id.clone());
        }
        self.history_holds(path, &held)
    }

    /// A record that history holds counts as told, whatever became of its commit.
    fn adopt_record(
        &mut self,
        at: Millis,
        path: &ScopePath,
        record: &Record,
    ) -> Result<(), Refusal> {
        let scope = self.scope(path)?;
        let open = scope.tokens.open.iter().find(|open| open.record == record.id);
        if let Some(token) = open.map(|open| open.token.clone()) {
            self.commit(at, &token, None, None)?;
            // History holds it: it is told, whatever becomes of the line.
            self.confirm(&token);
            return Ok(());
        }
        let scope = self.scope_mut(path)?;
        if scope.history.record(&record.id).is_some() {
            return Ok(());
        }
        let index = scope.history.records().len();
        let Ordinals { turn, request, prompt } = record.ordinals;
        scope.requests = scope.requests.max(request);
        scope.prompts = scope.prompts.max(prompt);
        match &mut scope.turn {
            Some(open) if open.id == record.turn => open.committed = open.committed.max(1),
            // Its turn has ended: nothing of it is open here.
            _ => scope.turns_ended = scope.turns_ended.max(turn),
        }
        // Recoveries and planning episodes are told by their numbers, which go on from the highest
        // that was told.
        let of_kind = |kind| record.entries.iter().filter(move |entry| entry.kind == kind);
        let recovered = of_kind("recovery").filter_map(|entry| entry.fingerprint.parse().ok());
        scope.facts.recoveries = recovered.fold(scope.facts.recoveries, u64::max);
        let planned = of_kind("plan-mode").flat_map(|entry| &entry.marks);
        let planned = planned.filter_map(|mark| mark.strip_prefix('#')?.parse().ok());
        let planned = planned.fold(0, u64::max);
        scope.history.add(Delivered { record: record.clone(), at, placement: None, lost: None });
        self.facts.episodes = self.facts.episodes.max(planned);
        self.adopt_start(path, index, record);
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
}

fn add_new(known: &mut Vec<String>, given: &[String]) {
    for text in given {
        if !known.contains(text) {
            known.push(text.clone());
        }
    }
}
