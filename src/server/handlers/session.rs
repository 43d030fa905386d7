//! Sessions: opening, forking, closing, listing; and the clock that scripts move.

use std::collections::BTreeSet;
use std::sync::Arc;

use reminderd_protocol::NoParams;
use reminderd_protocol::error::{ErrorKind, ErrorObject};
use reminderd_protocol::initialize::{ClockParams, ClockResult};
use reminderd_protocol::session::{
    OpenState, RecordsReport, SessionCloseParams, SessionForkParams, SessionLife,
    SessionOpenParams, SessionOpenResult, SessionSummary,
};
use serde_json::value::RawValue;

use super::{Call, answer, convert, count_skipped, internal};
use crate::engine::{Millis, Opening, ScopePath, Session};
use crate::server::configured::Configured;
use crate::server::daemon::{Daemon, Life, Slot, Taken};
use crate::server::tape::Notes;
use crate::server::{Answer, Outcome};
use crate::store::Ticket;

/// The longest name of a session, in bytes.
const NAME_BYTES_MAX: usize = 1024;

fn check_name(session: &str) -> Result<(), ErrorObject> {
    if session.is_empty() || session.len() > NAME_BYTES_MAX {
        return Err(ErrorObject::new(
            ErrorKind::InvalidParams,
            format!("a session's name has 1 to {NAME_BYTES_MAX} bytes: give it another"),
        ));
    }
    Ok(())
}

/// `session/open`. What is stored is read beside the connection's path; the messages behind this one
/// wait for it.
pub fn open(call: &Call<'_>) -> Outcome {
    opened(call).unwrap_or_else(|error| Outcome::Now(Err(error)))
}

/// Answers once a session's lease is ours and its first lines are durable. It is there before that,
/// for the messages behind this one.
fn once_taken(daemon: &Arc<Daemon>, taken: Taken, answer: Answer) -> Outcome {
    if taken.ticket.outcome() == Some(Ok(())) {
        return Outcome::Now(answer);
    }
    let daemon = Arc::clone(daemon);
    Outcome::Later(Box::pin(async move {
        match taken.ticket.clone().wait().await {
            Ok(()) => answer,
            Err(error) => {
                daemon.drop_refused(&taken);
                Err(convert::store_error(&error))
            }
        }
    }))
}

/// Answers once the session that another connection opened is known to be ours.
fn once_joined(ticket: Ticket, answer: Answer) -> Outcome {
    if ticket.outcome() == Some(Ok(())) {
        return Outcome::Now(answer);
    }
    Outcome::Later(Box::pin(async move {
        ticket.wait().await.map_err(|error| convert::store_error(&error))?;
        answer
    }))
}

fn opened(call: &Call<'_>) -> Result<Outcome, ErrorObject> {
    let params: SessionOpenParams = call.params()?;
    let session = params.session.clone();
    check_name(&session)?;
    let convert::Parsed { mut opening, unreadable, skipped } = convert::opening(params)?;
    let options = call.connection.client().map(|client| &client.options);
    let trusted = options.and_then(|options| options["trusted"].as_bool());
    opening.trusted = opening.trusted.or(trusted);
    let given = options.map(|options| &options["config"]).filter(|given| !given.is_null());
    opening.configuration_file = given.map(|given| convert::value(given.clone()));
    let daemon = Arc::clone(call.daemon);
    let (connection, at, notes) = (call.connection.id(), call.at, call.notes.clone());
    Ok(Outcome::First(Box::pin(async move {
        let root = opening.root.clone();
        let opened = daemon.open(&session, root.as_deref(), connection, at, &notes, |session| {
            let configured = configure(&daemon, session, &opening, at)?;
            let root = opening.root.as_deref().or(session.root());
            notes.configured(|| daemon.configuration().standing(root));
            let opened = session.open(at, opening).map_err(|refusal| convert::error(&refusal))?;
            count_skipped(session, at, skipped)?;
            let root =
                session.scope(&ScopePath::ROOT).map_err(|refusal| convert::error(&refusal))?;
            Ok((opened, configured, convert::roster(root)))
        });
        let ((opened, configured, roster), life) = match opened.await {
            Ok(opened) => opened,
            Err(error) => return Outcome::Now(Err(error)),
        };
        daemon.watch_configuration();
        daemon.tell_troubles(connection, &configured.troubles);
        let (state, taken) = match life {
            Life::Live(ticket) => (OpenState::Live, Err(ticket)),
            Life::Restored(taken) => (OpenState::Restored, Ok(taken)),
            Life::New(taken) => (OpenState::New, Ok(taken)),
        };
        let answer = answer(&SessionOpenResult {
            session,
            state,
            records: convert::records_report(opened, unreadable),
            roster,
            untrusted: configured.untrusted,
        });
        match taken {
            Ok(taken) => once_taken(&daemon, taken, answer),
            Err(ticket) => once_joined(ticket, answer),
        }
    })))
}

/// Takes over the configuration of a session that is being opened, before anything else of the
/// opening: that may name what is configured.
fn configure(
    daemon: &Daemon,
    session: &mut Session,
    opening: &Opening,
    at: Millis,
) -> Result<Configured, ErrorObject> {
    let root = opening.root.as_deref().or(session.root()).map(str::to_owned);
    let trusted = opening.trusted.unwrap_or(session.is_trusted());
    let given = opening.configuration_file.as_ref().or(session.configuration_file()).cloned();
    daemon.configure(session, root.as_deref(), trusted, given.as_ref(), at)
}

/// `session/fork`
pub fn fork(call: &Call<'_>) -> Outcome {
    forked(call).unwrap_or_else(|error| Outcome::Now(Err(error)))
}

fn forked(call: &Call<'_>) -> Result<Outcome, ErrorObject> {
    let params: SessionForkParams = call.params()?;
    check_name(&params.into)?;
    let source = call.daemon.slot(&params.session, call.at)?;
    let (worktree, report) = convert::fork(params.worktree, params.report);
    let forked = {
        let source = source.live()?;
        call.notes.source(source.id(), || source.snapshot());
        source
            .fork(&params.into, params.through.as_deref(), worktree, report)
            .map_err(|refusal| convert::error(&refusal))?
    };
    let daemon = Arc::clone(call.daemon);
    let (connection, at, notes) = (call.connection.id(), call.at, call.notes.clone());
    Ok(Outcome::First(Box::pin(async move {
        match adopted(&daemon, forked, connection, at, &notes).await {
            Ok((taken, answer)) => once_taken(&daemon, taken, answer),
            Err(error) => Outcome::Now(Err(error)),
        }
    })))
}

/// Takes in a fork, under the configuration of where it now is.
async fn adopted(
    daemon: &Arc<Daemon>,
    mut forked: Session,
    connection: u64,
    at: Millis,
    notes: &Notes,
) -> Result<(Taken, Answer), ErrorObject> {
    let root = forked.root().map(str::to_owned);
    daemon.configuration().look(root.as_deref()).await;
    let (trusted, given) = (forked.is_trusted(), forked.configuration_file().cloned());
    let configured = daemon.configure(&mut forked, root.as_deref(), trusted, given.as_ref(), at)?;
    // What a fork begins with is its first line.
    drop(forked.take_lines());
    notes.configured(|| daemon.configuration().standing(root.as_deref()));
    let root = forked.scope(&ScopePath::ROOT).map_err(|refusal| convert::error(&refusal))?;
    let held = root.history.records().iter().filter(|delivered| delivered.lost.is_none());
    let result = SessionOpenResult {
        records: RecordsReport {
            accepted: held.map(|delivered| delivered.record.id.clone()).collect(),
            rejected: Vec::new(),
        },
        session: forked.id().to_owned(),
        state: OpenState::New,
        roster: convert::roster(root),
        untrusted: configured.untrusted,
    };
    let taken = daemon.adopt(forked, connection, at).await?;
    daemon.tell_troubles(connection, &configured.troubles);
    Ok((taken, answer(&result)))
}

/// `session/close`. Where the store cannot keep what was written behind, the answer says so. What is
/// only stored can be erased all the same.
pub fn close(call: &Call<'_>) -> Outcome {
    let SessionCloseParams { session, forget } = match call.params() {
        Ok(params) => params,
        Err(error) => return Outcome::Now(Err(error)),
    };
    match call.daemon.close(&session, call.at) {
        Ok(_) if forget => once_done(vec![call.daemon.store().forget(&session)]),
        Ok(tickets) => once_done(tickets),
        Err(_) if forget => {
            let daemon = Arc::clone(call.daemon);
            Outcome::First(Box::pin(async move {
                match daemon.erase(&session).await {
                    Ok(ticket) => once_done(vec![ticket]),
                    Err(error) => Outcome::Now(Err(error)),
                }
            }))
        }
        Err(unknown) => Outcome::Now(Err(unknown)),
    }
}

/// Answers once the store is done.
fn once_done(tickets: Vec<Ticket>) -> Outcome {
    if tickets.iter().all(|ticket| ticket.outcome() == Some(Ok(()))) {
        return Outcome::Now(Ok(RawValue::NULL.to_owned()));
    }
    Outcome::Applied(Box::pin(async move {
        for ticket in tickets {
            ticket.wait().await.map_err(|error| convert::store_error(&error))?;
        }
        Ok(RawValue::NULL.to_owned())
    }))
}

/// `session/list`. The stored ones are read beside the connection's path.
pub fn list(call: &Call<'_>) -> Outcome {
    if let Err(error) = call.params::<NoParams>() {
        return Outcome::Now(Err(error));
    }
    let live: Vec<_> = call.daemon.slots().iter().map(|slot| summary(slot)).collect();
    let store = Arc::clone(call.daemon.store());
    let listed = move || {
        let stored = store.list().map_err(|error| convert::store_error(&error))?;
        let mut all = live;
        let names: BTreeSet<_> = all.iter().map(|one| one.session.clone()).collect();
        let stored = stored.into_iter().filter(|one| !names.contains(&one.session));
        all.extend(stored.map(|one| SessionSummary {
            session: one.session,
            root: one.root,
            state: SessionLife::Stored,
            turn: None,
            open_tokens: 0,
            last_active: one.active,
        }));
        all.sort_by(|one, two| one.session.cmp(&two.session));
        answer(&all)
    };
    if !call.daemon.store().outlives_process() {
        return Outcome::Now(listed());
    }
    Outcome::Later(Box::pin(async move {
        tokio::task::spawn_blocking(listed).await.unwrap_or_else(|error| Err(internal(&error)))
    }))
}

fn summary(slot: &Slot) -> SessionSummary {
    let session = slot.lock();
    let root = session.scope(&ScopePath::ROOT).ok();
    SessionSummary {
        session: session.id().to_owned(),
        root: session.root().map(str::to_owned),
        state: SessionLife::Live,
        turn: root.and_then(|root| root.turn.as_ref()).map(|turn| turn.id.clone()),
        open_tokens: session.open_tokens() as u64,
        last_active: slot.last_active(),
    }
}

/// `reminderd/clock`
pub fn clock(call: &Call<'_>) -> Outcome {
    let moved = call.params().and_then(|params: ClockParams| {
        match call.daemon.surroundings().advance(params.advance_ms) {
            Some(now) => answer(&ClockResult { now }),
            None => Err(ErrorObject::new(
                ErrorKind::MethodNotFound,
                "reminderd/clock moves the clock of a deterministic daemon alone: this one has \
                 the system's",
            )),
        }
    });
    Outcome::Now(moved)
}
