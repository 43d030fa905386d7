//! The injection record: what was told, complete, so that it can be rebuilt anywhere; and the few
//! words in which every other part of the engine speaks of time, order and consequences.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::files::FileState;
use super::path::ScopePath;
use super::policy::Ordinals;
use super::render::{self, Form};

/// A number that rises with every queued item of a session, so that what a WAIT captured can be
/// told apart from what came later under the same key.
pub type Serial = u64;

/// Where in one message an entry stands (`reminders.md` §1, "Order in one message").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Lane {
    /// What the person mentioned.
    Mention,
    /// Skills.
    Skill,
    /// The roster, in the order of registration.
    #[default]
    Roster,
    /// What a compaction dropped.
    Compaction,
    /// Corrections of course.
    Steering,
    /// Named sections of context.
    Sections,
    /// What was observed during the turn.
    Events,
}

/// Milliseconds since the Unix epoch, given by whoever calls the engine.
pub type Millis = u64;

/// Where in its turn a message was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// The first committed WAIT of the turn.
    TurnStart,
    /// Any later one.
    MidTurn,
}

impl Phase {
    /// The name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TurnStart => "turn-start",
            Self::MidTurn => "mid-turn",
        }
    }
}

/// One reminder as it was told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// New for each WAIT.
    pub id: String,
    /// The reminder's id, or the type that a client gave.
    #[serde(rename = "type")]
    pub entry_type: String,
    /// Which member of it: a section, a path, a hook's event…
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The kind that made it.
    pub kind: String,
    /// What a row calls it.
    pub label: String,
    /// The complete text.
    pub body: String,
    /// The state that it told, compared by `onChange`.
    pub fingerprint: String,
    /// Named values that it told: thresholds, names that came (`+`) or went (`-`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<String>,
}

/// Something that rode in the prompt text instead of the message (`reminder/acknowledge`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SilentEntry {
    /// The reminder's id.
    #[serde(rename = "type")]
    pub entry_type: String,
    /// Which member of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The kind that would have made it.
    pub kind: String,
    /// The state that it told.
    pub fingerprint: String,
    /// Named values that it told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<String>,
}

/// The injection record: complete and untruncated, it suffices to rebuild the message byte for
/// byte anywhere (`SPEC.md`, "The injection record").
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Unique across sessions and daemons.
    pub id: String,
    /// The session it was told in.
    pub session: String,
    /// The agent it was told to; the root when empty.
    pub agent: ScopePath,
    /// The client's id of the turn.
    pub turn: String,
    /// Where in the turn.
    pub phase: Phase,
    /// How the bodies were put together.
    pub form: Form,
    /// Where the scope stood.
    pub ordinals: Ordinals,
    /// What was told, in order.
    pub entries: Vec<Entry>,
    /// What rode in the prompt text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub silent: Vec<SilentEntry>,
    /// Covers all of the above.
    pub digest: String,
}

/// Makes a digest of bytes. The engine is given one, so that it needs no library of its own.
pub type Digest = fn(&[u8]) -> String;

impl Record {
    /// The message's content, byte for byte as it was told.
    pub fn content(&self) -> String {
        render::content(self.form, self.entries.iter().map(|entry| entry.body.as_str()))
    }

    /// The same record with the digest that its other members yield.
    #[must_use]
    pub fn sealed(mut self, digest: Digest) -> Self {
        self.digest = digest(&self.canonical());
        self
    }

    /// Whether the digest is that of the other members.
    pub fn is_whole(&self, digest: Digest) -> bool {
        self.digest == digest(&self.canonical())
    }

    /// The bytes that the digest covers: netstrings of every member in the order of `SPEC.md`,
    /// so that no two records share them and any language can make them.
    fn canonical(&self) -> Vec<u8> {
        let bodies: usize = self.entries.iter().map(|entry| entry.body.len()).sum();
        let mut out = Vec::with_capacity(256 + 256 * self.entries.len() + bodies);
        let mut text = |part: &str| {
            out.extend_from_slice(part.len().to_string().as_bytes());
            out.push(b':');
            out.extend_from_slice(part.as_bytes());
            out.push(b',');
        };
        let Ordinals { turn, request, prompt } = self.ordinals;
        for part in ["injected-reminders", "1", &self.id, &self.session, self.agent.as_str()] {
            text(part);
        }
        for part in [&self.turn, self.phase.name(), self.form.name()] {
            text(part);
        }
        for number in [turn, request, prompt, self.entries.len() as u64] {
            text(&number.to_string());
        }
        let marks_of = |marks: &[String], text: &mut dyn FnMut(&str)| {
            text(&marks.len().to_string());
            marks.iter().for_each(|mark| text(mark));
        };
        for entry in &self.entries {
            text(&entry.id);
            text(&entry.entry_type);
            text(if entry.key.is_some() { "1" } else { "0" });
            for part in [
                entry.key.as_deref().unwrap_or_default(),
                &entry.kind,
                &entry.label,
                &entry.body,
                &entry.fingerprint,
            ] {
                text(part);
            }
            marks_of(&entry.marks, &mut text);
        }
        text(&self.silent.len().to_string());
        for silent in &self.silent {
            text(&silent.entry_type);
            text(if silent.key.is_some() { "1" } else { "0" });
            for part in
                [silent.key.as_deref().unwrap_or_default(), &silent.kind, &silent.fingerprint]
            {
                text(part);
            }
            marks_of(&silent.marks, &mut text);
        }
        out
    }
}

/// What telling an entry consumes or moves, beside being told. Applied by commit, only those that
/// were captured, only once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Effect {
    /// Takes one item out of the queues.
    Take(Serial),
    /// Forgets the answer of a client's generator.
    ForgetAnswer(String),
    /// Ends the mode that was set for one request.
    EndOverride(Serial),
    /// The files whose contents a compaction dropped were named.
    TakeDropped,
    /// A file stands like this.
    KnowFile {
        /// The path under which the scope watches it.
        path: String,
        /// What was compared.
        state: FileState,
        /// When, among all that happened.
        at: Serial,
    },
    /// The instructions of every directory read until then were looked at.
    TakeReads(Serial),
    /// What checkers found is compared with these states from now on.
    TellDiagnostics {
        /// The number of each file's state, by path.
        states: BTreeMap<String, u64>,
        /// Checkers whose failure was mentioned.
        failed: Vec<String>,
    },
}
