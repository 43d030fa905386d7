//! `reminderd forget`: sessions that are to leave nothing behind.

use std::collections::BTreeSet;
use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::process::ExitCode;

use clap::Args;
use serde_json::{Value as Json, json};

use super::asking::{Client, Known, Life, PATIENCE, PlaceArguments, choose, known};
use super::paint::{self, Failure, Progress, count};
use crate::engine::short_name;
use crate::server::recordings;
use crate::store::{Options, SqliteStore, Store as _};

/// Erase sessions from the store, so that nothing of them is left in any file.
///
/// Asks first, unless `--yes` is given. One that the shared daemon has open is closed: its tokens
/// expire. One that another daemon owns is refused. Exit status 1 when any could not be erased; none is
/// when one of the names is not known.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  $ reminderd forget demo --yes")]
pub struct ForgetArguments {
    /// The sessions
    #[arg(value_name = "SESSION", required = true)]
    sessions: Vec<String>,
    #[command(flatten)]
    place: PlaceArguments,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

/// Runs the command.
pub fn run(arguments: &ForgetArguments) -> ExitCode {
    paint::ended("forget", forgotten(arguments))
}

fn forgotten(arguments: &ForgetArguments) -> Result<(), Failure> {
    let archive = arguments.place.archive()?;
    let mut daemon = arguments.place.daemon(PATIENCE)?;
    let all = known(daemon.as_mut(), archive.as_ref())?;
    // What is read holds up the erasing.
    drop(archive);
    let names: BTreeSet<_> = arguments.sessions.iter().collect();
    let chosen = names.into_iter().map(|name| choose(&all, Some(name)));
    let chosen: Vec<&Known> = chosen.collect::<Result<_, _>>()?;
    if !arguments.yes && !is_meant(&chosen)? {
        return Err("nothing was erased".to_owned().into());
    }
    let mut eraser = match daemon {
        Some(daemon) => Eraser::Daemon(daemon),
        None => {
            let store = SqliteStore::open(&arguments.place.directory()?, Options::default());
            Eraser::Store(store.map_err(|error| error.to_string())?)
        }
    };
    let mut failed = 0;
    for one in chosen {
        let name = short_name(&one.session, 100);
        let erasing = Progress::of("erasing");
        let outcome = eraser.erase(&one.session).and_then(|()| {
            let removed = recordings(&arguments.place.directory()?).remove(&one.session);
            removed.map_err(|error| format!("its recordings are still there: {error}"))
        });
        drop(erasing);
        match outcome {
            Ok(()) => paint::print(&format!("forgot {name}\n"))?,
            Err(error) => {
                failed += 1;
                paint::remark(&format!("reminderd forget: {name}: {error}"));
            }
        }
    }
    match failed {
        0 => Ok(()),
        failed => Err(format!("{} could not be erased", count(failed, "session")).into()),
    }
}

/// Asks the person.
fn is_meant(chosen: &[&Known]) -> Result<bool, Failure> {
    if !io::stdin().is_terminal() {
        return Err("nobody is there to be asked: --yes erases without asking".to_owned().into());
    }
    for one in chosen {
        let state = match &one.life {
            Life::Open => "open now",
            Life::Held(_) => "open in another daemon",
            Life::Stored => "stored",
        };
        paint::remark(&format!(
            "  {}  {state}, {}, last used {}",
            short_name(&one.session, 100),
            count(one.requests, "request"),
            paint::local_time(one.active)
        ));
    }
    let mut stderr = io::stderr().lock();
    let of_them = count(chosen.len() as u64, "session");
    write!(stderr, "Erase {of_them} for good? [y/N] ")?;
    stderr.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Who erases: the daemon that uses the store, or this process where none does.
enum Eraser {
    Daemon(Client),
    Store(SqliteStore),
}

impl Eraser {
    fn erase(&mut self, session: &str) -> Result<(), String> {
        match self {
            Self::Daemon(daemon) => {
                let params = json!({ "session": session, "forget": true });
                daemon.ask::<Json>("session/close", &params).map(drop)
            }
            Self::Store(store) => {
                let erased = store.forget(session).wait_here(PATIENCE);
                erased.map_err(|error| match error {
                    crate::store::StoreError::Held(_) => {
                        format!("{error}: close it there, or end that daemon, then try again")
                    }
                    error => error.to_string(),
                })
            }
        }
    }
}
