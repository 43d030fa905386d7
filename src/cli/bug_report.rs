//! `reminderd bug-report`: what whoever looks into a fault needs to know, and nothing that was told.

use std::fs::{self, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
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
    write(path, &report).map_err(|error| format!("{shown} cannot be written: {error}"))?;
    paint::remark(&format!("{shown} is written: look through it before you send it"));
    Ok(())
}

/// Writes a file for its owner's eyes alone, whatever stood there before.
fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)?;
    if file.metadata()?.is_file() {
        file.set_permissions(fs::Permissions::from_mode(0o600))?;
        file.set_len(0)?;
    }
    file.write_all(text.as_bytes())
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
            "\nStored\n{}, {open} of them open, {}\n",
            paint::count(sessions.len() as u64, "session"),
            paint::count(requests, "request")
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
        Ok::<_, io::Error>((length > LOG_BYTES, end))
    };
    let Ok((is_cut, end)) = read() else { return String::new() };
    let end = String::from_utf8_lossy(&end);
    // The first line of an end is a part of one.
    let whole = if is_cut { end.split_once('\n').map_or("", |(_, rest)| rest) } else { &end };
    let lines: Vec<_> = whole.lines().map(one_line).collect();
    lines.iter().flat_map(|line| [&**line, "\n"]).collect()
}

/// The home directory written as shells do, however it is spelled.
fn homeless(text: &str) -> String {
    let home = std::env::home_dir();
    let real = home.as_ref().and_then(|home| home.canonicalize().ok());
    let mut homes: Vec<_> =
        home.iter().chain(&real).map(|home| home.display().to_string()).collect();
    // One may lie in the other.
    homes.sort_by_key(|home| std::cmp::Reverse(home.len()));
    homes.iter().fold(text.to_owned(), |text, home| shortened(&text, home.trim_end_matches('/')))
}

/// A text in which a directory is written `~`, but no name that only begins like it.
fn shortened(text: &str, directory: &str) -> String {
    if directory.is_empty() {
        return text.to_owned();
    }
    let is_of_name = |one: char| one.is_alphanumeric() || "-_.~+".contains(one);
    let mut short = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(directory) {
        let (before, behind) = (&rest[..at], &rest[at + directory.len()..]);
        short.push_str(before);
        let begins = short.chars().next_back().is_none_or(|last| !is_of_name(last));
        let ends = behind.chars().next().is_none_or(|next| !is_of_name(next));
        short.push_str(if begins && ends { "~" } else { directory });
        rest = behind;
    }
    short + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_is_shortened_where_its_name_ends() {
        for (text, short) in [
            ("/home/al", "~"),
            ("at /home/al/x, /home/al: and (/home/al)", "at ~/x, ~: and (~)"),
            ("/home/alice/x /home/al-b /home/al.c", "/home/alice/x /home/al-b /home/al.c"),
            ("/home/al/home/al /x/home/al", "~/home/al /x/home/al"),
            ("nothing", "nothing"),
        ] {
            assert_eq!(shortened(text, "/home/al"), short, "{text}");
        }
        assert_eq!(shortened("/x", ""), "/x");
    }
}
