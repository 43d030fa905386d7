//! `fork-provenance`: where a forked session comes from (`reminders.md` §3).
//!
//! Sparse, and made from durable facts each time, so that a restart loses nothing. The report of
//! what a worktree fork restored is told once, through the FIFO; [`report`] words it.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::engine::{
    Definition, Policy, Proposal, Refusal, Reminder, Span, Speech, Trigger, View, Worktree,
    one_line, short_name,
};
use crate::rules::read_settings;

/// Names of one sort that a report lists.
const NAMES_MAX: usize = 20;

/// The kind's own keys.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Settings {
    /// Turns from one telling to the next.
    #[schemars(range(min = 1))]
    turns: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { turns: 20 }
    }
}

/// Says where the session comes from, sparsely.
#[derive(Debug)]
pub struct ForkProvenance {
    settings: Settings,
}

impl ForkProvenance {
    /// Makes it of `{turns}`.
    pub fn new(definition: &Definition) -> Result<Self, Refusal> {
        Ok(Self { settings: read_settings(definition)? })
    }
}

impl Reminder for ForkProvenance {
    fn policy(&self) -> Policy {
        Policy::new(Trigger::Every(Span::turns(self.settings.turns)))
    }

    fn propose(&self, view: &View<'_>) -> Proposal {
        let Some(fork) = &view.facts.fork else {
            return Proposal::silent("the session is no fork", "never");
        };
        let mut body = format!("This session was forked from {}.", one_line(&fork.source));
        if let Some(Worktree { directory, branch, base }) = &fork.worktree {
            let _ = write!(
                body,
                " It works in its own worktree {}, on branch {}, from commit {}.",
                one_line(directory),
                one_line(branch),
                one_line(base)
            );
        }
        body.push_str(
            " Files that both sessions share may be newer than this conversation: read them before \
             relying on what it says of them.",
        );
        Proposal::Speak(vec![Speech::new("fork", body)])
    }
}

/// What a worktree fork restored and what it did not, for the fork's model.
pub fn report(
    restored: u64,
    unrestored: &[String],
    external: &[String],
    dropped: &[String],
) -> String {
    let plural = if restored == 1 { "file was" } else { "files were" };
    let mut body = format!("{restored} {plural} restored into the fork's worktree.");
    for (what, names) in [
        ("Not restored", unrestored),
        ("Shared with the source session, outside the worktree", external),
        ("State that did not come along", dropped),
    ] {
        if names.is_empty() {
            continue;
        }
        let shown: Vec<_> =
            names.iter().take(NAMES_MAX).map(|name| short_name(name, 200)).collect();
        let _ = write!(body, "\n{what}: {}", shown.join(", "));
        if names.len() > NAMES_MAX {
            let _ = write!(body, " and {} more", names.len() - NAMES_MAX);
        }
        body.push('.');
    }
    body
}
