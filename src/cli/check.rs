//! `reminderd check`: reads scripts and says what is wrong with them, without running any.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::run::report::End;
use super::run::{Exit, display_name, read_script};

/// Validate scripts without running them.
///
/// Says everything that is wrong, each as `FILE:LINE:COLUMN: what, why, what to do`. Exit
/// status: 0 when all are good, 2 when one is not.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  $ reminderd check tests/scenarios/*.jsonl")]
pub struct CheckArguments {
    /// Scripts to read; `-` reads one from standard input
    #[arg(value_name = "SCRIPT", required = true)]
    pub scripts: Vec<PathBuf>,
}

/// Runs the command.
pub fn run(arguments: &CheckArguments) -> ExitCode {
    let mut exit = Exit::Passed;
    for path in &arguments.scripts {
        let name = display_name(path);
        let Err(end) = read_script(path) else { continue };
        exit = Exit::BadScript;
        match end {
            End::Bad(errors) => errors.iter().for_each(|error| eprintln!("{name}:{error}")),
            End::Unreadable(reason) => eprintln!("{name}: {reason}"),
            End::Finished | End::Broken(_) | End::TimedOut(_) => {}
        }
    }
    exit.into()
}
