//! What every form of a user's own reminder may have beside its own members.

use serde::Deserialize;

use super::names;
use super::settings::{self, Tuning};
use crate::engine::{Definition, Lane, Policy, Proposal, Refusal, Silence, Trigger, View};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Settings {
    lane: Option<Lane>,
    label: Option<String>,
    requires_tool: Option<String>,
}

/// The members that all forms share.
#[derive(Debug)]
pub struct Common {
    /// When it may speak.
    pub policy: Policy,
    /// Where in the message it stands.
    pub lane: Lane,
    /// What is kept first when a budget or a limit bites.
    pub priority: i64,
    /// What a row calls it.
    pub label: String,
    requires_tool: Option<String>,
}

impl Common {
    /// Reads `{policy?, lane?, priority?, label?, requiresTool?}`.
    pub fn of(definition: &Definition, trigger: Trigger) -> Result<Self, Refusal> {
        let Settings { lane, label, requires_tool } = settings::read(definition)?;
        let tuning = Tuning::of(definition)?;
        Ok(Self {
            policy: tuning.over(Policy::new(trigger)),
            lane: lane.unwrap_or_default(),
            priority: tuning.priority(),
            label: label.unwrap_or_else(|| definition.id.clone()),
            requires_tool,
        })
    }

    /// Silence where the tool that the reminder needs is not offered.
    pub fn silence(&self, view: &View<'_>) -> Option<Proposal> {
        let tool = self.requires_tool.as_deref()?;
        (!names::offers_tool(view, tool)).then(|| {
            Proposal::Silent(Silence::Quoting {
                text: tool.into(),
                reason: |tool| format!("needs the tool {tool:?}, which is not offered"),
                next: "when it is",
            })
        })
    }
}
