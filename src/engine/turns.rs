//! Turns and agents: who is talking, and when it ends.

use std::collections::BTreeSet;

use super::Session;
use super::calls::Calls;
use super::event::{SettleOutcome, Switches, TurnOutcome};
use super::facts::too_many;
use super::path::ScopePath;
use super::record::Millis;
use super::refusal::{Refusal, RefusalKind};
use super::scope::{Scope, Turn};
use super::token::Expiry;

/// Agents that a session holds at most, settled ones included.
const AGENTS_MAX: usize = 10_000;
/// Records of agents' former conversations that a session keeps. The tokens of older ones are
/// unknown.
pub(super) const FORMER_MAX: usize = 1024;

impl Session {
    pub(super) fn begin_turn(&mut self, path: &ScopePath, turn: &str) -> Result<(), Refusal> {
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
    pub(super) fn end_turn(
        &mut self,
        path: &ScopePath,
        outcome: TurnOutcome,
    ) -> Result<(), Refusal> {
        self.expire(path, Expiry::TurnEnded, |_| true);
        let scope = self.scope_mut(path)?;
        if let Some(turn) = scope.turn.take() {
            scope.turns_ended += 1;
            let partial = outcome == TurnOutcome::Cancelled && turn.committed > 0;
            scope.facts.recoveries += u64::from(partial && path.is_root());
        }
        scope.queue.end_turn();
        scope.facts.end_turn();
        scope.calls = Calls::default();
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

    pub(super) fn spawn(
        &mut self,
        at: Millis,
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
        self.leave_behind(path);
        let told = former.iter().flat_map(|former| former.history.records());
        self.former.extend(told.map(|delivered| delivered.record.clone()));
        let beyond = self.former.len().saturating_sub(FORMER_MAX);
        let forgotten: BTreeSet<_> = self.former.drain(..beyond).map(|record| record.id).collect();
        if !forgotten.is_empty() {
            self.fates.forget_records(&forgotten);
        }
        if let Some(records) = self.awaited.remove(path) {
            self.adopt_records(at, path, &records)?;
        }
        Ok(())
    }

    pub(super) fn settle(
        &mut self,
        path: &ScopePath,
        outcome: SettleOutcome,
    ) -> Result<(), Refusal> {
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
}
