//! Sessions in memory (`--ephemeral`): gone with the process.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use parking_lot::Mutex;

use super::{Appended, Lease, Listed, Loaded, Store, StoreError, Ticket, When};
use crate::engine::{Line, Millis};

/// Closed sessions that are kept at most: those that were quiet longest go first.
pub(super) const CLOSED_MAX: usize = 1_000;
/// How many bytes they may be together, as JSON; the one that was closed last stays in any case.
pub(super) const CLOSED_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Keeps sessions in memory: the open ones whatever they take up, and of those that were closed 1,000
/// and 64 MiB at most.
#[derive(Debug, Default)]
pub struct MemoryStore {
    sessions: Mutex<Sessions>,
}

#[derive(Debug, Default)]
struct Sessions {
    by_name: BTreeMap<String, Ledger>,
    /// The closed ones, by when they were last used, with their bytes.
    closed: BTreeSet<(Millis, String, usize)>,
    closed_bytes: usize,
}

#[derive(Debug, Default)]
struct Ledger {
    lines: Vec<Line>,
    root: Option<String>,
    fence: u64,
    is_held: bool,
    active: Millis,
    /// How many bytes its lines were when it was closed.
    closed_bytes: usize,
}

impl Ledger {
    fn append(&mut self, lines: &[Line]) {
        for line in lines {
            if let Line::Snapshot(_) = line {
                self.lines.clear();
            }
            self.active = line.at().unwrap_or(self.active);
            self.lines.push(line.clone());
        }
    }

    fn bytes(&self) -> usize {
        // Lines are plain data: there is nothing in them that has no text.
        let texts = self.lines.iter().map(|line| serde_json::to_string(line).unwrap_or_default());
        texts.map(|text| text.len()).sum()
    }
}

impl Sessions {
    fn closed(&mut self, session: &str) {
        let Some(ledger) = self.by_name.get_mut(session) else { return };
        ledger.is_held = false;
        ledger.closed_bytes = ledger.bytes();
        self.closed_bytes += ledger.closed_bytes;
        self.closed.insert((ledger.active, session.to_owned(), ledger.closed_bytes));
        while self.closed.len() > CLOSED_MAX
            || (self.closed_bytes > CLOSED_BYTES_MAX && self.closed.len() > 1)
        {
            let Some((_, quietest, bytes)) = self.closed.pop_first() else { return };
            self.closed_bytes -= bytes;
            self.by_name.remove(&quietest);
        }
    }

    /// The session is closed no more: it was opened again, or is about to be forgotten.
    fn no_longer_closed(&mut self, session: &str) {
        let Some(ledger) = self.by_name.get(session) else { return };
        if self.closed.remove(&(ledger.active, session.to_owned(), ledger.closed_bytes)) {
            self.closed_bytes -= ledger.closed_bytes;
        }
    }
}

impl Store for MemoryStore {
    fn outlives_process(&self) -> bool {
        false
    }

    fn load(&self, session: &str) -> Result<Loaded, StoreError> {
        let sessions = self.sessions.lock();
        let Some(ledger) = sessions.by_name.get(session) else { return Ok(Loaded::default()) };
        Ok(Loaded { lines: ledger.lines.clone(), fence: ledger.fence, ..Loaded::default() })
    }

    fn list(&self) -> Result<Vec<Listed>, StoreError> {
        let sessions = self.sessions.lock();
        let stored = sessions.by_name.iter().filter(|(_, ledger)| !ledger.lines.is_empty());
        let listed = stored.map(|(session, ledger)| Listed {
            session: session.clone(),
            root: ledger.root.clone(),
            active: ledger.active,
        });
        Ok(listed.collect())
    }

    fn acquire(
        &self,
        session: &str,
        fence: u64,
        root: Option<&str>,
        lines: &[Line],
    ) -> (Lease, Appended) {
        let mut sessions = self.sessions.lock();
        let lease = Lease::new(session, fence + 1);
        let stands_at = sessions.by_name.get(session).map_or(0, |ledger| ledger.fence);
        if stands_at != fence {
            let ticket = Ticket::settled(Err(StoreError::Held(None)));
            return (lease, Appended { ticket, bytes: 0 });
        }
        sessions.no_longer_closed(session);
        let ledger = sessions.by_name.entry(session.to_owned()).or_default();
        (ledger.fence, ledger.is_held) = (fence + 1, true);
        ledger.root = root.map(str::to_owned);
        ledger.append(lines);
        (lease, Appended { ticket: Ticket::settled(Ok(())), bytes: 0 })
    }

    fn append(&self, lease: &Lease, lines: &[Line], _: When) -> Appended {
        let mut sessions = self.sessions.lock();
        let owned = sessions.by_name.get_mut(lease.session());
        let owned = owned.filter(|ledger| ledger.is_held && ledger.fence == lease.fence());
        let outcome = match owned {
            Some(ledger) => {
                ledger.append(lines);
                Ok(())
            }
            None => Err(StoreError::Held(None)),
        };
        Appended { ticket: Ticket::settled(outcome), bytes: 0 }
    }

    fn release(&self, lease: &Lease, active: Millis) -> Ticket {
        let mut sessions = self.sessions.lock();
        let owned = sessions.by_name.get_mut(lease.session());
        if let Some(ledger) = owned.filter(|it| it.is_held && it.fence == lease.fence()) {
            ledger.active = ledger.active.max(active);
            sessions.closed(lease.session());
        }
        Ticket::settled(Ok(()))
    }

    fn forget(&self, session: &str) -> Ticket {
        let mut sessions = self.sessions.lock();
        sessions.no_longer_closed(session);
        sessions.by_name.remove(session);
        Ticket::settled(Ok(()))
    }

    fn flush(&self) -> Ticket {
        Ticket::settled(Ok(()))
    }

    fn trouble(&self) -> Option<StoreError> {
        None
    }

    fn close(&self, _: Duration) {}
}
