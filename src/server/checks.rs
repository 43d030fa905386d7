//! What checkers say, for all sessions: the bookkeeper of diagnostics behind a lock of its own, and
//! those who wait for word. Taken after a session's lock, never before it.

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::surroundings::Surroundings;
use crate::diagnostics::{Bookkeeper, EditedFile, Outcome, Owner, Settling};
use crate::engine::{Findings, Found, Millis, Scope, ScopePath, Session, Wanted};

/// The bookkeeper and its bell.
#[derive(Debug, Default)]
pub struct Checks {
    bookkeeper: Mutex<Bookkeeper>,
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

    /// What a WAIT of the scope has to say of diagnostics, as things stand.
    pub fn prepared(&self, session: &Session, scope: &ScopePath) -> Findings {
        let Ok(known) = session.scope(scope) else { return Findings::new() };
        let diagnosis = self.with(|it| it.diagnosis(&owner(session, scope), &known.facts.checked));
        let found = diagnosis.map(|diagnosis| (Wanted::DIAGNOSTICS, Found::Diagnosis(diagnosis)));
        found.into_iter().collect()
    }

    /// The files that a scope edited in its turn.
    pub fn edited_files(&self, session: &Session, scope: &Scope) -> Vec<EditedFile> {
        let owner = owner(session, &scope.path);
        self.with(|it| it.edited_files(&owner, &scope.facts.checked))
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
