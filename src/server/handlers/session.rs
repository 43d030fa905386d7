//! Sessions: opening, forking, closing, listing; and the clock that scripts move.

use reminderd_protocol::NoParams;
use reminderd_protocol::error::{ErrorKind, ErrorObject};
use reminderd_protocol::initialize::{ClockParams, ClockResult};
use reminderd_protocol::session::{
    OpenState, RecordsReport, SessionCloseParams, SessionForkParams, SessionLife,
    SessionOpenParams, SessionOpenResult, SessionSummary,
};
use serde_json::value::RawValue;

use super::{Call, answer, convert};
use crate::engine::ScopePath;
use crate::server::{Answer, Outcome};

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

/// `session/open`
pub fn open(call: &Call<'_>) -> Outcome {
    Outcome::Now(opened(call))
}

fn opened(call: &Call<'_>) -> Answer {
    let params: SessionOpenParams = call.params()?;
    let session = params.session.clone();
    check_name(&session)?;
    let (deny, own) = (params.deny.clone(), params.own.clone());
    let convert::Parsed { mut opening, unreadable, skipped } = convert::opening(params)?;
    let client = call.connection.client();
    let trusted = client.and_then(|client| client.options["trusted"].as_bool());
    opening.trusted = opening.trusted.or(trusted);
    let ((opened, roster), is_new) = call.daemon.open(&session, call.at, |session| {
        let opened = session.open(call.at, opening).map_err(|refusal| convert::error(&refusal))?;
        call.count_skipped(session, skipped)?;
        drop(session.take_lines());
        let root = session.scope(&ScopePath::ROOT).map_err(|refusal| convert::error(&refusal))?;
        Ok((opened, convert::roster(root)))
    })?;
    let slot = call.daemon.slot(&session, call.at)?;
    slot.files().restrict(&slot.lock(), &deny, &own);
    answer(&SessionOpenResult {
        session,
        state: if is_new { OpenState::New } else { OpenState::Live },
        records: convert::records_report(opened, unreadable),
        roster,
        untrusted: Vec::new(),
    })
}

/// `session/fork`
pub fn fork(call: &Call<'_>) -> Outcome {
    Outcome::Now(forked(call))
}

fn forked(call: &Call<'_>) -> Answer {
    let params: SessionForkParams = call.params()?;
    check_name(&params.into)?;
    let source = call.daemon.slot(&params.session, call.at)?;
    let (worktree, report) = convert::fork(params.worktree, params.report);
    let forked = source
        .lock()
        .fork(&params.into, params.through.as_deref(), worktree, report)
        .map_err(|refusal| convert::error(&refusal))?;
    let root = forked.scope(&ScopePath::ROOT).map_err(|refusal| convert::error(&refusal))?;
    let held = root.history.records().iter().filter(|delivered| delivered.lost.is_none());
    let result = SessionOpenResult {
        records: RecordsReport {
            accepted: held.map(|delivered| delivered.record.id.clone()).collect(),
            rejected: Vec::new(),
        },
        session: params.into,
        state: OpenState::New,
        roster: convert::roster(root),
        untrusted: Vec::new(),
    };
    call.daemon.adopt(forked)?;
    answer(&result)
}

/// `session/close`
pub fn close(call: &Call<'_>) -> Outcome {
    let closed = call.params().and_then(|params: SessionCloseParams| {
        call.daemon.close(&params.session, call.at).map(|()| RawValue::NULL.to_owned())
    });
    Outcome::Now(closed)
}

/// `session/list`
pub fn list(call: &Call<'_>) -> Outcome {
    let listed = call.params().and_then(|_: NoParams| {
        let mut summaries = Vec::new();
        for slot in call.daemon.slots() {
            let session = slot.lock();
            let root = session.scope(&ScopePath::ROOT).ok();
            summaries.push(SessionSummary {
                session: session.id().to_owned(),
                root: session.root().map(str::to_owned),
                state: SessionLife::Live,
                turn: root.and_then(|root| root.turn.as_ref()).map(|turn| turn.id.clone()),
                open_tokens: session.open_tokens() as u64,
                last_active: slot.last_active(),
            });
        }
        answer(&summaries)
    });
    Outcome::Now(listed)
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
