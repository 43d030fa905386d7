//! Standing text: a body that a client registered, told as its policy says (once by default).

use serde::Deserialize;

use super::names;
use super::settings::{self, Tuning};
use super::template::Template;
use crate::engine::{Definition, Lane, Policy, Proposal, Refusal, Reminder, Speech, Trigger, View};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Settings {
    body: String,
    lane: Option<Lane>,
    label: Option<String>,
    requires_tool: Option<String>,
}

/// A text of the user's own.
#[derive(Debug)]
pub struct StandingText {
    body: Template,
    lane: Lane,
    label: String,
    requires_tool: Option<String>,
    policy: Policy,
}

impl StandingText {
    /// Makes it of `{body, policy?, lane?, label?, requiresTool?}`.
    pub fn new(definition: &Definition) -> Result<Self, Refusal> {
        let Settings { body, lane, label, requires_tool } = settings::read(definition)?;
        let body = Template::new(&body).map_err(|it| it.refusal(&definition.id, "body"))?;
        Ok(Self {
            body,
            lane: lane.unwrap_or_default(),
            label: label.unwrap_or_else(|| definition.id.clone()),
            requires_tool,
            policy: Tuning::of(definition)?.over(Policy::new(Trigger::Once)),
        })
    }
}

impl Reminder for StandingText {
    fn policy(&self) -> Policy {
        self.policy
    }

    fn lane(&self) -> Lane {
        self.lane
    }

    fn propose(&self, view: &View<'_>) -> Proposal {
        if let Some(tool) = &self.requires_tool
            && !names::offers_tool(view, tool)
        {
            return Proposal::silent(
                format!("needs the tool {tool:?}, which is not offered"),
                "when it is",
            );
        }
        match self.body.render(|| names::context(view, None)) {
            Ok(body) if body.is_empty() => {
                Proposal::silent("its body is blank now", "when it is not")
            }
            Ok(body) => Proposal::Speak(vec![Speech::new(self.label.clone(), body)]),
            Err(error) => Proposal::Fail(error),
        }
    }
}
