//! The store: each session's lines, in order, and who may append to them.
//!
//! A session is what replaying its lines yields, so a store knows nothing of what they mean. Every
//! store does what the tests of this module ask; `sqlite` outlives the process, `memory` does
//! not. A store that cannot be used is one too ([`Unusable`]): the daemon starts all the same, and
//! says why at `session/open`.

mod archive;
mod lease;
mod memory;
mod migrations;
mod place;
mod sqlite;
mod ticket;
mod unusable;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

pub use archive::{Archive, Archived, Told};
pub use lease::{Holder, Lease, Lost};
pub use memory::MemoryStore;
pub use place::{default_directory, prepare};
pub use sqlite::{DAMAGED, FILE, Options, SqliteStore};
pub use ticket::Ticket;
pub use unusable::Unusable;

use crate::engine::{Line, Millis};

/// How long lines that nobody waits for stay in memory before they are written.
pub const WRITE_BEHIND: Duration = Duration::from_millis(50);

/// Why something could not be kept or read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The store cannot be used at all: it is newer than this build, read-only, damaged…
    #[error("{0}")]
    Unusable(String),
    /// Something went wrong just now: the disk is full, another process holds the lock…
    #[error("{0}")]
    Failed(String),
    /// Another daemon owns the session.
    #[error("another daemon owns it{}", .0.as_ref().map(|it| format!(": {it}")).unwrap_or_default())]
    Held(Option<Holder>),
}

/// What is stored of a session, as far as a replay needs it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Loaded {
    /// Its lines, from the last snapshot on; empty when nothing is stored.
    pub lines: Vec<Line>,
    /// How many bytes they are.
    pub bytes: usize,
    /// How many of those are the snapshot that they begin with.
    pub snapshot_bytes: usize,
    /// The fencing number of the last lease; 0 when there was none.
    pub fence: u64,
}

/// A stored session, in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its name.
    pub session: String,
    /// Its root directory.
    pub root: Option<String>,
    /// When a line was last appended.
    pub active: Millis,
}

/// When lines have to be durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// As soon as possible: somebody waits.
    Now,
    /// Where they outlive this process as soon as possible, since somebody waits for that; on the disk
    /// itself with the next that is.
    Written,
    /// With the next that somebody waits for, or after [`WRITE_BEHIND`].
    Behind,
}

/// Lines that were handed over.
#[derive(Debug)]
pub struct Appended {
    /// Tells when they are durable, or written where no more was asked for.
    pub ticket: Ticket,
    /// How many bytes they are.
    pub bytes: usize,
}

/// Keeps sessions. Calls that change something return at once; a [`Ticket`] tells what became of
/// them. What one thread asks for happens in the order in which it asks.
pub trait Store: fmt::Debug + Send + Sync {
    /// Whether what it keeps outlives the process.
    fn outlives_process(&self) -> bool;

    /// The directory that it writes to, where it does: nobody else is to look into it.
    fn directory(&self) -> Option<PathBuf> {
        None
    }

    /// Reads what is stored of a session that no other daemon owns.
    fn load(&self, session: &str) -> Result<Loaded, StoreError>;

    /// The stored sessions that hold any line, by name.
    fn list(&self) -> Result<Vec<Listed>, StoreError>;

    /// Takes the lease of a session, which has to stand where [`Store::load`] found it, and appends
    /// its first lines. `root` is what lists show.
    fn acquire(
        &self,
        session: &str,
        fence: u64,
        root: Option<&str>,
        lines: &[Line],
    ) -> (Lease, Appended);

    /// Appends lines. A [`Line::Snapshot`] stands for all before it, which may then go. Lines that
    /// find the queue full are lost, and so are those behind lines that could not be written:
    /// [`Lease::lost`] says so, and [`Lease::make_good`] and a snapshot mend it.
    fn append(&self, lease: &Lease, lines: &[Line], when: When) -> Appended;

    /// Gives the lease back: another daemon may take it. `active` is when the session was last used.
    fn release(&self, lease: &Lease, active: Millis) -> Ticket;

    /// Erases everything that is stored of a session. Nothing of it is readable in any file when
    /// the ticket says so.
    fn forget(&self, session: &str) -> Ticket;

    /// Tells when everything handed over so far is durable.
    fn flush(&self) -> Ticket;

    /// What keeps the store from writing at present.
    fn trouble(&self) -> Option<StoreError>;

    /// Writes what is left, gives all leases back, and ends. Waits at most this long.
    fn close(&self, patience: Duration);
}

#[cfg(test)]
mod tests;
