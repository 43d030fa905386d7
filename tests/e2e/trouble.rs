//! The commands for when something is wrong: `doctor`, `bug-report`.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::shared::Home;
use crate::support::{PATIENCE, wait_until};

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

/// Damage within the file, which a daemon that starts does not look for: what doctor advises helps.
#[test]
fn doctor_knows_what_to_do_about_damage_within_the_ledger() {
    let home = Home::new();
    let mut client = home.connect();
    client.request("session/open", json!({"session": "s"}));
    client.request("turn/begin", json!({"session": "s", "turn": "1"}));
    let body = "x".repeat(60_000);
    client.request("reminder/enqueue", json!({"session": "s", "body": body}));
    client.request("reminder/wait", json!({"session": "s", "autoCommit": true}));
    client.request("session/close", json!({"session": "s"}));
    client.request("shutdown", Value::Null);
    client.notify("exit", Value::Null);
    assert_eq!(client.expect_exit(), 0);
    assert!(wait_until(PATIENCE, || home.daemons().is_empty()));
    let (ledger, marker) =
        (home.state().join("ledger.sqlite3"), home.state().join("ledger.damaged"));
    let mut bytes = fs::read(&ledger).expect("it is there");
    let page = 8192;
    for at in (2 * page..bytes.len()).step_by(page) {
        bytes[at..at + 64].fill(0xff);
    }
    fs::write(&ledger, &bytes).expect("it is written");
    let (is_wrong, all) = found(&home);
    let finding = of(&all, "store", "ledger");
    assert!(
        is_wrong && finding["what"].as_str().is_some_and(|it| it.contains("damaged")),
        "{all:?}"
    );
    let advice = finding["advice"].as_str().expect("there is advice");
    assert!(advice.starts_with(&format!("touch {}", marker.display())), "{advice}");
    fs::write(&marker, "").expect("it is written");
    let mut client = home.connect();
    let opened = client.request("session/open", json!({"session": "s"}));
    assert_eq!(opened["result"]["state"], "new", "{opened}");
    let (is_wrong, all) = found(&home);
    assert!(!is_wrong && !marker.exists(), "{all:?}");
    assert_eq!(of(&all, "store", "set aside")["state"], "note");
    client.request("shutdown", Value::Null);
    client.notify("exit", Value::Null);
    assert_eq!(client.expect_exit(), 0);
}

/// A daemon that comes upon damage while it reads has the next one set the file aside, as it says.
#[test]
fn damage_that_a_daemon_reads_is_noted_for_the_next() {
    let home = Home::new();
    let mut client = home.connect();
    client.request("session/open", json!({"session": "s"}));
    client.request("turn/begin", json!({"session": "s", "turn": "1"}));
    client.request("reminder/enqueue", json!({"session": "s", "body": "x".repeat(60_000)}));
    client.request("reminder/wait", json!({"session": "s", "autoCommit": true}));
    client.request("session/close", json!({"session": "s"}));
    client.request("shutdown", Value::Null);
    client.notify("exit", Value::Null);
    assert_eq!(client.expect_exit(), 0);
    assert!(wait_until(PATIENCE, || home.daemons().is_empty()));
    let ledger = home.state().join("ledger.sqlite3");
    let mut bytes = fs::read(&ledger).expect("it is there");
    for at in (2 * 8192..bytes.len()).step_by(8192) {
        bytes[at..at + 64].fill(0xff);
    }
    fs::write(&ledger, &bytes).expect("it is written");
    let mut client = home.connect();
    client.forgive_problems();
    let refused = client.request("session/open", json!({"session": "s"}));
    assert_eq!(refused["error"]["code"], -33010, "{refused}");
    assert!(home.state().join("ledger.damaged").exists(), "{refused}");
    client.request("shutdown", Value::Null);
    client.notify("exit", Value::Null);
    assert_eq!(client.expect_exit(), 0);
    assert!(wait_until(PATIENCE, || home.daemons().is_empty()));
    let mut client = home.connect();
    let opened = client.request("session/open", json!({"session": "s"}));
    assert_eq!(opened["result"]["state"], "new", "{opened}");
    client.request("shutdown", Value::Null);
    client.notify("exit", Value::Null);
    assert_eq!(client.expect_exit(), 0);
}

#[test]
fn doctor_sees_files_that_others_may_read_and_editors_with_and_without_reminderd() {
    let home = Home::new();
    let mut client = home.connect();
    client.request("session/open", json!({"session": "s"}));
    let file = home.state().join("ledger.sqlite3");
    fs::set_permissions(&file, Permissions::from_mode(0o644)).expect("it is changed");
    let (is_wrong, all) = found(&home);
    let finding = of(&all, "store", "files");
    assert!(is_wrong && finding["what"].as_str().is_some_and(|it| it.contains("ledger.sqlite3")));
    assert!(finding["advice"].as_str().is_some_and(|it| it.starts_with("chmod -R go= ")));
    fs::set_permissions(&file, Permissions::from_mode(0o600)).expect("it is changed");
    for program in ["emacs", "nvim", "code", "pi", "opencode"] {
        let program = home.path().join("bin").join(program);
        fs::create_dir_all(program.parent().expect("a directory")).expect("it is made");
        fs::write(&program, "").expect("it is written");
        fs::set_permissions(&program, Permissions::from_mode(0o755)).expect("it is changed");
    }
    fs::create_dir_all(home.path().join(".emacs.d")).expect("it is made");
    fs::write(home.path().join(".emacs.d/init.el"), "(require 'reminderd)\n").expect("written");
    fs::create_dir_all(home.path().join(".config/opencode")).expect("it is made");
    let plugin = "{\"plugin\": [\"file:///reminderd/editors/opencode/dist/index.js\"]}";
    fs::write(home.path().join(".config/opencode/opencode.json"), plugin).expect("written");
    fs::create_dir_all(home.path().join(".vscode/extensions/reminderd.reminderd-0.1.0"))
        .expect("it is made");
    let (is_wrong, all) = found(&home);
    assert!(!is_wrong, "{all:?}");
    for (name, state) in [("Emacs", "ok"), ("Neovim", "note"), ("VS Code", "ok")] {
        assert_eq!(of(&all, "editors and languages", name)["state"], state, "{all:?}");
    }
    assert_eq!(of(&all, "agents", "pi")["state"], "note", "{all:?}");
    assert_eq!(of(&all, "agents", "OpenCode")["state"], "ok", "{all:?}");
    let advice = &of(&all, "editors and languages", "Neovim")["advice"];
    assert!(advice.as_str().is_some_and(|it| it.contains("editors/neovim/README.md")));
    client.request("shutdown", Value::Null);
    client.notify("exit", Value::Null);
    assert_eq!(client.expect_exit(), 0);
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
    // The daemon's own logs are taken as they are; its recordings and what models were told are not.
    assert!(run(&home, &["record", "start"]).status.success());
    let recordings = home.state().join("recordings");
    fs::write(recordings.join("20260101T000000.000Z-s-0.jsonl"), CANARY).expect("it is written");
    let log = "a daemon said this in its log\n";
    fs::write(home.state().join("daemon.log"), log).expect("it is written");
    // Whatever stood there is nobody else's business any more.
    fs::write(home.path().join("report.txt"), "y".repeat(1 << 20)).expect("it is written");
    assert!(run(&home, &["bug-report", "-o", "report.txt"]).status.success());
    let mode = fs::metadata(home.path().join("report.txt")).expect("it is there").permissions();
    assert_eq!(mode.mode() & 0o777, 0o600);
    let report = fs::read_to_string(home.path().join("report.txt")).expect("it is there");
    for part in ["How it stands", "1 session, 1 of them open, 1 request", "ledger"] {
        assert!(report.contains(part), "no {part:?} in {report}");
    }
    assert!(!report.contains(CANARY) && report.contains(log), "{report}");
    let home_directory = home.path().display().to_string();
    assert!(!report.contains(&home_directory), "{report}");
    client.request("shutdown", Value::Null);
    client.notify("exit", Value::Null);
    assert_eq!(client.expect_exit(), 0);
}
