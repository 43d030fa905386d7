//! Every scenario of `tests/scenarios/`, played to the real daemon by `reminderd run`.
//!
//! A scenario is one story in one file: adding a test is adding a file. Each begins with lines that
//! say what is held, and where that is settled. A test here is a folder, so that a failure names a
//! subject first, and then each file with what the run said about it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{fs, thread};

/// Names the folders; each becomes a test, and [`every_folder_is_played`] holds the list complete.
macro_rules! folders {
    ($($test:ident => $folder:literal,)*) => {
        const FOLDERS: &[&str] = &[$($folder),*];
        $(
            #[test]
            fn $test() {
                play($folder);
            }
        )*
    };
}

folders! {
    agents => "agents",
    agents_state => "agents-state",
    budget => "budget",
    compacted_files => "compacted-files",
    configuration => "configuration",
    date => "date",
    diagnostics => "diagnostics",
    explain => "explain",
    fork => "fork",
    generators => "generators",
    goal => "goal",
    history => "history",
    hooks => "hooks",
    listing => "listing",
    mention => "mention",
    mode => "mode",
    native => "native",
    notice => "notice",
    pending_events => "pending-events",
    plan => "plan",
    profiles => "profiles",
    recipes => "recipes",
    recovery => "recovery",
    revised_patch => "revised-patch",
    roster => "roster",
    rules => "rules",
    sections => "sections",
    sessions => "sessions",
    skills => "skills",
    store => "store",
    task_nudge => "task-nudge",
    told_by_history => "told-by-history",
    tolerance => "tolerance",
    usage => "usage",
    verification => "verification",
    wait => "wait",
}

#[test]
fn every_folder_is_played() {
    let mut there: Vec<String> = entries(&home())
        .into_iter()
        .filter(|path| path.is_dir())
        .map(|path| path.file_name().expect("a name").to_string_lossy().into_owned())
        .collect();
    there.sort();
    assert_eq!(there, FOLDERS, "tests/scenarios.rs lists the folders, in order of their names");
}

/// A mistake in a script is told with its line, before anything runs.
#[test]
fn every_scenario_is_a_valid_script() {
    let output = reminderd("check", &scripts(&home()));
    assert!(output.status.success(), "{}", told(&output));
}

/// A reader of a scenario is told first what it holds.
#[test]
fn every_scenario_says_what_it_holds() {
    for script in scripts(&home()) {
        let text = fs::read_to_string(&script).expect("a scenario is UTF-8");
        assert!(text.starts_with("# "), "{} begins without a comment", script.display());
    }
}

/// Plays a folder's scenarios, each in a process of its own: a daemon that dies takes no other
/// story with it.
fn play(folder: &str) {
    let scripts = scripts(&home().join(folder));
    assert!(!scripts.is_empty(), "tests/scenarios/{folder} holds no scenario");
    let next = AtomicUsize::new(0);
    let failures = Mutex::new(Vec::new());
    let workers = thread::available_parallelism().map_or(2, usize::from);
    thread::scope(|scope| {
        for _ in 0..workers.min(scripts.len()) {
            scope.spawn(|| {
                while let Some(script) = scripts.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let output = reminderd("run", std::slice::from_ref(script));
                    if !output.status.success() {
                        let failure = format!("{}\n{}", script.display(), told(&output));
                        failures.lock().expect("no player panics").push(failure);
                    }
                }
            });
        }
    });
    let mut failures = failures.into_inner().expect("no player panics");
    failures.sort();
    assert!(
        failures.is_empty(),
        "{} of {} scenarios failed:\n\n{}",
        failures.len(),
        scripts.len(),
        failures.join("\n")
    );
}

fn reminderd(command: &str, scripts: &[PathBuf]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_reminderd"))
        .arg(command)
        .args(scripts)
        .stdin(Stdio::null())
        .output()
        .expect("reminderd starts")
}

fn told(output: &Output) -> String {
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    format!("{}\n{stdout}{stderr}", output.status)
}

fn home() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios")
}

/// The scripts below a directory, in order of their paths.
fn scripts(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in entries(directory) {
        if path.is_dir() {
            found.extend(scripts(&path));
        } else if path.extension().is_some_and(|extension| extension == "jsonl") {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("the scenarios are there");
    entries.map(|entry| entry.expect("an entry").path()).collect()
}
