//! The page of a long session, as the command makes it.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::json;

use super::measure::time;
use super::table::{self, Figure, Target};

const BINARY: &str = env!("CARGO_BIN_EXE_reminderd");
/// How many WAITs the session has.
const WAITS: usize = 2_000;
/// How often the page is made; the fastest counts, since whatever else runs only delays it.
const TIMES: usize = 3;

/// The page of a recording, which is played first, and of the same session as it is stored.
pub fn pages() {
    let home = tempfile::tempdir().expect("a directory");
    let recording = home.path().join("long.jsonl");
    fs::write(&recording, script()).expect("it is written");
    let keeping =
        format!("'{BINARY}' --deterministic --no-config --state '{}'", home.path().display());
    let mut keep = Command::new(BINARY);
    keep.args(["run", "--against", &keeping]).arg(&recording);
    assert!(keep.stdout(Stdio::null()).status().expect("it runs").success());
    let target = Target::Below(Duration::from_secs(2));
    for (what, of) in [
        ("page of a recording of 2,000 WAITs", recording.as_path()),
        ("page of a stored session of 2,000 WAITs", Path::new("long")),
    ] {
        let figure = (0..TIMES).map(|_| time(|| make(home.path(), of))).min();
        table::row(what, Figure::Time(figure.unwrap_or_default()), None, &target);
    }
}

fn make(state: &Path, of: &Path) {
    let mut command = Command::new(BINARY);
    command.args(["report", "--state"]).arg(state).arg(of).arg("-o").arg(state.join("page.html"));
    assert!(command.stderr(Stdio::null()).status().expect("it runs").success());
}

/// Turns of five WAITs, each third of which tells something.
fn script() -> String {
    let mut lines = vec![json!({"store": true}), json!({"open": {"session": "long"}})];
    for wait in 0..WAITS {
        let turn = (wait / 5).to_string();
        if wait % 5 == 0 {
            let params = json!({"session": "long", "turn": turn});
            lines.push(json!({"event": "turn/begin", "params": params}));
        }
        if wait % 3 == 0 {
            let body = format!("Build {wait} failed.\nsrc/parse.rs:41: expected a token");
            let params = json!({"session": "long", "key": "build", "type": "build", "body": body});
            lines.push(json!({"event": "reminder/observe", "params": params}));
        }
        lines.push(json!({"wait": {"session": "long"}, "as": "w"}));
        lines.push(json!({"commit": "$w.token"}));
        if wait % 5 == 4 {
            let params = json!({"session": "long", "turn": turn, "outcome": "completed"});
            lines.push(json!({"event": "turn/end", "params": params}));
        }
    }
    let lines: Vec<_> = lines.iter().map(ToString::to_string).collect();
    lines.join("\n")
}
