//! What terminal agents' hooks say and are given: a file a course of events, as the agents themselves
//! write them, each told to the real command, which starts the real daemon.
//!
//! A file is named `HOST/WHAT.jsonl`; lines that begin with `#` say what it is about. A line is one of
//!
//! | line | what it does |
//! |---|---|
//! | `{"event": …, "gives": null}` | runs `reminderd hook HOST` with this on its standard input; it prints nothing |
//! | `{"event": …, "gives": [TEXT…], "not": [TEXT…]}` | … it gives the model a text that holds these, and none of those |
//! | `{"event": …, "gives": null, "logs": TEXT}` | … and says in its log what is wrong |
//! | `{"transcript": [LINE…]}` | the host appends these to the transcript; `"$GIVEN"` is what it was given last |
//! | `{"file": NAME, "content": TEXT}` | somebody writes a file of the project |
//! | `{"configuration": TEXT}` | the person's configuration says this |
//! | `{"kill": true}` | the daemon is killed |
//! | `{"told": [TYPE…]}` | what `reminderd log` says was told, in order |
//!
//! `$PROJECT` and `$TRANSCRIPT` stand for paths. Members that all events of a file have in common stand
//! in `{"common": …}`.

#[path = "../support/patience.rs"]
mod patience;

mod settings;

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use patience::{PATIENCE, wait_until};

const BINARY: &str = env!("CARGO_BIN_EXE_reminderd");

/// A machine with one agent on it.
struct World {
    home: tempfile::TempDir,
    host: String,
    common: Value,
    /// What the host was given last.
    given: String,
}

impl World {
    fn new(host: &str) -> Self {
        let home = tempfile::tempdir().expect("a directory");
        let world = Self { home, host: host.to_owned(), common: json!({}), given: String::new() };
        fs::create_dir(world.project()).expect("it is made");
        world
    }

    fn project(&self) -> PathBuf {
        self.home.path().join("project")
    }

    fn transcript(&self) -> PathBuf {
        self.home.path().join("transcript.jsonl")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(BINARY);
        command
            .args(arguments)
            .current_dir(self.project())
            .env("HOME", self.home.path())
            .env("XDG_RUNTIME_DIR", self.home.path().join("run"))
            .env("XDG_STATE_HOME", self.home.path().join("state"))
            .env("XDG_CONFIG_HOME", self.home.path().join("config"))
            .env_remove("CLAUDE_PROJECT_DIR")
            .env_remove("CODEX_HOME")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn run(&self, arguments: &[&str], input: &str) -> Output {
        let mut command = self.command(arguments);
        let mut child = command.stdin(Stdio::piped()).spawn().expect("reminderd starts");
        let mut stdin = child.stdin.take().expect("a pipe");
        stdin.write_all(input.as_bytes()).expect("it is read");
        drop(stdin);
        child.wait_with_output().expect("it ends")
    }

    /// A line with the paths of this machine in it.
    fn here(&self, text: &str) -> String {
        let path = |path: PathBuf| path.display().to_string();
        text.replace("$PROJECT", &path(self.project()))
            .replace("$TRANSCRIPT", &path(self.transcript()))
    }

    fn play(&mut self, line: &Value) {
        let line: Value = serde_json::from_str(&self.here(&line.to_string())).expect("JSON");
        let members = line.as_object().expect("an object");
        if let Some(common) = members.get("common") {
            self.common = common.clone();
        } else if let Some(event) = members.get("event") {
            self.event(event, &line);
        } else if let Some(lines) = members.get("transcript") {
            self.append(lines.as_array().expect("lines"));
        } else if let Some(name) = members.get("file") {
            let path = self.project().join(name.as_str().expect("a name"));
            fs::write(path, line["content"].as_str().expect("a text")).expect("it is written");
        } else if let Some(configuration) = members.get("configuration") {
            let directory = self.home.path().join("config/reminderd");
            fs::create_dir_all(&directory).expect("it is made");
            let text = configuration.as_str().expect("a text");
            fs::write(directory.join("reminderd.toml"), text).expect("it is written");
        } else if members.contains_key("kill") {
            self.kill();
        } else if let Some(told) = members.get("told") {
            assert_eq!(&json!(self.told()), told);
        } else {
            panic!("this line does nothing");
        }
    }

    fn event(&mut self, event: &Value, line: &Value) {
        let mut input = self.common.clone();
        let members = event.as_object().expect("an object").clone();
        input.as_object_mut().expect("an object").extend(members);
        let output = self.run(&["hook", &self.host], &input.to_string());
        assert!(output.status.success(), "{output:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        let log = self.home.path().join("state/reminderd/hook.log");
        let logged = fs::read_to_string(&log).unwrap_or_default();
        match line["logs"].as_str() {
            None => assert_eq!(logged, "", "nothing is wrong"),
            Some(text) => {
                assert!(logged.contains(text), "no {text:?} in {logged:?}");
                fs::remove_file(&log).expect("it is taken away");
            }
        }
        let expected = line["gives"].as_array();
        if expected.is_none() {
            assert_eq!(String::from_utf8_lossy(&output.stdout), "", "nothing is to be said");
            return;
        }
        let answer: Value = serde_json::from_slice(&output.stdout).expect("an answer in JSON");
        self.given = given(&answer).unwrap_or_else(|| panic!("no text in {answer}"));
        for text in expected.into_iter().flatten().filter_map(Value::as_str) {
            assert!(self.given.contains(text), "no {text:?} in {:?}", self.given);
        }
        for text in line["not"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            assert!(!self.given.contains(text), "{text:?} in {:?}", self.given);
        }
    }

    fn append(&self, lines: &[Value]) {
        let given = json!(self.given).to_string();
        let path = self.transcript();
        let file = OpenOptions::new().create(true).append(true).open(path);
        let mut file = file.expect("it is opened");
        for line in lines {
            let line = line.to_string().replace("\"$GIVEN\"", &given);
            writeln!(file, "{line}").expect("it is written");
        }
    }

    fn kill(&self) {
        let daemons = fs::read_dir(self.home.path().join("state/reminderd/daemons"));
        let names = daemons.expect("a daemon was here").flatten().map(|entry| entry.file_name());
        let pids = Command::new("pgrep")
            .args(["-f", &format!("serve --detached .*{}", self.home.path().display())])
            .output()
            .expect("pgrep runs");
        let pids = String::from_utf8(pids.stdout).expect("numbers");
        assert!(!pids.is_empty(), "no daemon runs: {:?}", names.collect::<Vec<_>>());
        for pid in pids.split_whitespace() {
            let killed = Command::new("kill").args(["-9", pid]).status().expect("kill runs");
            assert!(killed.success());
            let gone = || !Path::new(&format!("/proc/{pid}/exe")).exists();
            assert!(wait_until(PATIENCE, gone), "it is killed");
        }
    }

    fn told(&self) -> Vec<String> {
        let output = self.run(&["log", "--json"], "");
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        let rows = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        rows.map(|row| row["type"].as_str().expect("a type").to_owned()).collect()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // Its daemon ends by itself, but not at once.
        let pattern = format!("serve --detached .*{}", self.home.path().display());
        drop(Command::new("pkill").args(["-f", &pattern]).status());
    }
}

/// The text in a host's format of an answer.
fn given(answer: &Value) -> Option<String> {
    let text = &answer["hookSpecificOutput"]["additionalContext"];
    text.as_str().map(str::to_owned)
}

#[test]
fn each_course_of_events_goes_as_it_says() {
    let tree = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hooks");
    let mut played = 0;
    for host in ["claude-code", "codex"] {
        let files = fs::read_dir(tree.join(host)).expect("it is there");
        for file in files.map(|entry| entry.expect("an entry").path()) {
            let text = fs::read_to_string(&file).expect("it is read");
            let mut world = World::new(host);
            for (index, line) in text.lines().enumerate() {
                if line.is_empty() || line.starts_with('#') {
                    continue;
                }
                let line: Value = serde_json::from_str(line)
                    .unwrap_or_else(|error| panic!("{}:{}: {error}", file.display(), index + 1));
                let place = format!("{}:{}", file.display(), index + 1);
                let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                    world.play(&line);
                }));
                assert!(result.is_ok(), "{place}");
            }
            played += 1;
        }
    }
    assert!(played > 0);
}
