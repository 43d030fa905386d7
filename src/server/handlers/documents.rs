//! What the person does in the editor: the texts and versions that diagnostics are about.

use reminderd_protocol::error::ErrorObject;
use reminderd_protocol::files::{
    DidChangeParams, DidChangeWatchedFilesParams, DidCloseParams, DidOpenParams, DidSaveParams,
};
use serde_json::value::RawValue;

use super::checks::once_seen;
use super::{Call, convert};
use crate::files::{self, identity};
use crate::server::Outcome;
use crate::server::looks::{self, Seen};
use crate::server::tape::Glimpse;

/// The file was deleted, in the words of the Language Server Protocol.
const DELETED: i64 = 3;

fn done(result: Result<(), ErrorObject>) -> Outcome {
    Outcome::Now(result.map(|()| RawValue::NULL.to_owned()))
}

/// `textDocument/didOpen`
pub fn opened(call: &Call<'_>) -> Outcome {
    done(call.params().map(|params: DidOpenParams| {
        let document = params.text_document;
        let path = identity::path_of(&document.uri);
        let text = document.text.clone();
        call.daemon.editors().open(call.daemon.files(), &path, call.connection.id(), text);
        call.daemon.checks().with(|it| it.open(&path, document.version, document.text));
    }))
}

/// `textDocument/didChange`
pub fn changed(call: &Call<'_>) -> Outcome {
    done(call.params().map(|params: DidChangeParams| {
        let path = identity::path_of(&params.text_document.uri);
        let changes = convert::changes(params.content_changes);
        let version = params.text_document.version;
        call.daemon.editors().touch(&path, call.connection.id(), true);
        call.daemon.checks().with(|it| it.change(&path, version, &changes));
    }))
}

/// `textDocument/didSave`. What is on disk is as the document.
pub fn saved(call: &Call<'_>) -> Outcome {
    done(call.params().map(|params: DidSaveParams| {
        let path = identity::path_of(&params.text_document.uri);
        call.daemon.editors().save(call.daemon.files(), &path, params.text);
    }))
}

/// `textDocument/didClose`
pub fn closed(call: &Call<'_>) -> Outcome {
    done(call.params().map(|params: DidCloseParams| {
        let path = identity::path_of(&params.text_document.uri);
        if call.daemon.editors().close(&path, call.connection.id()) {
            call.daemon.checks().with(|it| it.close(&path));
        }
    }))
}

/// `workspace/didChangeWatchedFiles`. A file that is said to be gone loses its results once it is
/// not there any more.
pub fn watched(call: &Call<'_>) -> Outcome {
    let params: DidChangeWatchedFilesParams = match call.params() {
        Ok(params) => params,
        Err(error) => return Outcome::Now(Err(error)),
    };
    for change in &params.changes {
        call.daemon.files().hint(&identity::path_of(&change.uri));
    }
    let gone = params.changes.iter().filter(|change| change.change_type == DELETED);
    let gone: Vec<_> = gone.map(|change| identity::path_of(&change.uri)).collect();
    if gone.is_empty() {
        return done(Ok(()));
    }
    let readings = call.daemon.checks().with(|it| it.look_for(gone));
    let readings = match readings {
        Ok(readings) => readings,
        Err(refusal) => return Outcome::Now(Err(convert::error(&refusal))),
    };
    let looks = readings.into_iter().map(|reading| {
        let seen = reading.clone();
        let (played, notes) = (call.daemon.played().cloned(), call.notes.clone());
        looks::begin(call.daemon, reading, async move {
            let is_gone = match played {
                Some(played) => played.is_gone(&seen.path),
                None => files::is_gone(&seen.path).await,
            };
            notes.see(|| Glimpse::Gone(seen.path.clone(), is_gone));
            is_gone.then_some(Seen::Gone(seen))
        })
    });
    once_seen(looks.collect())
}
