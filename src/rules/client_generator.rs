//! Generators that the client computes: asked at a WAIT over `reminder/compute`.

use super::common::Common;
use crate::engine::{
    Definition, Lane, Phase, Policy, Proposal, Refusal, Reminder, Span, Trigger, Unit, View,
};

/// A generator that lives in the client.
#[derive(Debug)]
pub struct ClientGenerator {
    common: Common,
}

impl ClientGenerator {
    /// Makes it of what all forms share.
    pub fn new(definition: &Definition) -> Result<Self, Refusal> {
        Ok(Self { common: Common::of(definition, Trigger::OnChange)? })
    }
}

impl Reminder for ClientGenerator {
    /// What was answered is told: the spacing of `every` decides when it is asked by force, not
    /// whether its answer may be told (`configuration.md`, "First time").
    fn policy(&self) -> Policy {
        match self.common.policy.trigger {
            Trigger::Every(_) => Policy { trigger: Trigger::Always, ..self.common.policy },
            _ => self.common.policy,
        }
    }

    fn stated_policy(&self) -> Policy {
        self.common.policy
    }

    fn lane(&self) -> Lane {
        self.common.lane
    }

    fn priority(&self) -> i64 {
        self.common.priority
    }

    fn label(&self) -> Option<&str> {
        Some(&self.common.label)
    }

    fn propose(&self, view: &View<'_>) -> Proposal {
        if let Some(silence) = self.common.silence(view) {
            return silence;
        }
        let Trigger::Every(Span { unit, count }) = self.common.policy.trigger else {
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
