//! What checkers say, for all sessions: the bookkeeper of diagnostics behind a lock of its own, and
//! those who wait for word. Taken after a session's lock, never before it.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::looks::{Excerpt, Look};
use super::surroundings::Surroundings;
use crate::diagnostics::{Bookkeeper, EditedFile, Outcome, Owner, Settling};
use crate::engine::{Checked, Findings, Found, Millis, Scope, ScopePath, Session, Wanted};

/// The bookkeeper and its bell.
#[derive(Debug, Default)]
pub struct Checks {
    bookkeeper: Mutex<Bookkeeper>,
    /// Looks at the disk that are under way, by their numbers. Taken after the bookkeeper, never before
    /// it.
    pub(super) looks: Mutex<BTreeMap<u64, Look>>,
    /// Rung when something changed that an `edit/settle` may wait for.
    bell: Notify,
}

/// The scope of a session, as the bookkeeper knows it.
pub fn owner(session: &Session, scope: &ScopePath) -> Owner {
    Owner { session: session.id().to_owned(), scope: scope.clone() }
}

impl Checks {
    /// Asks the bookkeeper, or tells it something that nobody waits for.
    pub fn with<T>(&self, act: impl FnOnce(&mut Bookkeeper) -> T) -> T {
        act(&mut self.bookkeeper.lock())
    }

    /// Something changed that an `edit/settle` may wait for.
    pub fn ring(&self) {
        self.bell.notify_waiters();
    }

    /// The scope's turn is over.
    pub fn end_turn(&self, session: &Session, scope: &ScopePath) {
        if self.with(|it| it.end_turn(&owner(session, scope))) {
            self.ring();
        }
    }

    /// A session is closed.
    pub fn end_session(&self, session: &str) {
        if self.with(|it| it.end_session(session)) {
            self.ring();
        }
    }

    /// A connection is gone.
    pub fn disconnect(&self, connection: u64) {
        if self.with(|it| it.disconnect(connection)) {
            self.ring();
        }
    }

    /// What a WAIT of the scope has to say of diagnostics, as things stand; or that it is pending, with
    /// what it will be worked out from.
    pub fn prepared(&self, session: &Session, scope: &ScopePath) -> (Findings, Option<Excerpt>) {
        let Ok(known) = session.scope(scope) else { return (Findings::new(), None) };
        let (owner, told) = (owner(session, scope), &known.facts.checked);
        let (found, excerpt) = match self.excerpt(&owner, told) {
            Some(excerpt) => (Some(Found::Pending), Some(excerpt)),
            None => (self.with(|it| it.diagnosis(&owner, told)).map(Found::Diagnosis), None),
        };
        (found.into_iter().map(|found| (Wanted::DIAGNOSTICS, found)).collect(), excerpt)
    }

    /// The files that a scope edited in its turn; or what that will be worked out from.
    pub fn edited_files(
        &self,
        session: &Session,
        scope: &Scope,
    ) -> Result<Vec<EditedFile>, Box<Excerpt>> {
        let (owner, told) = (owner(session, &scope.path), &scope.facts.checked);
        match self.excerpt(&owner, told) {
            Some(excerpt) => Err(Box::new(excerpt)),
            None => Ok(self.with(|it| it.edited_files(&owner, told))),
        }
    }

    fn excerpt(&self, owner: &Owner, told: &Checked) -> Option<Excerpt> {
        // A look ends in the bookkeeper first, so that each that is under way there is found here.
        let bookkeeper = self.bookkeeper.lock();
        let (books, numbers) = bookkeeper.excerpt(owner)?;
        let looks = self.looks.lock();
        let looks = numbers.iter().filter_map(|number| looks.get(number).cloned());
        Some(Excerpt::new(owner.clone(), told.clone(), books, looks.collect()))
    }

    /// Waits until the checkers of all files have reported, or the time is up.
    pub async fn settled(
        &self,
        surroundings: &Surroundings,
        mut settling: Settling,
    ) -> Vec<(String, Outcome)> {
        let mut now = surroundings.now();
        loop {
            // Listening begins before looking, so that no word is lost between.
            let mut rings = std::pin::pin!(self.bell.notified());
            rings.as_mut().enable();
            let next = match self.with(|it| it.settled(now, &mut settling)) {
                Ok(outcomes) => return outcomes,
                Err(next) => next,
            };
            tokio::select! {
                () = rings => now = now.max(surroundings.now()),
                () = surroundings.reach(next) => now = now.max(next),
            }
        }
    }

    /// What is known of these files' checkers without waiting.
    pub fn settled_now(
        &self,
        now: Millis,
        settling: &mut Settling,
    ) -> Option<Vec<(String, Outcome)>> {
        self.with(|it| it.settled(now, settling)).ok()
    }
}
