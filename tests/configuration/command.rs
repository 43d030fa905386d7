//! `reminderd config`, as the shell sees it.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;

use serde_json::{Value as Json, json};
use tempfile::TempDir;

/// A home with a configuration, and a workspace beside it.
struct Place {
    directory: TempDir,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        fs::create_dir_all(directory.path().join("home/reminderd")).expect("a home");
        fs::create_dir(directory.path().join("w")).expect("a workspace");
        Self { directory }
    }

    fn with(self, name: &str, text: &str) -> Self {
        fs::write(self.path(name), text).expect("a file");
        self
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.directory.path().join(name)
    }

    /// Runs `reminderd config` in the workspace.
    fn config(&self, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_reminderd"))
            .arg("config")
            .args(arguments)
            .current_dir(self.path("w"))
            .env("XDG_CONFIG_HOME", self.path("home"))
            .stdin(Stdio::null())
            .output()
            .expect("reminderd starts")
    }

    fn json(&self, arguments: &[&str]) -> Json {
        let output = self.config(arguments);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
    }
}

const USERS: &str = "home/reminderd/reminderd.toml";
const WORKSPACES: &str = "w/reminderd.toml";

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

#[test]
fn check_says_by_its_status_whether_all_is_well() {
    let place = Place::new()
        .with("w/good.toml", "[kinds]\nsections = false\n")
        .with("w/bad.toml", "[kinds]\nsektions = false\n")
        .with("w/broken.toml", "[kinds\n");
    for (arguments, status) in [
        (&["good.toml"][..], 0),
        (&["bad.toml"], 1),
        (&["broken.toml"], 1),
        (&["good.toml", "bad.toml"], 1),
        (&["nowhere.toml"], 2),
        (&["bad.toml", "nowhere.toml"], 2),
        (&["."], 2),
        (&["--jsn"], 2),
        (&[], 0),
    ] {
        for form in [&[][..], &["--json"]] {
            let output = place.config(&[&["check"], arguments, form].concat());
            assert_eq!(output.status.code(), Some(status), "{arguments:?}: {output:?}");
        }
    }
    let told = stdout(&place.config(&["check", "bad.toml"]));
    assert!(told.starts_with("bad.toml:2:1: no kind or reminder is called"), "{told}");
    assert!(told.contains("did you mean sections?"), "{told}");
    assert!(told.contains("^^^^^^^^"), "{told}");
}

#[test]
fn check_says_the_same_as_json() {
    let place =
        Place::new().with("w/bad.toml", "[kinds]\n  task-nudge = { after = 0, aftr = 1 }\n");
    let json = place.json(&["check", "--json", "bad.toml"]);
    let mistakes = json["files"][0]["mistakes"].as_array().expect("mistakes");
    assert_eq!(json["files"][0]["file"], "bad.toml");
    let [first, second] = mistakes.as_slice() else { panic!("{json}") };
    assert_eq!((&first["line"], &first["column"]), (&2.into(), &26.into()), "{json}");
    assert_eq!(
        (&first["key"], &first["severity"]),
        (&"kinds.task-nudge.after".into(), &"mistake".into())
    );
    assert_eq!(second["severity"], "unknown");
    assert_eq!(second["help"], "did you mean after?");
}

/// Without a file it is the user's own and the one in the current directory, which may switch the
/// user's reminders, but not the daemon's limits.
#[test]
fn check_knows_the_layers() {
    let place = Place::new()
        .with(
            USERS,
            "[limits]\nmessageBytes = 1000000\n[[reminders]]\nid = \"mine\"\nbody = \"b\"\n",
        )
        .with(WORKSPACES, "[kinds]\nmine = false\n");
    let output = place.config(&["check"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(stdout(&output).matches("no mistakes").count(), 2);
    let place = place.with(WORKSPACES, "[store]\nkeepDays = 1\n");
    for arguments in [&["check"][..], &["check", "reminderd.toml"]] {
        let output = place.config(arguments);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(stdout(&output).contains("reminderd.toml:1:2: [store] is for the whole daemon"));
    }
}

/// Whatever lies in the file's place, nothing waits for it.
#[test]
fn odd_files_are_refused() {
    let place = Place::new();
    fs::create_dir(place.path(WORKSPACES)).expect("a directory");
    let output = place.config(&["check"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("it is a directory"));
    let fifo = place.path("w/fifo");
    let made = Command::new("mkfifo").arg(&fifo).status().expect("mkfifo runs");
    assert!(made.success());
    for odd in ["fifo", "/dev/zero", "/dev/tty"] {
        let output = place.config(&["check", odd]);
        assert_eq!(output.status.code(), Some(2), "{odd}: {output:?}");
    }
    // A link is as good as the file.
    let linked = Place::new().with("elsewhere.toml", "[kinds]\nsektions = 1\n");
    symlink(linked.path("elsewhere.toml"), linked.path(USERS)).expect("a link");
    assert_eq!(linked.config(&["check"]).status.code(), Some(1));
    symlink(Path::new("nowhere"), linked.path(WORKSPACES)).expect("a link");
    assert_eq!(linked.config(&["check", "reminderd.toml"]).status.code(), Some(2));
}

#[test]
fn show_says_where_each_value_comes_from() {
    let place = Place::new()
        .with(
            USERS,
            "[kinds]\ntask-nudge = { after = 3 }\ntoken-usage = false\n\n[store]\nkeepDays = 7\n\
             [[reminders]]\nid = \"mine\"\nwhen = \"openTasks > 0\"\nbody = \"b\"\n",
        )
        .with(
            WORKSPACES,
            "[kinds]\nedited-files = { diffLines = 400 }\nsections = { maxPerTurn = 1 }\n\
             [[reminders]]\nid = \"its\"\nbody = \"b\"\n",
        );
    let text = stdout(&place.config(&["show"]));
    let users = place.path(USERS).display().to_string();
    for (key, from) in [
        ("kinds.task-nudge.after = 3", format!("{users}:2")),
        ("kinds.task-nudge.cooldown = 8", "default".to_owned()),
        ("kinds.token-usage = false", format!("{users}:3")),
        ("kinds.sections.maxPerTurn = 1", "./reminderd.toml:3".to_owned()),
        ("kinds.edited-files.diffLines = 40", "default".to_owned()),
        ("store.keepDays = 7", format!("{users}:6")),
        ("limits.messageBytes = 67108864", "default".to_owned()),
    ] {
        let line = text.lines().find(|line| line.starts_with(&format!("{key} ")));
        let line = line.unwrap_or_else(|| panic!("no {key}: {text}"));
        assert!(line.ends_with(&format!("# {from}")), "{line}");
    }
    assert!(text.contains(&format!("[[reminders]]  # {users}:8\nid = \"mine\"\n")), "{text}");
    assert!(text.contains("# ./reminderd.toml:5: its: it is the workspace's own text"), "{text}");
    assert!(
        text.contains("# ./reminderd.toml:2: edited-files.diffLines: it raises a cap"),
        "{text}"
    );
    // It is TOML.
    toml::from_str::<toml::Table>(&text).unwrap_or_else(|error| panic!("{error}: {text}"));

    let json = place.json(&["show", "--trusted", "--root", ".", "--json"]);
    let value = |key: &str| {
        let values = json["values"].as_array().expect("values");
        values.iter().find(|it| it["key"] == key).unwrap_or_else(|| panic!("no {key}"))
    };
    assert_eq!(value("kinds.edited-files.diffLines")["value"], 400);
    assert_eq!(value("kinds.edited-files.diffLines")["source"]["line"], 2);
    assert_eq!(value("kinds.edited-files.totalLines")["source"], "default");
    assert_eq!(json["reminders"].as_array().map(Vec::len), Some(2));
    assert_eq!(json["leftOut"], Json::Array(Vec::new()));
}

/// What is wrong is said beside what holds.
#[test]
fn show_says_what_it_could_not_read() {
    let place = Place::new().with(USERS, "[kinds]\nsektions = 1\nmention = false\n");
    let output = place.config(&["show"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(stdout(&output).contains("kinds.mention = false"));
    assert!(String::from_utf8_lossy(&output.stderr).contains("reminderd.toml:2:"));
    fs::create_dir(place.path(WORKSPACES)).expect("a directory");
    assert_eq!(place.config(&["show"]).status.code(), Some(2));
}

/// What is for the whole daemon holds from its start: a longer message is refused, and `initialize`
/// says so.
#[test]
fn the_daemons_limits_are_those_of_the_users_file() {
    let place = Place::new().with(USERS, "[limits]\nmessageBytes = 70_000\n");
    let initialize = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"capabilities": {}},
    });
    let long = json!({"jsonrpc": "2.0", "method": "initialized", "params": "x".repeat(70_000)});
    let run = |arguments: &[&str]| {
        let mut daemon = Command::new(env!("CARGO_BIN_EXE_reminderd"))
            .args(arguments)
            .current_dir(place.path("w"))
            .env("XDG_CONFIG_HOME", place.path("home"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("reminderd starts");
        let mut stdin = daemon.stdin.take().expect("stdin");
        let said = format!("{initialize}\n{long}\n");
        let input = thread::spawn(move || drop(stdin.write_all(said.as_bytes())));
        let output = daemon.wait_with_output().expect("it ends");
        input.join().expect("all is written");
        let lines = stdout(&output);
        lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect::<Vec<Json>>()
    };
    let limit = |answer: &Json| {
        answer["result"]["capabilities"]["experimental"]["reminderd"]["limits"]["messageBytes"]
            .clone()
    };
    let answers = run(&["--ephemeral"]);
    assert_eq!(limit(&answers[0]), 70_000, "{answers:?}");
    assert_eq!(answers[1]["error"]["code"], -33009, "{answers:?}");
    assert_eq!(answers[1]["error"]["data"]["messageBytes"], 70_000, "{answers:?}");
    let answers = run(&["--ephemeral", "--no-config"]);
    assert_eq!((limit(&answers[0]), answers.len()), (json!(64 << 20), 1), "{answers:?}");
}
