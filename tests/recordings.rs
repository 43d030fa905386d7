//! Law 12: a recorded session replays byte for byte. Scenarios are played to a daemon that records, and
//! each recording is replayed where nothing of that daemon is left.
//!
//! A third of the scenarios in an ordinary run; `REMINDERD_RECORDINGS=all` takes all of them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

const BINARY: &str = env!("CARGO_BIN_EXE_reminderd");
/// Every how many scenarios one is taken.
const STRIDE: usize = 3;

#[test]
fn what_a_scenario_was_told_is_told_again_by_its_recording() {
    let mut scenarios = Vec::new();
    collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios"), &mut scenarios);
    scenarios.sort();
    if std::env::var_os("REMINDERD_RECORDINGS").is_none_or(|which| which != "all") {
        scenarios = scenarios.into_iter().step_by(STRIDE).collect();
    }
    let (next, recorded) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let faults = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                while let Some(scenario) = scenarios.get(next.fetch_add(1, Ordering::Relaxed)) {
                    match replayed(scenario) {
                        Ok(count) => _ = recorded.fetch_add(count, Ordering::Relaxed),
                        Err(fault) => faults.lock().expect("no panic").push(fault),
                    }
                }
            });
        }
    });
    let faults = faults.into_inner().expect("no panic");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    // Some open no session, others several.
    assert!(recorded.into_inner() * 10 > scenarios.len() * 9, "almost all are recorded");
}

fn collect(directory: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("scenarios").flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "jsonl") {
            into.push(path);
        }
    }
}

/// Records a scenario, takes its daemon's home away, and replays what was recorded; how many sessions
/// that were.
fn replayed(scenario: &Path) -> Result<usize, String> {
    let home = tempfile::tempdir().expect("a directory");
    let state = home.path().join("state");
    command(home.path(), &["record", "start", "--state"]).arg(&state).output().expect("it runs");
    let daemon = format!(
        "exec '{BINARY}' --no-config --deterministic --state '{}'",
        state.to_str().expect("it is text")
    );
    // Some scenarios need a daemon that keeps nothing, and fail: what was said is recorded anyway.
    let mut run = command(home.path(), &["run", "--against", &daemon]);
    run.arg(scenario).output().expect("it runs");
    let elsewhere = tempfile::tempdir().expect("a directory");
    let mut recordings = Vec::new();
    for entry in fs::read_dir(state.join("recordings")).expect("recordings").flatten() {
        if entry.path().extension().is_some_and(|extension| extension == "jsonl") {
            let moved = elsewhere.path().join(entry.file_name());
            fs::copy(entry.path(), &moved).expect("it can be read");
            recordings.push(moved);
        }
    }
    drop(home);
    for recording in &recordings {
        let mut replay = command(elsewhere.path(), &["replay"]);
        let output = replay.arg(recording).output().expect("it runs");
        if !output.status.success() {
            let said = [output.stdout, output.stderr].concat();
            let said = String::from_utf8_lossy(&said).into_owned();
            return Err(format!("{}: {said}", scenario.display()));
        }
    }
    Ok(recordings.len())
}

fn command(home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(BINARY);
    command.args(arguments).env("HOME", home).env("TZ", "UTC").current_dir(home);
    for variable in ["XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME"] {
        command.env(variable, home);
    }
    command
}
