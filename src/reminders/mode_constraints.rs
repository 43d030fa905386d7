//! `mode-constraints`: what the permission mode allows (`reminders.md` §3).
//!
//! Told at the first delivery and whenever the effective mode differs from the last told, the
//! return to the default too. While the mode is `plan`, `plan-mode` says what holds; leaving it is a
//! change of mode like any other.

use crate::engine::{PLAN_MODE, Policy, Proposal, Reminder, Speech, Trigger, View, short_name};

/// Says what runs without asking, what still asks, and what stays denied.
#[derive(Debug)]
pub struct ModeConstraints;

impl Reminder for ModeConstraints {
    fn policy(&self) -> Policy {
        Policy::new(Trigger::OnChange)
    }

    fn propose(&self, view: &View<'_>) -> Proposal {
        let Some(mode) = view.facts.effective_mode() else {
            return Proposal::silent("no mode is known", "when the client sets one");
        };
        let explains_plans =
            view.scope.roster.iter().any(|member| member.id() == "plan-mode" && member.enabled);
        if mode == PLAN_MODE && explains_plans {
            return Proposal::silent("plan-mode says what holds in mode plan", "when it changes");
        }
        // After the plan contract of a mode the same mode as before it is a change.
        let planned = view.scope.history.told_or_compacted("plan-mode", Some("contract"));
        let planned = planned.map(|(episode, _)| episode).filter(|it| it.ends_with("@mode"));
        let state = format!("{mode};{}", planned.unwrap_or_default());
        Proposal::Speak(vec![Speech::new("mode", body(mode)).telling(state)])
    }
}

fn body(mode: &str) -> String {
    let constraints = match mode {
        "ask" => {
            "Reading and searching run without asking. Edits, commands, live evaluation and network \
             access ask the person first. What the settings deny stays denied."
        }
        "edits" => {
            "Reading, searching and edits of the project's files run without asking. Commands, live \
             evaluation, network access and edits of protected paths still ask. What the settings \
             deny stays denied."
        }
        "full-auto" => {
            "Everything runs without asking, on the paths that are protected by default too, and \
             live evaluation is not confined. Hard denies, plan mode and integrity checks remain. \
             Nothing else stands between a destructive call and its effect: make one only \
             deliberately, when the task asks for it."
        }
        PLAN_MODE => {
            "Reading and searching run without asking. Nothing may be written until a plan is \
             accepted."
        }
        _ => "The client defines it: each tool says when it asks or refuses.",
    };
    format!("Permission mode: {}. {constraints}", short_name(mode, 100))
}
