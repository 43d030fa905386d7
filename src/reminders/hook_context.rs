//! `hook-context`: what a hook has to add (`reminders.md` §3, `hook-outcome`).
//!
//! Reserved when a WAIT captures it, consumed by the commit, back at the front after a release.

use crate::engine::{Lane, Policy, Proposal, Reminder, Speech, Trigger, View, short_name};

/// Passes on the context of hooks.
#[derive(Debug)]
pub struct HookContexts;

impl Reminder for HookContexts {
    fn policy(&self) -> Policy {
        Policy::new(Trigger::Always)
    }

    fn lane(&self) -> Lane {
        Lane::Steering
    }

    fn propose(&self, view: &View<'_>) -> Proposal {
        if view.hook_contexts.is_empty() {
            return Proposal::silent("no hook has anything to add", "after one has");
        }
        let speeches = view.hook_contexts.iter().map(|context| {
            let event = short_name(&context.event, 200);
            let body = format!("A hook of {event} adds:\n{}", context.body);
            Speech::new("hook context", body).about(event).taking(context.serial)
        });
        Proposal::Speak(speeches.collect())
    }
}
