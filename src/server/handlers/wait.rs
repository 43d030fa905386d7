//! The WAIT and what becomes of its token. Everything but what is slow is captured when the message
//! arrives; what clients' generators answer and what stands in files is filled in later, and sees
//! nothing newer.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{join, join_all};
use reminderd_protocol::error::{ErrorKind, ErrorObject};
use reminderd_protocol::roster::{ComputeParams, ComputeResult};
use reminderd_protocol::scope::Scope;
use reminderd_protocol::wait::{
    CommitParams, CommitResult, ReleaseParams, ReleaseResult, WaitParams,
};
use serde::Deserialize as _;

use super::{Call, answer, convert, internal};
use crate::engine::{
    Ask, Delivery, Findings, Millis, Problem, Receipt, Refusal, RefusalKind, ScopePath, Serial,
    Session, Staged, short_name,
};
use crate::files;
use crate::server::daemon::{Daemon, Slot};
use crate::server::{Answer, Connection, Outcome, Peer, Surroundings};

/// How much of a WAIT's time the client's generators may take.
const GENERATORS_DEADLINE: Duration = Duration::from_millis(250);

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
    let deadline = params.deadline_ms.map_or(files::DEADLINE, Duration::from_millis);
    let scope = params.scope.clone();
    let slot = call.daemon.slot(&scope.session, call.at)?;
    let request = convert::wait(params, call.connection.id())?;
    let path = request.scope.clone();
    let material =
        call.daemon.surroundings().material(slot.tag()).map_err(|error| internal(&error))?;

    let mut session = slot.lock();
    let staged =
        session.stage(call.at, &request, material).map_err(|refusal| convert::error(&refusal))?;
    let (wait, asks, wanted) = match staged {
        Staged::Ready(delivery) => {
            let answer = delivered(&mut session, call.connection, call.at, *delivery, auto_commit);
            return Ok(Outcome::Now(answer));
        }
        Staged::Asking { wait, asks, wanted } => (wait, asks, wanted),
    };
    let secrecy = Arc::new(files::secrecy_of(&session));
    drop(session);
    let daemon = Arc::clone(call.daemon);
    let connection = Arc::clone(call.connection);
    let prepared = Prepared { slot, path, wait, finished: false };
    let answers = ask(connection.peer(), &scope, asks, deadline.min(GENERATORS_DEADLINE));
    let findings = files::look_at(wanted, &secrecy, deadline);
    Ok(Outcome::Later(Box::pin(async move {
        let (answers, findings) = join(answers, findings).await;
        prepared.finish(&daemon, &connection, &answers, &findings, auto_commit)
    })))
}

/// A WAIT that waits for what is slow. Dropped before it is finished, as a cancel does, it leaves no
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
        findings: &Findings,
        auto_commit: bool,
    ) -> Answer {
        self.finished = true;
        let now = daemon.now();
        let mut session = self.slot.lock();
        let delivery = session
            .finish(now, &self.path, self.wait, answers, findings)
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
            (placement, Some(false)) => {
                let place = placement.unwrap_or_default();
                Some(format!("{place} (no record kept)").trim().to_owned())
            }
            (placement, _) => placement,
        };
        let receipt = session
            .commit(call.at, &params.token, params.entries.as_deref(), placement)
            .map_err(|refusal| token_error(&refusal, &params.token))?;
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
        let released = of_token(call.daemon, &params.token).and_then(|slot| {
            slot.lock()
                .release(&params.token)
                .map_err(|refusal| token_error(&refusal, &params.token))
        });
        match released {
            // A token of a session that is gone is not open: that is all a release asks.
            Err(error) if error.code == ErrorKind::TokenExpired.code() => {
                answer(&ReleaseResult { released: false })
            }
            released => answer(&ReleaseResult { released: released? }),
        }
    });
    Outcome::Now(released)
}

/// The session of a token, or what to do about one that nobody was given or whose session is gone.
fn of_token(daemon: &Daemon, token: &str) -> Result<Arc<Slot>, ErrorObject> {
    daemon.slot_of_token(token).ok_or_else(|| {
        if Surroundings::is_token(token) {
            return gone(token);
        }
        let shown = short_name(token, 64);
        ErrorObject::new(
            ErrorKind::UnknownToken,
            format!("token {shown:?} is unknown: use the token of the newest reminder/wait"),
        )
    })
}

/// What a token that looks like one of ours, but that its session does not know, comes from: the
/// session was closed, its daemon ended, or the token is so old that it was forgotten.
fn token_error(refusal: &Refusal, token: &str) -> ErrorObject {
    if refusal.kind == RefusalKind::UnknownToken && Surroundings::is_token(token) {
        return gone(token);
    }
    convert::error(refusal)
}

fn gone(token: &str) -> ErrorObject {
    ErrorObject::new(
        ErrorKind::TokenExpired,
        format!(
            "token {token} is of a session or daemon that is gone, and nothing was told with it \
             (send reminder/wait again)"
        ),
    )
}
