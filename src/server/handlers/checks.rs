//! Edits, what checkers say of the edited files, and waiting for it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::join_all;
use reminderd_protocol::diagnostics::{DiagnosticPublishParams, PublishDiagnosticsParams};
use reminderd_protocol::error::ErrorObject;
use reminderd_protocol::files::{
    EditBeginParams, EditEndParams, EditSettleParams, EditSettleResult, SettledFile, VersionedUri,
};
use reminderd_protocol::scope::Scope;
use serde_json::value::RawValue;

use super::{Call, answer, convert};
use crate::diagnostics::{
    self, Bookkeeper, Outcome as Settled, Owner, Place, Reading, TEXT_BYTES_MAX,
};
use crate::engine::{Event, Refusal};
use crate::files::secrecy::Secrecy;
use crate::files::{self, identity};
use crate::server::checks::owner;
use crate::server::looks::{self, Seen};
use crate::server::tape::{Glimpse, Sight};
use crate::server::{Answer, Outcome};

/// The checker of a client that gave neither its own name nor a checker's.
const UNNAMED: &str = "language server";

fn settled_now<T>(result: Result<T, ErrorObject>) -> Result<T, Outcome> {
    result.map_err(|error| Outcome::Now(Err(error)))
}

fn null() -> Answer {
    Ok(RawValue::NULL.to_owned())
}

/// Whose edit it is, told to the bookkeeper while the session's turn cannot end; and what the
/// session says of its files.
fn for_owner<T>(
    call: &Call<'_>,
    scope: &Scope,
    act: impl FnOnce(&mut Bookkeeper, &Owner) -> Result<T, Refusal>,
) -> Result<(T, Look), ErrorObject> {
    let path = convert::path(scope)?;
    let slot = call.daemon.slot(&scope.session, call.at)?;
    let session = slot.live()?;
    let owner = owner(&session, &path);
    let acted = session.scope(&path).and_then(|known| {
        known.running()?;
        known.open_turn(None)?;
        call.daemon.checks().with(|it| act(it, &owner))
    });
    let acted = acted.map_err(|refusal| convert::error(&refusal))?;
    let secrecy = slot.files().secrecy(&session);
    Ok((acted, Look { owner, root: session.root().map(str::to_owned), secrecy }))
}

/// Whose files are looked at, from where, and what of them may be shown.
struct Look {
    owner: Owner,
    root: Option<String>,
    secrecy: Arc<Secrecy>,
}

/// `edit/begin`
pub fn begin(call: &Call<'_>) -> Outcome {
    let readings = call.params().and_then(|params: EditBeginParams| {
        let paths: Vec<_> = params.uris.iter().map(|uri| identity::path_of(uri)).collect();
        for_owner(call, &params.scope, |it, owner| it.begin(owner, &paths))
    });
    match settled_now(readings) {
        Ok((readings, look)) => look.at(call, readings),
        Err(outcome) => outcome,
    }
}

/// `edit/end`. An edit that was not made yields nothing.
pub fn end(call: &Call<'_>) -> Outcome {
    let readings = call.params().and_then(|params: EditEndParams| {
        let edit = |edited: &VersionedUri| (identity::path_of(&edited.uri), edited.version);
        let edits: Vec<_> = params.uris.iter().filter(|_| params.ok).map(edit).collect();
        let ended = for_owner(call, &params.scope, |it, owner| it.end(owner, &edits))?;
        touch(call, &params.scope, edits)?;
        Ok(ended)
    });
    match settled_now(readings) {
        Ok((readings, look)) => {
            // Who waits for an earlier edit waits for nothing any more.
            call.daemon.checks().ring();
            look.at(call, readings)
        }
        Err(outcome) => outcome,
    }
}

/// Notes that files were edited, for rules and skills.
fn touch(
    call: &Call<'_>,
    scope: &Scope,
    edits: Vec<(String, Option<i64>)>,
) -> Result<(), ErrorObject> {
    let path = convert::path(scope)?;
    let slot = call.daemon.slot(&scope.session, call.at)?;
    let mut session = slot.live()?;
    for (file, _) in edits {
        let event = Event::FileEdited { path: file };
        session.apply(call.at, &path, event).map_err(|refusal| convert::error(&refusal))?;
    }
    call.keep(&mut session);
    Ok(())
}

impl Look {
    /// Looks at edited files: which they really are, whether their content may be shown, and their
    /// texts, so that problems whose lines were only shifted are known again. The edit itself has
    /// taken effect.
    fn at(self, call: &Call<'_>, readings: Vec<Reading>) -> Outcome {
        let Self { owner, root, secrecy } = self;
        let daemon = call.daemon;
        let (on_disk, elsewhere): (Vec<_>, Vec<_>) =
            readings.into_iter().partition(|reading| identity::is_path(&reading.path));
        let place = Place { is_inside: root.is_none(), shows: true };
        daemon.checks().with(|it| {
            for reading in &elsewhere {
                it.place(&owner, reading, &reading.path, place);
                it.looked(reading);
            }
        });
        let root = root.map(PathBuf::from);
        let looks = on_disk.into_iter().map(|reading| {
            let (path, root, secrecy) = (reading.path.clone(), root.clone(), Arc::clone(&secrecy));
            let seen = (owner.clone(), reading.clone());
            let (played, notes) = (daemon.played().cloned(), call.notes.clone());
            looks::begin(daemon, reading, async move {
                let most = TEXT_BYTES_MAX as u64;
                let looked = match played {
                    Some(played) => played.edited(&path),
                    None => files::look_at_edited(path.clone(), root, secrecy, most).await,
                };
                notes.see(|| Glimpse::Edited(path, looked.as_ref().map(Sight::from)));
                Some(Seen::Edited(seen.0, seen.1, looked?))
            })
        });
        once_seen(looks.collect())
    }
}

/// Answers when the looks are done. A disk that hangs holds nobody up.
pub fn once_seen(looks: Vec<looks::Look>) -> Outcome {
    if looks.is_empty() {
        return Outcome::Now(null());
    }
    Outcome::Applied(Box::pin(async move {
        drop(tokio::time::timeout(files::DEADLINE, join_all(looks)).await);
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
        let (settling, _) = for_owner(call, &params.scope, |it, owner| {
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
