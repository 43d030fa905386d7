//! Who may append to a session. A lease has a fencing number that rises with each taker, so that a
//! former owner that comes late is refused.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::engine::Millis;

/// A daemon that owns a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Its process.
    pub pid: u32,
    /// When it began.
    pub since: Millis,
    /// The machine that it runs on.
    pub host: String,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} on {}", self.pid, self.host)
    }
}

/// The right to append to a session. Clones are the same lease.
#[derive(Clone, Debug)]
pub struct Lease(Arc<Held>);

#[derive(Debug)]
struct Held {
    session: String,
    fence: u64,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    lost: Lost,
    /// Rises whenever what was lost is made good.
    epoch: u64,
}

/// What of a session's lines is missing in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lost {
    /// Nothing.
    Nothing,
    /// Lines that nobody waits for found the queue full.
    Behind,
    /// Lines could not be written, and none of those behind them were.
    Failed,
}

impl Lease {
    pub(super) fn new(session: &str, fence: u64) -> Self {
        let session = session.to_owned();
        let state = Mutex::new(State { lost: Lost::Nothing, epoch: 0 });
        Self(Arc::new(Held { session, fence, state }))
    }

    /// The session.
    pub fn session(&self) -> &str {
        &self.0.session
    }

    /// The fencing number.
    pub fn fence(&self) -> u64 {
        self.0.fence
    }

    /// What is missing in the store.
    pub fn lost(&self) -> Lost {
        self.0.state.lock().lost
    }

    /// What was missing is made good by a snapshot that is handed over next. It must hold nothing
    /// of what was lost, and nothing whose fate is open.
    pub fn make_good(&self) {
        let mut state = self.0.state.lock();
        state.lost = Lost::Nothing;
        state.epoch += 1;
    }

    /// Which lines belong together: one that is lost takes those of its epoch behind it along.
    pub(super) fn epoch(&self) -> u64 {
        self.0.state.lock().epoch
    }

    /// Lines of an epoch were lost.
    pub(super) fn lose(&self, epoch: u64, lost: Lost) {
        let mut state = self.0.state.lock();
        if state.epoch == epoch {
            state.lost = state.lost.max(lost);
        }
    }
}
