//! What a recording gives the daemon that plays it (`reminderd/surroundings`).

use reminderd_protocol::error::{ErrorKind, ErrorObject};
use reminderd_protocol::initialize::SurroundingsParams;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::Call;
use crate::engine::Material;
use crate::server::tape::{self, Client, Ledger};
use crate::server::{Application as _, Outcome, Served};

/// The randomness of a WAIT, as recordings have it.
#[derive(Deserialize)]
struct Random {
    token: String,
    record: String,
}

/// `reminderd/surroundings`
pub fn given(call: &Call<'_>) -> Outcome {
    Outcome::Now(taken(call).map(|()| RawValue::NULL.to_owned()))
}

fn taken(call: &Call<'_>) -> Result<(), ErrorObject> {
    let Some(played) = call.daemon.played() else {
        return Err(ErrorObject::new(
            ErrorKind::MethodNotFound,
            "reminderd/surroundings is for a daemon that plays a recording: this one has a machine",
        ));
    };
    let params: SurroundingsParams = call.params()?;
    let misfit = |why: String| ErrorObject::new(ErrorKind::InvalidParams, why);
    if let Some(closed) = params.closed
        && let Some(connection) = played.closed(closed)
    {
        Served(call.daemon.clone()).closed(&connection);
    }
    if let Some(client) = params.connection {
        let client: Client = tape::read("connection", client).map_err(misfit)?;
        if let Some(connection) = played.speaks(client, call.connection.peer()) {
            call.daemon.introduce(&connection);
        }
    }
    if let Some(random) = params.random {
        let Random { token, record } = tape::read("random", random).map_err(misfit)?;
        call.daemon.surroundings().give(Material { token, record });
    }
    if let Some(ledger) = params.ledger {
        let ledger: Ledger = tape::read("ledger", ledger).map_err(misfit)?;
        played.keep(ledger);
    }
    if params.unanswered {
        played.leave_unanswered();
    }
    let seen = params.seen.into_iter().map(|glimpse| tape::read("seen", glimpse));
    played.see(seen.collect::<Result<_, _>>().map_err(misfit)?);
    if let Some(standing) = params.configuration {
        call.daemon.configuration().play(tape::read("configuration", standing).map_err(misfit)?);
        call.daemon.take_over_configuration();
    }
    Ok(())
}
