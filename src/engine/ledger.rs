//! What was told: which committed records history still holds, and the lines from which a session
//! is replayed. Whether and when something was told is asked here and
//! nowhere else (law 3 of the architecture).

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::event::{Event, Opening};
use super::path::ScopePath;
use super::policy::{Ordinals, Rearm, Spoken, Told};
use super::record::{Effect, Millis, Record, Serial};
use super::render::estimate_tokens;
use super::snapshot::Snapshot;

/// One line of a session's append-only ledger. A session is what replaying its lines yields.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Line {
    /// `session/open`, the first time and each later one.
    Opened {
        /// When.
        at: Millis,
        /// The number of the last queued item before it, so that a replay counts alike.
        serial: Serial,
        /// With what.
        opening: Opening,
    },
    /// Something that a client reported and that outlives the process.
    Reported {
        /// When.
        at: Millis,
        /// The number of the last queued item before it, so that a replay counts alike.
        serial: Serial,
        /// Of which scope.
        scope: ScopePath,
        /// What.
        event: Event,
    },
    /// A request went out, and this was told with it.
    Committed(Commit),
    /// The session was restored while turns were open: they ended then.
    Resumed,
    /// Everything that the lines before it come to: a replay begins at the last of these.
    Snapshot(Box<Snapshot>),
}

impl Line {
    /// When it was written, where that is known.
    pub fn at(&self) -> Option<Millis> {
        match self {
            Self::Opened { at, .. } | Self::Reported { at, .. } => Some(*at),
            Self::Committed(commit) => Some(commit.at),
            Self::Resumed | Self::Snapshot(_) => None,
        }
    }

    /// What it is, in the word that its text begins with.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Opened { .. } => "opened",
            Self::Reported { .. } => "reported",
            Self::Committed(_) => "committed",
            Self::Resumed => "resumed",
            Self::Snapshot(_) => "snapshot",
        }
    }
}

/// The effects of one commit, as data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Commit {
    /// When.
    pub at: Millis,
    /// Of which scope.
    pub scope: ScopePath,
    /// The token that was committed.
    pub token: String,
    /// What was told; none when nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<Record>,
    /// Ids of entries that the WAIT offered and that were not told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<String>,
    /// Where the host put it, in its own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<String>,
    /// What else the telling consumes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<Effect>,
}

/// How a record left history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Loss {
    /// A compaction summarised it away.
    Compacted,
    /// A rewind, a clearing, or the client's report of what its payload holds.
    Removed,
}

/// A committed record and whether history still holds it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivered {
    /// What was told.
    pub record: Record,
    /// When it was committed.
    pub at: Millis,
    /// Where the host put it.
    pub placement: Option<String>,
    /// How history lost it; `None` while it holds it.
    pub lost: Option<Loss>,
}

/// Everything that one scope was told, oldest first, and an index for the policies.
#[derive(Clone, Debug, Default)]
pub struct History {
    delivered: Vec<Delivered>,
    by_id: BTreeMap<String, usize>,
    voices: BTreeMap<String, Voice>,
    /// What telling cost, by kind and type: what was forgotten, or is lost, was paid for all the same.
    spent: BTreeMap<String, BTreeMap<String, Spent>>,
    /// The same, all together, in estimated tokens.
    tokens: u64,
    /// What was forgotten, in order: how many records there were then, and which reminder's, or
    /// all.
    forgotten: Vec<(usize, Option<String>)>,
}

/// A history without its index, as a snapshot keeps it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KeptHistory {
    delivered: Vec<Delivered>,
    forgotten: Vec<(usize, Option<String>)>,
}

impl From<KeptHistory> for History {
    fn from(kept: KeptHistory) -> Self {
        let mut history = Self::default();
        let mut forgotten = kept.forgotten.into_iter().peekable();
        for (index, delivered) in kept.delivered.into_iter().enumerate() {
            while let Some((_, reminder)) = forgotten.next_if(|(records, _)| *records <= index) {
                history.forget(reminder.as_deref());
            }
            history.add(delivered);
        }
        forgotten.for_each(|(_, reminder)| history.forget(reminder.as_deref()));
        history
    }
}

/// What telling something has cost so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Entries.
    pub entries: u64,
    /// Estimated tokens of their bodies.
    pub tokens: u64,
}

impl Spent {
    fn add(&mut self, other: Self) {
        self.entries += other.entries;
        self.tokens += other.tokens;
    }
}

impl std::iter::Sum for Spent {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |mut sum, one| {
            sum.add(one);
            sum
        })
    }
}

/// What was told by one reminder.
#[derive(Clone, Debug, Default)]
struct Voice {
    last: Option<Ordinals>,
    in_turn: (u64, u64),
    in_session: u64,
    /// What it told without a key, apart from the others: looking up an empty text is slow.
    keyless: Tellings,
    keys: BTreeMap<String, Tellings>,
}

/// What was told of one key of a reminder.
#[derive(Clone, Debug, Default)]
struct Tellings {
    all: Vec<Telling>,
    /// The newest that history holds, kept so that asking costs the same after ten thousand.
    held: Option<usize>,
    marks: BTreeSet<String>,
}

#[derive(Clone, Debug)]
struct Telling {
    record: usize,
    fingerprint: String,
    marks: Vec<String>,
    ordinals: Ordinals,
}

impl Tellings {
    fn recount(&mut self, delivered: &[Delivered]) {
        self.held = self.all.iter().rposition(|telling| delivered[telling.record].lost.is_none());
    }
}

impl History {
    /// Adds a record that was just told, or one that the client's history holds.
    pub fn add(&mut self, delivered: Delivered) {
        let index = self.delivered.len();
        self.by_id.insert(delivered.record.id.clone(), index);
        let record = &delivered.record;
        let ordinals = record.ordinals;
        // What rode in the prompt text stands before the message.
        let told =
            record.silent.iter().map(|s| (&s.entry_type, &s.key, &s.fingerprint, &s.marks)).chain(
                record.entries.iter().map(|e| (&e.entry_type, &e.key, &e.fingerprint, &e.marks)),
            );
        for entry in &record.entries {
            let tokens = estimate_tokens(&entry.body);
            let kind = self.spent.entry(entry.kind.clone()).or_default();
            kind.entry(entry.entry_type.clone()).or_default().add(Spent { entries: 1, tokens });
            self.tokens += tokens;
        }
        let mut spoke = BTreeSet::new();
        for (reminder, key, fingerprint, marks) in told {
            let voice = self.voices.entry(reminder.clone()).or_default();
            if spoke.insert(reminder) {
                if voice.in_turn.0 != ordinals.turn {
                    voice.in_turn = (ordinals.turn, 0);
                }
                voice.in_turn.1 += 1;
                voice.in_session += 1;
                voice.last = Some(ordinals);
            }
            let tellings = match key {
                None => &mut voice.keyless,
                Some(key) => voice.keys.entry(key.clone()).or_default(),
            };
            tellings.marks.extend(marks.iter().cloned());
            if delivered.lost.is_none() {
                tellings.held = Some(tellings.all.len());
            }
            tellings.all.push(Telling {
                record: index,
                fingerprint: fingerprint.clone(),
                marks: marks.clone(),
                ordinals,
            });
        }
        self.delivered.push(delivered);
    }

    /// The same history up to and with a record; all of it when none is named.
    #[must_use]
    pub fn through(&self, last: Option<usize>) -> Self {
        let mut history = Self::default();
        let end = last.map_or(self.delivered.len(), |last| last + 1);
        for delivered in &self.delivered[..end] {
            history.add(delivered.clone());
        }
        history
    }

    /// All records, oldest first.
    pub fn records(&self) -> &[Delivered] {
        &self.delivered
    }

    /// The record with this id.
    pub fn record(&self, id: &str) -> Option<&Delivered> {
        self.by_id.get(id).map(|index| &self.delivered[*index])
    }

    /// Decides anew of every record whether history holds it: `lost` is asked with the record's
    /// place, id and present loss.
    pub fn reconcile(&mut self, lost: impl Fn(usize, &str, Option<Loss>) -> Option<Loss>) {
        for (index, delivered) in self.delivered.iter_mut().enumerate() {
            delivered.lost = lost(index, &delivered.record.id, delivered.lost);
        }
        for voice in self.voices.values_mut() {
            voice.keyless.recount(&self.delivered);
            voice.keys.values_mut().for_each(|tellings| tellings.recount(&self.delivered));
        }
    }

    /// The place of a record, oldest first.
    pub fn position(&self, id: &str) -> Option<usize> {
        self.by_id.get(id).copied()
    }

    /// Forgets what was told by one reminder (`roster/remove`), or by all (`roster/reset`).
    pub fn forget(&mut self, reminder: Option<&str>) {
        match reminder {
            Some(reminder) => drop(self.voices.remove(reminder)),
            None => self.voices.clear(),
        }
        // A later forgetting takes in the earlier ones of the same.
        self.forgotten.retain(|(_, known)| reminder.is_some() && known.as_deref() != reminder);
        self.forgotten.push((self.delivered.len(), reminder.map(str::to_owned)));
    }

    /// The history without its index.
    pub fn kept(&self) -> KeptHistory {
        KeptHistory { delivered: self.delivered.clone(), forgotten: self.forgotten.clone() }
    }

    /// Takes out a record whose commit came to nothing. Slow, and as rare as a disk that fails.
    pub fn retract(&mut self, id: &str) {
        let Some(place) = self.position(id) else { return };
        let mut kept = self.kept();
        kept.delivered.remove(place);
        for (records, _) in &mut kept.forgotten {
            *records -= usize::from(*records > place);
        }
        *self = kept.into();
    }

    /// What telling has cost so far, in estimated tokens.
    pub fn tokens(&self) -> u64 {
        self.tokens
    }

    /// What telling each kind has cost so far.
    pub fn spent(&self) -> impl Iterator<Item = (&str, Spent)> {
        self.spent.iter().map(|(kind, types)| (kind.as_str(), types.values().copied().sum()))
    }

    /// What telling a reminder of a kind has cost so far; with no id, all of the kind.
    pub fn spent_on(&self, kind: &str, id: Option<&str>) -> Spent {
        let Some(types) = self.spent.get(kind) else { return Spent::default() };
        match id {
            Some(id) => types.get(id).copied().unwrap_or_default(),
            None => types.values().copied().sum(),
        }
    }

    /// How often and when a reminder spoke.
    pub fn spoken(&self, reminder: &str, turn: u64) -> Spoken {
        self.voices.get(reminder).map_or_else(Spoken::default, |voice| Spoken {
            last: voice.last,
            in_turn: if voice.in_turn.0 == turn { voice.in_turn.1 } else { 0 },
            in_session: voice.in_session,
        })
    }

    /// What a key of a reminder was told.
    pub fn told(&self, reminder: &str, key: Option<&str>) -> Told<'_> {
        let Some(tellings) = self.tellings(reminder, key) else { return Told::default() };
        Told {
            held: tellings.held.map(|index| tellings.all[index].fingerprint.as_str()),
            newest: tellings.all.last().map(|telling| telling.fingerprint.as_str()),
            marks: Some(&tellings.marks),
        }
    }

    /// The marks of the tellings that history still holds, oldest first, from a record's place on.
    pub fn held_marks(
        &self,
        reminder: &str,
        key: Option<&str>,
        from: usize,
    ) -> impl Iterator<Item = &str> {
        let tellings = self.tellings(reminder, key);
        tellings
            .into_iter()
            .flat_map(|tellings| &tellings.all)
            .filter(move |telling| telling.record >= from)
            .filter(|telling| self.delivered[telling.record].lost.is_none())
            .flat_map(|telling| telling.marks.iter().map(String::as_str))
    }

    /// The marks of the tellings of one turn, newest first: those that history still holds, and with
    /// [`Rearm::Never`] those that it lost too.
    pub fn marks_of_turn(
        &self,
        reminder: &str,
        turn: u64,
        rearm: Rearm,
    ) -> impl Iterator<Item = &str> {
        let tellings = self.tellings(reminder, None).into_iter();
        tellings
            .flat_map(|tellings| tellings.all.iter().rev())
            .take_while(move |telling| telling.ordinals.turn == turn)
            .filter(move |telling| {
                rearm == Rearm::Never || self.delivered[telling.record].lost.is_none()
            })
            .flat_map(|telling| telling.marks.iter().map(String::as_str))
    }

    /// The newest telling of a key that was not removed from the conversation: fingerprint and
    /// ordinals. What a compaction summarised counts (`reminders.md` §3, `plan-mode`).
    pub fn told_or_compacted(&self, reminder: &str, key: Option<&str>) -> Option<(&str, Ordinals)> {
        let tellings = self.tellings(reminder, key)?;
        tellings
            .all
            .iter()
            .rev()
            .find(|telling| self.delivered[telling.record].lost != Some(Loss::Removed))
            .map(|telling| (telling.fingerprint.as_str(), telling.ordinals))
    }

    fn tellings(&self, reminder: &str, key: Option<&str>) -> Option<&Tellings> {
        let voice = self.voices.get(reminder)?;
        match key {
            None => Some(&voice.keyless),
            Some(key) => voice.keys.get(key),
        }
    }
}
