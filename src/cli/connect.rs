//! `reminderd connect`: a client's stdin and stdout, and the shared daemon behind them, which it
//! starts when it is not there.

use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use clap::Args;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::logging;
use super::serve::SharingArguments;
use crate::server::bridge::{Unheard, bridge};
use crate::server::endpoint::{Endpoint, Stream};
use crate::server::handshake::{Answer, greet, read_last_words};
use crate::server::transport::{open_stdin, open_stdout};

/// How long it may take until a daemon serves this client.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a daemon may take to start.
const START_SECONDS: i64 = 20;
/// How long to wait before coming again.
const AGAIN: Duration = Duration::from_millis(5);

/// The shared daemon over stdin and stdout, started when it is not there.
///
/// For clients it is as plain `reminderd`: the same bytes, the same exit status. But sessions outlive
/// the connection and are shared: what an agent's host, its hooks and an editor say about one session
/// comes together. Of any number that start at once one starts the daemon. One that a newer build
/// finds is asked to hand over. The options are those of the daemon that it starts.
#[derive(Debug, Args)]
#[command(after_help = "Example, a hook that tells the next request of a session something:\n  \
                  $ printf '%s\\n' \\\n      \
                  '{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"capabilities\":{}}}' \\\n      \
                  '{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"session/open\",\"params\":{\"session\":\"s\"}}' \\\n      \
                  '{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"reminder/enqueue\",\"params\":{\"session\":\"s\",\"body\":\"…\"}}' \\\n      \
                  '{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"shutdown\"}' |\n    reminderd connect")]
pub struct ConnectArguments {
    #[command(flatten)]
    sharing: SharingArguments,
}

/// Runs the command. Leaves by `process::exit` with the runtime as it is: a thread of it may hang in
/// a read of stdin, and its end would wait for that.
pub fn run(arguments: &ConnectArguments) -> ExitCode {
    logging::to_stderr_if_asked();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let connected = runtime.as_ref().map_err(io::Error::to_string).and_then(|runtime| {
        runtime.block_on(connected(&arguments.sharing)).map_err(|error| error.to_string())
    });
    let (status, reason) =
        connected.unwrap_or_else(|error| (1, format!("no shared daemon: {error}")));
    if status != 0 {
        // Nothing is left to be done if stderr is gone too.
        drop(writeln!(io::stderr(), "reminderd: {reason}"));
    }
    std::process::exit(status.into())
}

async fn connected(sharing: &SharingArguments) -> io::Result<(u8, String)> {
    let endpoint = Endpoint::of(sharing.keeping.directory().as_deref())?;
    let Connected { stream, socket, connection } = served(&endpoint, sharing).await?;
    let gone = || (1, "the shared daemon is gone".to_owned());
    match bridge(stream, &socket, open_stdin()?, open_stdout()?).await {
        Ok(end) => Ok(end),
        Err(Unheard::Gone) => Ok(gone()),
        Err(Unheard::Unread) => {
            let words = last_words(&endpoint, sharing, connection).await;
            Ok(words.and_then(|words| read_last_words(&words)).unwrap_or_else(gone))
        }
    }
}

/// The last words of a connection whose client did not read so far.
async fn last_words(
    endpoint: &Endpoint,
    sharing: &SharingArguments,
    connection: Option<u64>,
) -> Option<String> {
    let (mut stream, _socket) = endpoint.dial().await.ok()??;
    let (_, more) = greet(&mut stream, &sharing.version(), Some(connection?)).await.ok()?;
    more.words
}

/// A connection to a daemon that serves this client.
pub(super) struct Connected {
    pub(super) stream: Stream,
    socket: OwnedFd,
    /// Its number there.
    connection: Option<u64>,
}

/// A connection to a daemon that serves this client. None of the client's bytes was read yet, so that
/// coming again loses nothing.
pub(super) async fn served(
    endpoint: &Endpoint,
    sharing: &SharingArguments,
) -> io::Result<Connected> {
    let version = sharing.version();
    let until = Instant::now() + PATIENCE;
    loop {
        let met = match endpoint.dial().await {
            Ok(None) => Ok(()),
            Err(error) => Err(error),
            Ok(Some((mut stream, socket))) => match greet(&mut stream, &version, None).await {
                Ok((Answer::Welcome, more)) => {
                    return Ok(Connected { stream, socket, connection: more.connection });
                }
                Ok((Answer::Moved, _)) => Ok(()),
                // On the port of a daemon that is gone listens somebody else.
                Ok((Answer::Refused, _)) if stream.secret.is_some() => Ok(()),
                Ok((Answer::Refused | Answer::Ended, _)) => {
                    Err(io::Error::other("it refused this client"))
                }
                Ok((Answer::Full, _)) => {
                    Err(io::Error::other("it serves as many clients as it can"))
                }
                Err(error) => Err(error),
            },
        };
        match met {
            Ok(()) => match endpoint.starter()? {
                Some(_starter) => start(sharing)?,
                None => tokio::time::sleep(AGAIN).await,
            },
            // It is overrun, or ends in this very moment.
            Err(error) if is_passing(&error) => tokio::time::sleep(AGAIN).await,
            Err(error) => return Err(error),
        }
        if Instant::now() > until {
            return Err(io::Error::other("none served this client in time"));
        }
    }
}

fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::NotConnected
            | io::ErrorKind::UnexpectedEof
    )
}

/// Starts a daemon, and returns when it listens, or when it ended because another one does.
fn start(sharing: &SharingArguments) -> io::Result<()> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("serve").arg("--detached").args(["--idle", &sharing.idle.to_string()]);
    command.args(sharing.keeping.as_arguments());
    if sharing.tcp {
        command.arg("--tcp");
    }
    if let Some(version) = &sharing.build {
        command.args(["--build", &version.to_string()]);
    }
    // What is wrong with its start is said on stderr; then it lets go of that.
    command.current_dir("/").stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn()?;
    let mut stdout =
        child.stdout.take().ok_or_else(|| io::Error::other("the daemon has no stdout"))?;
    let patience = Timespec { tv_sec: START_SECONDS, tv_nsec: 0 };
    if poll(&mut [PollFd::new(&stdout, PollFlags::IN)], Some(&patience))? == 0 {
        return Err(io::Error::other(format!("it did not start in {START_SECONDS} seconds")));
    }
    if stdout.read(&mut [0; 1024])? > 0 {
        return Ok(());
    }
    match child.wait()? {
        status if status.success() => Ok(()),
        status => Err(io::Error::other(format!("it could not be started ({status})"))),
    }
}
