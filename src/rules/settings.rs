//! A kind's own keys, read from a definition with messages that name the reminder and the key.

use serde::de::DeserializeOwned;
use serde_path_to_error::Segment;

use super::policy;
use crate::engine::{Definition, Policy, Refusal, Value};

/// Reads the settings of a definition as a kind's own type. Keys that it does not know are left
/// alone: a newer client may send them.
pub fn read<T: DeserializeOwned>(definition: &Definition) -> Result<T, Refusal> {
    let settings = match &definition.settings {
        Value::Null => Value::empty_map(),
        settings => settings.clone(),
    };
    let refused = |key: Vec<String>, error: &serde_json::Error| {
        let message = match key.join(".") {
            name if name.is_empty() => error.to_string(),
            name => format!("{name}: {error}"),
        };
        Refusal::invalid(message).about(key).of(&definition.id)
    };
    let settings = serde_json::to_value(&settings).map_err(|error| refused(Vec::new(), &error))?;
    serde_path_to_error::deserialize(&settings).map_err(|error| {
        let key = error.path().iter().filter_map(|segment| match segment {
            Segment::Map { key } => Some(key.clone()),
            Segment::Seq { index } => Some(index.to_string()),
            Segment::Enum { .. } | Segment::Unknown => None,
        });
        refused(key.collect(), error.inner())
    })
}

/// What every kind can be given beside its own keys: another policy, caps, and a priority.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tuning {
    /// Replaces the kind's policy.
    pub policy: Option<Policy>,
    max_per_turn: Option<u64>,
    max_per_session: Option<u64>,
    priority: Option<i64>,
}

impl Tuning {
    /// Reads `policy`, `maxPerTurn`, `maxPerSession` and `priority` of a definition.
    pub fn of(definition: &Definition) -> Result<Self, Refusal> {
        let given = |name: &str| definition.settings.get(name).filter(|it| **it != Value::Null);
        let cap = |name: &str| {
            let cap = given(name).map(|cap| policy::cap(name, cap)).transpose();
            cap.map_err(|error| Refusal::invalid(error).about([name]).of(&definition.id))
        };
        let priority = match given("priority") {
            None => None,
            Some(Value::Integer(priority)) => Some(*priority),
            Some(_) => {
                let refusal = Refusal::invalid("priority is a whole number, 0 unless given");
                return Err(refusal.about(["priority"]).of(&definition.id));
            }
        };
        let policy = given("policy").map(policy::read).transpose();
        Ok(Self {
            policy: policy.map_err(|refusal| refusal.of(&definition.id))?,
            max_per_turn: cap("maxPerTurn")?,
            max_per_session: cap("maxPerSession")?,
            priority,
        })
    }

    /// The policy that results.
    pub fn over(self, default: Policy) -> Policy {
        let mut policy = self.policy.unwrap_or(default);
        policy.max_per_turn = self.max_per_turn.or(policy.max_per_turn);
        policy.max_per_session = self.max_per_session.or(policy.max_per_session);
        policy
    }

    /// The priority that results.
    pub fn priority(self) -> i64 {
        self.priority.unwrap_or(0)
    }
}
