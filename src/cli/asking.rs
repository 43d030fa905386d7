//! How a command asks what there is: the running daemon over its socket, else the store, which is
//! opened to be read and owned by nobody meanwhile.
//!
//! A session that no shared daemon has open is asked about in the same words: a daemon within this
//! process restores it from what is stored, in memory, and leaves the store as it is.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use reminderd_protocol::error::ErrorObject;
use reminderd_protocol::session::{SessionLife, SessionSummary};
use semver::Version;
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Value as Json, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader, duplex, split,
};
use tokio::runtime::Runtime;
use tokio::time::timeout;

use super::connect::served;
use super::paint;
use super::run::script::did_you_mean;
use super::serve::SharingArguments;
use crate::configuration::users_file;
use crate::engine::{Millis, short_name};
use crate::server::endpoint::{Endpoint, Stream};
use crate::server::handshake::{Answer, greet};
use crate::server::{ConfigurationFiles, Daemon, Limits, Served, Surroundings, serve};
use crate::store::{Archive, Holder, MemoryStore, Store as _, default_directory};

/// How long an answer may take: longer than the daemon's own work on files.
pub const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes on their way between this process and the daemon within it.
const DUPLEX_BYTES: usize = 64 * 1024;
/// The id of the request that every connection begins with.
const INITIALIZE: u64 = 1;
/// How many sessions a message names.
const NAMED: usize = 10;

/// Which store a command is about.
#[derive(Clone, Debug, Args)]
pub struct PlaceArguments {
    /// The state directory, instead of `$XDG_STATE_HOME/reminderd` or `~/.local/state/reminderd`
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
}

impl PlaceArguments {
    /// The directory, spelled as the daemon spells it. Makes nothing.
    pub fn directory(&self) -> Result<PathBuf, String> {
        let directory = self.state.clone().or_else(default_directory).ok_or_else(|| {
            "neither XDG_STATE_HOME nor HOME says where things are kept: name the directory with \
             --state"
                .to_owned()
        })?;
        let spelled = directory.canonicalize().or_else(|_| std::path::absolute(&directory));
        Ok(spelled.unwrap_or(directory))
    }

    /// The store; `None` where nothing was kept yet.
    pub fn archive(&self) -> Result<Option<Archive>, String> {
        Archive::open(&self.directory()?).map_err(|error| error.to_string())
    }

    /// The store, for a command that is nothing without one.
    pub fn needed_archive(&self) -> Result<Archive, String> {
        self.archive()?.ok_or_else(|| match self.directory() {
            Ok(directory) => format!(
                "there is no store in {} yet: a daemon makes one when a session is opened (name \
                 another with --state)",
                directory.display()
            ),
            Err(error) => error,
        })
    }

    /// The shared daemon, if one runs. Each of its answers may take so long.
    pub fn daemon(&self, patience: Duration) -> Result<Option<Client>, String> {
        let directory = self.directory()?;
        Client::of_daemon(&directory, patience).map_err(|error| {
            format!("the daemon of {} does not answer: {error}", directory.display())
        })
    }
}

/// A session as it stands.
#[derive(Clone, Debug)]
pub struct Known {
    /// Its name.
    pub session: String,
    /// Its root directory.
    pub root: Option<String>,
    /// Who has it.
    pub life: Life,
    /// The root's open turn, where the shared daemon has it.
    pub turn: Option<String>,
    /// How many tokens are open, where the shared daemon has it.
    pub open_tokens: u64,
    /// When it was last used.
    pub active: Millis,
    /// When it was first opened, where it is stored.
    pub opened: Option<Millis>,
    /// How many requests went out, where it is stored.
    pub requests: u64,
}

/// Who has a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Life {
    /// The shared daemon has it open.
    Open,
    /// A daemon that cannot be asked has it open: one of a single client.
    Held(Holder),
    /// It is only stored.
    Stored,
}

/// All sessions, by name: those of the daemon, and those of the store.
pub fn known(daemon: Option<&mut Client>, archive: Option<&Archive>) -> Result<Vec<Known>, String> {
    let stored = archive.map(Archive::sessions).transpose().map_err(|error| error.to_string())?;
    let mut all: Vec<_> = stored
        .unwrap_or_default()
        .into_iter()
        .map(|one| Known {
            session: one.session,
            root: one.root,
            life: one.holder.map_or(Life::Stored, Life::Held),
            turn: None,
            open_tokens: 0,
            active: one.active,
            opened: Some(one.opened),
            requests: one.commits,
        })
        .collect();
    let Some(daemon) = daemon else { return Ok(all) };
    let listed: Vec<SessionSummary> = daemon.ask("session/list", &json!({}))?;
    for one in listed.into_iter().filter(|one| one.state == SessionLife::Live) {
        let place = all.iter().position(|known| known.session == one.session);
        let stored = place.map(|place| all.swap_remove(place));
        all.push(Known {
            session: one.session,
            root: one.root,
            life: Life::Open,
            turn: one.turn,
            open_tokens: one.open_tokens,
            active: one.last_active,
            opened: stored.as_ref().and_then(|stored| stored.opened),
            requests: stored.map_or(0, |stored| stored.requests),
        });
    }
    all.sort_by(|one, two| one.session.cmp(&two.session));
    Ok(all)
}

/// The session that is meant: the one of this name; without a name the only one, else the one that
/// was used last of those whose root holds the current directory.
pub fn choose<'a>(known: &'a [Known], name: Option<&str>) -> Result<&'a Known, String> {
    let here = std::env::current_dir().ok();
    let mut newest: Vec<_> = known.iter().collect();
    newest.sort_by_key(|one| std::cmp::Reverse(one.active));
    if let Some(name) = name {
        return known.iter().find(|one| one.session == name).ok_or_else(|| {
            let names: Vec<_> = known.iter().map(|one| &*one.session).collect();
            let hint = did_you_mean(name, &names);
            format!("there is no session {:?}{hint}: {}", short_name(name, 100), named(&newest))
        });
    }
    if let [only] = known {
        return Ok(only);
    }
    let holds = |one: &&&Known| {
        let (Some(here), Some(root)) = (&here, &one.root) else { return false };
        Path::new(root).canonicalize().is_ok_and(|root| here.starts_with(root))
    };
    newest.iter().find(holds).copied().ok_or_else(|| match newest.len() {
        0 => "there are no sessions yet".to_owned(),
        _ => format!("which session? None has its root here: {}", named(&newest)),
    })
}

/// The sessions that were used last, to choose from.
fn named(newest: &[&Known]) -> String {
    if newest.is_empty() {
        return "there are none yet".to_owned();
    }
    let mut list = "name one of".to_owned();
    for one in newest.iter().take(NAMED) {
        list.push_str(&format!("\n  {}", short_name(&one.session, 100)));
        if let Some(root) = &one.root {
            list.push_str(&format!("  ({})", short_name(root, 100)));
        }
    }
    if newest.len() > NAMED {
        list.push_str(&format!(
            "\n  and {} more, which `reminderd sessions` lists",
            newest.len() - NAMED
        ));
    }
    list
}

/// Whoever can answer for a session: the shared daemon that has it open, else one within this process
/// that restores it. Says on stderr when that is not all there is to know.
pub fn client_of(
    known: &Known,
    daemon: Option<Client>,
    archive: Option<&Archive>,
) -> Result<Client, String> {
    match (&known.life, daemon, archive) {
        (Life::Open, Some(daemon), _) => Ok(daemon),
        (life, _, Some(archive)) => {
            if let Life::Held(holder) = life {
                paint::remark(&format!(
                    "session {:?} is open in {holder}, a daemon of one client, which cannot be \
                     asked: this is what it has stored",
                    short_name(&known.session, 100)
                ));
            }
            Client::of_stored(archive, &known.session)
        }
        (_, _, None) => Err("the store is gone: try again".to_owned()),
    }
}

/// A connection to a daemon.
pub struct Client {
    input: BufReader<Box<dyn AsyncRead + Send + Unpin>>,
    output: Box<dyn AsyncWrite + Send + Unpin>,
    /// What goes out with the next request.
    unsent: String,
    last: u64,
    patience: Duration,
    version: String,
    /// Ends last, and waits for nothing.
    runtime: Option<Runtime>,
}

/// What a request was answered with.
pub type Answered = Result<Json, ErrorObject>;

#[derive(Deserialize)]
struct Response {
    /// Only the daemon's own requests and notifications have one.
    method: Option<IgnoredAny>,
    id: Option<u64>,
    #[serde(default)]
    result: Json,
    error: Option<ErrorObject>,
}

impl Client {
    fn of_daemon(state: &Path, patience: Duration) -> io::Result<Option<Self>> {
        let endpoint = Endpoint::named(Some(state))?;
        let runtime = runtime()?;
        // Of no version: a daemon that is older than this build is not to hand over to it.
        let nobody = Version::new(0, 0, 0);
        let met = async {
            let Some((mut stream, _)) = endpoint.dial().await? else { return Ok(None) };
            let (answer, _) = greet(&mut stream, &nobody, None).await?;
            Ok::<_, io::Error>(Some((stream, answer)))
        };
        let met = runtime.block_on(async { timeout(patience, met).await });
        match met.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?? {
            None | Some((_, Answer::Moved | Answer::Ended)) => Ok(None),
            // On the port of a daemon that is gone listens somebody else.
            Some((stream, Answer::Refused)) if stream.secret.is_some() => Ok(None),
            Some((_, Answer::Refused)) => Err(io::Error::other("it refused this client")),
            Some((_, Answer::Full)) => {
                Err(io::Error::other("it serves as many clients as it can (try again)"))
            }
            Some((stream, Answer::Welcome)) => {
                let mut client = Self::greeted(runtime, stream, patience);
                client.wait_until_initialized().map_err(io::Error::other)?;
                Ok(Some(client))
            }
        }
    }

    /// A connection to the shared daemon, which is started when it is not there. It takes one round
    /// trip only: whoever asks for it has no time.
    pub fn of_started(sharing: &SharingArguments, patience: Duration) -> Result<Self, String> {
        let runtime = runtime().map_err(|error| error.to_string())?;
        let met = || {
            let endpoint = Endpoint::of(sharing.keeping.directory().as_deref())?;
            runtime.block_on(served(&endpoint, sharing))
        };
        let met = met().map_err(|error: io::Error| format!("no shared daemon: {error}"))?;
        Ok(Self::greeted(runtime, met.stream, patience))
    }

    /// A daemon within this process, with one session as it is stored.
    fn of_stored(archive: &Archive, session: &str) -> Result<Self, String> {
        let lines = archive.lines(session).map_err(|error| error.to_string())?;
        let store = MemoryStore::default();
        let (lease, _) = store.acquire(session, 0, None, &lines);
        drop(store.release(&lease, 0));
        let configuration = ConfigurationFiles::new(users_file());
        let daemon = Daemon::new(Surroundings::System, Arc::new(store)).reading(configuration);
        let runtime = runtime().map_err(|error| error.to_string())?;
        let (ours, theirs) = duplex(DUPLEX_BYTES);
        let (input, output) = split(theirs);
        let served = Arc::new(Served(Arc::new(daemon)));
        runtime.spawn(async move { serve(served, input, output, Limits::default()).await });
        let (input, output) = split(ours);
        let stream = Stream { input: Box::new(input), output: Box::new(output), secret: None };
        let mut client = Self::greeted(runtime, stream, PATIENCE);
        client.wait_until_initialized()?;
        let _: Json = client.ask("session/open", &json!({ "session": session }))?;
        Ok(client)
    }

    /// A connection to a daemon that serves this client. What initializes it goes out with the first
    /// request, whose answer comes behind that one's.
    fn greeted(runtime: Runtime, stream: Stream, patience: Duration) -> Self {
        let Stream { input, output, .. } = stream;
        let options = json!({ "client": { "name": "reminderd" }, "problems": false });
        let params = json!({ "capabilities": {}, "initializationOptions": options });
        let initialize = json!({
            "jsonrpc": "2.0", "id": INITIALIZE, "method": "initialize", "params": params,
        });
        let initialized = json!({ "jsonrpc": "2.0", "method": "initialized", "params": {} });
        Self {
            input: BufReader::new(input),
            output,
            unsent: format!("{initialize}\n{initialized}\n"),
            last: INITIALIZE,
            patience,
            version: String::new(),
            runtime: Some(runtime),
        }
    }

    /// Waits until the daemon says who it is.
    fn wait_until_initialized(&mut self) -> Result<(), String> {
        self.write("")?;
        let initialized: Json = self.answer("initialize")?.map_err(|error| error.message)?;
        let version = initialized["serverInfo"]["version"].as_str();
        version.unwrap_or_default().clone_into(&mut self.version);
        Ok(())
    }

    /// The version of the daemon's build; empty where it was not waited for.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Asks, and returns the answer. What the daemon refuses is said in its own words.
    pub fn ask<T: DeserializeOwned>(&mut self, method: &str, params: &Json) -> Result<T, String> {
        self.request(method, params)?;
        self.answer(method)?.map_err(|error| error.message)
    }

    /// Asks several things at once, and returns the answers in the order of the questions.
    pub fn ask_all(&mut self, calls: &[(&str, Json)]) -> Result<Vec<Answered>, String> {
        let first = self.last + 1;
        let mut lines = String::new();
        for (id, (method, params)) in (first..).zip(calls) {
            let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
            lines.push_str(&format!("{request}\n"));
        }
        self.write(&lines)?;
        // The answers of requests that take longer come behind those of later ones.
        let mut answers: Vec<Option<Answered>> = vec![None; calls.len()];
        self.last += calls.len() as u64;
        while answers.iter().any(Option::is_none) {
            let (id, answer) = self.next_answer(calls.last().map_or("", |(method, _)| method))?;
            let place = id.checked_sub(first).and_then(|place| usize::try_from(place).ok());
            if let Some(slot) = place.and_then(|place| answers.get_mut(place)) {
                *slot = Some(answer);
            }
        }
        Ok(answers.into_iter().flatten().collect())
    }

    fn request(&mut self, method: &str, params: &Json) -> Result<(), String> {
        self.last += 1;
        let request =
            json!({ "jsonrpc": "2.0", "id": self.last, "method": method, "params": params });
        self.write(&format!("{request}\n"))
    }

    fn answer<T: DeserializeOwned>(
        &mut self,
        method: &str,
    ) -> Result<Result<T, ErrorObject>, String> {
        loop {
            let (id, answer) = self.next_answer(method)?;
            if id == self.last {
                let answer = match answer {
                    Ok(answer) => answer,
                    Err(error) => return Ok(Err(error)),
                };
                return serde_json::from_value(answer)
                    .map(Ok)
                    .map_err(|error| format!("the answer of {method} cannot be read: {error}"));
            }
        }
    }

    /// The next answer, whatever was asked.
    fn next_answer(&mut self, method: &str) -> Result<(u64, Answered), String> {
        let answered = async {
            let mut line = Vec::new();
            loop {
                line.clear();
                if self.input.read_until(b'\n', &mut line).await? == 0 {
                    return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
                }
                // Notifications and the daemon's own requests are not for an onlooker.
                let Ok(response) = serde_json::from_slice::<Response>(&line) else { continue };
                let (None, Some(id)) = (response.method, response.id) else { continue };
                return Ok((id, response.error.map_or(Ok(response.result), Err)));
            }
        };
        let runtime = self.runtime.as_ref().ok_or("the connection is over")?;
        match runtime.block_on(async { timeout(self.patience, answered).await }) {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(format!("the daemon does not answer {method}: {error}")),
            Err(_) => Err(format!(
                "the daemon did not answer {method} in {} ms",
                self.patience.as_millis()
            )),
        }
    }

    fn write(&mut self, lines: &str) -> Result<(), String> {
        let lines = std::mem::take(&mut self.unsent) + lines;
        let sent = async {
            self.output.write_all(lines.as_bytes()).await?;
            self.output.flush().await
        };
        let runtime = self.runtime.as_ref().ok_or("the connection is over")?;
        let sent = runtime.block_on(async { timeout(self.patience, sent).await });
        match sent {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(format!("the daemon is gone: {error}")),
            Err(_) => Err("the daemon does not read what it is asked".to_owned()),
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn runtime() -> io::Result<Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}
