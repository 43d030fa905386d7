//! How a client hears that a notification failed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `reminderd/problem`: a notification could not be carried out and changed nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProblemParams {
    /// The notification's method.
    pub method: String,
    /// The code that it would have been answered with, as a request.
    pub code: i64,
    /// The message that it would have been answered with.
    pub message: String,
    /// How many problems of this code came within the same second and were not sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<u64>,
}
