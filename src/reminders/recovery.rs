//! `recovery`: effects may be partial (`reminders.md` §2, §3).
//!
//! Due after a cold resume, and after a root turn that was cancelled when something had gone out
//! already. Durable until it is told, and at most one at a time.

use crate::engine::{Policy, Proposal, Reminder, Speech, Trigger, View};

/// Warns once for each interruption.
#[derive(Debug)]
pub struct Recovery;

impl Reminder for Recovery {
    fn policy(&self) -> Policy {
        Policy::new(Trigger::OnChange).never_again()
    }

    fn propose(&self, view: &View<'_>) -> Proposal {
        let due = view.scope.facts.recoveries;
        if due == 0 {
            return Proposal::silent("nothing was interrupted", "after an interruption");
        }
        Proposal::Speak(vec![
            Speech::new(
                "recovery",
                "The work was interrupted. Effects of earlier tool calls may be partial, and \
                 processes that they started may still run. The newest request is the one that \
                 counts. Check the state of things before relying on it or claiming that something \
                 was done."
                    .to_owned(),
            )
            .telling(due.to_string()),
        ])
    }
}
