//! A session with real files, as its client has it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{env, fs, process};

use serde_json::{Value, json};

use super::{Daemon, Framing};

/// Names of files, and how a client may spell them in a URI: percent, plus, hash and question marks,
/// spaces, letters that are no ASCII, control characters and overrides of direction mean themselves.
pub const ODD_NAMES: [(&str, &str); 9] = [
    ("a+b.rs", "a+b.rs"),
    ("100%.rs", "100%25.rs"),
    ("c#.rs", "c%23.rs"),
    ("q?.rs", "q%3F.rs"),
    ("x%20y.rs", "x%2520y.rs"),
    ("a b.rs", "a%20b.rs"),
    ("é.rs", "%c3%A9.rs"),
    ("n\nl\u{1b}.rs", "n%0Al%1b.rs"),
    ("r\u{202e}l.rs", "r%e2%80%aEl.rs"),
];

/// A directory that is gone when the test ends.
pub struct Directory(PathBuf);

impl Directory {
    pub fn new() -> Self {
        static LAST: AtomicUsize = AtomicUsize::new(0);
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        let directory = env::temp_dir().join(format!("reminderd-{}-{number}", process::id()));
        fs::create_dir_all(&directory).expect("a temporary directory can be made");
        Self(fs::canonicalize(directory).expect("it is there"))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // What is left of a failed test does no harm.
        let _: Result<(), _> = fs::remove_dir_all(&self.0);
    }
}

/// A session with real files below its root, and the client that has it.
pub struct Project {
    pub daemon: Daemon,
    pub root: PathBuf,
    directory: Directory,
}

#[expect(clippy::needless_pass_by_value, reason = "a test reads better with `json!` as it is")]
impl Project {
    pub fn new() -> Self {
        Self::with(json!({}))
    }

    /// With kinds switched or retuned.
    pub fn with(kinds: Value) -> Self {
        Self::opened(Daemon::initialized(Framing::Lines), json!({"kinds": kinds}))
    }

    /// With a daemon that was initialized, and these params of `session/open`.
    pub fn opened(daemon: Daemon, params: Value) -> Self {
        let directory = Directory::new();
        let root = directory.0.join("root");
        fs::create_dir(&root).expect("the root can be made");
        let mut project = Self { daemon, root, directory };
        project.open(params);
        project.next_turn("1");
        project
    }

    /// Opens the session with these params.
    pub fn open(&mut self, mut params: Value) {
        params["root"] = json!(text_of(&self.root));
        let answer = self.daemon.request("session/open", on_session(params));
        assert!(answer["result"].is_object(), "{answer}");
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// A path as text.
    pub fn at(&self, name: &str) -> String {
        text_of(&self.path(name)).to_owned()
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        write(&self.path(name), content);
    }

    pub fn remove(&self, name: &str) {
        fs::remove_file(self.path(name)).expect("it is there");
    }

    /// What git itself does at the root, whatever the person who runs the tests configured.
    pub fn git(&self, arguments: &[&str]) {
        let output = Command::new("git")
            .args(["-c", "user.name=x", "-c", "user.email=x@example.org"])
            .args(["-c", "init.defaultBranch=main", "-c", "commit.gpgSign=false"])
            .args(arguments)
            .current_dir(&self.root)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .output()
            .expect("git is installed");
        assert!(output.status.success(), "{arguments:?}: {output:?}");
    }

    /// A path beside the root.
    pub fn outside(&self, name: &str) -> PathBuf {
        self.directory.0.join(name)
    }

    pub fn event(&mut self, method: &str, params: Value) {
        let answer = self.daemon.request(method, on_session(params));
        assert_eq!(answer.get("result"), Some(&Value::Null), "{method}: {answer}");
    }

    /// A write of the agent's own, reported after it is done.
    pub fn wrote(&mut self, name: &str, content: impl AsRef<[u8]>) {
        self.write(name, content);
        let uri = self.at(name);
        self.event("file/wrote", json!({"uri": uri}));
    }

    pub fn read(&mut self, name: &str) {
        let uri = self.at(name);
        self.event("file/read", json!({"uri": uri}));
    }

    pub fn mention(&mut self, name: &str) {
        let target = self.at(name);
        self.event("mention/add", json!({"kind": "file", "target": target}));
    }

    pub fn ask(&mut self, params: Value) -> Delivery {
        let answer = self.daemon.request("reminder/wait", on_session(params));
        assert!(answer["result"].is_object(), "{answer}");
        Delivery(answer["result"].clone())
    }

    pub fn wait(&mut self) -> Delivery {
        self.ask(json!({}))
    }

    pub fn commit(&mut self, delivery: &Delivery) {
        let answer = self.daemon.request("reminder/commit", json!({"token": delivery.0["token"]}));
        assert!(answer["result"].is_object(), "{answer}");
    }

    /// A WAIT and its commit.
    pub fn told(&mut self) -> Delivery {
        let delivery = self.wait();
        self.commit(&delivery);
        delivery
    }

    pub fn compact(&mut self) {
        self.event("history/compacted", json!({"retained": "none"}));
    }

    /// A WAIT that is given back.
    pub fn released(&mut self) -> Delivery {
        let delivery = self.wait();
        let answer = self.daemon.request("reminder/release", json!({"token": delivery.0["token"]}));
        assert_eq!(answer["result"]["released"], true, "{answer}");
        delivery
    }

    pub fn next_turn(&mut self, turn: &str) {
        self.event("turn/begin", json!({"turn": turn}));
    }

    /// What explain says of a kind.
    pub fn explained(&mut self, kind: &str) -> Value {
        let answer = self.daemon.request("reminder/explain", json!({"session": "s"}));
        let rows = answer["result"]["rows"].as_array().expect("rows");
        rows.iter().find(|row| row["kind"] == kind).expect("the kind is explained").clone()
    }
}

/// The answer to a WAIT.
pub struct Delivery(pub Value);

impl Delivery {
    pub fn of(&self, kind: &str) -> Vec<&str> {
        let entries = self.0["entries"].as_array().expect("entries").iter();
        let entries = entries.filter(|entry| entry["type"] == kind);
        entries.map(|entry| entry["body"].as_str().expect("a body")).collect()
    }

    /// The entry about edited files; empty when there is none.
    pub fn edited(&self) -> String {
        self.of("edited-files").join("\n")
    }

    pub fn instructions(&self) -> Vec<&str> {
        self.of("workspace-instructions")
    }

    pub fn mentions(&self) -> Vec<&str> {
        self.of("mention")
    }

    pub fn documents(&self) -> Vec<&str> {
        self.of("large-attachment")
    }

    #[track_caller]
    pub fn is_silent(&self) {
        assert_eq!(self.0["entries"], json!([]));
    }
}

pub fn on_session(mut params: Value) -> Value {
    params["session"] = json!("s");
    params
}

pub fn text_of(path: &Path) -> &str {
    path.to_str().expect("a temporary path is UTF-8")
}

pub fn write(path: &Path, content: impl AsRef<[u8]>) {
    let parent = path.parent().expect("below a directory");
    fs::create_dir_all(parent).expect("directories can be made");
    fs::write(path, content).expect("a file can be written");
}

/// Every body holds its word, in this order, and there are no others.
#[track_caller]
pub fn assert_each(bodies: &[&str], words: &[&str]) {
    let fit = bodies.len() == words.len()
        && bodies.iter().zip(words).all(|(body, word)| body.contains(word));
    assert!(fit, "expected {words:?} in {bodies:#?}");
}

/// The only body holds all of these.
#[track_caller]
pub fn assert_one(bodies: &[&str], words: &[&str]) {
    let [body] = bodies else { panic!("not one entry: {bodies:#?}") };
    for word in words {
        assert!(body.contains(word), "no {word:?} in {body:?}");
    }
}

/// A pipe where nobody writes.
pub fn pipe(path: &Path) {
    let status = Command::new("mkfifo").arg(path).status().expect("mkfifo is there");
    assert!(status.success());
}
