//! The comparison of a scope's watched files with the disk, at a WAIT (`reminders.md` §5).
//!
//! Few files are looked at one by one. Of many the watcher is asked: after a barrier a file needs a
//! look only when an event named it, when its directory is not the one that is watched, or when
//! events cannot be relied on for it (links, other names, network mounts); a few of the others are
//! looked at in turn, since what is written through a mapping or a new link raises no event. A look
//! is a `stat`; the content is read when that differs from last time, when it was too fresh then, or
//! after an event.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::engine::{Author, FileState, ScopePath};

use super::contents::Content;
use super::desk::{Desk, Judged, Place, Sight, Watched};
use super::disk::{self, Patience, Stamp};
use super::hints::Position;
use super::identity;

/// Above how many bytes a file is read only once all others were looked at.
const LARGE_BYTES: u64 = 16 << 20;
/// How often a file that is not quiet yet is looked at again.
const PAUSE: Duration = Duration::from_millis(5);

/// How many files of which nothing was heard are looked at in each comparison, in turn.
const IN_TURN: usize = 64;

/// After how many looks the clock is asked: it costs a fifth of a `stat`.
const LOOKS_BETWEEN: usize = 16;

/// A watched file that differs from what the scope knows of it.
#[derive(Clone, Debug)]
pub struct Difference {
    /// Every spelling under which the scope watches it and knows the same of it, the newest first.
    pub paths: Vec<String>,
    /// Which file it is.
    pub real: PathBuf,
    /// What the scope knows.
    pub was: FileState,
    /// What stands there.
    pub now: FileState,
    /// Who did it.
    pub author: Author,
    /// The content that the scope knows, if it is still kept.
    pub old: Option<Arc<Content>>,
    /// The content that stands there, if it may be kept.
    pub new: Option<Arc<Content>>,
    /// Whether that may be shown under each of the paths, as far as it was judged with the look.
    pub(super) judged: Vec<Option<Judged>>,
}

/// A directory as it is spelled, and the real one.
type Spelled = (Arc<Path>, Arc<Path>);

/// What is to be looked at.
#[derive(Default)]
struct Plan {
    checks: Vec<Check>,
    position: Position,
    /// The watches of the directories before the first look.
    epochs: Vec<(Spelled, Option<u64>)>,
}

struct Check {
    path: Arc<str>,
    sight: Option<(Stamp, bool)>,
    /// Whether what was seen last is not what the scope knows, and that then.
    differing: Option<FileState>,
    is_hinted: bool,
    known: Known,
}

/// What a scope knows, as far as it decides whether nothing or an empty file is news.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Known {
    Missing,
    Empty,
    Something,
}

impl Known {
    fn of(state: &FileState) -> Self {
        match state {
            FileState::Missing => Self::Missing,
            FileState::File { bytes: 0, .. } => Self::Empty,
            _ => Self::Something,
        }
    }
}

/// A file that was looked at, and where more than its stamp was needed.
struct Looked {
    path: Arc<str>,
    place: Place,
    known: Known,
    /// What is there; `None` when it is what was seen before.
    sight: Option<Sight>,
    state: FileState,
    stamp: Option<Stamp>,
    content: Option<Arc<Content>>,
    judged: Option<Judged>,
}

impl Desk {
    /// Compares what a scope knows of its files with the disk. Files that could not be looked at by
    /// the deadline are left for the next time; when nobody wants the result any more it is empty.
    ///
    /// Takes as long as the disk does, and up to [`super::Options::settle`] when a file was just
    /// removed or emptied. Nothing that is found counts as known before [`Desk::learn`].
    pub fn compare(
        &self,
        scope: &ScopePath,
        deadline: Instant,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Vec<Difference> {
        let patience = Patience { deadline: Some(deadline), is_cancelled };
        let plan = self.plan(scope, patience);
        let mut looked = Vec::new();
        let mut is_complete = true;
        let mut large = Vec::new();
        for (number, check) in plan.checks.iter().enumerate() {
            if number.is_multiple_of(LOOKS_BETWEEN) && patience.is_over() {
                is_complete = false;
                break;
            }
            // A large file must not take the time of those that are ready.
            match self.look_again(check, LARGE_BYTES, patience) {
                Look::Same => {}
                Look::Found(found) => looked.push(*found),
                Look::GivenUp => is_complete = false,
                Look::Large => large.push(check),
            }
        }
        is_complete &= self.settle(&mut looked, patience);
        for check in large {
            match self.look_again(check, u64::MAX, patience) {
                Look::Found(found) => looked.push(*found),
                Look::Same | Look::Large => {}
                Look::GivenUp => is_complete = false,
            }
        }
        // What is learnt of a file goes to all of its spellings.
        for looked in &looked {
            self.resolve_again(scope, &looked.path, looked.place.real());
        }
        if is_cancelled() {
            return Vec::new();
        }
        self.conclude(scope, &plan, looked, is_complete)
    }

    /// Which files need a look.
    fn plan(&self, scope: &ScopePath, patience: Patience<'_>) -> Plan {
        let files = &self.files;
        let is_small = {
            let state = self.state.lock();
            let Some(known) = state.scopes.get(scope) else { return Plan::default() };
            known.watched.len() <= files.options.small
        };
        let watcher = files.watcher.as_ref().filter(|_| !is_small);
        let hears_all = watcher.is_some_and(|watcher| watcher.barrier(patience.deadline));
        let position = files.hints.position();
        // The directories as they are before any file is looked at.
        let epochs = watcher.map_or_else(Vec::new, |watcher| {
            let directories: Vec<_> = match self.state.lock().scopes.get(scope) {
                Some(known) => known.by_directory.keys().cloned().collect(),
                None => Vec::new(),
            };
            let epochs = directories.iter().map(|(spelled, real)| (&**spelled, &**real));
            let epochs = watcher.epochs(epochs);
            directories.into_iter().zip(epochs).collect()
        });
        let mut state = self.state.lock();
        let Some(known) = state.scopes.get_mut(scope) else { return Plan::default() };
        let before = known.position;
        // Events were lost: a stamp may have been put back unheard.
        let is_suspect = before.rescans != position.rescans;
        let check = |(path, watched)| check(path, watched, position, is_suspect);
        let checks = if hears_all && !is_suspect {
            let in_turn = known.next_in_turn(IN_TURN);
            let mut paths: HashSet<&str> = known.restless.iter().map(|path| &**path).collect();
            paths.extend(in_turn.iter().map(|path| &**path));
            for (directory, epoch) in &epochs {
                let group = known.by_directory.get(directory);
                if let Some(group) = group.filter(|group| epoch.is_none() || group.epoch != *epoch)
                {
                    paths.extend(group.spellings.iter().map(|path| &**path));
                }
            }
            let hinted = files.hints.since(before.sequence);
            for path in &hinted {
                let spellings = known.by_real.get(&**path).into_iter().flatten();
                paths.extend(spellings.map(|path| &**path));
                let spelling = known.watched.get_key_value(&*identity::spelled(path));
                paths.extend(spelling.map(|(path, _)| &**path));
            }
            let named = paths.into_iter().filter_map(|path| known.watched.get_key_value(path));
            named.filter_map(check).collect()
        } else {
            let mut all = Vec::with_capacity(known.watched.len());
            all.extend(known.watched.iter().filter_map(check));
            all
        };
        Plan { checks, position, epochs }
    }

    /// Looks at one file.
    fn look_again(&self, check: &Check, bytes_max: u64, patience: Patience<'_>) -> Look {
        let stamp = Stamp::at(&identity::on_disk(&check.path));
        let is_same = !check.is_hinted
            && check.sight.is_some_and(|(seen, is_trusted)| is_trusted && stamp == Some(seen));
        match (&check.differing, is_same) {
            (None, true) => Look::Same,
            (Some(state), true) => Look::Found(Box::new(Looked {
                path: check.path.clone(),
                // Where it leads decides what may be told of it.
                place: Place::find(&self.files, &check.path),
                known: check.known,
                sight: None,
                state: state.clone(),
                stamp: check.sight.map(|(stamp, _)| stamp),
                content: None,
                judged: None,
            })),
            (_, false) if patience.is_over() => Look::GivenUp,
            (_, false) if stamp.is_some_and(|stamp| stamp.bytes() > bytes_max) => Look::Large,
            (_, false) => match self.read_again(&check.path, check.known, patience) {
                Some(looked) => Look::Found(Box::new(looked)),
                None => Look::GivenUp,
            },
        }
    }

    fn read_again(&self, path: &Arc<str>, known: Known, patience: Patience<'_>) -> Option<Looked> {
        let place = Place::find(&self.files, path);
        let at = self.files.hints.position().sequence;
        let mut snapshot = disk::snapshot(place.path(), &self.reading(), patience)?;
        let (content, judged) = self.keep(&place, &mut snapshot);
        let sight = Sight::new(snapshot, at);
        Some(Looked {
            path: path.clone(),
            place,
            known,
            state: sight.state.clone(),
            stamp: sight.stamp,
            sight: Some(sight),
            content,
            judged,
        })
    }

    /// Looks again at what is missing or empty until it is quiet: it may be in the middle of being
    /// saved. All such files share one window; one that still changes when it ends is left for the
    /// next time. Answers whether there is none of these.
    fn settle(&self, looked: &mut Vec<Looked>, patience: Patience<'_>) -> bool {
        let options = &self.files.options;
        let began = Instant::now();
        let mut unquiet: Vec<_> = looked
            .iter_mut()
            .filter(|looked| {
                let now = Known::of(&looked.state);
                now != looked.known && now != Known::Something
            })
            .filter_map(|looked| {
                let age = match looked.stamp {
                    Some(stamp) => stamp.age(),
                    None => age_of_directory(looked.place.real()),
                };
                let since = (age < options.quiet).then(|| began.checked_sub(age))?;
                Some((looked, since.unwrap_or(began), false))
            })
            .collect();
        loop {
            let now = Instant::now();
            let is_quiet = unquiet.iter().all(|(_, since, _)| now - *since >= options.quiet);
            if is_quiet || now - began >= options.settle || patience.is_over() {
                break;
            }
            thread::sleep(PAUSE);
            for (looked, since, has_changed) in &mut unquiet {
                let stamp = Stamp::at(looked.place.path());
                if stamp != looked.stamp {
                    looked.stamp = stamp;
                    *since = Instant::now();
                    *has_changed = true;
                }
            }
        }
        let mut unready = HashSet::new();
        for (looked, since, has_changed) in unquiet {
            if has_changed
                && let Some(again) = self.read_again(&looked.path, looked.known, patience)
            {
                *looked = again;
            }
            let is_quiet = since.elapsed() >= options.quiet;
            if !is_quiet && Known::of(&looked.state) != Known::Something {
                unready.insert(looked.path.clone());
            }
        }
        looked.retain(|looked| !unready.contains(&looked.path));
        unready.is_empty()
    }

    /// Remembers what was seen, and makes the differences.
    fn conclude(
        &self,
        scope: &ScopePath,
        plan: &Plan,
        looked: Vec<Looked>,
        is_complete: bool,
    ) -> Vec<Difference> {
        let mut state = self.state.lock();
        let mut found = Vec::new();
        for Looked { path, place, sight, content, judged, .. } in looked {
            let watched = state.scopes.get(scope).and_then(|scope| scope.watched.get(&path));
            // It may have been forgotten meanwhile.
            let Some(watched) = watched else { continue };
            match sight {
                // Somebody else may have looked later.
                Some(sight) if watched.sight.as_ref().is_none_or(|last| last.at <= sight.at) => {
                    state.see(scope, &path, place, sight, content.clone());
                }
                _ => state.watch(scope, &path, place),
            }
            found.push((path, content, judged));
        }
        if let Some(watched) = state.scopes.get_mut(scope).filter(|_| is_complete) {
            watched.position = plan.position;
            for (directory, epoch) in &plan.epochs {
                if let Some(group) = watched.by_directory.get_mut(directory) {
                    group.epoch = *epoch;
                }
            }
        }
        let mut differences: BTreeMap<(PathBuf, String), Vec<(u64, Difference)>> = BTreeMap::new();
        for (path, content, judged) in found {
            let watched = state.scopes.get(scope).and_then(|scope| scope.watched.get(&path));
            let Some(watched) = watched.filter(|watched| watched.differs()) else { continue };
            let (Some(was), Some(sight)) = (watched.known.clone(), &watched.sight) else {
                continue;
            };
            let (now, real, learnt) =
                (sight.state.clone(), watched.place.real().to_owned(), watched.learnt);
            let old = state.content(&was);
            let new = content.or_else(|| state.content(&now));
            let author = self.files.authors.of(&real, &now, self.session(), scope);
            let key = (real.clone(), content_of(&was));
            let paths = vec![path.to_string()];
            let judged = vec![judged];
            let difference = Difference { paths, real, was, now, author, old, new, judged };
            differences.entry(key).or_default().push((learnt, difference));
        }
        drop(state);
        differences.into_values().filter_map(merged).collect()
    }
}

enum Look {
    Same,
    Found(Box<Looked>),
    GivenUp,
    /// It is larger than what is looked at now.
    Large,
}

/// What is to be looked at of a file, when hints had come so far.
fn check(
    path: &Arc<str>,
    watched: &Watched,
    position: Position,
    is_suspect: bool,
) -> Option<Check> {
    let known = Known::of(watched.known.as_ref()?);
    let sight = watched.sight.as_ref();
    Some(Check {
        path: path.clone(),
        sight: sight.and_then(|sight| sight.stamp.map(|stamp| (stamp, sight.is_trusted))),
        differing: sight.filter(|_| watched.differs()).map(|sight| sight.state.clone()),
        // Mostly there was no event at all since.
        is_hinted: is_suspect
            || sight.is_some_and(|sight| {
                sight.at < position.sequence && watched.place.is_hinted(sight.at)
            }),
        known,
    })
}

/// The spellings of one file, of which the scope knows the same, as one difference.
fn merged(mut spellings: Vec<(u64, Difference)>) -> Option<Difference> {
    spellings.sort_by(|(one, first), (two, second)| {
        two.cmp(one).then_with(|| first.paths.cmp(&second.paths))
    });
    let mut spellings = spellings.into_iter().map(|(_, difference)| difference);
    let mut merged = spellings.next()?;
    for other in spellings {
        merged.paths.extend(other.paths);
        merged.judged.extend(other.judged);
    }
    Some(merged)
}

/// The same for states that are alike.
fn content_of(state: &FileState) -> String {
    match state {
        FileState::File { fingerprint, .. } => fingerprint.to_string(),
        other => format!("{other:?}"),
    }
}

/// How long ago a name was last put into the directory of a path, or taken from it; of one that is
/// gone too, from the nearest that is there.
fn age_of_directory(path: &Path) -> Duration {
    let stamps = path.ancestors().skip(1).find_map(Stamp::at);
    stamps.map_or(Duration::MAX, |stamp| stamp.age())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::desk::{Bounds, Files, Options};
    use super::super::secrecy::{self, Secrecy};
    use super::*;

    /// B134: after lost events everything is compared by content, once.
    #[test]
    fn lost_events_make_all_stamps_suspect() {
        let home = tempfile::tempdir().expect("there is room");
        let path = home.path().join("a");
        fs::write(&path, "one\n").expect("it can be written");
        let path = path.to_str().expect("it is text");
        let files = Files::new(Options { fresh: Duration::ZERO, small: 0, ..Options::default() });
        let secrecy = Arc::new(Secrecy::new(None, &secrecy::Options::default()));
        let desk = files.open("s", secrecy, Bounds::default());
        let seen = desk.look(&ScopePath::ROOT, path);
        desk.learn(&ScopePath::ROOT, path, Some(&seen.state));
        let are_read = || {
            let plan = desk.plan(&ScopePath::ROOT, Patience::ENDLESS);
            plan.checks.iter().map(|check| check.is_hinted).collect::<Vec<_>>()
        };
        let wait = || desk.compare(&ScopePath::ROOT, Instant::now() + PATIENCE, &|| false);
        assert!(wait().is_empty());
        assert_eq!(are_read(), [false]);
        files.hints.rescan();
        assert_eq!(are_read(), [true]);
        assert!(wait().is_empty());
        assert_eq!(are_read(), [false]);
    }

    const PATIENCE: Duration = Duration::from_secs(20);
}
