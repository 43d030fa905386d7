//! `notice`: a background job of the scope ended (`reminders.md` §3).
//!
//! Once for each job and end state, also after a compaction; to its owner alone.

use crate::engine::{Lane, Policy, Proposal, Reminder, Speech, Trigger, View, short_name};

/// Says what ended and how.
#[derive(Debug)]
pub struct Notice;

impl Reminder for Notice {
    fn policy(&self) -> Policy {
        Policy::new(Trigger::Threshold).never_again()
    }

    fn lane(&self) -> Lane {
        Lane::Events
    }

    fn propose(&self, view: &View<'_>) -> Proposal {
        let jobs = &view.scope.facts.jobs;
        if jobs.is_empty() {
            return Proposal::silent("no background job has ended", "after one ends");
        }
        let speeches = jobs.iter().map(|(serial, job)| {
            let name = short_name(&job.job, 200);
            let mut body = format!("Background job {name} ended: {}.", short_name(&job.state, 200));
            if let Some(summary) = &job.summary {
                body.push('\n');
                body.push_str(summary);
            }
            Speech::new("job", body).about(name).marking(vec![job.state.clone()]).taking(*serial)
        });
        Proposal::Speak(speeches.collect())
    }
}
