//! The watcher: one for the daemon, on the directories of the files that somebody cares for, never
//! on trees. All that it does is to hint, and to say of which directories every change is hinted at
//! (`architecture.md`, law 8). Whatever goes wrong makes a directory one of which that cannot be
//! said, so that its files are compared.
//!
//! Watches are set by a thread of its own: under a flood of events setting one takes as long as the
//! flood does.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use notify::event::{AccessKind, AccessMode, EventKind, ModifyKind};
use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher as _};
use parking_lot::{Condvar, Mutex};
use tempfile::TempDir;

use super::disk::{self, Stamp};
use super::hints::Hints;

/// How long the marker of a barrier may take; comparing is quicker than to wait any longer.
const BARRIER: Duration = Duration::from_millis(50);

/// The most different problems that are logged.
const PROBLEMS_MAX: usize = 100;

/// How well the watcher sees; what it does not see is compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Directories in which watched files lie.
    pub directories: u64,
    /// Those of them whose changes raise events.
    pub seen: u64,
    /// Those on network and shared file systems, which raise no events.
    pub remote: u64,
    /// Those that the system refuses to watch.
    pub refused: u64,
    /// How often events were lost, so that everything was compared.
    pub rescans: u64,
    /// How often events came too late to be waited for.
    pub late: u64,
    /// Whether they are late now.
    pub is_behind: bool,
    /// Whether events cannot be had at all, or not be waited for.
    pub is_blind: bool,
    /// Whether the system refuses to watch more.
    pub is_full: bool,
    /// What went wrong last, if anything did.
    pub problem: Option<String>,
}

impl Health {
    /// Why files are compared without the help of events at present, as clauses; `None` where
    /// events are heard of everything.
    pub fn shortfall(&self) -> Option<String> {
        let directories = |count: u64, what: &str| match count {
            0 => None,
            1 => Some(format!("1 directory {what}")),
            count => Some(format!("{count} directories {what}")),
        };
        let with_problem = |what: &str| match &self.problem {
            Some(problem) => format!("{what} ({problem})"),
            None => what.to_owned(),
        };
        if self.is_blind {
            return Some(with_problem("they cannot be relied on"));
        }
        let clauses: Vec<_> = [
            directories(self.remote, "on network file systems"),
            directories(self.refused, &with_problem("cannot be watched")),
            self.is_behind.then(|| "they are late".to_owned()),
        ]
        .into_iter()
        .flatten()
        .collect();
        (!clauses.is_empty()).then(|| clauses.join(", "))
    }
}

/// The watcher.
pub(super) struct Watcher {
    shared: Arc<Shared>,
}

struct Shared {
    hints: Arc<Hints>,
    table: Mutex<Table>,
    /// There is work for the thread, or it is to end.
    work: Condvar,
    /// The marker moved, or the thread did something.
    progress: Condvar,
}

#[derive(Default)]
struct Table {
    directories: BTreeMap<PathBuf, Directory>,
    /// Which directory a watch is on, by what it is rather than by its name: the kernel has one
    /// watch for both names of a directory.
    by_identity: HashMap<(u64, u64), PathBuf>,
    wanted: BTreeSet<PathBuf>,
    unwanted: BTreeSet<PathBuf>,
    most: usize,
    /// Counts what made room for further watches.
    removals: u64,
    marker: Marker,
    thread: Thread,
    is_over: bool,
    rescans: u64,
    late: u64,
    is_full: bool,
    problem: Option<String>,
    /// What was logged.
    logged: BTreeSet<String>,
}

/// The thread that sets watches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Thread {
    /// Not needed yet.
    #[default]
    None,
    Runs,
    /// It cannot be had, or cannot work.
    Failed,
}

/// A directory in which watched files lie.
#[derive(Debug, Default)]
struct Directory {
    users: u32,
    cover: Cover,
    /// Counts the watches that were set on it: what happened before the last of them was not seen.
    epoch: u64,
    /// Counts the times it was lost, also while a watch was being set.
    losses: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Cover {
    /// No watch yet, or none any more.
    #[default]
    None,
    /// A watch is on what is this directory.
    Watched((u64, u64)),
    /// On a file system without events.
    Remote((u64, u64)),
    /// The system refused, when so much room had been made.
    Refused((u64, u64), u64),
}

impl Cover {
    fn identity(self) -> Option<(u64, u64)> {
        match self {
            Self::None => None,
            Self::Watched(identity) | Self::Remote(identity) | Self::Refused(identity, _) => {
                Some(identity)
            }
        }
    }
}

/// A file of our own whose events show how far events have come.
#[derive(Default)]
struct Marker {
    directory: Option<TempDir>,
    /// Whether the thread has to make one.
    is_wanted: bool,
    asked: u64,
    reached: u64,
    /// One that did not come in time. Until it does, no other is waited for.
    overdue: Option<u64>,
}

impl Watcher {
    /// A watcher that has not begun, with at most so many watches.
    pub fn new(hints: Arc<Hints>, most: usize) -> Self {
        let marker = Marker { is_wanted: true, ..Marker::default() };
        let table = Table { most, marker, ..Table::default() };
        Self {
            shared: Arc::new(Shared {
                hints,
                table: Mutex::new(table),
                work: Condvar::new(),
                progress: Condvar::new(),
            }),
        }
    }

    /// Watches a directory for one more user.
    pub fn watch(&self, directory: &Path) {
        let mut table = self.shared.table.lock();
        if let Some(known) = table.directories.get_mut(directory) {
            known.users += 1;
            return;
        }
        let new = Directory { users: 1, ..Directory::default() };
        table.directories.insert(directory.to_owned(), new);
        self.shared.want(&mut table, directory);
    }

    /// Ends one [`Watcher::watch`].
    pub fn unwatch(&self, directory: &Path) {
        let mut table = self.shared.table.lock();
        let Some(known) = table.directories.get_mut(directory) else { return };
        known.users -= 1;
        if known.users > 0 {
            return;
        }
        table.wanted.remove(directory);
        if table.uncover(directory) {
            table.unwanted.insert(directory.to_owned());
            self.shared.work.notify_one();
        }
        table.directories.remove(directory);
    }

    /// The epoch of each directory, given as it is spelled and by its real path, if since then every
    /// change in it was hinted at; `None` where that cannot be said, and then it is watched anew if
    /// it can be. To be asked after a barrier.
    pub fn epochs<'a>(
        &self,
        directories: impl IntoIterator<Item = (&'a Path, &'a Path)>,
    ) -> Vec<Option<u64>> {
        let looked: Vec<_> = directories
            .into_iter()
            .map(|(spelled, real)| (real, Stamp::at(spelled).map(|stamp| stamp.identity())))
            .collect();
        let mut table = self.shared.table.lock();
        let table = &mut *table;
        let mut epochs = Vec::with_capacity(looked.len());
        for (path, identity) in looked {
            let Some(directory) = table.directories.get(path) else {
                epochs.push(None);
                continue;
            };
            let is_same = identity.is_some() && directory.cover.identity() == identity;
            let wants = match directory.cover {
                Cover::Watched(_) if is_same => {
                    epochs.push(Some(directory.epoch));
                    continue;
                }
                Cover::Remote(_) if is_same => false,
                Cover::Refused(_, removals) if is_same => removals != table.removals,
                // Nothing stands there that could be watched.
                _ => identity.is_some(),
            };
            epochs.push(None);
            if wants {
                self.shared.want(table, path);
            }
        }
        epochs
    }

    /// Waits until every event that was raised before has become a hint; `false` when that takes too
    /// long or there is no way to know.
    pub fn barrier(&self, deadline: Option<Instant>) -> bool {
        let mut table = self.shared.table.lock();
        if table.marker.overdue.is_some() {
            return false;
        }
        if !table.marker.advance() {
            self.shared.work.notify_one();
            return false;
        }
        let ticket = table.marker.asked;
        let until = Instant::now() + BARRIER;
        let until = deadline.map_or(until, |deadline| deadline.min(until));
        while table.marker.reached < ticket {
            if self.shared.progress.wait_until(&mut table, until).timed_out() {
                break;
            }
        }
        let is_reached = table.marker.reached >= ticket;
        if !is_reached {
            table.marker.overdue = Some(ticket);
            table.late += 1;
            if table.late == 1 {
                tracing::warn!("file events are late: watched files are compared instead");
            }
        }
        is_reached
    }

    /// How well it sees.
    pub fn health(&self) -> Health {
        let table = self.shared.table.lock();
        let count = |is: fn(Cover) -> bool| {
            table.directories.values().filter(|directory| is(directory.cover)).count() as u64
        };
        Health {
            directories: table.directories.len() as u64,
            seen: count(|cover| matches!(cover, Cover::Watched(_))),
            remote: count(|cover| matches!(cover, Cover::Remote(_))),
            refused: count(|cover| matches!(cover, Cover::Refused(..))),
            rescans: table.rescans,
            late: table.late,
            is_behind: table.marker.overdue.is_some(),
            is_blind: table.thread == Thread::Failed
                || (!table.marker.is_wanted && table.marker.directory.is_none()),
            is_full: table.is_full,
            problem: table.problem.clone(),
        }
    }

    /// Waits until the thread has nothing to do.
    #[cfg(test)]
    pub fn settle(&self) {
        let mut table = self.shared.table.lock();
        let until = Instant::now() + Duration::from_secs(20);
        while table.has_work() {
            let waited = self.shared.progress.wait_until(&mut table, until);
            assert!(!waited.timed_out(), "the watches are not set");
        }
    }

    /// An event as the system would send it.
    #[cfg(test)]
    pub fn deliver(&self, event: notify::Result<Event>) {
        self.shared.take(event);
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.shared.table.lock().is_over = true;
        self.shared.work.notify_one();
    }
}

impl Marker {
    /// Moves the marker on; `false` when there is none.
    fn advance(&mut self) -> bool {
        let Some(directory) = &self.directory else { return false };
        let path = |number: u64| directory.path().join(number.to_string());
        // Something that tidies up may have taken it.
        let moved = fs::rename(path(self.asked), path(self.asked + 1))
            .or_else(|_| fs::write(path(self.asked + 1), ""));
        if moved.is_err() {
            self.directory = None;
            self.is_wanted = true;
            return false;
        }
        self.asked += 1;
        true
    }
}

impl Table {
    /// Logs what went wrong, the first time.
    fn note(&mut self, problem: &str) {
        if !self.logged.contains(problem) && self.logged.len() < PROBLEMS_MAX {
            tracing::warn!("file events: {problem}; watched files are compared instead");
            self.logged.insert(problem.to_owned());
        }
        self.problem = Some(problem.to_owned());
    }

    fn has_work(&self) -> bool {
        self.marker.is_wanted || !(self.wanted.is_empty() && self.unwanted.is_empty())
    }

    /// No watch is known to be on a directory any more; whether one was.
    fn uncover(&mut self, path: &Path) -> bool {
        let Some(directory) = self.directories.get_mut(path) else { return false };
        let Cover::Watched(identity) = directory.cover else { return false };
        directory.cover = Cover::None;
        self.by_identity.remove(&identity);
        self.removals += 1;
        true
    }

    /// A directory and those below it are gone or have other names. notify drops their watches when
    /// it hears of that, which can be after they were set anew.
    fn lose(&mut self, path: &Path) {
        let from = (Bound::Included(path), Bound::Unbounded);
        let below = self.directories.range_mut::<Path, _>(from);
        for (_, directory) in below.take_while(|(below, _)| below.starts_with(path)) {
            directory.losses += 1;
            if let Cover::Watched(identity) = directory.cover {
                directory.cover = Cover::None;
                self.by_identity.remove(&identity);
                self.removals += 1;
            }
        }
    }
}

impl Shared {
    fn want(self: &Arc<Self>, table: &mut Table, directory: &Path) {
        table.wanted.insert(directory.to_owned());
        if table.thread == Thread::None {
            let shared = self.clone();
            let thread = thread::Builder::new().name("watches".to_owned());
            match thread.spawn(move || shared.set_watches()) {
                Ok(_) => table.thread = Thread::Runs,
                Err(error) => {
                    table.thread = Thread::Failed;
                    table.note(&format!("no thread for the watcher: {error}"));
                }
            }
        }
        self.work.notify_one();
    }

    /// What the thread does until the watcher is dropped.
    fn set_watches(self: Arc<Self>) {
        let handler = self.clone();
        let watcher = notify::recommended_watcher(move |event| handler.take(event));
        let mut watcher = match watcher {
            Ok(watcher) => watcher,
            Err(error) => {
                let mut table = self.table.lock();
                // What is wanted stays wanted: nothing is covered.
                table.thread = Thread::Failed;
                return table.note(&shown(&error));
            }
        };
        loop {
            self.place_marker(&mut watcher);
            let mut table = self.table.lock();
            while !table.has_work() && !table.is_over {
                self.work.wait(&mut table);
            }
            if table.is_over {
                // Its marker goes with it.
                table.marker.directory = None;
                return;
            }
            if let Some(directory) = table.unwanted.pop_first() {
                drop(table);
                // The system has dropped it already if it is gone.
                let _ = watcher.unwatch(&directory);
            } else if let Some(directory) = table.wanted.first().cloned() {
                drop(table);
                self.cover(&mut watcher, &directory);
            }
            self.progress.notify_all();
        }
    }

    /// Puts a watch on what is a directory now.
    fn cover(&self, watcher: &mut RecommendedWatcher, path: &Path) {
        let losses = {
            let mut table = self.table.lock();
            table.uncover(path);
            table.directories.get(path).map(|directory| directory.losses)
        };
        // What was watched under this name may be something else by now.
        let _ = watcher.unwatch(path);
        let cover = if losses.is_some() { self.try_to_cover(watcher, path) } else { Cover::None };
        let mut table = self.table.lock();
        let table = &mut *table;
        let is_covered = matches!(cover, Cover::Watched(_));
        let Some(directory) = table.directories.get_mut(path) else {
            // Nobody wants it any more.
            table.wanted.remove(path);
            if is_covered {
                table.unwanted.insert(path.to_owned());
            }
            return;
        };
        if is_covered && losses != Some(directory.losses) {
            // It stays wanted.
            return;
        }
        table.wanted.remove(path);
        directory.cover = cover;
        if let Cover::Watched(identity) = cover {
            directory.epoch += 1;
            table.by_identity.insert(identity, path.to_owned());
        }
    }

    fn try_to_cover(&self, watcher: &mut RecommendedWatcher, path: &Path) -> Cover {
        let identity = || Stamp::at(path).map(|stamp| stamp.identity());
        let Some(before) = identity() else { return Cover::None };
        if disk::is_remote(path) {
            self.table.lock().note("there are none on network file systems");
            return Cover::Remote(before);
        }
        let (other, refused) = {
            let mut table = self.table.lock();
            let refused = Cover::Refused(before, table.removals);
            if table.by_identity.len() >= table.most {
                table.is_full = true;
                table.note("no more directories can be watched");
                return refused;
            }
            (table.by_identity.get(&before).cloned(), refused)
        };
        if let Some(other) = other.filter(|other| other != path) {
            // One watch cannot serve two names that both are valid.
            if Stamp::at(&other).is_some_and(|stamp| stamp.identity() == before) {
                return refused;
            }
            self.table.lock().uncover(&other);
            let _ = watcher.unwatch(&other);
        }
        if let Err(error) = watcher.watch(path, RecursiveMode::NonRecursive) {
            if matches!(error.kind, notify::ErrorKind::PathNotFound) {
                return Cover::None;
            }
            let mut table = self.table.lock();
            table.is_full |= matches!(error.kind, notify::ErrorKind::MaxFilesWatch);
            table.note(&shown(&error));
            return refused;
        }
        // It may have been replaced between the looks.
        if identity() == Some(before) { Cover::Watched(before) } else { Cover::None }
    }

    /// Makes and watches the directory of the marker, unless it is there.
    fn place_marker(&self, watcher: &mut RecommendedWatcher) {
        if !self.table.lock().marker.is_wanted {
            return;
        }
        let make = |place: PathBuf| {
            let directory =
                tempfile::Builder::new().prefix("reminderd-events-").tempdir_in(place)?;
            // Events name the real path.
            let real = fs::canonicalize(directory.path())?;
            Ok::<_, std::io::Error>((directory, real))
        };
        let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        let found = match runtime.map(make) {
            Some(Ok(found)) => Ok(found),
            _ => make(std::env::temp_dir()),
        };
        let found = found.map_err(|error| format!("no directory for the marker: {}", error.kind()));
        let placed = found.and_then(|(directory, real)| {
            let set = watcher.watch(&real, RecursiveMode::NonRecursive);
            set.map(|()| directory).map_err(|error| shown(&error))
        });
        let mut table = self.table.lock();
        table.marker.is_wanted = false;
        match placed {
            Ok(directory) => table.marker.directory = Some(directory),
            Err(problem) => table.note(&problem),
        }
        drop(table);
        self.progress.notify_all();
    }

    /// An event. Never waits for anything but the table.
    fn take(&self, event: notify::Result<Event>) {
        let event = match event {
            Ok(event) => event,
            Err(error) => {
                self.rescan(&shown(&error));
                return;
            }
        };
        if event.need_rescan() {
            self.rescan("some were lost");
        }
        match event.kind {
            EventKind::Access(AccessKind::Close(AccessMode::Write)) => {}
            // Reading changes nothing, and we read ourselves.
            EventKind::Access(_) => return,
            _ => {}
        }
        for path in &event.paths {
            self.hints.hint(path.as_os_str());
        }
        let moves =
            matches!(event.kind, EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_)));
        if !moves && !matches!(event.kind, EventKind::Create(_)) {
            return;
        }
        let mut table = self.table.lock();
        for path in &event.paths {
            if moves {
                table.lose(path);
            }
            if let Some(number) = table.marker.number_of(path)
                && number > table.marker.reached
            {
                table.marker.reached = number;
                if table.marker.overdue.is_some_and(|overdue| overdue <= number) {
                    table.marker.overdue = None;
                }
                self.progress.notify_all();
            }
        }
    }

    fn rescan(&self, problem: &str) {
        {
            let mut table = self.table.lock();
            table.rescans += 1;
            table.note(problem);
        }
        self.hints.rescan();
    }
}

impl Marker {
    /// The number of the marker that an event names.
    fn number_of(&self, path: &Path) -> Option<u64> {
        let directory = self.directory.as_ref()?.path();
        // The names of temporary directories are unique, wherever links lead to them.
        if path.parent()?.file_name()? != directory.file_name()? {
            return None;
        }
        path.file_name()?.to_str()?.parse().ok()
    }
}

/// An error of the watcher, without the paths that it is about.
fn shown(error: &notify::Error) -> String {
    match &error.kind {
        notify::ErrorKind::Io(error) => error.kind().to_string(),
        notify::ErrorKind::MaxFilesWatch => "the system watches no more directories".to_owned(),
        notify::ErrorKind::Generic(text) => text.clone(),
        kind => format!("{kind:?}"),
    }
}

#[cfg(test)]
mod tests {
    use notify::event::Flag;

    use super::*;

    /// A watcher on one file of a directory of its own.
    struct Home {
        place: TempDir,
        directory: PathBuf,
        file: PathBuf,
        hints: Arc<Hints>,
        watcher: Watcher,
    }

    impl Home {
        fn new(most: usize) -> Self {
            let place = tempfile::tempdir().expect("there is room");
            let directory = fs::canonicalize(place.path()).expect("it was made").join("d");
            let file = directory.join("a");
            fs::create_dir(&directory).expect("it can be made");
            fs::write(&file, "").expect("it can be written");
            let hints = Arc::new(Hints::default());
            hints.know(file.as_os_str());
            let watcher = Watcher::new(hints.clone(), most);
            watcher.watch(&directory);
            watcher.settle();
            Self { place, directory, file, hints, watcher }
        }

        fn epoch(&self) -> Option<u64> {
            // On a busy machine a marker may be late.
            let until = Instant::now() + Duration::from_secs(20);
            while !self.watcher.barrier(None) {
                assert!(Instant::now() < until, "events do not come");
            }
            self.watcher.epochs([(&*self.directory, &*self.directory)])[0]
        }

        /// Whether a write is hinted at by the time of the next barrier.
        fn sees_a_write(&self) -> bool {
            let before = self.hints.position().sequence;
            fs::write(&self.file, "x").expect("it can be written");
            self.epoch();
            self.hints.is_hinted(self.file.as_os_str(), before)
        }
    }

    #[test]
    fn events_become_hints_before_a_barrier_ends_and_reading_does_not() {
        let home = Home::new(10);
        assert_eq!(home.epoch(), Some(1));
        assert!(home.sees_a_write());
        let before = home.hints.position();
        fs::read(&home.file).expect("it can be read");
        assert_eq!(home.epoch(), Some(1));
        assert_eq!(home.hints.position(), before);
        for _ in 0..2 {
            let new = home.directory.join("new");
            fs::write(&new, "y").expect("it can be written");
            let before = home.hints.position().sequence;
            fs::rename(&new, &home.file).expect("it is ours");
            home.epoch();
            assert!(home.hints.is_hinted(home.file.as_os_str(), before));
        }
    }

    #[test]
    fn what_becomes_of_a_directory_is_noticed_and_it_is_watched_anew() {
        let home = Home::new(10);
        let aside = home.place.path().join("aside");
        let changes: [&dyn Fn(); 4] = [
            // Removed and made again, perhaps as the same inode.
            &|| {
                fs::remove_dir_all(&home.directory).expect("it was there");
                fs::create_dir(&home.directory).expect("it can be made");
            },
            // Moved away, and another one in its place.
            &|| {
                fs::rename(&home.directory, &aside).expect("it is ours");
                fs::create_dir(&home.directory).expect("it can be made");
            },
            // There and back again.
            &|| {
                fs::remove_dir_all(&aside).expect("it was there");
                fs::rename(&home.directory, &aside).expect("it is ours");
                fs::rename(&aside, &home.directory).expect("it is ours");
            },
            // As it is, under another name for a moment, with its parent.
            &|| {
                let parent = home.directory.parent().expect("it has one");
                let moved = parent.with_extension("moved");
                fs::rename(parent, &moved).expect("it is ours");
                fs::create_dir_all(&home.directory).expect("it can be made");
                fs::remove_dir_all(parent).expect("it was made");
                fs::rename(moved, parent).expect("it is ours");
            },
        ];
        for (number, change) in changes.into_iter().enumerate() {
            let before = home.epoch();
            change();
            if number < 3 {
                assert_eq!(home.epoch(), None, "change {number}");
                home.watcher.settle();
                assert!(home.epoch() > before, "change {number}");
            }
            assert!(home.sees_a_write(), "change {number}");
        }
    }

    #[test]
    fn a_missing_directory_is_watched_once_it_is_there() {
        let home = Home::new(10);
        fs::remove_dir_all(&home.directory).expect("it was there");
        for _ in 0..3 {
            assert_eq!(home.epoch(), None);
            home.watcher.settle();
        }
        fs::create_dir(&home.directory).expect("it can be made");
        assert_eq!(home.epoch(), None);
        home.watcher.settle();
        assert!(home.epoch().is_some());
        assert!(home.sees_a_write());
    }

    #[test]
    fn lost_events_and_errors_make_everything_suspect() {
        let home = Home::new(10);
        home.watcher.deliver(Ok(Event::new(EventKind::Other).set_flag(Flag::Rescan)));
        assert_eq!(home.hints.position().rescans, 1);
        home.watcher.deliver(Err(notify::Error::generic("broken")));
        assert_eq!(home.hints.position().rescans, 2);
        let health = home.watcher.health();
        assert_eq!((health.rescans, health.problem.as_deref()), (2, Some("broken")));
    }

    #[test]
    fn beyond_the_limit_directories_are_left_to_comparing_until_there_is_room() {
        let home = Home::new(1);
        let other = home.directory.with_file_name("e");
        fs::create_dir(&other).expect("it can be made");
        home.watcher.watch(&other);
        home.watcher.settle();
        assert_eq!(home.watcher.epochs([(&*other, &*other)]), [None]);
        home.watcher.settle();
        let health = home.watcher.health();
        assert_eq!((health.directories, health.seen, health.is_full), (2, 1, true));
        let shortfall = "1 directory cannot be watched (no more directories can be watched)";
        assert_eq!(health.shortfall().as_deref(), Some(shortfall));
        home.watcher.unwatch(&home.directory);
        home.watcher.settle();
        assert_eq!(home.watcher.epochs([(&*other, &*other)]), [None]);
        home.watcher.settle();
        assert_eq!(home.watcher.epochs([(&*other, &*other)]), [Some(1)]);
        assert_eq!(home.watcher.health().directories, 1);
    }

    #[test]
    fn a_directory_that_moved_into_a_watched_place_is_seen_there() {
        let home = Home::new(10);
        let other = home.directory.with_file_name("e");
        home.watcher.watch(&other);
        fs::rename(&home.directory, &other).expect("it is ours");
        home.hints.know(other.join("a").as_os_str());
        let epochs = || {
            home.epoch();
            home.watcher.settle();
            home.watcher.epochs([(&*home.directory, &*home.directory), (&*other, &*other)])
        };
        epochs();
        assert!(matches!(epochs()[..], [None, Some(_)]));
        // The first one is left alone: that would end the watch of the second.
        home.watcher.unwatch(&home.directory);
        home.watcher.settle();
        let before = home.hints.position().sequence;
        fs::write(other.join("a"), "x").expect("it can be written");
        assert!(matches!(epochs()[..], [None, Some(_)]));
        assert!(home.hints.is_hinted(other.join("a").as_os_str(), before));
    }

    #[test]
    fn without_its_marker_a_barrier_says_so_and_another_is_made() {
        let home = Home::new(10);
        let marker = |home: &Home| {
            let table = home.watcher.shared.table.lock();
            table.marker.directory.as_ref().map(|directory| directory.path().to_owned())
        };
        let first = marker(&home).expect("it was made");
        home.epoch();
        fs::remove_dir_all(first).expect("it was there");
        assert!(!home.watcher.barrier(None));
        home.watcher.settle();
        assert!(marker(&home).is_some());
        assert!(home.sees_a_write());
    }

    #[test]
    fn network_file_systems_are_told_from_others() {
        assert!(!disk::is_remote(Path::new("/")));
        assert!(!disk::is_remote(Path::new("/nowhere")));
    }
}
