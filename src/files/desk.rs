//! What the conversations of a session know of the files that they watch, and what was seen of these
//! files last. The engine is the truth of the first; both are here so that a comparison finds the
//! few files that need a look ([`super::compare`]).

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::engine::{FileState, Fingerprint, ScopePath};

use super::authors::{Authors, Who};
use super::contents::{Content, Contents, Weight};
use super::disk::{self, Patience, Reading, Snapshot, Stamp};
use super::hints::{Changes, Hints};
use super::identity;
use super::secrecy::{Reason, Secrecy, Verdict};
use super::text;
use super::watch::{Health, Watcher};
use super::withheld::Withheld;

/// The most directories that the daemon watches.
const DIRECTORIES_MAX: usize = 65_536;

/// How files are watched, for the whole daemon.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whether file events are listened to. Without them every WAIT compares.
    pub watches: bool,
    /// The most directories that are watched for events; files in further ones are compared.
    pub directories_max: usize,
    /// Up to how many files a scope's files are compared one by one; with more of them the watcher
    /// is asked which to look at. Measured: the marker of a barrier costs as much as `stat` of some
    /// fifty to two hundred files.
    pub small: usize,
    /// How old a file's times must be before they vouch for its content: as much as the coarsest
    /// clock of a file system.
    pub fresh: Duration,
    /// How long a missing or emptied file must be left alone to be believed (`reminders.md` §5).
    pub quiet: Duration,
    /// How long that is waited for at most.
    pub settle: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            watches: true,
            directories_max: DIRECTORIES_MAX,
            small: 200,
            fresh: Duration::from_secs(2),
            quiet: Duration::from_millis(100),
            settle: Duration::from_millis(500),
        }
    }
}

/// How much of its files a session keeps (`reminders.md` §5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The largest file whose content is kept, in bytes.
    pub file_bytes: u64,
    /// The most bytes of content.
    pub bytes: u64,
    /// The most files whose content is kept, at most 50,000.
    pub contents: usize,
    /// The most paths that are watched.
    pub watched: usize,
}

/// The largest value of [`Bounds::contents`] and the least of what [`Bounds::watched`] then is.
pub const CONTENTS_MAX: usize = 50_000;

impl Default for Bounds {
    fn default() -> Self {
        Self { file_bytes: 1 << 20, bytes: 25 << 20, contents: 100, watched: 10_000 }
    }
}

/// What the daemon knows of files, over all sessions.
pub struct Files {
    pub(super) options: Options,
    pub(super) hints: Arc<Hints>,
    pub(super) watcher: Option<Watcher>,
    pub(super) contents: Arc<Contents>,
    pub(super) authors: Authors,
}

impl fmt::Debug for Files {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Files").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Files {
    /// Watches nothing yet, and starts no thread before there is something to watch.
    pub fn new(options: Options) -> Arc<Self> {
        let hints = Arc::new(Hints::default());
        let watcher = options.watches.then(|| Watcher::new(hints.clone(), options.directories_max));
        let (contents, authors) = (Arc::default(), Authors::default());
        Arc::new(Self { options, hints, watcher, contents, authors })
    }

    /// The files of a session that is opened. Looks at no disk.
    pub fn open(
        self: &Arc<Self>,
        session: &str,
        secrecy: Arc<Secrecy>,
        bounds: Bounds,
    ) -> Arc<Desk> {
        let state = Mutex::new(State::new(bounds));
        let secrecy = Mutex::new(secrecy);
        let withheld = Mutex::default();
        Arc::new(Desk { files: self.clone(), session: session.into(), secrecy, withheld, state })
    }

    /// An event named a path. Looks at no disk.
    pub fn hint(&self, path: &str) {
        self.hints.hint(identity::on_disk(path).as_os_str());
    }

    /// The person saved a file in the editor: this text, or what stands on the disk. To be called on
    /// a thread that may look at the disk.
    pub fn saved_by_person(&self, path: &str, text: Option<&str>) {
        let on_disk = identity::on_disk(path);
        let state = match text {
            Some(text) => Some(text_state(text)),
            None => {
                let reading = Reading { bytes_max: 0, fresh: self.options.fresh };
                let snapshot = disk::snapshot(&on_disk, &reading, Patience::ENDLESS);
                snapshot.map(|snapshot| snapshot.state)
            }
        };
        if let Some(state) = state {
            self.authors.wrote(disk::real_path(&on_disk), Who::Person, &state);
        }
        self.hint(path);
    }

    /// Whether a file has another content than this text. To be called on a thread that may look at
    /// the disk.
    pub fn is_other(&self, path: &str, text: &str) -> bool {
        let reading = Reading { bytes_max: 0, fresh: self.options.fresh };
        let snapshot = disk::snapshot(&identity::on_disk(path), &reading, Patience::ENDLESS);
        snapshot.is_none_or(|snapshot| snapshot.state != text_state(text))
    }

    /// The watched paths that events name, as they come: real ones and those that sessions spell.
    pub fn changes(&self) -> Changes {
        self.hints.listen()
    }

    /// How well the watcher sees; `None` when there is none.
    pub fn health(&self) -> Option<Health> {
        self.watcher.as_ref().map(Watcher::health)
    }

    /// How much content is held.
    pub fn weight(&self) -> Weight {
        self.contents.weight()
    }
}

/// How a file with this text stands.
fn text_state(text: &str) -> FileState {
    let bytes = text.as_bytes();
    FileState::File { fingerprint: text::fingerprint(bytes), bytes: bytes.len() as u64 }
}

/// What a look found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The real path, on one line.
    pub real: String,
    /// What stands there, or what the client says does.
    pub state: FileState,
}

/// How many files a session watches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Paths that are watched, counted once for each scope.
    pub watched: u64,
    /// Contents that are kept to show differences from.
    pub contents: u64,
    /// Paths that are no longer watched because there were too many.
    pub dropped: u64,
}

/// The watched files of a session. To be used on threads that may look at the disk; no lock is held
/// while they do.
pub struct Desk {
    pub(super) files: Arc<Files>,
    session: Arc<str>,
    secrecy: Mutex<Arc<Secrecy>>,
    pub(super) withheld: Mutex<Withheld>,
    pub(super) state: Mutex<State>,
}

impl fmt::Debug for Desk {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Desk").field("session", &self.session).finish_non_exhaustive()
    }
}

impl Desk {
    /// Whether a file is watched at all: not the daemon's own state, nor the session's bookkeeping
    /// (`reminders.md` §5). Looks at the disk.
    pub fn may_watch(&self, path: &str) -> bool {
        let path = identity::on_disk(path);
        !self.secrecy().never_watched(&path, &disk::real_path(&path))
    }

    /// Whether a scope watches this spelling.
    pub fn watches(&self, scope: &ScopePath, path: &str) -> bool {
        self.state.lock().watches(scope, path)
    }

    /// Takes a snapshot of a file. Its content is kept until the scope learns of it, or something
    /// else is seen there.
    pub fn look(&self, scope: &ScopePath, path: &str) -> Seen {
        let place = Place::find(&self.files, path);
        let at = self.files.hints.position().sequence;
        let snapshot = disk::snapshot(place.path(), &self.reading(), Patience::ENDLESS);
        let Some(mut snapshot) = snapshot else { unreachable!("patience without end") };
        let seen = Seen { real: disk::shown(place.real()), state: snapshot.state.clone() };
        let (content, _) = self.keep(&place, &mut snapshot);
        self.resolve_again(scope, path, place.real());
        self.state.lock().see(scope, path, place, Sight::new(snapshot, at), content);
        self.files.contents.cool();
        seen
    }

    /// The client says what a file holds. That the disk holds the same is looked at when it is
    /// compared.
    pub fn given(&self, scope: &ScopePath, path: &str, text: &str) -> Seen {
        let place = Place::find(&self.files, path);
        let bytes = text.as_bytes();
        let state = text_state(text);
        let seen = Seen { real: disk::shown(place.real()), state: state.clone() };
        let bytes = (bytes.len() as u64 <= self.reading().bytes_max).then(|| bytes.to_vec());
        let mut snapshot = Snapshot { state, stamp: None, is_trusted: false, bytes };
        let (content, _) = self.keep(&place, &mut snapshot);
        self.resolve_again(scope, path, place.real());
        self.state.lock().see(scope, path, place, Sight::new(snapshot, 0), content);
        self.files.contents.cool();
        seen
    }

    /// What a scope knows of a file from now on: it was told, it read or it wrote this. `None` when
    /// the file is not watched any more. Every spelling under which the scope watches the same file
    /// learns it too.
    pub fn learn(&self, scope: &ScopePath, path: &str, state: Option<&FileState>) {
        let Some(known) = state else {
            self.state.lock().forget(scope, path);
            return;
        };
        let mut state = self.state.lock();
        if !state.watches(scope, path) {
            drop(state);
            let place = Place::find(&self.files, path);
            state = self.state.lock();
            state.watch(scope, path, place);
        }
        state.learn(scope, path, known);
        state.shrink();
    }

    /// The scope wrote this, so that other scopes and sessions can be told who did.
    pub fn wrote(&self, scope: &ScopePath, path: &str, state: &FileState) {
        let who = Who::Agent(self.session.clone(), scope.clone());
        self.files.authors.wrote(disk::real_path(&identity::on_disk(path)), who, state);
        self.files.hint(path);
    }

    /// A scope has ended, and watches nothing any more.
    pub fn forget_scope(&self, scope: &ScopePath) {
        self.state.lock().forget_scope(scope);
    }

    /// Changes how much is kept.
    pub fn set_bounds(&self, bounds: Bounds) {
        let mut state = self.state.lock();
        state.set_bounds(bounds);
        state.shrink();
    }

    /// The spellings under which scopes of the session watch a real path, sorted.
    pub fn spellings(&self, real: &Path) -> Vec<String> {
        let state = self.state.lock();
        let spellings: BTreeSet<_> = state
            .scopes
            .values()
            .flat_map(|scope| scope.by_real.get(real.as_os_str()).into_iter().flatten())
            .map(ToString::to_string)
            .collect();
        spellings.into_iter().collect()
    }

    /// How many files are watched.
    pub fn count(&self) -> Count {
        self.state.lock().count()
    }

    pub(super) fn session(&self) -> &Arc<str> {
        &self.session
    }

    /// How files are read.
    pub(super) fn reading(&self) -> Reading {
        let bytes_max = self.state.lock().bounds.file_bytes;
        Reading { bytes_max, fresh: self.files.options.fresh }
    }

    /// What of the session's files may be shown.
    pub fn secrecy(&self) -> Arc<Secrecy> {
        self.secrecy.lock().clone()
    }

    /// Something else may be shown from now on. What was kept before is judged no more, and given up.
    pub fn set_secrecy(&self, secrecy: Arc<Secrecy>) {
        *self.secrecy.lock() = secrecy;
        let mut state = self.state.lock();
        let bounds = state.bounds;
        state.set_bounds(Bounds { contents: 0, ..bounds });
        state.shrink();
        state.set_bounds(bounds);
    }

    /// Finds where the spellings that led to a file lead now.
    pub(super) fn resolve_again(&self, scope: &ScopePath, path: &str, real: &Path) {
        let others: Vec<_> = {
            let state = self.state.lock();
            let files = state.scopes.get(scope);
            let spellings = files.and_then(|files| files.by_real.get(real.as_os_str()));
            spellings.into_iter().flatten().filter(|other| &***other != path).cloned().collect()
        };
        for other in others {
            let place = Place::find(&self.files, &other);
            let mut state = self.state.lock();
            if state.watches(scope, &other) {
                state.watch(scope, &other, place);
            }
        }
    }

    /// Takes the content of a snapshot and keeps it, if it may be shown and is worth it. Only a file
    /// is judged.
    pub(super) fn keep(
        &self,
        place: &Place,
        snapshot: &mut Snapshot,
    ) -> (Option<Arc<Content>>, Option<Judged>) {
        let FileState::File { fingerprint, .. } = snapshot.state else { return (None, None) };
        let path = place.path();
        let secrecy = self.secrecy();
        let verdict = secrecy.judge(path, place.real());
        // What git ignores is often made of what is shown.
        if matches!(verdict.reason(), Some(Reason::Secret | Reason::Denied)) {
            self.withheld.lock().add(&snapshot.state);
        }
        let bytes = snapshot.bytes.take().filter(|_| {
            verdict == Verdict::Show
                && !self.withheld.lock().has(&snapshot.state)
                && !secrecy.is_generated(path)
        });
        let content = bytes.map(|bytes| self.files.contents.keep(fingerprint, bytes));
        (content, Some(Judged { by: secrecy, verdict }))
    }
}

/// A verdict, and by what it was found.
#[derive(Clone, Debug)]
pub(super) struct Judged {
    by: Arc<Secrecy>,
    verdict: Verdict,
}

impl Judged {
    /// The verdict, if the same still decides.
    pub fn verdict(&self, secrecy: &Arc<Secrecy>) -> Option<Verdict> {
        Arc::ptr_eq(&self.by, secrecy).then_some(self.verdict)
    }
}

/// Where a spelling leads, known to hints and watcher as long as it lives.
pub(super) struct Place {
    files: Arc<Files>,
    spelling: Arc<str>,
    path: PathBuf,
    real: PathBuf,
    /// Whether the last name of the spelling is a link.
    is_link: bool,
}

impl Place {
    /// Resolves a spelling. Events are listened to from here on, so that nothing that is written
    /// after the look that follows goes unheard.
    pub fn find(files: &Arc<Files>, spelling: &str) -> Self {
        let path = identity::on_disk(spelling).into_owned();
        let real = disk::real_path(&path);
        files.hints.know(path.as_os_str());
        files.hints.know(real.as_os_str());
        if let Some(watcher) = &files.watcher {
            watcher.watch(parts(&real).0);
        }
        let is_direct = real == path || {
            let (directory, name) = parts(&path);
            real == disk::real_path(directory).join(name)
        };
        Self { files: files.clone(), spelling: spelling.into(), path, real, is_link: !is_direct }
    }

    /// The path that the spelling stands for.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn real(&self) -> &Path {
        &self.real
    }

    /// The directory as it is spelled, and the real one, in which changes raise events.
    fn directory(&self) -> (&Path, &Path) {
        (parts(&self.path).0, parts(&self.real).0)
    }

    /// Whether an event named it after a moment, under either name.
    pub fn is_hinted(&self, since: u64) -> bool {
        self.files.hints.is_hinted(self.real.as_os_str(), since)
            || self.files.hints.is_hinted(self.path.as_os_str(), since)
    }
}

/// The directory of a path and its name there.
fn parts(path: &Path) -> (&Path, &OsStr) {
    (path.parent().unwrap_or(path), path.file_name().unwrap_or_default())
}

impl Drop for Place {
    fn drop(&mut self) {
        self.files.hints.leave(self.path.as_os_str());
        self.files.hints.leave(self.real.as_os_str());
        if let Some(watcher) = &self.files.watcher {
            watcher.unwatch(parts(&self.real).0);
        }
    }
}

/// What was seen at a path last.
#[derive(Clone)]
pub(super) struct Sight {
    pub state: FileState,
    pub stamp: Option<Stamp>,
    /// Whether the same stamp means the same content.
    pub is_trusted: bool,
    /// How far hints had come before it was looked at.
    pub at: u64,
}

impl Sight {
    pub fn new(snapshot: Snapshot, at: u64) -> Self {
        let Snapshot { state, stamp, is_trusted, .. } = snapshot;
        Self { state, stamp, is_trusted, at }
    }
}

/// A path that a scope watches.
pub(super) struct Watched {
    pub place: Place,
    /// What the scope knows; nothing yet between a look and what is learnt from it.
    pub known: Option<FileState>,
    /// When it learnt that.
    pub learnt: u64,
    pub sight: Option<Sight>,
    used: u64,
}

impl Watched {
    /// Whether what stands there is not what the scope knows.
    pub fn differs(&self) -> bool {
        match (&self.known, &self.sight) {
            (Some(known), Some(sight)) => !known.is_as(&sight.state),
            _ => false,
        }
    }

    /// Whether it needs a look at every comparison, whatever the watcher sees.
    fn is_restless(&self) -> bool {
        let Some(known) = &self.known else { return false };
        let Some(sight) = &self.sight else { return true };
        let is_settled = match &sight.state {
            FileState::File { .. } => sight.is_trusted,
            FileState::Missing | FileState::Other(_) => true,
            FileState::Unreadable(_) => false,
        };
        !is_settled
            || !known.is_as(&sight.state)
            || self.place.is_link
            || sight.stamp.is_some_and(|stamp| stamp.has_other_names())
    }
}

/// The files of one scope in one directory.
#[derive(Default)]
pub(super) struct Group {
    /// The watch of the directory as of the last time when all of them were looked at.
    pub epoch: Option<u64>,
    pub spellings: HashSet<Arc<str>>,
}

/// What one scope watches.
#[derive(Default)]
pub(super) struct Scope {
    pub watched: HashMap<Arc<str>, Watched>,
    /// By the directory as it is spelled and the real one.
    pub by_directory: HashMap<(Arc<Path>, Arc<Path>), Group>,
    pub by_real: HashMap<Box<OsStr>, BTreeSet<Arc<str>>>,
    /// Those that need a look at every comparison.
    pub restless: HashSet<Arc<str>>,
    /// How far hints had come when it was last compared.
    pub position: super::hints::Position,
    /// Those that are still to be looked at in turn.
    turn: Vec<Arc<str>>,
}

impl Scope {
    /// The next of all files in turn, some of which may be watched no more.
    pub fn next_in_turn(&mut self, count: usize) -> Vec<Arc<str>> {
        if self.turn.is_empty() {
            self.turn = self.watched.keys().cloned().collect();
        }
        self.turn.split_off(self.turn.len().saturating_sub(count))
    }

    fn enter(&mut self, spelling: &Arc<str>, place: &Place) {
        let (spelled, real) = place.directory();
        let group = self.by_directory.entry((spelled.into(), real.into())).or_default();
        group.spellings.insert(spelling.clone());
        let real = place.real().as_os_str();
        self.by_real.entry(real.into()).or_default().insert(spelling.clone());
    }

    fn leave(&mut self, spelling: &str, place: &Place) {
        let (spelled, real) = place.directory();
        let key = (spelled.into(), real.into());
        if let Some(group) = self.by_directory.get_mut(&key) {
            group.spellings.remove(spelling);
            if group.spellings.is_empty() {
                self.by_directory.remove(&key);
            }
        }
        if let Some(spellings) = self.by_real.get_mut(place.real().as_os_str()) {
            spellings.remove(spelling);
            if spellings.is_empty() {
                self.by_real.remove(place.real().as_os_str());
            }
        }
    }
}

/// The files of a session.
pub(super) struct State {
    pub scopes: BTreeMap<ScopePath, Scope>,
    bounds: Bounds,
    /// Contents that scopes know, and those that were seen since.
    known: Shelf,
    seen: Shelf,
    /// Watched paths, the least recently used first.
    by_use: BTreeMap<u64, (ScopePath, Arc<str>)>,
    clock: u64,
    dropped: u64,
}

impl State {
    fn new(bounds: Bounds) -> Self {
        let mut state = Self {
            scopes: BTreeMap::new(),
            bounds,
            known: Shelf::default(),
            seen: Shelf::default(),
            by_use: BTreeMap::new(),
            clock: 0,
            dropped: 0,
        };
        state.set_bounds(bounds);
        state
    }

    fn set_bounds(&mut self, bounds: Bounds) {
        self.bounds = bounds;
        for shelf in [&mut self.known, &mut self.seen] {
            shelf.bytes_max = bounds.bytes;
            shelf.contents_max = bounds.contents.min(CONTENTS_MAX);
            shelf.shrink();
        }
    }

    fn count(&self) -> Count {
        Count {
            watched: self.by_use.len() as u64,
            contents: self.known.by_use.len() as u64,
            dropped: self.dropped,
        }
    }

    fn watches(&self, scope: &ScopePath, path: &str) -> bool {
        self.scopes.get(scope).is_some_and(|scope| scope.watched.contains_key(path))
    }

    /// Watches a path, or finds where it leads now.
    pub fn watch(&mut self, scope: &ScopePath, path: &str, place: Place) {
        self.clock += 1;
        let used = self.clock;
        let files = self.scopes.entry(scope.clone()).or_default();
        let spelling = place.spelling.clone();
        if let Some(mut watched) = files.watched.remove(path) {
            self.by_use.remove(&std::mem::replace(&mut watched.used, used));
            if watched.place.real != place.real {
                files.leave(path, &watched.place);
                files.enter(&spelling, &place);
                watched.place = place;
            }
            files.watched.insert(spelling.clone(), watched);
        } else {
            files.enter(&spelling, &place);
            let watched = Watched { place, known: None, learnt: 0, sight: None, used };
            files.watched.insert(spelling.clone(), watched);
        }
        self.by_use.insert(used, (scope.clone(), spelling));
    }

    /// What was seen at a path, which is watched from now on.
    pub fn see(
        &mut self,
        scope: &ScopePath,
        path: &str,
        place: Place,
        sight: Sight,
        content: Option<Arc<Content>>,
    ) {
        self.watch(scope, path, place);
        let Some(files) = self.scopes.get_mut(scope) else { return };
        let Some(watched) = files.watched.get_mut(path) else { return };
        let print = fingerprint(Some(&sight.state));
        if watched.known.as_ref().is_some_and(|known| known.is_as(&sight.state)) {
            // What is known from before a restart has its content again.
            self.known.fill(print, content.clone());
        }
        self.seen.add(print, content);
        let before = watched.sight.replace(sight);
        self.seen.remove(fingerprint(before.as_ref().map(|sight| &sight.state)));
        let spelling = watched.place.spelling.clone();
        if watched.is_restless() {
            files.restless.insert(spelling);
        } else {
            files.restless.remove(path);
        }
    }

    fn learn(&mut self, scope: &ScopePath, path: &str, state: &FileState) {
        self.clock += 1;
        let learnt = self.clock;
        let Some(files) = self.scopes.get_mut(scope) else { return };
        let Some(watched) = files.watched.get(path) else { return };
        let spellings = files.by_real.get(watched.place.real.as_os_str());
        let print = fingerprint(Some(state));
        for spelling in spellings.into_iter().flatten() {
            let Some(watched) = files.watched.get_mut(spelling) else { continue };
            let content =
                print.and_then(|print| self.known.get(print).or_else(|| self.seen.get(print)));
            self.known.add(print, content);
            let before = watched.known.replace(state.clone());
            self.known.remove(fingerprint(before.as_ref()));
            watched.learnt = learnt;
            if watched.is_restless() {
                files.restless.insert(spelling.clone());
            } else {
                files.restless.remove(spelling);
            }
        }
        self.touch(scope, path);
    }

    fn touch(&mut self, scope: &ScopePath, path: &str) {
        let watched = self.scopes.get_mut(scope).and_then(|scope| scope.watched.get_mut(path));
        let Some(watched) = watched else { return };
        self.clock += 1;
        let before = std::mem::replace(&mut watched.used, self.clock);
        if let Some(entry) = self.by_use.remove(&before) {
            self.by_use.insert(self.clock, entry);
        }
    }

    fn forget(&mut self, scope: &ScopePath, path: &str) {
        let Some(files) = self.scopes.get_mut(scope) else { return };
        let Some(watched) = files.watched.remove(path) else { return };
        files.leave(path, &watched.place);
        files.restless.remove(path);
        self.by_use.remove(&watched.used);
        self.known.remove(fingerprint(watched.known.as_ref()));
        self.seen.remove(fingerprint(watched.sight.as_ref().map(|sight| &sight.state)));
    }

    fn forget_scope(&mut self, scope: &ScopePath) {
        let paths: Vec<_> = match self.scopes.get(scope) {
            Some(files) => files.watched.keys().cloned().collect(),
            None => return,
        };
        for path in paths {
            self.forget(scope, &path);
        }
        self.scopes.remove(scope);
    }

    /// Stops to watch what was used least recently, beyond the bound.
    pub fn shrink(&mut self) {
        while self.by_use.len() > self.bounds.watched
            && let Some((_, (scope, path))) = self.by_use.first_key_value()
        {
            let (scope, path) = (scope.clone(), path.clone());
            self.forget(&scope, &path);
            self.dropped += 1;
        }
    }

    /// The content that a fingerprint stands for, if it is kept.
    pub fn content(&mut self, state: &FileState) -> Option<Arc<Content>> {
        let print = fingerprint(Some(state))?;
        self.known.get(print).or_else(|| self.seen.get(print))
    }
}

fn fingerprint(state: Option<&FileState>) -> Option<Fingerprint> {
    match state {
        Some(FileState::File { fingerprint, .. }) => Some(*fingerprint),
        _ => None,
    }
}

/// Contents that a session keeps, the least recently used given up first.
#[derive(Default)]
struct Shelf {
    by_fingerprint: HashMap<Fingerprint, Kept>,
    /// Those whose content is kept, the least recently used first.
    by_use: BTreeMap<u64, Fingerprint>,
    bytes: u64,
    clock: u64,
    bytes_max: u64,
    contents_max: usize,
}

struct Kept {
    users: u32,
    content: Option<Arc<Content>>,
    used: u64,
}

impl Shelf {
    fn get(&mut self, fingerprint: Fingerprint) -> Option<Arc<Content>> {
        let kept = self.by_fingerprint.get_mut(&fingerprint)?;
        let content = kept.content.clone()?;
        self.by_use.remove(&kept.used);
        self.clock += 1;
        kept.used = self.clock;
        self.by_use.insert(kept.used, fingerprint);
        Some(content)
    }

    /// One more file has this content.
    fn add(&mut self, fingerprint: Option<Fingerprint>, content: Option<Arc<Content>>) {
        let Some(fingerprint) = fingerprint else { return };
        let kept = self.by_fingerprint.entry(fingerprint);
        kept.or_insert(Kept { users: 0, content: None, used: 0 }).users += 1;
        self.fill(Some(fingerprint), content);
    }

    /// The content that files have, if it was not kept.
    fn fill(&mut self, fingerprint: Option<Fingerprint>, content: Option<Arc<Content>>) {
        let Some(fingerprint) = fingerprint else { return };
        let Some(kept) = self.by_fingerprint.get_mut(&fingerprint) else { return };
        if kept.content.is_none()
            && let Some(content) = content
        {
            self.bytes += content.bytes();
            self.clock += 1;
            kept.used = self.clock;
            kept.content = Some(content);
            self.by_use.insert(kept.used, fingerprint);
        }
        self.shrink();
    }

    /// One file fewer has it.
    fn remove(&mut self, fingerprint: Option<Fingerprint>) {
        let Some(fingerprint) = fingerprint else { return };
        let Some(kept) = self.by_fingerprint.get_mut(&fingerprint) else { return };
        kept.users -= 1;
        if kept.users == 0
            && let Some(kept) = self.by_fingerprint.remove(&fingerprint)
            && let Some(content) = kept.content
        {
            self.bytes -= content.bytes();
            self.by_use.remove(&kept.used);
        }
    }

    fn shrink(&mut self) {
        while (self.by_use.len() > self.contents_max || self.bytes > self.bytes_max)
            && let Some((_, fingerprint)) = self.by_use.pop_first()
        {
            let kept = self.by_fingerprint.get_mut(&fingerprint);
            if let Some(content) = kept.and_then(|kept| kept.content.take()) {
                self.bytes -= content.bytes();
            }
        }
    }
}
