//! Turns, tool calls and agents.

use std::io;

use super::{Reported, Result, on_scope, switches, value};
use crate::engine::{CallInput, Event, SettleOutcome, TurnOutcome, Value};
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

/// The most that is kept of one call's input, in bytes of its texts.
const INPUT_BYTES_MAX: usize = 16 << 10;
/// The most strings that are looked at in one call's input.
const STRINGS_MAX: usize = 1_000;
/// The most that is kept of a tool's name, in bytes.
const NAME_BYTES_MAX: usize = 1 << 10;

/// `tool/begin`
pub fn tool_begin(params: ToolBeginParams) -> Result<Reported> {
    let input = params.input.filter(|input| !input.is_null()).map(call_input);
    on_scope(params.scope, Event::CallBegan { call: params.call, input })
}

/// `tool/end`
pub fn tool_end(params: ToolEndParams) -> Result<Reported> {
    let name = cut(&params.name, NAME_BYTES_MAX).to_owned();
    on_scope(params.scope, Event::CallEnded { call: params.call, name, ok: params.ok })
}

/// What rules may look at of an input: a text as it stands; of anything else its JSON, and every
/// string in it by itself, so that a pattern need not know how JSON spells it.
fn call_input(json: serde_json::Value) -> CallInput {
    if let serde_json::Value::String(text) = &json {
        let text = cut(text, INPUT_BYTES_MAX).to_owned();
        return CallInput { value: Value::Text(text.clone()), texts: vec![text] };
    }
    let mut whole = Beginning::default();
    let is_whole = serde_json::to_writer(&mut whole, &json).is_ok();
    let whole = String::from_utf8_lossy(&whole.0);
    let mut texts = vec![whole.trim_end_matches(char::REPLACEMENT_CHARACTER).to_owned()];
    let mut room = INPUT_BYTES_MAX;
    collect_strings(&json, &mut room, &mut texts);
    let value = if is_whole { value(json) } else { Value::Text(texts[0].clone()) };
    CallInput { value, texts }
}

/// Every string in a tree, the names of members left out, until there is no room for more.
fn collect_strings(json: &serde_json::Value, room: &mut usize, into: &mut Vec<String>) {
    match json {
        serde_json::Value::String(text) if !text.is_empty() && into.len() <= STRINGS_MAX => {
            let text = cut(text, *room);
            *room -= text.len();
            into.push(text.to_owned());
        }
        serde_json::Value::Array(items) => {
            items.iter().for_each(|item| collect_strings(item, room, into));
        }
        serde_json::Value::Object(members) => {
            members.values().for_each(|member| collect_strings(member, room, into));
        }
        _ => {}
    }
}

/// The beginning of a text.
fn cut(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}

/// Takes the beginning of what is written, and then refuses.
#[derive(Default)]
struct Beginning(Vec<u8>);

impl io::Write for Beginning {
    fn write(&mut self, more: &[u8]) -> io::Result<usize> {
        let fits = more.len().min(INPUT_BYTES_MAX - self.0.len());
        self.0.extend_from_slice(&more[..fits]);
        if fits < more.len() {
            return Err(io::Error::other("the input is too large"));
        }
        Ok(fits)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_input_is_looked_at_as_json_and_string_by_string() {
        let input = call_input(json!({"command": "say \"hi\"\n", "list": [1, "two"]}));
        let whole = r#"{"command":"say \"hi\"\n","list":[1,"two"]}"#;
        assert_eq!(input.texts, [whole, "say \"hi\"\n", "two"]);
        let text = call_input(json!("cargo test"));
        assert_eq!(
            (text.value, text.texts),
            (Value::from("cargo test"), vec!["cargo test".into()])
        );
    }

    #[test]
    fn a_huge_input_is_cut() {
        let huge = "ä".repeat(INPUT_BYTES_MAX);
        for json in [json!(huge), json!([huge, huge]), json!({"a": 1, "b": [[huge]]})] {
            let input = call_input(json);
            assert!(input.texts.iter().all(|text| text.len() <= INPUT_BYTES_MAX));
            assert!(input.texts.iter().map(String::len).sum::<usize>() <= 2 * INPUT_BYTES_MAX);
            assert_eq!(input.value.as_text(), Some(input.texts[0].as_str()));
        }
        assert_eq!(call_input(json!(vec!["x"; INPUT_BYTES_MAX])).texts.len(), STRINGS_MAX + 1);
    }
}
