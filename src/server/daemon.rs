//! The daemon: its sessions, each behind a mutex of its own, and what they are given. Sessions
//! belong to the daemon, not to a connection.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use parking_lot::{Mutex, MutexGuard};
use reminderd_protocol::error::{ErrorKind, ErrorObject};
use reminderd_protocol::methods::Method;

use super::checks::Checks;
use super::configured::{ConfigurationFiles, Configured, LOOK_EVERY, Trouble, Versions};
use super::convert;
use super::handlers;
use super::kept::Kept;
use super::order::panicked;
use super::session_files::{Editors, SessionFiles};
use super::surroundings::Surroundings;
use super::tape::{Notes, Played, Recorder};
use tokio::task::AbortHandle;

use super::{Application, Connection, InitializeRequest, Limits, Outcome, Peer};
use crate::engine::{Event, Kit, Millis, ScopePath, Session, Value};
use crate::files::{self, Files};
use crate::reminders::Catalogue;
use crate::store::{Lease, Loaded, Store, StoreError, Ticket, When};

/// How many sessions are read from the store at a time.
const OPENINGS: usize = 16;

/// Everything that connections share.
#[derive(Debug)]
pub struct Daemon {
    surroundings: Surroundings,
    store: Arc<dyn Store>,
    sessions: DashMap<String, Arc<Slot>>,
    /// The same sessions by the tag at the end of their tokens.
    by_tag: DashMap<u64, Arc<Slot>>,
    /// Held while a place is looked at in the store and taken, by the session's tag.
    openings: [tokio::sync::Mutex<()>; OPENINGS],
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
    /// Records sessions, where that can be.
    recorder: Option<Recorder>,
    /// What it has in place of its machine, where it plays a recording.
    played: Option<Arc<Played>>,
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
            openings: std::array::from_fn(|_| tokio::sync::Mutex::default()),
            checks: Checks::default(),
            configuration: ConfigurationFiles::default(),
            limits: Limits::default(),
            peers: DashMap::new(),
            files: Files::new(files::Options::default()),
            editors: Editors::default(),
            listening: DashMap::new(),
            leaves: AtomicBool::new(false),
            recorder: None,
            played: None,
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

    /// The same daemon, recording sessions.
    #[must_use]
    pub fn recorded(mut self, recorder: Option<Recorder>) -> Self {
        self.recorder = recorder;
        self
    }

    /// The same daemon, playing a recording: it looks at no disk.
    #[must_use]
    pub fn playing(mut self) -> Self {
        self.played = Some(Arc::default());
        self.editors = Editors::default().blind();
        self.configuration = ConfigurationFiles::played();
        self
    }

    /// What records sessions.
    pub fn recorder(&self) -> Option<&Recorder> {
        self.recorder.as_ref()
    }

    /// What it has in place of its machine, where it plays a recording.
    pub fn played(&self) -> Option<&Arc<Played>> {
        self.played.as_ref()
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
    /// Looks at its configuration files first; where no `root` is given, the session knows it.
    pub async fn open<T>(
        &self,
        session: &str,
        root: Option<&str>,
        connection: u64,
        at: Millis,
        notes: &Notes,
        with: impl FnOnce(&mut Session) -> Result<T, ErrorObject>,
    ) -> Result<(T, Life), ErrorObject> {
        let mut opening = None;
        loop {
            let known = self.sessions.get(session).map(|slot| Arc::clone(&slot));
            if let Some(slot) = known {
                let its_root = slot.lock().root().map(str::to_owned);
                self.configuration.look(root.or(its_root.as_deref())).await;
                let mut kept = slot.lock();
                if kept.is_over() {
                    // Another connection closed it in this very moment.
                    continue;
                }
                slot.last_active.store(at, Ordering::Relaxed);
                kept.catch_up(When::Behind);
                notes.joined(session, || kept.snapshot());
                let opened = with(&mut kept)?;
                kept.keep();
                slot.users.lock().insert(connection);
                return Ok((opened, Life::Live(slot.taken.clone())));
            }
            if opening.is_none() {
                // Meanwhile another connection may have opened it.
                opening = Some(self.opening(session).lock().await);
                continue;
            }
            let Stored { session: stored, replayed } = self.stored(session).await?;
            let is_stored = stored.is_some();
            let mut made = stored.unwrap_or_else(|| Session::new(kit(), session));
            if is_stored {
                notes.ledger(session, || made.snapshot());
            }
            self.configuration.look(root.or(made.root())).await;
            // A session that could not be opened is not there.
            let opened = with(&mut made)?;
            let taken = self.take(made, connection, &replayed, at);
            let life = if is_stored { Life::Restored(taken) } else { Life::New(taken) };
            return Ok((opened, life));
        }
    }

    /// Takes in a session that was made elsewhere, where none of its name is there or stored.
    pub async fn adopt(
        &self,
        made: Session,
        connection: u64,
        at: Millis,
    ) -> Result<Taken, ErrorObject> {
        let name = made.id().to_owned();
        let _opening = self.opening(&name).lock().await;
        let is_there = self.sessions.contains_key(&name);
        let Stored { session, replayed } = self.stored(&name).await?;
        if is_there || session.is_some() {
            return Err(ErrorObject::new(
                ErrorKind::InvalidParams,
                format!("session {name:?} is there already: fork into another name"),
            ));
        }
        Ok(self.take(made, connection, &replayed, at))
    }

    /// Erases a session that is not live, whatever is wrong with what is stored of it. The ticket
    /// tells when that is done.
    pub async fn erase(&self, session: &str) -> Result<Ticket, ErrorObject> {
        let _opening = self.opening(session).lock().await;
        let name = session.to_owned();
        match self.read(move |store| store.load(&name)).await? {
            Ok(loaded) if loaded == Loaded::default() => Err(not_open(session)),
            Err(error @ (StoreError::Held(_) | StoreError::Unusable(_))) => {
                Err(convert::store_error(&error))
            }
            Ok(_) | Err(StoreError::Failed(_)) => Ok(self.store.forget(session)),
        }
    }

    /// Who holds this is the only one to take a session of this name in.
    fn opening(&self, session: &str) -> &tokio::sync::Mutex<()> {
        let place = tag(session) % OPENINGS as u64;
        &self.openings[usize::try_from(place).unwrap_or_default()]
    }

    /// What is stored of a session that no other daemon owns, replayed.
    async fn stored(&self, session: &str) -> Result<Stored, ErrorObject> {
        let name = session.to_owned();
        if let Some(lines) = self.played.as_ref().and_then(|played| played.kept(session)) {
            let restored = Session::replay(kit(), session, lines)
                .map_err(|refusal| convert::unreadable(session, &refusal))?;
            return Ok(Stored { session: Some(restored), replayed: Loaded::default() });
        }
        let stored = self.read(move |store| {
            let mut replayed = store.load(&name).map_err(|error| convert::store_error(&error))?;
            let lines = std::mem::take(&mut replayed.lines);
            if lines.is_empty() {
                return Ok(Stored { session: None, replayed });
            }
            let session = Session::restore(kit(), name.as_str(), lines)
                .map_err(|refusal| convert::unreadable(&name, &refusal))?;
            Ok(Stored { session: Some(session), replayed })
        });
        stored.await?
    }

    /// Reads something from the store: not on this thread where that may take its time.
    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&dyn Store) -> T + Send + 'static,
    ) -> Result<T, ErrorObject> {
        if !self.store.outlives_process() {
            return Ok(read(&*self.store));
        }
        let store = Arc::clone(&self.store);
        tokio::task::spawn_blocking(move || read(&*store)).await.map_err(|_| panicked("the store"))
    }

    /// Puts a session into its place, which is free, and takes its lease.
    fn take(&self, mut made: Session, connection: u64, replayed: &Loaded, at: Millis) -> Taken {
        // What history held of it needs no undoing.
        let mut lines = made.take_lines();
        if lines.is_empty() {
            lines.push(made.snapshot());
        }
        if !self.store.outlives_process() {
            lines.clear();
        }
        let name = made.id().to_owned();
        let (lease, appended) = self.store.acquire(&name, replayed.fence, made.root(), &lines);
        let played = self.played.clone();
        let files = SessionFiles::new(&self.files, &made, self.store.directory(), played);
        let since = replayed.bytes - replayed.snapshot_bytes + appended.bytes;
        let store = Arc::clone(&self.store);
        let kept = Kept::new(made, store, lease.clone(), replayed.snapshot_bytes, since);
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
        self.sessions.insert(name, Arc::clone(&slot));
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
        // Its place is free: another connection may have opened it again.
        self.by_tag.remove_if(&slot.tag, |_, other| Arc::ptr_eq(other, &slot));
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
        if let Some(recorder) = &self.recorder {
            recorder.end(patience / 2);
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

    /// A client of a recording begins to speak.
    pub fn introduce(&self, connection: &Connection) {
        self.peers.insert(connection.id(), connection.peer().clone());
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
        self.take_over_configuration();
    }

    /// Has each session take over its configuration files, where they say something else by now.
    pub fn take_over_configuration(&self) {
        for slot in self.slots() {
            let name = slot.lock().id().to_owned();
            let reel = self.recorder.as_ref().and_then(|recorder| recorder.reel(&name));
            let _order = reel.as_ref().map(|reel| reel.order.lock());
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
            if let Some(reel) = &reel {
                reel.configured(now, self.configuration.standing(root.as_deref()));
            }
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

/// What the store has of a session.
struct Stored {
    /// The session, where there is any.
    session: Option<Session>,
    /// What else is known of it; its lines are taken out.
    replayed: Loaded,
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
pub fn tag(session: &str) -> u64 {
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
        let daemon = &self.0;
        if let Some(recorder) = &daemon.recorder {
            return recorder.call(daemon, connection, method, params, at);
        }
        let client = daemon.played.as_ref().and_then(|played| played.client());
        let connection = client.as_ref().unwrap_or(connection);
        let notes = &Notes::default();
        let call = handlers::Call { daemon, connection, method, params, at, notes };
        let outcome = handlers::call(&call);
        match &daemon.played {
            Some(played) => played.outcome(method.name, outcome),
            None => outcome,
        }
    }

    fn closed(&self, connection: &Arc<Connection>) {
        if let Some((_, listener)) = self.0.listening.remove(&connection.id()) {
            listener.abort();
        }
        if let Some(recorder) = &self.0.recorder {
            recorder.closed(connection.id());
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
