//! One daemon for many clients: takes in connections, each served by a task of its own, until nobody
//! needs it any more or a newer build takes over.
//!
//! How it ends: withdrawn first, so that who comes now starts another; then what is under way is
//! finished; then the store, and with it the leases; the claim on the place last. A connection that
//! was not greeted yet sees its stream end and comes again, so that none of its bytes is lost.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use std::{io, mem};

use futures_util::future::join_all;
use parking_lot::Mutex;
use semver::Version;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::endpoint::{Claim, Listener, Stream};
use super::handshake::{Answer, END, Greeted, More, last_words};
use super::{Daemon, Limits, Served, serve};
use crate::store::Ticket;

/// How many clients are served at a time.
const CONNECTIONS_MAX: usize = 512;
/// How long the first client may take to come, whatever else is asked for.
const FIRST_CLIENT: Duration = Duration::from_secs(5);
/// How long the last words may wait for a client that does not read.
const LAST_WORDS: Duration = Duration::from_millis(50);
/// How many last words that were not heard are kept until they are asked for.
const UNHEARD_MAX: usize = 64;
/// How long a hand-over waits for the store.
const STORE_PATIENCE: Duration = Duration::from_secs(3);
/// How long nothing is accepted after the system refused that (too many open files).
const BREATH: Duration = Duration::from_millis(50);

/// On which terms clients are served.
#[derive(Clone, Debug)]
pub struct Terms {
    /// How long the daemon stays without any connection.
    pub idle: Duration,
    /// The version of this build.
    pub version: Version,
    /// What one connection may take up.
    pub limits: Limits,
}

/// Serves clients until none was there for long enough, a newer daemon takes over and the last client
/// is gone, or `told_to_end` is done. The claim comes back if the place is still this daemon's: it is
/// to be kept until the store is closed.
pub async fn serve_shared(
    daemon: &Arc<Daemon>,
    claim: Claim,
    listener: Listener,
    terms: Terms,
    told_to_end: impl Future<Output = ()>,
) -> Option<Claim> {
    let mut told_to_end = std::pin::pin!(told_to_end);
    let shared = Arc::new(Shared {
        served: Arc::new(Served(Arc::clone(daemon))),
        // What is in memory alone cannot be handed over.
        may_hand_over: daemon.store().outlives_process(),
        leaves: AtomicBool::new(false),
        last_connection: AtomicU64::new(0),
        unheard: Mutex::default(),
        terms,
    });
    let mut claim = Some(claim);
    let mut listener = Some(listener);
    let mut connections = JoinSet::new();
    let mut idle_until = Instant::now() + shared.terms.idle.max(FIRST_CLIENT);
    loop {
        tokio::select! {
            () = &mut told_to_end => break,
            accepted = accept(listener.as_ref()), if listener.is_some() => {
                if let Some(stream) = accepted {
                    let is_full = connections.len() >= CONNECTIONS_MAX;
                    connections.spawn(Arc::clone(&shared).connection(stream, is_full));
                }
            }
            Some(ended) = connections.join_next() => {
                idle_until = Instant::now() + shared.terms.idle;
                if let Ok(Some(newer)) = ended {
                    listener = None;
                    hand_over(&shared, &mut claim, daemon, newer, connections.is_empty()).await;
                }
            }
            () = sleep_until(idle_until), if connections.is_empty() => break,
        }
        if connections.is_empty() && shared.leaves.load(Ordering::SeqCst) {
            break;
        }
    }
    if let Some(claim) = &claim {
        claim.withdraw();
    }
    connections.shutdown().await;
    claim
}

/// The next connection, if it is one that may be served.
async fn accept(listener: Option<&Listener>) -> Option<Stream> {
    match listener?.accept().await {
        Ok(accepted) => accepted,
        Err(error) => {
            tracing::warn!(%error, "a connection could not be taken in");
            sleep(BREATH).await;
            None
        }
    }
}

/// A client of a newer build came: this daemon is not found any more, and lets go of what no other
/// connection uses. The client is answered when that is done, so that the daemon which it starts can
/// have it.
async fn hand_over(
    shared: &Shared,
    claim: &mut Option<Claim>,
    daemon: &Daemon,
    newer: Greeted,
    is_last: bool,
) {
    tracing::info!(newer = ?newer.version, "a newer build takes over");
    shared.leaves.store(true, Ordering::SeqCst);
    if let Some(claim) = claim {
        claim.withdraw();
    }
    let kept = join_all(daemon.leave().into_iter().map(Ticket::wait));
    if timeout(STORE_PATIENCE, kept).await.is_err() {
        tracing::warn!("sessions could not be let go in time");
    }
    if !is_last {
        // The others stay as long as they like; the newer daemon need not wait for them.
        drop(mem::take(claim));
    }
    if let Err(error) = newer.answer(&shared.terms.version, Answer::Moved, More::default()).await {
        tracing::debug!(%error, "the client of the newer build is gone");
    }
}

/// What the connections' tasks need.
#[derive(Debug)]
struct Shared {
    served: Arc<Served>,
    may_hand_over: bool,
    leaves: AtomicBool,
    last_connection: AtomicU64,
    /// Last words that their clients did not read, by connection.
    unheard: Mutex<VecDeque<(u64, String)>>,
    terms: Terms,
}

impl Shared {
    /// One connection from its first word to its last. Returns a client of a newer build, which asks
    /// for a hand-over and has not been answered.
    async fn connection(self: Arc<Self>, stream: Stream, is_full: bool) -> Option<Greeted> {
        match self.greeted(stream, is_full).await {
            Ok(newer) => newer,
            Err(error) => {
                tracing::debug!(%error, "a connection came to nothing");
                None
            }
        }
    }

    async fn greeted(&self, stream: Stream, is_full: bool) -> io::Result<Option<Greeted>> {
        let greeted = Greeted::read(stream).await?;
        let is_newer = greeted.version.as_ref() > Some(&self.terms.version);
        let mut more = More::default();
        let answer = if !greeted.is_known {
            Answer::Refused
        } else if let Some(connection) = greeted.ended {
            let mut unheard = self.unheard.lock();
            let place = unheard.iter().position(|(ended, _)| *ended == connection);
            more.words = place.and_then(|place| unheard.remove(place)).map(|(_, words)| words);
            Answer::Ended
        } else if self.leaves.load(Ordering::SeqCst) {
            Answer::Moved
        } else if is_newer && self.may_hand_over {
            return Ok(Some(greeted));
        } else if is_full {
            Answer::Full
        } else {
            more.connection = Some(self.last_connection.fetch_add(1, Ordering::Relaxed) + 1);
            Answer::Welcome
        };
        let connection = more.connection;
        let stream = greeted.answer(&self.terms.version, answer, more).await?;
        if let Some(connection) = connection {
            self.serve(connection, stream).await?;
        }
        Ok(None)
    }

    async fn serve(&self, connection: u64, stream: Stream) -> io::Result<()> {
        let Stream { input, mut output, .. } = stream;
        let served = Arc::clone(&self.served);
        let end = serve(served, input, StaysOpen(&mut output), self.terms.limits).await;
        let words = last_words(&end);
        let mut bytes = vec![END];
        bytes.extend(words.as_bytes());
        // A client that did not read what was answered does not read this either.
        let Ok(written) = timeout(LAST_WORDS, output.write_all(&bytes)).await else {
            let mut unheard = self.unheard.lock();
            unheard.push_back((connection, words));
            if unheard.len() > UNHEARD_MAX {
                unheard.pop_front();
            }
            return Ok(());
        };
        written?;
        output.shutdown().await
    }
}

/// Something is still to be said when a connection is done with it.
struct StaysOpen<'a, W>(&'a mut W);

impl<W: AsyncWrite + Unpin> AsyncWrite for StaysOpen<'_, W> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(context)
    }
}
