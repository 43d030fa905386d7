//! A kind's own keys, read from a definition with messages that name the reminder and the key.

use serde::de::DeserializeOwned;

use super::policy;
use crate::engine::{Definition, Policy, Refusal, Value};

/// Reads the settings of a definition as a kind's own type. Keys that it does not know are left
/// alone: a newer client may send them.
pub fn read<T: DeserializeOwned>(definition: &Definition) -> Result<T, Refusal> {
    let settings = match &definition.settings {
        Value::Null => Value::empty_map(),
        settings => settings.clone(),
    };
    serde_json::to_value(&settings)
        .and_then(serde_json::from_value)
        .map_err(|error| Refusal::invalid(format!("{}: {error}", definition.id)))
}

/// What every kind can be given beside its own keys: another policy, caps, and a
/// priority.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tuning {
    /// Replaces the kind's policy.
    pub policy: Option<Policy>,
    max_per_turn: Option<u64>,
    max_per_session: Option<u64>,
    /// Replaces the kind's priority.
    pub priority: Option<i64>,
}

impl Tuning {
    /// Reads `policy`, `maxPerTurn`, `maxPerSession` and `priority` of a definition.
    pub fn of(definition: &Definition) -> Result<Self, Refusal> {
        let wrong = |error: String| Refusal::invalid(format!("{}: {error}", definition.id));
        let given = |name: &str| definition.settings.get(name);
        let cap = |name: &str| given(name).map(|cap| policy::cap(name, cap)).transpose();
        Ok(Self {
            policy: given("policy").map(policy::read).transpose().map_err(wrong)?,
            max_per_turn: cap("maxPerTurn").map_err(wrong)?,
            max_per_session: cap("maxPerSession").map_err(wrong)?,
            priority: given("priority").map(policy::priority).transpose().map_err(wrong)?,
        })
    }

    /// The policy that results.
    pub fn over(self, default: Policy) -> Policy {
        let mut policy = self.policy.unwrap_or(default);
        policy.max_per_turn = self.max_per_turn.or(policy.max_per_turn);
        policy.max_per_session = self.max_per_session.or(policy.max_per_session);
        policy
    }
}
