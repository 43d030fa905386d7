//! What the daemon keeps, through ends of every kind: nothing told is lost, nothing is told twice.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Daemon, Framing, Start, wait_until};

/// Ends by `kill -9`, over all rounds. `REMINDERD_KILLS` asks for more.
const KILLS: u64 = 24;
/// A user who is nobody here.
const NOBODY: u32 = 65_534;

fn start(state: &Path) -> Daemon {
    let mut daemon = Start::keeping(Framing::Lines, state).spawn();
    daemon.initialize();
    daemon
}

fn result(answer: &Value) -> &Value {
    assert!(answer.get("error").is_none(), "{answer}");
    &answer["result"]
}

fn code(answer: &Value) -> i64 {
    answer["error"]["code"].as_i64().unwrap_or_else(|| panic!("no error: {answer}"))
}

fn open(daemon: &mut Daemon, session: &str) -> Value {
    let kinds = json!({"recovery": false});
    daemon.request("session/open", json!({"session": session, "kinds": kinds}))
}

fn begin(daemon: &mut Daemon, session: &str, turn: &str) {
    result(&daemon.request("turn/begin", json!({"session": session, "turn": turn})));
}

fn set(daemon: &mut Daemon, session: &str, section: &str, content: &str) {
    let params = json!({"session": session, "section": section, "content": content});
    result(&daemon.request("section/set", params));
}

fn wait(daemon: &mut Daemon, session: &str) -> Value {
    result(&daemon.request("reminder/wait", json!({"session": session}))).clone()
}

fn commit(daemon: &mut Daemon, delivery: &Value) -> Value {
    daemon.request("reminder/commit", json!({"token": delivery["token"]}))
}

/// The bodies of a delivery.
fn bodies(delivery: &Value) -> Vec<String> {
    let entries = delivery["entries"].as_array().expect("entries");
    entries.iter().map(|entry| entry["body"].as_str().expect("a body").to_owned()).collect()
}

/// Numbers that look like chance and are the same in every run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

/// Commits until the daemon is killed, at a moment that differs from round to round. The client
/// keeps what was confirmed; after the restart the ledger holds all of that, at most one telling
/// more, whose answer was on its way, and nothing twice.
#[test]
fn killed_at_any_moment_it_tells_each_thing_once() {
    let rounds = std::env::var("REMINDERD_KILLS").ok().and_then(|text| text.parse().ok());
    let rounds: u64 = rounds.unwrap_or(KILLS);
    let state = tempfile::tempdir().expect("a directory");
    let mut chance = Chance(0x2545_f491_4f6c_dd1d);
    let mut confirmed: Vec<String> = Vec::new();
    let mut number = 0_u64;
    for round in 0..=rounds {
        let mut daemon = start(state.path());
        result(&open(&mut daemon, "s"));
        let history = daemon.request("reminder/history", json!({"session": "s"}));
        let told: Vec<String> = result(&history)["records"]
            .as_array()
            .expect("records")
            .iter()
            .rev()
            .map(|record| record["id"].as_str().expect("an id").to_owned())
            .collect();
        let unique: BTreeSet<_> = told.iter().collect();
        assert_eq!(unique.len(), told.len(), "something is told twice");
        let (kept, more) = told.split_at(confirmed.len().min(told.len()));
        assert_eq!(kept, confirmed, "round {round}: what was confirmed is not what is kept");
        assert!(more.len() <= 1, "round {round}: {more:?} were never asked for");
        confirmed = told;
        if round == rounds {
            return;
        }
        begin(&mut daemon, "s", &format!("{round}"));
        // What was kept is not told again: the last content is as it was, unless it was lost.
        let again = bodies(&wait(&mut daemon, "s"));
        assert!(again.len() <= 1, "round {round}: {again:?}");
        let steps = chance.below(6);
        for _ in 0..steps {
            number += 1;
            set(&mut daemon, "s", "memory", &format!("content {number}"));
            let delivery = wait(&mut daemon, "s");
            let told = bodies(&delivery);
            assert!(told.len() == 1 && told[0].contains(&format!("content {number}")), "{told:?}");
            let answer = commit(&mut daemon, &delivery);
            confirmed.push(result(&answer)["record"]["id"].as_str().expect("an id").to_owned());
        }
        // One more is on its way when the end comes.
        number += 1;
        set(&mut daemon, "s", "memory", &format!("content {number}"));
        let delivery = wait(&mut daemon, "s");
        daemon.ask("reminder/commit", json!({"token": delivery["token"]}));
        let until = Instant::now() + Duration::from_micros(chance.below(6_000));
        while Instant::now() < until {
            std::thread::yield_now();
        }
        daemon.kill();
    }
}

/// Told stays told over a kill, and the state that was written behind is there 50 ms later.
#[test]
fn state_that_nobody_waits_for_is_written_soon() {
    let state = tempfile::tempdir().expect("a directory");
    let mut daemon = start(state.path());
    result(&open(&mut daemon, "s"));
    set(&mut daemon, "s", "memory", "written behind");
    let file = state.path().join("ledger.sqlite3");
    let written = wait_until(Duration::from_secs(10), || {
        let reader = rusqlite::Connection::open(&file).expect("it opens");
        let found = reader.query_row(
            "SELECT count(*) FROM lines WHERE line LIKE '%written behind%'",
            [],
            |row| row.get::<_, i64>(0),
        );
        found.is_ok_and(|count| count == 1)
    });
    assert!(written, "it is not written");
    daemon.kill();
}

/// `turn/end` as a request is answered when everything before it is durable.
#[test]
fn the_end_of_a_turn_is_flushed() {
    let state = tempfile::tempdir().expect("a directory");
    let mut daemon = start(state.path());
    result(&open(&mut daemon, "s"));
    begin(&mut daemon, "s", "1");
    let end = json!({"session": "s", "turn": "1", "outcome": "completed"});
    result(&daemon.request("turn/end", end));
    daemon.kill();
    let mut daemon = start(state.path());
    assert_eq!(result(&open(&mut daemon, "s"))["state"], "restored");
    let state = daemon.request("session/state", json!({"session": "s"}));
    assert_eq!(result(&state)["counters"]["turns"], 1);
    let again = daemon.request("turn/begin", json!({"session": "s", "turn": "1"}));
    assert_eq!(code(&again), -33004, "the turn had ended in order");
}

/// Messages that are sent without waiting for the answer to `session/open` find the session.
#[test]
fn what_follows_an_opening_at_once_finds_the_session() {
    let state = tempfile::tempdir().expect("a directory");
    let mut daemon = start(state.path());
    let opening = daemon.ask("session/open", json!({"session": "s"}));
    let begun = daemon.ask("turn/begin", json!({"session": "s", "turn": "1"}));
    let waited = daemon.ask("reminder/wait", json!({"session": "s"}));
    for id in [opening, begun, waited] {
        result(&daemon.expect_answer(&id));
    }
    // Closed and opened again in one breath, too.
    let closed = daemon.ask("session/close", json!({"session": "s"}));
    let opening = daemon.ask("session/open", json!({"session": "s"}));
    result(&daemon.expect_answer(&closed));
    assert_eq!(result(&daemon.expect_answer(&opening))["state"], "restored");
}

#[test]
fn two_daemons_never_own_one_session() {
    let state = tempfile::tempdir().expect("a directory");
    let mut one = start(state.path());
    let mut two = start(state.path());
    result(&open(&mut one, "s"));
    let refused = open(&mut two, "s");
    assert_eq!(code(&refused), -33002);
    let holder = &refused["error"]["data"]["holder"];
    assert_eq!(holder["pid"], one.pid());
    assert!(holder["since"].is_u64() && holder["host"].is_string(), "{holder}");
    result(&one.request("session/close", json!({"session": "s"})));
    assert_eq!(result(&open(&mut two, "s"))["state"], "restored");
    assert_eq!(code(&open(&mut one, "s")), -33002);
    // A crash gives it back as well.
    two.kill();
    assert_eq!(result(&open(&mut one, "s"))["state"], "restored");
}

/// While another process holds the database's lock a commit is refused and nothing is told; later
/// the same commit tells it, once.
#[test]
fn a_locked_database_tells_nothing_and_loses_nothing() {
    let state = tempfile::tempdir().expect("a directory");
    let mut daemon = start(state.path());
    result(&open(&mut daemon, "s"));
    begin(&mut daemon, "s", "1");
    set(&mut daemon, "s", "memory", "content");
    let queued = json!({"session": "s", "body": "queued"});
    result(&daemon.request("reminder/enqueue", queued));
    let delivery = wait(&mut daemon, "s");
    assert_eq!(bodies(&delivery).len(), 2);
    let other = rusqlite::Connection::open(state.path().join("ledger.sqlite3")).expect("it opens");
    other.busy_timeout(Duration::from_secs(5)).expect("a timeout");
    other.execute_batch("BEGIN IMMEDIATE").expect("it locks");
    let refused = commit(&mut daemon, &delivery);
    assert_eq!(code(&refused), -33010);
    let history = daemon.request("reminder/history", json!({"session": "s"}));
    assert_eq!(result(&history)["records"], json!([]), "nothing was told");
    // Events go on in memory, and say so once.
    set(&mut daemon, "s", "other", "meanwhile");
    set(&mut daemon, "s", "other", "meanwhile, again");
    let problem = daemon.expect_method("reminderd/problem");
    assert_eq!(problem["params"]["code"], -33010);
    other.execute_batch("ROLLBACK").expect("it unlocks");
    let committed = commit(&mut daemon, &delivery);
    assert_eq!(result(&committed)["already"], false);
    assert_eq!(bodies(&wait(&mut daemon, "s")).len(), 1, "what came meanwhile");
    daemon.kill();
    let mut daemon = start(state.path());
    assert_eq!(result(&open(&mut daemon, "s"))["state"], "restored");
    let again = commit(&mut daemon, &delivery);
    assert_eq!(result(&again)["already"], true);
    begin(&mut daemon, "s", "2");
    let left = bodies(&wait(&mut daemon, "s"));
    assert!(left.len() == 1 && left[0].contains("meanwhile, again"), "{left:?}");
}

/// No file may grow beyond what is there: the disk is full, as far as the daemon can tell.
#[test]
fn a_full_disk_tells_nothing_and_loses_nothing() {
    let state = tempfile::tempdir().expect("a directory");
    drop(start(state.path()));
    // In blocks of 512 or 1,024 bytes, as the shell counts; the signal would end the process.
    let limited = "trap '' XFSZ; ulimit -S -f 1600; exec \"$0\" \"$@\"";
    let mut daemon =
        Start::keeping(Framing::Lines, state.path()).through("sh", &["-c", limited]).spawn();
    daemon.initialize();
    result(&open(&mut daemon, "s"));
    begin(&mut daemon, "s", "1");
    let mut told = Vec::new();
    let mut refused = None;
    for number in 0..200 {
        let content = format!("content {number} {}", "x".repeat(8_000));
        set(&mut daemon, "s", "memory", &content);
        let delivery = wait(&mut daemon, "s");
        let answer = commit(&mut daemon, &delivery);
        if answer.get("error").is_some() {
            assert_eq!(code(&answer), -33010, "{answer}");
            refused = Some(delivery);
            break;
        }
        told.push(result(&answer)["record"]["id"].clone());
    }
    let refused = refused.expect("the disk was never full");
    assert!(!told.is_empty(), "nothing fitted at all");
    let ids = |daemon: &mut Daemon| {
        let history = daemon.request("reminder/history", json!({"session": "s"}));
        let records = result(&history)["records"].as_array().expect("records").clone();
        records.iter().rev().map(|record| record["id"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(ids(&mut daemon), told);
    // Some space is freed.
    let status = Command::new("prlimit")
        .args(["--pid", &daemon.pid().to_string(), "--fsize=unlimited"])
        .status()
        .expect("prlimit runs");
    assert!(status.success());
    let committed = commit(&mut daemon, &refused);
    told.push(result(&committed)["record"]["id"].clone());
    daemon.forgive_problems();
    daemon.kill();
    let mut daemon = start(state.path());
    result(&open(&mut daemon, "s"));
    assert_eq!(ids(&mut daemon), told);
    begin(&mut daemon, "s", "2");
    assert_eq!(bodies(&wait(&mut daemon, "s")), Vec::<String>::new());
}

#[test]
fn what_is_written_to_a_file_that_is_gone_is_not_durable() {
    let state = tempfile::tempdir().expect("a directory");
    let mut daemon = start(state.path());
    result(&open(&mut daemon, "s"));
    begin(&mut daemon, "s", "1");
    set(&mut daemon, "s", "memory", "content");
    let delivery = wait(&mut daemon, "s");
    fs::remove_file(state.path().join("ledger.sqlite3")).expect("it is there");
    let answer = commit(&mut daemon, &delivery);
    assert_eq!(code(&answer), -33010, "{answer}");
    assert!(answer["error"]["message"].as_str().is_some_and(|it| it.contains("removed")));
    daemon.forgive_problems();
}

#[test]
fn a_corrupt_file_is_set_aside_and_the_daemon_goes_on() {
    let state = tempfile::tempdir().expect("a directory");
    let mut daemon = start(state.path());
    result(&open(&mut daemon, "s"));
    drop(daemon);
    let file = state.path().join("ledger.sqlite3");
    let mut bytes = fs::read(&file).expect("a file");
    for byte in bytes.iter_mut().take(4096) {
        *byte = 0x5a;
    }
    fs::write(&file, &bytes).expect("it can be written");
    let mut daemon = start(state.path());
    assert_eq!(result(&open(&mut daemon, "s"))["state"], "new");
    daemon.expect_stderr("set aside");
    let aside = fs::read_dir(state.path()).expect("a directory").flatten().find(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        name.starts_with("ledger.sqlite3.damaged-")
            && !name.ends_with("-shm")
            && !name.ends_with("-wal")
    });
    let aside = fs::read(aside.expect("it is there").path()).expect("a file");
    assert!(aside == bytes, "what is set aside is not the file as it was");
}

/// A store that cannot be used: the daemon starts, says so, and refuses sessions alone.
#[test]
fn a_store_that_cannot_be_used_is_said_at_every_opening() {
    let state = tempfile::tempdir().expect("a directory");
    drop(start(state.path()));
    let file = state.path().join("ledger.sqlite3");
    let newer = rusqlite::Connection::open(&file).expect("it opens");
    newer.pragma_update(None, "user_version", 99).expect("it can be written");
    newer.close().expect("it closes");
    let before = fs::read(&file).expect("a file");
    let no_directory = state.path().join("ledger.sqlite3");
    for (state, why) in [(state.path(), "newer"), (no_directory.as_path(), "--ephemeral")] {
        let mut daemon = start(state);
        for _ in 0..2 {
            let refused = open(&mut daemon, "s");
            assert_eq!(code(&refused), -33010);
            let message = refused["error"]["message"].as_str().expect("a message");
            assert!(message.contains(why), "{message}");
        }
        daemon.expect_stderr(why);
    }
    assert_eq!(fs::read(&file).expect("a file"), before);
}

/// A daemon that permission bits bind: root passes over them, unless it gives that up.
fn bound(start: Start) -> Start {
    if !rustix::process::geteuid().is_root() {
        return start;
    }
    let given_up = "-dac_override,-dac_read_search,-fowner";
    start.through("setpriv", &["--bounding-set", given_up, "--inh-caps", given_up])
}

/// A daemon to which this directory is a read-only file system.
fn mounted(start: Start, state: &Path) -> Start {
    let mount = format!(
        "mount --bind '{0}' '{0}' && mount -o remount,bind,ro '{0}' && exec \"$0\" \"$@\"",
        state.display()
    );
    start.through("unshare", &["--mount", "sh", "-c", &mount])
}

fn may_mount() -> bool {
    let mount = "mount --bind /tmp /tmp && mount -o remount,bind,ro /tmp";
    let tried = Command::new("unshare").args(["--mount", "sh", "-c", mount]).output();
    tried.is_ok_and(|output| output.status.success())
}

/// A store that may not be written: the daemon starts, says so, refuses sessions, leaves every byte as
/// it is, and goes on once that is mended. `--ephemeral` needs none of it.
#[test]
fn a_store_that_may_not_be_written_refuses_sessions_alone() {
    use std::os::unix::fs::{PermissionsExt as _, chown};
    let permit = |path: &Path, mode: u32| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
    };
    let is_root = rustix::process::geteuid().is_root();
    let home = tempfile::tempdir().expect("a directory");
    let state = home.path().join("state");
    let (file, locks) = (state.join("ledger.sqlite3"), state.join("daemons"));
    let mut daemon = start(&state);
    result(&open(&mut daemon, "s"));
    begin(&mut daemon, "s", "1");
    set(&mut daemon, "s", "memory", "content");
    let delivery = wait(&mut daemon, "s");
    result(&commit(&mut daemon, &delivery));
    result(&daemon.request("session/close", json!({"session": "s"})));
    drop(daemon);
    let before = fs::read(&file).expect("a file");
    let refuses = |what: &str, start: Start, why: &str| {
        let mut daemon = start.spawn();
        daemon.initialize();
        let refused = open(&mut daemon, "s");
        assert_eq!(code(&refused), -33010, "{what}");
        let message = refused["error"]["message"].as_str().expect("a message");
        assert!(message.contains(why), "{what}: {message}");
        assert!(message.contains(&state.display().to_string()), "{what}: {message}");
        daemon.expect_stderr(why);
        drop(daemon);
        assert!(fs::read(&file).expect("a file") == before, "{what}: the file was changed");
    };
    let keeping = || Start::keeping(Framing::Lines, &state);

    permit(&locks, 0o500);
    permit(&state, 0o500);
    refuses("the directory", bound(keeping()), "Permission denied");
    permit(&state, 0o700);
    permit(&locks, 0o700);
    permit(&file, 0o400);
    refuses("the file", bound(keeping()), "Permission denied");
    permit(&file, 0o600);
    if is_root {
        for (mode, why) in [(0o755, "not permitted"), (0o700, "Permission denied")] {
            chown(&state, Some(NOBODY), None).expect("root may");
            permit(&state, mode);
            refuses("another user's", bound(keeping()), why);
        }
        chown(&state, Some(0), None).expect("root may");
    }
    if is_root && may_mount() {
        refuses("the file system", mounted(keeping(), &state), "Read-only file system");
    }

    permit(&state, 0o500);
    let mut ephemeral = bound(Start::new(Framing::Lines)).spawn();
    ephemeral.initialize();
    assert_eq!(result(&open(&mut ephemeral, "s"))["state"], "new");
    permit(&state, 0o700);
    let mut daemon = start(&state);
    assert_eq!(result(&open(&mut daemon, "s"))["state"], "restored");
    let again = commit(&mut daemon, &delivery);
    assert_eq!(result(&again)["already"], true);
}

/// `forget` leaves nothing readable in any file, the log included.
#[test]
fn what_is_forgotten_is_in_no_file() {
    let state = tempfile::tempdir().expect("a directory");
    let mut daemon = start(state.path());
    for session in ["s", "t"] {
        result(&open(&mut daemon, session));
        begin(&mut daemon, session, "1");
        for size in [1, 100, 1_000, 20_000] {
            set(&mut daemon, session, "memory", &format!("CANARY-{session} ").repeat(size));
            let delivery = wait(&mut daemon, session);
            result(&commit(&mut daemon, &delivery));
        }
    }
    let holding = |text: &str| {
        let entries = fs::read_dir(state.path()).expect("a directory").flatten();
        let files = entries.map(|entry| entry.path()).filter(|path| path.is_file());
        let text = regex::bytes::Regex::new(text).expect("an expression");
        files.filter(|path| text.is_match(&fs::read(path).expect("a file"))).count()
    };
    assert!(holding("CANARY-s") > 0);
    result(&daemon.request("session/close", json!({"session": "s", "forget": true})));
    assert_eq!(holding("CANARY-s"), 0);
    assert!(holding("CANARY-t") > 0, "the other session is still there");
}
