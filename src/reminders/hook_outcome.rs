//! `hook-outcome`: a hook blocked something in this turn (`reminders.md` §3).

use crate::engine::{Lane, Policy, Proposal, Reminder, Speech, Trigger, View, short_name};

/// Says what was blocked and why.
#[derive(Debug)]
pub struct HookOutcomes;

impl Reminder for HookOutcomes {
    fn policy(&self) -> Policy {
        Policy::new(Trigger::Always)
    }

    fn lane(&self) -> Lane {
        Lane::Events
    }

    fn propose(&self, view: &View<'_>) -> Proposal {
        let blocked = &view.scope.facts.blocked;
        if blocked.is_empty() {
            return Proposal::silent("no hook blocked anything in this turn", "after one does");
        }
        let speeches = blocked.iter().map(|(serial, outcome)| {
            let event = short_name(&outcome.event, 200);
            let reason = match &outcome.reason {
                Some(reason) => format!(": {}", short_name(reason, 2000)),
                None => ", without a reason".to_owned(),
            };
            let body = format!(
                "A hook of {event} blocked the action{reason}. Adapt to that rather than repeat \
                 the same action."
            );
            Speech::new("hook", body).about(event).taking(*serial)
        });
        Proposal::Speak(speeches.collect())
    }
}
