//! Generators that the client computes: asked at a WAIT over `reminder/compute`.

use super::settings::Tuning;
use crate::engine::{
    Definition, Phase, Policy, Proposal, Refusal, Reminder, Span, Trigger, Unit, View,
};

/// A generator that lives in the client.
#[derive(Debug)]
pub struct ClientGenerator {
    policy: Policy,
}

impl ClientGenerator {
    /// Makes it of `{client: true, policy?}`.
    pub fn new(definition: &Definition) -> Result<Self, Refusal> {
        Ok(Self { policy: Tuning::of(definition)?.over(Policy::new(Trigger::OnChange)) })
    }
}

impl Reminder for ClientGenerator {
    /// What was answered is told: the spacing of `every` decides when it is asked by force, not
    /// whether its answer may be told (`configuration.md`, "First time").
    fn policy(&self) -> Policy {
        match self.policy.trigger {
            Trigger::Every(_) => Policy { trigger: Trigger::Always, ..self.policy },
            _ => self.policy,
        }
    }

    fn stated_policy(&self) -> Policy {
        self.policy
    }

    fn propose(&self, view: &View<'_>) -> Proposal {
        let Trigger::Every(Span { unit, count }) = self.policy.trigger else {
            return Proposal::Ask { force: false };
        };
        if unit == Unit::Prompts && view.moment.phase == Phase::MidTurn {
            return Proposal::silent(
                "is asked at each prompt, and this is a tool loop",
                "at the next prompt",
            );
        }
        let ordinals = view.moment.ordinals;
        let last = view.scope.history.spoken(view.id, ordinals.turn).last;
        let passed = ordinals.of(unit).saturating_sub(last.map_or(0, |last| last.of(unit)));
        Proposal::Ask { force: passed >= count }
    }
}
