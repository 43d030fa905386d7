//! The command line: one file a command.

pub mod check;
pub mod connect;
pub mod run;
pub mod serve;
pub mod stdio;

mod keeping;
mod logging;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Owns the system reminders of LLM coding agents: the right thing, at the right moment, once.
///
/// Without a command it is the daemon, private to one client, over stdin and stdout.
#[derive(Debug, Parser)]
#[command(
    name = "reminderd",
    version,
    args_conflicts_with_subcommands = true,
    after_help = "Example:\n  $ reminderd run --show script.jsonl"
)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    stdio: stdio::StdioArguments,
}

#[derive(Debug, Subcommand)]
enum Command {
    Connect(connect::ConnectArguments),
    Serve(serve::ServeArguments),
    Run(run::RunArguments),
    Check(check::CheckArguments),
}

/// Parses the arguments and runs the command.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    match &cli.command {
        None => stdio::serve(&cli.stdio),
        Some(Command::Connect(arguments)) => connect::run(arguments),
        Some(Command::Serve(arguments)) => serve::run(arguments),
        Some(Command::Run(arguments)) => run::run(arguments),
        Some(Command::Check(arguments)) => check::run(arguments),
    }
}
