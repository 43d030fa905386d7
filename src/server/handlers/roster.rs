//! Who may speak, who would, and what was told.

use std::sync::Arc;

use futures_util::future::{OptionFuture, join};
use reminderd_protocol::error::{ErrorKind, ErrorObject};
use reminderd_protocol::history::{HistoryParams, HistoryResult};
use reminderd_protocol::roster::{ExplainResult, RosterRemoveResult};
use reminderd_protocol::scope::Scope;

use super::{Call, answer, convert};
use crate::engine::Findings;
use crate::files;
use crate::server::Outcome;

/// `roster/list`
pub fn list(call: &Call<'_>) -> Outcome {
    let listed = call.params().and_then(|scope: Scope| {
        let path = convert::path(&scope)?;
        let slot = call.daemon.slot(&scope.session, call.at)?;
        let session = slot.live()?;
        let scope = session.scope(&path).map_err(|refusal| convert::error(&refusal))?;
        answer(&convert::roster(scope))
    });
    Outcome::Now(listed)
}

/// `roster/remove`
pub fn remove(call: &Call<'_>) -> Outcome {
    let removed = call.apply(convert::remove);
    Outcome::Now(
        removed.and_then(|applied| answer(&RosterRemoveResult { removed: applied.changed })),
    )
}

/// `reminder/explain`. What has to be read from files first is read off the connection's path.
pub fn explain(call: &Call<'_>) -> Outcome {
    let read = call.params().and_then(|scope: Scope| {
        let path = convert::path(&scope)?;
        let slot = call.daemon.slot(&scope.session, call.at)?;
        let session = slot.live()?;
        let (prepared, excerpt) = call.daemon.checks().prepared(&session, &path);
        let wanted = session.wanted(call.at, &path, &prepared);
        let wanted = wanted.map_err(|refusal| convert::error(&refusal))?;
        let secrecy = slot.files().secrecy(&session);
        drop(session);
        Ok((slot, path, wanted, secrecy, prepared, excerpt))
    });
    let (slot, path, wanted, secrecy, mut prepared, excerpt) = match read {
        Ok(read) => read,
        Err(error) => return Outcome::Now(Err(error)),
    };
    let now = call.at;
    let question = call.question(&path, files::DEADLINE);
    let findings = slot.files().look_at(&slot, question, &secrecy, wanted.clone());
    let unheard = call.daemon.files().health().and_then(|health| health.shortfall());
    let daemon = Arc::clone(call.daemon);
    let mut explained = move |findings: Findings| {
        prepared.extend(findings);
        let rows = slot.lock().explain(now, &path, &prepared);
        let mut rows = rows.map_err(|refusal| convert::error(&refusal))?;
        let of_files = rows.iter_mut().filter(|row| row.kind == "edited-files");
        for (row, unheard) in of_files.zip(&unheard) {
            row.reason.push_str(&format!("; compared without file events ({unheard})"));
        }
        answer(&ExplainResult { rows: rows.into_iter().map(convert::explanation).collect() })
    };
    if wanted.is_empty() {
        return Outcome::Now(explained(Findings::new()));
    }
    Outcome::Later(Box::pin(async move {
        let diagnosis = excerpt.map(|excerpt| excerpt.prepared(daemon, files::DEADLINE));
        let (mut findings, diagnosis) = join(findings, OptionFuture::from(diagnosis)).await;
        findings.extend(diagnosis.into_iter().flatten());
        explained(findings)
    }))
}

/// `reminder/history`
pub fn history(call: &Call<'_>) -> Outcome {
    let told = call.params().and_then(|params: HistoryParams| {
        let path = convert::path(&params.scope)?;
        let slot = call.daemon.slot(&params.scope.session, call.at)?;
        let session = slot.live()?;
        let scope = session.scope(&path).map_err(|refusal| convert::error(&refusal))?;
        let mut records = scope.history.records();
        if let Some(before) = &params.before {
            let end = scope.history.position(before).ok_or_else(|| {
                ErrorObject::new(
                    ErrorKind::BadRecord,
                    format!("{path} was never told record {before:?}: leave `before` out to begin with the newest"),
                )
            })?;
            records = &records[..end];
        }
        let limit = params.limit.and_then(|limit| usize::try_from(limit).ok());
        let limit = limit.unwrap_or(usize::MAX);
        let rows = records
            .iter()
            .rev()
            .filter(|delivered| !params.retained || delivered.lost.is_none())
            .take(limit)
            .map(convert::history_row);
        answer(&HistoryResult { records: rows.collect() })
    });
    Outcome::Now(told)
}
