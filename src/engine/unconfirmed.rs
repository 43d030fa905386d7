//! Commits that are applied and not durable yet. What follows a commit sees it told; when the store
//! could not keep it, everything is as if it had never come.

use std::collections::{BTreeMap, BTreeSet};

use super::Session;
use super::facts::{AttachedSkill, HookOutcome, Job, Mention};
use super::path::ScopePath;
use super::queue::{Acknowledged, HookContext, Pending, Staged, TurnEvent};
use super::record::Serial;
use super::token::{Expiry, Fate, OpenWait};

/// A commit that the store has not kept yet, with all that undoing it takes.
#[derive(Debug)]
pub struct Unconfirmed {
    /// Of which scope.
    pub scope: ScopePath,
    /// The WAIT that was committed.
    pub open: OpenWait,
    /// The record of what was told.
    pub told: Option<String>,
    /// What was consumed.
    pub taken: Vec<Taken>,
    /// Whether it was the first of its turn.
    pub begins_prompt: bool,
    /// Whether the host's compaction had made everything due.
    pub native_compaction: bool,
    /// What would have expired the token since.
    pub expired: Option<Expiry>,
    /// Whether its agent was spawned anew since.
    pub left_behind: bool,
}

/// One thing that a commit consumed.
#[derive(Debug)]
pub enum Taken {
    /// A turn event.
    Event(TurnEvent),
    /// A staged entry.
    Staged(Staged),
    /// An acknowledgement.
    Acknowledged(Acknowledged),
    /// A generator's answer: its id and the body.
    Answer(String, String),
    /// The end of a job.
    Job((Serial, Job)),
    /// A mention.
    Mention((Serial, Mention)),
    /// An attached skill.
    Attached((Serial, AttachedSkill)),
    /// A hook that blocked something.
    Blocked((Serial, HookOutcome)),
    /// A file that was read whole.
    WholeRead((Serial, String)),
    /// Files whose contents a compaction dropped.
    Dropped(BTreeSet<String>),
    /// Directories of reads whose instructions were looked at.
    Reads(BTreeMap<String, Serial>),
    /// A body of the FIFO.
    Pending(Pending),
    /// The context of a hook.
    HookContext(HookContext),
    /// The mode that held for one request.
    Override((Serial, String)),
    /// What was told of diagnostics before.
    Diagnostics {
        /// The state of each file, if one was told.
        before: Vec<(String, Option<u64>)>,
        /// Checkers whose failure was not mentioned yet.
        failed: Vec<String>,
    },
}

/// Takes the item of this number out of a list.
pub fn take_out<T>(items: &mut Vec<(Serial, T)>, serial: Serial) -> Option<(Serial, T)> {
    let place = items.iter().position(|(other, _)| *other == serial)?;
    Some(items.remove(place))
}

/// Puts an item back in the order of numbers, unless a later one stands for the same.
fn put_back<T>(items: &mut Vec<(Serial, T)>, item: (Serial, T), same: impl Fn(&T, &T) -> bool) {
    if items.iter().all(|(_, other)| !same(other, &item.1)) {
        let place = items.partition_point(|(serial, _)| *serial < item.0);
        items.insert(place, item);
    }
}

impl Session {
    /// The store has kept the commit of this token.
    pub fn confirm(&mut self, token: &str) {
        self.unconfirmed.retain(|unconfirmed| unconfirmed.open.token != token);
    }

    /// The store could not keep the commit of this token, nor any later one: nothing was told with
    /// it. Several are undone in the opposite order of their commits. The token is open again
    /// unless something has expired it since. Says whether there was anything to undo.
    pub fn undo(&mut self, token: &str) -> bool {
        let Some(place) = self.unconfirmed.iter().position(|it| it.open.token == token) else {
            return false;
        };
        let unconfirmed = self.unconfirmed.remove(place);
        let Unconfirmed { scope: path, open, told, taken, .. } = unconfirmed;
        self.fates.retract(token);
        if unconfirmed.left_behind {
            self.former.retain(|record| Some(&record.id) != told.as_ref());
            self.fates.note(open.token, Fate::Expired(Expiry::TurnEnded));
            return true;
        }
        let Some(scope) = self.scopes.get_mut(&path) else { return true };
        scope.requests -= 1;
        scope.prompts -= u64::from(unconfirmed.begins_prompt);
        scope.native_compaction |= unconfirmed.native_compaction;
        if let Some(told) = &told {
            scope.history.retract(told);
            scope.facts.watched.retract(told, &scope.history);
        }
        let same_turn = scope.turn.as_mut().filter(|turn| turn.id == open.turn);
        let turn_goes_on = same_turn.is_some();
        if let Some(turn) = same_turn {
            turn.committed -= 1;
        }
        for taken in taken {
            self.give_back(&path, taken, turn_goes_on);
        }
        match unconfirmed.expired {
            Some(expiry) => self.fates.note(open.token, Fate::Expired(expiry)),
            None => {
                if let Some(scope) = self.scopes.get_mut(&path) {
                    scope.tokens.open.push(open);
                }
            }
        }
        true
    }

    /// Puts back what a commit had consumed. What is a turn's own is gone with its turn.
    fn give_back(&mut self, path: &ScopePath, taken: Taken, turn_goes_on: bool) {
        let Some(scope) = self.scopes.get_mut(path) else { return };
        let (queue, facts) = (&mut scope.queue, &mut scope.facts);
        match taken {
            Taken::Pending(item) => self.fifo.put_back(item),
            Taken::HookContext(context) => {
                let waiting = &mut self.hook_contexts;
                let place = waiting.partition_point(|other| other.serial < context.serial);
                waiting.insert(place, context);
            }
            Taken::Override(ended) => drop(self.facts.mode_override.get_or_insert(ended)),
            Taken::Answer(reminder, body) => queue.put_back_answer(reminder, body),
            Taken::Job(job) => put_back(&mut facts.jobs, job, |_, _| false),
            Taken::Reads(reads) => {
                for (directory, read) in reads {
                    facts.reads.entry(directory).or_insert(read);
                }
            }
            Taken::Diagnostics { before, failed } => {
                let checked = &mut facts.checked;
                checked.failed.retain(|checker| !failed.contains(checker));
                for (path, state) in before.into_iter().filter(|_| turn_goes_on) {
                    match state {
                        Some(state) => drop(checked.states.insert(path, state)),
                        None => drop(checked.states.remove(&path)),
                    }
                }
            }
            _ if !turn_goes_on => {}
            Taken::Dropped(dropped) => facts.dropped.extend(dropped),
            Taken::Event(event) => queue.put_back_event(event),
            Taken::Staged(entry) => queue.put_back_staged(entry),
            Taken::Acknowledged(context) => queue.put_back_acknowledged(context),
            Taken::Mention(mention) => put_back(&mut facts.mentions, mention, |one, two| {
                one.kind == two.kind && one.target == two.target && one.range == two.range
            }),
            Taken::Attached(skill) => {
                put_back(&mut facts.attached, skill, |one, two| one.name == two.name);
            }
            Taken::Blocked(outcome) => {
                put_back(&mut facts.blocked, outcome, |one, two| one.event == two.event);
            }
            Taken::WholeRead(read) => put_back(&mut facts.whole_reads, read, |one, two| one == two),
        }
    }

    /// An agent was spawned anew: what its former conversation committed cannot be opened again.
    pub(super) fn leave_behind(&mut self, path: &ScopePath) {
        for unconfirmed in self.unconfirmed.iter_mut().filter(|it| it.scope == *path) {
            unconfirmed.left_behind = true;
        }
    }
}
