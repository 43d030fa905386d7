//! A store that cannot be used: it says why, whatever is asked.

use std::time::Duration;

use super::{Appended, Lease, Listed, Loaded, Store, StoreError, Ticket, When};
use crate::engine::{Line, Millis};

/// A store that is newer than this build, read-only, or damaged beyond opening.
#[derive(Debug)]
pub struct Unusable(StoreError);

impl Unusable {
    /// A store that cannot be used, and why.
    pub fn new(why: String) -> Self {
        Self(StoreError::Unusable(why))
    }

    fn refused(&self) -> Ticket {
        Ticket::settled(Err(self.0.clone()))
    }
}

impl Store for Unusable {
    fn outlives_process(&self) -> bool {
        true
    }

    fn load(&self, _: &str) -> Result<Loaded, StoreError> {
        Err(self.0.clone())
    }

    fn list(&self) -> Result<Vec<Listed>, StoreError> {
        Err(self.0.clone())
    }

    fn acquire(&self, session: &str, _: u64, _: Option<&str>, _: &[Line]) -> (Lease, Appended) {
        (Lease::new(session, 0), Appended { ticket: self.refused(), bytes: 0 })
    }

    fn append(&self, _: &Lease, _: &[Line], _: When) -> Appended {
        Appended { ticket: self.refused(), bytes: 0 }
    }

    fn release(&self, _: &Lease, _: Millis) -> Ticket {
        self.refused()
    }

    fn forget(&self, _: &str) -> Ticket {
        self.refused()
    }

    fn flush(&self) -> Ticket {
        self.refused()
    }

    fn trouble(&self) -> Option<StoreError> {
        Some(self.0.clone())
    }

    fn close(&self, _: Duration) {}
}
