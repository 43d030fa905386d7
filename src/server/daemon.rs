//! The daemon: its sessions, each behind a mutex of its own, and what they are given. Sessions
//! belong to the daemon, not to a connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use parking_lot::{Mutex, MutexGuard};
use reminderd_protocol::error::{ErrorKind, ErrorObject};
use reminderd_protocol::methods::Method;

use super::checks::Checks;
use super::handlers;
use super::session_files::{Editors, SessionFiles};
use super::surroundings::Surroundings;
use tokio::task::AbortHandle;

use super::{Application, Connection, InitializeRequest, Outcome};
use crate::engine::{Kit, Millis, Session};
use crate::files::{self, Files};
use crate::reminders::Catalogue;

/// Everything that connections share.
#[derive(Debug)]
pub struct Daemon {
    surroundings: Surroundings,
    sessions: DashMap<String, Arc<Slot>>,
    /// The same sessions by the tag at the end of their tokens.
    by_tag: DashMap<u64, Arc<Slot>>,
    checks: Checks,
    files: Arc<Files>,
    editors: Editors,
    /// Connections that want live hints of changed files, by their numbers.
    listening: DashMap<u64, AbortHandle>,
}

/// A session's place in the daemon.
#[derive(Debug)]
pub struct Slot {
    session: Mutex<Session>,
    files: SessionFiles,
    /// Ends the session's tokens.
    tag: u64,
    last_active: AtomicU64,
}

impl Slot {
    /// The session, to be let go before anything is awaited.
    pub fn lock(&self) -> MutexGuard<'_, Session> {
        self.session.lock()
    }

    /// What it read and wrote.
    pub fn files(&self) -> &SessionFiles {
        &self.files
    }

    /// Ends the session's tokens.
    pub fn tag(&self) -> u64 {
        self.tag
    }

    /// When a message last named the session.
    pub fn last_active(&self) -> Millis {
        self.last_active.load(Ordering::Relaxed)
    }
}

impl Daemon {
    /// A daemon without sessions.
    pub fn new(surroundings: Surroundings) -> Self {
        Self {
            surroundings,
            sessions: DashMap::new(),
            by_tag: DashMap::new(),
            checks: Checks::default(),
            files: Files::new(files::Options::default()),
            editors: Editors::default(),
            listening: DashMap::new(),
        }
    }

    /// The time and the randomness.
    pub fn surroundings(&self) -> &Surroundings {
        &self.surroundings
    }

    /// What checkers say.
    pub fn checks(&self) -> &Checks {
        &self.checks
    }

    /// The files of all sessions.
    pub fn files(&self) -> &Arc<Files> {
        &self.files
    }

    /// What the person does in editors.
    pub fn editors(&self) -> &Editors {
        &self.editors
    }

    /// The time.
    pub fn now(&self) -> Millis {
        self.surroundings.now()
    }

    /// An open session, named by a message of this time.
    pub fn slot(&self, session: &str, at: Millis) -> Result<Arc<Slot>, ErrorObject> {
        let slot = self.sessions.get(session).map(|slot| Arc::clone(&slot));
        let slot = slot.ok_or_else(|| {
            let name = crate::engine::short_name(session, 100);
            ErrorObject::new(
                ErrorKind::UnknownSession,
                format!("session {name:?} is not open: send session/open first"),
            )
        })?;
        slot.last_active.store(at, Ordering::Relaxed);
        Ok(slot)
    }

    /// The session of a token.
    pub fn slot_of_token(&self, token: &str) -> Option<Arc<Slot>> {
        let (_, tag) = token.rsplit_once('.')?;
        let tag = u64::from_str_radix(tag, 16).ok()?;
        self.by_tag.get(&tag).map(|slot| Arc::clone(&slot))
    }

    /// Opens a session: makes it where it is not there. Says whether it was made.
    pub fn open<T>(
        &self,
        session: &str,
        at: Millis,
        with: impl FnOnce(&mut Session) -> Result<T, ErrorObject>,
    ) -> Result<(T, bool), ErrorObject> {
        match self.sessions.entry(session.to_owned()) {
            Entry::Occupied(known) => {
                let slot = Arc::clone(known.get());
                drop(known);
                slot.last_active.store(at, Ordering::Relaxed);
                let opened = with(&mut slot.lock())?;
                Ok((opened, false))
            }
            Entry::Vacant(place) => {
                // A session that could not be opened is not there.
                let mut made = Session::new(kit(), session);
                let opened = with(&mut made)?;
                let slot = Arc::new(Slot {
                    session: Mutex::new(made),
                    files: SessionFiles::new(&self.files, session),
                    tag: tag(session),
                    last_active: AtomicU64::new(at),
                });
                self.by_tag.insert(slot.tag, Arc::clone(&slot));
                place.insert(slot);
                Ok((opened, true))
            }
        }
    }

    /// Takes in a session that was made elsewhere, where none of its name is there.
    pub fn adopt(&self, made: Session) -> Result<(), ErrorObject> {
        let name = made.id().to_owned();
        match self.sessions.entry(name.clone()) {
            Entry::Occupied(_) => Err(ErrorObject::new(
                ErrorKind::InvalidParams,
                format!("session {name:?} is there already: fork into another name"),
            )),
            Entry::Vacant(place) => {
                let slot = Arc::new(Slot {
                    files: SessionFiles::new(&self.files, &name),
                    tag: tag(&name),
                    session: Mutex::new(made),
                    last_active: AtomicU64::new(self.now()),
                });
                self.by_tag.insert(slot.tag, Arc::clone(&slot));
                place.insert(slot);
                Ok(())
            }
        }
    }

    /// Closes a session: its tokens are gone with it.
    pub fn close(&self, session: &str, at: Millis) -> Result<(), ErrorObject> {
        let slot = self.slot(session, at)?;
        self.sessions.remove(session);
        self.by_tag.remove(&slot.tag);
        // A WAIT that is being prepared still holds the slot: it finds itself overtaken.
        slot.lock().close();
        self.checks.end_session(session);
        Ok(())
    }

    /// The sessions, by name.
    pub fn slots(&self) -> Vec<Arc<Slot>> {
        let mut slots: Vec<_> = self
            .sessions
            .iter()
            .map(|slot| (slot.key().clone(), Arc::clone(slot.value())))
            .collect();
        slots.sort_by(|(one, _), (two, _)| one.cmp(two));
        slots.into_iter().map(|(_, slot)| slot).collect()
    }
}

/// What sessions are given.
fn kit() -> Kit {
    Kit { registry: &Catalogue, digest }
}

/// `blake3:` and the hash in hexadecimal, as records carry it.
pub fn digest(bytes: &[u8]) -> String {
    format!("blake3:{}", blake3::hash(bytes).to_hex())
}

/// The first eight bytes of the hash of a session's name: the same in every daemon.
fn tag(session: &str) -> u64 {
    let hash = blake3::hash(session.as_bytes());
    let first = hash.as_bytes().first_chunk().expect("a hash has 32 bytes");
    u64::from_be_bytes(*first)
}

/// A daemon behind a connection.
#[derive(Debug)]
pub struct Served(pub Arc<Daemon>);

impl Application for Served {
    fn initialize(
        &self,
        connection: &Arc<Connection>,
        request: InitializeRequest,
    ) -> Result<serde_json::Value, ErrorObject> {
        let answer = handlers::initialize(&request)?;
        if request.options["fileChanged"] == true {
            let listener = handlers::tell_changes(&self.0, connection);
            self.0.listening.insert(connection.id(), tokio::spawn(listener).abort_handle());
        }
        Ok(answer)
    }

    fn call(&self, connection: &Arc<Connection>, method: &'static Method, params: &str) -> Outcome {
        let at = self.0.now();
        handlers::call(&handlers::Call { daemon: &self.0, connection, method, params, at })
    }

    fn closed(&self, connection: &Arc<Connection>) {
        if let Some((_, listener)) = self.0.listening.remove(&connection.id()) {
            listener.abort();
        }
        for slot in self.0.slots() {
            slot.lock().disconnect(connection.id());
        }
        self.0.checks.disconnect(connection.id());
    }
}
