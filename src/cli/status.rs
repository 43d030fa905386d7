//! `reminderd status`: how things stand, in a few lines or in one.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use serde_json::{Value as Json, json};

use super::asking::{Client, Known, Life, PATIENCE, PlaceArguments, choose, known};
use super::paint::{self, Failure, STRONG, Screen, count};
use crate::engine::{one_line, short_name};

/// How long a mode line or a prompt waits for each answer.
const LINE_PATIENCE: Duration = Duration::from_millis(300);
/// How many reminders a line names.
const LINE_NAMES: usize = 4;

/// Say whether the daemon runs, and what waits for a session's next request.
///
/// With `--line` it is one short line for the mode line of an editor or the prompt of a shell:
/// `◇ 2 (task nudge, edited files)`, or nothing at all: also when no daemon runs, or it does not answer
/// at once. Without SESSION it is the only one there is, or the one that was used last of those whose
/// root holds the current directory; `--line` looks at sessions that are open only.
#[derive(Debug, Args)]
#[command(after_help = "Example, in a prompt of bash:\n  \
                  $ PS1='$(reminderd status --line) \\w \\$ '")]
pub struct StatusArguments {
    /// The session
    #[arg(value_name = "SESSION")]
    session: Option<String>,
    #[command(flatten)]
    place: PlaceArguments,
    /// One short line, or nothing
    #[arg(long)]
    line: bool,
    /// One JSON object
    #[arg(long, conflicts_with = "line")]
    json: bool,
}

/// A reminder that waits for the next request.
struct Due {
    id: String,
    tokens: u64,
}

/// Runs the command.
pub fn run(arguments: &StatusArguments) -> ExitCode {
    if !arguments.line {
        return paint::ended("status", stated(arguments));
    }
    // Whatever is wrong: a mode line has no place for it.
    match line(arguments) {
        Some(line) => {
            paint::ended("status", paint::print(&format!("{line}\n")).map_err(Failure::from))
        }
        None => ExitCode::SUCCESS,
    }
}

fn line(arguments: &StatusArguments) -> Option<String> {
    let mut daemon = arguments.place.daemon(LINE_PATIENCE).ok()??;
    let session = match &arguments.session {
        Some(session) => session.clone(),
        None => {
            let all = known(Some(&mut daemon), None).ok()?;
            choose(&all, None).ok()?.session.clone()
        }
    };
    short(&due(&mut daemon, &session).ok()?)
}

/// What waits, in one short line; `None` where nothing does.
fn short(due: &[Due]) -> Option<String> {
    if due.is_empty() {
        return None;
    }
    let names = due.iter().take(LINE_NAMES).map(|one| short_name(&one.id.replace('-', " "), 24));
    let mut names: Vec<_> = names.collect();
    if due.len() > LINE_NAMES {
        names.push("…".to_owned());
    }
    Some(format!("◇ {} ({})", due.len(), names.join(", ")))
}

/// What a request would tell, were one made now or, between two turns, in the next one.
fn due(client: &mut Client, session: &str) -> Result<Vec<Due>, String> {
    let answer: Json = client.ask("reminder/explain", &json!({ "session": session }))?;
    let rows = answer["rows"].as_array().map(Vec::as_slice).unwrap_or_default();
    let due = rows.iter().filter_map(|row| {
        // What would speak, but for a turn that is not open, keeps its price.
        let tokens = row["tokens"].as_u64().filter(|tokens| *tokens > 0)?;
        Some(Due { id: row["id"].as_str()?.to_owned(), tokens })
    });
    Ok(due.collect())
}

fn stated(arguments: &StatusArguments) -> Result<(), Failure> {
    let directory = arguments.place.directory()?;
    let archive = arguments.place.archive()?;
    let mut daemon = arguments.place.daemon(PATIENCE)?;
    let all = known(daemon.as_mut(), archive.as_ref())?;
    let open = all.iter().filter(|one| one.life == Life::Open).count() as u64;
    let chosen = match &arguments.session {
        Some(session) => Some(choose(&all, Some(session))?),
        None => choose(&all, None).ok(),
    };
    let waits = match (&mut daemon, chosen) {
        (Some(daemon), Some(Known { session, life: Life::Open, .. })) => due(daemon, session)?,
        _ => Vec::new(),
    };
    let version = daemon.as_ref().map(|daemon| daemon.version().to_owned());
    if arguments.json {
        let status = json!({
            "state": directory.display().to_string(),
            "daemon": version.map(|version| json!({ "version": version })),
            "sessions": { "open": open, "stored": all.len() as u64 - open },
            "session": chosen.map(|chosen| json!({
                "session": chosen.session,
                "root": chosen.root,
                "open": chosen.life == Life::Open,
                "turn": chosen.turn,
                "openTokens": chosen.open_tokens,
                "lastActive": paint::utc(chosen.active),
            })),
            "due": waits.iter().map(|due| json!({ "id": due.id, "tokens": due.tokens }))
                .collect::<Vec<_>>(),
        });
        return Ok(paint::print(&paint::json_line(&status))?);
    }
    let directory = one_line(&directory.display().to_string()).into_owned();
    let mut text = match version {
        Some(version) => {
            format!("{STRONG}daemon{STRONG:#}   {} runs for {directory}\n", one_line(&version))
        }
        None => format!(
            "{STRONG}daemon{STRONG:#}   none runs for {directory} (`reminderd connect` starts one)\n"
        ),
    };
    let stored = all.len() as u64 - open;
    text.push_str(&format!("         {} open, {stored} stored\n", count(open, "session")));
    if let Some(chosen) = chosen {
        let screen = Screen::of_stdout();
        let name = paint::name(&chosen.session, screen);
        let how = match (&chosen.life, &chosen.turn) {
            (Life::Open, Some(turn)) => format!("open, in turn {}", paint::name(turn, screen)),
            (Life::Open, None) => "open, between two turns".to_owned(),
            (Life::Held(holder), _) => format!("open in {holder}, which cannot be asked"),
            (Life::Stored, _) => "stored".to_owned(),
        };
        text.push_str(&format!("{STRONG}session{STRONG:#}  {name}: {how}\n"));
        match short(&waits) {
            Some(line) => {
                let tokens = waits.iter().map(|due| due.tokens).sum();
                text.push_str(&format!(
                    "         {line} for the next request, {}\n",
                    count(tokens, "token")
                ));
            }
            None if chosen.life == Life::Open => {
                text.push_str("         nothing waits for the next request\n");
            }
            None => {}
        }
    }
    Ok(paint::print(&text)?)
}
