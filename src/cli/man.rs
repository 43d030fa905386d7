//! `reminderd man`: the manual, made from the command line itself.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use clap_mangen::Man;

use super::paint::{self, Failure};

/// Print the manual page, or write those of all commands into a directory.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  $ reminderd man ~/.local/share/man/man1")]
pub struct ManArguments {
    /// Where to write `reminderd.1`, `reminderd-log.1` and the others; made where it is not there
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
}

/// Runs the command.
pub fn run(arguments: &ManArguments) -> ExitCode {
    paint::ended("man", written(arguments))
}

fn written(arguments: &ManArguments) -> Result<(), Failure> {
    // `help` is not a command that anybody looks up.
    let command = super::command().disable_help_subcommand(true);
    let Some(directory) = &arguments.directory else {
        let mut page = Vec::new();
        Man::new(command).render(&mut page)?;
        return Ok(io::stdout().lock().write_all(&page)?);
    };
    let made = std::fs::create_dir_all(directory)
        .and_then(|()| clap_mangen::generate_to(command, directory));
    made.map_err(|error| {
        format!("the pages cannot be written to {}: {error}", directory.display()).into()
    })
}
