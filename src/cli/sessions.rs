//! `reminderd sessions`: which sessions there are.

use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::asking::{Known, Life, PATIENCE, PlaceArguments, known};
use super::paint::{self, Align, Cell, FAINT, Failure, LIVELY, Progress, Screen, Table};

/// List the sessions, the one that was used last first.
///
/// Those that the shared daemon has open, and those that are only stored. STATE is `open`, `stored`, or
/// the process that owns it where that is a daemon of one client, which cannot be asked. With
/// `--json` each line is an object: `session`, `root`, `state` (`open`, `held`, `stored`), `holder`,
/// `turn`, `openTokens`, `requests`, `opened`, `lastActive`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  $ reminderd sessions --json | head -1")]
pub struct SessionsArguments {
    #[command(flatten)]
    place: PlaceArguments,
    /// One JSON object a line
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(arguments: &SessionsArguments) -> ExitCode {
    paint::ended("sessions", listed(arguments))
}

fn listed(arguments: &SessionsArguments) -> Result<(), Failure> {
    let reading = Progress::of("reading the store");
    let archive = arguments.place.archive()?;
    let mut daemon = arguments.place.daemon(PATIENCE)?;
    let mut all = known(daemon.as_mut(), archive.as_ref())?;
    drop(reading);
    all.sort_by_key(|one| std::cmp::Reverse(one.active));
    if arguments.json {
        let lines: String = all.iter().map(as_json).collect();
        return Ok(paint::print(&lines)?);
    }
    if all.is_empty() {
        paint::remark(&format!(
            "no sessions in {} yet: a client opens them (another directory is named with --state)",
            arguments.place.directory()?.display()
        ));
        return Ok(());
    }
    let mut table = Table::new(&[
        ("SESSION", Align::Left),
        ("STATE", Align::Left),
        ("TURN", Align::Left),
        ("REQUESTS", Align::Right),
        ("LAST USED", Align::Left),
        ("ROOT", Align::Left),
    ]);
    for one in &all {
        let state = match &one.life {
            Life::Open => Cell::new("open", LIVELY),
            Life::Held(holder) => Cell::from(holder.to_string()),
            Life::Stored => Cell::new("stored", FAINT),
        };
        table.row([
            Cell::from(&*one.session),
            state,
            Cell::from(one.turn.as_deref().unwrap_or("-")),
            Cell::from(one.requests),
            Cell::from(paint::local_time(one.active)),
            Cell::from(one.root.as_deref().unwrap_or("-")),
        ]);
    }
    Ok(paint::print(&table.text(Screen::of_stdout()))?)
}

fn as_json(one: &Known) -> String {
    let (state, holder) = match &one.life {
        Life::Open => ("open", None),
        Life::Held(holder) => {
            let since = paint::utc(holder.since);
            ("held", Some(json!({ "pid": holder.pid, "host": holder.host, "since": since })))
        }
        Life::Stored => ("stored", None),
    };
    paint::json_line(&json!({
        "session": one.session,
        "root": one.root,
        "state": state,
        "holder": holder,
        "turn": one.turn,
        "openTokens": one.open_tokens,
        "requests": one.requests,
        "opened": one.opened.map(paint::utc),
        "lastActive": paint::utc(one.active),
    }))
}
