//! What a host was given and has not yet shown to have taken: the only thing that is kept from one
//! event's command to the next one's. The daemon owns everything else.
//!
//! One small file a session in the state directory, `hooks/NAME.json`, readable by its owner alone and
//! locked while a command that may change it runs.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

/// How long notes of a session that says nothing more are kept.
const KEPT: Duration = Duration::from_secs(30 * 24 * 3600);
/// How much of them is read, in bytes: more is not ours.
const BYTES_MAX: u64 = 64 * 1024 * 1024;

/// A text that was given to a host, or the nothing that was.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Given {
    /// The agent whose WAIT it was; `None` for the root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The token to commit or release.
    pub token: String,
    /// The text; empty when nothing spoke.
    pub text: String,
    /// The record of it, should the daemon that offered it be gone.
    #[serde(default, skip_serializing_if = "Json::is_null")]
    pub record: Json,
    /// How long the transcript was.
    pub offset: u64,
}

/// The notes of a session, which no other command changes meanwhile.
#[derive(Debug)]
pub struct Notes {
    path: PathBuf,
    file: File,
    /// How long the file is.
    bytes: u64,
    /// What was given and is not settled, oldest first.
    pub given: Vec<Given>,
}

impl Notes {
    /// The notes of a session of a host. Waits for another command that has them.
    pub fn open(state: &Path, host: &str, session: &str) -> io::Result<Self> {
        let directory = state.join("hooks");
        DirBuilder::new().recursive(true).mode(0o700).create(&directory)?;
        let name = blake3::hash(format!("{host}\0{session}").as_bytes()).to_hex();
        let path = directory.join(format!("{}.json", &name[..32]));
        loop {
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).truncate(false).mode(0o600);
            let mut file = options.open(&path)?;
            flock(&file, FlockOperation::LockExclusive)?;
            // Whoever had it may have taken it away.
            if file_is_at(&file, &path) {
                let mut text = Vec::new();
                (&mut file).take(BYTES_MAX).read_to_end(&mut text)?;
                // Torn by a crash: what was given is offered again or found in history, as ever.
                let given = serde_json::from_slice(&text).unwrap_or_default();
                return Ok(Self { path, file, bytes: text.len() as u64, given });
            }
        }
    }

    /// Writes them down; notes of nothing are taken away.
    pub fn save(&mut self) -> io::Result<()> {
        if self.given.is_empty() {
            return fs::remove_file(&self.path);
        }
        let text = serde_json::to_vec(&self.given)?;
        self.file.rewind()?;
        self.file.write_all(&text)?;
        // Not cut off before: some file systems then wait for the disk when the file is closed.
        let bytes = text.len() as u64;
        if bytes < self.bytes {
            self.file.set_len(bytes)?;
        }
        self.bytes = bytes;
        Ok(())
    }
}

/// Whether an open file is the one that stands at a path.
fn file_is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let ids = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    match (file.metadata(), path.metadata()) {
        (Ok(file), Ok(path)) => ids(file) == ids(path),
        _ => false,
    }
}

/// Takes away what sessions left that were never heard of again.
pub fn clear_old(state: &Path) {
    let Ok(entries) = fs::read_dir(state.join("hooks")) else { return };
    let is_old = |metadata: fs::Metadata| {
        let age = metadata.modified().ok().and_then(|at| SystemTime::now().duration_since(at).ok());
        age.is_some_and(|age| age > KEPT)
    };
    for entry in entries.flatten() {
        if entry.metadata().is_ok_and(is_old) {
            drop(fs::remove_file(entry.path()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_there_for_the_next_command_and_gone_when_settled() {
        let state = tempfile::tempdir().unwrap();
        let mut notes = Notes::open(state.path(), "host", "s").unwrap();
        assert_eq!(notes.given, []);
        let given = Given {
            agent: None,
            token: "t".to_owned(),
            text: "A".to_owned(),
            record: Json::Null,
            offset: 7,
        };
        notes.given.extend([given.clone(), given.clone()]);
        notes.save().unwrap();
        notes.given.pop();
        notes.save().unwrap();
        let path = notes.path.clone();
        drop(notes);
        assert!(Notes::open(state.path(), "other", "s").unwrap().given.is_empty());
        let mut notes = Notes::open(state.path(), "host", "s").unwrap();
        assert_eq!(notes.given, [given]);
        notes.given.clear();
        notes.save().unwrap();
        assert!(!path.exists());
        drop(notes);
        fs::write(&path, "[{\"tok").unwrap();
        assert_eq!(Notes::open(state.path(), "host", "s").unwrap().given, []);
    }
}
