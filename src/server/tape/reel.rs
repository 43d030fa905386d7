//! One session's recording: the order in which messages took effect, and the script that is made of it.
//!
//! A line can only be written once everything is known that was seen for its message, and one that was
//! answered later than the next message came stands as a `send` and an `await`. So what happened waits
//! in a queue, whose front is written as soon as it is complete.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use reminderd_protocol::error::ErrorKind;
use serde::Serialize;
use serde_json::{Map, Value as Json, json};

use super::glimpse::Glimpse;
use super::played::{Client, Ledger};
use crate::engine::{Line, Material, Millis};
use crate::server::Answer;
use crate::server::configured::Standing;
use crate::server::surroundings::EPOCH;

/// How large a recording becomes, in bytes.
const BYTES_MAX: usize = 64 << 20;
/// How much may wait for something in front of it to be complete, in messages.
const WAITING_MAX: usize = 10_000;

/// The error of a request that was cancelled.
const REQUEST_CANCELLED: i64 = ErrorKind::RequestCancelled.code();

/// Where a recording's lines go. Dropped when there are no more.
pub trait Out: Send {
    /// Takes lines, each ended by a newline.
    fn write(&self, lines: String);
}

/// One session's recording.
pub struct Reel {
    /// Held while a message takes effect, so that the order of the lines is that of the effects.
    pub order: Mutex<()>,
    script: Mutex<Script>,
}

impl std::fmt::Debug for Reel {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Reel").finish_non_exhaustive()
    }
}

/// A message, and what was seen with it.
#[derive(Debug)]
pub struct Entry {
    /// When it came.
    pub at: Millis,
    /// From whom.
    pub client: Client,
    /// Its method.
    pub method: &'static str,
    /// Its params.
    pub params: Json,
    /// Whether its answer can be expected again.
    pub is_expected: AtomicBool,
    seen: Mutex<Seen>,
    /// Whether all was seen.
    is_complete: AtomicBool,
    outcome: Mutex<Option<Outcome>>,
}

/// What the daemon was given with a message.
#[derive(Debug, Default)]
struct Seen {
    random: Option<Material>,
    ledger: Option<Ledger>,
    /// Another session that has to be open.
    source: Option<String>,
    configuration: Option<Vec<Standing>>,
    glimpses: Vec<Glimpse>,
    /// What the client's generators answered: bodies, or nothing in time.
    generators: Vec<(String, Computed)>,
}

/// What a generator of the client's answered.
#[derive(Clone, Debug, Serialize)]
pub enum Computed {
    /// A body.
    Body(String),
    /// That it has nothing to say.
    Nothing,
    /// Nothing in time.
    Late,
}

/// How a message ended.
#[derive(Clone, Debug)]
enum Outcome {
    /// It was answered at this time.
    Answered(Millis, Result<Json, i64>),
    /// It took effect, and nobody waited for more.
    Effected,
    /// Its answer was not waited for any more.
    Cancelled,
}

/// What happened, in order.
#[derive(Debug)]
enum Item {
    Came(Arc<Entry>),
    Ended(Arc<Entry>),
    /// A client is gone.
    Closed(u64),
    /// Configuration files say something else.
    Configured(Millis, Vec<Standing>),
}

impl Entry {
    /// A message that came.
    pub fn new(at: Millis, client: Client, method: &'static str, params: Json) -> Self {
        Self {
            at,
            client,
            method,
            params,
            is_expected: AtomicBool::new(true),
            seen: Mutex::default(),
            is_complete: AtomicBool::new(false),
            outcome: Mutex::default(),
        }
    }

    /// As a script expects the answer, if it does.
    fn expectation(&self, outcome: &Outcome) -> Option<(&'static str, Json)> {
        match outcome {
            _ if !self.is_expected.load(Ordering::Relaxed) => None,
            Outcome::Answered(_, Err(code)) => Some(("expectError", json!(code))),
            Outcome::Answered(_, Ok(Json::Null)) | Outcome::Effected | Outcome::Cancelled => None,
            Outcome::Answered(_, Ok(answer)) => Some(("expect", expected(answer))),
        }
    }
}

/// What is noted of a message, by whoever deals with it. Nothing where nothing is recorded.
#[derive(Clone, Debug, Default)]
pub struct Notes(Vec<Arc<Note>>);

/// A message of one recording; complete when nobody notes anything of it any more.
#[derive(Debug)]
struct Note {
    entry: Arc<Entry>,
    reel: Arc<Reel>,
}

impl Drop for Note {
    fn drop(&mut self) {
        self.entry.is_complete.store(true, Ordering::Release);
        self.reel.write();
    }
}

impl Notes {
    /// Notes of a message in recordings.
    pub fn new(entries: impl IntoIterator<Item = (Arc<Reel>, Entry)>) -> Self {
        let note = |(reel, entry)| Arc::new(Note { entry: Arc::new(entry), reel });
        Self(entries.into_iter().map(note).collect())
    }

    fn each(&self, note: impl Fn(&mut Seen)) {
        self.0.iter().for_each(|it| note(&mut it.entry.seen.lock()));
    }

    /// Whether nobody records.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Something was seen of files.
    pub fn see(&self, glimpse: impl FnOnce() -> Glimpse) {
        if !self.is_empty() {
            let glimpse = glimpse();
            self.each(|seen| seen.glimpses.push(glimpse.clone()));
        }
    }

    /// The randomness of a WAIT.
    pub fn random(&self, material: &Material) {
        self.each(|seen| seen.random = Some(material.clone()));
    }

    /// What was kept of a session before.
    pub fn ledger(&self, session: &str, line: impl Fn() -> Line) {
        self.each(|seen| {
            seen.ledger = Some(Ledger { session: session.to_owned(), lines: vec![line()] });
        });
    }

    /// The session that is forked. It is opened in a recording of the fork, as it is kept.
    pub fn source(&self, session: &str, line: impl Fn() -> Line) {
        self.ledger(session, line);
        self.each(|seen| seen.source = Some(session.to_owned()));
    }

    /// A session that is live was joined. The recording begins with what is kept of it, if it begins
    /// here.
    pub fn joined(&self, session: &str, line: impl Fn() -> Line) {
        for Note { entry, reel } in self.0.iter().map(AsRef::as_ref) {
            if reel.is_blank() {
                let lines = vec![line()];
                entry.seen.lock().ledger = Some(Ledger { session: session.to_owned(), lines });
                // It is restored there.
                entry.is_expected.store(false, Ordering::Relaxed);
            }
        }
    }

    /// What stands in the session's configuration files.
    pub fn configured(&self, standing: impl Fn() -> Vec<Standing>) {
        self.each(|seen| seen.configuration = Some(standing()));
    }

    /// What a generator of the client's answered.
    pub fn computed(&self, generator: &str, answer: &Computed) {
        self.each(|seen| seen.generators.push((generator.to_owned(), answer.clone())));
    }

    /// The message takes effect behind all that came so far.
    pub fn came(&self) {
        for Note { entry, reel } in self.0.iter().map(AsRef::as_ref) {
            reel.push(Item::Came(Arc::clone(entry)));
        }
    }

    /// It was answered.
    pub fn answered(&self, at: Millis, answer: &Answer) {
        let answer = match answer {
            // What is answered is JSON.
            Ok(answer) => Ok(serde_json::from_str(answer.get()).unwrap_or_default()),
            Err(error) => Err(error.code),
        };
        self.end(&Outcome::Answered(at, answer));
    }

    /// It took effect, whole.
    pub fn effected(&self) {
        self.end(&Outcome::Effected);
    }

    /// Nobody waits for its answer any more.
    pub fn cancelled(&self) {
        self.end(&Outcome::Cancelled);
    }

    fn end(&self, outcome: &Outcome) {
        for Note { entry, reel } in self.0.iter().map(AsRef::as_ref) {
            *entry.outcome.lock() = Some(outcome.clone());
            reel.push(Item::Ended(Arc::clone(entry)));
        }
    }
}

impl Reel {
    /// A recording that goes to this place.
    pub fn new(session: &str, at: Millis, out: Box<dyn Out>) -> Self {
        Self { order: Mutex::default(), script: Mutex::new(Script::new(session, at, out)) }
    }

    /// A message that came before the recording began, and still holds.
    pub fn begin_behind(&self, entry: Entry) {
        entry.is_complete.store(true, Ordering::Release);
        *entry.outcome.lock() = Some(Outcome::Effected);
        let entry = Arc::new(entry);
        let mut script = self.script.lock();
        script.before += 2;
        script.queue.extend([Item::Came(Arc::clone(&entry)), Item::Ended(entry)]);
    }

    /// Whether nothing of the session itself was written or waits yet.
    fn is_blank(&self) -> bool {
        let script = self.script.lock();
        script.header.is_some() && script.queue.len() == script.before
    }

    /// Gives it up if nothing was written yet, and says so.
    pub fn give_up_if_blank(&self) -> bool {
        let mut script = self.script.lock();
        let is_blank = script.header.is_some();
        if is_blank {
            script.is_full = true;
            script.queue.clear();
        }
        is_blank
    }

    fn push(&self, item: Item) {
        self.script.lock().push(item);
    }

    /// Writes what is complete.
    fn write(&self) {
        self.script.lock().write(false);
    }

    /// Writes everything, complete or not: nothing follows.
    pub fn finish(&self) {
        self.script.lock().write(true);
    }

    /// A client is gone.
    pub fn closed(&self, client: u64) {
        self.push(Item::Closed(client));
        self.write();
    }

    /// Configuration files say something else, which the session takes over now.
    pub fn configured(&self, at: Millis, standing: Vec<Standing>) {
        self.push(Item::Configured(at, standing));
        self.write();
    }
}

/// A step of a script, its verb first.
type Step = Vec<(&'static str, Json)>;

/// The script as it is written.
struct Script {
    out: Box<dyn Out>,
    /// What is written in front of the first line.
    header: Option<String>,
    queue: VecDeque<Item>,
    /// How many of them came before the recording began.
    before: usize,
    /// Entries whose `send` stands in the script, by their addresses, with the names of the answers.
    sent: BTreeMap<usize, String>,
    names: u64,
    /// Where the script's clock stands.
    now: Millis,
    /// The clients that the script introduced.
    clients: BTreeSet<u64>,
    speaks: Option<u64>,
    /// What the script says of files, configuration and generators, so that nothing is said twice.
    said: BTreeMap<String, blake3::Hash>,
    bytes: usize,
    is_full: bool,
}

impl Script {
    fn new(session: &str, at: Millis, out: Box<dyn Out>) -> Self {
        let header = json!({
            "reminderd": env!("CARGO_PKG_VERSION"), "session": session, "at": at,
        });
        let initialize = json!({ "initialize": { "protocolVersion": 1, "problems": false } });
        Self {
            out,
            header: Some(format!("# {header}\n{initialize}\n")),
            queue: VecDeque::new(),
            before: 0,
            sent: BTreeMap::new(),
            names: 0,
            now: EPOCH,
            clients: BTreeSet::new(),
            speaks: None,
            said: BTreeMap::new(),
            bytes: 0,
            is_full: false,
        }
    }

    fn push(&mut self, item: Item) {
        if self.is_full {
            return;
        }
        self.queue.push_back(item);
        if self.queue.len() > WAITING_MAX {
            self.write(true);
        }
    }

    fn write(&mut self, is_last: bool) {
        while let Some(item) = self.queue.pop_front() {
            let is_done = self.item(&item, is_last);
            if !is_done {
                self.queue.push_front(item);
                return;
            }
        }
    }

    /// Writes what happened; `false` while too little is known of it.
    fn item(&mut self, item: &Item, is_last: bool) -> bool {
        match item {
            Item::Came(entry) => return self.came(entry, is_last),
            Item::Ended(entry) => {
                let Some(name) = self.sent.remove(&address(entry)) else { return true };
                let outcome = entry.outcome.lock().clone().unwrap_or(Outcome::Effected);
                let mut step = vec![("await", Json::from(name))];
                match &outcome {
                    Outcome::Answered(at, _) => self.clock(*at),
                    Outcome::Effected => {}
                    Outcome::Cancelled => {
                        step.push(("cancel", true.into()));
                        step.push(("expectError", REQUEST_CANCELLED.into()));
                    }
                }
                step.extend(entry.expectation(&outcome));
                self.step(step);
            }
            Item::Closed(client) => {
                if self.clients.remove(client) {
                    self.surroundings(&json!({ "closed": client }));
                    if self.speaks == Some(*client) {
                        self.speaks = None;
                    }
                }
            }
            Item::Configured(at, standing) => {
                self.clock(*at);
                if let Some(standing) = self.standing(standing) {
                    self.surroundings(&json!({ "configuration": standing }));
                }
            }
        }
        true
    }

    fn came(&mut self, entry: &Arc<Entry>, is_last: bool) -> bool {
        if !is_last && !entry.is_complete.load(Ordering::Acquire) {
            return false;
        }
        let is_own = |item: &Item| matches!(item, Item::Ended(other) if Arc::ptr_eq(entry, other));
        let ended_at_once = self.queue.front().is_some_and(is_own);
        if !ended_at_once && self.queue.is_empty() && !is_last {
            return false;
        }
        let outcome = entry.outcome.lock().clone().filter(|_| ended_at_once);
        self.introduce(entry);
        let is_of_one_step = match (&outcome, entry.method) {
            (Some(Outcome::Cancelled), method) => method == "reminder/wait",
            // What waits for the time to pass needs it to pass.
            (Some(Outcome::Answered(at, _)), "edit/settle") => *at == entry.at,
            (outcome, _) => outcome.is_some(),
        };
        let step = match outcome {
            Some(outcome) if is_of_one_step => {
                self.queue.pop_front();
                plain(entry, &outcome)
            }
            _ => {
                self.names += 1;
                let name = format!("m{}", self.names);
                self.sent.insert(address(entry), name.clone());
                let params = escaped(&entry.params);
                vec![("send", entry.method.into()), ("params", params), ("as", name.into())]
            }
        };
        self.step(step);
        true
    }

    /// Says all that holds when a message comes.
    fn introduce(&mut self, entry: &Entry) {
        self.clock(entry.at);
        let mut given = Map::new();
        let Client { id, name, options } = &entry.client;
        if self.speaks.replace(*id) != Some(*id) {
            let is_new = self.clients.insert(*id);
            let known = Client {
                id: *id,
                name: name.clone().filter(|_| is_new),
                options: if is_new { options.clone() } else { Json::Null },
            };
            given.insert("connection".to_owned(), json!(known));
        }
        let Seen { random, ledger, source, configuration, glimpses, generators } =
            std::mem::take(&mut *entry.seen.lock());
        if let Some(Material { token, record }) = random {
            given.insert("random".to_owned(), json!({ "token": token, "record": record }));
        }
        if let Some(ledger) = ledger {
            given.insert("ledger".to_owned(), json!(ledger));
        }
        let standing = configuration.and_then(|standing| self.standing(&standing));
        given.extend(standing.map(|it| ("configuration".to_owned(), it)));
        let seen: Vec<_> = glimpses
            .into_iter()
            .filter(|glimpse| self.is_news(&glimpse.subject(), glimpse))
            .map(|glimpse| json!(glimpse))
            .collect();
        if !seen.is_empty() {
            given.insert("seen".to_owned(), seen.into());
        }
        if let Some(Outcome::Cancelled) = &*entry.outcome.lock() {
            given.insert("unanswered".to_owned(), true.into());
        }
        if !given.is_empty() {
            self.surroundings(&given.into());
        }
        if let Some(source) = source {
            let params = escaped(&json!({ "session": source }));
            self.step(vec![("open", params)]);
        }
        for (generator, answer) in generators {
            if self.is_news(&format!("generator {generator}"), &answer) {
                let step = match answer {
                    Computed::Body(body) => json!({ "generator": generator, "body": body }),
                    Computed::Nothing => json!({ "generator": generator, "body": null }),
                    Computed::Late => json!({ "generator": generator, "silent": true }),
                };
                self.line(&step.to_string());
            }
        }
    }

    /// Whether the script does not say so yet.
    fn is_news(&mut self, subject: &str, what: &impl Serialize) -> bool {
        // What is recorded is plain data.
        let text = serde_json::to_string(what).unwrap_or_default();
        let hash = blake3::hash(text.as_bytes());
        self.said.insert(subject.to_owned(), hash) != Some(hash)
    }

    fn standing(&mut self, standing: &[Standing]) -> Option<Json> {
        self.is_news("configuration", &standing).then(|| json!(standing))
    }

    fn clock(&mut self, at: Millis) {
        // The system's clock may have been set back; the script's only goes forward.
        let by = at.saturating_sub(self.now);
        if by > 0 {
            self.now = at;
            self.line(&json!({ "clock": format!("+{by}ms") }).to_string());
        }
    }

    fn surroundings(&mut self, given: &Json) {
        // Escaped like all params of a script.
        self.line(&json!({ "surroundings": escaped(given) }).to_string());
    }

    fn step(&mut self, step: Step) {
        let members = step.into_iter().map(|(name, value)| format!("\"{name}\":{value}"));
        self.line(&format!("{{{}}}", members.collect::<Vec<_>>().join(",")));
    }

    fn line(&mut self, text: &str) {
        if self.is_full {
            return;
        }
        if let Some(header) = self.header.take() {
            self.out.write(header);
        }
        self.bytes += text.len() + 1;
        if self.bytes > BYTES_MAX {
            self.is_full = true;
            self.queue.clear();
            let end = format!("# It ends here: a recording has {BYTES_MAX} bytes at most.\n");
            return self.out.write(end);
        }
        self.out.write(format!("{text}\n"));
    }
}

/// A step that is answered before the next message comes.
fn plain(entry: &Entry, outcome: &Outcome) -> Step {
    let params = escaped(&entry.params);
    let mut step = match entry.method {
        "session/open" => vec![("open", params)],
        "reminder/wait" => vec![("wait", params)],
        "reminder/commit" => vec![("commit", params)],
        "reminder/release" => vec![("release", params)],
        method => vec![("request", method.into()), ("params", params)],
    };
    if let Outcome::Cancelled = outcome {
        step.push(("cancel", true.into()));
    }
    step.extend(entry.expectation(outcome));
    step
}

/// Tells entries apart as long as they live.
fn address(entry: &Arc<Entry>) -> usize {
    Arc::as_ptr(entry).addr()
}

/// A value as params of a script: text with a leading `$` takes two.
fn escaped(value: &Json) -> Json {
    match value {
        Json::String(text) if text.starts_with('$') => format!("${text}").into(),
        Json::Array(elements) => elements.iter().map(escaped).collect(),
        Json::Object(members) => {
            members.iter().map(|(name, value)| (name.clone(), escaped(value))).collect()
        }
        scalar => scalar.clone(),
    }
}

/// An answer as an expectation of it. What would be read as a matcher is not looked into.
fn expected(value: &Json) -> Json {
    match value {
        Json::Array(elements) => elements.iter().map(expected).collect(),
        Json::Object(members) if members.keys().any(|name| name.starts_with('$')) => {
            json!({ "$any": true })
        }
        Json::Object(members) => {
            members.iter().map(|(name, value)| (name.clone(), expected(value))).collect()
        }
        scalar => escaped(scalar),
    }
}
