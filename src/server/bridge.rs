//! A client's stdin and stdout on one side, a shared daemon on the other: bytes pass as they are, until
//! the daemon says how the connection ended.

use std::io;
use std::os::fd::OwnedFd;
use std::pin::pin;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::io::{
    AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader, copy_buf,
};
use tokio::time::{Instant, timeout};

use super::endpoint::Stream;
use super::handshake::{END, read_last_words};

/// How many bytes are passed on at a time.
const CHUNK_BYTES: usize = 64 * 1024;
/// How often it is looked whether the daemon ended the connection while the client does not read.
const LOOK: Duration = Duration::from_millis(50);
/// How long the client may take to read what is left after that. With what the daemon itself allows
/// it is less than a second.
const LAST_WRITE: Duration = Duration::from_millis(200);

/// Why a connection ended without last words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unheard {
    /// The daemon is gone.
    Gone,
    /// The client did not read what stands before them.
    Unread,
}

/// Passes bytes both ways until the connection ends, and returns the daemon's last words: with which
/// exit status, and why. `socket` is the stream's descriptor.
pub async fn bridge(
    stream: Stream,
    socket: &OwnedFd,
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin,
) -> Result<(u8, String), Unheard> {
    let Stream { input: said, output: mut tell, .. } = stream;
    let mut upward = pin!(async move {
        let mut input = BufReader::with_capacity(CHUNK_BYTES, input);
        // The daemon makes of it what it is: the end of the input, or of the connection. When the
        // daemon is gone, that is seen in what it says.
        drop(copy_buf(&mut input, &mut tell).await);
        drop(tell.shutdown().await);
        // Dropped, it would close what the daemon may still read.
        (input, tell)
    });
    let mut downward = pin!(downward(said, socket, output));
    let mut ended = None;
    loop {
        tokio::select! {
            end = &mut downward => return end,
            kept = &mut upward, if ended.is_none() => ended = Some(kept),
        }
    }
}

async fn downward(
    mut said: impl AsyncRead + Unpin,
    socket: &OwnedFd,
    mut output: impl AsyncWrite + Unpin,
) -> Result<(u8, String), Unheard> {
    let mut chunk = Vec::with_capacity(CHUNK_BYTES);
    loop {
        chunk.clear();
        match said.read_buf(&mut chunk).await {
            Ok(1..) => {}
            Ok(0) | Err(_) => return Err(Unheard::Gone),
        }
        let end = chunk.iter().position(|byte| *byte == END);
        let written = write(&mut output, &chunk[..end.unwrap_or(chunk.len())], socket).await;
        let mut words = match (written, end) {
            (Err(Unwritten::Failed(error)), _) => {
                return Ok((1, format!("the output cannot be written: {error}")));
            }
            (Ok(()), None) => continue,
            (_, Some(end)) => chunk.split_off(end + 1),
            // What the client does not read is left; how it ended stands behind that.
            (Err(Unwritten::Ended), None) => {
                let mut left = Vec::new();
                drop(said.read_to_end(&mut left).await);
                let Some(end) = left.iter().position(|byte| *byte == END) else {
                    return Err(Unheard::Unread);
                };
                left.split_off(end + 1)
            }
        };
        drop(said.read_to_end(&mut words).await);
        return read_last_words(&String::from_utf8_lossy(&words)).ok_or(Unheard::Gone);
    }
}

/// Why something was not written.
enum Unwritten {
    /// The client is gone.
    Failed(io::Error),
    /// The daemon ended the connection, and the client does not read.
    Ended,
}

async fn write(
    output: &mut (impl AsyncWrite + Unpin),
    mut bytes: &[u8],
    socket: &OwnedFd,
) -> Result<(), Unwritten> {
    let mut until: Option<Instant> = None;
    while !bytes.is_empty() {
        match timeout(LOOK, output.write(bytes)).await {
            Ok(Ok(0)) => return Err(Unwritten::Failed(io::ErrorKind::WriteZero.into())),
            Ok(Ok(written)) => bytes = &bytes[written..],
            Ok(Err(error)) => return Err(Unwritten::Failed(error)),
            Err(_) if until.is_some_and(|until| until <= Instant::now()) => {
                return Err(Unwritten::Ended);
            }
            Err(_) if until.is_none() && is_hung_up(socket) => {
                until = Some(Instant::now() + LAST_WRITE);
            }
            Err(_) => {}
        }
    }
    output.flush().await.map_err(Unwritten::Failed)
}

/// Whether the other end of a socket says nothing more, whatever is still to be read.
fn is_hung_up(socket: &OwnedFd) -> bool {
    #[cfg(target_os = "linux")]
    let hung_up = PollFlags::RDHUP | PollFlags::HUP;
    #[cfg(not(target_os = "linux"))]
    let hung_up = PollFlags::HUP;
    let mut polled = [PollFd::new(socket, hung_up)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut polled, Some(&at_once)).is_ok() && polled[0].revents().intersects(hung_up)
}
