//! Sessions in memory (`--ephemeral`): gone with the process.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;

use super::{Appended, Lease, Listed, Loaded, Store, StoreError, Ticket, When};
use crate::engine::{Line, Millis};

/// Keeps sessions in memory.
#[derive(Debug, Default)]
pub struct MemoryStore {
    sessions: Mutex<BTreeMap<String, Ledger>>,
}

#[derive(Debug, Default)]
struct Ledger {
    lines: Vec<Line>,
    root: Option<String>,
    fence: u64,
    is_held: bool,
    active: Millis,
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
}

impl Store for MemoryStore {
    fn outlives_process(&self) -> bool {
        false
    }

    fn load(&self, session: &str) -> Result<Loaded, StoreError> {
        let sessions = self.sessions.lock();
        let Some(ledger) = sessions.get(session) else { return Ok(Loaded::default()) };
        Ok(Loaded { lines: ledger.lines.clone(), bytes: 0, fence: ledger.fence })
    }

    fn list(&self) -> Result<Vec<Listed>, StoreError> {
        let sessions = self.sessions.lock();
        let stored = sessions.iter().filter(|(_, ledger)| !ledger.lines.is_empty());
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
        let ledger = sessions.entry(session.to_owned()).or_default();
        let lease = Lease::new(session, fence + 1);
        if ledger.fence != fence {
            let ticket = Ticket::settled(Err(StoreError::Held(None)));
            return (lease, Appended { ticket, bytes: 0 });
        }
        (ledger.fence, ledger.is_held) = (fence + 1, true);
        ledger.root = root.map(str::to_owned);
        ledger.append(lines);
        (lease, Appended { ticket: Ticket::settled(Ok(())), bytes: 0 })
    }

    fn append(&self, lease: &Lease, lines: &[Line], _: When) -> Appended {
        let mut sessions = self.sessions.lock();
        let owned = sessions.get_mut(lease.session());
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
        if let Some(ledger) = sessions.get_mut(lease.session())
            && ledger.fence == lease.fence()
        {
            ledger.is_held = false;
            ledger.active = ledger.active.max(active);
        }
        Ticket::settled(Ok(()))
    }

    fn forget(&self, session: &str) -> Ticket {
        self.sessions.lock().remove(session);
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
