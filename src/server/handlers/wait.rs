//! The WAIT and what becomes of its token. Everything but what is slow is captured when the message
//! arrives; what clients' generators answer and what stands in files is filled in later, and sees
//! nothing newer.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{OptionFuture, join_all, join3};
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
    Staged, Wanted, short_name,
};
use crate::files;
use crate::server::daemon::{Daemon, Slot};
use crate::server::kept::Kept;
use crate::server::tape::{Computed, Notes};
use crate::server::{Answer, Connection, Outcome, Peer, Surroundings};
use crate::store::{Ticket, When};

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
    let mut request = convert::wait(params, call.connection.id())?;
    let path = request.scope.clone();
    let mut session = slot.live()?;
    session.catch_up(When::Behind);
    let fence = session.lease().fence();
    let material =
        call.daemon.surroundings().material(slot.tag(), fence).map_err(|error| internal(&error))?;
    call.notes.random(&material);
    let (prepared, excerpt) = call.daemon.checks().prepared(&session, &path);
    request.prepared = prepared;
    let staged =
        session.stage(call.at, &request, material).map_err(|refusal| convert::error(&refusal))?;
    // What the request said of history.
    call.keep(&mut session);
    let (wait, asks, wanted) = match staged {
        Staged::Ready(delivery) => {
            let delivered =
                delivered(&mut session, call.connection, call.at, *delivery, auto_commit)?;
            drop(session);
            return Ok(match delivered {
                Delivered { answer, commit: None } => Outcome::Now(answer),
                Delivered { answer, commit: Some((token, ticket)) } => {
                    Outcome::Later(Box::pin(once_committed(slot, token, ticket, answer)))
                }
            });
        }
        Staged::Asking { wait, asks, wanted } => (wait, asks, wanted),
    };
    let secrecy = slot.files().secrecy(&session);
    drop(session);
    let excerpt = excerpt.filter(|_| wanted.contains(&Wanted::DIAGNOSTICS));
    let daemon = Arc::clone(call.daemon);
    let connection = Arc::clone(call.connection);
    let deadline_of_asks = deadline.min(GENERATORS_DEADLINE);
    let answers = ask(connection.peer(), &scope, asks, deadline_of_asks, call.notes);
    let question = call.question(&path, deadline);
    let findings = slot.files().look_at(&slot, question, &secrecy, wanted);
    let prepared = Prepared { slot, path, wait, at: call.at, finished: false };
    Ok(Outcome::Later(Box::pin(async move {
        let diagnosis = excerpt.map(|excerpt| excerpt.prepared(Arc::clone(&daemon), deadline));
        let diagnosis = OptionFuture::from(diagnosis);
        let (answers, mut findings, diagnosis) = join3(answers, findings, diagnosis).await;
        findings.extend(diagnosis.into_iter().flatten());
        let slot = Arc::clone(&prepared.slot);
        let delivered = prepared.finish(&connection, &answers, &findings, auto_commit)?;
        match delivered {
            Delivered { answer, commit: None } => answer,
            Delivered { answer, commit: Some((token, ticket)) } => {
                once_committed(slot, token, ticket, answer).await
            }
        }
    })))
}

/// A WAIT that waits for what is slow. Dropped before it is finished, as a cancel does, it leaves no
/// token.
struct Prepared {
    slot: Arc<Slot>,
    path: ScopePath,
    wait: Serial,
    /// When it came: what is filled in later is not newer.
    at: Millis,
    finished: bool,
}

impl Prepared {
    fn finish(
        mut self,
        connection: &Connection,
        answers: &BTreeMap<String, String>,
        findings: &Findings,
        auto_commit: bool,
    ) -> Result<Delivered, ErrorObject> {
        self.finished = true;
        let mut session = self.slot.lock();
        let delivery = session
            .finish(self.at, &self.path, self.wait, answers, findings)
            .map_err(|refusal| convert::error(&refusal))?;
        delivered(&mut session, connection, self.at, delivery, auto_commit)
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        if !self.finished {
            self.slot.lock().abandon(&self.path, self.wait);
        }
    }
}

/// The longest body that a generator may answer, in bytes: that of a template's.
const ANSWER_BYTES_MAX: usize = 256 << 10;

/// Asks the client for the bodies of its generators, all at once. Those that are late, fail or have
/// nothing to say are left out; an answer that is none is reported besides.
fn ask(
    peer: &Peer,
    scope: &Scope,
    asks: Vec<Ask>,
    deadline: Duration,
    notes: &Notes,
) -> impl Future<Output = BTreeMap<String, String>> + Send + use<> {
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
            let (peer, notes) = (peer.clone(), notes.clone());
            async move {
                let Ok(answer) = tokio::time::timeout_at(until, answer).await else {
                    notes.computed(&ask.generator, &Computed::Late);
                    return None;
                };
                let computed = answer.map_or(Ok(None), computed);
                let body = computed.clone().ok().flatten();
                let said = body.map_or(Computed::Nothing, Computed::Body);
                notes.computed(&ask.generator, &said);
                match computed {
                    Ok(body) => Some((ask.generator, body?)),
                    Err(why) => {
                        let why = format!("reminder {:?} was left out: {why}", ask.generator);
                        let error = ErrorObject::new(ErrorKind::InvalidParams, why);
                        peer.problem("reminder/compute", &error);
                        None
                    }
                }
            }
        })
        .collect();
    async move { join_all(questions).await.into_iter().flatten().collect() }
}

/// The body of an answer, `None` for silence.
fn computed(answer: serde_json::Value) -> Result<Option<String>, String> {
    // Members that may be left out elsewhere may not here: what was meant could be either.
    let has_body = answer.as_object().is_some_and(|members| members.contains_key("body"));
    let result = has_body.then(|| ComputeResult::deserialize(answer));
    match result {
        Some(Ok(ComputeResult { body: Some(body) })) if body.len() > ANSWER_BYTES_MAX => {
            Err(format!(
                "its body has {} bytes, and at most {ANSWER_BYTES_MAX} are told: say less",
                body.len()
            ))
        }
        Some(Ok(ComputeResult { body })) => Ok(body),
        _ => Err("its answer is not {body: text or null}".to_owned()),
    }
}

/// The answer to a WAIT whose delivery is complete.
struct Delivered {
    answer: Answer,
    /// The commit that it has to wait for.
    commit: Option<(String, Ticket)>,
}

fn delivered(
    session: &mut Kept,
    connection: &Connection,
    now: Millis,
    delivery: Delivery,
    auto_commit: bool,
) -> Result<Delivered, ErrorObject> {
    for Problem { id, message } in &delivery.problems {
        let error = ErrorObject::new(
            ErrorKind::InvalidParams,
            format!("reminder {id:?} was left out: {message}"),
        );
        connection.peer().problem("reminder/wait", &error);
    }
    let mut commit = None;
    if auto_commit {
        let token = delivery.token.clone();
        session.catch_up(When::Now);
        let receipt =
            session.commit(now, &token, None, None).map_err(|refusal| convert::error(&refusal))?;
        let kept = session.keep_commit(&token, receipt.record.is_some()).map_err(|error| {
            give_up(session, &token);
            convert::store_error(&error)
        })?;
        commit = kept.map(|ticket| (token, ticket));
    }
    Ok(Delivered { answer: answer(&convert::delivery(delivery, auto_commit)), commit })
}

/// Answers a WAIT that committed itself once that is durable.
async fn once_committed(slot: Arc<Slot>, token: String, ticket: Ticket, answer: Answer) -> Answer {
    let kept = ticket.wait().await;
    let mut session = slot.lock();
    session.catch_up(When::Behind);
    match kept {
        Ok(()) => answer,
        Err(error) => {
            give_up(&mut session, &token);
            Err(convert::store_error(&error))
        }
    }
}

/// A token that its client never heard of.
fn give_up(session: &mut Kept, token: &str) {
    if let Err(refusal) = session.release(token) {
        tracing::debug!(?refusal, "a commit that was undone had expired");
    }
}

/// `reminder/commit`. It takes effect at once and is answered when it is durable; where that fails
/// it is undone, and the token may be committed again.
pub fn commit(call: &Call<'_>) -> Outcome {
    committed(call).unwrap_or_else(|error| Outcome::Now(Err(error)))
}

fn committed(call: &Call<'_>) -> Result<Outcome, ErrorObject> {
    let CommitParams { token, entries, placement, record } = call.params()?;
    let slot = of_token(call.daemon, &token)?;
    let mut session = slot.lock();
    session.catch_up(When::Now);
    let placement = match (placement, record) {
        (placement, Some(false)) => {
            let place = placement.unwrap_or_default();
            Some(format!("{place} (no record kept)").trim().to_owned())
        }
        (placement, _) => placement,
    };
    let receipt = session
        .commit(call.at, &token, entries.as_deref(), placement)
        .map_err(|refusal| token_error(&refusal, &token))?;
    let ticket = if receipt.already {
        // The first one may be on its way: neither is answered before it arrived.
        session.under_way(&token)
    } else {
        let tells = receipt.record.is_some();
        session.keep_commit(&token, tells).map_err(|error| convert::store_error(&error))?
    };
    drop(session);
    let Receipt { record, committed, held, already } = receipt;
    let record = record.map(convert::wire_record);
    let answer = answer(&CommitResult { record, committed, held, already });
    let Some(ticket) = ticket else { return Ok(Outcome::Now(answer)) };
    Ok(Outcome::Later(Box::pin(async move {
        let kept = ticket.wait().await;
        slot.lock().catch_up(When::Behind);
        kept.map_err(|error| convert::store_error(&error))?;
        answer
    })))
}

/// `reminder/release`
pub fn release(call: &Call<'_>) -> Outcome {
    let released = call.params().and_then(|params: ReleaseParams| {
        let released = of_token(call.daemon, &params.token).and_then(|slot| {
            let mut session = slot.lock();
            session.catch_up(When::Behind);
            session.release(&params.token).map_err(|refusal| token_error(&refusal, &params.token))
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
            "token {token} is of a session that is not open here, or of a daemon that is gone before \
             it was committed: nothing is told with it now (open its session, then send \
             reminder/wait again)"
        ),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_is_a_body_or_silence_and_nothing_else() {
        assert_eq!(computed(json!({"body": "b", "more": 1})), Ok(Some("b".to_owned())));
        assert_eq!(computed(json!({"body": null})), Ok(None));
        for answer in [json!({"body": 5}), json!("x"), json!({}), json!(null), json!(["b"])] {
            let why = computed(answer.clone()).expect_err(&answer.to_string());
            assert!(why.contains("not {body: text or null}"), "{answer}: {why}");
        }
        let long = json!({"body": "x".repeat(ANSWER_BYTES_MAX + 1)});
        assert!(computed(long).expect_err("too long").contains("say less"));
    }
}
