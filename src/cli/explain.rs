//! `reminderd explain`: why each reminder speaks, or is silent.

use std::process::ExitCode;

use clap::Args;
use reminderd_protocol::state::SessionState;
use serde_json::{Value as Json, json};

use super::asking::{Client, PATIENCE, PlaceArguments, choose, client_of, known};
use super::paint::{
    self, Align, Cell, FAINT, Failure, LIVELY, Progress, STRONG, Screen, Table, count,
};

/// Say of every reminder whether it would speak now, why or why not, and at what cost.
///
/// What speaks comes first. A session that no shared daemon has open is restored within this process,
/// as it is stored, and nothing of it changes. Without SESSION it is the only one there is, or the one
/// that was used last of those whose root holds the current directory. With `--json` each line is an
/// object: `session`, `agent` (`null` for the root) and the members of `reminder/explain`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  $ reminderd explain demo --agent /reviewer")]
pub struct ExplainArguments {
    /// The session
    #[arg(value_name = "SESSION")]
    session: Option<String>,
    #[command(flatten)]
    place: PlaceArguments,
    /// Of this agent instead of the root
    #[arg(long, value_name = "PATH", conflicts_with = "all")]
    agent: Option<String>,
    /// Of the root and of every agent
    #[arg(long)]
    all: bool,
    /// One JSON object a line
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(arguments: &ExplainArguments) -> ExitCode {
    paint::ended("explain", explained(arguments))
}

fn explained(arguments: &ExplainArguments) -> Result<(), Failure> {
    let asking = Progress::of("asking");
    let archive = arguments.place.archive()?;
    let mut daemon = arguments.place.daemon(PATIENCE)?;
    let all = known(daemon.as_mut(), archive.as_ref())?;
    let chosen = choose(&all, arguments.session.as_deref())?;
    let session = &*chosen.session;
    let mut client = client_of(chosen, daemon, archive.as_ref())?;
    let mut scopes = vec![arguments.agent.clone().filter(|agent| agent != "/")];
    if arguments.all {
        let state: SessionState = client.ask("session/state", &json!({ "session": session }))?;
        let agents = state.agents.iter().filter_map(|agent| agent["agent"].as_str());
        scopes.extend(agents.map(|agent| Some(agent.to_owned())));
    }
    let screen = Screen::of_stdout();
    let mut text = String::new();
    for (place, agent) in scopes.iter().enumerate() {
        let rows = rows(&mut client, session, agent.as_deref())?;
        if arguments.json {
            text.extend(rows.iter().map(|row| as_json(session, agent.as_deref(), row)));
            continue;
        }
        if place > 0 {
            text.push('\n');
        }
        text.push_str(&as_text(session, agent.as_deref(), &rows, screen));
    }
    drop(asking);
    Ok(paint::print(&text)?)
}

/// The rows of a scope, those that speak first. As JSON: a daemon of a newer build may say more.
fn rows(client: &mut Client, session: &str, agent: Option<&str>) -> Result<Vec<Json>, String> {
    let mut params = json!({ "session": session });
    if let Some(agent) = agent {
        params["agent"] = agent.into();
    }
    let answer: Json = client.ask("reminder/explain", &params)?;
    let mut rows = answer["rows"].as_array().cloned().unwrap_or_default();
    rows.sort_by_key(|row| row["speaks"] != true);
    Ok(rows)
}

fn as_json(session: &str, agent: Option<&str>, row: &Json) -> String {
    let mut line = json!({ "session": session, "agent": agent });
    if let (Some(line), Some(row)) = (line.as_object_mut(), row.as_object()) {
        line.extend(row.clone());
    }
    paint::json_line(&line)
}

fn as_text(session: &str, agent: Option<&str>, rows: &[Json], screen: Screen) -> String {
    let speak: Vec<_> = rows.iter().filter(|row| row["speaks"] == true).collect();
    let tokens = speak.iter().filter_map(|row| row["tokens"].as_u64()).sum();
    let session = paint::name(session, screen);
    let agent = paint::name(agent.unwrap_or("/"), screen);
    let says = if speak.is_empty() {
        "nothing would be told now".to_owned()
    } else {
        format!(
            "{} would speak now, {}",
            count(speak.len() as u64, "reminder"),
            count(tokens, "token")
        )
    };
    let mut table = Table::new(&[
        ("REMINDER", Align::Left),
        ("SPEAKS", Align::Left),
        ("TOKENS", Align::Right),
        ("WHY, AND WHEN NEXT", Align::Left),
    ])
    .wrapping();
    for row in rows {
        let word = |member: &str| row[member].as_str().unwrap_or_default();
        let (speaks, style) = if row["speaks"] == true { ("yes", LIVELY) } else { ("no", FAINT) };
        let mut why = word("reason").to_owned();
        if let Some(next) = row["next"].as_str() {
            why.push_str(&format!("; next {next}"));
        }
        let id = if row["speaks"] == true { STRONG } else { anstyle::Style::new() };
        table.row([
            Cell::new(word("id"), id),
            Cell::new(speaks, style),
            Cell::from(row["tokens"].as_u64().unwrap_or(0)),
            Cell::from(why),
        ]);
    }
    format!("{STRONG}{session} {agent}{STRONG:#}: {says}\n{}", table.text(screen))
}
