//! Which sessions are recorded, and where to.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use reminderd_protocol::methods::Method;
use serde::Deserialize;
use serde_json::Value as Json;

use super::backlog::{Backlog, Said, is_kept};
use super::played::Client;
use super::reel::{Entry, Notes, Out, Reel};
use crate::engine::{Millis, short_name};
use crate::files::identity;
use crate::files::secrecy::{self, Secrecy};
use crate::server::daemon::{Daemon, tag};
use crate::server::handlers::{self, Call};
use crate::server::{Answer, Connection, Outcome};

/// The directory of recordings, in the state directory.
const DIRECTORY: &str = "recordings";
/// The file in it that says that sessions are recorded.
const MARKER: &str = "on";
/// How recordings end.
const ENDING: &str = ".jsonl";
/// How many bytes all recordings have at most: the oldest go first.
const ALL_BYTES_MAX: u64 = 1 << 30;
/// Questions: nothing comes of them.
const QUESTIONS: &[&str] = &[
    "reminder/explain",
    "reminder/history",
    "roster/list",
    "session/list",
    "session/state",
    "task/list",
];

/// Whether messages of a method are recorded.
pub(super) fn is_recorded(method: &str) -> bool {
    !QUESTIONS.contains(&method) && !method.starts_with("reminderd/")
}

/// The recordings of a state directory, as its commands and its daemon see them.
#[derive(Clone, Debug)]
pub struct Recordings(PathBuf);

/// The recordings of a state directory.
pub fn recordings(state: &Path) -> Recordings {
    Recordings(state.join(DIRECTORY))
}

impl Recordings {
    /// Where they are.
    pub fn directory(&self) -> &Path {
        &self.0
    }

    /// Whether sessions that are opened from now on are recorded.
    pub fn are_on(&self) -> bool {
        self.0.join(MARKER).exists()
    }

    /// Settles whether they are.
    pub fn turn(&self, on: bool) -> io::Result<()> {
        let marker = self.0.join(MARKER);
        if on {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.0)?;
            return File::options().append(true).create(true).mode(0o600).open(marker).map(drop);
        }
        match fs::remove_file(marker) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }

    /// The recordings, the oldest first: their names begin with the time.
    pub fn all(&self) -> io::Result<Vec<PathBuf>> {
        let entries = match fs::read_dir(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let paths = entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
        let is_recording = |path: &PathBuf| path.to_string_lossy().ends_with(ENDING);
        let mut paths: Vec<_> = paths.into_iter().filter(is_recording).collect();
        paths.sort();
        Ok(paths)
    }

    /// Removes those of a session.
    pub fn remove(&self, session: &str) -> io::Result<()> {
        let end = format!("-{:016x}{ENDING}", tag(session));
        let all = self.all()?.into_iter();
        all.filter(|path| path.to_string_lossy().ends_with(&end)).try_for_each(fs::remove_file)
    }

    /// The name of a new one.
    fn path(&self, session: &str, at: Millis) -> PathBuf {
        let time = i64::try_from(at).ok().and_then(|at| jiff::Timestamp::from_millisecond(at).ok());
        let time = time.unwrap_or_default().strftime("%Y%m%dT%H%M%S.%3fZ");
        let plain = |one: char| if one.is_ascii_alphanumeric() { one } else { '_' };
        let name: String = short_name(session, 40).chars().map(plain).collect();
        self.0.join(format!("{time}-{name}-{:016x}{ENDING}", tag(session)))
    }

    /// Removes the oldest beyond what all may have.
    fn prune(&self) -> io::Result<()> {
        let size = |path: &PathBuf| fs::metadata(path).map_or(0, |it| it.len());
        let all = self.all()?;
        let mut bytes: u64 = all.iter().map(size).sum();
        for path in all {
            if bytes <= ALL_BYTES_MAX {
                break;
            }
            bytes -= size(&path);
            fs::remove_file(path)?;
        }
        Ok(())
    }
}

/// The file of a new recording. One that began in the same moment keeps its own.
fn begin_file(path: &Path) -> io::Result<File> {
    let options = || {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        options
    };
    let mut place = path.to_owned();
    for number in 2.. {
        match options().open(&place) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                place = path.with_file_name(name.replacen("Z-", &format!("Z+{number}-"), 1));
            }
            opened => return opened,
        }
    }
    unreachable!("there is always a further number")
}

/// Records sessions, as long as their directory says so.
#[derive(Debug)]
pub struct Recorder {
    recordings: Recordings,
    reels: Mutex<BTreeMap<String, Arc<Reel>>>,
    /// Whether sessions were to be recorded when it was last looked.
    is_awake: AtomicBool,
    backlog: Mutex<Backlog>,
    /// Started with the first recording: no message waits for a disk.
    writer: Mutex<Option<Sender<Writing>>>,
}

enum Writing {
    /// More of a recording.
    Lines(PathBuf, String),
    /// There is nothing more of it.
    End(PathBuf),
    /// Answers when everything so far is written.
    Reached(Sender<()>),
}

impl Recorder {
    /// Records into this directory.
    pub fn new(recordings: Recordings) -> Self {
        Self {
            is_awake: recordings.are_on().into(),
            recordings,
            reels: Mutex::default(),
            backlog: Mutex::default(),
            writer: Mutex::default(),
        }
    }

    /// Hands a message to its handler, and notes what comes of it.
    pub fn call(
        &self,
        daemon: &Arc<Daemon>,
        connection: &Arc<Connection>,
        method: &'static Method,
        params: &str,
        at: Millis,
    ) -> Outcome {
        let call =
            |notes: &Notes| handlers::call(&Call { daemon, connection, method, params, at, notes });
        let reels = self.concerned(daemon, method, params, at);
        let is_kept = is_kept(method.name) && self.is_awake.load(Ordering::Relaxed);
        if reels.is_empty() && !is_kept {
            return call(&Notes::default());
        }
        let mut params: Json = serde_json::from_str(params).unwrap_or_default();
        let is_secret = |path: &str| {
            let slots = reels.iter().filter_map(|(session, _)| daemon.slot(session, at).ok());
            // Whoever is recorded later has the built-in secrets at least.
            Secrecy::default().is_withheld_by_name(Path::new(path))
                || slots.into_iter().any(|slot| slot.files().is_withheld(path))
        };
        withhold(method.name, &mut params, is_secret);
        let client = client(connection);
        if is_kept {
            let (client, params) = (client.clone(), params.clone());
            self.backlog.lock().note(Said { at, client, method: method.name, params });
        }
        let entries = reels.iter().map(|(_, reel)| {
            (Arc::clone(reel), Entry::new(at, client.clone(), method.name, params.clone()))
        });
        let notes = Notes::new(entries.collect::<Vec<_>>());
        let outcome = {
            let _order: Vec<_> = reels.iter().map(|(_, reel)| reel.order.lock()).collect();
            let outcome = call(&notes);
            if !matches!(outcome, Outcome::First(_)) {
                notes.came();
            }
            outcome
        };
        let ends = match method.name {
            // One that cannot be opened is not recorded.
            "session/open" | "session/fork" => Ends::IfItFails,
            "session/close" => Ends::IfItIsDone,
            _ => Ends::Never,
        };
        let sessions = reels.into_iter().map(|(name, _)| name).collect();
        Watched { daemon: Arc::clone(daemon), notes, sessions, ends }.outcome(outcome)
    }

    /// The recordings that a message belongs to, by their sessions; begins one where it opens a session.
    fn concerned(
        &self,
        daemon: &Daemon,
        method: &Method,
        params: &str,
        at: Millis,
    ) -> Vec<(String, Arc<Reel>)> {
        #[derive(Deserialize)]
        struct Names {
            session: Option<String>,
            into: Option<String>,
            token: Option<String>,
            root: Option<String>,
            deny: Option<Vec<String>>,
        }
        if !is_recorded(method.name) {
            return Vec::new();
        }
        let opens = matches!(method.name, "session/open" | "session/fork");
        if !opens && self.reels.lock().is_empty() {
            return Vec::new();
        }
        let Ok(Names { session, into, token, root, deny }) = serde_json::from_str(params) else {
            return Vec::new();
        };
        let session = if method.name == "session/fork" { into } else { session };
        let of_token = || Some(daemon.slot_of_token(&token?)?.lock().id().to_owned());
        match (session, method.name) {
            (Some(session), _) => {
                let mut reels = self.reels.lock();
                let mut reel = reels.get(&session).cloned();
                if reel.is_none() && opens && self.wakes() {
                    let begun = Arc::new(Reel::new(&session, at, self.out(&session, at)));
                    let options = secrecy::Options {
                        deny: deny.unwrap_or_default(),
                        ..secrecy::Options::default()
                    };
                    let root = root.map(|root| identity::path_of(&root));
                    let secrecy = Secrecy::new(root.as_deref().map(Path::new), &options);
                    for Said { at, client, method, mut params } in self.backlog.lock().all() {
                        withhold(method, &mut params, |path| {
                            secrecy.is_withheld_by_name(Path::new(path))
                        });
                        begun.begin_behind(Entry::new(at, client, method, params));
                    }
                    reel = Some(Arc::clone(&begun));
                    reels.insert(session.clone(), begun);
                }
                reel.map(|reel| (session, reel)).into_iter().collect()
            }
            (None, "reminder/commit" | "reminder/release") => {
                let session = of_token();
                let reel = session.and_then(|session| {
                    let reel = self.reels.lock().get(&session).cloned();
                    Some((session, reel?))
                });
                reel.into_iter().collect()
            }
            // What is said of documents and checkers is said to all.
            (None, _) => {
                self.reels.lock().iter().map(|(name, reel)| (name.clone(), reel.clone())).collect()
            }
        }
    }

    /// Whether sessions that are opened now are recorded.
    fn wakes(&self) -> bool {
        let is_on = self.recordings.are_on();
        self.is_awake.store(is_on, Ordering::Relaxed);
        is_on
    }

    /// Where a recording's lines go.
    fn out(&self, session: &str, at: Millis) -> Box<dyn Out> {
        let path = self.recordings.path(session, at);
        let writer = self.writer.lock().get_or_insert_with(|| begin(&self.recordings)).clone();
        Box::new(Tape { path, writer })
    }

    /// The recording of a session.
    pub fn reel(&self, session: &str) -> Option<Arc<Reel>> {
        self.reels.lock().get(session).cloned()
    }

    /// A client is gone.
    pub fn closed(&self, client: u64) {
        self.backlog.lock().disconnect(client);
        let reels: Vec<_> = self.reels.lock().values().cloned().collect();
        for reel in reels {
            let _order = reel.order.lock();
            reel.closed(client);
        }
    }

    /// There is nothing more of a session.
    fn end_of(&self, session: &str) {
        let reel = self.reels.lock().remove(session);
        if let Some(reel) = reel {
            reel.finish();
        }
    }

    /// A session could not be opened: nothing of it is recorded unless it was before.
    fn failed(&self, session: &str) {
        let mut reels = self.reels.lock();
        if reels.get(session).is_some_and(|reel| reel.give_up_if_blank()) {
            reels.remove(session);
        }
    }

    /// Writes what is there, within this time: the process ends.
    pub fn end(&self, patience: Duration) {
        let reels = std::mem::take(&mut *self.reels.lock());
        reels.values().for_each(|reel| reel.finish());
        if let Some(writer) = self.writer.lock().take() {
            let (sender, reached) = channel();
            drop(writer.send(Writing::Reached(sender)));
            _ = reached.recv_timeout(patience);
        }
    }
}

/// One recording, on its way to its file.
struct Tape {
    path: PathBuf,
    writer: Sender<Writing>,
}

// Where the writer is gone, there is nothing to be done.
impl Out for Tape {
    fn write(&self, lines: String) {
        drop(self.writer.send(Writing::Lines(self.path.clone(), lines)));
    }
}

impl Drop for Tape {
    fn drop(&mut self) {
        drop(self.writer.send(Writing::End(std::mem::take(&mut self.path))));
    }
}

/// What becomes of a recording with a message.
#[derive(Clone, Copy)]
enum Ends {
    Never,
    IfItFails,
    IfItIsDone,
}

/// A message that is recorded, on its way to its answer.
struct Watched {
    daemon: Arc<Daemon>,
    notes: Notes,
    sessions: Vec<String>,
    ends: Ends,
}

impl Watched {
    fn outcome(self, outcome: Outcome) -> Outcome {
        match outcome {
            Outcome::Now(answer) => {
                self.answered(&answer);
                Outcome::Now(answer)
            }
            Outcome::Applied(future) => {
                self.notes.effected();
                self.end(true);
                Outcome::Applied(future)
            }
            Outcome::Later(future) => {
                // It may be cancelled before anybody asks for its answer.
                let unanswered = Unanswered(Some(self));
                Outcome::Later(Box::pin(async move {
                    let answer = future.await;
                    unanswered.answered(&answer);
                    answer
                }))
            }
            Outcome::First(future) => Outcome::First(Box::pin(async move {
                let outcome = future.await;
                self.notes.came();
                self.outcome(outcome)
            })),
        }
    }

    fn answered(&self, answer: &Answer) {
        self.notes.answered(self.daemon.now(), answer);
        self.end(answer.is_ok());
    }

    fn end(&self, is_done: bool) {
        let Some(recorder) = self.daemon.recorder() else { return };
        for session in &self.sessions {
            match self.ends {
                Ends::IfItFails if !is_done => recorder.failed(session),
                Ends::IfItIsDone if is_done => recorder.end_of(session),
                _ => {}
            }
        }
    }
}

/// A message whose answer is being worked on. Dropped before that, it was cancelled.
struct Unanswered(Option<Watched>);

impl Unanswered {
    fn answered(mut self, answer: &Answer) {
        if let Some(watched) = self.0.take() {
            watched.answered(answer);
        }
    }
}

impl Drop for Unanswered {
    fn drop(&mut self) {
        if let Some(watched) = &self.0 {
            watched.notes.cancelled();
        }
    }
}

/// The client of a connection, with what sessions depend on.
fn client(connection: &Connection) -> Client {
    let request = connection.client();
    let options = request.map_or(&Json::Null, |request| &request.options);
    let named = |name: &Json| name.as_str().map(str::to_owned);
    let name = named(&options["client"]["name"])
        .or_else(|| request?.client.as_ref().map(|(name, _)| name.clone()));
    let mut kept = serde_json::Map::new();
    for option in ["config", "trusted"] {
        if !options[option].is_null() {
            kept.insert(option.to_owned(), options[option].clone());
        }
    }
    let options = if kept.is_empty() { Json::Null } else { kept.into() };
    Client { id: connection.id(), name, options }
}

/// Takes out what a recording does not hold: texts of files that are read or written, of which it has
/// what the daemon saw, and any of secret ones.
fn withhold(method: &str, params: &mut Json, is_secret: impl Fn(&str) -> bool) {
    let subject = match method {
        "file/read" | "file/wrote" => {
            if let Some(members) = params.as_object_mut() {
                members.remove("text");
            }
            return;
        }
        "mention/add" => &params["target"],
        "textDocument/didChange" | "textDocument/didOpen" | "textDocument/didSave" => {
            &params["textDocument"]["uri"]
        }
        _ => return,
    };
    let path = subject.as_str().map(identity::path_of);
    if !path.is_some_and(|path| is_secret(&path)) {
        return;
    }
    for (place, nothing) in [
        ("/content", Json::from("")),
        ("/text", Json::from("")),
        ("/textDocument/text", Json::from("")),
        ("/contentChanges", Json::Array(Vec::new())),
    ] {
        if let Some(member) = params.pointer_mut(place)
            && !member.is_null()
        {
            *member = nothing;
        }
    }
}

/// Where recordings are written.
fn begin(recordings: &Recordings) -> Sender<Writing> {
    let (sender, receiver) = channel();
    let recordings = recordings.clone();
    let writer = move || write(&recordings, &receiver);
    if let Err(error) = thread::Builder::new().name("recorder".to_owned()).spawn(writer) {
        tracing::error!(%error, "nothing is recorded");
    }
    sender
}

fn write(recordings: &Recordings, receiver: &Receiver<Writing>) {
    let mut files: BTreeMap<PathBuf, File> = BTreeMap::new();
    for writing in receiver {
        let written = match writing {
            Writing::Lines(path, lines) => add(recordings, &mut files, path, &lines),
            Writing::End(path) => {
                files.remove(&path);
                Ok(())
            }
            Writing::Reached(sender) => {
                // Whoever waited may have given up.
                _ = sender.send(());
                Ok(())
            }
        };
        if let Err(error) = written {
            tracing::warn!(%error, "a part of a recording could not be written");
        }
    }
}

fn add(
    recordings: &Recordings,
    files: &mut BTreeMap<PathBuf, File>,
    path: PathBuf,
    lines: &str,
) -> io::Result<()> {
    let file = match files.entry(path) {
        std::collections::btree_map::Entry::Occupied(known) => known.into_mut(),
        std::collections::btree_map::Entry::Vacant(place) => {
            recordings.prune()?;
            let file = begin_file(place.key())?;
            place.insert(file)
        }
    };
    file.write_all(lines.as_bytes())
}
