//! `pending-events`: what waits in the session's FIFO (`reminders.md` §3).
//!
//! All bodies in one entry, a blank line between. Each is a part of its own, so that a message with
//! little room takes the first ones and leaves the rest; the commit removes what was captured.

use crate::engine::{Part, Policy, Proposal, Reminder, Speech, Trigger, View};

/// Tells the pending FIFO.
#[derive(Debug)]
pub struct PendingEvents;

impl Reminder for PendingEvents {
    fn policy(&self) -> Policy {
        Policy::new(Trigger::Always)
    }

    fn rides_seams(&self) -> bool {
        true
    }

    fn propose(&self, view: &View<'_>) -> Proposal {
        if view.fifo.is_empty() {
            return Proposal::silent("the pending FIFO is empty", "when something is enqueued");
        }
        let parts = view.fifo.iter().map(|pending| Part {
            tells: pending.tells.clone(),
            ..Part::taking(pending.body.clone(), pending.serial)
        });
        let mut speech = Speech::new("pending events", String::new());
        speech.parts = parts.collect();
        Proposal::Speak(vec![speech])
    }
}
