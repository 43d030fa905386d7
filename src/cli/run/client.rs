//! One conversation with a daemon in a process of its own, over its stdin and stdout.
//!
//! The client does one thing at a time: it sends a request and reads until that request is
//! answered, unless the script awaits it later. What comes in between is sorted here: the daemon's questions are answered,
//! problems wait for a step that claims them, and everything that nobody asked for is
//! kept as unexpected. A deadline set for each step bounds every read and write.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout, timeout_at};

use super::matching::shown;
use super::script::{GeneratorAnswer, Script};

/// The arguments with which this program serves a script: without the user's configuration, and the
/// same in every run.
const DAEMON_ARGUMENTS: [&str; 2] = ["--no-config", "--deterministic"];

/// Variables of the environment that would lead a daemon to the user's own state.
const HOME_VARIABLES: [&str; 6] = [
    "HOME",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "XDG_STATE_HOME",
];

/// How many of the daemon's last lines on stderr are kept for a report of its death.
const STDERR_LINES_MAX: usize = 20;

/// How long a line of it may be before it counts as several.
const STDERR_LINE_BYTES_MAX: u64 = 16 * 1024;

/// How long stderr is awaited after the daemon has ended.
const STDERR_PATIENCE: Duration = Duration::from_millis(500);

/// The protocol's own limit on the header of a message.
const HEADER_BYTES_MAX: usize = 8 * 1024;

/// Why a conversation cannot go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The daemon died or broke the protocol.
    Broken(String),
    /// The time of the step, or of the whole run, is over.
    TimedOut(String),
}

/// An answer: a result, or the error object.
pub type Answer = Result<Value, Value>;

/// What a script is carried out against.
#[derive(Clone, Copy, Debug)]
pub enum Against<'a> {
    /// A daemon of this program.
    Own,
    /// One of another build of it.
    Program(&'a Path),
    /// Whatever this command, through `sh -c`, speaks for.
    Command(&'a str),
}

/// How a daemon is started.
#[derive(Debug)]
pub enum Launcher {
    /// A build of this program, in a private home that is removed with the launcher.
    Own {
        /// The program.
        program: PathBuf,
        /// The home.
        home: tempfile::TempDir,
        /// Whether it keeps what it told there, rather than in memory.
        keeps: bool,
        /// Whether a recording takes the place of the machine.
        plays: bool,
    },
    /// Any other command, through `sh -c`.
    Against(String),
}

impl Launcher {
    /// A launcher of what a script is carried out against.
    pub fn new(against: Against<'_>, script: &Script) -> io::Result<Self> {
        let program = match against {
            Against::Command(command) => return Ok(Self::Against(command.to_owned())),
            Against::Program(program) => program.to_owned(),
            Against::Own => std::env::current_exe()?,
        };
        let home = tempfile::Builder::new().prefix("reminderd-run-").tempdir()?;
        Ok(Self::Own { program, home, keeps: script.keeps, plays: script.plays })
    }

    fn command(&self) -> Command {
        match self {
            Self::Against(line) => {
                let mut command = Command::new("sh");
                command.arg("-c").arg(line);
                command
            }
            Self::Own { program, home, keeps, plays } => {
                let mut command = Command::new(program);
                command.args(DAEMON_ARGUMENTS);
                if !keeps {
                    command.arg("--ephemeral");
                }
                if *plays {
                    command.arg("--played");
                }
                for (name, _) in std::env::vars_os() {
                    if name.to_string_lossy().starts_with("REMINDERD_") {
                        command.env_remove(name);
                    }
                }
                for variable in HOME_VARIABLES {
                    command.env(variable, home.path());
                }
                command
            }
        }
    }

    fn start(&self) -> io::Result<Process> {
        let mut child = self
            .command()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A group of its own, so that whatever a shell started can be ended with it.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let (sender, incoming) = unbounded_channel();
        if let Some(stdout) = child.stdout.take() {
            tokio::spawn(read_messages(BufReader::new(stdout), sender));
        }
        let last_words = Arc::new(Mutex::new(VecDeque::new()));
        let stderr = child.stderr.take().map(|stderr| {
            tokio::spawn(keep_last_lines(BufReader::new(stderr), Arc::clone(&last_words)))
        });
        Ok(Process { stdin: child.stdin.take(), child, group, incoming, stderr, last_words })
    }
}

/// A running daemon.
#[derive(Debug)]
struct Process {
    child: Child,
    group: Option<Pid>,
    stdin: Option<ChildStdin>,
    /// Unbounded, so that a daemon is read while it is being written to: a script is short,
    /// and its deadlines bound what can gather here.
    incoming: UnboundedReceiver<Incoming>,
    /// Done when stderr has ended.
    stderr: Option<JoinHandle<()>>,
    last_words: Arc<Mutex<VecDeque<String>>>,
}

impl Process {
    fn kill(&mut self) {
        if let Some(group) = self.group {
            // The group is gone when the daemon has already ended.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// What the reading task hands over.
#[derive(Debug)]
enum Incoming {
    Message(Value),
    /// The stream cannot be followed further.
    Breach(String),
    Ended,
}

async fn read_messages(
    mut input: BufReader<impl AsyncRead + Unpin>,
    sender: UnboundedSender<Incoming>,
) {
    loop {
        let incoming = match read_message(&mut input).await {
            Ok(Some(message)) => Incoming::Message(message),
            Ok(None) => Incoming::Ended,
            Err(breach) => Incoming::Breach(breach),
        };
        let last = !matches!(incoming, Incoming::Message(_));
        if sender.send(incoming).is_err() || last {
            return;
        }
    }
}

/// Reads one message with its header; none at the end of the stream.
async fn read_message(
    input: &mut BufReader<impl AsyncRead + Unpin>,
) -> Result<Option<Value>, String> {
    let mut length = None;
    let mut header_bytes = 0;
    loop {
        let mut line = Vec::new();
        let limit = (HEADER_BYTES_MAX - header_bytes) as u64 + 1;
        let read = (&mut *input).take(limit).read_until(b'\n', &mut line).await;
        match read {
            Ok(0) if header_bytes == 0 => return Ok(None),
            Ok(0) => return Err("its output ended inside a header".to_owned()),
            Ok(read) => header_bytes += read,
            Err(error) => return Err(format!("its output cannot be read: {error}")),
        }
        if header_bytes > HEADER_BYTES_MAX {
            return Err(format!("it sent a header of more than {HEADER_BYTES_MAX} bytes"));
        }
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end_matches(['\r', '\n']);
        if text.is_empty() {
            break;
        }
        let Some((name, value)) = text.split_once(':') else {
            let text = shown(Some(&Value::from(text)));
            return Err(format!("it sent {text} where the header of a message belongs"));
        };
        if name.eq_ignore_ascii_case("Content-Length") {
            let number = value.trim().parse::<usize>();
            length = Some(number.map_err(|_| format!("it sent the header `{text}`"))?);
        }
    }
    let length = length.ok_or("it sent a message without Content-Length")?;
    // The announced length is not believed: memory grows only with what really comes.
    let mut body = Vec::new();
    let read = (&mut *input).take(length as u64).read_to_end(&mut body).await;
    match read {
        Ok(read) if read == length => {}
        Ok(read) => return Err(format!("its output ended after {read} of {length} bytes")),
        Err(error) => return Err(format!("its output cannot be read: {error}")),
    }
    let message = serde_json::from_slice(&body).map_err(|error| {
        let text = Value::from(String::from_utf8_lossy(&body));
        format!("it sent a message that is not JSON ({error}): {}", shown(Some(&text)))
    })?;
    check_envelope(&message)
        .map_err(|fault| format!("it sent {fault}: {}", shown(Some(&message))))?;
    Ok(Some(message))
}

/// Whether a message is a request, notification or response of JSON-RPC 2.0.
fn check_envelope(message: &Value) -> Result<(), &'static str> {
    if !message.is_object() {
        return Err("a message that is not an object");
    }
    if message.get("jsonrpc") != Some(&json!("2.0")) {
        return Err("a message without \"jsonrpc\": \"2.0\"");
    }
    let id = message.get("id");
    let (result, error) = (message.get("result"), message.get("error"));
    if let Some(method) = message.get("method") {
        return match (method, id, result.or(error)) {
            (Value::String(_), None | Some(Value::String(_) | Value::Number(_)), None) => Ok(()),
            _ => Err("a request that is malformed"),
        };
    }
    match (id, result, error) {
        (None, _, _) => Err("a response without id"),
        (Some(_), Some(_), None) => Ok(()),
        (Some(_), None, Some(error)) if error.get("code").is_some_and(Value::is_i64) => Ok(()),
        (Some(_), None, Some(_)) => Err("an error without a code"),
        _ => Err("a response without exactly one of result and error"),
    }
}

async fn keep_last_lines(
    mut input: BufReader<impl AsyncRead + Unpin>,
    kept: Arc<Mutex<VecDeque<String>>>,
) {
    let mut line = Vec::new();
    loop {
        let read = (&mut input).take(STDERR_LINE_BYTES_MAX).read_until(b'\n', &mut line).await;
        if !read.is_ok_and(|read| read > 0) {
            return;
        }
        let mut kept = kept.lock();
        if kept.len() == STDERR_LINES_MAX {
            kept.pop_front();
        }
        kept.push_back(String::from_utf8_lossy(&line).trim_end().to_owned());
        line.clear();
    }
}

/// Every message of all scripts, both ways, one JSON object a line.
#[derive(Debug)]
pub struct Transcript {
    file: BufWriter<File>,
    number: u64,
}

/// One line of a transcript. Lines are numbered and not timed, so that two runs can be compared.
#[derive(serde::Serialize)]
struct TranscriptLine<'a> {
    n: u64,
    script: &'a str,
    from: &'static str,
    message: &'a Value,
}

/// A message as a transcript has it.
#[derive(Clone, Debug, serde::Deserialize)]
pub struct Message {
    /// Who sent it: `client` or `daemon`.
    pub from: String,
    /// What.
    pub message: Value,
}

impl Transcript {
    /// A transcript into a file that is empty so far.
    pub fn new(file: File) -> Self {
        Self { file: BufWriter::new(file), number: 0 }
    }

    fn note(&mut self, script: &str, from: &'static str, message: &Value) -> io::Result<()> {
        self.number += 1;
        let line = TranscriptLine { n: self.number, script, from, message };
        serde_json::to_writer(&mut self.file, &line)?;
        writeln!(self.file)?;
        // A transcript is read when something went wrong, so it must not lag behind.
        self.file.flush()
    }
}

/// A message that no step asked for.
#[derive(Clone, Debug)]
pub struct Stray {
    /// The line of the step during which it came.
    pub line: usize,
    /// The message, or the params of an unclaimed problem.
    pub message: Value,
}

/// A request that a later step awaits.
#[derive(Debug)]
struct Sent {
    id: i64,
    method: String,
    answer: Option<Answer>,
}

/// The client's side of the conversation of one script.
#[derive(Debug)]
pub struct Client<'a> {
    launcher: Launcher,
    process: Option<Process>,
    script: &'a str,
    transcript: Option<&'a mut Transcript>,
    line: usize,
    deadline: Instant,
    last_id: i64,
    options: Value,
    /// The script itself sent `shutdown`, or `exit`.
    shut_down: bool,
    exited: bool,
    /// Requests that a later step awaits, by the names they were sent under.
    sent: BTreeMap<String, Sent>,
    generators: BTreeMap<String, GeneratorAnswer>,
    asked: BTreeMap<String, Vec<Value>>,
    problems: VecDeque<Stray>,
    unexpected: Vec<Stray>,
}

impl<'a> Client<'a> {
    /// A client that has not started its daemon yet.
    pub fn new(
        launcher: Launcher,
        script: &'a str,
        transcript: Option<&'a mut Transcript>,
    ) -> Self {
        Self {
            launcher,
            process: None,
            script,
            transcript,
            line: 1,
            deadline: Instant::now(),
            last_id: 0,
            options: Value::Null,
            shut_down: false,
            exited: false,
            sent: BTreeMap::new(),
            generators: BTreeMap::new(),
            asked: BTreeMap::new(),
            problems: VecDeque::new(),
            unexpected: Vec::new(),
        }
    }

    /// Says which line is being carried out, and until when.
    pub fn begin_step(&mut self, line: usize, deadline: Instant) {
        self.line = line;
        self.deadline = deadline;
    }

    /// Settles with which `initializationOptions` the daemon is initialized from now on.
    pub fn set_options(&mut self, options: &Value) {
        self.options = options.clone();
    }

    /// Starts the daemon and initializes it.
    pub async fn start(&mut self) -> Result<Answer, Stop> {
        let process = self.launcher.start();
        self.process =
            Some(process.map_err(|error| Stop::Broken(format!("it cannot be started: {error}")))?);
        self.shut_down = false;
        self.exited = false;
        let params = json!({
            // Told to nobody: a transcript is the same in every run, and the end of the pipe
            // tells the daemon when this process is gone.
            "processId": null,
            "clientInfo": {"name": "reminderd run"},
            "rootUri": null,
            "capabilities": {},
            "initializationOptions": self.options,
        });
        let answer = self.request("initialize", &params).await?;
        if answer.is_ok() {
            self.notify("initialized", &json!({})).await?;
        }
        Ok(answer)
    }

    /// Sends a request and reads until it is answered.
    pub async fn request(&mut self, method: &str, params: &Value) -> Result<Answer, Stop> {
        let id = self.send_request(method, params).await?;
        let answer = self.answer(id, method).await?;
        self.shut_down |= method == "shutdown" && answer.is_ok();
        Ok(answer)
    }

    /// Sends a request, cancels it at once, and reads until it is answered either way.
    pub async fn request_cancelled(
        &mut self,
        method: &str,
        params: &Value,
    ) -> Result<Answer, Stop> {
        let id = self.send_request(method, params).await?;
        self.notify("$/cancelRequest", &json!({ "id": id })).await?;
        self.answer(id, method).await
    }

    /// Sends a request whose answer a later step awaits under this name.
    pub async fn send_named(
        &mut self,
        name: &str,
        method: &str,
        params: &Value,
    ) -> Result<(), Stop> {
        let id = self.send_request(method, params).await?;
        let sent = Sent { id, method: method.to_owned(), answer: None };
        self.sent.insert(name.to_owned(), sent);
        Ok(())
    }

    /// Reads until the request that was sent under this name is answered; cancels it first, if asked
    /// to.
    pub async fn answer_of(&mut self, name: &str, cancel: bool) -> Result<Answer, Stop> {
        let Some(sent) = self.sent.remove(name) else {
            return Err(Stop::Broken(format!("nothing that was sent as {name:?} is unanswered")));
        };
        if let Some(answer) = sent.answer {
            return Ok(answer);
        }
        if cancel {
            self.notify("$/cancelRequest", &json!({ "id": sent.id })).await?;
        }
        self.answer(sent.id, &sent.method).await
    }

    /// What the request that was sent under this name was answered so far.
    pub async fn answered(&mut self, name: &str) -> Result<Option<Answer>, Stop> {
        // Whatever the daemon had to say when this is answered has been read.
        let _: Answer = self.request("session/list", &json!({})).await?;
        Ok(self.sent.get(name).and_then(|sent| sent.answer.clone()))
    }

    /// Sends a notification.
    pub async fn notify(&mut self, method: &str, params: &Value) -> Result<(), Stop> {
        self.exited |= method == "exit";
        self.send(&with_params(json!({"jsonrpc": "2.0", "method": method}), params)).await
    }

    /// The params of the next `reminderd/problem`.
    pub async fn problem(&mut self) -> Result<Value, Stop> {
        loop {
            if let Some(problem) = self.problems.pop_front() {
                return Ok(problem.message);
            }
            let message = self.receive("a reminderd/problem").await?;
            if let Some(response) = self.sort(message).await? {
                self.stray_response(response);
            }
        }
    }

    /// Settles what a generator answers from now on.
    pub fn set_generator(&mut self, id: &str, answer: GeneratorAnswer) {
        self.generators.insert(id.to_owned(), answer);
    }

    /// The params with which a generator was asked since this was last called for it.
    pub fn take_asked(&mut self, id: &str) -> Vec<Value> {
        self.asked.remove(id).unwrap_or_default()
    }

    /// The messages since the last call that nothing expected.
    pub fn take_unexpected(&mut self) -> Vec<Stray> {
        std::mem::take(&mut self.unexpected)
    }

    /// The problems that no step has claimed.
    pub fn take_problems(&mut self) -> Vec<Stray> {
        self.problems.drain(..).collect()
    }

    /// The last lines that the daemon wrote to stderr.
    pub fn last_words(&self) -> Vec<String> {
        let words = self.process.as_ref().map(|process| Arc::clone(&process.last_words));
        words.map_or_else(Vec::new, |words| words.lock().iter().cloned().collect())
    }

    /// Ends the daemon as the protocol says, and checks that it ends so.
    pub async fn finish(&mut self) -> Result<(), Stop> {
        if self.process.is_none() {
            return Ok(());
        }
        if !self.shut_down && !self.exited {
            // A daemon that was never initialized may refuse; it must still exit.
            let _refusal = self.request("shutdown", &Value::Null).await?.err();
        }
        if !self.exited {
            self.notify("exit", &Value::Null).await?;
        }
        if let Some(process) = &mut self.process {
            process.stdin = None;
        }
        loop {
            let incoming = self.next_incoming("its end").await?;
            match incoming {
                Incoming::Message(message) => {
                    if let Some(response) = self.sort(message).await? {
                        self.stray_response(response);
                    }
                }
                Incoming::Breach(breach) => return Err(Stop::Broken(breach)),
                Incoming::Ended => break,
            }
        }
        let status = self.status().await?;
        if self.shut_down && !status.success() {
            return Err(Stop::Broken(format!(
                "it ended with {status} after shutdown and exit, and 0 is right"
            )));
        }
        self.process = None;
        Ok(())
    }

    /// Kills the daemon and everything that it started.
    pub async fn kill(&mut self) -> Result<(), Stop> {
        if let Some(process) = &mut self.process {
            process.kill();
            self.status().await?;
        }
        self.process = None;
        Ok(())
    }

    async fn send_request(&mut self, method: &str, params: &Value) -> Result<i64, Stop> {
        self.last_id += 1;
        let id = self.last_id;
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method});
        self.send(&with_params(message, params)).await?;
        Ok(id)
    }

    async fn send(&mut self, message: &Value) -> Result<(), Stop> {
        self.note("client", message);
        let Some(stdin) = self.process.as_mut().and_then(|process| process.stdin.as_mut()) else {
            return Err(Stop::Broken("it is not running, the script has ended it".to_owned()));
        };
        let body = message.to_string();
        let frame = format!("Content-Length: {}\r\n\r\n{body}", body.len());
        match timeout_at(self.deadline, stdin.write_all(frame.as_bytes())).await {
            // A daemon that has closed its end is noticed when its output ends.
            Ok(_) => Ok(()),
            Err(_) => Err(Stop::TimedOut("it did not read what was sent".to_owned())),
        }
    }

    /// Reads until the request of this id is answered.
    async fn answer(&mut self, id: i64, method: &str) -> Result<Answer, Stop> {
        loop {
            let message = self.receive(&format!("the answer to {method}")).await?;
            let Some(response) = self.sort(message).await? else { continue };
            // With an id of null the daemon refuses what it could not read to the end; that is
            // what was sent last.
            let refused = response["id"].is_null() && response.get("error").is_some();
            let answer = match response.get("error") {
                Some(error) => Err(error.clone()),
                None => Ok(response["result"].clone()),
            };
            if response["id"] == json!(id) || refused {
                return Ok(answer);
            }
            let sent = self.sent.values_mut().find(|sent| response["id"] == json!(sent.id));
            match sent {
                Some(sent) => sent.answer = Some(answer),
                None => self.stray_response(response),
            }
        }
    }

    /// Deals with a message of the daemon's own; hands back a response.
    async fn sort(&mut self, message: Value) -> Result<Option<Value>, Stop> {
        let Some(method) = message["method"].as_str().map(str::to_owned) else {
            return Ok(Some(message));
        };
        let id = message.get("id").cloned();
        match (method.as_str(), id) {
            ("reminder/compute", Some(id)) => self.compute(&id, &message["params"]).await?,
            ("reminderd/problem", None) => {
                let problem = message["params"].clone();
                self.problems.push_back(Stray { line: self.line, message: problem });
            }
            (_, id) => {
                self.unexpected.push(Stray { line: self.line, message });
                if let Some(id) = id {
                    let text = format!("`reminderd run` has no method {method}");
                    let error = json!({"code": -32601, "message": text});
                    self.send(&json!({"jsonrpc": "2.0", "id": id, "error": error})).await?;
                }
            }
        }
        Ok(None)
    }

    async fn compute(&mut self, id: &Value, params: &Value) -> Result<(), Stop> {
        let generator = params["generator"].as_str().unwrap_or_default().to_owned();
        let answer = self.generators.get(&generator).cloned();
        self.asked.entry(generator).or_default().push(params.clone());
        let body = match answer {
            Some(GeneratorAnswer::Silence) => return Ok(()),
            Some(GeneratorAnswer::Body(body)) => body,
            None => None,
        };
        self.send(&json!({"jsonrpc": "2.0", "id": id, "result": {"body": body}})).await
    }

    /// A response that answers nothing: a refusal without id is a problem, others are unexpected.
    fn stray_response(&mut self, response: Value) {
        let line = self.line;
        match (&response["id"], response.get("error")) {
            (Value::Null, Some(error)) => {
                self.problems.push_back(Stray { line, message: error.clone() });
            }
            _ => self.unexpected.push(Stray { line, message: response }),
        }
    }

    async fn receive(&mut self, awaited: &str) -> Result<Value, Stop> {
        match self.next_incoming(awaited).await? {
            Incoming::Message(message) => Ok(message),
            Incoming::Breach(breach) => Err(Stop::Broken(breach)),
            Incoming::Ended => {
                let status = self.status().await?;
                Err(Stop::Broken(format!("it ended with {status} before {awaited} came")))
            }
        }
    }

    async fn next_incoming(&mut self, awaited: &str) -> Result<Incoming, Stop> {
        let Some(process) = self.process.as_mut() else {
            return Err(Stop::Broken("it is not running, the script has ended it".to_owned()));
        };
        match timeout_at(self.deadline, process.incoming.recv()).await {
            Ok(Some(incoming)) => {
                if let Incoming::Message(message) = &incoming {
                    self.note("daemon", message);
                }
                Ok(incoming)
            }
            // The reader has said `Ended` before, or a breach.
            Ok(None) => Ok(Incoming::Ended),
            Err(_) => Err(Stop::TimedOut(format!("{awaited} did not come in time"))),
        }
    }

    async fn status(&mut self) -> Result<ExitStatus, Stop> {
        let Some(process) = self.process.as_mut() else {
            return Err(Stop::Broken("it is not running".to_owned()));
        };
        match timeout_at(self.deadline, process.child.wait()).await {
            Ok(Ok(status)) => {
                // What it said at last is read to the end, unless a child of its own keeps
                // the pipe open.
                if let Some(stderr) = process.stderr.take() {
                    let _ = timeout(STDERR_PATIENCE, stderr).await;
                }
                Ok(status)
            }
            Ok(Err(error)) => Err(Stop::Broken(format!("its end cannot be awaited: {error}"))),
            Err(_) => Err(Stop::TimedOut("its output has ended, the process goes on".to_owned())),
        }
    }

    fn note(&mut self, from: &'static str, message: &Value) {
        if let Some(transcript) = &mut self.transcript
            && let Err(error) = transcript.note(self.script, from, message)
        {
            eprintln!("reminderd run: the transcript cannot be written: {error}; it stops here");
            self.transcript = None;
        }
    }
}

/// A message with its params, and without the member when there are none.
fn with_params(mut message: Value, params: &Value) -> Value {
    if !params.is_null() {
        message["params"] = params.clone();
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What reading these bytes yields: the messages, and the breach that ends them, if any.
    fn read(bytes: &[u8]) -> (Vec<Value>, Option<String>) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let mut input = BufReader::new(bytes);
            let mut messages = Vec::new();
            loop {
                match read_message(&mut input).await {
                    Ok(Some(message)) => messages.push(message),
                    Ok(None) => return (messages, None),
                    Err(breach) => return (messages, Some(breach)),
                }
            }
        })
    }

    #[test]
    fn our_own_daemon_sees_nothing_of_the_users() {
        let script = super::super::script::parse(r#"{"store": true}"#).expect("a script");
        let launcher = Launcher::new(Against::Own, &script).expect("a home");
        let command = launcher.command();
        let Launcher::Own { home, .. } = &launcher else { panic!("another command") };
        for variable in HOME_VARIABLES {
            let set = command.as_std().get_envs().find(|(name, _)| *name == variable);
            assert_eq!(set, Some((variable.as_ref(), Some(home.path().as_os_str()))));
        }
    }

    fn framed(body: &str) -> String {
        format!("Content-Length: {}\r\n\r\n{body}", body.len())
    }

    #[test]
    fn frames_follow_each_other() {
        let one = r#"{"jsonrpc":"2.0","id":1,"result":null}"#;
        let other = r#"{"jsonrpc":"2.0","method":"a"}"#;
        let bytes = format!("{}Content-Type: x\r\n{}", framed(one), framed(other));
        let (messages, breach) = read(bytes.as_bytes());
        assert_eq!(messages.len(), 2);
        assert_eq!(breach, None);
    }

    #[test]
    fn breaches_are_told_apart() {
        let table = [
            ("hello\n".to_owned(), "where the header"),
            ("\r\n".to_owned(), "without Content-Length"),
            ("Content-Length: x\r\n\r\n".to_owned(), "the header"),
            ("Content-Length: 2".to_owned(), "inside a header"),
            ("Content-Length: 9\r\n\r\n{}".to_owned(), "after 2 of 9"),
            (format!("A: {}", "x".repeat(9000)), "more than 8192"),
            (framed("{"), "not JSON"),
            (framed("[]"), "not an object"),
            (framed(r#"{"id":1,"result":null}"#), "without \"jsonrpc\""),
            (framed(r#"{"jsonrpc":"2.0","result":null}"#), "without id"),
            (framed(r#"{"jsonrpc":"2.0","id":1}"#), "exactly one of"),
            (framed(r#"{"jsonrpc":"2.0","id":1,"error":{}}"#), "without a code"),
            (framed(r#"{"jsonrpc":"2.0","id":null,"method":"a"}"#), "malformed"),
        ];
        for (bytes, expected) in table {
            let (_, breach) = read(bytes.as_bytes());
            let breach = breach.expect(expected);
            assert!(breach.contains(expected), "{breach}");
        }
    }
}
