//! `max-requests-warning` and `max-requests-limit`: an agent nears, or has reached, the requests
//! that it may make (`reminders.md` §3).
//!
//! Asked at every WAIT of the agent, the request being prepared counted in: with a cap of 10 the
//! warning comes once, at the 8th, and the limit at the 10th and every later one. Never both.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::engine::{Definition, Policy, Proposal, Refusal, Reminder, Speech, Trigger, View};
use crate::rules::read_settings;

/// The keys of the warning.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Settings {
    /// At how much of the cap it warns, in hundredths, rounded down to a request.
    #[schemars(range(min = 1, max = 99))]
    percent: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { percent: 80 }
    }
}

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

    /// The cap's hundredths rounded down, without overflow for any cap.
    fn warns_from(&self, percent: u64) -> u64 {
        self.cap / 100 * percent + self.cap % 100 * percent / 100
    }
}

const NO_CAP: &str = "the agent's requests have no cap";

/// Warns once, at four fifths of the cap unless another share is set.
#[derive(Debug)]
pub struct Warning {
    settings: Settings,
}

impl Warning {
    /// Makes it of `{percent}`.
    pub fn new(definition: &Definition) -> Result<Self, Refusal> {
        Ok(Self { settings: read_settings(definition)? })
    }
}

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
        let warns_from = requests.warns_from(self.settings.percent);
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
