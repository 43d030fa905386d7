//! `plan-reference`: an accepted plan, on a later turn (`reminders.md` §3).
//!
//! Once for each plan, and again when a compaction took it; another text under the same address is
//! another plan. Silent where an active goal carries that same plan: the goal's own context gives its
//! address.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::engine::{
    Definition, PlanState, Policy, Proposal, Refusal, Reminder, Speech, Trigger, View, one_line,
};
use crate::rules::read_settings;

/// The kind's own keys.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Settings {
    /// How much of the plan's beginning is shown, in characters.
    #[schemars(range(max = 100_000), extend("x-untrusted" = "lower"))]
    chars: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { chars: 12_000 }
    }
}

/// Gives the address and the beginning of the accepted plan.
#[derive(Debug)]
pub struct PlanReference {
    settings: Settings,
}

impl PlanReference {
    /// Makes it of `{chars}`.
    pub fn new(definition: &Definition) -> Result<Self, Refusal> {
        Ok(Self { settings: read_settings(definition)? })
    }
}

impl Reminder for PlanReference {
    fn policy(&self) -> Policy {
        Policy::new(Trigger::OnChange)
    }

    fn propose(&self, view: &View<'_>) -> Proposal {
        let plan = &view.facts.plan;
        if plan.state != PlanState::Accepted {
            return Proposal::silent("no plan is accepted", "after one is");
        }
        if view.facts.is_planning() {
            return Proposal::silent("another plan is being made", "when planning ends");
        }
        if view.moment.ordinals.turn <= view.facts.plan_accepted_in {
            return Proposal::silent("the plan was accepted in this turn", "in the next turn");
        }
        let goal = view.facts.goal.as_ref().and_then(|goal| goal.report.plan.as_ref());
        if goal.is_some() && goal == plan.address.as_ref() {
            return Proposal::silent("the active goal carries this plan", "without that goal");
        }
        let address = plan.address.as_deref();
        let content = plan.content.as_deref().unwrap_or_default();
        let mut body = match address {
            Some(address) => format!("A plan was accepted; it is at {}.", one_line(address)),
            None => "A plan was accepted.".to_owned(),
        };
        body.push_str(" It binds only as far as it fits the present request.");
        if !content.trim().is_empty() {
            body.push_str("\n\n");
            match content.char_indices().nth(self.settings.chars) {
                None => body.push_str(content.trim_end()),
                Some((end, _)) => {
                    let more = content[end..].chars().count();
                    body.push_str(&content[..end]);
                    let place = if address.is_some() { " at its address" } else { "" };
                    body.push_str(&format!("\n… (cut: {more} more characters{place})"));
                }
            }
        }
        let state = view.fingerprint(&format!("{}\n{content}", address.unwrap_or_default()));
        let key = address.map_or_else(|| state.clone(), str::to_owned);
        Proposal::Speak(vec![Speech::new("plan", body).about(key).telling(state)])
    }
}
