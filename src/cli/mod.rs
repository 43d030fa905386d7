//! The command line: one file a command.

pub mod bug_report;
pub mod check;
pub mod completions;
pub mod config;
pub mod connect;
pub mod decode;
pub mod doctor;
pub mod explain;
pub mod forget;
pub mod hook;
pub mod log;
pub mod man;
pub mod record;
pub mod replay;
pub mod report;
pub mod run;
pub mod serve;
pub mod sessions;
pub mod status;
pub mod stdio;

mod asking;
mod conversation;
mod keeping;
mod logging;
mod paint;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

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
    Hook(hook::HookArguments),
    Serve(serve::ServeArguments),
    Run(run::RunArguments),
    Check(check::CheckArguments),
    Config(config::ConfigArguments),
    Status(status::StatusArguments),
    Sessions(sessions::SessionsArguments),
    Log(log::LogArguments),
    Explain(explain::ExplainArguments),
    Forget(forget::ForgetArguments),
    Record(record::RecordArguments),
    Replay(replay::ReplayArguments),
    Report(report::ReportArguments),
    Decode(decode::DecodeArguments),
    Doctor(doctor::DoctorArguments),
    BugReport(bug_report::BugReportArguments),
    Completions(completions::CompletionsArguments),
    Man(man::ManArguments),
}

/// The command line of an agent's events alone, for which an agent waits: what describes all the other
/// commands takes longer to build than the event takes to tell. It reads the same.
#[derive(Debug, Parser)]
#[command(name = "reminderd", version)]
enum EventCli {
    Hook(hook::HookArguments),
}

/// The command line, for what is made from it.
fn command() -> clap::Command {
    Cli::command()
}

/// Parses the arguments and runs the command.
pub fn main() -> ExitCode {
    if std::env::args_os().nth(1).is_some_and(|command| command == "hook") {
        let EventCli::Hook(arguments) = EventCli::parse();
        return hook::run(&arguments);
    }
    let cli = Cli::parse();
    match &cli.command {
        None => stdio::serve(&cli.stdio),
        Some(Command::Connect(arguments)) => connect::run(arguments),
        Some(Command::Hook(arguments)) => hook::run(arguments),
        Some(Command::Serve(arguments)) => serve::run(arguments),
        Some(Command::Run(arguments)) => run::run(arguments),
        Some(Command::Check(arguments)) => check::run(arguments),
        Some(Command::Config(arguments)) => config::run(arguments),
        Some(Command::Status(arguments)) => status::run(arguments),
        Some(Command::Sessions(arguments)) => sessions::run(arguments),
        Some(Command::Log(arguments)) => log::run(arguments),
        Some(Command::Explain(arguments)) => explain::run(arguments),
        Some(Command::Forget(arguments)) => forget::run(arguments),
        Some(Command::Record(arguments)) => record::run(arguments),
        Some(Command::Replay(arguments)) => replay::run(arguments),
        Some(Command::Report(arguments)) => report::run(arguments),
        Some(Command::Decode(arguments)) => decode::run(arguments),
        Some(Command::Doctor(arguments)) => doctor::run(arguments),
        Some(Command::BugReport(arguments)) => bug_report::run(arguments),
        Some(Command::Completions(arguments)) => completions::run(arguments),
        Some(Command::Man(arguments)) => man::run(arguments),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_of_events_reads_as_the_whole_one_does() {
        let help = |mut command: clap::Command| {
            command.build();
            let mut hook = command.find_subcommand("hook").expect("it is there").clone();
            let mut all = vec![hook.render_long_help().to_string()];
            for change in ["install", "uninstall"] {
                let change = hook.find_subcommand_mut(change).expect("it is there");
                all.push(change.render_long_help().to_string());
            }
            all
        };
        assert_eq!(help(EventCli::command()), help(Cli::command()));
        for line in [vec!["reminderd", "hook"], vec!["reminderd", "hook", "codex", "--no"]] {
            let all = Cli::try_parse_from(&line).expect_err("it is wrong").to_string();
            let events = EventCli::try_parse_from(&line).expect_err("it is wrong").to_string();
            assert_eq!(events, all);
        }
    }
}
