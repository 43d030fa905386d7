//! Which of the paths that somebody cares for were named by an event, and when. A hint makes a
//! comparison read where it would have trusted a stamp; that is all it does (law 8).
//!
//! However many events come, at most one hint is held for each known path.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::Notify;

/// Hints by path.
#[derive(Default)]
pub(super) struct Hints {
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    paths: HashMap<Arc<OsStr>, Mark>,
    /// Hinted paths in the order of their last hints.
    order: BTreeMap<u64, Arc<OsStr>>,
    /// Counts hints.
    sequence: u64,
    /// Counts the times when anything may have changed unseen.
    rescans: u64,
    listeners: Vec<Weak<Heard>>,
}

struct Mark {
    /// How often it is known.
    users: u32,
    /// When it was last hinted at; 0 for never.
    hinted: u64,
}

impl Hints {
    /// From now on hints at this path are kept. Counted: as many calls of [`Hints::leave`] end it.
    pub fn know(&self, path: &OsStr) {
        let mut table = self.table.lock();
        if let Some(mark) = table.paths.get_mut(path) {
            mark.users += 1;
        } else {
            table.paths.insert(path.into(), Mark { users: 1, hinted: 0 });
        }
    }

    /// Ends one [`Hints::know`].
    pub fn leave(&self, path: &OsStr) {
        let mut table = self.table.lock();
        let Some(mark) = table.paths.get_mut(path) else { return };
        mark.users -= 1;
        if mark.users == 0 {
            let hinted = mark.hinted;
            table.paths.remove(path);
            table.order.remove(&hinted);
        }
    }

    /// An event named a path. Whether anybody knows it.
    pub fn hint(&self, path: &OsStr) -> bool {
        let mut table = self.table.lock();
        let sequence = table.sequence + 1;
        let Some((name, _)) = table.paths.get_key_value(path) else { return false };
        let name = name.clone();
        table.sequence = sequence;
        if let Some(mark) = table.paths.get_mut(path) {
            let before = std::mem::replace(&mut mark.hinted, sequence);
            table.order.remove(&before);
        }
        table.order.insert(sequence, name.clone());
        table.listeners.retain(|listener| {
            let listener = listener.upgrade();
            listener.inspect(|heard| heard.hear(&name)).is_some()
        });
        true
    }

    /// Events were lost: every path may have changed.
    pub fn rescan(&self) {
        self.table.lock().rescans += 1;
    }

    /// Where hints and rescans stand.
    pub fn position(&self) -> Position {
        let table = self.table.lock();
        Position { sequence: table.sequence, rescans: table.rescans }
    }

    /// Whether a path was hinted at after a moment.
    pub fn is_hinted(&self, path: &OsStr, since: u64) -> bool {
        self.table.lock().paths.get(path).is_some_and(|mark| mark.hinted > since)
    }

    /// The paths that were hinted at after a moment, the earliest first.
    pub fn since(&self, sequence: u64) -> Vec<Arc<OsStr>> {
        self.table.lock().order.range(sequence + 1..).map(|(_, path)| path.clone()).collect()
    }

    /// Everything that is hinted at from now on, for somebody who waits for it.
    pub fn listen(&self) -> Changes {
        let heard = Arc::new(Heard::default());
        self.table.lock().listeners.push(Arc::downgrade(&heard));
        Changes { heard }
    }
}

/// How far hints have come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Position {
    pub sequence: u64,
    pub rescans: u64,
}

/// The most paths that a listener is behind; what comes on top of them is left out, since a live
/// hint promises nothing.
const HEARD_MAX: usize = 1024;

#[derive(Default)]
struct Heard {
    paths: Mutex<BTreeSet<Arc<OsStr>>>,
    news: Notify,
}

impl Heard {
    fn hear(&self, path: &Arc<OsStr>) {
        let mut paths = self.paths.lock();
        if paths.len() < HEARD_MAX && paths.insert(path.clone()) {
            drop(paths);
            self.news.notify_one();
        }
    }
}

/// A subscription to the watched paths that events name: each once, however many events there were
/// since the last look, and at most 1,024 of them.
pub struct Changes {
    heard: Arc<Heard>,
}

impl Changes {
    /// Waits until there is something, and takes all of it, sorted.
    pub async fn next(&self) -> Vec<PathBuf> {
        loop {
            let news = self.heard.news.notified();
            let paths = std::mem::take(&mut *self.heard.paths.lock());
            if !paths.is_empty() {
                return paths
                    .iter()
                    .map(|path| Path::new(&OsString::from(&**path)).into())
                    .collect();
            }
            news.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_is_kept_once_for_each_known_path() {
        let hints = Hints::default();
        let (known, other) = (OsStr::new("/a"), OsStr::new("/b"));
        hints.know(known);
        hints.know(known);
        for _ in 0..100_000 {
            assert!(hints.hint(known));
            assert!(!hints.hint(other));
        }
        assert_eq!(hints.table.lock().order.len(), 1);
        assert_eq!(hints.since(0), [known.into()]);
        let now = hints.position().sequence;
        assert!(hints.is_hinted(known, now - 1) && !hints.is_hinted(known, now));
        hints.leave(known);
        assert!(hints.hint(known));
        hints.leave(known);
        assert!(!hints.hint(known));
        let table = hints.table.lock();
        assert_eq!((table.paths.len(), table.order.len()), (0, 0));
    }

    #[tokio::test]
    async fn a_listener_hears_each_path_once_and_is_bounded() {
        let hints = Hints::default();
        let names: Vec<_> = (0..2000).map(|number| OsString::from(format!("/{number}"))).collect();
        let changes = hints.listen();
        for name in &names {
            hints.know(name);
            hints.hint(name);
            hints.hint(name);
        }
        assert_eq!(changes.next().await.len(), HEARD_MAX);
        hints.hint(&names[7]);
        assert_eq!(changes.next().await, [Path::new("/7")]);
        drop(changes);
        hints.hint(&names[7]);
        assert!(hints.table.lock().listeners.is_empty());
    }
}
