//! `token-usage`: the context is nearly full (`reminders.md` §3).
//!
//! Silent where the host owns the conversation: nothing here estimates its context.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::engine::{Definition, Policy, Proposal, Refusal, Reminder, Span, Speech, Trigger, View};
use crate::rules::read_settings;

/// The kind's own keys.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Settings {
    /// From how much of the usable context on it speaks, in hundredths.
    #[schemars(range(min = 1, max = 100))]
    percent: u64,
    /// Turns from one telling to the next.
    #[schemars(range(min = 1))]
    turns: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { percent: 90, turns: 4 }
    }
}

/// Gives the numbers, every few turns.
#[derive(Debug)]
pub struct TokenUsage {
    percent: u64,
    turns: u64,
}

impl TokenUsage {
    /// Makes it of `{percent, turns}`.
    pub fn new(definition: &Definition) -> Result<Self, Refusal> {
        let Settings { percent, turns } = read_settings(definition)?;
        Ok(Self { percent, turns })
    }
}

impl Reminder for TokenUsage {
    fn policy(&self) -> Policy {
        Policy::new(Trigger::Every(Span::turns(self.turns)))
    }

    fn propose(&self, view: &View<'_>) -> Proposal {
        let usage = match super::known_usage(view) {
            Ok(usage) => usage,
            Err(silence) => return Proposal::Silent(silence),
        };
        let used = usage.percent();
        if !usage.reaches(self.percent) {
            return super::below(used, self.percent);
        }
        let mut body =
            format!("{used}% of the context is used: {} of {} tokens.", usage.used, usage.usable);
        if let Some(start) = usage.compacts_at {
            body.push_str(&format!(" Compaction starts at {start} tokens."));
        }
        Proposal::Speak(vec![Speech::new("context", body)])
    }
}
