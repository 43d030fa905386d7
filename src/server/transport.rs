//! A connection from its first byte to its last: one task that reads, applies and writes.
//!
//! tower-lsp's `Server` loop is not used, for it has faults that nothing around it can mend: it
//! polls handlers four at a time in no order, so that events overtake each other and a call that
//! waits for a fifth message waits for ever; a cancel stands in the same queue; a malformed
//! message ends the process; `exit` does not while input is open; a closed output is a panic.
//!
//! Here a message is read, applied and answered in one task without a hop, and whatever one read
//! brought is answered by one write. A client that does not read is not read from once
//! `output_bytes` wait for it; slow calls go on meanwhile, and nothing is dropped.
//!
//! How a connection ends, and with which status:
//!
//! | what happens | status |
//! |---|---|
//! | `exit`, or the input ends between messages, after `shutdown` | 0 |
//! | the same without `shutdown` | 1 |
//! | the input ends inside a message | 1 |
//! | headers that cannot be read | 1 |
//! | a write to a closed output | 1 |
//! | the client's process (`processId`) is not there, or dies | 1 |
//!
//! Calls that are still pending then are dropped; where the input just ended, as in a pipe from a
//! command that says all it has, they are given half a second. What was answered before is written
//! out, for which a client that does not read is given half a second.

use std::future::{Future, poll_fn};
use std::os::fd::{AsFd, OwnedFd};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use std::{fmt, io, io::Write as _};

use futures_util::future::BoxFuture;
use rustix::fs::FileType;
use rustix::process::{Pid, test_kill_process};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, Interest};
use tokio::net::{UnixStream, unix::pipe};
use tokio::time::{Instant, Sleep};

use super::framing::{Decoder, Encoder, Frame, FramingError, Rest};
use super::order::{Application, Connection, Dispatcher, Flow, log_panics_without_payload};
use crate::configuration::LimitEntries;

/// How long a client is given to read what was answered before the end.
const LAST_WRITE: Duration = Duration::from_millis(500);
/// How often a connection is read from before others have their turn.
const READS_A_TURN: usize = 4;
/// How long requests may go on that are pending when the input ends.
const LAST_ANSWERS: Duration = Duration::from_millis(500);
/// How often a client's process is looked at where the system cannot tell of its death.
const PROCESS_POLL: Duration = Duration::from_secs(2);

/// What one connection may take up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The longest message.
    pub message_bytes: usize,
    /// How much output may wait for the client before it is not read from any more.
    pub output_bytes: usize,
    /// How many requests may be worked on at a time.
    pub pending_requests: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { message_bytes: 64 << 20, output_bytes: 1 << 20, pending_requests: 1024 }
    }
}

impl Limits {
    /// The limits that the user's file sets.
    pub fn of(file: &LimitEntries) -> Self {
        let mut limits = Self::default();
        if let Some(given) = &file.message_bytes {
            limits.message_bytes = usize::try_from(given.value).unwrap_or(usize::MAX);
        }
        limits
    }
}

/// How a connection ended.
#[derive(Debug)]
pub enum End {
    /// By `exit`.
    Exit {
        /// Whether `shutdown` came before it.
        after_shutdown: bool,
    },
    /// The input ended between two messages, which counts as `exit`.
    InputEnded {
        /// Whether `shutdown` came before it.
        after_shutdown: bool,
    },
    /// The input ended inside a message.
    InputCut,
    /// The input cannot be divided into messages any further.
    Unreadable(FramingError),
    /// Reading failed.
    InputFailed(io::Error),
    /// The client reads no more.
    OutputClosed(io::Error),
    /// The process that the client named in `initialize` is not there any more.
    ClientDied,
}

impl End {
    /// The exit status of a process that serves this connection only.
    pub fn status(&self) -> u8 {
        match self {
            Self::Exit { after_shutdown: true } | Self::InputEnded { after_shutdown: true } => 0,
            _ => 1,
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exit { after_shutdown: true } => formatter.write_str("the client ended it"),
            Self::Exit { after_shutdown: false } => {
                formatter.write_str("the client sent `exit` without `shutdown`")
            }
            Self::InputEnded { after_shutdown: true } => formatter.write_str("the input ended"),
            Self::InputEnded { after_shutdown: false } => {
                formatter.write_str("the input ended without `shutdown`")
            }
            Self::InputCut => formatter.write_str("the input ended inside a message"),
            Self::Unreadable(error) => write!(formatter, "the input cannot be followed: {error}"),
            Self::InputFailed(error) => write!(formatter, "the input cannot be read: {error}"),
            Self::OutputClosed(error) => write!(formatter, "the output cannot be written: {error}"),
            Self::ClientDied => formatter.write_str("the client's process is gone"),
        }
    }
}

/// Serves the client on stdin and stdout. Stdout carries frames and nothing else; a stream that
/// cannot be followed is explained on stderr.
///
/// The caller should leave by `std::process::exit` with the status of the end: where stdin is a
/// terminal or a file, a thread of the runtime may hang in a read for ever.
pub async fn serve_stdio(application: Arc<dyn Application>, limits: Limits) -> End {
    log_panics_without_payload();
    let end = match (open_stdin(), open_stdout()) {
        (Ok(input), Ok(output)) => serve(application, input, output, limits).await,
        (Err(error), _) => End::InputFailed(error),
        (_, Err(error)) => End::OutputClosed(error),
    };
    if end.status() != 0 {
        // Always, whatever is logged: it is the only way to learn why the daemon is gone.
        // Nothing is left to be done if stderr is gone too.
        drop(writeln!(io::stderr(), "reminderd: {end}"));
    }
    end
}

/// Serves one client until its connection ends.
pub async fn serve(
    application: Arc<dyn Application>,
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin,
    limits: Limits,
) -> End {
    static LAST_ID: AtomicU64 = AtomicU64::new(0);
    let id = LAST_ID.fetch_add(1, Ordering::Relaxed) + 1;
    let connection = Arc::new(Connection::new(id));
    let mut task = ConnectionTask {
        dispatcher: Dispatcher::new(application, connection, limits.pending_requests),
        decoder: Decoder::new(limits.message_bytes),
        encoder: Encoder::default(),
        input,
        output,
        limits,
        client_death: None,
        wake_up: Box::pin(tokio::time::sleep(Duration::ZERO)),
        is_flushed: true,
        ended: None,
    };
    let end = poll_fn(|context| task.poll(context)).await;
    tracing::debug!(connection = id, %end, "a connection ended");
    task.finish(end).await
}

struct ConnectionTask<R, W> {
    dispatcher: Dispatcher,
    decoder: Decoder,
    encoder: Encoder,
    input: R,
    output: W,
    limits: Limits,
    /// Done when the client's process is gone; none until `initialize` named one.
    client_death: Option<BoxFuture<'static, ()>>,
    /// For what the peer has to say later.
    wake_up: Pin<Box<Sleep>>,
    is_flushed: bool,
    /// How the input ended, and how long pending requests are waited for.
    ended: Option<(End, Pin<Box<Sleep>>)>,
}

/// How far the messages that are here were applied.
enum Applied {
    Everything,
    UntilFull,
    Ended(End),
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> ConnectionTask<R, W> {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<End> {
        self.dispatcher.connection().peer().register(context);
        for _ in 0..READS_A_TURN {
            let applied = self.apply();
            self.dispatcher.poll_running(context, &mut self.encoder);
            self.collect_from_peer(context);
            if let Err(error) = self.write(context) {
                return Poll::Ready(End::OutputClosed(error));
            }
            if let Some((_, until)) = &mut self.ended {
                let is_late = until.as_mut().poll(context).is_ready();
                if !self.dispatcher.is_pending() || is_late {
                    return self.ended.take().map_or(Poll::Pending, |(end, _)| Poll::Ready(end));
                }
                return self.poll_client_death(context);
            }
            match applied {
                Applied::Ended(end) => return Poll::Ready(end),
                _ if self.is_full() => return self.poll_client_death(context),
                Applied::UntilFull => continue,
                Applied::Everything => {}
            }
            match pin!(self.input.read_buf(self.decoder.room())).poll(context) {
                Poll::Pending => return self.poll_client_death(context),
                Poll::Ready(Ok(0)) => match self.input_ended(context) {
                    end @ End::InputEnded { .. } => {
                        let until = Box::pin(tokio::time::sleep(LAST_ANSWERS));
                        self.ended = Some((end, until));
                    }
                    end => return Poll::Ready(end),
                },
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Poll::Ready(Err(error)) => return Poll::Ready(End::InputFailed(error)),
            }
        }
        // A flood here must not keep others waiting.
        context.waker().wake_by_ref();
        Poll::Pending
    }

    fn is_full(&self) -> bool {
        self.encoder.pending().len() >= self.limits.output_bytes
    }

    /// Applies the messages that are here, as long as there is room for their answers.
    fn apply(&mut self) -> Applied {
        while !self.is_full() {
            match self.decoder.next_frame() {
                None => return Applied::Everything,
                Some(Frame::Begins(framing)) => self.encoder.set_framing(framing),
                Some(Frame::Message(message)) => {
                    if self.dispatcher.receive(message, &mut self.encoder) == Flow::Exits {
                        let after_shutdown = self.dispatcher.was_shut_down();
                        return Applied::Ended(End::Exit { after_shutdown });
                    }
                }
                Some(Frame::TooLarge) => {
                    Dispatcher::too_large(self.limits.message_bytes, &mut self.encoder);
                }
                Some(Frame::Unreadable(error)) => return Applied::Ended(End::Unreadable(error)),
            }
        }
        Applied::UntilFull
    }

    fn collect_from_peer(&mut self, context: &mut Context<'_>) {
        let connection = self.dispatcher.connection();
        let peer = connection.peer();
        loop {
            while self.encoder.pending().len() < self.limits.output_bytes
                && let Some(message) = peer.take_message()
            {
                self.encoder.push(&[&message]);
            }
            let Some(deadline) = peer.next_deadline() else { return };
            self.wake_up.as_mut().reset(Instant::from_std(deadline));
            if self.wake_up.as_mut().poll(context).is_pending() || self.is_full() {
                return;
            }
            peer.stir();
        }
    }

    fn write(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        while !self.encoder.pending().is_empty() {
            match Pin::new(&mut self.output).poll_write(context, self.encoder.pending()) {
                Poll::Pending => return Ok(()),
                Poll::Ready(Ok(0)) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(Ok(bytes)) => {
                    self.encoder.advance(bytes);
                    self.is_flushed = false;
                }
                Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Poll::Ready(Err(error)) => return Err(error),
            }
        }
        if !self.is_flushed
            && let Poll::Ready(result) = Pin::new(&mut self.output).poll_flush(context)
        {
            result?;
            self.is_flushed = true;
        }
        Ok(())
    }

    fn input_ended(&mut self, context: &mut Context<'_>) -> End {
        match self.decoder.rest() {
            Rest::Nothing => {}
            Rest::Line(line) if serde_json::from_slice::<serde::de::IgnoredAny>(line).is_ok() => {
                let flow = self.dispatcher.receive(line, &mut self.encoder);
                self.dispatcher.poll_running(context, &mut self.encoder);
                if flow == Flow::Exits {
                    return End::Exit { after_shutdown: self.dispatcher.was_shut_down() };
                }
            }
            Rest::Line(_) | Rest::Part => return End::InputCut,
        }
        End::InputEnded { after_shutdown: self.dispatcher.was_shut_down() }
    }

    /// Looked at whenever there is nothing else to do.
    fn poll_client_death(&mut self, context: &mut Context<'_>) -> Poll<End> {
        if self.client_death.is_none()
            && let Some(client) = self.dispatcher.connection().client()
            && let Some(pid) = client.process_id
        {
            self.client_death = Some(Box::pin(process_death(pid)));
        }
        match &mut self.client_death {
            Some(death) => death.as_mut().poll(context).map(|()| End::ClientDied),
            None => Poll::Pending,
        }
    }

    /// Drops what is pending, and writes out what was answered.
    async fn finish(self, end: End) -> End {
        let Self { dispatcher, encoder, mut output, .. } = self;
        drop(dispatcher);
        if matches!(end, End::OutputClosed(_)) {
            return end;
        }
        let last_write = async {
            output.write_all(encoder.pending()).await?;
            output.flush().await?;
            output.shutdown().await
        };
        match tokio::time::timeout(LAST_WRITE, last_write).await {
            Ok(Err(error)) if end.status() == 0 => End::OutputClosed(error),
            _ => end,
        }
    }
}

/// Waits until a process is gone. Ids that no process can have are waited for for ever.
async fn process_death(id: u32) {
    let Some(pid) = i32::try_from(id).ok().and_then(Pid::from_raw) else {
        return std::future::pending().await;
    };
    match open_process(pid) {
        Ok(process) => {
            if process.readable().await.is_ok() {
                return;
            }
        }
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error()) => {
            return;
        }
        // Old kernels and closed sandboxes: asking now and then will do.
        Err(_) => {}
    }
    while test_kill_process(pid) != Err(rustix::io::Errno::SRCH) {
        tokio::time::sleep(PROCESS_POLL).await;
    }
}

#[cfg(target_os = "linux")]
#[expect(
    deprecated,
    reason = "unsound for types that can lose or swap their descriptor; `OwnedFd` keeps the one it \
              has, and the replacement is an unsafe function"
)]
fn open_process(pid: Pid) -> io::Result<AsyncFd<OwnedFd>> {
    use rustix::process::{PidfdFlags, pidfd_open};
    let process = pidfd_open(pid, PidfdFlags::empty())?;
    AsyncFd::with_interest(process, Interest::READABLE)
}

#[cfg(not(target_os = "linux"))]
fn open_process(_: Pid) -> io::Result<AsyncFd<OwnedFd>> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Opens stdin without a helper thread where its kind allows that.
pub fn open_stdin() -> io::Result<Box<dyn AsyncRead + Send + Unpin>> {
    let input = io::stdin().as_fd().try_clone_to_owned()?;
    Ok(match file_type(&input)? {
        FileType::Fifo => Box::new(pipe::Receiver::from_owned_fd(input)?),
        FileType::Socket => Box::new(open_socket(input)?),
        _ => Box::new(tokio::io::stdin()),
    })
}

/// Opens stdout without a helper thread where its kind allows that.
pub fn open_stdout() -> io::Result<Box<dyn AsyncWrite + Send + Unpin>> {
    let output = io::stdout().as_fd().try_clone_to_owned()?;
    Ok(match file_type(&output)? {
        FileType::Fifo => Box::new(pipe::Sender::from_owned_fd(output)?),
        FileType::Socket => Box::new(open_socket(output)?),
        _ => Box::new(tokio::io::stdout()),
    })
}

fn file_type(descriptor: &OwnedFd) -> io::Result<FileType> {
    Ok(FileType::from_raw_mode(rustix::fs::fstat(descriptor)?.st_mode))
}

fn open_socket(socket: OwnedFd) -> io::Result<UnixStream> {
    let socket = std::os::unix::net::UnixStream::from(socket);
    socket.set_nonblocking(true)?;
    UnixStream::from_std(socket)
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;
    use reminderd_protocol::error::ErrorObject;
    use reminderd_protocol::methods::Method;
    use serde_json::value::RawValue;
    use serde_json::{Value, json};
    use tokio::io::{AsyncBufReadExt, BufReader, DuplexStream, ReadHalf, WriteHalf, split};
    use tokio::sync::oneshot;

    use super::super::framing::Framing;
    use super::super::lsp::InitializeRequest;
    use super::super::order::Outcome;
    use super::*;

    /// Its waits are answered by the next published diagnostics, or by a word from the test.
    #[derive(Default)]
    struct Waiting {
        waits: Mutex<Vec<oneshot::Sender<()>>>,
        closed: AtomicU64,
        connection: Mutex<Option<Arc<Connection>>>,
    }

    impl Waiting {
        fn settle(&self) {
            for wait in self.waits.lock().drain(..) {
                let _: Result<(), ()> = wait.send(());
            }
        }
    }

    impl Application for Waiting {
        fn initialize(
            &self,
            connection: &Arc<Connection>,
            _: InitializeRequest,
        ) -> Result<Value, ErrorObject> {
            *self.connection.lock() = Some(Arc::clone(connection));
            Ok(json!({"capabilities": {}}))
        }

        fn call(&self, _: &Arc<Connection>, method: &'static Method, params: &str) -> Outcome {
            let answer = RawValue::from_string(params.to_owned()).unwrap();
            if method.name != "reminder/wait" {
                self.settle();
                return Outcome::Now(Ok(answer));
            }
            let (sender, receiver) = oneshot::channel();
            self.waits.lock().push(sender);
            Outcome::Later(Box::pin(async move {
                drop(receiver.await);
                Ok(answer)
            }))
        }

        fn closed(&self, _: &Arc<Connection>) {
            self.closed.fetch_add(1, Ordering::Relaxed);
        }
    }

    struct Client {
        application: Arc<Waiting>,
        input: WriteHalf<DuplexStream>,
        output: tokio::io::Lines<BufReader<ReadHalf<DuplexStream>>>,
        end: tokio::task::JoinHandle<End>,
    }

    impl Client {
        async fn start(limits: Limits) -> Self {
            let application = Arc::new(Waiting::default());
            let (ours, theirs) = tokio::io::duplex(4096);
            let (output, input) = split(ours);
            let (server_input, server_output) = split(theirs);
            let served = serve(Arc::clone(&application) as _, server_input, server_output, limits);
            let end = tokio::spawn(served);
            let output = BufReader::new(output).lines();
            let mut client = Self { application, input, output, end };
            client.request(0, "initialize", "{}").await;
            client.next().await;
            client
        }

        async fn send(&mut self, message: &str) {
            let mut encoder = Encoder::new(Framing::Lines);
            encoder.push(&[message]);
            self.input.write_all(encoder.pending()).await.unwrap();
        }

        async fn request(&mut self, id: u32, method: &str, params: &str) {
            self.send(&format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#
            ))
            .await;
        }

        async fn next(&mut self) -> Value {
            let line = self.output.next_line().await.unwrap().unwrap();
            serde_json::from_str(&line).unwrap()
        }
    }

    #[tokio::test]
    async fn pending_calls_do_not_hold_up_what_settles_them() {
        let mut client = Client::start(Limits::default()).await;
        for id in 1..=8 {
            client.request(id, "reminder/wait", "{}").await;
        }
        client.send(r#"{"jsonrpc":"2.0","method":"diagnostic/publish"}"#).await;
        for id in 1..=8 {
            assert_eq!(client.next().await["id"], id);
        }
    }

    #[tokio::test]
    async fn an_answer_from_elsewhere_wakes_the_connection() {
        let mut client = Client::start(Limits::default()).await;
        client.request(1, "reminder/wait", "{}").await;
        client.request(2, "session/list", r#"{"x":1}"#).await;
        assert_eq!(client.next().await["result"], json!({"x": 1}));
        assert_eq!(client.next().await["id"], 1);
        client.request(3, "reminder/wait", "{}").await;
        while client.application.waits.lock().is_empty() {
            tokio::task::yield_now().await;
        }
        client.application.settle();
        assert_eq!(client.next().await["id"], 3);
    }

    #[tokio::test]
    async fn the_daemon_speaks_of_its_own_accord_and_is_answered() {
        let mut client = Client::start(Limits::default()).await;
        let connection = client.application.connection.lock().clone().unwrap();
        connection.peer().notify("reminderd/note", &json!({"a": 1})).unwrap();
        let asked = connection.peer().request("reminder/compute", &json!({}));
        assert_eq!(client.next().await["params"], json!({"a": 1}));
        let id = client.next().await["id"].clone();
        client
            .send(&json!({"jsonrpc": "2.0", "id": id, "result": {"body": "b"}}).to_string())
            .await;
        assert_eq!(asked.await, Ok(json!({"body": "b"})));
    }

    #[tokio::test]
    async fn slow_calls_go_on_while_the_client_does_not_read() {
        let limits = Limits { output_bytes: 8192, ..Limits::default() };
        let mut client = Client::start(limits).await;
        client.request(1, "reminder/wait", "{}").await;
        let params = format!(r#"{{"x":"{}"}}"#, "y".repeat(20_000));
        // Settles the wait, and fills the output beyond what may wait.
        client.request(2, "session/list", &params).await;
        client.request(3, "reminder/wait", "{}").await;
        client.request(4, "session/list", "{}").await;
        for id in [2, 1, 4, 3] {
            assert_eq!(client.next().await["id"], id);
        }
    }

    #[tokio::test]
    async fn the_end_of_input_drops_what_is_pending() {
        let mut client = Client::start(Limits::default()).await;
        client.request(1, "reminder/wait", "{}").await;
        client.request(2, "shutdown", "{}").await;
        assert_eq!(client.next().await["id"], 2);
        client.input.shutdown().await.unwrap();
        assert_eq!(client.end.await.unwrap().status(), 0);
        assert_eq!(client.application.closed.load(Ordering::Relaxed), 1);
        assert!(client.application.waits.lock()[0].is_closed());
        assert_eq!(client.output.next_line().await.unwrap(), None);
    }

    #[tokio::test]
    async fn an_abandoned_connection_is_closed_too() {
        let client = Client::start(Limits::default()).await;
        client.end.abort();
        drop(client.end.await);
        assert_eq!(client.application.closed.load(Ordering::Relaxed), 1);
    }
}
