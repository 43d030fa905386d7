//! What the engine's paths cost in instructions, as Callgrind counts them: where wall time is too
//! noisy to hold a line, these hold it. Each count stands against another one of the same run, so
//! that neither the compiler nor the machine decides.
//!
//! `cargo test --test instructions` needs Valgrind, which `tests/run` installs; without it this says
//! so, and measures nothing.

use std::hint::black_box;
use std::process::{Command, ExitCode};

use reminderd::engine::{
    Audience, Definition, Event, Kit, Material, Opening, ScopePath, Session, Staged, Task,
    TaskStatus, Value, WaitRequest,
};
use reminderd::reminders::Catalogue;

/// What is counted, how large it is on both sides, and how much more the larger may cost.
const LINES: [(&str, &str, u32, u32, f64); 5] = [
    ("WAIT", "records in history", 20, 600, 1.2),
    ("WAIT and commit", "records in history", 20, 600, 1.2),
    ("small event", "tasks", 10, 600, 1.3),
    ("WAIT and commit", "entries", 1, 10, 5.0),
    ("open from records", "records", 20, 200, 10.0),
];

/// The first argument of a process that is measured.
const MEASURED: &str = "--measured";

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().collect();
    if let [_, flag, what, of, size] = &arguments[..]
        && flag == MEASURED
    {
        run(what, of, size.parse().expect("a size"));
        return ExitCode::SUCCESS;
    }
    if Command::new("valgrind").arg("--version").output().is_err() {
        println!("valgrind is not installed: no instructions are counted");
        return ExitCode::SUCCESS;
    }
    let mut holds = true;
    for (what, of, small, large, most) in LINES {
        let (small_count, large_count) = (count(what, of, small), count(what, of, large));
        let ratio = large_count / small_count;
        let verdict = if ratio <= most { "ok" } else { "TOO MUCH" };
        println!(
            "{what}, {small} and {large} {of}: {small_count:.0} and {large_count:.0} instructions, \
             {ratio:.2} × (≤ {most} ×)  {verdict}"
        );
        holds &= ratio <= most;
    }
    if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// How many instructions the measured part takes.
fn count(what: &str, of: &str, size: u32) -> f64 {
    let own = std::env::current_exe().expect("it runs");
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--collect-atstart=no", "--toggle-collect=*measured*"])
        .args(["--callgrind-out-file=/dev/null"])
        .arg(own)
        .args([MEASURED, what, of, &size.to_string()])
        .output()
        .expect("valgrind can be started");
    let said = String::from_utf8_lossy(&output.stderr);
    let collected = said.lines().find_map(|line| line.split_once("Collected :"));
    let collected = collected.and_then(|(_, count)| count.trim().parse().ok());
    match collected {
        Some(count) if output.status.success() && count > 0.0 => count,
        _ => panic!("{what} with {size} {of} was not counted:\n{said}"),
    }
}

/// The part that is counted.
#[inline(never)]
fn measured<T>(work: impl FnOnce() -> T) -> T {
    black_box(work())
}

fn run(what: &str, of: &str, size: u32) {
    let mut session = session(if of == "entries" { size } else { 1 });
    let size = i64::from(size);
    match of {
        "tasks" => (0..size).for_each(|number| apply(&mut session, put(number))),
        "records in history" | "records" => {
            for number in 0..size {
                apply(&mut session, observed(number));
                wait(&mut session, number, true);
            }
        }
        _ => {}
    }
    // Whatever is made once is made before.
    apply(&mut session, observed(size));
    wait(&mut session, size, false);
    match what {
        "WAIT" => measured(|| wait(&mut session, size + 1, false)),
        "WAIT and commit" => measured(|| wait(&mut session, size + 1, true)),
        "small event" => measured(|| apply(&mut session, put(0))),
        "open from records" => {
            let snapshot = session.snapshot();
            measured(|| drop(black_box(Session::restore(kit(), "s", [snapshot]))));
        }
        _ => unreachable!("{what}"),
    }
}

fn kit() -> Kit {
    Kit { registry: &Catalogue, digest: reminderd::server::digest }
}

/// A session in an open turn, where every WAIT has so many entries.
fn session(entries: u32) -> Session {
    let mut session = Session::new(kit(), "s");
    let settings = [("body", "Run the tests."), ("policy", "always")];
    let settings = settings.map(|(name, text)| (name.to_owned(), Value::from(text)));
    let reminder = |number: u32| Definition {
        id: format!("note-{number}"),
        kind: "standing-text".to_owned(),
        settings: Value::Map(settings.clone().into()),
        audience: Audience::ROOT,
    };
    let opening = Opening { reminders: (0..entries).map(reminder).collect(), ..Opening::default() };
    session.open(0, opening).expect("the opening is sound");
    apply(&mut session, Event::TurnBegan { turn: "t".to_owned() });
    session
}

fn apply(session: &mut Session, event: Event) {
    session.apply(0, &ScopePath::ROOT, event).expect("the event is sound");
    drop(session.take_lines());
}

fn observed(number: i64) -> Event {
    Event::Observed {
        turn: None,
        key: format!("file-{}", number % 24),
        entry_type: "edited-file".to_owned(),
        body: format!("src/parse{number}.rs was changed in the editor."),
    }
}

fn put(number: i64) -> Event {
    let task = Task {
        id: format!("t-{number}"),
        subject: "handle empty input".to_owned(),
        status: TaskStatus::Pending,
        owner: ScopePath::ROOT,
        blocked_by: Vec::new(),
        blocks: Vec::new(),
        description: None,
    };
    Event::TaskPut { task, reassigns: false }
}

/// A WAIT, and its commit or else its release.
fn wait(session: &mut Session, number: i64, commits: bool) {
    let token = format!("{number:032x}.{:016x}", 0);
    let material = Material { token: token.clone(), record: format!("{number:016x}") };
    let staged = session.stage(0, &WaitRequest::default(), material).expect("a turn is open");
    assert!(matches!(staged, Staged::Ready(_)));
    if commits {
        session.commit(0, &token, None, None).expect("the token is open");
        session.confirm(&token);
    } else {
        assert_eq!(session.release(&token), Ok(true));
    }
    drop(session.take_lines());
}
