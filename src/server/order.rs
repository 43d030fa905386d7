//! One message after the other: what each of them is, and what comes of it.
//!
//! A message takes effect before the next one is looked at. Only what is slow goes on as a future,
//! beside the messages behind it. An envelope is read with borrowed parts, so that params pass
//! from the wire to their type, and results from their type to the wire, without a tree between.
//!
//! What the protocol's page leaves open, this module decides as follows.
//! - A message without `method` but with `result` or `error` is an answer. Answers are never
//!   answered, whatever is wrong with them: two sides that answer each other's errors never stop.
//! - A request whose id is that of one still pending is refused and not applied, and the first one
//!   goes on: a client that gets two results under one id takes one for the other.
//! - An event that is slow and was sent as a notification counts against a bound of its own, so
//!   that pending requests cannot keep out the events that would settle them.
//! - `$/cancelRequest` works after `shutdown` too.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::{Arc, Once, OnceLock};
use std::task::{Context, Poll, Waker};

use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, Stream};
use parking_lot::Mutex;
use reminderd_protocol::error::{ErrorKind, ErrorObject};
use reminderd_protocol::methods::{Method, MethodKind, find};
use serde::{Deserialize, Deserializer};
use serde_json::error::Category;
use serde_json::value::RawValue;

use super::framing::Encoder;
use super::lsp::{InitializeRequest, Life, Stage, not_initialized, null};
use super::peer::Peer;

/// What a call comes to: JSON text that is ready to be sent, or an error.
pub type Answer = Result<Box<RawValue>, ErrorObject>;

/// What the daemon behind a connection does. Called in arrival order, from the connection's own
/// task; a panic inside is answered as an internal error and disturbs nothing else.
pub trait Application: Send + Sync + 'static {
    /// Answers `initialize`. After an error the client may initialize again.
    fn initialize(
        &self,
        connection: &Arc<Connection>,
        request: InitializeRequest,
    ) -> Result<serde_json::Value, ErrorObject>;

    /// Applies one method of the table at once; only what is slow is left to a future. `params` is
    /// the text of a JSON object, `{}` when the client sent none.
    fn call(&self, connection: &Arc<Connection>, method: &'static Method, params: &str) -> Outcome;

    /// The connection is gone, and with it all its futures. Called exactly once.
    fn closed(&self, connection: &Arc<Connection>);
}

/// What became of a call.
pub enum Outcome {
    /// It is done.
    Now(Answer),
    /// It took effect, and its answer is being worked on. Dropping the future, as a cancel does,
    /// has to undo what must not outlive the request.
    Later(BoxFuture<'static, Answer>),
    /// It took effect, whole. A request is answered when the future is done; a notification leaves
    /// nothing to wait for.
    Applied(BoxFuture<'static, Answer>),
    /// Something slow comes before its effect, as where a session has to be read from the store. The
    /// messages behind it on its connection wait until the future says what became of it; those of
    /// other connections do not.
    First(BoxFuture<'static, Outcome>),
}

impl fmt::Debug for Outcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Now(answer) => formatter.debug_tuple("Now").field(answer).finish(),
            Self::Later(_) => formatter.write_str("Later"),
            Self::Applied(_) => formatter.write_str("Applied"),
            Self::First(_) => formatter.write_str("First"),
        }
    }
}

/// One client's connection.
#[derive(Debug)]
pub struct Connection {
    id: u64,
    peer: Peer,
    request: OnceLock<InitializeRequest>,
}

impl Connection {
    pub(super) fn new(id: u64) -> Self {
        Self { id, peer: Peer::new(), request: OnceLock::new() }
    }

    /// A client of a recording, which speaks over the connection of whoever plays it.
    pub(super) fn played(id: u64, peer: Peer, request: InitializeRequest) -> Self {
        Self { id, peer, request: request.into() }
    }

    /// A number that no other connection of this process has.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The client's end.
    pub fn peer(&self) -> &Peer {
        &self.peer
    }

    /// What the client said in the `initialize` that was accepted.
    pub fn client(&self) -> Option<&InitializeRequest> {
        self.request.get()
    }

    pub(super) fn initialized(&self, request: InitializeRequest) {
        if request.options.get("problems") == Some(&serde_json::Value::Bool(false)) {
            self.peer.silence_problems();
        }
        // Only one `initialize` of a connection is ever accepted.
        let _: Result<(), InitializeRequest> = self.request.set(request);
    }
}

/// Whether a connection goes on after a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    GoesOn,
    Exits,
}

/// Applies the messages of one connection in order and writes their answers.
#[derive(Debug)]
pub(super) struct Dispatcher {
    application: Arc<dyn Application>,
    connection: Arc<Connection>,
    life: Life,
    find: fn(&str) -> Option<&'static Method>,
    /// Requests that have not been answered, by the canonical text of their ids.
    pending: HashMap<Arc<str>, PendingRequest>,
    running: FuturesUnordered<Running>,
    /// The request that has yet to take effect.
    first: Option<First>,
    pending_max: usize,
}

impl Dispatcher {
    pub(super) fn new(
        application: Arc<dyn Application>,
        connection: Arc<Connection>,
        pending_max: usize,
    ) -> Self {
        Self {
            life: Life::new(Arc::clone(&application), Arc::clone(&connection)),
            application,
            connection,
            find,
            pending: HashMap::new(),
            running: FuturesUnordered::new(),
            first: None,
            pending_max,
        }
    }

    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Whether a request is still being answered.
    pub(super) fn is_pending(&self) -> bool {
        !self.pending.is_empty() || self.first.is_some()
    }

    /// Whether the next message has to wait until the last one has taken effect.
    pub(super) fn holds_back(&self) -> bool {
        self.first.is_some()
    }

    /// Whether `shutdown` was answered, as it is before an orderly end.
    pub(super) fn was_shut_down(&self) -> bool {
        self.life.was_shut_down()
    }

    /// Applies one message.
    pub(super) fn receive(&mut self, message: &[u8], out: &mut Encoder) -> Flow {
        let envelope = match Envelope::read(message) {
            Ok(envelope) => envelope,
            Err(error) => {
                write_error(out, "null", &error);
                return Flow::GoesOn;
            }
        };
        let Some(method) = envelope.method.as_deref() else {
            self.answered(&envelope, out);
            return Flow::GoesOn;
        };
        match envelope.id.map(|id| Id::read(id.get())) {
            Some(Some(id)) => self.request(id, method, envelope.params, out),
            Some(None) => {
                let message = "an id has to be a string or an integer";
                write_error(out, "null", &ErrorObject::new(ErrorKind::InvalidRequest, message));
                Flow::GoesOn
            }
            None => self.notification(method, envelope.params, out),
        }
    }

    /// Refuses a message that passed the size limit.
    pub(super) fn too_large(message_bytes_max: usize, out: &mut Encoder) {
        let message = format!(
            "a message is longer than {message_bytes_max} bytes and was skipped: send less at once, \
             or raise `messageBytes` in [limits]"
        );
        let error = ErrorObject::new(ErrorKind::LimitExceeded, message)
            .with("limit", "messageBytes")
            .with("messageBytes", message_bytes_max);
        write_error(out, "null", &error);
    }

    /// Lets the slow calls go on, and writes the answers of those that are done.
    pub(super) fn poll_running(&mut self, context: &mut Context<'_>, out: &mut Encoder) {
        self.poll_first(context, out);
        while let Poll::Ready(Some(finished)) = Pin::new(&mut self.running).poll_next(context) {
            let Some(answer) = finished.answer else { continue };
            match finished.key {
                Some(key) => {
                    if let Some(request) = self.pending.remove(&key) {
                        write_answer(out, &request.id_text, &answer);
                    }
                }
                None => self.report(finished.method, &answer),
            }
        }
    }

    /// Lets the request go on that has yet to take effect.
    fn poll_first(&mut self, context: &mut Context<'_>, out: &mut Encoder) {
        while let Some(First { id_text, method, mut future }) = self.first.take() {
            let polled =
                std::panic::catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context)));
            match polled {
                Ok(Poll::Pending) => {
                    self.first = Some(First { id_text, method, future });
                    return;
                }
                Ok(Poll::Ready(outcome)) => {
                    self.take_on(Id { text: &id_text }, method, outcome, out);
                }
                Err(_) => write_answer(out, &id_text, &Err(panicked(method))),
            }
        }
    }

    /// Answers a request, or notes that it is being worked on.
    fn take_on(&mut self, id: Id<'_>, method: &'static str, outcome: Outcome, out: &mut Encoder) {
        match outcome {
            Outcome::Now(answer) => write_answer(out, id.text, &answer),
            Outcome::Later(future) | Outcome::Applied(future) => self.start(&id, method, future),
            Outcome::First(future) => {
                self.first = Some(First { id_text: id.text.into(), method, future });
                // Most need not wait at all. Where one does, it is polled again for its waker.
                self.poll_first(&mut Context::from_waker(Waker::noop()), out);
            }
        }
    }

    fn request(
        &mut self,
        id: Id<'_>,
        method: &str,
        params: Option<&RawValue>,
        out: &mut Encoder,
    ) -> Flow {
        let answer = match (method, self.life.stage()) {
            ("exit", _) => {
                write_answer(out, id.text, &Ok(null()));
                return self.exit();
            }
            ("initialize", _) => match object_text(params) {
                Ok(params) => self.life.initialize(params),
                Err(error) => Err(error),
            },
            ("shutdown", _) => self.life.shutdown(),
            (_, Stage::Uninitialized) => Err(not_initialized()),
            (_, Stage::ShutDown | Stage::Exited) => Err(ErrorObject::new(
                ErrorKind::InvalidRequest,
                format!("`{method}` came after `shutdown`: only `exit` may follow it"),
            )),
            ("initialized", Stage::Initialized) => {
                self.life.initialized();
                Ok(null())
            }
            (_, Stage::Initialized) => match self.row_for(&id, method) {
                Err(error) => Err(error),
                Ok(row) => {
                    let outcome = self.call(row, params);
                    self.take_on(id, row.name, outcome, out);
                    return Flow::GoesOn;
                }
            },
        };
        write_answer(out, id.text, &answer);
        Flow::GoesOn
    }

    /// The row of a request's method, unless the request cannot be taken on.
    fn row_for(&self, id: &Id<'_>, method: &str) -> Result<&'static Method, ErrorObject> {
        let row = self.find(method).ok_or_else(|| {
            let message = format!("there is no method `{method}` (SPEC.md lists them)");
            ErrorObject::new(ErrorKind::MethodNotFound, message).with("method", method)
        })?;
        if !self.pending.is_empty() && self.pending.contains_key(&*id.key()) {
            let message = format!(
                "a request with the id {} is still pending: `{method}` was not applied, send it \
                 again under an id of its own",
                id.text
            );
            return Err(ErrorObject::new(ErrorKind::InvalidRequest, message));
        }
        if self.pending.len() >= self.pending_max {
            return Err(overloaded(method, self.pending_max));
        }
        Ok(row)
    }

    fn notification(&mut self, method: &str, params: Option<&RawValue>, out: &mut Encoder) -> Flow {
        match (method, self.life.stage()) {
            ("exit", _) => return self.exit(),
            ("$/cancelRequest", _) => self.cancel(params, out),
            ("initialized", Stage::Initialized) => self.life.initialized(),
            (_, Stage::Initialized) => self.event(method, params),
            // Too early or too late: nobody waits for an answer.
            _ => {}
        }
        Flow::GoesOn
    }

    fn event(&mut self, method: &str, params: Option<&RawValue>) {
        let Some(row) = self.find(method) else { return };
        if row.kind != MethodKind::Event {
            // A request without an id asks for nothing.
            return;
        }
        match self.call(row, params) {
            Outcome::Now(answer) => self.report(row.name, &answer),
            Outcome::Applied(_) => {}
            // Events take effect at once.
            Outcome::First(_) => self.report(row.name, &Err(panicked(row.name))),
            Outcome::Later(future) => {
                if self.running.len().saturating_sub(self.pending.len()) >= self.pending_max {
                    self.report(row.name, &Err(overloaded(method, self.pending_max)));
                    return;
                }
                let slot = Slot::holding(future);
                self.running.push(Running { key: None, method: row.name, slot });
            }
        }
    }

    fn find(&self, method: &str) -> Option<&'static Method> {
        (self.find)(method).filter(|row| match row.kind {
            MethodKind::Request | MethodKind::Event => true,
            MethodKind::Notification
            | MethodKind::ServerRequest
            | MethodKind::ServerNotification => false,
        })
    }

    fn call(&self, row: &'static Method, params: Option<&RawValue>) -> Outcome {
        let params = match object_text(params) {
            Ok(params) => params,
            Err(error) => return Outcome::Now(Err(error)),
        };
        std::panic::catch_unwind(AssertUnwindSafe(|| {
            self.application.call(&self.connection, row, params)
        }))
        .unwrap_or_else(|_| Outcome::Now(Err(panicked(row.name))))
    }

    fn start(&mut self, id: &Id<'_>, method: &'static str, future: BoxFuture<'static, Answer>) {
        let key: Arc<str> = id.key().into();
        let slot = Slot::holding(future);
        let request = PendingRequest { id_text: id.text.into(), slot: Arc::clone(&slot) };
        self.pending.insert(Arc::clone(&key), request);
        self.running.push(Running { key: Some(key), method, slot });
    }

    /// Drops the future of a request here and now, before the next message is looked at.
    fn cancel(&mut self, params: Option<&RawValue>, out: &mut Encoder) {
        #[derive(Deserialize)]
        struct Cancel<'a> {
            #[serde(borrow)]
            id: &'a RawValue,
        }
        let Ok(params) = object_text(params) else { return };
        let Ok(Cancel { id }) = serde_json::from_str(params) else { return };
        let Some(id) = Id::read(id.get()) else { return };
        let Some(request) = self.pending.remove(&*id.key()) else { return };
        request.slot.lock().empty();
        let error =
            ErrorObject::new(ErrorKind::RequestCancelled, "the client cancelled the request");
        // As the request spelled its id, which the cancel need not have done.
        write_error(out, &request.id_text, &error);
    }

    fn exit(&mut self) -> Flow {
        self.life.exit();
        Flow::Exits
    }

    /// An answer of the client to a request of ours.
    fn answered(&self, envelope: &Envelope<'_>, out: &mut Encoder) {
        let answer = match (envelope.result, envelope.error) {
            (_, Some(error)) if error.get() != "null" => Err(error),
            (Some(result), _) => Ok(result),
            _ => {
                let message = "a message has neither a method nor a result nor an error";
                write_error(out, "null", &ErrorObject::new(ErrorKind::InvalidRequest, message));
                return;
            }
        };
        if let Some(id) = envelope.id {
            self.connection.peer.answered(id, answer);
        }
    }

    fn report(&self, method: &str, answer: &Answer) {
        if let Err(error) = answer {
            self.connection.peer.problem(method, error);
        }
    }
}

impl Drop for Dispatcher {
    fn drop(&mut self) {
        // Futures first: what they undo belongs to a connection that is still known.
        for running in &self.running {
            running.slot.lock().empty();
        }
        self.first = None;
        self.connection.peer.close();
        let closed = std::panic::catch_unwind(AssertUnwindSafe(|| {
            self.application.closed(&self.connection);
        }));
        if closed.is_err() {
            tracing::error!(connection = self.connection.id, "closing a connection panicked");
        }
    }
}

fn overloaded(method: &str, pending_max: usize) -> ErrorObject {
    let message = format!(
        "{pending_max} calls of this connection are being worked on: wait for some, then send \
         `{method}` again"
    );
    ErrorObject::new(ErrorKind::Overloaded, message)
}

/// The answer to a call that panicked. What the panic said is not repeated: it may quote a body.
pub(super) fn panicked(method: &str) -> ErrorObject {
    tracing::error!(method, "a handler panicked");
    ErrorObject::new(
        ErrorKind::Internal,
        format!("`{method}` failed because of a fault of the daemon; its log says where"),
    )
}

/// Makes panics log their place and nothing else, since a panic's message may quote a body. For
/// the whole process, once.
pub fn log_panics_without_payload() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        std::panic::set_hook(Box::new(|panic| {
            let place = panic.location().map(ToString::to_string).unwrap_or_default();
            tracing::error!(place, "a fault of the daemon");
        }));
    });
}

fn write_answer(out: &mut Encoder, id: &str, answer: &Answer) {
    match answer {
        Ok(result) => {
            out.push(&["{\"jsonrpc\":\"2.0\",\"id\":", id, ",\"result\":", result.get(), "}"]);
        }
        Err(error) => write_error(out, id, error),
    }
}

fn write_error(out: &mut Encoder, id: &str, error: &ErrorObject) {
    // An error holds strings, numbers and JSON values only, so this cannot fail.
    let error = serde_json::to_string(error).unwrap_or_else(|_| "null".to_owned());
    out.push(&["{\"jsonrpc\":\"2.0\",\"id\":", id, ",\"error\":", &error, "}"]);
}

/// The parts of a message. `Some` means that the member is there, be it `null`.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<Name<'a>>,
    #[serde(borrow, default, deserialize_with = "present")]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    error: Option<&'a RawValue>,
}

/// A string that is borrowed where no escape stands in the way.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] std::borrow::Cow<'a, str>);

impl std::ops::Deref for Name<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    Deserialize::deserialize(deserializer).map(Some)
}

impl<'a> Envelope<'a> {
    fn read(message: &'a [u8]) -> Result<Self, ErrorObject> {
        let not_json = |why: &dyn fmt::Display| {
            ErrorObject::new(ErrorKind::Parse, format!("a message is not JSON: {why}"))
        };
        let invalid = |why: &str| Err(ErrorObject::new(ErrorKind::InvalidRequest, why));
        let text = std::str::from_utf8(message).map_err(|error| not_json(&error))?;
        if text.trim_ascii_start().starts_with('[') {
            serde_json::from_str::<serde::de::IgnoredAny>(text)
                .map_err(|error| not_json(&error))?;
            return invalid("batches are not supported: send one message at a time");
        }
        let envelope: Self = match serde_json::from_str(text) {
            Ok(envelope) => envelope,
            // A member of the wrong type is seen before the text is read to its end.
            Err(error) if error.classify() == Category::Data => {
                serde_json::from_str::<serde::de::IgnoredAny>(text)
                    .map_err(|error| not_json(&error))?;
                return invalid("a message is not a request, a notification or an answer");
            }
            Err(error) => return Err(not_json(&error)),
        };
        if envelope.jsonrpc.map(RawValue::get) != Some("\"2.0\"") {
            return invalid("a message has no `\"jsonrpc\": \"2.0\"`");
        }
        Ok(envelope)
    }
}

/// The params of a call as the text of a JSON object.
fn object_text(params: Option<&RawValue>) -> Result<&str, ErrorObject> {
    let Some(text) = params.map(RawValue::get) else { return Ok("{}") };
    let is_empty_array = || {
        let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
        inner.is_some_and(|inner| inner.trim_ascii().is_empty())
    };
    match text.as_bytes().first() {
        Some(b'{') => Ok(text),
        Some(b'n') => Ok("{}"),
        Some(b'[') if is_empty_array() => Ok("{}"),
        _ => Err(ErrorObject::new(
            ErrorKind::InvalidParams,
            "params have to be an object: give them by name, not by position",
        )),
    }
}

/// A request's id, in the text it was sent in. `"7"` and `7` are two ids.
#[derive(Clone, Copy)]
struct Id<'a> {
    text: &'a str,
}

impl<'a> Id<'a> {
    /// The id, if it is a string or an integer of any size.
    fn read(text: &'a str) -> Option<Self> {
        let is_integer = || {
            let digits = text.strip_prefix('-').unwrap_or(text);
            digits.bytes().all(|byte| byte.is_ascii_digit())
        };
        (text.starts_with('"') || is_integer()).then_some(Self { text })
    }

    /// The same text for every spelling of the same id.
    fn key(&self) -> std::borrow::Cow<'a, str> {
        if self.text.contains('\\')
            && let Ok(plain) = serde_json::from_str::<String>(self.text)
            && let Ok(text) = serde_json::to_string(&plain)
        {
            return text.into();
        }
        self.text.into()
    }
}

/// The future of a slow call, in a place from which a cancel can take it at once.
struct Slot {
    future: Option<BoxFuture<'static, Answer>>,
    waker: Option<Waker>,
}

impl Slot {
    fn holding(future: BoxFuture<'static, Answer>) -> Arc<Mutex<Self>> {
        Arc::new(Mutex::new(Self { future: Some(future), waker: None }))
    }

    /// Drops the future, and lets the one who polls it know.
    fn empty(&mut self) {
        let future = self.future.take();
        if std::panic::catch_unwind(AssertUnwindSafe(|| drop(future))).is_err() {
            tracing::error!("dropping a call panicked");
        }
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

impl fmt::Debug for Slot {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Slot")
            .field("is_empty", &self.future.is_none())
            .finish_non_exhaustive()
    }
}

/// A request that has yet to take effect.
struct First {
    /// Its id as it was sent.
    id_text: Box<str>,
    method: &'static str,
    future: BoxFuture<'static, Outcome>,
}

impl fmt::Debug for First {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("First").field("method", &self.method).finish_non_exhaustive()
    }
}

/// A request that has not been answered.
#[derive(Debug)]
struct PendingRequest {
    /// Its id as it was sent.
    id_text: Box<str>,
    slot: Arc<Mutex<Slot>>,
}

/// A slow call that is being worked on.
#[derive(Debug)]
struct Running {
    /// Where its request is pending; None for an event that was sent as a notification.
    key: Option<Arc<str>>,
    method: &'static str,
    slot: Arc<Mutex<Slot>>,
}

struct Finished {
    key: Option<Arc<str>>,
    method: &'static str,
    /// None when the call was cancelled, and answered then.
    answer: Option<Answer>,
}

impl Future for Running {
    type Output = Finished;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Finished> {
        let method = self.method;
        let mut slot = self.slot.lock();
        let answer = match slot.future.as_mut() {
            None => None,
            Some(future) => {
                let polled =
                    std::panic::catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context)));
                match polled {
                    Ok(Poll::Pending) => {
                        slot.waker = Some(context.waker().clone());
                        return Poll::Pending;
                    }
                    Ok(Poll::Ready(answer)) => Some(answer),
                    Err(_) => Some(Err(panicked(method))),
                }
            }
        };
        slot.waker = None;
        slot.empty();
        drop(slot);
        Poll::Ready(Finished { key: self.key.take(), method, answer })
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use futures_util::task::noop_waker;
    use reminderd_protocol::methods::WireType;
    use serde_json::{Value, json};
    use tokio::sync::oneshot;

    use super::super::framing::{Decoder, Frame, Framing};
    use super::*;

    const fn row(name: &'static str, kind: MethodKind) -> Method {
        let params = WireType::of::<Value>("Value");
        Method { name, kind, since: 1, params, result: None }
    }

    static TABLE: &[Method] = &[
        row("now", MethodKind::Request),
        row("later", MethodKind::Request),
        row("panic", MethodKind::Request),
        row("panic/later", MethodKind::Request),
        row("event", MethodKind::Event),
        row("event/panic", MethodKind::Event),
        row("event/later", MethodKind::Event),
        row("ask", MethodKind::ServerRequest),
    ];

    fn find_in_table(name: &str) -> Option<&'static Method> {
        TABLE.iter().find(|method| method.name == name)
    }

    /// Writes down what it is told, answers with the params, and settles `later` on demand.
    #[derive(Default)]
    struct Recorder {
        log: Mutex<Vec<String>>,
        settle: Mutex<Vec<oneshot::Sender<()>>>,
    }

    impl Recorder {
        fn later(self: &Arc<Self>, params: &str) -> Outcome {
            struct Undo(Arc<Recorder>);
            impl Drop for Undo {
                fn drop(&mut self) {
                    self.0.log.lock().push("dropped".to_owned());
                }
            }
            let (sender, receiver) = oneshot::channel();
            self.settle.lock().push(sender);
            let undo = Undo(Arc::clone(self));
            let answer = RawValue::from_string(params.to_owned()).unwrap();
            Outcome::Later(Box::pin(async move {
                drop(receiver.await);
                drop(undo);
                Ok(answer)
            }))
        }
    }

    struct Shared(Arc<Recorder>);

    impl Application for Shared {
        fn initialize(
            &self,
            _: &Arc<Connection>,
            request: InitializeRequest,
        ) -> Result<Value, ErrorObject> {
            match request.options.get("refuse") {
                Some(_) => {
                    Err(ErrorObject::new(ErrorKind::InvalidParams, "no").with("kind", "version"))
                }
                None if request.options.get("panic").is_some() => panic!("a secret"),
                None => Ok(json!({"capabilities": {}, "serverInfo": {"name": "reminderd"}})),
            }
        }

        fn call(&self, _: &Arc<Connection>, method: &'static Method, params: &str) -> Outcome {
            self.0.log.lock().push(format!("{} {params}", method.name));
            match method.name {
                "later" | "event/later" => self.0.later(params),
                "panic" | "event/panic" => panic!("a secret"),
                "panic/later" => Outcome::Later(Box::pin(async { panic!("a secret") })),
                "event" if params.contains("fail") => {
                    Outcome::Now(Err(ErrorObject::new(ErrorKind::NoTurn, "no turn is open")))
                }
                "event" => Outcome::Now(Ok(null())),
                _ => Outcome::Now(Ok(RawValue::from_string(params.to_owned()).unwrap())),
            }
        }

        fn closed(&self, _: &Arc<Connection>) {
            self.0.log.lock().push("closed".to_owned());
        }
    }

    struct Bench {
        dispatcher: Dispatcher,
        recorder: Arc<Recorder>,
    }

    impl Bench {
        fn uninitialized() -> Self {
            let recorder = Arc::new(Recorder::default());
            let application = Arc::new(Shared(Arc::clone(&recorder)));
            let mut dispatcher = Dispatcher::new(application, Arc::new(Connection::new(1)), 3);
            dispatcher.find = find_in_table;
            Self { dispatcher, recorder }
        }

        fn new() -> Self {
            let mut bench = Self::uninitialized();
            let reply = bench.say(r#"{"jsonrpc":"2.0","id":0,"method":"initialize"}"#);
            assert_eq!(reply[0]["result"]["serverInfo"]["name"], "reminderd");
            bench
        }

        /// What is answered to a message.
        fn say(&mut self, message: &str) -> Vec<Value> {
            let mut out = Encoder::new(Framing::Lines);
            self.dispatcher.receive(message.as_bytes(), &mut out);
            let mut context = Context::from_waker(Waker::noop());
            self.dispatcher.poll_running(&mut context, &mut out);
            messages(&out)
        }

        /// What is answered when nothing was said.
        fn listen(&mut self) -> Vec<Value> {
            let mut out = Encoder::new(Framing::Lines);
            let waker = noop_waker();
            self.dispatcher.poll_running(&mut Context::from_waker(&waker), &mut out);
            while let Some(message) = self.dispatcher.connection.peer.take_message() {
                out.push(&[&message]);
            }
            messages(&out)
        }

        fn request(&mut self, id: &str, method: &str, params: &str) -> Vec<Value> {
            self.say(&format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#
            ))
        }

        fn notify(&mut self, method: &str, params: &str) -> Vec<Value> {
            self.say(&format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#))
        }

        fn settle_all(&self) {
            for sender in self.recorder.settle.lock().drain(..) {
                // Cancelled calls do not listen any more.
                let _: Result<(), ()> = sender.send(());
            }
        }

        fn log(&self) -> Vec<String> {
            std::mem::take(&mut *self.recorder.log.lock())
        }
    }

    fn messages(out: &Encoder) -> Vec<Value> {
        let mut decoder = Decoder::new(usize::MAX);
        decoder.room().extend_from_slice(out.pending());
        let mut messages = Vec::new();
        while let Some(frame) = decoder.next_frame() {
            if let Frame::Message(message) = frame {
                messages.push(serde_json::from_slice(message).unwrap());
            }
        }
        messages
    }

    fn code(messages: &[Value]) -> i64 {
        assert_eq!(messages.len(), 1, "{messages:?}");
        messages[0]["error"]["code"].as_i64().unwrap()
    }

    #[test]
    fn what_is_no_message_is_refused_under_no_id() {
        let mut bench = Bench::new();
        for (message, expected) in [
            ("", -32700),
            ("{", -32700),
            ("nonsense", -32700),
            (r#"{"jsonrpc":"2.0","id":1,"method":5,"#, -32700),
            ("[", -32700),
            ("[]", -32600),
            (r#"[{"jsonrpc":"2.0","id":1,"method":"now"}]"#, -32600),
            ("5", -32600),
            ("null", -32600),
            ("{}", -32600),
            (r#"{"jsonrpc":"2.0","id":1}"#, -32600),
            (r#"{"jsonrpc":"2.0","id":1,"method":5}"#, -32600),
            (r#"{"jsonrpc":"1.0","id":1,"method":"now"}"#, -32600),
            (r#"{"id":1,"method":"now"}"#, -32600),
            (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"now"}"#, -32600),
        ] {
            let reply = bench.say(message);
            assert_eq!(code(&reply), expected, "{message}");
            assert_eq!(reply[0]["id"], Value::Null, "{message}");
        }
        for id in ["null", "1.5", "1e3", "{}", "[1]", "true"] {
            let reply = bench.request(id, "now", "{}");
            assert_eq!((code(&reply), &reply[0]["id"]), (-32600, &Value::Null), "{id}");
        }
        let mut out = Encoder::new(Framing::Lines);
        bench.dispatcher.receive(b"{\"\xff\":1}", &mut out);
        assert_eq!(code(&messages(&out)), -32700);
        assert!(bench.log().is_empty());
    }

    #[test]
    fn ids_come_back_as_they_were_sent() {
        let mut bench = Bench::new();
        for id in ["7", "\"7\"", "\"a-b\"", "0", "-1", "123456789012345678901234567890", "\"\""] {
            let mut out = Encoder::new(Framing::Lines);
            let message = format!(r#"{{"jsonrpc":"2.0","method":"now","id": {id} }}"#);
            bench.dispatcher.receive(message.as_bytes(), &mut out);
            let reply = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{}}}}\n");
            assert_eq!(String::from_utf8_lossy(out.pending()), reply);
        }
    }

    #[test]
    fn params_that_say_nothing_are_the_same() {
        let mut bench = Bench::new();
        for params in ["null", "[]", "[ ]", "{}"] {
            assert_eq!(bench.request("1", "now", params)[0]["result"], json!({}));
        }
        assert_eq!(bench.say(r#"{"jsonrpc":"2.0","id":1,"method":"now"}"#)[0]["result"], json!({}));
        for params in ["[1]", "[{}]", "5", "\"{}\"", "true"] {
            assert_eq!(code(&bench.request("1", "now", params)), -32602, "{params}");
        }
        for (index, params) in ["null", "[]", "{}", "[5]"].into_iter().enumerate() {
            let mut bench = Bench::new();
            let reply = bench.request("1", "shutdown", params);
            assert_eq!(reply[0]["result"], Value::Null, "{index}");
        }
    }

    #[test]
    fn unknown_methods_are_refused_as_requests_and_ignored_as_notifications() {
        let mut bench = Bench::new();
        for method in ["unknown", "$/unknown", "ask", "$/cancelRequest"] {
            let reply = bench.request("1", method, "{}");
            assert_eq!(code(&reply), -32601, "{method}");
            let data = &reply[0]["error"]["data"];
            assert_eq!(
                (&data["kind"], &data["method"]),
                (&json!("methodNotFound"), &json!(method))
            );
            assert!(bench.notify(method, "{}").is_empty());
        }
        assert!(bench.notify("now", "{}").is_empty(), "a request without an id asks for nothing");
        assert!(bench.log().is_empty());
        assert!(bench.listen().is_empty());
    }

    #[test]
    fn events_may_be_requests_or_notifications() {
        let mut bench = Bench::new();
        assert_eq!(bench.request("1", "event", "{}")[0]["result"], Value::Null);
        assert_eq!(code(&bench.request("1", "event", r#"{"fail":1}"#)), -33004);
        assert!(bench.notify("event", "{}").is_empty());
        assert!(bench.listen().is_empty());
        assert!(bench.notify("event", r#"{"fail":1}"#).is_empty());
        let problems = bench.listen();
        assert_eq!(problems[0]["method"], "reminderd/problem");
        assert_eq!(
            problems[0]["params"],
            json!({"method": "event", "code": -33004, "message": "no turn is open"})
        );
        bench.notify("event", "[1]");
        assert_eq!(bench.listen()[0]["params"]["code"], -32602);
    }

    #[test]
    fn life_has_its_order() {
        let mut bench = Bench::uninitialized();
        assert_eq!(code(&bench.request("1", "now", "{}")), -32002);
        assert_eq!(code(&bench.request("1", "shutdown", "{}")), -32002);
        assert!(bench.notify("event", "{}").is_empty());
        let refused = bench.request("1", "initialize", r#"{"initializationOptions":{"refuse":1}}"#);
        assert_eq!(code(&refused), -32602);
        assert_eq!(refused[0]["error"]["data"]["kind"], "version");
        let panicked = bench.request("1", "initialize", r#"{"initializationOptions":{"panic":1}}"#);
        assert_eq!(code(&panicked), -32603);
        assert!(bench.request("1", "initialize", "{}")[0]["result"].is_object());
        assert_eq!(code(&bench.request("2", "initialize", "{}")), -32600);
        assert!(bench.notify("initialized", "{}").is_empty());
        assert!(bench.request("3", "now", "{}")[0]["result"].is_object());
        assert_eq!(bench.request("4", "shutdown", "null")[0]["result"], Value::Null);
        assert_eq!(code(&bench.request("5", "now", "{}")), -32600);
        assert_eq!(code(&bench.request("5", "shutdown", "{}")), -32600);
        assert_eq!(code(&bench.request("5", "initialize", "{}")), -32600);
        bench.notify("event", "{}");
        assert_eq!(bench.log(), ["now {}"]);
        let mut out = Encoder::default();
        let exit = br#"{"jsonrpc":"2.0","method":"exit","params":null}"#;
        assert_eq!(bench.dispatcher.receive(exit, &mut out), Flow::Exits);
        assert!(bench.dispatcher.was_shut_down());
    }

    #[test]
    fn odd_members_of_initialize_are_left_out() {
        let mut bench = Bench::uninitialized();
        let reply = bench.request(
            "1",
            "initialize",
            r#"{"processId":-5,"clientInfo":"vim","rootUri":"/no uri","trace":"loud",
                "workspaceFolders":7,"capabilities":{"textDocument":[1],"window":{"showDocument":
                {"support":true}},"experimental":{"x":1},"general":3}}"#,
        );
        assert!(reply[0]["result"].is_object(), "{reply:?}");
        let client = bench.dispatcher.connection.client().unwrap();
        assert_eq!((client.process_id, &client.client), (None, &None));
        assert_eq!(client.capabilities["window"]["showDocument"]["support"], true);
        assert_eq!(client.capabilities["experimental"], json!({"x": 1}));
        assert!(client.capabilities.get("general").is_none());
    }

    #[test]
    fn what_is_slow_does_not_hold_up_what_is_behind_it() {
        let mut bench = Bench::new();
        assert!(bench.request("1", "later", r#"{"first":1}"#).is_empty());
        assert!(bench.request("\"1\"", "later", "{}").is_empty());
        assert_eq!(bench.request("2", "now", "{}")[0]["id"], 2);
        assert_eq!(bench.log(), [r#"later {"first":1}"#, "later {}", "now {}"]);
        bench.settle_all();
        let replies = bench.listen();
        assert_eq!(replies[0], json!({"jsonrpc": "2.0", "id": 1, "result": {"first": 1}}));
        assert_eq!(replies[1]["id"], "1");
    }

    #[test]
    fn a_cancel_drops_the_call_at_once() {
        let mut bench = Bench::new();
        for (id, cancelled) in [("1", "1"), ("\"a\"", r#""\u0061""#), (r#""\u0062""#, "\"b\"")] {
            bench.request(id, "later", "{}");
            bench.log();
            let mut out = Encoder::new(Framing::Lines);
            let cancel = format!(
                r#"{{"jsonrpc":"2.0","method":"$/cancelRequest","params":{{"id":{cancelled}}}}}"#
            );
            bench.dispatcher.receive(cancel.as_bytes(), &mut out);
            assert_eq!(bench.log(), ["dropped"], "before anything is polled");
            assert_eq!(code(&messages(&out)), -32800);
            let text = String::from_utf8_lossy(out.pending()).into_owned();
            assert!(text.starts_with(&format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},")), "{text}");
            bench.settle_all();
            assert!(bench.listen().is_empty(), "answered once");
            assert!(bench.dispatcher.running.is_empty());
        }
    }

    #[test]
    fn cancelling_what_is_not_pending_is_ignored() {
        let mut bench = Bench::new();
        bench.request("1", "later", "{}");
        for params in [r#"{"id":"1"}"#, r#"{"id":2}"#, r#"{"id":null}"#, "{}", "[1]", "null"] {
            assert!(bench.notify("$/cancelRequest", params).is_empty());
        }
        bench.settle_all();
        assert_eq!(bench.listen()[0]["result"], json!({}));
        assert!(bench.notify("$/cancelRequest", r#"{"id":1}"#).is_empty());
    }

    #[test]
    fn an_id_that_is_pending_cannot_be_used_again() {
        let mut bench = Bench::new();
        bench.request("1", "later", "{}");
        let refused = bench.request("1", "now", "{}");
        assert_eq!((code(&refused), &refused[0]["id"]), (-32600, &json!(1)));
        assert_eq!(bench.log(), ["later {}"]);
        bench.settle_all();
        assert_eq!(bench.listen()[0]["result"], json!({}));
        assert!(bench.request("1", "now", "{}")[0]["result"].is_object());
    }

    #[test]
    fn pending_requests_are_bounded_and_do_not_keep_out_events() {
        let mut bench = Bench::new();
        for id in ["1", "2", "3"] {
            assert!(bench.request(id, "later", "{}").is_empty());
        }
        let refused = bench.request("4", "now", "{}");
        assert_eq!(code(&refused), -33011);
        assert_eq!(refused[0]["error"]["data"]["kind"], "overloaded");
        for _ in 0..3 {
            bench.notify("event/later", "{}");
        }
        bench.notify("event", "{}");
        assert!(bench.listen().is_empty());
        bench.notify("event/later", "{}");
        assert_eq!(bench.listen()[0]["params"]["code"], -33011);
        bench.settle_all();
        assert_eq!(bench.listen().len(), 3);
        assert!(bench.request("4", "now", "{}")[0]["result"].is_object());
    }

    #[test]
    fn a_panic_is_an_answer_and_says_nothing_of_what_it_saw() {
        let mut bench = Bench::new();
        for method in ["panic", "panic/later", "event/panic"] {
            let reply = bench.request("1", method, "{}");
            assert_eq!(code(&reply), -32603, "{method}");
            assert!(!reply[0].to_string().contains("secret"));
        }
        bench.notify("event/panic", "{}");
        assert_eq!(bench.listen()[0]["params"]["code"], -32603);
        assert!(bench.request("1", "now", "{}")[0]["result"].is_object());
    }

    #[test]
    fn answers_are_never_answered() {
        let mut bench = Bench::new();
        let peer = bench.dispatcher.connection.peer.clone();
        let asked = peer.request("ask", &json!({}));
        assert_eq!(bench.listen()[0]["method"], "ask");
        for answer in [
            r#"{"jsonrpc":"2.0","id":1,"result":{"body":"x"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":null}"#,
            r#"{"jsonrpc":"2.0","id":77,"result":null}"#,
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?"}}"#,
            r#"{"jsonrpc":"2.0","error":5}"#,
        ] {
            assert!(bench.say(answer).is_empty(), "{answer}");
        }
        assert_eq!(asked.now_or_never(), Some(Ok(json!({"body": "x"}))));
    }

    #[test]
    fn the_end_drops_what_is_pending_and_is_told_once() {
        let mut bench = Bench::new();
        bench.request("1", "later", "{}");
        bench.notify("event/later", "{}");
        bench.log();
        let Bench { dispatcher, recorder } = bench;
        drop(dispatcher);
        assert_eq!(*recorder.log.lock(), ["dropped", "dropped", "closed"]);
    }
}
