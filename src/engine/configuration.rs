//! What files configure for a session: switches of kinds, reminders of the user's own, budgets.

use serde::{Deserialize, Serialize};

use super::event::{Definition, Switches};

/// The configuration that is in force for a session, all layers together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Configuration {
    /// Kinds, switched and retuned.
    #[serde(default)]
    pub kinds: Switches,
    /// Reminders of the user's own, in order.
    #[serde(default)]
    pub reminders: Vec<Definition>,
    /// What entries may cost.
    #[serde(default)]
    pub budget: Budget,
}

/// What the entries of a session may cost, in estimated tokens (`reminders.md` §1). Absent is no
/// limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Budget {
    /// Tokens of one WAIT.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_wait: Option<u64>,
    /// Tokens of a session, all its scopes together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_session: Option<u64>,
}
