//! Sessions in SQLite: as durable as a bare file with `fdatasync` at the same speed, and any SQLite
//! tool can read it.
//!
//! One thread writes. What came while it was busy, of all sessions, becomes one transaction, so that
//! sixty-four commits cost one wait for the disk. Checkpoints run on another thread and connection.
//! The file is in WAL mode with `synchronous=FULL`: what a ticket calls durable survives a crash of
//! the process and of the machine. Only what need not survive the latter is written with `NORMAL`.
//!
//! A daemon's life is the lock that it holds on a file of its own. It needs no heartbeat: the system
//! lets go of it when the process ends, however it ends.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use parking_lot::{Condvar, Mutex};
use rusqlite::{
    Connection, ErrorCode, OpenFlags, OptionalExtension as _, Transaction, TransactionBehavior,
    params,
};
use rustix::fs::{FlockOperation, flock};

use super::lease::{Holder, Lease, Lost};
use super::ticket::{Promise, Ticket};
use super::{Appended, Listed, Loaded, Store, StoreError, WRITE_BEHIND, When, migrations, place};
use crate::engine::{Line, Millis};

/// The file, in the store's directory.
pub const FILE: &str = "ledger.sqlite3";
/// Says that the file was found damaged while it was in use: it is set aside at the next start.
pub const DAMAGED: &str = "ledger.damaged";
/// How long another process's lock is waited for.
const BUSY: Duration = Duration::from_secs(2);
/// How long a read may wait for another process's lock: messages wait behind it.
const BUSY_READING: Duration = Duration::from_millis(250);
/// How a connection waits for the disk, unless said otherwise: at each transaction.
const SYNCHRONOUS: &str = "FULL";
/// Bytes that wait to be written at most.
const QUEUE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Bytes after which the log is worked into the file.
const CHECKPOINT_BYTES: usize = 4 * 1024 * 1024;
/// The log is cut down to this when all of it was worked in.
const LOG_BYTES_MAX: usize = 4 * CHECKPOINT_BYTES;
/// How long erasing waits for readers of other processes.
const ERASE_PATIENCE: Duration = Duration::from_secs(5);
/// When limits are first enforced, and how often after that.
const FIRST_UPKEEP: Duration = Duration::from_secs(10);
const UPKEEP: Duration = Duration::from_secs(3600);
/// Sessions that one transaction of the upkeep removes at most.
const UPKEEP_SESSIONS: i64 = 50;

/// How much is kept. The sessions that were quiet longest go first; one that a daemon owns stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// How long a session may be quiet.
    pub age: Duration,
    /// How many sessions.
    pub sessions: u64,
    /// How many bytes.
    pub bytes: u64,
}

impl Default for Options {
    /// 90 days, 100,000 sessions, 1 GiB.
    fn default() -> Self {
        Self { age: Duration::from_secs(90 * 86_400), sessions: 100_000, bytes: 1 << 30 }
    }
}

/// Keeps sessions in a file.
#[derive(Debug)]
pub struct SqliteStore {
    directory: PathBuf,
    shared: Arc<Shared>,
    reader: Mutex<Connection>,
    daemons: Daemons,
    writer: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    stirred: Condvar,
    trouble: Mutex<Option<StoreError>>,
    /// Whether the log was worked into the file, but for what came meanwhile.
    is_worked_in: AtomicBool,
    /// Sessions whose leases are being given back, or which are being erased: what was asked for last
    /// is not in the file yet.
    leaving: Mutex<BTreeMap<String, Ticket>>,
}

#[derive(Debug, Default)]
struct Queue {
    jobs: Vec<Job>,
    bytes: usize,
    /// Since when something waits.
    since: Option<Instant>,
    is_urgent: bool,
    is_closed: bool,
}

#[derive(Debug)]
enum Job {
    Acquire { lease: Lease, root: Option<String>, lines: Vec<Text>, promise: Promise },
    Append { lease: Lease, epoch: u64, lines: Vec<Text>, is_durable: bool, promise: Promise },
    Release { lease: Lease, active: Millis, promise: Promise },
    Forget { session: String, promise: Promise },
    Flush { promise: Promise },
}

impl Job {
    /// Whether the disk must have it before it is done.
    fn is_durable(&self) -> bool {
        !matches!(self, Self::Append { is_durable: false, .. })
    }
}

/// A line, ready to be written.
#[derive(Debug)]
struct Text {
    kind: &'static str,
    at: Option<Millis>,
    json: String,
}

impl SqliteStore {
    /// Opens the store of a directory, and makes it where there is none. A damaged file is set
    /// aside and a fresh one begun.
    pub fn open(directory: &Path, options: Options) -> Result<Self, StoreError> {
        let unusable = |what: &str, error: &dyn std::fmt::Display| {
            StoreError::Unusable(format!(
                "the store in {} cannot be used: {what}{error} (mend that, name another directory \
                 with --state, or go on without one with --ephemeral)",
                directory.display()
            ))
        };
        place::prepare(directory).map_err(|error| unusable("", &error))?;
        let daemons = Daemons::new(directory).map_err(|error| unusable("", &error))?;
        let path = directory.join(FILE);
        let marker = directory.join(DAMAGED);
        if marker.exists() {
            set_aside(directory, &daemons).map_err(|error| unusable("it is damaged, ", &error))?;
        }
        let opened = match open_file(&path) {
            Err(Fault::Damaged(_)) => {
                set_aside(directory, &daemons)
                    .map_err(|error| unusable("it is damaged, and ", &error))?;
                open_file(&path)
            }
            opened => opened,
        };
        let (writer, reader, checkpointer) = opened.map_err(|fault| match fault {
            Fault::Damaged(why) | Fault::Other(why) => unusable("", &why),
        })?;
        let shared = Arc::new(Shared::default());
        let checkpoints = checkpoint_from(checkpointer, Arc::clone(&shared));
        // What daemons that were killed left in the log: none of them may have written enough.
        let left = fs::metadata(directory.join(format!("{FILE}-wal"))).map_or(0, |log| log.len());
        if left >= CHECKPOINT_BYTES as u64 {
            let _: Result<(), _> = checkpoints.try_send(());
        }
        let writing = Writer {
            connection: writer,
            shared: Arc::clone(&shared),
            daemons: daemons.clone(),
            marker,
            identity: identity(&path),
            path,
            checkpoints,
            waits_for_the_disk: true,
            written: 0,
            lost: BTreeMap::new(),
            options,
            upkeep: Instant::now() + FIRST_UPKEEP,
        };
        let thread = thread::Builder::new()
            .name("store".to_owned())
            .spawn(move || writing.run())
            .map_err(|error| unusable("", &error))?;
        Ok(Self {
            directory: directory.to_owned(),
            shared,
            reader: Mutex::new(reader),
            daemons,
            writer: Mutex::new(Some(thread)),
        })
    }

    /// Why nothing could be read. A damaged file is set aside at the next start, as that says.
    fn unread(&self, error: &rusqlite::Error) -> StoreError {
        if is_damage(error) {
            note_damage(&self.directory.join(DAMAGED));
        }
        failed(error)
    }

    fn push(&self, job: Job, bytes: usize, is_urgent: bool) {
        let mut queue = self.shared.queue.lock();
        queue.jobs.push(job);
        queue.bytes += bytes;
        queue.since.get_or_insert_with(Instant::now);
        queue.is_urgent |= is_urgent;
        drop(queue);
        self.shared.stirred.notify_one();
    }

    fn ask(&self, job: impl FnOnce(Promise) -> Job) -> Ticket {
        let (promise, ticket) = Ticket::open();
        self.push(job(promise), 0, true);
        ticket
    }
}

impl Store for SqliteStore {
    fn outlives_process(&self) -> bool {
        true
    }

    fn directory(&self) -> Option<PathBuf> {
        Some(self.directory.clone())
    }

    fn load(&self, session: &str) -> Result<Loaded, StoreError> {
        let leaving = self.shared.leaving.lock().get(session).cloned();
        if let Some(ticket) = leaving {
            ticket.wait_here(BUSY)?;
        }
        let mut reader = self.reader.lock();
        // One view of the file for all that is asked.
        let view = reader.transaction().map_err(|error| self.unread(&error))?;
        let Some(ledger) = find(&view, session).map_err(|error| self.unread(&error))? else {
            return Ok(Loaded::default());
        };
        ledger.refuse_others(&self.daemons)?;
        let texts = texts(&view, ledger.id).map_err(|error| self.unread(&error))?;
        let lines =
            texts.iter().map(|text| serde_json::from_str(text)).collect::<Result<Vec<Line>, _>>();
        let lines = lines.map_err(|error| {
            StoreError::Failed(format!(
                "a line of session {session:?} cannot be read: {error} (session/close with forget \
                 erases it)"
            ))
        })?;
        let bytes = texts.iter().map(String::len).sum();
        let snapshot_bytes = match lines.first() {
            Some(Line::Snapshot(_)) => texts[0].len(),
            _ => 0,
        };
        Ok(Loaded { lines, bytes, snapshot_bytes, fence: ledger.fence })
    }

    fn list(&self) -> Result<Vec<Listed>, StoreError> {
        let reader = self.reader.lock();
        let list = || {
            let mut all = reader.prepare_cached(
                "SELECT session, root, active FROM ledgers
                 WHERE EXISTS (SELECT 1 FROM lines WHERE lines.ledger = ledgers.id)
                 ORDER BY session",
            )?;
            let listed = all.query_map([], |row| {
                Ok(Listed { session: row.get(0)?, root: row.get(1)?, active: row.get(2)? })
            })?;
            listed.collect::<rusqlite::Result<Vec<_>>>()
        };
        list().map_err(|error| self.unread(&error))
    }

    fn acquire(
        &self,
        session: &str,
        fence: u64,
        root: Option<&str>,
        lines: &[Line],
    ) -> (Lease, Appended) {
        let lease = Lease::new(session, fence + 1);
        let (lines, bytes) = written_out(lines);
        let root = root.map(str::to_owned);
        let (promise, ticket) = Ticket::open();
        self.push(Job::Acquire { lease: lease.clone(), root, lines, promise }, bytes, true);
        (lease, Appended { ticket, bytes })
    }

    fn append(&self, lease: &Lease, lines: &[Line], when: When) -> Appended {
        let (lines, bytes) = written_out(lines);
        let epoch = lease.epoch();
        if self.shared.queue.lock().bytes.saturating_add(bytes) > QUEUE_BYTES_MAX {
            lease.lose(epoch, Lost::Behind);
            let full = StoreError::Failed("more waits to be written than is kept".to_owned());
            return Appended { ticket: Ticket::settled(Err(full)), bytes };
        }
        let (promise, ticket) = Ticket::open();
        let lease = lease.clone();
        let is_durable = when != When::Written;
        let job = Job::Append { lease, epoch, lines, is_durable, promise };
        self.push(job, bytes, when != When::Behind);
        Appended { ticket, bytes }
    }

    fn release(&self, lease: &Lease, active: Millis) -> Ticket {
        let mut leaving = self.shared.leaving.lock();
        let ticket = self.ask(|promise| Job::Release { lease: lease.clone(), active, promise });
        leaving.insert(lease.session().to_owned(), ticket.clone());
        ticket
    }

    fn forget(&self, session: &str) -> Ticket {
        let mut leaving = self.shared.leaving.lock();
        let ticket = self.ask(|promise| Job::Forget { session: session.to_owned(), promise });
        leaving.insert(session.to_owned(), ticket.clone());
        ticket
    }

    fn flush(&self) -> Ticket {
        self.ask(|promise| Job::Flush { promise })
    }

    fn trouble(&self) -> Option<StoreError> {
        self.shared.trouble.lock().clone()
    }

    fn close(&self, patience: Duration) {
        self.shared.queue.lock().is_closed = true;
        self.shared.stirred.notify_one();
        let Some(writer) = self.writer.lock().take() else { return };
        let until = Instant::now() + patience;
        while !writer.is_finished() && Instant::now() < until {
            thread::sleep(Duration::from_millis(1));
        }
        if !writer.is_finished() {
            tracing::warn!("the store did not end in time; what it had confirmed is kept");
        }
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        self.close(Duration::from_secs(1));
    }
}

/// The lines as text, and how many bytes that is.
fn written_out(lines: &[Line]) -> (Vec<Text>, usize) {
    let texts: Vec<_> = lines
        .iter()
        .map(|line| Text {
            kind: line.kind(),
            at: line.at(),
            // Lines are plain data: there is nothing in them that has no text.
            json: serde_json::to_string(line).unwrap_or_default(),
        })
        .collect();
    let bytes = texts.iter().map(|text| text.json.len()).sum();
    (texts, bytes)
}

/// A session's row.
struct Ledger {
    id: i64,
    fence: u64,
    daemon: Option<String>,
    holder: Option<Holder>,
}

impl Ledger {
    /// Refuses what another daemon owns that lives.
    fn refuse_others(&self, daemons: &Daemons) -> Result<(), StoreError> {
        match &self.daemon {
            Some(daemon) if *daemon != daemons.own && daemons.lives(daemon) => {
                Err(StoreError::Held(self.holder.clone()))
            }
            _ => Ok(()),
        }
    }
}

fn find(connection: &Connection, session: &str) -> rusqlite::Result<Option<Ledger>> {
    let mut find = connection.prepare_cached(
        "SELECT ledgers.id, fence, daemon, pid, host, since
         FROM ledgers LEFT JOIN daemons ON daemons.id = ledgers.daemon WHERE session = ?1",
    )?;
    let found = find.query_row([session], |row| {
        let holder = match row.get::<_, Option<u32>>(3)? {
            Some(pid) => Some(Holder { pid, host: row.get(4)?, since: row.get(5)? }),
            None => None,
        };
        Ok(Ledger { id: row.get(0)?, fence: row.get(1)?, daemon: row.get(2)?, holder })
    });
    found.optional()
}

/// The lines that a replay needs, as text.
pub(super) fn texts(connection: &Connection, ledger: i64) -> rusqlite::Result<Vec<String>> {
    let mut lines = connection.prepare_cached(
        "SELECT line FROM lines WHERE ledger = ?1 AND id >= coalesce(
             (SELECT max(id) FROM lines WHERE ledger = ?1 AND kind = 'snapshot'), 0)
         ORDER BY id",
    )?;
    let texts = lines.query_map([ledger], |row| row.get(0))?;
    texts.collect()
}

/// Which file stands at a path.
fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

fn failed(error: &rusqlite::Error) -> StoreError {
    if let rusqlite::Error::InvalidPath(path) = error {
        return StoreError::Failed(format!(
            "{} was removed or replaced under the daemon (start it again, nothing more is kept)",
            path.display()
        ));
    }
    let next = match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => "free some space, then try again",
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            "another process holds its lock: try again"
        }
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            "it is damaged: the next start sets it aside"
        }
        _ => "try again",
    };
    StoreError::Failed(format!("the store failed: {error} ({next})"))
}

pub(super) fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

// Opening

pub(super) enum Fault {
    Damaged(String),
    Other(String),
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        let text = error.to_string();
        if is_damage(&error) { Self::Damaged(text) } else { Self::Other(text) }
    }
}

/// The connections that write, read and checkpoint.
fn open_file(path: &Path) -> Result<(Connection, Connection, Connection), Fault> {
    check(path)?;
    // SQLite gives the log the mode of the file, which it would make readable by others.
    let made = OpenOptions::new().create(true).append(true).mode(0o600).open(path);
    made.map_err(|error| Fault::Other(error.to_string()))?;
    let mut writer = connect(path, BUSY)?;
    if writer.is_readonly("main")? {
        return Err(Fault::Other("it is read-only".to_owned()));
    }
    // Both count while the file is empty only.
    writer.pragma_update(None, "page_size", 8192)?;
    writer.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    let journal: String =
        writer.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
    if journal != "wal" {
        return Err(Fault::Other(format!("its file system allows no log beside it ({journal})")));
    }
    migrations::migrate(&mut writer)?;
    Ok((writer, connect(path, BUSY_READING)?, connect(path, BUSY)?))
}

fn connect(path: &Path, busy: Duration) -> rusqlite::Result<Connection> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(busy)?;
    connection.pragma_update(None, "synchronous", SYNCHRONOUS)?;
    // What is deleted is gone, not only unlinked.
    connection.pragma_update(None, "secure_delete", "ON")?;
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    connection.pragma_update(None, "journal_size_limit", LOG_BYTES_MAX)?;
    Ok(connection)
}

/// Looks at a file without changing it: it is not there or empty, or of ours and of an age that this
/// build knows.
pub(super) fn check(path: &Path) -> Result<(), Fault> {
    match fs::metadata(path) {
        Ok(found) if !found.is_file() => {
            return Err(Fault::Other(format!("{} is not a file", path.display())));
        }
        Ok(found) if found.len() > 0 => {}
        _ => return Ok(()),
    }
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    connection.busy_timeout(BUSY)?;
    check_age(&connection, path)
}

/// Whether a file is of ours and of an age that this build knows.
pub(super) fn check_age(connection: &Connection, path: &Path) -> Result<(), Fault> {
    let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, u64>(0));
    let version = number("user_version")?;
    let application = number("application_id")?;
    let tables: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if tables > 0 && application != migrations::APPLICATION_ID {
        return Err(Fault::Other(format!("{} is a database of another program", path.display())));
    }
    if version > migrations::VERSION as u64 {
        return Err(Fault::Other(format!(
            "a newer reminderd wrote it (schema {version}, this one knows {})",
            migrations::VERSION
        )));
    }
    Ok(())
}

/// Has the next start set the file aside.
fn note_damage(marker: &Path) {
    if let Err(error) = fs::write(marker, b"") {
        tracing::warn!(%error, "the damage could not be noted for the next start");
    }
}

/// Puts a damaged file out of the way, whole, under a name that says when.
fn set_aside(directory: &Path, daemons: &Daemons) -> io::Result<()> {
    if daemons.others_live() {
        return Err(io::Error::other("another daemon still uses it"));
    }
    let stamp = now();
    for suffix in ["-wal", "-shm", ""] {
        let from = directory.join(format!("{FILE}{suffix}"));
        if from.exists() {
            fs::rename(&from, directory.join(format!("{FILE}.damaged-{stamp}{suffix}")))?;
        }
    }
    let marker = directory.join(DAMAGED);
    if marker.exists() {
        fs::remove_file(marker)?;
    }
    tracing::error!(
        "the store in {} was damaged and is set aside as {FILE}.damaged-{stamp}: a fresh one is \
         begun, and sessions begin anew unless their clients kept their records",
        directory.display()
    );
    Ok(())
}

fn now() -> Millis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Millis::try_from(since.as_millis()).unwrap_or(Millis::MAX)
}

// Who lives

/// Whether a daemon holds its lock on this file.
pub(super) fn is_locked(path: &Path) -> bool {
    let file = File::open(path);
    file.is_ok_and(|file| flock(&file, FlockOperation::NonBlockingLockShared).is_err())
}

/// The daemons that use a directory, each the holder of a lock.
#[derive(Clone, Debug)]
struct Daemons {
    directory: PathBuf,
    own: String,
    /// Kept open, and with it locked, while this daemon lives.
    lock: Arc<File>,
}

impl Daemons {
    fn new(directory: &Path) -> io::Result<Self> {
        let directory = directory.join("daemons");
        place::prepare(&directory)?;
        let mut bytes = [0; 8];
        getrandom::fill(&mut bytes).map_err(io::Error::other)?;
        let own = format!("{:016x}", u64::from_be_bytes(bytes));
        let path = directory.join(format!("{own}.lock"));
        let lock = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Self { directory, own, lock: Arc::new(lock) })
    }

    fn path(&self, id: &str) -> PathBuf {
        self.directory.join(format!("{id}.lock"))
    }

    /// Whether another daemon lives: its file is there and locked. The file of a dead one is
    /// removed.
    fn lives(&self, id: &str) -> bool {
        let path = self.path(id);
        let lives = is_locked(&path);
        if !lives {
            // Whoever else looks at the same time removes it too.
            let _: io::Result<()> = fs::remove_file(path);
        }
        lives
    }

    fn others_live(&self) -> bool {
        let Ok(entries) = fs::read_dir(&self.directory) else { return false };
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let ids: Vec<_> =
            names.filter_map(|name| name.strip_suffix(".lock").map(str::to_owned)).collect();
        ids.iter().any(|id| *id != self.own && self.lives(id))
    }

    /// Lets go, also where a clone still holds the file.
    fn end(&self) {
        let _: io::Result<()> = fs::remove_file(self.path(&self.own));
        let _: rustix::io::Result<()> = flock(&*self.lock, FlockOperation::Unlock);
    }
}

// Writing

struct Writer {
    connection: Connection,
    shared: Arc<Shared>,
    daemons: Daemons,
    marker: PathBuf,
    path: PathBuf,
    /// Which file the connection writes to.
    identity: Option<(u64, u64)>,
    checkpoints: SyncSender<()>,
    /// Whether a transaction of the connection is over only when the disk has it.
    waits_for_the_disk: bool,
    /// Bytes since the last checkpoint was asked for.
    written: usize,
    /// Leases whose lines were lost, by session and fence, and up to which epoch.
    lost: BTreeMap<(String, u64), u64>,
    options: Options,
    upkeep: Instant,
}

impl Writer {
    fn run(mut self) {
        loop {
            let (jobs, is_closed) = self.next();
            if !jobs.is_empty() {
                self.write(jobs);
            }
            if is_closed {
                self.end();
                return;
            }
            if Instant::now() >= self.upkeep {
                let more = self.keep_within_limits();
                self.upkeep = Instant::now() + if more { WRITE_BEHIND } else { UPKEEP };
            }
        }
    }

    /// Waits until something has to be written, or looked after.
    fn next(&self) -> (Vec<Job>, bool) {
        let mut queue = self.shared.queue.lock();
        loop {
            let due = queue.since.map(|since| since + WRITE_BEHIND);
            let is_due = queue.is_urgent || due.is_some_and(|due| due <= Instant::now());
            if is_due || queue.is_closed || self.upkeep <= Instant::now() {
                break;
            }
            let until = due.map_or(self.upkeep, |due| due.min(self.upkeep));
            self.shared.stirred.wait_until(&mut queue, until);
        }
        queue.bytes = 0;
        queue.since = None;
        queue.is_urgent = false;
        (std::mem::take(&mut queue.jobs), queue.is_closed)
    }

    /// Writes all of it in one transaction, and says what became of each.
    fn write(&mut self, jobs: Vec<Job>) {
        let outcomes = self.transact(&jobs);
        let trouble = outcomes.as_ref().err().map(failed);
        if let Err(error) = &outcomes
            && is_damage(error)
        {
            note_damage(&self.marker);
        }
        {
            let mut known = self.shared.trouble.lock();
            match (&*known, &trouble) {
                (None, Some(error)) => {
                    tracing::error!(
                        "{error}: commits are refused, and what happens meanwhile stays in memory"
                    );
                }
                (Some(_), None) => tracing::info!("the store can be written again"),
                _ => {}
            }
            known.clone_from(&trouble);
        }
        let outcomes: Vec<Result<(), StoreError>> = match (outcomes, trouble) {
            (Err(_), Some(error)) => vec![Err(error); jobs.len()],
            (outcomes, _) => outcomes.unwrap_or_default(),
        };
        for (job, outcome) in jobs.into_iter().zip(outcomes) {
            self.tell(job, outcome);
        }
        if self.written >= CHECKPOINT_BYTES {
            self.written = 0;
            // One that is asked for already is enough.
            let _: Result<(), _> = self.checkpoints.try_send(());
        }
        // The log begins anew only when all of it is worked in. What came meanwhile is little, and
        // nothing more comes while the writer does that itself.
        if self.shared.is_worked_in.swap(false, Ordering::Relaxed)
            && let Err(error) = work_in(&self.connection)
        {
            tracing::debug!(%error, "the rest of the store's log is left to the next time");
        }
    }

    /// Says what became of a job that was written, or was not.
    fn tell(&mut self, job: Job, outcome: Result<(), StoreError>) {
        let promise = match job {
            Job::Acquire { promise, .. } => promise,
            Job::Append { lease, epoch, promise, .. } => {
                let key = (lease.session().to_owned(), lease.fence());
                if outcome.is_ok() {
                    self.lost.remove(&key);
                } else {
                    self.lost.insert(key, epoch);
                    lease.lose(epoch, Lost::Failed);
                }
                promise
            }
            Job::Release { lease, promise, .. } => {
                self.lost.remove(&(lease.session().to_owned(), lease.fence()));
                self.left(lease.session(), &promise);
                promise
            }
            Job::Flush { promise } => promise,
            Job::Forget { session, promise } => {
                self.left(&session, &promise);
                promise.settle(outcome.and_then(|()| self.empty_log()));
                return;
            }
        };
        promise.settle(outcome);
    }

    /// What was asked for of a session is done, unless more was since.
    fn left(&self, session: &str, promise: &Promise) {
        let mut leaving = self.shared.leaving.lock();
        if leaving.get(session).is_some_and(|ticket| promise.settles(ticket)) {
            leaving.remove(session);
        }
    }

    fn transact(&mut self, jobs: &[Job]) -> rusqlite::Result<Vec<Result<(), StoreError>>> {
        if jobs.iter().all(|job| matches!(job, Job::Flush { .. })) {
            return Ok(vec![Ok(()); jobs.len()]);
        }
        // What is written to a file that nobody can find any more is lost.
        if identity(&self.path) != self.identity {
            return Err(rusqlite::Error::InvalidPath(self.path.clone()));
        }
        self.wait_for_the_disk(jobs.iter().any(Job::is_durable))?;
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut outcomes = Vec::with_capacity(jobs.len());
        let mut written = 0;
        for job in jobs {
            outcomes.push(match job {
                Job::Acquire { lease, root, lines, .. } => {
                    acquire(&transaction, &self.daemons, lease, root.as_deref(), lines)?
                }
                Job::Append { lease, epoch, lines, .. } => {
                    let key = (lease.session().to_owned(), lease.fence());
                    if self.lost.get(&key).is_some_and(|lost| lost >= epoch) {
                        Err(StoreError::Failed(
                            "what came before it could not be written (try again)".to_owned(),
                        ))
                    } else {
                        written += lines.iter().map(|line| line.json.len()).sum::<usize>();
                        append(&transaction, &self.daemons, lease, lines)?
                    }
                }
                Job::Release { lease, active, .. } => {
                    let fence = lease.fence();
                    transaction
                        .prepare_cached(
                            "UPDATE ledgers SET daemon = NULL, active = max(active, ?4)
                             WHERE session = ?1 AND fence = ?2 AND daemon = ?3",
                        )?
                        .execute(params![lease.session(), fence, self.daemons.own, active])?;
                    Ok(())
                }
                Job::Forget { session, .. } => forget(&transaction, &self.daemons, session)?,
                Job::Flush { .. } => Ok(()),
            });
        }
        transaction.commit()?;
        self.written += written;
        Ok(outcomes)
    }

    /// Whether the next transaction is over when the disk has it, or when the file has it. The disk takes
    /// the log in its order, so that one that is waited for brings those before it along.
    fn wait_for_the_disk(&mut self, is_durable: bool) -> rusqlite::Result<()> {
        if self.waits_for_the_disk != is_durable {
            let synchronous = if is_durable { SYNCHRONOUS } else { "NORMAL" };
            self.connection.pragma_update(None, "synchronous", synchronous)?;
            self.waits_for_the_disk = is_durable;
        }
        Ok(())
    }

    /// Works the log into the file and cuts it off, so that nothing that was erased is left in it.
    fn empty_log(&self) -> Result<(), StoreError> {
        let until = Instant::now() + ERASE_PATIENCE;
        loop {
            let busy: Result<i64, _> =
                self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0));
            match busy {
                Ok(0) => return Ok(()),
                Err(error) if error.sqlite_error_code() != Some(ErrorCode::DatabaseBusy) => {
                    return Err(failed(&error));
                }
                _ if Instant::now() >= until => {
                    return Err(StoreError::Failed(
                        "it is erased from the ledger, but another process reads the log, which \
                         still holds it (try again)"
                            .to_owned(),
                    ));
                }
                _ => thread::sleep(Duration::from_millis(20)),
            }
        }
    }

    /// Removes sessions beyond the limits, a few at a time. Says whether there may be more.
    fn keep_within_limits(&mut self) -> bool {
        match remove_beyond(&mut self.connection, &self.daemons, self.options) {
            Ok(0) => false,
            Ok(removed) => {
                tracing::info!(removed, "sessions beyond the store's limits were removed");
                true
            }
            Err(error) => {
                tracing::warn!(%error, "the store's limits could not be enforced");
                false
            }
        }
    }

    fn end(mut self) {
        let own = &self.daemons.own;
        let mut let_go = || {
            let held: i64 = self.connection.query_row(
                "SELECT count(*) FROM daemons WHERE id = ?1",
                [own],
                |row| row.get(0),
            )?;
            if held > 0 {
                let transaction =
                    self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
                transaction.execute("UPDATE ledgers SET daemon = NULL WHERE daemon = ?1", [own])?;
                transaction.execute("DELETE FROM daemons WHERE id = ?1", [own])?;
                transaction.commit()?;
            }
            Ok::<_, rusqlite::Error>(())
        };
        if let Err(error) = let_go() {
            tracing::warn!(%error, "leases could not be given back; they end with the process");
        }
        // The log is worked in, so that the file alone is all there is; another daemon may do it
        // as well.
        let worked_in = self.connection.busy_timeout(BUSY_READING).and_then(|()| {
            self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        });
        if let Err(error) = worked_in {
            tracing::debug!(%error, "the store's log is left to the next start");
        }
        self.daemons.end();
    }
}

fn acquire(
    transaction: &Transaction<'_>,
    daemons: &Daemons,
    lease: &Lease,
    root: Option<&str>,
    lines: &[Text],
) -> rusqlite::Result<Result<(), StoreError>> {
    let known = find(transaction, lease.session())?;
    let fence = known.as_ref().map_or(0, |ledger| ledger.fence);
    if fence + 1 != lease.fence() {
        return Ok(Err(StoreError::Held(known.and_then(|ledger| ledger.holder))));
    }
    if let Some(Err(held)) = known.map(|ledger| ledger.refuse_others(daemons)) {
        return Ok(Err(held));
    }
    transaction
        .prepare_cached(
            "INSERT OR IGNORE INTO daemons (id, pid, host, since) VALUES (?1, ?2, ?3, ?4)",
        )?
        .execute(params![
            daemons.own,
            std::process::id(),
            rustix::system::uname().nodename().to_string_lossy(),
            now(),
        ])?;
    let at = lines.iter().filter_map(|line| line.at).next_back().unwrap_or_else(now);
    transaction
        .prepare_cached(
            "INSERT INTO ledgers (session, root, opened, active, fence, daemon)
             VALUES (?1, ?2, ?3, ?3, ?4, ?5)
             ON CONFLICT (session) DO UPDATE SET root = coalesce(excluded.root, root),
                 active = excluded.active, fence = excluded.fence, daemon = excluded.daemon",
        )?
        .execute(params![lease.session(), root, at, lease.fence(), daemons.own])?;
    append(transaction, daemons, lease, lines)
}

fn append(
    transaction: &Transaction<'_>,
    daemons: &Daemons,
    lease: &Lease,
    lines: &[Text],
) -> rusqlite::Result<Result<(), StoreError>> {
    let at = lines.iter().filter_map(|line| line.at).next_back();
    // The fence: a session that another daemon has taken since is no longer ours to write.
    let ledger: Option<i64> = transaction
        .prepare_cached(
            "UPDATE ledgers SET active = coalesce(?1, active)
             WHERE session = ?2 AND fence = ?3 AND daemon = ?4 RETURNING id",
        )?
        .query_row(params![at, lease.session(), lease.fence(), daemons.own], |row| row.get(0))
        .optional()?;
    let Some(ledger) = ledger else {
        let holder = find(transaction, lease.session())?.and_then(|ledger| ledger.holder);
        return Ok(Err(StoreError::Held(holder)));
    };
    let mut insert =
        transaction.prepare_cached("INSERT INTO lines (ledger, kind, line) VALUES (?1, ?2, ?3)")?;
    for line in lines {
        insert.execute(params![ledger, line.kind, line.json])?;
        if line.kind == "snapshot" {
            // What was told stays, for people; all else is in the snapshot.
            transaction
                .prepare_cached(
                    "DELETE FROM lines WHERE ledger = ?1 AND kind <> 'committed' AND id < ?2",
                )?
                .execute(params![ledger, transaction.last_insert_rowid()])?;
        }
    }
    Ok(Ok(()))
}

fn forget(
    transaction: &Transaction<'_>,
    daemons: &Daemons,
    session: &str,
) -> rusqlite::Result<Result<(), StoreError>> {
    let Some(ledger) = find(transaction, session)? else { return Ok(Ok(())) };
    if let Err(held) = ledger.refuse_others(daemons) {
        return Ok(Err(held));
    }
    remove(transaction, ledger.id)?;
    Ok(Ok(()))
}

fn remove(transaction: &Transaction<'_>, ledger: i64) -> rusqlite::Result<()> {
    transaction.prepare_cached("DELETE FROM lines WHERE ledger = ?1")?.execute([ledger])?;
    transaction.prepare_cached("DELETE FROM ledgers WHERE id = ?1")?.execute([ledger])?;
    Ok(())
}

/// Removes up to [`UPKEEP_SESSIONS`] sessions that are beyond the limits, and says how many.
fn remove_beyond(
    connection: &mut Connection,
    daemons: &Daemons,
    options: Options,
) -> rusqlite::Result<usize> {
    let age = u64::try_from(options.age.as_millis()).unwrap_or(u64::MAX);
    let oldest = now().saturating_sub(age);
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let number = |sql| transaction.query_row(sql, [], |row| row.get::<_, u64>(0));
    let sessions = number("SELECT count(*) FROM ledgers")?;
    let bytes = number(
        "SELECT (page_count - freelist_count) * page_size
         FROM pragma_page_count, pragma_freelist_count, pragma_page_size",
    )?;
    let too_many = sessions.saturating_sub(options.sessions);
    let quiet: Vec<(i64, Option<String>, u64)> = {
        let mut quiet = transaction
            .prepare("SELECT id, daemon, active FROM ledgers ORDER BY active LIMIT ?1")?;
        let rows = quiet
            .query_map([UPKEEP_SESSIONS], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        rows.collect::<rusqlite::Result<_>>()?
    };
    let mut removed = 0;
    for (place, (id, daemon, active)) in quiet.into_iter().enumerate() {
        let is_beyond = active < oldest || (removed as u64) < too_many;
        // One at a time: how much that frees is known afterwards only.
        let is_large = bytes > options.bytes && place == 0;
        let is_owned = daemon.is_some_and(|id| id == daemons.own || daemons.lives(&id));
        if (is_beyond || is_large) && !is_owned {
            remove(&transaction, id)?;
            removed += 1;
        }
    }
    transaction.commit()?;
    if removed > 0 {
        connection.execute_batch("PRAGMA incremental_vacuum(1000)")?;
    }
    Ok(removed)
}

/// Works the log into the file whenever it is asked to, on a thread of its own.
fn checkpoint_from(connection: Connection, shared: Arc<Shared>) -> SyncSender<()> {
    let (sender, asked) = sync_channel(1);
    let work = move || {
        while asked.recv().is_ok() {
            match work_in(&connection) {
                Ok(()) => shared.is_worked_in.store(true, Ordering::Relaxed),
                Err(error) => {
                    tracing::warn!(%error, "the store's log could not be worked into its file");
                }
            }
        }
    };
    if let Err(error) = thread::Builder::new().name("checkpoint".to_owned()).spawn(work) {
        tracing::warn!(%error, "the store's log will grow until the daemon ends");
    }
    sender
}

/// Works into the file what is in the log now. Waits for nobody; what it leaves the next one takes.
fn work_in(connection: &Connection) -> rusqlite::Result<()> {
    connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))
}

/// Enforces limits once, and says how many sessions that removed.
#[cfg(test)]
pub(super) fn removed_by(store: &SqliteStore, directory: &Path, options: Options) -> usize {
    let mut connection = connect(&directory.join(FILE), BUSY).expect("it opens");
    remove_beyond(&mut connection, &store.daemons, options).expect("it can be written")
}
