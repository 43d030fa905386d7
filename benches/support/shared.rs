//! What sharing costs: a daemon with a thousand sessions whose clients all speak, and a command that
//! speaks to it once.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use tempfile::TempDir;

use super::client::{Client, notification};
use super::measure::{medians_in_turns, percentile, time};
use super::table::{self, Figure, Target};

const SESSIONS: usize = 1_000;
const CLIENTS: usize = 8;
/// WAITs that are measured, of one client.
const WAITS: usize = 5_000;
/// How often each of the other clients has a turn of its loop: events, a WAIT and its commit.
const PACE: Duration = Duration::from_millis(10);
/// Events between two WAITs.
const EVENTS: usize = 10;

/// A place for a daemon and its store.
fn home() -> TempDir {
    let home = tempfile::tempdir().expect("a directory");
    std::fs::create_dir(home.path().join("run")).expect("it can be made");
    home
}

/// A command that speaks to the shared daemon of this place.
fn connect(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_reminderd"));
    command.args(["connect", "--idle", "5"]);
    command.env("XDG_RUNTIME_DIR", home.join("run")).env("XDG_STATE_HOME", home.join("state"));
    command
}

/// WAITs of one client while seven others report events, wait and commit as busy agents do, each in
/// sessions of its own, against the same WAITs while they are silent.
pub fn many_clients() {
    let home = home();
    let start = || Client::start(connect(home.path()), &json!({}));
    let mut clients: Vec<_> = (0..CLIENTS).map(|_| start()).collect();
    for number in 0..SESSIONS {
        let client = &mut clients[number % CLIENTS];
        client.request("session/open", &json!({"session": format!("{number}")}).to_string());
        let turn = json!({"session": format!("{number}"), "turn": "t"});
        client.request("turn/begin", &turn.to_string());
    }
    let mut measured = clients.remove(0);
    let alone = percentile((0..WAITS).map(|_| wait(&mut measured, 0)).collect(), 99);
    let ended = AtomicBool::new(false);
    let under_load = thread::scope(|scope| {
        for (place, client) in clients.iter_mut().enumerate() {
            let ended = &ended;
            scope.spawn(move || load(client, place + 1, ended));
        }
        let waits = (0..WAITS).map(|_| wait(&mut measured, 0)).collect();
        ended.store(true, Ordering::Relaxed);
        percentile(waits, 99)
    });
    let against = ("the same, the others silent", Figure::Time(alone));
    let what = "WAIT p99, 1,000 sessions, 8 clients";
    table::row(what, Figure::Time(under_load), Some(against), &Target::AtMost(5.0));
}

/// What one busy client does until the measurement has ended.
fn load(client: &mut Client, place: usize, ended: &AtomicBool) {
    let mut number = place;
    while !ended.load(Ordering::Relaxed) {
        let begun = Instant::now();
        let session = number.to_string();
        let event = |event: usize| {
            let fact = json!({"session": session, "name": format!("f{event}"), "value": event});
            notification("fact/set", &fact.to_string())
        };
        client.send(&(0..EVENTS).map(event).collect::<String>());
        client.wait_and_commit_in(&session);
        number = (number + CLIENTS) % SESSIONS;
        thread::sleep(PACE.saturating_sub(begun.elapsed()));
    }
}

/// How long one WAIT takes.
fn wait(client: &mut Client, session: usize) -> Duration {
    let params = json!({"session": session.to_string()}).to_string();
    time(|| _ = client.request("reminder/wait", &params))
}

/// What a terminal agent waits for at each of its events: the hook command from its start to its end, which
/// follows the answer, with the daemon there. It settles the WAIT before, reports, and waits. Against a
/// command that does nothing, and beside what a hook written in a shell or in Python takes to read the
/// event alone.
pub fn hook_command() {
    const RUNS: usize = 300;
    let home = home();
    let transcript = home.path().join("transcript.jsonl");
    let event = |event: &str| {
        json!({
            "hook_event_name": event, "session_id": "s", "prompt_id": "p", "cwd": home.path(),
            "transcript_path": transcript, "permission_mode": "default", "prompt": "hi",
            "tool_calls": [],
        })
    };
    let say = |event: &serde_json::Value| {
        let said_in = home.path().join("event");
        std::fs::write(&said_in, event.to_string()).expect("it can be written");
        said_in
    };
    let command = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_reminderd"));
        command.args(["hook", "claude-code", "--idle", "5"]);
        command.env("XDG_RUNTIME_DIR", home.path().join("run"));
        command.env("XDG_STATE_HOME", home.path().join("state"));
        command
    };
    let run = |mut command: Command, said_in: &Path| {
        let said = std::fs::File::open(said_in).expect("it is there");
        let output = command.stdin(said).stderr(Stdio::inherit()).output();
        let output = output.expect("it can be started");
        assert!(output.status.success());
        output.stdout
    };
    // The turn begins, and what speaks at its prompt is told.
    let given = run(command(), &say(&event("UserPromptSubmit")));
    let given: serde_json::Value = serde_json::from_slice(&given).expect("an answer");
    let text = &given["hookSpecificOutput"]["additionalContext"];
    std::fs::write(&transcript, format!("{}\n", json!({"content": [text]}))).expect("written");
    let said_in = say(&event("PostToolBatch"));
    let hook = || assert!(run(command(), &said_in).is_empty());
    let other = |program: &str, arguments: &[&str]| {
        let mut other = Command::new(program);
        other.args(arguments);
        run(other, &said_in);
    };
    let nothing = || other("/bin/true", &[]);
    let shell = || other("sh", &["-c", "cat >/dev/null"]);
    let python = || other("python3", &["-c", "import json, sys; json.load(sys.stdin)"]);
    let what = "hook command, daemon there";
    let (figure, floor) = medians_in_turns(RUNS, || time(hook), || time(nothing));
    let against = ("/bin/true", Figure::Time(floor));
    table::row(what, Figure::Time(figure), Some(against), &Target::AtMost(3.0));
    let (figure, beside) = medians_in_turns(RUNS / 3, || time(hook), || time(shell));
    let against = ("a shell that reads it", Figure::Time(beside));
    table::row(what, Figure::Time(figure), Some(against), &Target::Nothing);
    let (figure, beside) = medians_in_turns(RUNS / 3, || time(hook), || time(python));
    let against = ("Python that reads it", Figure::Time(beside));
    table::row(what, Figure::Time(figure), Some(against), &Target::Nothing);
}
