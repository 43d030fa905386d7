//! `date-change`: the date is another than the last told (`reminders.md` §3).
//!
//! Only for hosts that send dates (`date/set`). The first one is what the conversation began with.

use crate::engine::{Policy, Proposal, Reminder, Speech, Start, Trigger, View, short_name};

/// Gives both dates.
#[derive(Debug)]
pub struct DateChange;

impl Reminder for DateChange {
    fn policy(&self) -> Policy {
        Policy::new(Trigger::OnChange)
    }

    fn starts_from(&self) -> Option<Start<'_>> {
        Some(Start::Date)
    }

    fn propose(&self, view: &View<'_>) -> Proposal {
        let (Some(date), Some(first)) = (&view.facts.date, &view.facts.first_date) else {
            return Proposal::silent("no date was set", "when the host sends dates");
        };
        let known = view.told(None).held.unwrap_or(first);
        if known == date {
            return Proposal::silent("the date is as the model knows it", "when it changes");
        }
        let (date, known) = (short_name(date, 100), short_name(known, 100));
        let body = format!("The date is now {date}; it was {known}.");
        Proposal::Speak(vec![Speech::new("date", body).telling(date)])
    }
}
