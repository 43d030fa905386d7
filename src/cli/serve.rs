//! Plain `reminderd`: the daemon itself, private to one client, over stdin and stdout.

use std::process::ExitCode;

use clap::Args;

/// How the daemon serves.
#[derive(Debug, Args)]
pub struct ServeArguments {
    /// Keep everything in memory and leave nothing behind
    #[arg(long, hide = true)]
    pub ephemeral: bool,
    /// Read no configuration, neither the user's nor a project's
    #[arg(long, hide = true)]
    pub no_config: bool,
    /// Virtual time and countable tokens, so that two runs say the same
    #[arg(long, hide = true)]
    pub deterministic: bool,
}

/// Serves until the client is gone.
pub fn serve(_arguments: &ServeArguments) -> ExitCode {
    eprintln!("reminderd: this build has no server yet; scripts run with `--against CMD`");
    ExitCode::FAILURE
}
