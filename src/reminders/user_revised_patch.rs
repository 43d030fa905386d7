//! `user-revised-patch`: the person edited a patch before it was applied (`reminders.md` §3).

use std::fmt::Write as _;

use crate::engine::{Policy, Proposal, Reminder, Revision, Speech, Trigger, View, short_name};

/// Says on the next turn that the applied content is authoritative; once a revision.
#[derive(Debug)]
pub struct UserRevisedPatch;

impl Reminder for UserRevisedPatch {
    fn policy(&self) -> Policy {
        Policy::new(Trigger::Threshold).never_again()
    }

    fn propose(&self, view: &View<'_>) -> Proposal {
        let told = view.told(None);
        // Numbers begin anew with the process; turns go on with the conversation.
        let mark = |revision: &Revision| {
            let summary = short_name(&revision.summary, 100);
            format!("{}.{}:{summary}", revision.turn, revision.number)
        };
        let turn = view.moment.ordinals.turn;
        let mut body = String::new();
        let mut marks = Vec::new();
        for revision in view.facts.revisions.iter().filter(|revision| revision.turn < turn) {
            let mark = mark(revision);
            if told.marks.is_some_and(|marks| marks.contains(&mark)) {
                continue;
            }
            let _ = write!(body, "\n- {}", short_name(&revision.summary, 300));
            marks.push(mark);
        }
        if marks.is_empty() {
            return Proposal::silent("no patch was revised before this turn", "after a revision");
        }
        let body = format!(
            "The person edited a patch before it was applied; the content as applied is \
             authoritative, not the one that was proposed:{body}"
        );
        Proposal::Speak(vec![Speech::new("revised patch", body).marking(marks)])
    }
}
