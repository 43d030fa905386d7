//! Plain `reminderd`: the daemon itself, private to one client, over stdin and stdout.

use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;

use super::keeping::{self, KeepingArguments};
use super::logging;
use crate::configuration::users_file;
use crate::server::{ConfigurationFiles, Daemon, Limits, Served, Surroundings, serve_stdio};

/// How the private daemon serves.
#[derive(Debug, Args)]
pub struct StdioArguments {
    #[command(flatten)]
    keeping: KeepingArguments,
    /// Read no configuration, neither the user's nor a project's
    #[arg(long, hide = true)]
    pub no_config: bool,
    /// Virtual time and countable tokens, so that two runs say the same
    #[arg(long, hide = true)]
    pub deterministic: bool,
    /// Take everything of the machine from the recording that is played
    #[arg(long, hide = true, requires = "deterministic")]
    pub played: bool,
}

/// Serves until the client is gone. Leaves by `process::exit`: where stdin is a terminal or a
/// file, a thread of the runtime may hang in a read for ever.
pub fn serve(arguments: &StdioArguments) -> ExitCode {
    logging::to_stderr();
    let surroundings =
        if arguments.deterministic { Surroundings::deterministic() } else { Surroundings::System };
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("reminderd: the runtime could not be started: {error}");
            return ExitCode::FAILURE;
        }
    };
    let (configuration, (limits, keeping)) = if arguments.no_config {
        (ConfigurationFiles::default(), Default::default())
    } else {
        (ConfigurationFiles::new(users_file()), keeping::users_entries())
    };
    let limits = Limits::of(&limits);
    let daemon = Daemon::new(surroundings, arguments.keeping.store(&keeping));
    let mut daemon = daemon.reading(configuration).limited(limits);
    if arguments.played {
        daemon = daemon.playing();
    } else {
        daemon = daemon.recorded(arguments.keeping.recorder());
    }
    let daemon = Arc::new(daemon);
    let application = Arc::new(Served(Arc::clone(&daemon)));
    let end = runtime.block_on(serve_stdio(application, limits));
    daemon.end(keeping::END_PATIENCE);
    std::process::exit(end.status().into())
}
