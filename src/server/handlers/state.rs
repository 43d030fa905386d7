//! What the daemon believes.

use reminderd_protocol::scope::Scope;

use super::{Call, answer, convert};
use crate::server::Outcome;

/// `session/state`
pub fn state(call: &Call<'_>) -> Outcome {
    let state = call.params().and_then(|wire_scope: Scope| {
        let path = convert::path(&wire_scope)?;
        let slot = call.daemon.slot(&wire_scope.session, call.at)?;
        let session = slot.live()?;
        let scope = session.scope(&path).map_err(|refusal| convert::error(&refusal))?;
        let mut state = convert::state(&session, scope, wire_scope);
        state.files =
            convert::watched_files(slot.files().count(&session), call.daemon.files().health());
        let checks = call.daemon.checks();
        convert::add_checks(
            &mut state,
            &checks.edited_files(&session, scope),
            checks.with(|it| it.skipped()),
        );
        answer(&state)
    });
    Outcome::Now(state)
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
