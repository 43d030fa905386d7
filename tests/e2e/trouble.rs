//! The commands for when something is wrong: `doctor`, `bug-report`.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::shared::Home;

const BINARY: &str = env!("CARGO_BIN_EXE_reminderd");
/// What nobody but the model is told.
const CANARY: &str = "a-canary-that-must-not-be-sent";

/// The command, on a machine of its own.
fn run(home: &Home, arguments: &[&str]) -> Output {
    Command::new(BINARY)
        .args(arguments)
        .env("HOME", home.path())
        .env("PATH", home.path().join("bin"))
        .env("XDG_RUNTIME_DIR", home.path().join("run"))
        .env("XDG_STATE_HOME", home.path().join("state"))
        .env("XDG_CONFIG_HOME", home.path().join("config"))
        .env_remove("CLAUDE_CONFIG_DIR")
        .current_dir(home.path())
        .stdin(Stdio::null())
        .output()
        .expect("reminderd starts")
}

/// What doctor finds: whether anything is wrong, and each thing by its name.
fn found(home: &Home) -> (bool, Vec<Value>) {
    let output = run(home, &["doctor", "--json"]);
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let found = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    (!output.status.success(), found)
}

fn of<'a>(found: &'a [Value], about: &str, name: &str) -> &'a Value {
    let is_it = |finding: &&Value| finding["about"] == about && finding["name"] == name;
    found.iter().find(is_it).unwrap_or_else(|| panic!("no {about} {name} in {found:?}"))
}

#[test]
fn doctor_says_what_is_wrong_and_what_to_do() {
    let home = Home::new();
    let (is_wrong, all) = found(&home);
    assert!(!is_wrong, "{all:?}");
    assert!(
        of(&all, "store", "directory")["what"].as_str().is_some_and(|it| it.contains("not made"))
    );

    // A session is stored, and the daemon is there.
    let mut client = home.connect();
    client.request("session/open", json!({"session": "s"}));
    let (is_wrong, all) = found(&home);
    assert!(!is_wrong, "{all:?}");
    assert!(of(&all, "reminderd", "daemon")["what"].as_str().is_some_and(|it| it.contains("runs")));
    assert!(
        of(&all, "store", "ledger")["what"].as_str().is_some_and(|it| it.contains("1 session"))
    );

    // Others may read it, the user's file is mistaken, and an agent does not run reminderd.
    let state = home.state();
    fs::set_permissions(&state, Permissions::from_mode(0o755)).expect("it is changed");
    let configuration = home.path().join("config/reminderd");
    fs::create_dir_all(&configuration).expect("it is made");
    fs::write(configuration.join("reminderd.toml"), "[kinds]\ntask-nudge = 3\n").expect("written");
    let program = home.path().join("bin/claude");
    fs::create_dir_all(program.parent().expect("a directory")).expect("it is made");
    fs::write(&program, "").expect("it is written");
    fs::set_permissions(&program, Permissions::from_mode(0o755)).expect("it is changed");
    let (is_wrong, all) = found(&home);
    assert!(is_wrong);
    for (about, name, state, advice) in [
        ("store", "directory", "trouble", "chmod 700 "),
        ("configuration", "user", "trouble", "reminderd config check "),
        ("agents", "Claude Code", "note", "reminderd hook install claude-code"),
    ] {
        let finding = of(&all, about, name);
        assert_eq!(finding["state"], state, "{finding}");
        assert!(finding["advice"].as_str().is_some_and(|it| it.starts_with(advice)), "{finding}");
    }
    assert!(run(&home, &["hook", "install", "claude-code"]).status.success());
    fs::set_permissions(&state, Permissions::from_mode(0o700)).expect("it is changed");
    fs::remove_file(configuration.join("reminderd.toml")).expect("it is taken away");
    let (is_wrong, all) = found(&home);
    assert!(!is_wrong, "{all:?}");
    assert_eq!(of(&all, "agents", "Claude Code")["state"], "ok");
    client.request("shutdown", Value::Null);
    client.notify("exit", Value::Null);
    assert_eq!(client.expect_exit(), 0);

    // What people see says the same.
    let output = run(&home, &["doctor"]);
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(text.contains("ok      ledger") && text.ends_with("Nothing is wrong.\n"), "{text}");
}

#[test]
fn doctor_finds_a_store_that_is_damaged() {
    let home = Home::new();
    let state = home.state();
    fs::create_dir_all(&state).expect("it is made");
    fs::set_permissions(&state, Permissions::from_mode(0o700)).expect("it is changed");
    fs::write(state.join("ledger.sqlite3"), "no database at all, but long enough to be one")
        .expect("it is written");
    let (is_wrong, all) = found(&home);
    assert!(is_wrong);
    assert_eq!(of(&all, "store", "ledger")["state"], "trouble");
}

#[test]
fn a_report_of_a_fault_holds_nothing_that_was_told() {
    let home = Home::new();
    let mut client = home.connect();
    let session = format!("session-{CANARY}");
    client.request("session/open", json!({"session": session, "root": home.path()}));
    client.request("turn/begin", json!({"session": session, "turn": "1"}));
    client.request("reminder/enqueue", json!({"session": session, "body": CANARY}));
    let wait = json!({"session": session, "autoCommit": true});
    let told = client.request("reminder/wait", wait);
    assert_eq!(told["result"]["committed"], true, "{told}");
    fs::write(home.path().join("reminderd.toml"), format!("# {CANARY}\n")).expect("it is written");
    assert!(run(&home, &["bug-report", "-o", "report.txt"]).status.success());
    let report = fs::read_to_string(home.path().join("report.txt")).expect("it is there");
    for part in ["How it stands", "1 sessions, 1 of them open, 1 requests", "ledger"] {
        assert!(report.contains(part), "no {part:?} in {report}");
    }
    assert!(!report.contains(CANARY), "{report}");
    let home_directory = home.path().display().to_string();
    assert!(!report.contains(&home_directory), "{report}");
    client.request("shutdown", Value::Null);
    client.notify("exit", Value::Null);
    assert_eq!(client.expect_exit(), 0);
}
