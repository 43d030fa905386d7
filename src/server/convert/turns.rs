//! Turns, tool calls and agents.

use super::{Reported, Result, on_scope, switches};
use crate::engine::{Event, SettleOutcome, TurnOutcome};
use reminderd_protocol::agent::{AgentOutcome, AgentSettleParams, AgentSpawnParams};
use reminderd_protocol::scope::Scope as WireScope;
use reminderd_protocol::turn::TurnOutcome as WireTurnOutcome;
use reminderd_protocol::turn::{ToolBeginParams, ToolEndParams, TurnBeginParams, TurnEndParams};

/// `turn/begin`
pub fn turn_begin(params: TurnBeginParams) -> Result<Reported> {
    on_scope(params.scope, Event::TurnBegan { turn: params.turn })
}

/// `turn/end`. An outcome that this build does not know ends the turn all the same.
pub fn turn_end(params: TurnEndParams) -> Result<Reported> {
    let (outcome, skipped) = match params.outcome {
        WireTurnOutcome::Completed => (TurnOutcome::Completed, None),
        WireTurnOutcome::Cancelled => (TurnOutcome::Cancelled, None),
        WireTurnOutcome::Failed => (TurnOutcome::Failed, None),
        WireTurnOutcome::Unknown(_) => (TurnOutcome::Abandoned, Some("turn.outcome")),
    };
    let reported = on_scope(params.scope, Event::TurnEnded { turn: params.turn, outcome })?;
    Ok(reported.skipping(skipped))
}

/// `tool/begin`
pub fn tool_begin(params: ToolBeginParams) -> Result<Reported> {
    on_scope(params.scope, Event::CallBegan { call: params.call })
}

/// `tool/end`
pub fn tool_end(params: ToolEndParams) -> Result<Reported> {
    on_scope(params.scope, Event::CallEnded { call: params.call })
}

/// `agent/spawn`
pub fn agent_spawn(params: AgentSpawnParams) -> Result<Reported> {
    let scope = WireScope { session: params.session, agent: Some(params.agent) };
    on_scope(
        scope,
        Event::AgentSpawned {
            kinds: params.kinds.map(switches).unwrap_or_default(),
            max_requests: params.max_requests,
            role: params.role,
        },
    )
}

/// `agent/settle`. An outcome that this build does not know leaves the agent's tasks open.
pub fn agent_settle(params: AgentSettleParams) -> Result<Reported> {
    let (outcome, skipped) = match params.outcome {
        AgentOutcome::Succeeded => (SettleOutcome::Succeeded, None),
        AgentOutcome::Failed => (SettleOutcome::Failed, None),
        AgentOutcome::Interrupted => (SettleOutcome::Interrupted, None),
        AgentOutcome::Unknown(_) => (SettleOutcome::Interrupted, Some("agent.outcome")),
    };
    let scope = WireScope { session: params.session, agent: Some(params.agent) };
    Ok(on_scope(scope, Event::AgentSettled { outcome })?.skipping(skipped))
}
