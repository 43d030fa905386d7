//! `compacted-files`: a compaction dropped the contents of files from history (`reminders.md` §3).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::engine::{
    Definition, Effect, Lane, Policy, Proposal, Refusal, Reminder, Speech, Trigger, View,
    short_name,
};
use crate::files::identity;
use crate::rules::read_settings;

/// The kind's own keys.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Settings {
    /// How many paths one entry lists; it says how many more there are.
    #[schemars(range(min = 1), extend("x-untrusted" = "lower"))]
    paths: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { paths: 20 }
    }
}

/// Names the files, once a compaction.
#[derive(Debug)]
pub struct CompactedFiles {
    settings: Settings,
}

impl CompactedFiles {
    /// Makes it of `{paths}`.
    pub fn new(definition: &Definition) -> Result<Self, Refusal> {
        Ok(Self { settings: read_settings(definition)? })
    }
}

impl Reminder for CompactedFiles {
    fn policy(&self) -> Policy {
        Policy::new(Trigger::Always)
    }

    fn lane(&self) -> Lane {
        Lane::Compaction
    }

    fn propose(&self, view: &View<'_>) -> Proposal {
        let dropped = &view.scope.facts.dropped;
        if dropped.is_empty() {
            return Proposal::silent("no compaction dropped contents of files", "after one does");
        }
        let paths = self.settings.paths;
        let shown = dropped.iter().take(paths);
        let mut lines: Vec<_> = shown
            .map(|path| format!("- {}", short_name(&identity::shown(path, view.root), 500)))
            .collect();
        if dropped.len() > paths {
            lines.push(format!("… and {} more.", dropped.len() - paths));
        }
        let body = format!(
            "The conversation was compacted and no longer holds the contents of these files; read \
             them again before relying on them:\n{}",
            lines.join("\n")
        );
        let mut speech = Speech::new("compacted files", body);
        speech.parts[0].effects.push(Effect::TakeDropped);
        Proposal::Speak(vec![speech])
    }
}
