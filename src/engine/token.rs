//! Tokens: proof that a client was offered something. A token belongs to one scope and turn and is
//! open, committed, released or expired; only a commit tells.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};

use super::delivery::Preparing;
use super::path::ScopePath;
use super::policy::Ordinals;
use super::record::{Effect, Entry, Millis, Phase, Record, Serial, SilentEntry};
use super::refusal::{Refusal, RefusalKind};
use super::render::Form;
use super::start;

/// Released and expired tokens that a session remembers, so that committing one gets an error
/// that says what happened. Older ones are unknown.
const FATES_MAX: usize = 1024;
/// Open tokens of a scope whose host proves arrival late.
pub const OPEN_MAX: usize = 64;

/// Who waited: the number of a connection. Its loss expires what it waited for.
pub type Waiter = u64;

/// An entry that a WAIT offered, with what telling it consumes.
#[derive(Clone, Debug, PartialEq)]
pub struct Offered {
    /// The entry.
    pub entry: Entry,
    /// What telling it consumes.
    pub effects: Vec<Effect>,
    /// What telling it tells besides.
    pub tells: Vec<SilentEntry>,
}

/// A WAIT that was answered and whose fate is open.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenWait {
    /// The token.
    pub token: String,
    /// The id of its record.
    pub record: String,
    /// The turn that owns it.
    pub turn: String,
    /// Who waited.
    pub waiter: Waiter,
    /// When it was answered.
    pub at: Millis,
    /// Where in its turn.
    pub phase: Phase,
    /// Where the scope stood.
    pub ordinals: Ordinals,
    /// How the bodies were put together.
    pub form: Form,
    /// What was offered, in order.
    pub offered: Vec<Offered>,
    /// What rides in the prompt text and is told with it.
    pub silent: Vec<(SilentEntry, Vec<Effect>)>,
    /// What ends when the request goes out, whatever is told with it.
    pub ends: Vec<Effect>,
    /// What was looked at, and need not be again once everything that came of it is told.
    pub looked_at: Vec<Effect>,
    /// Whether nothing was held back.
    pub whole: bool,
    /// The digest of the record of all of it, which most commits tell; empty when nothing speaks.
    pub digest: String,
}

impl OpenWait {
    /// The record of the entries that are chosen, and of what rides in the prompt text since;
    /// `None` when nothing is told.
    pub fn record_of(
        &self,
        session: &str,
        scope: &ScopePath,
        chosen: &[usize],
        since: &[(SilentEntry, Vec<Effect>)],
    ) -> Option<Record> {
        let told = chosen.iter().map(|index| &self.offered[*index]);
        // A commit that chose nothing of what was offered notes nothing either.
        let notes = !chosen.is_empty() || self.offered.is_empty();
        let riding = self.silent.iter().chain(since).map(|(entry, _)| entry);
        let riding = riding.filter(|entry| notes || !start::is_note(entry));
        let silent: Vec<_> =
            riding.chain(told.clone().flat_map(|offered| &offered.tells)).cloned().collect();
        if chosen.is_empty() && silent.is_empty() {
            return None;
        }
        // A record that tells less than was offered is another record.
        let partial = if chosen.len() < self.offered.len() { "p" } else { "" };
        Some(Record {
            id: format!("{}{partial}", self.record),
            session: session.to_owned(),
            agent: scope.clone(),
            turn: self.turn.clone(),
            phase: self.phase,
            form: self.form,
            ordinals: self.ordinals,
            entries: told.map(|offered| offered.entry.clone()).collect(),
            silent,
            digest: String::new(),
        })
    }
}

/// The open WAITs of a scope, and the one that is being prepared.
#[derive(Debug, Default)]
pub struct Tokens {
    /// Answered and open, oldest first. More than one only where receipts are late.
    pub open: Vec<OpenWait>,
    /// Staged, waiting for what is slow.
    pub preparing: Option<Preparing>,
    /// The last WAITs that were overtaken while they were being prepared, and by what.
    pub overtaken: VecDeque<(Serial, Expiry)>,
}

impl Tokens {
    /// A WAIT was overtaken while it was being prepared.
    pub fn overtake(&mut self, wait: Serial, expiry: Expiry) {
        if self.overtaken.len() >= OPEN_MAX {
            self.overtaken.pop_front();
        }
        self.overtaken.push_back((wait, expiry));
    }
}

/// Why a token is no longer open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Expiry {
    /// A newer WAIT on its scope.
    Superseded,
    /// Its turn ended.
    TurnEnded,
    /// A compaction, rewind or clearing of its scope.
    HistoryChanged,
    /// The connection that waited is gone.
    Disconnected,
    /// The session was closed.
    Closed,
}

impl Expiry {
    const fn reason(self) -> &'static str {
        match self {
            Self::Superseded => "a newer WAIT of its scope superseded it",
            Self::TurnEnded => "its turn ended before delivery",
            Self::HistoryChanged => "the history of its scope changed before delivery",
            Self::Disconnected => "the connection that waited is gone",
            Self::Closed => "its session was closed",
        }
    }

    /// The refusal of what came too late.
    pub fn refusal(self, what: &str) -> Refusal {
        Refusal::new(
            RefusalKind::TokenExpired,
            format!("{what}: {} (send reminder/wait again; nothing was lost)", self.reason()),
        )
    }
}

/// What became of a token.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Fate {
    /// Committed: a second commit answers the same.
    Committed {
        /// The scope that it told.
        scope: ScopePath,
        /// The record of what was told.
        record: Option<String>,
        /// Entries that were offered and not told.
        held: Vec<String>,
    },
    /// Released: nothing was told.
    Released,
    /// Expired: nothing was told.
    Expired(Expiry),
}

/// What became of a session's tokens.
#[derive(Debug, Default)]
pub struct Fates {
    /// Committed ones, kept for good and apart, so that the others cost the same after ten
    /// thousand of them.
    committed: BTreeMap<String, Fate>,
    others: BTreeMap<String, Fate>,
    /// The others, oldest first.
    forgettable: VecDeque<String>,
}

impl Fates {
    /// Notes what became of a token.
    pub fn note(&mut self, token: String, fate: Fate) {
        if let Fate::Committed { .. } = fate {
            self.committed.insert(token, fate);
            return;
        }
        if self.forgettable.len() >= FATES_MAX
            && let Some(oldest) = self.forgettable.pop_front()
        {
            self.others.remove(&oldest);
        }
        self.forgettable.push_back(token.clone());
        self.others.insert(token, fate);
    }

    /// A token whose commit came to nothing.
    pub fn retract(&mut self, token: &str) {
        self.committed.remove(token);
    }

    /// Commits that told these records are not known any more: what they told cannot be said again.
    pub fn forget_records(&mut self, forgotten: &BTreeSet<String>) {
        self.committed.retain(|_, fate| match fate {
            Fate::Committed { record: Some(record), .. } => !forgotten.contains(record),
            _ => true,
        });
    }

    /// The committed tokens, by their text.
    pub fn committed(&self) -> impl Iterator<Item = (&String, &Fate)> {
        self.committed.iter()
    }

    /// What became of a token, if it is known.
    pub fn get(&self, token: &str) -> Option<&Fate> {
        self.others.get(token).or_else(|| self.committed.get(token))
    }
}
