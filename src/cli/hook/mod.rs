//! `reminderd hook`: what a terminal agent runs for each of its events, and what puts it into the
//! agent's settings.
//!
//! A host's module reads its event into a `Happening`; `event.rs` tells it to the daemon and gives
//! the host what the WAIT answers; `notes.rs` keeps what the host has not yet shown to have taken, and
//! `receipt.rs` finds out whether it has.

mod claude_code;
mod codex;
mod copilot;
mod event;
mod gemini;
mod happening;
mod notes;
mod receipt;
mod settings;

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use self::claude_code::ClaudeCode;
use self::codex::Codex;
use self::copilot::Copilot;
use self::event::Event;
use self::gemini::Gemini;
use self::happening::Host;
use super::asking::Client;
use super::logging;
use super::paint::{self, Failure};
use super::serve::SharingArguments;
use crate::engine::one_line;

/// How long a host waits for this command at most, whatever happens: it is to be far below what
/// any of them allows.
const PATIENCE: Duration = Duration::from_secs(5);
/// Where it says what was wrong, in the state directory.
const LOG: &str = "hook.log";
/// How large an event may be, in bytes.
const EVENT_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Tell the shared daemon of an event of a terminal agent, and give the agent its reminders.
///
/// The agent runs it for each of its events, as its settings say: the event comes on standard input,
/// and what the model is to be told goes to standard output, in the agent's own format. It never stands
/// in the agent's way: whatever is wrong, it says nothing, and ends with 0 within five seconds; the
/// reason stands in `hook.log` in the state directory. The daemon is started when it is not there.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Example:\n  $ reminderd hook install claude-code\n\nFrom then on the agent's settings \
                  hold, for each event:\n  reminderd hook claude-code"
)]
pub struct HookArguments {
    /// The agent whose event it is
    #[arg(value_name = "AGENT", required = true)]
    agent: Option<Agent>,
    #[command(flatten)]
    sharing: SharingArguments,
    #[command(subcommand)]
    change: Option<Change>,
}

/// What is done to an agent's settings.
#[derive(Debug, Subcommand)]
enum Change {
    Install(InstallArguments),
    Uninstall(UninstallArguments),
}

/// Put the command into an agent's settings, for each event that it needs.
///
/// What else stands in the file stays as it is, comments and layout too. A second time changes nothing.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  $ reminderd hook install claude-code --project --dry-run")]
struct InstallArguments {
    #[command(flatten)]
    which: WhichArguments,
    #[command(flatten)]
    sharing: SharingArguments,
}

/// Take the command out of an agent's settings.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  $ reminderd hook uninstall claude-code")]
struct UninstallArguments {
    #[command(flatten)]
    which: WhichArguments,
}

/// Whose settings.
#[derive(Debug, Args)]
struct WhichArguments {
    /// The agent
    #[arg(value_name = "AGENT")]
    agent: Agent,
    /// Those of the project in the current directory, which others who work on it have too
    #[arg(long, conflicts_with = "user")]
    project: bool,
    /// Those of the user, for all projects (the default)
    #[arg(long)]
    user: bool,
    /// Only say what would change
    #[arg(long)]
    dry_run: bool,
}

/// An agent that runs commands for its events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Agent {
    /// Claude Code, of Anthropic
    ClaudeCode,
    /// Codex CLI
    Codex,
    /// Copilot CLI, of GitHub
    Copilot,
    /// Gemini CLI, of Google
    Gemini,
}

impl Agent {
    fn host(self) -> &'static dyn Host {
        match self {
            Self::ClaudeCode => &ClaudeCode,
            Self::Codex => &Codex,
            Self::Copilot => &Copilot,
            Self::Gemini => &Gemini,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::Copilot => "copilot",
            Self::Gemini => "gemini",
        }
    }
}

/// The agents that can run this command: the name here, the one for people, the program, and the files
/// of their settings, the user's and the project's.
pub fn agents() -> impl Iterator<Item = (&'static str, &'static str, &'static str, Vec<PathBuf>)> {
    Agent::value_variants().iter().map(|agent| {
        let settings = agent.host().settings();
        let files = [false, true].into_iter().filter_map(|project| settings.path(project).ok());
        (agent.name(), settings.title, settings.program, files.collect())
    })
}

/// Runs the command. Its work is left where it stands when the time is up: that is watched from another
/// thread, so that the work itself need not wait for one.
pub fn run(arguments: &HookArguments) -> ExitCode {
    let sharing = arguments.sharing.clone();
    let agent = match (&arguments.change, arguments.agent) {
        (Some(Change::Install(InstallArguments { which, sharing })), _) => {
            let command = settings::command(which.agent.name(), sharing);
            return paint::ended("hook install", command.and_then(|it| change(which, Some(&it))));
        }
        (Some(Change::Uninstall(UninstallArguments { which })), _) => {
            return paint::ended("hook uninstall", change(which, None));
        }
        (None, Some(agent)) => agent,
        // The command line is not taken without one.
        (None, None) => return ExitCode::SUCCESS,
    };
    let state = sharing.keeping.directory();
    // Whoever is first to end the command: what it says is said as a whole or not at all.
    let is_over = Arc::new(AtomicBool::new(false));
    let watched = {
        let (is_over, state) = (Arc::clone(&is_over), state.clone());
        move || {
            thread::sleep(PATIENCE);
            if !is_over.swap(true, Ordering::SeqCst) {
                let late = format!("it was not done in {} s", PATIENCE.as_secs());
                log(agent, state.as_deref(), &[late]);
                std::process::exit(0)
            }
        }
    };
    let mut troubles = Vec::new();
    if let Err(error) = thread::Builder::new().spawn(watched) {
        troubles.push(format!("nothing watches how long it takes: {error}"));
    }
    // The process ends, and the connection with it.
    let mut client = None;
    let answer = answered(agent, &sharing, &mut client, &mut troubles).unwrap_or_else(|reason| {
        troubles.push(reason);
        None
    });
    if is_over.swap(true, Ordering::SeqCst) {
        // The other thread ends the process.
        loop {
            thread::park();
        }
    }
    if let Some(answer) = answer {
        drop(paint::print(&format!("{answer}\n")));
    }
    if !troubles.is_empty() {
        log(agent, state.as_deref(), &troubles);
    }
    std::process::exit(0)
}

/// Says what was wrong where a person can find it: the host shows nothing of it.
fn log(agent: Agent, state: Option<&Path>, troubles: &[String]) {
    let logged = state.map(|state| logging::to_file(state, LOG));
    if !matches!(logged, Some(Ok(()))) {
        logging::to_stderr_if_asked();
    }
    for trouble in troubles {
        tracing::warn!(agent = agent.name(), "{}", one_line(trouble));
    }
}

/// Changes an agent's settings, so that this command stands in them, or none.
fn change(which: &WhichArguments, command: Option<&str>) -> Result<(), Failure> {
    let settings = which.agent.host().settings();
    let path = settings.path(which.project)?;
    settings.change(&path, which.agent.name(), command, which.dry_run)
}

fn answered(
    agent: Agent,
    sharing: &SharingArguments,
    client: &mut Option<Client>,
    troubles: &mut Vec<String>,
) -> Result<Option<String>, String> {
    let mut text = Vec::new();
    let read = io::stdin().lock().take(EVENT_BYTES_MAX).read_to_end(&mut text);
    read.map_err(|error| format!("the event cannot be read: {error}"))?;
    let input = serde_json::from_slice(&text)
        .map_err(|error| format!("the event is no JSON ({} bytes): {error}", text.len()))?;
    let host = agent.host();
    let Some(happening) = host.read(&input)? else { return Ok(None) };
    let event = Event { host: agent.name(), sharing, happening: &happening };
    let delivered = event.tell(client, troubles)?;
    Ok(delivered.map(|(delivery, text)| host.answer(&input, &delivery, &text).to_string()))
}
