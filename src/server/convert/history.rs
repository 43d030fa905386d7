//! What becomes of a conversation's history.

use super::{Reported, Result, on_scope, wire_record};
use crate::engine::{Delivered, Event, Retained};
use reminderd_protocol::history::{self as wire_history, CompactionEngine};
use reminderd_protocol::scope::Scope as WireScope;

/// `history/compacted`. A word that this build does not know changes nothing.
pub fn compacted(params: wire_history::HistoryCompactedParams) -> Result<Reported> {
    let retained = match params.retained {
        wire_history::Retained::None => Retained::None,
        wire_history::Retained::All => Retained::All,
        wire_history::Retained::Records(ids) => Retained::Records(ids),
        wire_history::Retained::Unknown(_) => {
            let nothing = Event::Compacted { retained: Retained::All, native: false };
            let reported = on_scope(params.scope, nothing)?;
            return Ok(Reported { event: None, ..reported }.skipping(["history.retained"]));
        }
    };
    let (native, skipped) = match params.engine {
        None | Some(CompactionEngine::Client) => (false, None),
        Some(CompactionEngine::Native) => (true, None),
        Some(CompactionEngine::Unknown(_)) => (false, Some("history.engine")),
    };
    Ok(on_scope(params.scope, Event::Compacted { retained, native })?.skipping(skipped))
}

/// `history/rewound`
pub fn rewound(params: wire_history::HistoryRewoundParams) -> Result<Reported> {
    on_scope(params.scope, Event::Rewound { through: params.through })
}

/// `history/cleared`
pub fn cleared(scope: WireScope) -> Result<Reported> {
    on_scope(scope, Event::Cleared)
}

/// `history/reported`
pub fn history_reported(params: wire_history::HistoryReportedParams) -> Result<Reported> {
    on_scope(params.scope, Event::HistoryReported { records: params.records })
}

/// A row of `reminder/history`.
pub fn history_row(delivered: &Delivered) -> wire_history::HistoryRow {
    wire_history::HistoryRow {
        at: delivered.at,
        retained: delivered.lost.is_none(),
        placement: delivered.placement.clone(),
        record: wire_record(delivered.record.clone()),
    }
}
