//! `skill-attachment`: the person attached a skill (`reminders.md` §3).
//!
//! What a skill requires comes before it, each once.

use crate::engine::{Lane, Policy, Proposal, Reminder, Speech, Trigger, View, short_name};

/// Gives the bodies of attached skills.
#[derive(Debug)]
pub struct SkillAttachment;

impl Reminder for SkillAttachment {
    fn policy(&self) -> Policy {
        Policy::new(Trigger::OnChange)
    }

    fn lane(&self) -> Lane {
        Lane::Skill
    }

    fn propose(&self, view: &View<'_>) -> Proposal {
        let attached = &view.scope.facts.attached;
        if attached.is_empty() {
            return Proposal::silent("no skill was attached in this turn", "after one is");
        }
        let speech = |(serial, skill): &(u64, crate::engine::AttachedSkill)| {
            let name = short_name(&skill.name, 200);
            let body =
                format!("Skill {name} is attached already; it need not be loaded:\n{}", skill.body);
            let state = view.fingerprint(&skill.body);
            Speech::new("skill", body).about(name).telling(state).taking(*serial)
        };
        Proposal::Speak(attached.iter().map(speech).collect())
    }
}
