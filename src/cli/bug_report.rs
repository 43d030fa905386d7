//! `reminderd bug-report`: what whoever looks into a fault needs to know, and nothing that was told.

use std::fs;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use super::asking::PlaceArguments;
use super::doctor::findings;
use super::paint::{self, Failure};
use crate::engine::one_line;
use crate::store::Archive;

/// How much of the end of a log is taken, in bytes.
const LOG_BYTES: u64 = 32 * 1024;
/// The logs in the state directory.
const LOGS: [&str; 2] = ["daemon.log", "hook.log"];

/// Gather what a report of a fault needs: versions, how everything stands, counts, and the end of the logs.
///
/// It holds no text that a model was told, no content of a file, and no name of a session; the home directory
/// is written `~`. Look through it before you send it: the logs name files and reminders.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  $ reminderd bug-report -o report.txt")]
pub struct BugReportArguments {
    #[command(flatten)]
    place: PlaceArguments,
    /// Where to; standard output unless given
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Runs the command.
pub fn run(arguments: &BugReportArguments) -> ExitCode {
    paint::ended("bug-report", gathered(arguments))
}

fn gathered(arguments: &BugReportArguments) -> Result<(), Failure> {
    let report = report(&arguments.place);
    let Some(path) = &arguments.output else { return Ok(paint::print(&report)?) };
    let shown = path.display();
    fs::write(path, report).map_err(|error| format!("{shown} cannot be written: {error}"))?;
    paint::remark(&format!("{shown} is written: look through it before you send it"));
    Ok(())
}

fn report(place: &PlaceArguments) -> String {
    let system = rustix::system::uname();
    let mut text = format!(
        "reminderd {} ({})\n{} {} {}\n\nHow it stands\n",
        env!("CARGO_PKG_VERSION"),
        if cfg!(debug_assertions) { "debug" } else { "release" },
        system.sysname().to_string_lossy(),
        system.release().to_string_lossy(),
        system.machine().to_string_lossy(),
    );
    for finding in findings(place) {
        text.push_str(&format!(
            "{:<22} {:<14} {}\n",
            finding.about,
            finding.name,
            one_line(&finding.what)
        ));
    }
    let Ok(directory) = place.directory() else { return homeless(&text) };
    if let Ok(Some(archive)) = Archive::open(&directory)
        && let Ok(sessions) = archive.sessions()
    {
        let requests: u64 = sessions.iter().map(|session| session.commits).sum();
        let open = sessions.iter().filter(|session| session.holder.is_some()).count();
        text.push_str(&format!(
            "\nStored\n{} sessions, {open} of them open, {requests} requests\n",
            sessions.len()
        ));
    }
    for name in LOGS {
        let end = end_of(&directory.join(name));
        if !end.is_empty() {
            text.push_str(&format!("\n{name}, the end of it\n{end}"));
        }
    }
    homeless(&text)
}

/// The last lines of a file; nothing where there is none.
fn end_of(path: &Path) -> String {
    let read = || {
        let mut file = fs::File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(LOG_BYTES)))?;
        let mut end = Vec::new();
        file.take(LOG_BYTES).read_to_end(&mut end)?;
        Ok::<_, std::io::Error>((length > LOG_BYTES, end))
    };
    let Ok((is_cut, end)) = read() else { return String::new() };
    let end = String::from_utf8_lossy(&end);
    // The first line of an end is a part of one.
    let whole = if is_cut { end.split_once('\n').map_or("", |(_, rest)| rest) } else { &end };
    let lines: Vec<_> = whole.lines().map(one_line).collect();
    lines.iter().flat_map(|line| [&**line, "\n"]).collect()
}

/// The home directory written as shells do.
fn homeless(text: &str) -> String {
    let home = std::env::home_dir().map(|home| home.display().to_string());
    match home.filter(|home| home.len() > 1) {
        Some(home) => text.replace(&home, "~"),
        None => text.to_owned(),
    }
}
