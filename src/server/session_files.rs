//! The files of a session: what is read, written, compared and forgotten, in the order of arrival.
//! Everything that looks at the disk goes through the session's lane, so that a WAIT sees each
//! snapshot before it and none behind it.

use std::collections::{BTreeMap, BTreeSet};
use std::future::ready;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::daemon::Slot;
use super::lane::{Coalesced, Lane};
use super::tape::{Glimpse, Notes, Played};
use crate::engine::{
    Definition, DiffLimits, Edited, Event, FileState, Findings, Found, Millis, Reading, Refusal,
    RefusalKind, ScopePath, Serial, Session, Wanted,
};
use crate::files::secrecy::{self, Secrecy};
use crate::files::{self, Bounds, Desk, Files, identity};
use crate::reminders::EditedFilesSettings;

/// The files of one session.
#[derive(Debug)]
pub struct SessionFiles {
    desk: Arc<Desk>,
    lane: Arc<Lane>,
    snapshots: Coalesced<(ScopePath, String), Snapshot>,
    rules: Mutex<Rules>,
    /// Where the daemon keeps its own state, which is never watched.
    state: Option<PathBuf>,
    /// Says what stands in files, where a recording is played: no disk is looked at.
    played: Option<Arc<Played>>,
}

/// What decides of a session's files what may be shown and kept.
#[derive(Debug, PartialEq)]
struct Rules {
    root: Option<String>,
    deny: Vec<String>,
    own: Vec<String>,
    definition: Option<Arc<Definition>>,
}

impl Rules {
    fn of(session: &Session) -> Self {
        Self {
            root: session.root().map(str::to_owned),
            deny: session.deny().to_vec(),
            own: session.own().to_vec(),
            definition: definition(session).cloned(),
        }
    }

    /// Whether the session still says the same.
    fn are_of(&self, session: &Session) -> bool {
        self.root.as_deref() == session.root()
            && self.deny == session.deny()
            && self.own == session.own()
            && self.definition.as_ref() == definition(session)
    }

    /// The keys of the kind. What could not be read was refused when it was set.
    fn settings(&self) -> EditedFilesSettings {
        let settings = self.definition.as_deref().map(EditedFilesSettings::of);
        settings.and_then(Result::ok).unwrap_or_default()
    }

    fn secrecy(&self, state: Option<&PathBuf>) -> secrecy::Options {
        let EditedFilesSettings { secret, generated, .. } = self.settings();
        let (deny, own) = (self.deny.clone(), self.own.clone());
        secrecy::Options {
            secret,
            generated,
            deny,
            own,
            state: state.cloned().into_iter().collect(),
        }
    }

    fn bounds(&self) -> Bounds {
        let settings = self.settings();
        let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        Bounds {
            bytes: settings.content_bytes,
            contents: count(settings.content_files),
            watched: count(settings.watched_files),
            ..Bounds::default()
        }
    }
}

/// The roster's `edited-files`, whose keys hold for all of the session's scopes.
fn definition(session: &Session) -> Option<&Arc<Definition>> {
    let root = session.scopes().next()?;
    root.roster.iter().find(|it| it.id() == "edited-files").map(|member| &member.definition)
}

/// Who asks what stands in files.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The scope.
    pub scope: &'a ScopePath,
    /// What the person did meanwhile.
    pub editors: &'a Editors,
    /// What recordings are to know of it.
    pub notes: &'a Notes,
    /// How long looking may take.
    pub deadline: Duration,
}

/// A scope read a file, or wrote it.
#[derive(Debug)]
pub struct Snapshot {
    /// When, for the ledger.
    pub at: Millis,
    /// When, among all that happened.
    pub serial: Serial,
    /// What it holds, if the client says so.
    pub text: Option<String>,
    /// Whether it was written.
    pub wrote: bool,
    /// Whether this only starts the watch.
    pub starts: bool,
    /// What recordings are to know of it.
    notes: Vec<Notes>,
    /// Who waits until it is taken.
    waiting: Vec<oneshot::Sender<()>>,
}

impl Snapshot {
    /// A snapshot that nobody waits for yet.
    pub fn new(at: Millis, serial: Serial, text: Option<String>, notes: &Notes) -> Self {
        let notes = vec![notes.clone()];
        Self { at, serial, text, wrote: false, starts: false, notes, waiting: Vec::new() }
    }

    /// What the newer of two means for both: the newest whole one decides what is known.
    fn merge(&mut self, newer: Self) {
        let Self { at, serial, text, wrote, starts, notes, waiting } = newer;
        self.notes.extend(notes);
        self.waiting.extend(waiting);
        self.wrote |= wrote;
        if !starts {
            (self.at, self.serial, self.text, self.starts) = (at, serial, text, false);
        }
    }
}

impl SessionFiles {
    /// The files of a session that was just made. Looks at no disk.
    pub fn new(
        files: &Arc<Files>,
        session: &Session,
        state: Option<PathBuf>,
        played: Option<Arc<Played>>,
    ) -> Self {
        let rules = Rules::of(session);
        let root = rules.root.as_ref().map(Path::new);
        let secrecy = Arc::new(Secrecy::new(root, &rules.secrecy(state.as_ref())));
        Self {
            desk: files.open(session.id(), secrecy, rules.bounds()),
            lane: Arc::default(),
            snapshots: Coalesced::default(),
            rules: Mutex::new(rules),
            state,
            played,
        }
    }

    /// What may be shown, as the session stands.
    pub fn secrecy(&self, session: &Session) -> Arc<Secrecy> {
        self.follow(session);
        self.desk.secrecy()
    }

    /// Whether a recording holds no content of a file, which its name tells.
    pub fn is_withheld(&self, path: &str) -> bool {
        self.desk.secrecy().is_withheld_by_name(&identity::on_disk(path))
    }

    /// How many files are watched, and how much is kept of them. Of a session that was restored they
    /// are looked at with its first WAIT.
    pub fn count(&self, session: &Session) -> files::Count {
        let known = session.scopes().map(|scope| scope.facts.watched.len()).sum::<usize>() as u64;
        let watched = known.min(self.rules.lock().settings().watched_files);
        files::Count { watched, dropped: known - watched, ..self.desk.count() }
    }

    /// [`Self::count`], once everything that was read and written so far is looked at.
    pub fn counted(
        &self,
        slot: &Arc<Slot>,
        session: &Session,
    ) -> Result<files::Count, oneshot::Receiver<files::Count>> {
        if self.lane.is_idle() {
            return Ok(self.count(session));
        }
        let (sender, receiver) = oneshot::channel();
        self.snapshots.part();
        let slot = Arc::clone(slot);
        let counts = self.push(move || _ = sender.send(slot.files().count(&slot.lock())));
        match counts {
            Ok(()) => Err(receiver),
            Err(_) => Ok(self.count(session)),
        }
    }

    /// The spellings under which scopes of the session watch a real path.
    pub fn spellings(&self, real: &Path) -> Vec<String> {
        self.desk.spellings(real)
    }

    /// Takes over what the session says of its files, where it is something else than before: to be
    /// called before anything of them is kept or shown.
    pub fn follow(&self, session: &Session) {
        let mut known = self.rules.lock();
        if known.are_of(session) {
            return;
        }
        let rules = Rules::of(session);
        let options = rules.secrecy(self.state.as_ref());
        // What was kept is given up only where something else may be shown.
        if rules.root != known.root || options != known.secrecy(self.state.as_ref()) {
            let root = rules.root.as_ref().map(Path::new);
            self.desk.set_secrecy(Arc::new(Secrecy::new(root, &options)));
        }
        self.desk.set_bounds(rules.bounds());
        *known = rules;
    }

    fn push(&self, work: impl FnOnce() + Send + 'static) -> Result<(), Refusal> {
        if self.lane.push(Box::new(work)) {
            return Ok(());
        }
        Err(Refusal::new(
            RefusalKind::LimitExceeded,
            "too many reads and writes of this session's files wait for the disk: send this again \
             when earlier ones were answered",
        ))
    }

    /// Takes a snapshot of a file for a scope. Done once for several of the same that wait.
    pub fn snapshot(
        &self,
        slot: &Arc<Slot>,
        scope: ScopePath,
        path: String,
        mut snapshot: Snapshot,
    ) -> Result<oneshot::Receiver<()>, Refusal> {
        let (sender, receiver) = oneshot::channel();
        snapshot.waiting.push(sender);
        let key = (scope, path);
        let Some(place) = self.snapshots.join(key.clone(), snapshot, Snapshot::merge) else {
            return Ok(receiver);
        };
        let slot = Arc::clone(slot);
        self.push(move || {
            let Some(snapshot) = slot.files().snapshots.begin(&key, &place) else { return };
            let (scope, path) = key;
            slot.files().take(&slot, &scope, path, snapshot);
        })?;
        Ok(receiver)
    }

    fn take(&self, slot: &Slot, scope: &ScopePath, path: String, snapshot: Snapshot) {
        let state = self.standing(scope, &path, &snapshot);
        let Snapshot { at, serial, starts, notes, waiting, .. } = snapshot;
        for notes in notes {
            notes.see(|| Glimpse::Standing(path.clone(), state.clone()));
        }
        let Some(state) = state else { return };
        let event = Event::FileKnown { path, state, at: serial, starts };
        let mut session = slot.lock();
        // An agent that is gone by now knows nothing.
        drop(session.apply(at, scope, event));
        session.keep();
        drop(session);
        for waiting in waiting {
            // Whoever waited may be gone.
            _ = waiting.send(());
        }
    }

    /// What a scope knows of a file by a snapshot; `None` when none is to be taken.
    fn standing(&self, scope: &ScopePath, path: &str, snapshot: &Snapshot) -> Option<FileState> {
        if let Some(played) = &self.played {
            return played.standing(path);
        }
        if !self.desk.may_watch(path) || (snapshot.starts && self.desk.watches(scope, path)) {
            return None;
        }
        let seen = match &snapshot.text {
            Some(text) => self.desk.given(scope, path, text),
            None => self.desk.look(scope, path),
        };
        if snapshot.wrote {
            self.desk.wrote(scope, path, &seen.state);
        }
        Some(seen.state)
    }

    /// A file is not watched any more.
    pub fn forget(
        &self,
        slot: &Arc<Slot>,
        at: Millis,
        scope: ScopePath,
        path: String,
    ) -> Result<oneshot::Receiver<()>, Refusal> {
        let (sender, receiver) = oneshot::channel();
        self.snapshots.part();
        let slot = Arc::clone(slot);
        self.push(move || {
            let mut session = slot.lock();
            drop(session.apply(at, &scope, Event::FileForgotten { path }));
            session.keep();
            drop(session);
            _ = sender.send(());
        })?;
        Ok(receiver)
    }

    /// An agent has ended, or begins anew: what it knew of files is gone.
    pub fn forget_scope(&self, scope: ScopePath) -> Result<(), Refusal> {
        self.snapshots.part();
        let desk = Arc::clone(&self.desk);
        self.push(move || desk.forget_scope(&scope))
    }

    /// Looks at what reminders asked for. What is not there when the time is up is left out.
    pub fn look_at(
        &self,
        slot: &Arc<Slot>,
        question: Question<'_>,
        secrecy: &Arc<Secrecy>,
        wanted: Vec<Wanted>,
    ) -> BoxFuture<'static, Findings> {
        let Question { scope, editors, notes, deadline } = question;
        if let Some(played) = &self.played {
            return Box::pin(ready(played.found(scope, wanted)));
        }
        let asked = if notes.is_empty() { Vec::new() } else { wanted.clone() };
        let (scope, notes) = (scope.clone(), notes.clone());
        let mut compared = Vec::new();
        let mut read = Vec::new();
        for wanted in wanted {
            match wanted.reading {
                Reading::Edits(limits) => {
                    let edits = self.compare(slot, scope.clone(), editors, limits, deadline);
                    compared.extend(edits.map(|edits| (wanted, edits)));
                }
                // Who asked knows what checkers found.
                Reading::Diagnostics => {}
                _ => read.push(wanted),
            }
        }
        let read = files::look_at(read, secrecy, deadline);
        let until = tokio::time::Instant::now() + deadline;
        Box::pin(async move {
            let mut findings: BTreeMap<_, _> = read.await;
            for (wanted, edits) in compared {
                if let Ok(Ok(edits)) = tokio::time::timeout_at(until, edits).await {
                    findings.insert(wanted, Found::Edits(edits));
                }
            }
            let looked_for = asked.into_iter().filter(|it| *it != Wanted::DIAGNOSTICS);
            for wanted in looked_for {
                let found = findings.get(&wanted).cloned();
                notes.see(|| Glimpse::Found(scope.clone(), wanted, found));
            }
            findings
        })
    }

    /// Compares what a scope knows with the disk; `None` when too much waits for that.
    fn compare(
        &self,
        slot: &Arc<Slot>,
        scope: ScopePath,
        editors: &Editors,
        limits: DiffLimits,
        deadline: Duration,
    ) -> Option<oneshot::Receiver<Vec<Edited>>> {
        let (sender, receiver) = oneshot::channel();
        self.snapshots.part();
        // What was found takes about as long to be told as it took to be found.
        let now = Instant::now();
        let (looks_until, until) = (now + deadline * 2 / 5, now + deadline * 4 / 5);
        let saved = editors.caught_up();
        let slot = Arc::clone(slot);
        let compared = self.push(move || {
            if let Some(saved) = saved {
                drop(saved.blocking_recv());
            }
            let known = slot.lock().take_watch_changes(&scope);
            let desk = &slot.files().desk;
            for (path, state) in known {
                desk.learn(&scope, &path, state.as_ref());
            }
            // Whoever waited may be gone by now.
            if sender.is_closed() {
                return;
            }
            let differences = desk.compare(&scope, looks_until, &|| sender.is_closed());
            // That nothing was found in time does not say that nothing differs.
            if differences.is_empty() && Instant::now() >= looks_until {
                return;
            }
            drop(sender.send(desk.edited(differences, &limits, until)));
        });
        compared.ok().map(|()| receiver)
    }
}

/// A document that is open in an editor.
#[derive(Debug, Default)]
struct Document {
    /// Whether it was changed since it was last saved.
    is_changed: bool,
    /// Whether it was opened with a text that the file does not have: changed before.
    was_changed: Arc<AtomicBool>,
    /// The editors.
    connections: BTreeSet<u64>,
}

/// What the person saved, so that it can be said who changed a file.
#[derive(Debug, Default)]
pub struct Editors {
    documents: Mutex<BTreeMap<String, Document>>,
    lane: Arc<Lane>,
    /// Whether no disk is looked at.
    is_blind: bool,
}

impl Editors {
    /// The same, without a disk: who changed a file is not found out.
    #[must_use]
    pub fn blind(mut self) -> Self {
        self.is_blind = true;
        self
    }

    /// A document was opened. What the file has on the disk is looked at, since an editor that comes
    /// later has changes already.
    pub fn open(&self, files: &Arc<Files>, path: &str, connection: u64, text: String) {
        self.touch(path, connection, false);
        if self.is_blind {
            return;
        }
        let was_changed =
            self.documents.lock().get(path).map(|document| Arc::clone(&document.was_changed));
        if let Some(was_changed) = was_changed {
            let (files, path) = (Arc::clone(files), path.to_owned());
            // What is left out here is only who it was.
            self.lane.push(Box::new(move || {
                was_changed.fetch_or(files.is_other(&path, &text), Ordering::SeqCst);
            }));
        }
    }

    /// A document is open in an editor, or was changed there.
    pub fn touch(&self, path: &str, connection: u64, is_changed: bool) {
        let mut documents = self.documents.lock();
        let document = documents.entry(path.to_owned()).or_default();
        document.is_changed |= is_changed;
        document.connections.insert(connection);
    }

    /// An editor closed it. Says whether it is open in none any more.
    pub fn close(&self, path: &str, connection: u64) -> bool {
        let mut documents = self.documents.lock();
        let Some(document) = documents.get_mut(path) else { return true };
        document.connections.remove(&connection);
        let is_closed = document.connections.is_empty();
        if is_closed {
            documents.remove(path);
        }
        is_closed
    }

    /// An editor is gone. Returns what is open in none any more.
    pub fn disconnect(&self, connection: u64) -> Vec<String> {
        let documents = self.documents.lock();
        let open = documents.iter().filter(|(_, it)| it.connections.contains(&connection));
        let open: Vec<_> = open.map(|(path, _)| path.clone()).collect();
        drop(documents);
        open.into_iter().filter(|path| self.close(path, connection)).collect()
    }

    /// It was saved: what stands on the disk is the person's, if they changed it.
    pub fn save(&self, files: &Arc<Files>, path: &str, text: Option<String>) {
        let mut documents = self.documents.lock();
        let document = documents.get_mut(path);
        let document =
            document.map(|it| (std::mem::take(&mut it.is_changed), Arc::clone(&it.was_changed)));
        drop(documents);
        if self.is_blind {
            return;
        }
        files.hint(path);
        if let Some((is_changed, was_changed)) = document {
            let (files, path) = (Arc::clone(files), path.to_owned());
            // What is left out here is only who it was.
            self.lane.push(Box::new(move || {
                // As it stood before this saving, which the look at its opening came before.
                let was_changed = was_changed.swap(false, Ordering::SeqCst);
                if is_changed || was_changed {
                    files.saved_by_person(&path, text.as_deref());
                }
            }));
        }
    }

    /// Answers when everything that was saved so far is looked at; `None` when it is.
    fn caught_up(&self) -> Option<oneshot::Receiver<()>> {
        if self.lane.is_idle() {
            return None;
        }
        let (sender, receiver) = oneshot::channel();
        self.lane.push(Box::new(move || _ = sender.send(()))).then_some(receiver)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_closed_with_the_last_editor_that_has_it_open() {
        let editors = Editors::default();
        for (path, connection) in [("/a", 1), ("/b", 1), ("/b", 2), ("/c", 2)] {
            editors.touch(path, connection, true);
        }
        assert!(!editors.close("/b", 2));
        assert!(editors.close("/c", 2), "nobody else has it open");
        editors.touch("/b", 2, false);
        assert_eq!(editors.disconnect(1), ["/a"]);
        assert!(editors.documents.lock()["/b"].is_changed);
        assert_eq!(editors.disconnect(2), ["/b"]);
        assert!(editors.documents.lock().is_empty());
    }

    #[test]
    fn of_a_burst_the_newest_whole_reading_decides() {
        let notes = Notes::default();
        let mut first = Snapshot::new(1, 1, Some("a".to_owned()), &notes);
        first.merge(Snapshot { wrote: true, ..Snapshot::new(2, 2, Some("b".to_owned()), &notes) });
        first.merge(Snapshot { starts: true, ..Snapshot::new(3, 3, None, &notes) });
        assert_eq!((first.serial, first.text.as_deref()), (2, Some("b")));
        assert!(first.wrote && !first.starts);
    }
}
