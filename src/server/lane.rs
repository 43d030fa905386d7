//! Work that looks at the disk, one piece after the other in the order of arrival, on a thread that
//! may wait for a disk. A lane has at most one thread at a time, and none while it is idle.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use parking_lot::Mutex;

/// Pieces of work that wait in a lane at most.
const WAITING_MAX: usize = 100_000;

/// One piece of work.
pub type Work = Box<dyn FnOnce() + Send>;

/// A lane.
#[derive(Default)]
pub struct Lane {
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Work>,
    is_running: bool,
}

impl fmt::Debug for Lane {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Lane").field("waiting", &self.queue.lock().waiting.len()).finish()
    }
}

impl Lane {
    /// Puts work behind what waits. `false`, and nothing happens, when too much does.
    pub fn push(self: &Arc<Self>, work: Work) -> bool {
        let mut queue = self.queue.lock();
        if queue.waiting.len() >= WAITING_MAX {
            return false;
        }
        queue.waiting.push_back(work);
        if !std::mem::replace(&mut queue.is_running, true) {
            let lane = Arc::clone(self);
            drop(tokio::task::spawn_blocking(move || lane.run()));
        }
        true
    }

    /// Whether nothing waits or runs.
    pub fn is_idle(&self) -> bool {
        !self.queue.lock().is_running
    }

    fn run(&self) {
        loop {
            let work = {
                let mut queue = self.queue.lock();
                match queue.waiting.pop_front() {
                    Some(work) => work,
                    None => {
                        queue.is_running = false;
                        return;
                    }
                }
            };
            // What fails takes nothing else with it; whoever waits for it hears that it is gone.
            if catch_unwind(AssertUnwindSafe(work)).is_err() {
                tracing::error!("work on files failed");
            }
        }
    }
}

/// The newest piece of work of each key that has not begun, so that a burst of the same is done once.
#[derive(Debug)]
pub struct Coalesced<Key, Piece> {
    waiting: Mutex<HashMap<Key, Arc<Mutex<Option<Piece>>>>>,
}

impl<Key, Piece> Default for Coalesced<Key, Piece> {
    fn default() -> Self {
        Self { waiting: Mutex::default() }
    }
}

impl<Key: std::hash::Hash + Eq, Piece> Coalesced<Key, Piece> {
    /// Merges a piece into the one of its key that waits, or returns the place of a new one.
    pub fn join(
        &self,
        key: Key,
        piece: Piece,
        merge: impl FnOnce(&mut Piece, Piece),
    ) -> Option<Arc<Mutex<Option<Piece>>>> {
        let mut waiting = self.waiting.lock();
        if let Some(place) = waiting.get(&key) {
            // Taken already: it runs now, and sees nothing newer.
            if let Some(known) = &mut *place.lock() {
                merge(known, piece);
                return None;
            }
        }
        let place = Arc::new(Mutex::new(Some(piece)));
        waiting.insert(key, Arc::clone(&place));
        Some(place)
    }

    /// A piece begins.
    pub fn begin(&self, key: &Key, place: &Arc<Mutex<Option<Piece>>>) -> Option<Piece> {
        let mut waiting = self.waiting.lock();
        if waiting.get(key).is_some_and(|other| Arc::ptr_eq(other, place)) {
            waiting.remove(key);
        }
        place.lock().take()
    }

    /// What comes from here on must not join what waits: something stands between them.
    pub fn part(&self) {
        self.waiting.lock().clear();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn work_is_done_in_order_and_a_failure_takes_nothing_with_it() {
        let lane = Arc::new(Lane::default());
        let (sender, receiver) = mpsc::channel();
        for number in 0..100 {
            let sender = sender.clone();
            assert!(lane.push(Box::new(move || {
                assert_ne!(number, 50, "this one fails");
                sender.send(number).unwrap();
            })));
        }
        drop(sender);
        let done = tokio::task::spawn_blocking(move || receiver.iter().collect::<Vec<_>>());
        assert_eq!(done.await.unwrap(), (0..100).filter(|it| *it != 50).collect::<Vec<_>>());
    }

    #[test]
    fn a_burst_of_the_same_is_one_until_something_stands_between() {
        let coalesced = Coalesced::default();
        let newest = |known: &mut u32, newer| *known = newer;
        let first = coalesced.join("a", 1, newest).unwrap();
        assert!(coalesced.join("a", 2, newest).is_none());
        assert!(coalesced.join("b", 9, newest).is_some());
        coalesced.part();
        let second = coalesced.join("a", 3, newest).unwrap();
        assert_eq!(coalesced.begin(&"a", &first), Some(2));
        assert!(coalesced.join("a", 4, newest).is_none());
        assert_eq!(coalesced.begin(&"a", &second), Some(4));
        assert!(coalesced.join("a", 5, newest).is_some());
    }
}
