//! Plain `reminderd`: the daemon itself, private to one client, over stdin and stdout.

use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use tracing_subscriber::EnvFilter;

use crate::server::{Daemon, Limits, Served, Surroundings, serve_stdio};

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

/// Serves until the client is gone. Leaves by `process::exit`: where stdin is a terminal or a
/// file, a thread of the runtime may hang in a read for ever.
pub fn serve(arguments: &ServeArguments) -> ExitCode {
    log_to_stderr();
    let surroundings =
        if arguments.deterministic { Surroundings::deterministic() } else { Surroundings::System };
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("reminderd: the runtime could not be started: {error}");
            return ExitCode::FAILURE;
        }
    };
    let application = Arc::new(Served(Arc::new(Daemon::new(surroundings))));
    let end = runtime.block_on(serve_stdio(application, Limits::default()));
    std::process::exit(end.status().into())
}

/// Logs to stderr at the level of `REMINDERD_LOG` (warnings when unset). No level shows a body or
/// the content of a file.
fn log_to_stderr() {
    let filter =
        EnvFilter::try_from_env("REMINDERD_LOG").unwrap_or_else(|_| EnvFilter::new("warn"));
    let subscriber = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // Another subscriber can only be there in a program that embeds this one: its choice stands.
    drop(subscriber.try_init());
}
