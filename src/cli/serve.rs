//! Plain `reminderd`: the daemon itself, private to one client, over stdin and stdout.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use tracing_subscriber::EnvFilter;

use crate::server::{Daemon, Limits, Served, Surroundings, serve_stdio};
use crate::store::{MemoryStore, Options, SqliteStore, Store, Unusable, default_directory};

/// How long the end waits for the store: `exit` ends the process within a second.
const END_PATIENCE: Duration = Duration::from_millis(800);

/// How the daemon serves.
#[derive(Debug, Args)]
pub struct ServeArguments {
    /// Keep what was told in this directory instead of `$XDG_STATE_HOME/reminderd` or
    /// `~/.local/state/reminderd`
    #[arg(long, value_name = "DIR", conflicts_with = "ephemeral")]
    pub state: Option<PathBuf>,
    /// Keep everything in memory and leave nothing behind
    #[arg(long)]
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
    let daemon = Arc::new(Daemon::new(surroundings, store(arguments)));
    let application = Arc::new(Served(Arc::clone(&daemon)));
    let end = runtime.block_on(serve_stdio(application, Limits::default()));
    daemon.end(END_PATIENCE);
    std::process::exit(end.status().into())
}

/// The store that the arguments ask for. One that cannot be used is said here, and again to every
/// client that opens a session.
fn store(arguments: &ServeArguments) -> Arc<dyn Store> {
    if arguments.ephemeral {
        return Arc::new(MemoryStore::default());
    }
    let Some(directory) = arguments.state.clone().or_else(default_directory) else {
        return unusable(
            "neither XDG_STATE_HOME nor HOME says where to keep what is told: name a \
                         directory with --state, or go on without one with --ephemeral"
                .to_owned(),
        );
    };
    match SqliteStore::open(&directory, Options::default()) {
        Ok(store) => Arc::new(store),
        Err(error) => unusable(error.to_string()),
    }
}

fn unusable(why: String) -> Arc<dyn Store> {
    tracing::error!("{why}");
    Arc::new(Unusable::new(why))
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
