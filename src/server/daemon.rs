//! The daemon: its sessions, each behind a mutex of its own, and what they are given. Sessions
//! belong to the daemon, not to a connection.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use dashmap::DashMap;
use dashmap::mapref::entry::{Entry, VacantEntry};
use parking_lot::{Mutex, MutexGuard};
use reminderd_protocol::error::{ErrorKind, ErrorObject};
use reminderd_protocol::methods::Method;

use super::checks::Checks;
use super::configured::{ConfigurationFiles, Configured, LOOK_EVERY, Trouble, Versions};
use super::convert;
use super::handlers;
use super::kept::Kept;
use super::session_files::{Editors, SessionFiles};
use super::surroundings::Surroundings;
use tokio::task::AbortHandle;

use super::{Application, Connection, InitializeRequest, Limits, Outcome, Peer};
use crate::engine::{Event, Kit, Millis, ScopePath, Session, Value};
use crate::files::{self, Files};
use crate::reminders::Catalogue;
use crate::store::{Lease, Loaded, Store, Ticket, When};

/// Everything that connections share.
#[derive(Debug)]
pub struct Daemon {
    surroundings: Surroundings,
    store: Arc<dyn Store>,
    sessions: DashMap<String, Arc<Slot>>,
    /// The same sessions by the tag at the end of their tokens.
    by_tag: DashMap<u64, Arc<Slot>>,
    checks: Checks,
    configuration: ConfigurationFiles,
    limits: Limits,
    /// The clients, by the numbers of their connections.
    peers: DashMap<u64, Peer>,
    files: Arc<Files>,
    editors: Editors,
    /// Connections that want live hints of changed files, by their numbers.
    listening: DashMap<u64, AbortHandle>,
    /// Whether a newer daemon takes over: sessions that no connection uses are let go.
    leaves: AtomicBool,
}

/// A session's place in the daemon.
#[derive(Debug)]
pub struct Slot {
    session: Mutex<Kept>,
    files: SessionFiles,
    /// Tells whether the lease is ours and the first lines are durable.
    taken: Ticket,
    /// The connections that opened it.
    users: Mutex<BTreeSet<u64>>,
    /// The state of the configuration files that it has taken over.
    configured: Mutex<Versions>,
    /// Ends the session's tokens.
    tag: u64,
    last_active: AtomicU64,
}

impl Slot {
    /// The session, to be let go before anything is awaited. Nothing else of the daemon's is locked
    /// meanwhile but what checkers say.
    pub fn lock(&self) -> MutexGuard<'_, Kept> {
        self.session.lock()
    }

    /// The session, unless another connection closed it since it was found.
    pub fn live(&self) -> Result<MutexGuard<'_, Kept>, ErrorObject> {
        let session = self.session.lock();
        if session.is_over() { Err(not_open(session.id())) } else { Ok(session) }
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
    pub fn new(surroundings: Surroundings, store: Arc<dyn Store>) -> Self {
        Self {
            surroundings,
            store,
            sessions: DashMap::new(),
            by_tag: DashMap::new(),
            checks: Checks::default(),
            configuration: ConfigurationFiles::default(),
            limits: Limits::default(),
            peers: DashMap::new(),
            files: Files::new(files::Options::default()),
            editors: Editors::default(),
            listening: DashMap::new(),
            leaves: AtomicBool::new(false),
        }
    }

    /// The same daemon, reading these configuration files.
    #[must_use]
    pub fn reading(mut self, configuration: ConfigurationFiles) -> Self {
        self.configuration = configuration;
        self
    }

    /// The same daemon, whose connections have these limits.
    #[must_use]
    pub fn limited(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// What its connections may do.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// The configuration files.
    pub fn configuration(&self) -> &ConfigurationFiles {
        &self.configuration
    }

    /// Where sessions are kept.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
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
        let slot = slot.ok_or_else(|| not_open(session))?;
        slot.last_active.store(at, Ordering::Relaxed);
        Ok(slot)
    }

    /// The session of a token.
    pub fn slot_of_token(&self, token: &str) -> Option<Arc<Slot>> {
        let (_, tag) = token.rsplit_once('.')?;
        let tag = u64::from_str_radix(tag, 16).ok()?;
        self.by_tag.get(&tag).map(|slot| Arc::clone(&slot))
    }

    /// Opens a session for a connection: joins the live one, restores a stored one, or makes it.
    pub fn open<T>(
        &self,
        session: &str,
        connection: u64,
        at: Millis,
        with: impl FnOnce(&mut Session) -> Result<T, ErrorObject>,
    ) -> Result<(T, Life), ErrorObject> {
        loop {
            let place = match self.sessions.entry(session.to_owned()) {
                Entry::Vacant(place) => place,
                Entry::Occupied(known) => {
                    let slot = Arc::clone(known.get());
                    drop(known);
                    let mut kept = slot.lock();
                    if kept.is_over() {
                        // Another connection closed it in this very moment.
                        continue;
                    }
                    slot.last_active.store(at, Ordering::Relaxed);
                    kept.catch_up(When::Behind);
                    let opened = with(&mut kept)?;
                    kept.keep();
                    slot.users.lock().insert(connection);
                    return Ok((opened, Life::Live(slot.taken.clone())));
                }
            };
            let Loaded { lines, bytes, fence } =
                self.store.load(session).map_err(|error| convert::store_error(&error))?;
            let is_stored = !lines.is_empty();
            let mut made = if is_stored {
                Session::restore(kit(), session, lines)
                    .map_err(|refusal| convert::unreadable(session, &refusal))?
            } else {
                Session::new(kit(), session)
            };
            // A session that could not be opened is not there.
            let opened = with(&mut made)?;
            let taken = self.take(place, made, connection, fence, bytes, at);
            let life = if is_stored { Life::Restored(taken) } else { Life::New(taken) };
            return Ok((opened, life));
        }
    }

    /// Takes in a session that was made elsewhere, where none of its name is there or stored.
    pub fn adopt(&self, made: Session, connection: u64, at: Millis) -> Result<Taken, ErrorObject> {
        let name = made.id().to_owned();
        let there = || {
            ErrorObject::new(
                ErrorKind::InvalidParams,
                format!("session {name:?} is there already: fork into another name"),
            )
        };
        let Entry::Vacant(place) = self.sessions.entry(name.clone()) else { return Err(there()) };
        let loaded = self.store.load(&name).map_err(|error| convert::store_error(&error))?;
        if !loaded.lines.is_empty() {
            return Err(there());
        }
        Ok(self.take(place, made, connection, loaded.fence, 0, at))
    }

    /// Puts a session into its place and takes its lease.
    fn take(
        &self,
        place: VacantEntry<'_, String, Arc<Slot>>,
        mut made: Session,
        connection: u64,
        fence: u64,
        replayed: usize,
        at: Millis,
    ) -> Taken {
        // What history held of it needs no undoing.
        let mut lines = made.take_lines();
        if lines.is_empty() {
            lines.push(made.snapshot());
        }
        if !self.store.outlives_process() {
            lines.clear();
        }
        let name = made.id().to_owned();
        let (lease, appended) = self.store.acquire(&name, fence, made.root(), &lines);
        let files = SessionFiles::new(&self.files, &made, self.store.directory());
        let kept =
            Kept::new(made, Arc::clone(&self.store), lease.clone(), replayed + appended.bytes);
        let slot = Arc::new(Slot {
            session: Mutex::new(kept),
            files,
            taken: appended.ticket.clone(),
            users: Mutex::new([connection].into()),
            configured: Mutex::default(),
            tag: tag(&name),
            last_active: AtomicU64::new(at),
        });
        self.by_tag.insert(slot.tag, Arc::clone(&slot));
        place.insert(Arc::clone(&slot));
        Taken { slot, lease, ticket: appended.ticket }
    }

    /// A session whose lease was refused is not there.
    pub fn drop_refused(&self, taken: &Taken) {
        let session = taken.lease.session();
        self.sessions.remove_if(session, |_, slot| Arc::ptr_eq(slot, &taken.slot));
        self.by_tag.remove_if(&taken.slot.tag, |_, slot| Arc::ptr_eq(slot, &taken.slot));
        taken.slot.lock().end();
        self.checks.end_session(session);
        drop(self.store.release(&taken.lease, 0));
    }

    /// Closes a session: its tokens are gone with it. The tickets tell when the store is done.
    pub fn close(&self, session: &str, at: Millis) -> Result<Vec<Ticket>, ErrorObject> {
        self.let_go_if(session, at, |_| true).ok_or_else(|| not_open(session))
    }

    /// Lets go of a session, unless it is not there or not to be.
    fn let_go_if(
        &self,
        session: &str,
        at: Millis,
        is_to_go: impl FnOnce(&Slot) -> bool,
    ) -> Option<Vec<Ticket>> {
        // Its place stays taken meanwhile: who opens it again finds what the store was given.
        let Entry::Occupied(known) = self.sessions.entry(session.to_owned()) else { return None };
        // A WAIT that is being prepared still holds the slot: it finds itself overtaken.
        let mut kept = known.get().lock();
        if !is_to_go(known.get()) {
            return None;
        }
        let tickets = kept.let_go(at);
        drop(kept);
        let slot = known.remove();
        self.by_tag.remove(&slot.tag);
        self.checks.end_session(session);
        Some(tickets)
    }

    /// A newer daemon takes over: every session is let go as soon as no connection is there that
    /// opened it. The tickets tell when the store is done with those that are let go now.
    pub fn leave(&self) -> Vec<Ticket> {
        self.leaves.store(true, Ordering::SeqCst);
        self.let_go_of_unused()
    }

    fn let_go_of_unused(&self) -> Vec<Ticket> {
        let names: Vec<_> = self.sessions.iter().map(|slot| slot.key().clone()).collect();
        let unused = |slot: &Slot| slot.users.lock().is_empty();
        let gone = names.iter().filter_map(|name| self.let_go_if(name, self.now(), unused));
        gone.flatten().collect()
    }

    /// The process ends: what is left goes to the store, within this time.
    pub fn end(&self, patience: Duration) {
        for slot in self.slots() {
            slot.lock().catch_up(When::Now);
        }
        self.store.close(patience);
    }

    /// Takes over the configuration as its files were last seen.
    pub fn configure(
        &self,
        session: &mut Session,
        root: Option<&str>,
        trusted: bool,
        given: Option<&Value>,
        at: Millis,
    ) -> Result<Configured, ErrorObject> {
        let mut configured = self.configuration.configured(root, trusted, given);
        if !configured.is_uncertain || session.configuration().is_empty() {
            let configuration = std::mem::take(&mut configured.configuration);
            let read = Event::ConfigurationRead(Box::new(configuration));
            let applied = session.apply(at, &ScopePath::ROOT, read);
            applied.map_err(|refusal| convert::error(&refusal))?;
        }
        Ok(configured)
    }

    /// Tells a client what is wrong with the configuration, once.
    pub fn tell_troubles(&self, connection: u64, troubles: &[Trouble]) {
        let Some(news) = self.configuration.news(connection, troubles) else { return };
        if let Some(peer) = self.peers.get(&connection) {
            peer.problem("config", &ErrorObject::new(ErrorKind::InvalidParams, news));
        }
    }

    /// Looks at the configuration files again and again, as long as there are sessions.
    pub fn watch_configuration(self: &Arc<Self>) {
        if !self.configuration.begin_watching() {
            return;
        }
        let daemon = Arc::downgrade(self);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(LOOK_EVERY).await;
                let Some(daemon) = daemon.upgrade() else { return };
                if daemon.sessions.is_empty() {
                    daemon.configuration.end_watching();
                    // One may have been opened in this very moment.
                    if daemon.sessions.is_empty() || !daemon.configuration.begin_watching() {
                        return;
                    }
                }
                daemon.read_configuration_again().await;
            }
        });
    }

    async fn read_configuration_again(&self) {
        let slots: Vec<_> = self.sessions.iter().map(|slot| Arc::clone(&slot)).collect();
        let roots = slots.iter().map(|slot| slot.lock().root().map(str::to_owned)).collect();
        self.configuration.look_again(roots).await;
        for slot in slots {
            let mut session = slot.lock();
            let root = session.root().map(str::to_owned);
            let versions = self.configuration.versions(root.as_deref());
            if session.is_over() || *slot.configured.lock() == versions {
                continue;
            }
            let (trusted, given) = (session.is_trusted(), session.configuration_file().cloned());
            let now = self.now();
            let configured =
                self.configure(&mut session, root.as_deref(), trusted, given.as_ref(), now);
            session.keep();
            drop(session);
            *slot.configured.lock() = versions;
            let users = slot.users.lock().clone();
            let troubles = configured.map(|configured| configured.troubles).unwrap_or_default();
            users.into_iter().for_each(|user| self.tell_troubles(user, &troubles));
        }
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

/// What became of an opening.
#[derive(Debug)]
pub enum Life {
    /// The session was live here; the ticket tells whether it is ours.
    Live(Ticket),
    /// It was stored.
    Restored(Taken),
    /// Nobody knew it.
    New(Taken),
}

/// A session that was just taken in; the store may yet refuse its lease.
#[derive(Debug)]
pub struct Taken {
    slot: Arc<Slot>,
    lease: Lease,
    /// Tells whether the lease is ours and the first lines are durable.
    pub ticket: Ticket,
}

/// The answer to a message that names a session which is not open.
fn not_open(session: &str) -> ErrorObject {
    let name = crate::engine::short_name(session, 100);
    ErrorObject::new(
        ErrorKind::UnknownSession,
        format!("session {name:?} is not open: send session/open first"),
    )
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
        let answer = handlers::initialize(&request, self.0.limits())?;
        self.0.peers.insert(connection.id(), connection.peer().clone());
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
        // In any order, and none of them locked while others are looked for.
        let slots: Vec<_> = self.0.sessions.iter().map(|slot| Arc::clone(&slot)).collect();
        for slot in slots {
            slot.lock().disconnect(connection.id());
            slot.users.lock().remove(&connection.id());
        }
        for path in self.0.editors.disconnect(connection.id()) {
            self.0.checks.with(|it| it.close(&path));
        }
        self.0.checks.disconnect(connection.id());
        self.0.configuration.disconnect(connection.id());
        self.0.peers.remove(&connection.id());
        if self.0.leaves.load(Ordering::SeqCst) {
            // Nobody waits: the process ends behind the store.
            drop(self.0.let_go_of_unused());
        }
    }
}
