//! `compacted-files`: a compaction dropped the contents of files from history (`reminders.md` §3).

use crate::engine::{Effect, Lane, Policy, Proposal, Reminder, Speech, Trigger, View, short_name};
use crate::files::identity;

/// Paths that are listed.
const PATHS_MAX: usize = 20;

/// Names the files, once a compaction.
#[derive(Debug)]
pub struct CompactedFiles;

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
        let shown = dropped.iter().take(PATHS_MAX);
        let mut lines: Vec<_> = shown
            .map(|path| format!("- {}", short_name(&identity::shown(path, view.root), 500)))
            .collect();
        if dropped.len() > PATHS_MAX {
            lines.push(format!("… and {} more.", dropped.len() - PATHS_MAX));
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
