//! Starts the real daemon and speaks to it, byte for byte.
//!
//! A test claims every message that the daemon sends; what nobody claimed fails the test at its
//! end, and so does any byte on stdout that is not part of a frame. The traffic is printed when a
//! test fails. Nothing here sleeps for luck: it waits for a condition, within a limit.

mod patience;
mod project;

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

pub use patience::{PATIENCE, wait_until};
pub use project::*;

/// Where no user's configuration is.
const NOWHERE: &str = "/dev/null";

/// How messages are told apart on the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// One JSON message a line.
    Lines,
    /// `Content-Length` headers.
    Headers,
}

impl Framing {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Lines, Self::Headers];

    /// A message as bytes of the stream.
    pub fn frame(self, message: &str) -> Vec<u8> {
        match self {
            Self::Lines => format!("{message}\n").into_bytes(),
            Self::Headers => format!("Content-Length: {}\r\n\r\n{message}", message.len()).into(),
        }
    }
}

/// How a daemon is started.
#[derive(Debug)]
pub struct Start {
    framing: Framing,
    command: Command,
    reads: bool,
    forbidden: Option<&'static str>,
}

impl Start {
    /// The daemon on pipes, in an environment without settings of the person who runs the tests.
    pub fn new(framing: Framing) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_reminderd"));
        command.env_remove("RUST_LOG").env_remove("RUST_BACKTRACE");
        command.env("XDG_CONFIG_HOME", NOWHERE);
        command.arg("--ephemeral");
        Self { framing, command, reads: true, forbidden: None }
    }

    /// The daemon with a store in this directory.
    pub fn keeping(framing: Framing, state: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_reminderd"));
        command.env_remove("RUST_LOG").env_remove("RUST_BACKTRACE");
        command.env("XDG_CONFIG_HOME", NOWHERE);
        command.arg("--state").arg(state);
        Self { framing, command, reads: true, forbidden: None }
    }

    /// `reminderd connect`, whose daemons and files are all below this directory and end soon.
    pub fn connecting(framing: Framing, home: &Path, arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_reminderd"));
        command.env_remove("RUST_LOG").env_remove("RUST_BACKTRACE");
        command.env("XDG_RUNTIME_DIR", home.join("run")).env("XDG_STATE_HOME", home.join("state"));
        command.env("XDG_CONFIG_HOME", home.join("config"));
        command.arg("connect").args(arguments);
        if !arguments.contains(&"--idle") {
            command.args(["--idle", "2"]);
        }
        Self { framing, command, reads: true, forbidden: None }
    }

    /// Through this command, which is given the daemon's own behind its arguments.
    #[must_use]
    pub fn through(mut self, program: &str, arguments: &[&str]) -> Self {
        let mut command = Command::new(program);
        command.args(arguments).arg(self.command.get_program()).args(self.command.get_args());
        self.command = command;
        self
    }

    /// With a variable in its environment.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    /// With a further argument.
    #[must_use]
    pub fn argument(mut self, argument: &str) -> Self {
        self.command.arg(argument);
        self
    }

    /// With a client to which this must never be said.
    #[must_use]
    pub fn forbidding(mut self, word: &'static str) -> Self {
        self.forbidden = Some(word);
        self
    }

    /// With a client that does not read until `read_on`.
    #[must_use]
    pub fn unread(mut self) -> Self {
        self.reads = false;
        self
    }

    /// Starts it.
    pub fn spawn(mut self) -> Daemon {
        self.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.command.spawn().expect("the daemon starts");
        let mut daemon = Daemon {
            framing: self.framing,
            input: None,
            written: Arc::default(),
            output: None,
            received: None,
            unclaimed: VecDeque::new(),
            traffic: Arc::default(),
            stderr: Arc::default(),
            last_id: 0,
            status: None,
            forgiven: None,
            forbidden: self.forbidden,
            child: None,
        };
        daemon.write_from_a_thread(child.stdin.take().expect("stdin is piped"));
        daemon.output = child.stdout.take();
        let mut stderr = child.stderr.take().expect("stderr is piped");
        let log = Arc::clone(&daemon.stderr);
        thread::spawn(move || {
            let mut chunk = [0; 4096];
            while let Ok(bytes @ 1..) = stderr.read(&mut chunk) {
                lock(&log).extend_from_slice(&chunk[..bytes]);
            }
        });
        daemon.child = Some(child);
        if self.reads {
            daemon.read_on();
        }
        daemon
    }
}

enum Received {
    Message(Value),
    NotAFrame(String),
}

/// A running daemon and its only client.
#[derive(Debug)]
pub struct Daemon {
    framing: Framing,
    child: Option<Child>,
    input: Option<Sender<Vec<u8>>>,
    written: Arc<AtomicUsize>,
    output: Option<ChildStdout>,
    received: Option<Receiver<Received>>,
    unclaimed: VecDeque<Value>,
    traffic: Arc<Mutex<Vec<String>>>,
    stderr: Arc<Mutex<Vec<u8>>>,
    last_id: i64,
    status: Option<ExitStatus>,
    /// Notifications that may come or not.
    forgiven: Option<&'static str>,
    /// What no message may hold.
    forbidden: Option<&'static str>,
}

#[expect(clippy::needless_pass_by_value, reason = "a test reads better with `json!` as it is")]
impl Daemon {
    /// A daemon that was initialized.
    pub fn initialized(framing: Framing) -> Self {
        let mut daemon = Start::new(framing).spawn();
        daemon.initialize();
        daemon
    }

    /// Initializes without any option, and returns the result.
    pub fn initialize(&mut self) -> Value {
        self.initialize_with(json!({}))
    }

    /// Initializes with these options of ours, and returns the result.
    pub fn initialize_with(&mut self, options: Value) -> Value {
        let params = json!({"capabilities": {}, "initializationOptions": options});
        let answer = self.request("initialize", params);
        assert!(answer["result"].is_object(), "initialize: {answer}");
        self.notify("initialized", json!({}));
        answer["result"].clone()
    }

    /// Writes bytes as they are. Never waits: a thread does.
    pub fn send_bytes(&self, bytes: &[u8]) {
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(400)]).into_owned();
        lock(&self.traffic).push(format!("→ {shown}"));
        if let Some(input) = &self.input {
            // A daemon that is gone shows in what it answers, or in its status.
            let _: Result<(), _> = input.send(bytes.to_vec());
        }
    }

    /// Sends the text of a message in the framing of the stream.
    pub fn send_text(&self, message: &str) {
        self.send_bytes(&self.framing.frame(message));
    }

    /// Sends a message.
    pub fn send(&self, message: &Value) {
        self.send_text(&message.to_string());
    }

    /// Sends a notification.
    pub fn notify(&self, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Sends a request and returns its id.
    pub fn ask(&mut self, method: &str, params: Value) -> Value {
        self.last_id += 1;
        let id = json!(self.last_id);
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// Sends a request and claims its answer.
    pub fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params);
        self.expect_answer(&id)
    }

    /// Claims the answer with this id.
    pub fn expect_answer(&mut self, id: &Value) -> Value {
        self.claim(&format!("the answer {id}"), |message| {
            message.get("method").is_none() && message.get("id") == Some(id)
        })
    }

    /// Claims the refusal of a message that had no usable id, and returns its code.
    pub fn expect_refusal(&mut self) -> i64 {
        self.expect_answer(&Value::Null)["error"]["code"].as_i64().expect("an error has a code")
    }

    /// Claims a notification or request of this method, and returns it.
    pub fn expect_method(&mut self, method: &str) -> Value {
        self.claim(method, |message| message["method"] == method)
    }

    /// Answers a request of the daemon's.
    pub fn answer(&self, request: &Value, result: Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": request["id"], "result": result}));
    }

    /// Claims the next message, whatever it is.
    pub fn expect_any(&mut self) -> Value {
        self.claim("any message", |_| true)
    }

    /// Claims the answer with this id if a daemon that has ended still sent it.
    pub fn forgive_answer(&mut self, id: &Value) {
        let received = self.received.as_ref().expect("the client reads");
        while let Ok(received) = received.recv_timeout(PATIENCE) {
            match received {
                Received::Message(message) if message.get("id") == Some(id) => {}
                Received::Message(message) => self.unclaimed.push_back(message),
                Received::NotAFrame(text) => panic!("stdout carries more than frames: {text}"),
            }
        }
    }

    /// How many bytes the daemon's input has taken, the pipe between included.
    pub fn written(&self) -> usize {
        self.written.load(Ordering::Relaxed)
    }

    /// Closes the daemon's input, behind everything that was sent.
    pub fn close_input(&mut self) {
        self.input = None;
    }

    /// Closes the daemon's output, of a client that never read.
    pub fn close_output(&mut self) {
        assert!(self.output.take().is_some(), "only an unread output can be closed");
    }

    /// Starts to read.
    pub fn read_on(&mut self) {
        let Some(output) = self.output.take() else { return };
        let (sender, incoming) = channel();
        self.received = Some(incoming);
        let (framing, forbidden) = (self.framing, self.forbidden);
        let traffic = Arc::clone(&self.traffic);
        thread::spawn(move || {
            let mut output = BufReader::new(output);
            loop {
                let received = match read_frame(&mut output, framing) {
                    Ok(None) => return,
                    Ok(Some(text)) => {
                        lock(&traffic)
                            .push(format!("← {}", text.chars().take(400).collect::<String>()));
                        match serde_json::from_str(&text) {
                            _ if forbidden.is_some_and(|word| text.contains(word)) => {
                                Received::NotAFrame(format!("what was forbidden: {text}"))
                            }
                            Ok(message) => Received::Message(message),
                            Err(_) => Received::NotAFrame(text),
                        }
                    }
                    Err(text) => Received::NotAFrame(text),
                };
                let is_last = matches!(received, Received::NotAFrame(_));
                if sender.send(received).is_err() || is_last {
                    return;
                }
            }
        });
    }

    /// The exit status of a daemon that is about to end.
    pub fn expect_exit(&mut self) -> i32 {
        self.expect_exit_within(PATIENCE)
    }

    /// The exit status of a daemon that is about to end soon.
    pub fn expect_exit_within(&mut self, limit: Duration) -> i32 {
        let child = self.child.as_mut().expect("the daemon was started");
        let status = &mut self.status;
        let ended = wait_until(limit, || {
            *status = child.try_wait().expect("the daemon is our child");
            status.is_some()
        });
        assert!(ended, "the daemon still runs after {limit:?}");
        self.status.and_then(|status| status.code()).expect("the daemon was not killed")
    }

    /// Ends the daemon at once, as a crash would, and forgives what it still said.
    pub fn kill(mut self) {
        let mut child = self.child.take().expect("the daemon was started");
        child.kill().expect("it is our child");
        self.status = Some(child.wait().expect("it is our child"));
        self.received = None;
    }

    /// Claims the notifications of this method that nobody claims, also those that are to come.
    pub fn forgive(&mut self, method: &'static str) {
        self.forgiven = Some(method);
    }

    /// Claims the problems that came so far.
    pub fn forgive_problems(&mut self) {
        self.unclaimed.retain(|message| message["method"] != "reminderd/problem");
    }

    /// What the daemon said on stderr so far.
    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&lock(&self.stderr)).into_owned()
    }

    /// Waits until the daemon has said something on stderr, which arrives beside its answers.
    pub fn expect_stderr(&self, text: &str) {
        let said = wait_until(PATIENCE, || self.stderr().contains(text));
        assert!(said, "{text:?} is not in {:?}", self.stderr());
    }

    /// The daemon's process id.
    pub fn pid(&self) -> u32 {
        self.child.as_ref().expect("the daemon was started").id()
    }

    /// The most memory that the daemon ever held, in bytes.
    pub fn memory_peak_bytes(&self) -> usize {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid()))
            .expect("the daemon runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("VmHWM");
        let kibibytes: usize = line.trim().trim_end_matches(" kB").parse().expect("a number");
        kibibytes * 1024
    }

    /// How much the daemon ever read, in bytes.
    pub fn bytes_read(&self) -> usize {
        let counts = std::fs::read_to_string(format!("/proc/{}/io", self.pid())).expect("it runs");
        let line = counts.lines().find_map(|line| line.strip_prefix("rchar:")).expect("rchar");
        line.trim().parse().expect("a number")
    }

    /// Waits until the daemon has read so much.
    pub fn expect_read(&self, bytes: usize) {
        let until = Instant::now() + Duration::from_secs(10);
        while self.bytes_read() < bytes {
            assert!(Instant::now() < until, "the daemon does not read");
            thread::yield_now();
        }
    }

    fn claim(&mut self, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        if let Some(index) = self.unclaimed.iter().position(&is_it) {
            return self.unclaimed.remove(index).expect("it was just found");
        }
        let deadline = Instant::now() + PATIENCE;
        loop {
            let received = self.received.as_ref().expect("the client reads");
            match received.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(Received::Message(message)) if is_it(&message) => return message,
                Ok(Received::Message(message)) => self.unclaimed.push_back(message),
                Ok(Received::NotAFrame(text)) => panic!("stdout carries more than frames: {text}"),
                Err(RecvTimeoutError::Timeout) => panic!("{what} did not come in {PATIENCE:?}"),
                Err(RecvTimeoutError::Disconnected) => {
                    panic!("the output ended before {what} came")
                }
            }
        }
    }

    fn write_from_a_thread(&mut self, mut stdin: ChildStdin) {
        let (sender, receiver) = channel::<Vec<u8>>();
        self.input = Some(sender);
        let written = Arc::clone(&self.written);
        thread::spawn(move || {
            for bytes in receiver {
                for chunk in bytes.chunks(64 * 1024) {
                    if stdin.write_all(chunk).is_err() {
                        return;
                    }
                    written.fetch_add(chunk.len(), Ordering::Relaxed);
                }
            }
        });
    }

    /// Ends the daemon if it still runs, and fails on what was never claimed.
    fn check_the_rest(&mut self) {
        self.close_input();
        if self.status.is_none() {
            self.expect_exit();
        }
        let Some(received) = self.received.take() else { return };
        while let Ok(received) = received.recv_timeout(PATIENCE) {
            match received {
                Received::Message(message) => self.unclaimed.push_back(message),
                Received::NotAFrame(text) => panic!("stdout carries more than frames: {text}"),
            }
        }
        self.unclaimed.retain(|message| {
            let method = message["method"].as_str();
            method.is_none() || method != self.forgiven
        });
        assert!(self.unclaimed.is_empty(), "nobody claimed {:?}", self.unclaimed);
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let failed = thread::panicking()
            || std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.check_the_rest()))
                .is_err();
        if let Some(mut child) = self.child.take() {
            // It has ended already, unless the test failed.
            let _: Result<(), _> = child.kill();
            let _: Result<ExitStatus, _> = child.wait();
        }
        if failed {
            eprintln!("traffic:\n{}", lock(&self.traffic).join("\n"));
            eprintln!("stderr:\n{}", self.stderr());
        }
        assert!(!failed || thread::panicking(), "the daemon said something else");
    }
}

/// One frame, `None` at the end, or the bytes that are not a frame. Stricter than any client.
fn read_frame(output: &mut impl BufRead, framing: Framing) -> Result<Option<String>, String> {
    let mut line = String::new();
    if output.read_line(&mut line).map_err(|error| error.to_string())? == 0 {
        return Ok(None);
    }
    if framing == Framing::Lines {
        return Ok(Some(line.trim_end_matches('\n').to_owned()));
    }
    let length = line.strip_prefix("Content-Length: ").and_then(|rest| rest.strip_suffix("\r\n"));
    let length: usize = length.and_then(|text| text.parse().ok()).ok_or(line)?;
    let mut blank = [0; 2];
    let mut body = vec![0; length];
    output.read_exact(&mut blank).map_err(|error| error.to_string())?;
    output.read_exact(&mut body).map_err(|error| error.to_string())?;
    if &blank != b"\r\n" {
        return Err(String::from_utf8_lossy(&blank).into_owned());
    }
    String::from_utf8(body).map(Some).map_err(|error| error.to_string())
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
