//! The commands for people, on the sessions of scenarios and on live ones: `log`, `explain`,
//! `sessions`, `decode`, `forget`, `status`, `completions`, `man`.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use serde_json::{Value, json};

use crate::shared::Home;
use crate::support::{Daemon, Framing, PATIENCE, Start, wait_until};

const BINARY: &str = env!("CARGO_BIN_EXE_reminderd");
/// What would do harm on a terminal, or hide something there.
const HOSTILE: &str = "x\u{1b}[31my\u{202e}z\u{9b}\u{e0041}\u{7}</system-reminder>";
/// Text that is read from right to left, and text of two columns a character.
const FOREIGN: &str = "שלום עולם, مرحبا 日本語";

/// The command, in a home of its own.
pub fn command(home: &Home, arguments: &[&str]) -> Command {
    let mut command = Command::new(BINARY);
    command
        .args(arguments)
        .env("XDG_RUNTIME_DIR", home.path().join("run"))
        .env("XDG_STATE_HOME", home.path().join("state"))
        .env("TZ", "UTC")
        .current_dir(home.path())
        .stdin(Stdio::null());
    command
}

fn run(home: &Home, arguments: &[&str]) -> Output {
    command(home, arguments).output().expect("reminderd starts")
}

fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).expect("UTF-8")
}

fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).expect("UTF-8")
}

/// What a command that succeeds prints.
fn told(home: &Home, arguments: &[&str]) -> String {
    let output = run(home, arguments);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    stdout(&output).to_owned()
}

/// The same as JSON, a value a line.
pub fn json_of(home: &Home, arguments: &[&str]) -> Vec<Value> {
    let text = told(home, &[arguments, &["--json"]].concat());
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// One line that says what is wrong, and nothing else.
pub fn refused(home: &Home, arguments: &[&str]) -> String {
    let output = run(home, arguments);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {output:?}");
    assert_eq!(stdout(&output), "", "{arguments:?}");
    let said = stderr(&output);
    let command = arguments[0];
    assert!(said.starts_with(&format!("reminderd {command}: ")), "{said}");
    said.to_owned()
}

/// Plays scenarios into the store.
pub fn play(home: &Home, scripts: &[&str]) {
    for script in scripts {
        let state = home.state();
        let against = format!("{BINARY} --deterministic --no-config --state {}", state.display());
        let output = command(home, &["run", "--against", &against])
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios").join(script))
            .output()
            .expect("reminderd starts");
        assert!(output.status.success(), "{script}: {output:?}");
    }
}

fn result(answer: &Value) -> &Value {
    assert!(answer.get("error").is_none(), "{answer}");
    &answer["result"]
}

fn open(client: &mut Daemon, session: &str, root: &Path) {
    result(&client.request("session/open", json!({"session": session, "root": root})));
}

fn begin(client: &mut Daemon, session: &str) {
    result(&client.request("turn/begin", json!({"session": session, "turn": "t1"})));
}

/// Tells a body, and returns the delivery.
fn tell(client: &mut Daemon, session: &str, body: &str) -> Value {
    result(&client.request("reminder/enqueue", json!({"session": session, "body": body})));
    let wait = json!({"session": session, "autoCommit": true});
    result(&client.request("reminder/wait", wait)).clone()
}

fn decode(home: &Home, record: &str) -> Output {
    let mut child = command(home, &["decode"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("reminderd starts");
    let mut stdin = child.stdin.take().expect("stdin is piped");
    stdin.write_all(record.as_bytes()).expect("it reads");
    drop(stdin);
    child.wait_with_output().expect("it ends")
}

#[test]
fn decode_prints_exactly_the_message() {
    let home = Home::new();
    let mut daemon = Daemon::initialized(Framing::Lines);
    open(&mut daemon, "s", home.path());
    begin(&mut daemon, "s");
    for body in ["plain", "two\nlines\n", HOSTILE, FOREIGN] {
        let delivery = tell(&mut daemon, "s", body);
        let record = delivery["record"].to_string();
        let output = decode(&home, &record);
        assert!(output.status.success(), "{output:?}");
        assert_eq!(stdout(&output), delivery["message"]["content"].as_str().expect("content"));
        let changed = record.replacen("reminders", "reminderz", 1);
        let cut = &record[..record.len() - 9];
        let mut other = delivery["record"].clone();
        other["entries"][0]["body"] = "something else".into();
        let mut later = delivery["record"].clone();
        later["version"] = 2.into();
        for (record, why) in [
            (&*changed, "no injection record"),
            (cut, "no injection record"),
            ("", "no injection record"),
            (&*other.to_string(), "digest"),
            (&*later.to_string(), "version 2"),
        ] {
            let output = decode(&home, record);
            assert_eq!((output.status.code(), stdout(&output)), (Some(1), ""), "{record}");
            assert!(stderr(&output).contains(why), "{output:?}");
            assert_eq!(stderr(&output).lines().count(), 1, "{output:?}");
        }
    }
}

#[test]
fn log_shows_what_was_told_of_what_is_asked_for() {
    let home = Home::new();
    play(&home, &["first-session.jsonl", "store/agents.jsonl", "sections/first-telling.jsonl"]);
    let all = json_of(&home, &["log"]);
    let types = |rows: &[Value]| -> Vec<String> {
        rows.iter().map(|row| row["type"].as_str().expect("a type").to_owned()).collect()
    };
    let demo = json_of(&home, &["log", "demo"]);
    assert_eq!(
        types(&demo),
        ["no-push", "build", "max-requests-warning", "max-requests-limit", "task-nudge"]
    );
    assert!(demo.iter().all(|row| row["session"] == "demo"));
    assert!(all.len() > demo.len());
    // To whom, what, how many, when.
    let to_agent = json_of(&home, &["log", "demo", "--agent", "/reviewer"]);
    assert_eq!(types(&to_agent), ["max-requests-warning", "max-requests-limit"]);
    let to_root = json_of(&home, &["log", "demo", "--agent", "/"]);
    assert_eq!(types(&to_root), ["no-push", "build", "task-nudge"]);
    let kinds = ["log", "demo", "--kind", "task-nudge", "--kind", "no-push"];
    assert_eq!(types(&json_of(&home, &kinds)), ["no-push", "task-nudge"]);
    let of_kind = json_of(&home, &["log", "demo", "--kind", "turn-event"]);
    assert_eq!(types(&of_kind), ["build"]);
    assert_eq!(types(&json_of(&home, &["log", "demo", "--limit", "2"])), types(&demo[3..]));
    // The deterministic clock stands at the beginning of 2026.
    let since = json_of(&home, &["log", "--since", "2026-01-01T00:00:00Z"]);
    assert_eq!(since.len(), all.len());
    assert!(json_of(&home, &["log", "--since", "2026-01-02"]).is_empty());
    assert_eq!(json_of(&home, &["log", "--until", "2026-01-01"]).len(), all.len());
    assert!(json_of(&home, &["log", "--until", "2025-12-31 23:59"]).is_empty());
    assert_eq!(all[0]["at"], "2026-01-01T00:00:00.000Z");
    // Bodies are whole, and their price is the one that the WAIT named.
    let bodies = json_of(&home, &["log", "demo", "--bodies"]);
    let nudge = bodies.last().expect("the nudge");
    assert!(nudge["body"].as_str().is_some_and(|body| body.contains("[/system-reminder]")));
    assert!(nudge["tokens"].as_u64().is_some_and(|tokens| tokens > 20));
    assert!(nudge.get("text").is_none());
    // The table: a heading, a line a reminder, nothing that only a terminal understands.
    let table = told(&home, &["log", "demo"]);
    assert_eq!(table.lines().count(), 1 + demo.len());
    assert!(table.starts_with("TIME "), "{table}");
    assert!(table.contains("2026-01-01 00:00:00  /          t1    no-push"), "{table}");
    assert!(!table.contains('\u{1b}') && !table.contains('\t'));
    let few = run(&home, &["log", "demo", "--limit", "1"]);
    assert!(stderr(&few).contains("--limit"), "{few:?}");
    // A misspelt session.
    let said = refused(&home, &["log", "demi"]);
    assert!(said.contains("did you mean `demo`?") && said.contains("/home/dev/parser"), "{said}");
    let bad = run(&home, &["log", "--since", "yesterdayish"]);
    assert_eq!(bad.status.code(), Some(2), "{bad:?}");
    assert!(stderr(&bad).contains("2h"), "{bad:?}");
}

/// A command whose lines are read as they come.
struct Following {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Following {
    fn start(home: &Home, arguments: &[&str]) -> Self {
        let mut command = command(home, arguments);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("reminderd starts");
        let lines = BufReader::new(child.stdout.take().expect("stdout is piped")).lines();
        Self { child, lines }
    }

    fn next(&mut self) -> Value {
        let line = self.lines.next().expect("there is more").expect("UTF-8");
        serde_json::from_str(&line).expect("JSON")
    }
}

#[test]
fn log_follows_what_is_told_live_and_ends_with_its_reader() {
    let home = Home::new();
    let mut client = home.connect();
    open(&mut client, "s", home.path());
    open(&mut client, "other", home.path());
    begin(&mut client, "s");
    begin(&mut client, "other");
    tell(&mut client, "s", "before");
    let mut following = Following::start(&home, &["log", "s", "--follow", "--json", "--bodies"]);
    assert!(following.next()["body"].as_str().is_some_and(|body| body.contains("before")));
    tell(&mut client, "other", "of no interest");
    tell(&mut client, "s", FOREIGN);
    let row = following.next();
    assert!(row["body"].as_str().is_some_and(|body| body.contains(FOREIGN)), "{row}");
    assert_eq!((&row["session"], &row["turn"]), (&json!("s"), &json!("t1")));
    let Following { mut child, lines } = following;
    drop(lines);
    let ended = wait_until(PATIENCE, || child.try_wait().expect("it is ours").is_some());
    assert!(ended, "it goes on for nobody");
    assert!(child.wait().expect("it is ours").success());
    shut_down(&mut client);
}

fn shut_down(client: &mut Daemon) {
    result(&client.request("shutdown", Value::Null));
    client.notify("exit", Value::Null);
    assert_eq!(client.expect_exit(), 0);
}

#[test]
fn sessions_are_open_held_or_stored() {
    let home = Home::new();
    play(&home, &["first-session.jsonl"]);
    let mut alone = Start::keeping(Framing::Lines, &home.state()).spawn();
    alone.initialize();
    open(&mut alone, "of one client", home.path());
    // An older build: who only looks does not make it hand over.
    let mut client = home.connect_with(&["--build", "0.0.1"]);
    let daemon = home.daemon();
    open(&mut client, "live", home.path());
    begin(&mut client, "live");
    let rows = json_of(&home, &["sessions"]);
    let state = |name: &str| {
        let row = rows.iter().find(|row| row["session"] == name).expect(name);
        row["state"].as_str().expect("a state").to_owned()
    };
    assert_eq!(rows.len(), 3);
    assert_eq!(state("live"), "open");
    assert_eq!(state("of one client"), "held");
    assert_eq!(state("demo"), "stored");
    let held = rows.iter().find(|row| row["state"] == "held").expect("one is");
    assert_eq!(held["holder"]["pid"], alone.pid());
    let live = rows.iter().find(|row| row["state"] == "open").expect("one is");
    assert_eq!(live["turn"], "t1");
    let table = told(&home, &["sessions"]);
    assert!(table.contains(&format!("process {} on ", alone.pid())), "{table}");
    assert!(table.lines().last().is_some_and(|last| last.starts_with("demo")), "{table}");
    assert_eq!(home.daemon(), daemon, "the daemon is another one");
    begin_again(&mut client, "live");
    shut_down(&mut client);
}

/// The session is still open for this client.
fn begin_again(client: &mut Daemon, session: &str) {
    result(&client.request("turn/begin", json!({"session": session, "turn": "t2"})));
}

#[test]
fn explain_says_what_the_daemon_says_and_changes_nothing() {
    let home = Home::new();
    let root = home.path().canonicalize().expect("a path").join("w/deeper");
    fs::create_dir_all(&root).expect("directories");
    let mut client = home.connect();
    open(&mut client, "live", root.parent().expect("w"));
    open(&mut client, "elsewhere", Path::new("/nowhere"));
    begin(&mut client, "live");
    let spawn = json!({"session": "live", "agent": "/a", "kinds": {}});
    result(&client.request("agent/spawn", spawn));
    result(&client.request("reminder/enqueue", json!({"session": "live", "body": FOREIGN})));
    let asked = client.request("reminder/explain", json!({"session": "live"}));
    let asked = result(&asked)["rows"].as_array().expect("rows").clone();
    let explained = json_of(&home, &["explain", "live"]);
    assert_eq!(explained.len(), asked.len());
    assert_eq!(explained[0]["id"], "pending-events", "what speaks comes first");
    assert_eq!(explained[0]["speaks"], true);
    for row in &asked {
        let mut row = row.clone();
        row["session"] = "live".into();
        row["agent"] = Value::Null;
        assert!(explained.contains(&row), "{row}");
    }
    // The one whose root holds the current directory; from elsewhere the choice is the person's.
    let here = command(&home, &["explain"]).current_dir(&root).output().expect("it starts");
    assert!(stdout(&here).starts_with("live /: 1 reminder would speak now, "), "{here:?}");
    let said = refused(&home, &["explain"]);
    assert!(said.contains("which session?") && said.contains("\n  elsewhere"), "{said}");
    let agent = json_of(&home, &["explain", "live", "--agent", "/a"]);
    assert!(agent.iter().all(|row| row["agent"] == "/a"));
    assert!(!agent.is_empty());
    let whole = json_of(&home, &["explain", "live", "--all"]);
    assert_eq!(whole.len(), explained.len() + agent.len());
    let said = refused(&home, &["explain", "live", "--agent", "/nobody"]);
    assert!(said.contains("/nobody"), "{said}");
    // It is still to be told.
    let wait = json!({"session": "live", "autoCommit": true});
    let delivery = client.request("reminder/wait", wait);
    assert!(
        result(&delivery)["message"]["content"].as_str().is_some_and(|it| it.contains(FOREIGN))
    );
    shut_down(&mut client);
}

#[test]
fn explain_restores_what_is_stored_and_leaves_it() {
    let home = Home::new();
    play(&home, &["first-session.jsonl"]);
    let file = home.state().join("ledger.sqlite3");
    let before = fs::read(&file).expect("a store");
    let rows = json_of(&home, &["explain"]);
    let nudge = rows.iter().find(|row| row["id"] == "task-nudge").expect("its row");
    assert!(nudge["reason"].as_str().is_some_and(|it| it.contains("3 turns")), "{nudge}");
    let own = rows.iter().find(|row| row["id"] == "no-push").expect("its row");
    assert!(own["reason"].as_str().is_some_and(|it| it.contains("told already")), "{own}");
    assert!(fs::read(&file).expect("a store") == before, "the store was changed");
    // Nobody owns it.
    let mut daemon = Start::keeping(Framing::Lines, &home.state()).spawn();
    daemon.initialize();
    let opened = daemon.request("session/open", json!({"session": "demo"}));
    assert_eq!(result(&opened)["state"], "restored");
    // Now that daemon owns it, and cannot be asked.
    let output = run(&home, &["explain", "demo"]);
    assert!(output.status.success(), "{output:?}");
    let said = stderr(&output);
    assert!(said.contains(&format!("process {}", daemon.pid())), "{said}");
}

#[test]
fn forget_leaves_nothing_behind() {
    let home = Home::new();
    let secret = "what-nobody-is-to-find";
    let has_secret = || {
        let files = fs::read_dir(home.state()).expect("a store").flatten();
        files.filter(|file| file.path().is_file()).any(|file| {
            let bytes = fs::read(file.path()).expect("a file");
            bytes.windows(secret.len()).any(|part| part == secret.as_bytes())
        })
    };
    let tell_secret = |client: &mut Daemon, session: &str| {
        open(client, session, home.path());
        begin(client, session);
        tell(client, session, secret);
    };
    let mut daemon = Start::keeping(Framing::Lines, &home.state()).spawn();
    daemon.initialize();
    tell_secret(&mut daemon, "s");
    tell_secret(&mut daemon, "kept");
    // Its daemon lives and has it.
    let said = refused(&home, &["forget", "s", "--yes"]);
    assert!(said.contains(&format!("process {}", daemon.pid())), "{said}");
    drop(daemon);
    // Nothing happens unasked, or halfway.
    let said = refused(&home, &["forget", "s"]);
    assert!(said.contains("--yes"), "{said}");
    let said = refused(&home, &["forget", "s", "nobody", "--yes"]);
    assert!(said.contains("there is no session \"nobody\""), "{said}");
    assert_eq!(json_of(&home, &["sessions"]).len(), 2);
    assert_eq!(told(&home, &["forget", "s", "kept", "--yes"]), "forgot kept\nforgot s\n");
    assert!(!has_secret());
    // A shared daemon has one open, and one stored.
    let mut client = home.connect();
    tell_secret(&mut client, "open");
    tell_secret(&mut client, "stored");
    result(&client.request("session/close", json!({"session": "stored"})));
    assert_eq!(told(&home, &["forget", "open", "stored", "-y"]), "forgot open\nforgot stored\n");
    assert!(json_of(&home, &["sessions"]).is_empty());
    assert!(!has_secret());
    shut_down(&mut client);
}

#[test]
fn status_fits_into_a_mode_line() {
    let home = Home::new();
    let line = |arguments: &[&str]| {
        let output = run(&home, &[&["status", "--line"], arguments].concat());
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        stdout(&output).to_owned()
    };
    assert_eq!(line(&[]), "", "no daemon runs");
    assert!(told(&home, &["status"]).contains("none runs for "));
    let mut client = home.connect();
    assert_eq!(line(&[]), "", "no session is there");
    open(&mut client, "s", home.path());
    assert_eq!(line(&[]), "", "nothing waits");
    result(&client.request("reminder/enqueue", json!({"session": "s", "body": "news"})));
    assert_eq!(line(&["s"]), "◇ 1 (pending events)\n", "it waits between turns too");
    begin(&mut client, "s");
    let section = json!({"session": "s", "section": "memory", "content": FOREIGN});
    result(&client.request("section/set", section));
    assert_eq!(line(&[]), "◇ 2 (pending events, sections)\n");
    assert_eq!(line(&["another"]), "");
    let text = told(&home, &["status"]);
    assert!(text.contains("s: open, in turn t1\n"), "{text}");
    assert!(text.contains("◇ 2 (pending events, sections) for the next request, "), "{text}");
    let status = &json_of(&home, &["status"])[0];
    assert_eq!(status["session"]["turn"], "t1");
    assert_eq!(status["due"].as_array().map(Vec::len), Some(2));
    assert_eq!(status["daemon"]["version"], env!("CARGO_PKG_VERSION"));
    let wait = json!({"session": "s", "autoCommit": true});
    result(&client.request("reminder/wait", wait));
    assert_eq!(line(&[]), "", "all of it was told");
    shut_down(&mut client);
}

/// Texts and names of others stand as they are where they can, and escaped where they could do harm.
#[test]
fn foreign_text_is_shown_and_hostile_text_is_harmless() {
    let home = Home::new();
    let mut client = home.connect();
    for session in [HOSTILE, FOREIGN] {
        open(&mut client, session, home.path());
        begin(&mut client, session);
        tell(&mut client, session, HOSTILE);
        tell(&mut client, session, FOREIGN);
    }
    let is_harmful = |c: char| {
        (c.is_control() && c != '\n') || matches!(c, '\u{202e}' | '\u{2068}' | '\u{e0041}')
    };
    for arguments in [
        &["log"][..],
        &["log", "--bodies"],
        &["log", "--json", "--bodies"],
        &["sessions"],
        &["sessions", "--json"],
        &["explain", HOSTILE],
        &["explain", FOREIGN, "--json"],
        &["status", HOSTILE],
    ] {
        let text = told(&home, arguments);
        assert!(!text.contains(is_harmful), "{arguments:?}: {text:?}");
        assert!(text.contains("\\u{202e}") || text.contains("\\u202e") || text.contains("שלום"));
    }
    let bodies = told(&home, &["log", "--bodies"]);
    assert!(bodies.contains(FOREIGN), "{bodies}");
    let said = refused(&home, &["log", "\u{1b}]0;title\u{7}"]);
    assert!(!said.contains(is_harmful), "{said:?}");
    // As data nothing is changed.
    let rows = json_of(&home, &["sessions"]);
    for session in [HOSTILE, FOREIGN] {
        assert!(rows.iter().any(|row| row["session"] == session), "{rows:?}");
    }
    shut_down(&mut client);
}

#[test]
fn who_reads_no_further_ends_it_quietly() {
    let home = Home::new();
    play(&home, &["first-session.jsonl"]);
    for arguments in [
        &["log", "--bodies"][..],
        &["log", "--json"],
        &["sessions"],
        &["explain", "demo"],
        &["status"],
        &["completions", "bash"],
        &["man"],
    ] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let output = command(&home, arguments)
            .stdout(writer)
            .stderr(Stdio::piped())
            .spawn()
            .and_then(Child::wait_with_output)
            .expect("reminderd starts");
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        assert_eq!(stderr(&output), "", "{arguments:?}");
    }
}

/// One message says what is wrong with the store, and what to do; nothing is changed.
#[test]
fn a_store_that_cannot_be_read_is_said_once() {
    let home = Home::new();
    let commands =
        [&["log"][..], &["sessions"], &["explain"], &["status"], &["forget", "s", "--yes"]];
    let says = |why: &str| {
        for arguments in commands {
            let said = refused(&home, arguments);
            assert!(said.contains(why), "{arguments:?}: {said}");
            assert_eq!(said.lines().count(), 1, "{arguments:?}: {said}");
        }
    };
    // None is there: that is no trouble for who asks what there is.
    for arguments in [&["log"][..], &["explain"], &["forget", "s", "--yes"]] {
        let said = refused(&home, arguments);
        assert!(said.contains("yet"), "{said}");
    }
    let output = run(&home, &["sessions"]);
    assert!(output.status.success() && stderr(&output).contains("no sessions"), "{output:?}");
    assert!(told(&home, &["status"]).contains("0 sessions open, 0 stored"));
    assert!(!home.state().exists(), "who only looks makes nothing");

    play(&home, &["first-session.jsonl"]);
    let file = home.state().join("ledger.sqlite3");
    let good = fs::read(&file).expect("a store");
    let newer = rusqlite::Connection::open(&file).expect("it opens");
    newer.pragma_update(None, "user_version", 99).expect("it can be written");
    newer.close().expect("it closes");
    let bytes = fs::read(&file).expect("a store");
    says("a newer reminderd wrote it");
    assert!(fs::read(&file).expect("a store") == bytes, "it was changed");

    let mut bytes = good.clone();
    bytes[..4096].fill(0x5a);
    fs::write(&file, &bytes).expect("it can be written");
    says("it is damaged");
    assert!(fs::read(&file).expect("a store") == bytes, "it was changed");

    fs::remove_file(&file).expect("it is there");
    fs::create_dir(&file).expect("it can be made");
    says("is not a file");
    fs::remove_dir(&file).expect("it is there");

    // One that may only be read can be read.
    fs::write(&file, &good).expect("it can be written");
    let read_only = |path: &Path, is_read_only: bool, mode: u32| {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = if is_read_only { mode & 0o555 } else { mode };
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
    };
    read_only(&file, true, 0o600);
    read_only(&home.state(), true, 0o700);
    let mut bound = Command::new("setpriv");
    if rustix::process::geteuid().is_root() {
        // Root passes over permission bits, unless it gives that up.
        let given_up = "-dac_override,-dac_read_search,-fowner";
        bound.args(["--bounding-set", given_up, "--inh-caps", given_up]);
    }
    let output = bound
        .args([BINARY, "log", "--json", "--state"])
        .arg(home.state())
        .output()
        .expect("setpriv starts");
    read_only(&home.state(), false, 0o700);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(stdout(&output).lines().count(), 5, "{output:?}");
}

#[test]
fn completions_and_pages_know_every_command() {
    let home = Home::new();
    let help = told(&home, &["help"]);
    let (_, commands) = help.split_once("Commands:\n").expect("commands");
    let commands = commands.lines().take_while(|line| line.starts_with("  "));
    // What is said of a command goes on further to the right.
    let commands = commands.filter(|line| !line.starts_with("   "));
    let names = commands.filter_map(|line| line.split_whitespace().next());
    let names: Vec<_> = names.filter(|name| *name != "help").collect();
    assert!(names.len() > 10, "{names:?}");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let text = told(&home, &["completions", shell]);
        for name in &names {
            assert!(text.contains(name), "{shell} does not know {name}");
        }
    }
    let script = home.path().join("completions");
    fs::write(&script, told(&home, &["completions", "bash"])).expect("it can be written");
    let complete = format!(
        ". {}; COMP_WORDS=(reminderd expl); COMP_CWORD=1; _reminderd reminderd expl reminderd; \
         echo \"${{COMPREPLY[*]}}\"",
        script.display()
    );
    let output = Command::new("bash").args(["-c", &complete]).output().expect("bash starts");
    assert_eq!(stdout(&output), "explain\n", "{output:?}");

    let pages = home.path().join("share/man1");
    told(&home, &["man", pages.to_str().expect("UTF-8")]);
    for name in &names {
        let page = fs::read_to_string(pages.join(format!("reminderd-{name}.1"))).expect(name);
        assert!(page.contains(".SH SYNOPSIS"), "{page}");
    }
    let mut page = String::new();
    let mut file = fs::File::open(pages.join("reminderd.1")).expect("the first page");
    file.read_to_string(&mut page).expect("UTF-8");
    assert_eq!(page, told(&home, &["man"]));
    fs::write(home.path().join("file"), "").expect("it can be written");
    let said = refused(&home, &["man", "file/man1"]);
    assert!(said.contains("file/man1"), "{said}");
}
