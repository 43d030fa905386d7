//! What stands at a path, as far as the engine cares: never content, only its fingerprint; and what
//! a comparison of the watched files with the disk found (`reminders.md` §5).

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::path::ScopePath;

/// A digest of a file's content as it is compared: byte-order mark and line endings aside.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(pub [u8; 32]);

impl fmt::Display for Fingerprint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{self}")
    }
}

impl Serialize for Fingerprint {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Fingerprint {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let byte = |pair: &[u8]| {
            let digit = |digit: u8| char::from(digit).to_digit(16);
            let value = digit(pair[0])? * 16 + digit(pair[1])?;
            u8::try_from(value).ok()
        };
        let bytes: Option<Vec<u8>> = text.as_bytes().chunks_exact(2).map(byte).collect();
        let bytes = bytes.filter(|_| text.len() == 64).and_then(|bytes| bytes.try_into().ok());
        bytes.map(Self).ok_or_else(|| de::Error::custom("a fingerprint has 64 hexadecimal digits"))
    }
}

/// What stands at a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileState {
    /// Nothing.
    Missing,
    /// A regular file.
    File {
        /// Of its content.
        fingerprint: Fingerprint,
        /// Its size on disk, in bytes.
        bytes: u64,
    },
    /// Something that is never opened: "a directory", "a FIFO", "a device", "a socket".
    Other(String),
    /// A file that could not be read, and why.
    Unreadable(String),
}

impl FileState {
    /// Whether nothing that counts differs: of two files the content decides, not the size, which
    /// line endings change.
    pub fn is_as(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::File { fingerprint: one, .. }, Self::File { fingerprint: two, .. }) => {
                one == two
            }
            (one, other) => one == other,
        }
    }
}

/// Who changed a file, where that is known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Author {
    /// An agent of the same session; the root conversation when its path is empty.
    Agent(ScopePath),
    /// The agent of another session.
    OtherSession,
    /// The person, in the editor.
    Person,
    /// Nobody that is known.
    Outside,
}

/// What of a changed file's content may be told, and fits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Change {
    /// A unified diff, each line ended by a newline.
    Diff {
        /// The hunks, without the two lines that name the files.
        text: String,
        /// Lines that begin with a space, a plus or a minus and were cut away.
        omitted: u64,
    },
    /// No content, and why not, as a clause: "it matches a secret pattern", "it is binary"…
    Withheld(String),
}

/// A watched file that differs from what the scope was told of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edited {
    /// Every spelling under which the scope watches it, the newest first.
    pub paths: Vec<String>,
    /// What the scope knows.
    pub was: FileState,
    /// What stands there now: exactly what was compared.
    pub now: FileState,
    /// Who did it.
    pub author: Author,
    /// What may be told of the change.
    pub change: Change,
}

/// How much of the differences one WAIT may show (`reminders.md` §5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DiffLimits {
    /// Lines of one file that begin with a space, a plus or a minus.
    pub file_lines: u64,
    /// Bytes of a side above which a file is not compared line by line.
    pub file_bytes: u64,
    /// Such lines of all files.
    pub lines: u64,
    /// Bytes of all files' differences.
    pub bytes: u64,
}

impl Default for DiffLimits {
    fn default() -> Self {
        Self { file_lines: 40, file_bytes: 256 << 10, lines: 400, bytes: 32 << 10 }
    }
}
