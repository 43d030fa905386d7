//! `reminderd config`: what is wrong with configuration files, and what comes of them.

mod check;
mod show;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::configuration::{Document, Layer, Origin, Unreadable, read};

/// Look at configuration files (`reminderd.toml`).
#[derive(Debug, Args)]
pub struct ConfigArguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Check(check::CheckArguments),
    Show(show::ShowArguments),
}

/// Runs the command.
pub fn run(arguments: &ConfigArguments) -> ExitCode {
    match &arguments.command {
        Command::Check(arguments) => check::run(arguments),
        Command::Show(arguments) => show::run(arguments),
    }
}

/// Reads a file, which people are shown by the path that they gave.
pub fn document(path: &Path, layer: Layer) -> Result<Document, Unreadable> {
    read(path, Origin::new(layer, path.display().to_string()))
}

/// Whether two paths lead to one file.
fn is_same(one: &Path, other: Option<&PathBuf>) -> bool {
    let real = |path: &Path| path.canonicalize().ok();
    other.is_some_and(|other| real(one).is_some_and(|one| Some(one) == real(other)))
}
