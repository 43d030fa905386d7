//! Edits, what checkers say of the edited files, and waiting for it.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use reminderd_protocol::diagnostics::{DiagnosticPublishParams, PublishDiagnosticsParams};
use reminderd_protocol::error::ErrorObject;
use reminderd_protocol::files::{
    EditBeginParams, EditEndParams, EditSettleParams, EditSettleResult, SettledFile, VersionedUri,
};
use reminderd_protocol::scope::Scope;
use serde_json::value::RawValue;

use super::{Call, answer, convert};
use crate::diagnostics::{self, Bookkeeper, Outcome as Settled, Owner, Reading, TEXT_BYTES_MAX};
use crate::engine::Refusal;
use crate::files::{self, identity};
use crate::server::checks::owner;
use crate::server::daemon::Daemon;
use crate::server::{Answer, Outcome};

/// The checker of a client that gave neither its own name nor a checker's.
const UNNAMED: &str = "language server";

fn settled_now<T>(result: Result<T, ErrorObject>) -> Result<T, Outcome> {
    result.map_err(|error| Outcome::Now(Err(error)))
}

fn null() -> Answer {
    Ok(RawValue::NULL.to_owned())
}

/// Whose edit it is, told to the bookkeeper while the session's turn cannot end.
fn for_owner<T>(
    call: &Call<'_>,
    scope: &Scope,
    act: impl FnOnce(&mut Bookkeeper, &Owner) -> Result<T, Refusal>,
) -> Result<T, ErrorObject> {
    let path = convert::path(scope)?;
    let slot = call.daemon.slot(&scope.session, call.at)?;
    let session = slot.lock();
    let acted = session.scope(&path).and_then(|known| {
        known.running()?;
        known.open_turn(None)?;
        call.daemon.checks().with(|it| act(it, &owner(&session, &path)))
    });
    acted.map_err(|refusal| convert::error(&refusal))
}

/// `edit/begin`
pub fn begin(call: &Call<'_>) -> Outcome {
    let readings = call.params().and_then(|params: EditBeginParams| {
        let paths: Vec<_> = params.uris.iter().map(|uri| identity::path_of(uri)).collect();
        for_owner(call, &params.scope, |it, owner| it.begin(owner, &paths))
    });
    match settled_now(readings) {
        Ok(readings) => read(call.daemon, readings),
        Err(outcome) => outcome,
    }
}

/// `edit/end`. An edit that was not made yields nothing.
pub fn end(call: &Call<'_>) -> Outcome {
    let readings = call.params().and_then(|params: EditEndParams| {
        let edit = |edited: &VersionedUri| (identity::path_of(&edited.uri), edited.version);
        let edits: Vec<_> = params.uris.iter().filter(|_| params.ok).map(edit).collect();
        for_owner(call, &params.scope, |it, owner| it.end(owner, &edits))
    });
    match settled_now(readings) {
        Ok(readings) => {
            // Who waits for an earlier edit waits for nothing any more.
            call.daemon.checks().ring();
            read(call.daemon, readings)
        }
        Err(outcome) => outcome,
    }
}

/// Reads texts, so that problems whose lines were only shifted are known again. The edit itself has
/// taken effect.
fn read(daemon: &Arc<Daemon>, readings: Vec<Reading>) -> Outcome {
    let on_disk = |reading: &Reading| identity::is_path(&reading.path);
    let readings: Vec<_> = readings.into_iter().filter(on_disk).collect();
    if readings.is_empty() {
        return Outcome::Now(null());
    }
    let daemon = Arc::clone(daemon);
    Outcome::Later(Box::pin(async move {
        let paths: Vec<_> = readings.iter().map(|reading| reading.path.clone()).collect();
        let texts = files::texts(paths, TEXT_BYTES_MAX as u64);
        // A disk that hangs holds nobody up: problems are then compared without their places.
        let Ok(texts) = tokio::time::timeout(files::DEADLINE, texts).await else { return null() };
        for (reading, text) in readings.into_iter().zip(texts) {
            let before = daemon.checks().with(|it| it.text_on_disk(&reading));
            let is_gone = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
            if before.is_some() && text.as_ref().is_err_and(is_gone) {
                daemon.checks().with(|it| it.delete(&reading.path));
                continue;
            }
            let text: Option<Arc<str>> = text.ok().map(Arc::from);
            let both = before.as_deref().zip(text.as_deref());
            let edits = both.map(|(before, after)| diagnostics::line_edits(before, after));
            daemon.checks().with(|it| it.read(&reading, text, edits));
        }
        daemon.checks().ring();
        null()
    }))
}

/// `edit/settle`
pub fn settle(call: &Call<'_>) -> Outcome {
    let settling = call.params().and_then(|params: EditSettleParams| {
        // The answer names files as the client spelled them.
        let mut spelled = BTreeMap::new();
        let paths = params.uris.map(|uris| {
            let path_of = |uri: String| {
                let path = identity::path_of(&uri);
                spelled.insert(path.clone(), uri);
                path
            };
            uris.into_iter().map(path_of).collect()
        });
        let settling = for_owner(call, &params.scope, |it, owner| {
            Ok(it.settle(call.at, owner, paths, params.timeout_ms))
        })?;
        Ok((settling, spelled))
    });
    let (mut settling, spelled) = match settled_now(settling) {
        Ok(settling) => settling,
        Err(outcome) => return outcome,
    };
    let row = move |(path, outcome): (String, Settled)| SettledFile {
        uri: spelled.get(&path).cloned().unwrap_or(path),
        outcome: convert::outcome(outcome),
    };
    let told = move |outcomes: Vec<_>| {
        answer(&EditSettleResult { files: outcomes.into_iter().map(row).collect() })
    };
    if let Some(outcomes) = call.daemon.checks().settled_now(call.at, &mut settling) {
        return Outcome::Now(told(outcomes));
    }
    let daemon = Arc::clone(call.daemon);
    Outcome::Later(Box::pin(async move {
        told(daemon.checks().settled(daemon.surroundings(), settling).await)
    }))
}

/// `diagnostic/publish`
pub fn publish(call: &Call<'_>) -> Outcome {
    let published = call.params().and_then(|params: DiagnosticPublishParams| {
        let (path, report) = convert::publish(params, call.connection.id())?;
        let Some(report) = report else {
            call.daemon.checks().with(Bookkeeper::skip);
            return Ok(());
        };
        tell(call, &path, report)
    });
    Outcome::Now(published.and_then(|()| null()))
}

/// `textDocument/publishDiagnostics`
pub fn forward(call: &Call<'_>) -> Outcome {
    let published = call.params().and_then(|params: PublishDiagnosticsParams| {
        let client = call.connection.client();
        let named = client.and_then(|client| client.options["client"]["name"].as_str());
        let named = named.or_else(|| Some(client?.client.as_ref()?.0.as_str()));
        let name = named.unwrap_or(UNNAMED);
        let (path, report) = convert::report(params, call.connection.id(), name)?;
        tell(call, &path, report)
    });
    Outcome::Now(published.and_then(|()| null()))
}

fn tell(call: &Call<'_>, path: &str, report: diagnostics::Report) -> Result<(), ErrorObject> {
    let checks = call.daemon.checks();
    let concerns = checks.with(|it| it.publish(call.at, path, report));
    if concerns.map_err(|refusal| convert::error(&refusal))? {
        checks.ring();
    }
    Ok(())
}
