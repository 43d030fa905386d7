//! The files that a scope read or wrote, and what it knows of each: its own reads and writes, and
//! what it was told since, as long as history holds the telling (`reminders.md` §5).

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::files::FileState;
use super::ledger::{History, Loss};
use super::record::Serial;

/// Files that a scope watches at most; the one that it had least to do with gives way.
const WATCHED_MAX: usize = 50_000;
/// Tellings of one file that are kept apart, so that a rewind can take them back; older ones count
/// as read.
const TELLINGS_MAX: usize = 16;

/// What a scope knows of one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchedFile {
    /// What it read or wrote itself.
    own: FileState,
    /// When that was, among all that happened.
    at: Serial,
    /// What it was told since, oldest first, each with its record.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    told: Vec<(String, FileState)>,
    /// What it knows now.
    known: FileState,
}

impl WatchedFile {
    /// What the scope knows of the file.
    pub fn known(&self) -> &FileState {
        &self.known
    }

    /// What of it history still holds, or a compaction summarised.
    fn judged(&self, history: &History) -> &FileState {
        let stands = |id: &String| {
            history.record(id).is_some_and(|record| record.lost != Some(Loss::Removed))
        };
        let told = self.told.iter().rev().find(|(record, _)| stands(record));
        told.map_or(&self.own, |(_, state)| state)
    }
}

/// The files that a scope watches, by the spelling that its client uses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "BTreeMap<String, WatchedFile>", into = "BTreeMap<String, WatchedFile>")]
pub struct WatchedFiles {
    files: BTreeMap<String, WatchedFile>,
    /// The same, the one with which the scope had least to do first.
    by_age: BTreeSet<(Serial, String)>,
    /// Those that changed here since somebody asked.
    changed: BTreeSet<String>,
}

impl From<BTreeMap<String, WatchedFile>> for WatchedFiles {
    fn from(files: BTreeMap<String, WatchedFile>) -> Self {
        let by_age = files.iter().map(|(path, file)| (file.at, path.clone())).collect();
        let changed = files.keys().cloned().collect();
        Self { files, by_age, changed }
    }
}

impl From<WatchedFiles> for BTreeMap<String, WatchedFile> {
    fn from(watched: WatchedFiles) -> Self {
        watched.files
    }
}

impl WatchedFiles {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// Those that there are, by path.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &WatchedFile)> {
        self.files.iter().map(|(path, file)| (path.as_str(), file))
    }

    /// The scope read a file, or wrote it. What came `at` an earlier moment than what is known
    /// already changes nothing; a read that only `starts` the watch neither, once the file is
    /// watched. An earlier reading of it answers late.
    pub fn know(&mut self, path: &str, state: FileState, at: Serial, starts: bool) {
        if let Some(file) = self.files.get(path) {
            if starts || at < file.at {
                return;
            }
            self.by_age.remove(&(file.at, path.to_owned()));
        } else if self.files.len() >= WATCHED_MAX
            && let Some((_, oldest)) = self.by_age.pop_first()
        {
            self.files.remove(&oldest);
            self.changed.insert(oldest);
        }
        let known = state.clone();
        let file = WatchedFile { own: state, at, told: Vec::new(), known };
        self.by_age.insert((at, path.to_owned()));
        self.files.insert(path.to_owned(), file);
        self.changed.insert(path.to_owned());
    }

    /// A record told the scope how a file stood `at` a moment; what the scope read or wrote after it
    /// is newer.
    pub fn tell(&mut self, path: &str, state: FileState, at: Serial, record: &str) {
        let Some(file) = self.files.get_mut(path).filter(|file| file.at <= at) else { return };
        if file.told.len() >= TELLINGS_MAX {
            file.own = file.told.remove(0).1;
        }
        file.told.push((record.to_owned(), state.clone()));
        file.known = state;
        self.changed.insert(path.to_owned());
    }

    /// A record came to nothing: what it told is not known.
    pub fn retract(&mut self, record: &str, history: &History) {
        let is_it = |(told, _): &(String, FileState)| told == record;
        for (path, file) in &mut self.files {
            if file.told.iter().any(is_it) {
                file.told.retain(|told| !is_it(told));
                file.known = file.judged(history).clone();
                self.changed.insert(path.clone());
            }
        }
    }

    /// The file is not watched any more. `false` when it was not.
    pub fn forget(&mut self, path: &str) -> bool {
        let Some(file) = self.files.remove(path) else { return false };
        self.by_age.remove(&(file.at, path.to_owned()));
        self.changed.insert(path.to_owned());
        true
    }

    /// History holds something else now: what it lost is not known any more.
    pub fn judge(&mut self, history: &History) {
        for (path, file) in self.files.iter_mut().filter(|(_, file)| !file.told.is_empty()) {
            let known = file.judged(history);
            if *known != file.known {
                file.known = known.clone();
                self.changed.insert(path.clone());
            }
        }
    }

    /// What is known of those that changed here since this was last asked, in the order in which
    /// the scope learnt it; `None` of those that are not watched any more.
    pub fn take_changes(&mut self) -> Vec<(String, Option<FileState>)> {
        let paths = std::mem::take(&mut self.changed);
        let mut changes: Vec<_> = paths
            .into_iter()
            .map(|path| {
                let file = self.files.get(&path);
                (file.map(|file| file.at), path, file.map(|file| file.known.clone()))
            })
            .collect();
        changes.sort_by_key(|(at, ..)| *at);
        changes.into_iter().map(|(_, path, known)| (path, known)).collect()
    }

    /// All of them count as changed: somebody new asks.
    #[must_use]
    pub fn anew(&self) -> Self {
        self.files.clone().into()
    }
}

#[cfg(test)]
mod tests {
    use super::super::files::Fingerprint;
    use super::*;

    fn state(number: u8) -> FileState {
        FileState::File { fingerprint: Fingerprint([number; 32]), bytes: u64::from(number) }
    }

    #[test]
    fn a_late_snapshot_of_an_earlier_read_changes_nothing() {
        let mut watched = WatchedFiles::default();
        watched.know("/a", state(2), 5, false);
        watched.know("/a", state(1), 4, false);
        watched.know("/a", state(3), 6, true);
        assert_eq!(watched.take_changes(), [("/a".to_owned(), Some(state(2)))]);
        assert_eq!(watched.take_changes(), []);
    }

    #[test]
    fn the_oldest_gives_way() {
        let mut watched = WatchedFiles::default();
        for number in 0..=WATCHED_MAX {
            watched.know(&format!("/{number}"), state(1), number as Serial, false);
        }
        assert_eq!(watched.len(), WATCHED_MAX);
        assert!(watched.iter().all(|(path, _)| path != "/0"));
        assert_eq!(watched.take_changes()[0], ("/0".to_owned(), None));
    }

    #[test]
    fn a_write_behind_a_telling_is_newer() {
        let mut watched = WatchedFiles::default();
        watched.know("/a", state(0), 1, false);
        watched.know("/a", state(2), 3, false);
        watched.tell("/a", state(1), 2, "r");
        assert_eq!(*watched.files["/a"].known(), state(2));
    }

    #[test]
    fn many_tellings_leave_the_newest() {
        let mut watched = WatchedFiles::default();
        watched.know("/a", state(0), 1, false);
        for number in 1..100 {
            watched.tell("/a", state(number), 2, &number.to_string());
        }
        assert_eq!(watched.files["/a"].known, state(99));
        assert_eq!(watched.files["/a"].told.len(), TELLINGS_MAX);
        // History holds none of them: what is left is the newest that does not stand apart.
        watched.judge(&History::default());
        assert_eq!(watched.files["/a"].known, state(83));
    }
}
