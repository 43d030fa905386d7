//! What a scope does to files: reads, writes, forgets. That it did takes effect at once; what stands
//! in them is looked at in the session's lane, and a request is answered after that.

use std::collections::BTreeSet;
use std::sync::Arc;

use reminderd_protocol::error::ErrorObject;
use reminderd_protocol::files::{
    FileChangedParams, FileForgetParams, FileReadParams, FileWroteParams,
};
use reminderd_protocol::scope::Scope;
use serde_json::value::RawValue;
use tokio::sync::oneshot;

use super::{Call, convert};
use crate::engine::Event;
use crate::files::identity;
use crate::server::daemon::Daemon;
use crate::server::session_files::Snapshot;
use crate::server::{Connection, Outcome};

/// `file/read`
pub fn read(call: &Call<'_>) -> Outcome {
    call.params()
        .and_then(|params: FileReadParams| {
            let whole = !params.partial && params.pages.is_none();
            let text = params.text.filter(|_| whole);
            touched(call, &params.scope, &params.uri, text, Touch { wrote: false, whole })
        })
        .map_or_else(|error| Outcome::Now(Err(error)), taken)
}

/// `file/wrote`
pub fn wrote(call: &Call<'_>) -> Outcome {
    call.params()
        .and_then(|params: FileWroteParams| {
            touched(
                call,
                &params.scope,
                &params.uri,
                params.text,
                Touch { wrote: true, whole: false },
            )
        })
        .map_or_else(|error| Outcome::Now(Err(error)), taken)
}

/// `file/forget`
pub fn forget(call: &Call<'_>) -> Outcome {
    call.params()
        .and_then(|params: FileForgetParams| {
            let (scope, path) = convert::file(&params.scope, &params.uri)?;
            let slot = call.daemon.slot(&params.scope.session, call.at)?;
            slot.live()?.scope(&scope).map_err(|refusal| convert::error(&refusal))?;
            let forgotten = slot.files().forget(&slot, call.at, scope, path);
            forgotten.map(Some).map_err(|refusal| convert::error(&refusal))
        })
        .map_or_else(|error| Outcome::Now(Err(error)), taken)
}

#[derive(Clone, Copy)]
struct Touch {
    wrote: bool,
    whole: bool,
}

/// Notes that a file was touched, and takes its snapshot; of what is no file of this machine there
/// is none.
fn touched(
    call: &Call<'_>,
    wire_scope: &Scope,
    uri: &str,
    text: Option<String>,
    Touch { wrote, whole }: Touch,
) -> Result<Option<oneshot::Receiver<()>>, ErrorObject> {
    let (scope, path) = convert::file(wire_scope, uri)?;
    let slot = call.daemon.slot(&wire_scope.session, call.at)?;
    let serial = {
        let mut session = slot.live()?;
        let event = Event::Touched { path: path.clone(), wrote, whole };
        session.apply(call.at, &scope, event).map_err(|refusal| convert::error(&refusal))?;
        call.keep(&mut session);
        slot.files().follow(&session);
        session.newest()
    };
    if !identity::is_path(&path) {
        return Ok(None);
    }
    let mut snapshot = Snapshot::new(call.at, serial, text, call.notes);
    (snapshot.wrote, snapshot.starts) = (wrote, !wrote && !whole);
    let taken = slot.files().snapshot(&slot, scope, path, snapshot);
    taken.map(Some).map_err(|refusal| convert::error(&refusal))
}

fn taken(taken: Option<oneshot::Receiver<()>>) -> Outcome {
    let Some(taken) = taken else { return Outcome::Now(Ok(RawValue::NULL.to_owned())) };
    Outcome::Applied(Box::pin(async move {
        // A look that failed leaves the file unwatched, and the event in force.
        drop(taken.await);
        Ok(RawValue::NULL.to_owned())
    }))
}

/// Sends `file/changed` for the watched files that events name, until the connection is gone.
pub fn tell_changes(
    daemon: &Arc<Daemon>,
    connection: &Arc<Connection>,
) -> impl Future<Output = ()> + Send + use<> {
    let changes = daemon.files().changes();
    let (daemon, connection) = (Arc::downgrade(daemon), Arc::downgrade(connection));
    async move {
        loop {
            let named = changes.next().await;
            let (Some(daemon), Some(connection)) = (daemon.upgrade(), connection.upgrade()) else {
                return;
            };
            let slots = daemon.slots();
            let spelled = named.iter().flat_map(|path| {
                slots.iter().flat_map(|slot| slot.files().spellings(path)).collect::<Vec<_>>()
            });
            for path in spelled.collect::<BTreeSet<_>>() {
                let params = FileChangedParams { uri: identity::uri_of(&path) };
                if connection.peer().notify("file/changed", &params).is_err() {
                    return;
                }
            }
        }
    }
}
