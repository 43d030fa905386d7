//! `max-requests-warning` and `max-requests-limit`: an agent nears, or has reached, the requests
//! that it may make (`reminders.md` §3).
//!
//! Asked at every WAIT of the agent, the request being prepared counted in: with a cap of 10 the
//! warning comes once, at the 8th, and the limit at the 10th and every later one. Never both.

use crate::engine::{Policy, Proposal, Reminder, Speech, Trigger, View};

/// The requests of an agent: the one being prepared, and the cap.
struct Requests {
    count: u64,
    cap: u64,
}

impl Requests {
    /// `None` when there is no cap; a cap of 0 is none.
    fn of(view: &View<'_>) -> Option<Self> {
        let cap = view.scope.max_requests.filter(|cap| *cap > 0)?;
        Some(Self { count: view.moment.ordinals.request, cap })
    }

    /// floor(0.8 × cap), without overflow for any cap.
    fn warns_from(&self) -> u64 {
        self.cap / 5 * 4 + self.cap % 5 * 4 / 5
    }
}

const NO_CAP: &str = "the agent's requests have no cap";

/// Warns once, at four fifths of the cap.
#[derive(Debug)]
pub struct Warning;

impl Reminder for Warning {
    fn policy(&self) -> Policy {
        Policy::new(Trigger::Once).never_again()
    }

    fn rides_seams(&self) -> bool {
        true
    }

    fn propose(&self, view: &View<'_>) -> Proposal {
        let Some(requests) = Requests::of(view) else {
            return Proposal::silent(NO_CAP, "when it is spawned with one");
        };
        let Requests { count, cap } = requests;
        if count >= cap {
            return Proposal::silent(format!("request {count} of {cap} is at the limit"), "never");
        }
        let warns_from = requests.warns_from();
        if count < warns_from {
            return Proposal::silent(
                format!("request {count} of {cap}, and warns from the {warns_from}th"),
                format!("at request {warns_from}"),
            );
        }
        let left = cap - count;
        let plural = if left == 1 { "request remains" } else { "requests remain" };
        Proposal::Speak(vec![Speech::new(
            "request limit",
            format!(
                "This is request {count} of at most {cap}; {left} {plural} after it. Bring the \
                 work to a point where it can be reported, and report what is left undone."
            ),
        )])
    }
}

/// Says at the cap, and at every request behind it, that this is the last.
#[derive(Debug)]
pub struct AtLimit;

impl Reminder for AtLimit {
    fn policy(&self) -> Policy {
        Policy::new(Trigger::Always)
    }

    fn rides_seams(&self) -> bool {
        true
    }

    fn propose(&self, view: &View<'_>) -> Proposal {
        let Some(Requests { count, cap }) = Requests::of(view) else {
            return Proposal::silent(NO_CAP, "when it is spawned with one");
        };
        if count < cap {
            return Proposal::silent(
                format!("request {count} of {cap}"),
                format!("at request {cap}"),
            );
        }
        Proposal::Speak(vec![Speech::new(
            "request limit",
            format!(
                "This is request {count} of at most {cap}; none remains after it. Report the \
                 result now: what is done, and what is left undone."
            ),
        )])
    }
}
