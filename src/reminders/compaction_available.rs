//! `compaction-available`: much of the context is used, and compaction can run (`reminders.md` §3).
//!
//! Silent where the host owns the conversation: nothing here estimates its context.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::engine::{Definition, Policy, Proposal, Refusal, Reminder, Speech, Trigger, View};
use crate::rules::read_settings;

/// The kind's own keys.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Settings {
    /// From how much of the usable context on it speaks, in hundredths.
    #[schemars(range(min = 1, max = 100))]
    percent: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { percent: 70 }
    }
}

/// Says once that compaction will make room, so that the work need not stop early.
#[derive(Debug)]
pub struct CompactionAvailable {
    percent: u64,
}

impl CompactionAvailable {
    /// Makes it of `{percent}`.
    pub fn new(definition: &Definition) -> Result<Self, Refusal> {
        let Settings { percent } = read_settings(definition)?;
        Ok(Self { percent })
    }
}

impl Reminder for CompactionAvailable {
    fn policy(&self) -> Policy {
        Policy::new(Trigger::Once)
    }

    fn propose(&self, view: &View<'_>) -> Proposal {
        let usage = match super::known_usage(view) {
            Ok(usage) => usage,
            Err(silence) => return Proposal::Silent(silence),
        };
        if usage.compacts_at.is_none() {
            return Proposal::silent("compaction cannot run", "when the client says it can");
        }
        let used = usage.percent();
        if !usage.reaches(self.percent) {
            return super::below(used, self.percent);
        }
        Proposal::Speak(vec![Speech::new(
            "context",
            format!(
                "{used}% of the context is used. Compaction will make room by itself: there is no \
                 need to end the work early or to leave parts of it out."
            ),
        )])
    }
}
