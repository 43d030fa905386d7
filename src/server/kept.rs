//! A session in memory and what the store has of it. A commit takes effect when it arrives and is
//! answered when the store has kept it; one that the store lost is undone. Everything else is
//! written behind; what the store lost of that is made good by a snapshot once it can write again.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::engine::{Millis, Session};
use crate::store::{Lease, Lost, Store, StoreError, Ticket, When};

/// Lines are never made a snapshot of before they are this many bytes.
const SNAPSHOT_BYTES_MIN: usize = 64 * 1024;
/// How often a store that fails is given what it lost, when nobody waits for that.
const MAKE_GOOD_SPACING: Duration = Duration::from_secs(1);

/// A session, its lease, and what is on its way to the store.
#[derive(Debug)]
pub struct Kept {
    session: Session,
    store: Arc<dyn Store>,
    lease: Lease,
    /// Commits whose lines are on their way, oldest first.
    under_way: Vec<(String, Ticket)>,
    /// Bytes since the last snapshot, and how large that was.
    since_snapshot: usize,
    snapshot: usize,
    made_good: Option<Instant>,
    /// Whether the client was told that the store fails.
    said: bool,
    /// Whether the session was let go.
    is_over: bool,
}

impl Deref for Kept {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.session
    }
}

impl DerefMut for Kept {
    fn deref_mut(&mut self) -> &mut Session {
        &mut self.session
    }
}

impl Kept {
    /// A session that the store has, or is about to have, as a snapshot of so many bytes and so many
    /// bytes of lines behind it.
    pub fn new(
        session: Session,
        store: Arc<dyn Store>,
        lease: Lease,
        snapshot: usize,
        since_snapshot: usize,
    ) -> Self {
        Self {
            session,
            store,
            lease,
            under_way: Vec::new(),
            since_snapshot,
            snapshot,
            made_good: None,
            said: false,
            is_over: false,
        }
    }

    /// The session's lease.
    pub fn lease(&self) -> &Lease {
        &self.lease
    }

    /// Whether the session was let go: nothing that happens to it any more is kept.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Takes note of what the store did with earlier commits, and hands over again what it lost: at
    /// once when somebody is about to wait for it.
    pub fn catch_up(&mut self, when: When) {
        let lost = self.lease.lost();
        let mut still_under_way = Vec::new();
        // Several are undone in the opposite order of their commits.
        for (token, ticket) in std::mem::take(&mut self.under_way).into_iter().rev() {
            match ticket.outcome() {
                Some(Ok(())) => self.session.confirm(&token),
                Some(Err(_)) => drop(self.session.undo(&token)),
                None if lost == Lost::Failed => drop(self.session.undo(&token)),
                None => still_under_way.push((token, ticket)),
            }
        }
        still_under_way.reverse();
        self.under_way = still_under_way;
        let is_time = match (when, self.made_good) {
            (When::Behind, Some(before)) => before.elapsed() >= MAKE_GOOD_SPACING,
            _ => true,
        };
        // A snapshot must not hold a commit that may yet be lost.
        if lost != Lost::Nothing && is_time && self.under_way.is_empty() {
            self.made_good = Some(Instant::now());
            self.lease.make_good();
            self.take_snapshot(when);
        }
    }

    /// Hands over what happened, for nobody who waits.
    pub fn keep(&mut self) {
        let lines = self.session.take_lines();
        // A snapshot will hold what follows lost lines.
        if lines.is_empty() || !self.is_durable() || self.lease.lost() != Lost::Nothing {
            return;
        }
        let appended = self.store.append(&self.lease, &lines, When::Behind);
        self.grow(appended.bytes);
    }

    /// Hands over a commit that was just applied. The ticket, where there is one, tells when it is
    /// durable; an error that it was undone. One that told nothing need not wait for the disk: a machine
    /// that fails just then forgets that a request went out, and nothing that anybody heard.
    pub fn keep_commit(&mut self, token: &str, tells: bool) -> Result<Option<Ticket>, StoreError> {
        let lines = self.session.take_lines();
        if !self.is_durable() {
            self.session.confirm(token);
            return Ok(None);
        }
        if self.lease.lost() != Lost::Nothing {
            self.session.undo(token);
            let trouble = self.store.trouble();
            return Err(trouble.unwrap_or_else(|| {
                StoreError::Failed("what came before it is still being written".to_owned())
            }));
        }
        let when = if tells { When::Now } else { When::Written };
        let appended = self.store.append(&self.lease, &lines, when);
        self.under_way.push((token.to_owned(), appended.ticket.clone()));
        self.grow(appended.bytes);
        Ok(Some(appended.ticket))
    }

    /// The ticket of a commit that is on its way.
    pub fn under_way(&self, token: &str) -> Option<Ticket> {
        let found = self.under_way.iter().find(|(other, _)| other == token);
        found.map(|(_, ticket)| ticket.clone())
    }

    /// Tells when everything so far is durable; `None` where nothing ever is.
    pub fn flush(&self) -> Option<Ticket> {
        self.is_durable().then(|| self.store.flush())
    }

    /// What keeps the store from writing, where the client was not told yet.
    pub fn news_of_trouble(&mut self) -> Option<StoreError> {
        let trouble = self.store.trouble();
        let is_news = trouble.is_some() && !self.said;
        self.said = trouble.is_some();
        trouble.filter(|_| is_news)
    }

    /// The session is over here: the store keeps it as it is, and another daemon may take it.
    /// Answers when that is so.
    pub fn let_go(&mut self, at: Millis) -> Vec<Ticket> {
        self.catch_up(When::Now);
        self.end();
        drop(self.session.take_lines());
        let kept = self.store.append(&self.lease, &[self.session.snapshot()], When::Now);
        vec![kept.ticket, self.store.release(&self.lease, at)]
    }

    /// The session is over here, and nothing of it is kept.
    pub fn end(&mut self) {
        self.is_over = true;
        self.session.close();
    }

    fn is_durable(&self) -> bool {
        self.store.outlives_process()
    }

    fn grow(&mut self, bytes: usize) {
        self.since_snapshot += bytes;
        // Twice the last one: all snapshots together are no more than what they were made of.
        if self.since_snapshot >= SNAPSHOT_BYTES_MIN.max(2 * self.snapshot) {
            self.take_snapshot(When::Behind);
        }
    }

    fn take_snapshot(&mut self, when: When) {
        drop(self.session.take_lines());
        let appended = self.store.append(&self.lease, &[self.session.snapshot()], when);
        self.snapshot = appended.bytes;
        self.since_snapshot = 0;
    }
}
