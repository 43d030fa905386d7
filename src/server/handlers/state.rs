//! What the daemon believes.

use futures_util::future::join;
use reminderd_protocol::error::ErrorObject;
use reminderd_protocol::scope::Scope;

use super::{Call, answer, convert};
use crate::diagnostics::EditedFile;
use crate::files;
use crate::server::Outcome;

/// `session/state`. What of it is still looked at on the disk is awaited off the connection's path.
pub fn state(call: &Call<'_>) -> Outcome {
    stated(call).unwrap_or_else(|error| Outcome::Now(Err(error)))
}

fn stated(call: &Call<'_>) -> Result<Outcome, ErrorObject> {
    let wire_scope: Scope = call.params()?;
    let path = convert::path(&wire_scope)?;
    let slot = call.daemon.slot(&wire_scope.session, call.at)?;
    let session = slot.live()?;
    let scope = session.scope(&path).map_err(|refusal| convert::error(&refusal))?;
    let mut state = convert::state(&session, scope, wire_scope);
    let health = call.daemon.files().health();
    let checks = call.daemon.checks();
    let skipped = checks.with(|it| it.skipped());
    let edited = checks.edited_files(&session, scope);
    let counted = slot.files().counted(&slot, &session);
    let known = slot.files().count(&session);
    drop(session);
    let stated = move |count, edited: &[EditedFile]| {
        state.files = convert::watched_files(count, health);
        convert::add_checks(&mut state, edited, skipped);
        answer(&state)
    };
    Ok(match (counted, edited) {
        (Ok(count), Ok(edited)) => Outcome::Now(stated(count, &edited)),
        (counted, edited) => Outcome::Later(Box::pin(async move {
            let counted = async {
                match counted {
                    Ok(count) => count,
                    Err(later) => {
                        let counted = tokio::time::timeout(files::DEADLINE, later).await;
                        counted.ok().and_then(Result::ok).unwrap_or(known)
                    }
                }
            };
            let edited = async {
                match edited {
                    Ok(edited) => edited,
                    Err(excerpt) => excerpt.edited_files(files::DEADLINE).await,
                }
            };
            let (count, edited) = join(counted, edited).await;
            stated(count, &edited)
        })),
    })
}

/// `task/list`. Reading is never a write.
pub fn tasks(call: &Call<'_>) -> Outcome {
    let tasks = call.params().and_then(|wire_scope: Scope| {
        let path = convert::path(&wire_scope)?;
        let slot = call.daemon.slot(&wire_scope.session, call.at)?;
        let session = slot.live()?;
        session.scope(&path).map_err(|refusal| convert::error(&refusal))?;
        let tasks = session.facts().tasks.all();
        answer(&tasks.into_iter().map(convert::wire_task).collect::<Vec<_>>())
    });
    Outcome::Now(tasks)
}
