//! The WAIT and what becomes of its token. Everything but the clients' generators is captured when
//! the message arrives; their answers are filled in later and see nothing newer.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use reminderd_protocol::error::{ErrorKind, ErrorObject};
use reminderd_protocol::roster::{ComputeParams, ComputeResult};
use reminderd_protocol::scope::Scope;
use reminderd_protocol::wait::{
    CommitParams, CommitResult, ReleaseParams, ReleaseResult, WaitParams,
};
use serde::Deserialize as _;

use super::{Call, answer, convert, internal};
use crate::engine::{Ask, Delivery, Millis, Problem, Receipt, ScopePath, Serial, Session, Staged};
use crate::server::daemon::{Daemon, Slot};
use crate::server::{Answer, Connection, Outcome, Peer};

/// How long the slow parts of a WAIT may take unless the client says otherwise, in milliseconds.
const DEADLINE: u64 = 2000;
/// How much of it the client's generators may take.
const GENERATORS_DEADLINE: u64 = 250;

/// `reminder/wait`
pub fn wait(call: &Call<'_>) -> Outcome {
    match staged(call) {
        Ok(outcome) => outcome,
        Err(error) => Outcome::Now(Err(error)),
    }
}

fn staged(call: &Call<'_>) -> Result<Outcome, ErrorObject> {
    let params: WaitParams = call.params()?;
    let auto_commit = params.auto_commit;
    let deadline = params.deadline_ms.unwrap_or(DEADLINE).min(GENERATORS_DEADLINE);
    let scope = params.scope.clone();
    let slot = call.daemon.slot(&scope.session, call.at)?;
    let request = convert::wait(params, call.connection.id())?;
    let path = request.scope.clone();
    let material =
        call.daemon.surroundings().material(slot.tag()).map_err(|error| internal(&error))?;

    let mut session = slot.lock();
    let staged =
        session.stage(call.at, &request, material).map_err(|refusal| convert::error(&refusal))?;
    let (wait, asks) = match staged {
        Staged::Ready(delivery) => {
            let answer = delivered(&mut session, call.connection, call.at, *delivery, auto_commit);
            return Ok(Outcome::Now(answer));
        }
        Staged::Asking { wait, asks } => (wait, asks),
    };
    drop(session);
    let daemon = Arc::clone(call.daemon);
    let connection = Arc::clone(call.connection);
    let prepared = Prepared { slot, path, wait, finished: false };
    let answers = ask(connection.peer(), &scope, asks, Duration::from_millis(deadline));
    Ok(Outcome::Later(Box::pin(async move {
        let answers = answers.await;
        prepared.finish(&daemon, &connection, &answers, auto_commit)
    })))
}

/// A WAIT that waits for generators. Dropped before it is finished, as a cancel does, it leaves no
/// token.
struct Prepared {
    slot: Arc<Slot>,
    path: ScopePath,
    wait: Serial,
    finished: bool,
}

impl Prepared {
    fn finish(
        mut self,
        daemon: &Daemon,
        connection: &Connection,
        answers: &BTreeMap<String, String>,
        auto_commit: bool,
    ) -> Answer {
        self.finished = true;
        let now = daemon.now();
        let mut session = self.slot.lock();
        let delivery = session
            .finish(now, &self.path, self.wait, answers)
            .map_err(|refusal| convert::error(&refusal))?;
        delivered(&mut session, connection, now, delivery, auto_commit)
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        if !self.finished {
            self.slot.lock().abandon(&self.path, self.wait);
        }
    }
}

/// Asks the client for the bodies of its generators, all at once. Those that are late, fail or have
/// nothing to say are left out.
fn ask(
    peer: &Peer,
    scope: &Scope,
    asks: Vec<Ask>,
    deadline: Duration,
) -> impl Future<Output = BTreeMap<String, String>> + Send + 'static {
    let until = tokio::time::Instant::now() + deadline;
    let questions: Vec<_> = asks
        .into_iter()
        .map(|ask| {
            let params = ComputeParams {
                generator: ask.generator.clone(),
                scope: scope.clone(),
                force: ask.force,
            };
            let answer = peer.request("reminder/compute", &params);
            async move {
                let answer = tokio::time::timeout_at(until, answer).await.ok()?.ok()?;
                let body = ComputeResult::deserialize(answer).ok()?.body?;
                Some((ask.generator, body))
            }
        })
        .collect();
    async move { join_all(questions).await.into_iter().flatten().collect() }
}

/// The answer to a WAIT whose delivery is complete.
fn delivered(
    session: &mut Session,
    connection: &Connection,
    now: Millis,
    delivery: Delivery,
    auto_commit: bool,
) -> Answer {
    for Problem { id, message } in &delivery.problems {
        let error = ErrorObject::new(
            ErrorKind::InvalidParams,
            format!("reminder {id:?} was left out: {message}"),
        );
        connection.peer().problem("reminder/wait", &error);
    }
    if auto_commit {
        session
            .commit(now, &delivery.token, None, None)
            .map_err(|refusal| convert::error(&refusal))?;
    }
    drop(session.take_lines());
    answer(&convert::delivery(delivery, auto_commit))
}

/// `reminder/commit`
pub fn commit(call: &Call<'_>) -> Outcome {
    let committed = call.params().and_then(|params: CommitParams| {
        let slot = of_token(call.daemon, &params.token)?;
        let mut session = slot.lock();
        let placement = match (params.placement, params.record) {
            (placement, Some(false)) => Some(
                format!("{} (no record kept)", placement.unwrap_or_default()).trim().to_owned(),
            ),
            (placement, _) => placement,
        };
        let receipt = session
            .commit(call.at, &params.token, params.entries.as_deref(), placement)
            .map_err(|refusal| convert::error(&refusal))?;
        drop(session.take_lines());
        let Receipt { record, committed, held, already } = receipt;
        let record = record.map(convert::wire_record);
        answer(&CommitResult { record, committed, held, already })
    });
    Outcome::Now(committed)
}

/// `reminder/release`
pub fn release(call: &Call<'_>) -> Outcome {
    let released = call.params().and_then(|params: ReleaseParams| {
        let slot = of_token(call.daemon, &params.token)?;
        let mut session = slot.lock();
        let released =
            session.release(&params.token).map_err(|refusal| convert::error(&refusal))?;
        answer(&ReleaseResult { released })
    });
    Outcome::Now(released)
}

/// The session of a token, or what to do about one that nobody was given.
fn of_token(daemon: &Daemon, token: &str) -> Result<Arc<Slot>, ErrorObject> {
    daemon.slot_of_token(token).ok_or_else(|| {
        let shown = crate::engine::short_name(token, 64);
        ErrorObject::new(
            ErrorKind::UnknownToken,
            format!("token {shown:?} is unknown: use the token of the newest reminder/wait"),
        )
    })
}
