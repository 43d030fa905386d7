//! `reminderd serve`: one daemon for many clients.

use std::fs::OpenOptions;
use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use semver::Version;
use tokio::signal::unix::{SignalKind, signal};

use super::keeping::{self, KeepingArguments};
use super::logging;
use crate::configuration::users_file;
use crate::server::endpoint::{Claim, Endpoint};
use crate::server::shared::{Terms, serve_shared};
use crate::server::{ConfigurationFiles, Daemon, Limits, Surroundings, log_panics_without_payload};

/// How long a daemon that ends, or hands over, is waited for.
const CLAIM_PATIENCE: Duration = Duration::from_secs(10);
/// How often it is looked whether it is gone.
const CLAIM_LOOK: Duration = Duration::from_millis(5);

/// Which daemon serves, and how long.
#[derive(Clone, Debug, Args)]
pub struct SharingArguments {
    /// Where it keeps what was told
    #[command(flatten)]
    pub keeping: KeepingArguments,
    /// End after so many seconds without any connection
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    pub idle: u64,
    /// Listen on a port of the loopback, for those who can read its secret from a file, where no
    /// Unix socket can be
    #[arg(long)]
    pub tcp: bool,
    /// Take this for the version of the build
    #[arg(long, value_name = "VERSION", hide = true)]
    pub build: Option<Version>,
}

impl SharingArguments {
    /// The version of this build.
    pub fn version(&self) -> Version {
        let own = || Version::parse(env!("CARGO_PKG_VERSION"));
        self.build.clone().or_else(|| own().ok()).unwrap_or_else(|| Version::new(0, 0, 0))
    }
}

/// One daemon for many clients: sessions that several of them speak about, one store, one watcher.
///
/// You need not start it: `reminderd connect` does, when it is not there. It listens on a socket
/// that only you can use, in `$XDG_RUNTIME_DIR/reminderd`, else in the state directory, and ends
/// when nobody was connected for a while. There is one for each state directory; a second one ends
/// with status 1.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  $ reminderd serve --idle 3600\n\nIts log: `daemon.log` in the \
                        state directory when `connect` started it, stderr otherwise; \
                        REMINDERD_LOG=debug says more."
)]
pub struct ServeArguments {
    #[command(flatten)]
    sharing: SharingArguments,
    /// Leave the terminal and the process that started it
    #[arg(long, hide = true)]
    detached: bool,
}

/// Runs the command.
pub fn run(arguments: &ServeArguments) -> ExitCode {
    match served(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("reminderd serve: {error}");
            ExitCode::FAILURE
        }
    }
}

fn served(arguments: &ServeArguments) -> io::Result<()> {
    let ServeArguments { sharing, detached } = arguments;
    let log = logging::to_stderr_then_file();
    log_panics_without_payload();
    if *detached {
        // A session of its own: no terminal and no process group ends it.
        rustix::process::setsid()?;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let state = sharing.keeping.directory();
    let endpoint = Endpoint::of(state.as_deref())?;
    let Some(claim) = runtime.block_on(claimed(&endpoint))? else {
        // Whoever started this one finds the other.
        let message = format!("another daemon serves {} already", endpoint.socket().display());
        return if *detached { Ok(()) } else { Err(io::Error::other(message)) };
    };
    let (limits, keeping) = keeping::users_entries();
    let limits = Limits::of(&limits);
    let daemon = Daemon::new(Surroundings::System, sharing.keeping.store(&keeping));
    let configuration = ConfigurationFiles::new(users_file());
    let daemon = daemon.reading(configuration).limited(limits);
    let daemon = Arc::new(daemon.recorded(sharing.keeping.recorder()));
    let serving = Arc::clone(&daemon);
    let terms =
        Terms { idle: Duration::from_secs(sharing.idle), version: sharing.version(), limits };
    let (tcp, detached) = (sharing.tcp, *detached);
    // On a worker: one that hears of a client takes it in and serves it at once, where the thread that
    // started the runtime would have to be woken first.
    let claim = runtime.spawn(async move {
        let listener = claim.listen(tcp)?;
        println!("listening on {}", listener.place(&endpoint).display());
        if detached {
            leave_stdio(log, state.as_deref())?;
        }
        let told_to_end = told_to_end()?;
        io::Result::Ok(serve_shared(&serving, claim, listener, terms, told_to_end).await)
    });
    let claim = runtime.block_on(claim).map_err(io::Error::other)??;
    daemon.end(keeping::END_PATIENCE);
    drop(claim);
    // What still looks at a disk is not waited for.
    std::process::exit(0)
}

/// The claim on the endpoint; `None` when another daemon serves there.
async fn claimed(endpoint: &Endpoint) -> io::Result<Option<Claim>> {
    let until = Instant::now() + CLAIM_PATIENCE;
    loop {
        if let Some(claim) = endpoint.claim()? {
            return Ok(Some(claim));
        }
        if endpoint.dial().await?.is_some() || Instant::now() > until {
            return Ok(None);
        }
        tokio::time::sleep(CLAIM_LOOK).await;
    }
}

/// Lets go of what belongs to the process that started this one.
fn leave_stdio(log: &logging::LateFile, state: Option<&std::path::Path>) -> io::Result<()> {
    let nothing = OpenOptions::new().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdout(&nothing)?;
    match state.map(|state| log.move_to(state)) {
        Some(Ok(())) => Ok(()),
        failed => {
            if let Some(Err(error)) = failed {
                tracing::warn!(%error, "there is no log from here on");
            }
            Ok(rustix::stdio::dup2_stderr(&nothing)?)
        }
    }
}

/// Done when the process is asked to end.
fn told_to_end() -> io::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}
