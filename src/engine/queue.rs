//! What waits to be told: the session's pending FIFO, and a scope's turn events and staged
//! entries. Every queue has a bound at which it refuses; nothing is dropped silently.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use super::record::{Lane, Serial, SilentEntry};
use super::refusal::{Refusal, RefusalKind};
use super::unconfirmed::Taken;

/// Bodies that the pending FIFO holds at most (`reminders.md` §3, `pending-events`).
pub const PENDING_MAX: usize = 256;
/// Turn events that a scope holds at most.
pub const TURN_EVENTS_MAX: usize = 1024;
/// Staged entries that a scope holds at most.
pub const STAGED_MAX: usize = 256;
/// Acknowledgements that a scope holds at most.
pub const ACKNOWLEDGED_MAX: usize = 1024;

/// One body of the pending FIFO.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pending {
    /// When it came, among all queued items.
    pub serial: Serial,
    /// What the sender calls it; serves as its label in `explain`.
    pub name: Option<String>,
    /// What to tell.
    pub body: String,
    /// What telling it tells besides, for a reminder that speaks through the FIFO.
    pub tells: Option<SilentEntry>,
}

/// The session's pending FIFO: survives turns, not restarts.
#[derive(Debug, Default)]
pub struct Fifo {
    items: VecDeque<Pending>,
}

impl Fifo {
    /// Adds a body at the end, or refuses when the FIFO is full.
    pub fn push(&mut self, item: Pending) -> Result<(), Refusal> {
        if self.items.len() >= PENDING_MAX {
            return Err(full("the pending FIFO", PENDING_MAX, "commit a WAIT of the root scope"));
        }
        self.items.push_back(item);
        Ok(())
    }

    /// The bodies in order of arrival.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Pending> {
        self.items.iter()
    }

    /// How many bodies wait.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Takes back what a reminder has put in.
    pub fn withdraw(&mut self, reminder: &str) {
        self.items.retain(|item| item.tells.as_ref().is_none_or(|it| it.entry_type != reminder));
    }

    /// Takes out one body that was told.
    pub fn take(&mut self, serial: Serial) -> Option<Pending> {
        let place = self.items.iter().position(|item| item.serial == serial)?;
        self.items.remove(place)
    }

    /// Puts back a body that was not told after all, where it was. It was counted before, so this
    /// does not ask whether the FIFO is full.
    pub fn put_back(&mut self, item: Pending) {
        let place = self.items.partition_point(|other| other.serial < item.serial);
        self.items.insert(place, item);
    }
}

/// An observation of the open turn, told at the next WAIT that the turn owns.
#[derive(Clone, Debug)]
pub struct TurnEvent {
    /// When it came, among all queued items.
    pub serial: Serial,
    /// Later observations with this key replace it.
    pub key: String,
    /// The entry's type.
    pub entry_type: String,
    /// What to tell.
    pub body: String,
}

/// One entry that the client stages for the next WAIT of the open turn.
#[derive(Clone, Debug)]
pub struct Staged {
    /// When it came, among all queued items.
    pub serial: Serial,
    /// Where in the message it stands.
    pub lane: Lane,
    /// The entry's type.
    pub entry_type: String,
    /// The member it is about; a later one of the same type and key replaces it.
    pub key: Option<String>,
    /// What a row calls it; its type when absent.
    pub label: Option<String>,
    /// What to tell.
    pub body: String,
}

/// What a hook has to add, waiting for the session's next chance.
#[derive(Clone, Debug)]
pub struct HookContext {
    /// When it came, among all queued items.
    pub serial: Serial,
    /// The hook's event.
    pub event: String,
    /// What it adds.
    pub body: String,
}

/// Context that rides in the prompt text: left out of WAITs, told at the next commit
/// (`reminder/acknowledge`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acknowledged {
    /// When it came, among all queued items.
    pub serial: Serial,
    /// The reminder it stands for.
    pub reminder: String,
    /// The member of it, if it has several.
    pub key: Option<String>,
    /// The state that the prompt text shows; whatever is proposed when absent.
    pub fingerprint: Option<String>,
}

/// What a turn owns: gone when it ends.
#[derive(Clone, Debug, Default)]
pub struct TurnQueue {
    events: Vec<TurnEvent>,
    staged: Vec<Staged>,
    acknowledged: Vec<Acknowledged>,
    /// Bodies that clients' generators answered and that are not told yet, by reminder.
    answered: BTreeMap<String, String>,
}

impl TurnQueue {
    /// Adds an observation; an earlier one of its key gives way, latest last.
    pub fn observe(&mut self, event: TurnEvent) -> Result<(), Refusal> {
        let known = self.events.iter().position(|known| known.key == event.key);
        match known {
            Some(index) => drop(self.events.remove(index)),
            None if self.events.len() >= TURN_EVENTS_MAX => {
                return Err(full("the turn's events", TURN_EVENTS_MAX, "commit a WAIT first"));
            }
            None => {}
        }
        self.events.push(event);
        Ok(())
    }

    /// Adds an entry; an earlier one of its type and key gives way, latest last.
    pub fn stage(&mut self, entry: Staged) -> Result<(), Refusal> {
        let known = self.staged.iter().position(|known| {
            known.key.is_some() && known.key == entry.key && known.entry_type == entry.entry_type
        });
        match known {
            Some(index) => drop(self.staged.remove(index)),
            None if self.staged.len() >= STAGED_MAX => {
                return Err(full("the staged entries", STAGED_MAX, "commit a WAIT first"));
            }
            None => {}
        }
        self.staged.push(entry);
        Ok(())
    }

    /// Notes that something rides in the prompt text.
    pub fn acknowledge(&mut self, context: Acknowledged) -> Result<(), Refusal> {
        self.acknowledged
            .retain(|known| known.reminder != context.reminder || known.key != context.key);
        if self.acknowledged.len() >= ACKNOWLEDGED_MAX {
            return Err(full("the acknowledgements", ACKNOWLEDGED_MAX, "commit a WAIT first"));
        }
        self.acknowledged.push(context);
        Ok(())
    }

    /// Takes back the events and staged entries of a key. Says whether there were any.
    pub fn withdraw(&mut self, key: &str) -> bool {
        let before = self.events.len() + self.staged.len();
        self.events.retain(|event| event.key != key);
        self.staged.retain(|entry| entry.key.as_deref() != Some(key));
        self.events.len() + self.staged.len() < before
    }

    /// Takes out one event or entry that was told.
    pub fn take(&mut self, serial: Serial) -> Option<Taken> {
        if let Some(place) = self.events.iter().position(|event| event.serial == serial) {
            return Some(Taken::Event(self.events.remove(place)));
        }
        if let Some(place) = self.staged.iter().position(|entry| entry.serial == serial) {
            return Some(Taken::Staged(self.staged.remove(place)));
        }
        let place = self.acknowledged.iter().position(|context| context.serial == serial)?;
        Some(Taken::Acknowledged(self.acknowledged.remove(place)))
    }

    /// Puts back an event that was not told after all, unless a later one of its key came.
    pub fn put_back_event(&mut self, event: TurnEvent) {
        if self.events.iter().all(|other| other.key != event.key) {
            let place = self.events.partition_point(|other| other.serial < event.serial);
            self.events.insert(place, event);
        }
    }

    /// Puts back an entry that was not told after all, unless a later one of its type and key came.
    pub fn put_back_staged(&mut self, entry: Staged) {
        let replaces =
            |other: &Staged| other.key == entry.key && other.entry_type == entry.entry_type;
        if entry.key.is_none() || !self.staged.iter().any(replaces) {
            let place = self.staged.partition_point(|other| other.serial < entry.serial);
            self.staged.insert(place, entry);
        }
    }

    /// Puts back an acknowledgement that was not told after all, unless a later one came.
    pub fn put_back_acknowledged(&mut self, context: Acknowledged) {
        let replaces =
            |other: &Acknowledged| other.reminder == context.reminder && other.key == context.key;
        if !self.acknowledged.iter().any(replaces) {
            let place = self.acknowledged.partition_point(|other| other.serial < context.serial);
            self.acknowledged.insert(place, context);
        }
    }

    /// The turn's events, in order.
    pub fn events(&self) -> &[TurnEvent] {
        &self.events
    }

    /// The staged entries, in order.
    pub fn staged(&self) -> &[Staged] {
        &self.staged
    }

    /// What rides in the prompt text.
    pub fn acknowledged(&self) -> &[Acknowledged] {
        &self.acknowledged
    }

    /// Keeps the body that a client's generator answered until it is told: a new one replaces it,
    /// no answer leaves it (`configuration.md`, "First time").
    pub fn answer(&mut self, reminder: &str, body: String) {
        self.answered.insert(reminder.to_owned(), body);
    }

    /// The body that a client's generator answered and that is not told yet.
    pub fn answered(&self, reminder: &str) -> Option<&str> {
        self.answered.get(reminder).map(String::as_str)
    }

    /// A generator's body was told, or its generator is gone.
    pub fn forget_answer(&mut self, reminder: &str) -> Option<String> {
        self.answered.remove(reminder)
    }

    /// Puts back a body that was not told after all, unless the generator answered again.
    pub fn put_back_answer(&mut self, reminder: String, body: String) {
        self.answered.entry(reminder).or_insert(body);
    }

    /// The turn is over: its undelivered events and entries are gone. Answers of generators are
    /// not the turn's and stay due.
    pub fn end_turn(&mut self) {
        self.events.clear();
        self.staged.clear();
        self.acknowledged.clear();
    }
}

pub(super) fn full(what: &str, most: usize, next: &str) -> Refusal {
    Refusal::new(
        RefusalKind::LimitExceeded,
        format!(
            "{what}: {most} are the most that wait, and as many do: {next}, then send this again"
        ),
    )
}
