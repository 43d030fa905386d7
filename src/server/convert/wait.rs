//! The WAIT, its explanation, and what an opening made of records.

use super::{Result, path, wire_phase, wire_record};
use crate::engine::{
    Delivered, Delivery, Explanation, Findings, Limit, Opened, Seam, WaitRequest, Waiter,
};
use reminderd_protocol::roster::ExplainRow;
use reminderd_protocol::session::{RecordsReport, RejectedRecord};
use reminderd_protocol::wait as wire_wait;

/// `reminder/wait`. A seam that this build does not know counts as unsaid.
pub fn wait(params: wire_wait::WaitParams, waiter: Waiter) -> Result<WaitRequest> {
    Ok(WaitRequest {
        scope: path(&params.scope)?,
        seam: match params.seam {
            Some(wire_wait::Seam::Prompt) => Seam::Prompt,
            Some(wire_wait::Seam::Tools) => Seam::Tools,
            Some(wire_wait::Seam::Continuation) => Seam::Continuation,
            Some(wire_wait::Seam::Unknown(_)) | None => Seam::Unsaid,
        },
        turn: params.turn,
        history: params.history.map(|history| history.records),
        limit: params.limit.map_or_else(Limit::default, |limit| Limit {
            bytes: limit.bytes,
            chars: limit.chars,
            utf16: limit.utf16,
            tokens: limit.tokens,
        }),
        waiter,
        prepared: Findings::new(),
    })
}

/// The answer to a WAIT.
pub fn delivery(delivery: Delivery, committed: bool) -> wire_wait::Delivery {
    let record = delivery.record.clone().map(wire_record);
    let entries = delivery.record.into_iter().flat_map(|record| record.entries);
    wire_wait::Delivery {
        token: delivery.token,
        phase: wire_phase(delivery.phase),
        entries: entries
            .zip(delivery.prices)
            .map(|(entry, tokens)| wire_wait::Entry {
                id: entry.id,
                entry_type: entry.entry_type,
                key: entry.key,
                label: entry.label,
                body: entry.body,
                tokens,
            })
            .collect(),
        message: delivery
            .content
            .map(|content| wire_wait::Message { role: wire_wait::Role::User, content }),
        record,
        row: delivery.row,
        held: delivery
            .held
            .into_iter()
            .map(|held| wire_wait::Held {
                entry_type: held.entry_type,
                key: held.key,
                reason: held.reason.to_owned(),
            })
            .collect(),
        tokens: delivery.tokens,
        oversize: delivery.oversize,
        replay: delivery.replay.map(|told| told.iter().map(replay).collect()),
        committed,
    }
}

/// A committed record that the host has lost, and where it stood: in the host's own words, or else
/// the turn.
fn replay(delivered: &Delivered) -> wire_wait::Replay {
    let anchor = delivered.placement.as_ref().unwrap_or(&delivered.record.turn);
    let anchor = anchor.clone();
    wire_wait::Replay { record: wire_record(delivered.record.clone()), anchor }
}

/// A row of `reminder/explain`.
pub fn explanation(row: Explanation) -> ExplainRow {
    ExplainRow {
        id: row.id,
        kind: row.kind,
        speaks: row.speaks,
        reason: row.reason,
        tokens: row.tokens,
        spent: (row.spent.entries > 0).then(|| super::spent(row.spent)),
        next: row.next,
    }
}

/// What became of the records that an opening brought.
pub fn records_report(opened: Opened, unreadable: Vec<RejectedRecord>) -> RecordsReport {
    let rejected = opened
        .rejected
        .into_iter()
        .map(|rejected| RejectedRecord { id: rejected.id, reason: rejected.reason });
    RecordsReport {
        accepted: opened.accepted,
        rejected: unreadable.into_iter().chain(rejected).collect(),
    }
}
