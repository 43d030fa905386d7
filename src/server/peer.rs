//! What the daemon says to a client of its own accord: notifications, requests, and problems.
//!
//! tower-lsp's `Client` is not used for this: it panics when an answer arrives whose request was
//! given up, and it waits for room where we must be able to say no.
//!
//! Nothing here waits for the client. Messages go into a bounded outbox that the connection's task
//! empties; when a client does not read, the outbox fills up and says so.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures_util::task::AtomicWaker;
use parking_lot::Mutex;
use reminderd_protocol::error::{ErrorKind, ErrorObject};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::oneshot;

/// How many messages may wait for a client that does not read.
const OUTBOX_MESSAGES_MAX: usize = 1024;
/// How many requests may wait for the client's answer.
const REQUESTS_MAX: usize = 1024;
/// At most one problem of a code is reported in this time.
const PROBLEM_SPACING: Duration = Duration::from_secs(1);

/// Why a message did not reach the client, or what it answered.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PeerError {
    /// The connection is gone.
    #[error("the connection is closed")]
    Closed,
    /// The client does not read, or does not answer, and the queue is full.
    #[error("too many messages wait for the client to read or answer them")]
    Full,
    /// The client answered with an error.
    #[error("the client answered with error {}: {}", .0.code, .0.message)]
    Refused(ErrorObject),
}

/// The client's end of a connection. Clones speak to the same client.
#[derive(Clone, Debug)]
pub struct Peer {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// Set when the outbox may hold something, so that an empty one costs no lock.
    stirred: AtomicBool,
    /// Set while a problem waits for its time.
    delayed: AtomicBool,
    waker: AtomicWaker,
}

#[derive(Debug)]
struct State {
    closed: bool,
    outbox: VecDeque<String>,
    answers: HashMap<u64, oneshot::Sender<Result<Value, PeerError>>>,
    last_id: u64,
    problems: Problems,
}

impl Default for Peer {
    fn default() -> Self {
        Self::new()
    }
}

impl Peer {
    /// A client that nothing was said to yet.
    pub fn new() -> Self {
        let state = State {
            closed: false,
            outbox: VecDeque::new(),
            answers: HashMap::new(),
            last_id: 0,
            problems: Problems { enabled: true, by_code: BTreeMap::new() },
        };
        let shared = Shared {
            state: Mutex::new(state),
            stirred: AtomicBool::new(false),
            delayed: AtomicBool::new(false),
            waker: AtomicWaker::new(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Sends a notification.
    pub fn notify(&self, method: &str, params: &impl Serialize) -> Result<(), PeerError> {
        let text = message_text(None, method, params);
        let result = self.shared.state.lock().send(text);
        self.stir();
        result
    }

    /// Sends a request. Dropping the future forgets the request; an answer that comes after that
    /// is ignored. How long to wait is the caller's decision.
    pub fn request<P: Serialize>(
        &self,
        method: &str,
        params: &P,
    ) -> impl Future<Output = Result<Value, PeerError>> + Send + use<P> {
        let (sender, receiver) = oneshot::channel();
        let mut sender = Some(sender);
        let mut state = self.shared.state.lock();
        state.last_id += 1;
        let id = state.last_id;
        let sent = if state.answers.len() >= REQUESTS_MAX {
            Err(PeerError::Full)
        } else {
            state.send(message_text(Some(id), method, params))
        };
        if sent.is_ok()
            && let Some(sender) = sender.take()
        {
            state.answers.insert(id, sender);
        }
        drop(state);
        self.stir();
        PendingAnswer { peer: self.clone(), id, receiver, refused: sent.err() }
    }

    /// Reports that a notification failed (`reminderd/problem`): at once, or, within a second of
    /// the last one of this code, together with the others of that second.
    pub fn problem(&self, method: &str, error: &ErrorObject) {
        let mut state = self.shared.state.lock();
        let now = Instant::now();
        state.problems.add(now, method, error);
        state.queue_due_problems(now);
        drop(state);
        self.stir();
    }

    /// Switches `reminderd/problem` off for good (`problems: false` of `initialize`).
    pub fn silence_problems(&self) {
        self.shared.state.lock().problems.enabled = false;
    }

    /// Hands an answer of the client to whoever asked. Nobody may be left who did.
    pub(super) fn answered(&self, id: &RawValue, answer: Result<&RawValue, &RawValue>) {
        let Ok(id) = id.get().parse::<u64>() else { return };
        let Some(sender) = self.shared.state.lock().answers.remove(&id) else { return };
        let answer = match answer {
            Ok(result) => Ok(serde_json::from_str(result.get()).unwrap_or(Value::Null)),
            Err(error) => {
                Err(PeerError::Refused(serde_json::from_str(error.get()).unwrap_or_else(|_| {
                    ErrorObject::new(
                        ErrorKind::Internal,
                        "the client's error is not one of JSON-RPC",
                    )
                })))
            }
        };
        // The asker may have given up in this very moment.
        drop(sender.send(answer));
    }

    /// Registers the connection's task, to be woken by the next message.
    pub(super) fn register(&self, context: &Context<'_>) {
        self.shared.waker.register(context.waker());
    }

    /// Takes the next message to send, and nothing while there is none.
    pub(super) fn take_message(&self) -> Option<String> {
        if !self.shared.stirred.load(Ordering::Acquire) {
            return None;
        }
        let mut state = self.shared.state.lock();
        state.queue_due_problems(Instant::now());
        let message = state.outbox.pop_front();
        if message.is_none() {
            self.shared.stirred.store(false, Ordering::Release);
            let delayed = state.problems.next_deadline().is_some();
            self.shared.delayed.store(delayed, Ordering::Release);
        }
        message
    }

    /// When `take_message` has to be asked again even if nothing new is said.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        if !self.shared.delayed.load(Ordering::Acquire) {
            return None;
        }
        self.shared.state.lock().problems.next_deadline()
    }

    /// Makes `take_message` look again.
    pub(super) fn stir(&self) {
        self.shared.stirred.store(true, Ordering::Release);
        self.shared.waker.wake();
    }

    /// The connection is gone: whoever waits for an answer is told.
    pub(super) fn close(&self) {
        let mut state = self.shared.state.lock();
        state.closed = true;
        state.outbox.clear();
        let answers = std::mem::take(&mut state.answers);
        drop(state);
        drop(answers);
    }
}

impl State {
    fn send(&mut self, text: String) -> Result<(), PeerError> {
        if self.closed {
            return Err(PeerError::Closed);
        }
        if self.outbox.len() >= OUTBOX_MESSAGES_MAX {
            return Err(PeerError::Full);
        }
        self.outbox.push_back(text);
        Ok(())
    }

    fn queue_due_problems(&mut self, now: Instant) {
        // A full outbox leaves the problems where they are, to be counted together.
        while self.outbox.len() < OUTBOX_MESSAGES_MAX
            && let Some(report) = self.problems.take_due(now)
        {
            self.outbox.push_back(message_text(None, "reminderd/problem", &report));
        }
    }
}

fn message_text(id: Option<u64>, method: &str, params: &impl Serialize) -> String {
    #[derive(Serialize)]
    struct Message<'a, P> {
        jsonrpc: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<u64>,
        method: &'a str,
        params: &'a P,
    }
    // Wire types have string keys and infallible serializers, so this cannot fail; a client can
    // make more of an empty object than of a daemon that is gone.
    serde_json::to_string(&Message { jsonrpc: "2.0", id, method, params }).unwrap_or_else(|_| {
        serde_json::to_string(&Message { jsonrpc: "2.0", id, method, params: &json!({}) })
            .unwrap_or_default()
    })
}

struct PendingAnswer {
    peer: Peer,
    id: u64,
    receiver: oneshot::Receiver<Result<Value, PeerError>>,
    refused: Option<PeerError>,
}

impl Future for PendingAnswer {
    type Output = Result<Value, PeerError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(error) = self.refused.take() {
            return Poll::Ready(Err(error));
        }
        Pin::new(&mut self.receiver)
            .poll(context)
            .map(|answer| answer.unwrap_or(Err(PeerError::Closed)))
    }
}

impl Drop for PendingAnswer {
    fn drop(&mut self) {
        self.peer.shared.state.lock().answers.remove(&self.id);
    }
}

/// Reports of failed notifications, at most one a code and second.
#[derive(Debug)]
struct Problems {
    enabled: bool,
    by_code: BTreeMap<i64, Problem>,
}

#[derive(Debug, Default)]
struct Problem {
    last_told: Option<Instant>,
    /// The latest that was not told yet: its method and message, and how many came before it.
    waiting: Option<Report>,
}

#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    method: String,
    code: i64,
    message: String,
    /// How many others of this code were not reported one by one since the last report.
    #[serde(skip_serializing_if = "is_zero")]
    left_out: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Problems {
    fn add(&mut self, now: Instant, method: &str, error: &ErrorObject) {
        if !self.enabled {
            return;
        }
        // Codes are few, but a handler could make them up; what was told long ago needs no memory.
        self.by_code
            .retain(|_, problem| problem.waiting.is_some() || problem.next_time() > Some(now));
        let problem = self.by_code.entry(error.code).or_default();
        let left_out = problem.waiting.as_ref().map_or(0, |report| report.left_out + 1);
        problem.waiting = Some(Report {
            method: method.to_owned(),
            code: error.code,
            message: error.message.clone(),
            left_out,
        });
    }

    fn take_due(&mut self, now: Instant) -> Option<Report> {
        let problem = self.by_code.values_mut().find(|problem| {
            problem.waiting.is_some() && problem.next_time().is_none_or(|time| time <= now)
        })?;
        problem.last_told = Some(now);
        problem.waiting.take()
    }

    fn next_deadline(&self) -> Option<Instant> {
        let waiting = self.by_code.values().filter(|problem| problem.waiting.is_some());
        waiting.filter_map(Problem::next_time).min()
    }
}

impl Problem {
    fn next_time(&self) -> Option<Instant> {
        self.last_told.map(|time| time + PROBLEM_SPACING)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn an_answer_reaches_the_one_who_asked() {
        let peer = Peer::new();
        let answer = peer.request("reminder/compute", &json!({"generator": "g"}));
        let sent = peer.take_message().unwrap();
        assert_eq!(
            sent,
            r#"{"jsonrpc":"2.0","id":1,"method":"reminder/compute","params":{"generator":"g"}}"#
        );
        peer.answered(&raw("1"), Ok(&raw(r#"{"body":null}"#)));
        assert_eq!(answer.now_or_never(), Some(Ok(json!({"body": null}))));
    }

    #[test]
    fn a_late_a_doubled_and_an_unknown_answer_are_ignored() {
        let peer = Peer::new();
        drop(peer.request("reminder/compute", &json!({})));
        for id in ["1", "1", "2", "\"1\"", "null", "-1"] {
            peer.answered(&raw(id), Ok(&raw("null")));
        }
        assert!(peer.shared.state.lock().answers.is_empty());
    }

    #[test]
    fn an_error_of_the_client_is_an_answer_too() {
        let peer = Peer::new();
        let answer = peer.request("reminder/compute", &json!({}));
        peer.answered(&raw("1"), Err(&raw(r#"{"code":-1,"message":"no"}"#)));
        let Some(Err(PeerError::Refused(error))) = answer.now_or_never() else { panic!() };
        assert_eq!((error.code, error.message.as_str()), (-1, "no"));
    }

    #[test]
    fn a_closed_connection_answers_everybody() {
        let peer = Peer::new();
        let waiting = peer.request("reminder/compute", &json!({}));
        peer.close();
        assert_eq!(waiting.now_or_never(), Some(Err(PeerError::Closed)));
        let later = peer.request("reminder/compute", &json!({}));
        assert_eq!(later.now_or_never(), Some(Err(PeerError::Closed)));
        assert_eq!(peer.notify("x", &json!({})), Err(PeerError::Closed));
    }

    #[test]
    fn the_outbox_is_bounded() {
        let peer = Peer::new();
        let results: Vec<_> =
            (0..=OUTBOX_MESSAGES_MAX).map(|_| peer.notify("x", &json!({}))).collect();
        assert_eq!(results.last(), Some(&Err(PeerError::Full)));
        assert!(results[..OUTBOX_MESSAGES_MAX].iter().all(Result::is_ok));
    }

    #[test]
    fn problems_of_a_code_are_told_once_a_second_and_the_others_counted() {
        let mut problems = Problems { enabled: true, by_code: BTreeMap::new() };
        let start = Instant::now();
        let error = ErrorObject::new(ErrorKind::NoTurn, "no turn is open");
        problems.add(start, "tool/begin", &error);
        assert_eq!(problems.take_due(start).unwrap().left_out, 0);
        for _ in 0..3 {
            problems.add(start, "tool/end", &error);
        }
        assert_eq!(problems.take_due(start), None);
        let other = ErrorObject::new(ErrorKind::UnknownAgent, "no such agent");
        problems.add(start, "tool/end", &other);
        assert_eq!(problems.take_due(start).unwrap().code, other.code);

        assert_eq!(problems.next_deadline(), Some(start + PROBLEM_SPACING));
        let report = problems.take_due(start + PROBLEM_SPACING).unwrap();
        assert_eq!((report.method.as_str(), report.left_out), ("tool/end", 2));
        assert_eq!(problems.next_deadline(), None);
    }

    #[test]
    fn problems_can_be_switched_off() {
        let peer = Peer::new();
        peer.silence_problems();
        peer.problem("tool/begin", &ErrorObject::new(ErrorKind::NoTurn, "no turn is open"));
        assert_eq!(peer.take_message(), None);
    }
}
