//! `reminderd completions`: what shells need to complete commands and options.

use std::io;
use std::process::ExitCode;

use clap::Args;
use clap_complete::Shell;

use super::paint;

/// Print the completions for a shell.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  \
                  $ reminderd completions bash > ~/.local/share/bash-completion/completions/reminderd")]
pub struct CompletionsArguments {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// Runs the command.
pub fn run(arguments: &CompletionsArguments) -> ExitCode {
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut super::command(), "reminderd", &mut text);
    let written = io::Write::write_all(&mut io::stdout().lock(), &text);
    paint::ended("completions", written.map_err(paint::Failure::from))
}
