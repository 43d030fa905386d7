//! `reminderd record`: keeps recordings of sessions, and says which there are.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde::Deserialize;
use serde_json::json;

use super::asking::PlaceArguments;
use super::paint::{self, Align, Cell, Failure, Screen, Table};
use crate::engine::Millis;
use crate::server::recordings;

/// How long the first line of a recording may be, in bytes.
const HEADER_BYTES_MAX: u64 = 64 * 1024;

/// Record sessions, to be replayed later, and list the recordings.
///
/// A recording is a script of `reminderd run`: the messages of one session, when they came, what they
/// were answered, and what the daemon saw of files and configuration, so that it plays anywhere
/// without the machine that it was made on. `start` has every session recorded that is opened from then
/// on, by running daemons too, until `stop`; without either the recordings are listed. They hold what
/// models were told, what clients reported (prompts, calls and what these printed too), and of files as much
/// as was looked at, but of secret ones nothing. Only you can read them. One becomes no larger than 64 MiB, and the oldest of more than 1 GiB are removed;
/// `reminderd forget` removes those of its session.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Example:\n  $ reminderd record start\n  $ reminderd record"
)]
pub struct RecordArguments {
    #[command(subcommand)]
    change: Option<Change>,
    #[command(flatten)]
    listing: ListArguments,
}

/// How recordings are listed.
#[derive(Debug, Args)]
struct ListArguments {
    #[command(flatten)]
    place: PlaceArguments,
    /// One JSON object a line
    #[arg(long)]
    json: bool,
}

/// Whether sessions are recorded.
#[derive(Debug, Subcommand)]
enum Change {
    /// Record every session that is opened from now on
    #[command(after_help = "Example:\n  $ reminderd record start")]
    Start(PlaceArguments),
    /// Record no further sessions; those that are being recorded go on to their ends
    #[command(after_help = "Example:\n  $ reminderd record stop")]
    Stop(PlaceArguments),
}

/// What a recording says of itself.
#[derive(Debug, Deserialize)]
pub struct Header {
    /// The build that made it.
    pub reminderd: String,
    /// The session.
    pub session: String,
    /// When it begins.
    pub at: Millis,
}

impl Header {
    /// That of a file, if it is a recording.
    pub fn of(path: &Path) -> Option<Self> {
        let mut line = String::new();
        let file = File::open(path).ok()?.take(HEADER_BYTES_MAX);
        BufReader::new(file).read_line(&mut line).ok()?;
        serde_json::from_str(line.strip_prefix("# ")?).ok()
    }
}

/// Runs the command.
pub fn run(arguments: &RecordArguments) -> ExitCode {
    paint::ended("record", done(arguments))
}

fn done(arguments: &RecordArguments) -> Result<(), Failure> {
    let (place, on) = match &arguments.change {
        None => return listed(&arguments.listing),
        Some(Change::Start(place)) => (place, true),
        Some(Change::Stop(place)) => (place, false),
    };
    let recordings = recordings(&place.directory()?);
    let directory = recordings.directory().display().to_string();
    recordings.turn(on).map_err(|error| format!("{directory}: {error}"))?;
    paint::remark(&if on {
        format!("sessions that are opened from now on are recorded in {directory}")
    } else {
        "no further sessions are recorded".to_owned()
    });
    Ok(())
}

fn listed(arguments: &ListArguments) -> Result<(), Failure> {
    let recordings = recordings(&arguments.place.directory()?);
    let all = recordings.all()?;
    let of_each = all.iter().filter_map(|path| {
        let bytes = fs::metadata(path).map_or(0, |it| it.len());
        Some((path, bytes, Header::of(path)?))
    });
    if arguments.json {
        let lines = of_each.map(|(path, bytes, header)| {
            paint::json_line(&json!({
                "file": path,
                "session": header.session,
                "began": paint::utc(header.at),
                "version": header.reminderd,
                "bytes": bytes,
            }))
        });
        return Ok(paint::print(&lines.collect::<String>())?);
    }
    let is_on = if recordings.are_on() { "are" } else { "are not" };
    paint::remark(&format!("sessions {is_on} recorded in {}", recordings.directory().display()));
    if all.is_empty() {
        return Ok(());
    }
    let mut table = Table::new(&[
        ("SESSION", Align::Left),
        ("BEGAN", Align::Left),
        ("BYTES", Align::Right),
        ("FILE", Align::Left),
    ])
    .wrapping();
    for (path, bytes, header) in of_each {
        table.row([
            Cell::from(header.session),
            Cell::from(paint::local_time(header.at)),
            Cell::from(bytes),
            Cell::from(path.display().to_string()),
        ]);
    }
    Ok(paint::print(&table.text(Screen::of_stdout()))?)
}
