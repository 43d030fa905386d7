//! What a client puts in directly.

use super::{Reported, Result, invalid, on_scope, on_session};
use crate::engine::{Event, Lane};
use reminderd_protocol::queue::{
    AcknowledgeParams, EnqueueParams, ObserveParams, StageParams, WithdrawParams,
};
use reminderd_protocol::roster::Lane as WireLane;

/// `reminder/stage`
pub fn stage(params: StageParams) -> Result<Reported> {
    let (lane, skipped) = match params.lane {
        None | Some(WireLane::Mention) => (Lane::Mention, None),
        Some(WireLane::Skill) => (Lane::Skill, None),
        Some(WireLane::Compaction) => (Lane::Compaction, None),
        Some(WireLane::Steering) => (Lane::Steering, None),
        // The other lanes are not a client's to stage in.
        Some(_) => (Lane::Mention, Some("stage.lane")),
    };
    let event = Event::Staged {
        lane,
        entry_type: named("type", params.entry_type)?,
        key: params.key,
        label: params.label,
        body: params.body,
    };
    Ok(on_scope(params.scope, event)?.skipping(skipped))
}

/// `reminder/observe`
pub fn observe(params: ObserveParams) -> Result<Reported> {
    let event = Event::Observed {
        turn: params.turn,
        key: params.key,
        entry_type: named("type", params.entry_type)?,
        body: params.body,
    };
    on_scope(params.scope, event)
}

/// `reminder/enqueue`
pub fn enqueue(params: EnqueueParams) -> Result<Reported> {
    let event = Event::Enqueued { name: params.entry_type, body: params.body };
    Ok(on_session(params.session, event))
}

/// `reminder/withdraw`
pub fn withdraw(params: WithdrawParams) -> Result<Reported> {
    on_scope(params.scope, Event::Withdrawn { key: params.key })
}

/// `reminder/acknowledge`
pub fn acknowledge(params: AcknowledgeParams) -> Result<Reported> {
    let event = Event::Acknowledged {
        reminder: params.kind,
        key: params.key,
        fingerprint: params.fingerprint,
    };
    on_scope(params.scope, event)
}

pub(super) fn named(member: &str, name: String) -> Result<String> {
    if name.trim().is_empty() {
        return Err(invalid(format!("`{member}` is blank: say what the entry is about")));
    }
    Ok(name)
}
