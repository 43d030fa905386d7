//! `plan-mode`: how to plan (`reminders.md` §3).
//!
//! The first delivery of an episode gives the whole contract; after that one line, once a turn at
//! its first WAIT. A compaction does not bring the contract back; a new episode, a rewind to before
//! it, a directive conversation, or a cleared history do.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::engine::{
    Definition, PLAN_MODE, Phase, Policy, Proposal, Refusal, Reminder, Speech, Trigger, View,
    one_line,
};
use crate::rules::read_settings;

/// The kind's own keys.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Settings {
    /// The line that opens a proposal.
    #[schemars(extend("x-untrusted" = "never"))]
    open_tag: String,
    /// The line that closes a proposal.
    #[schemars(extend("x-untrusted" = "never"))]
    close_tag: String,
    /// The headings of a proposal, in order.
    #[schemars(extend("x-untrusted" = "never"))]
    headings: Vec<String>,
    /// Where the planning manual is: named in the one line of later turns. Without it, the plan's own
    /// address is.
    #[schemars(with = "String", extend("x-untrusted" = "never"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    manual: Option<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            open_tag: "<proposed_plan>".to_owned(),
            close_tag: "</proposed_plan>".to_owned(),
            headings: ["Summary", "Changes", "Verification", "Open questions"]
                .map(str::to_owned)
                .into(),
            manual: None,
        }
    }
}

/// Tells the planning contract.
#[derive(Debug)]
pub struct PlanMode {
    settings: Settings,
}

impl PlanMode {
    /// Makes it of `{openTag, closeTag, headings, manual}`.
    pub fn new(definition: &Definition) -> Result<Self, Refusal> {
        Ok(Self { settings: read_settings(definition)? })
    }

    fn contract(&self, directive: bool) -> String {
        let Settings { open_tag, close_tag, headings, .. } = &self.settings;
        let writes = if directive {
            "No file may be written at all, and nothing may be patched."
        } else {
            "Patches may touch files that this session owns, and no others."
        };
        let headings: Vec<_> = headings.iter().map(|heading| format!("## {heading}")).collect();
        format!(
            "A plan is being made. Look and explore first: read files, search, inspect the project \
             until the proposal can be exact. The project is read-only, and live evaluation is \
             unavailable. {writes}\n\
             Put the proposal between {open_tag} and {close_tag}, each on a line of its own, under \
             these headings:\n{}\n\
             A new proposal replaces the old one whole. The person accepts it, or answers with \
             feedback.",
            headings.join("\n")
        )
    }

    fn reference(&self, view: &View<'_>) -> String {
        let Settings { open_tag, close_tag, manual, .. } = &self.settings;
        let manual = match manual.as_ref().or(view.facts.plan.address.as_ref()) {
            Some(address) => format!("the manual is at {}", one_line(address)),
            None => "the manual is the first reminder of this plan".to_owned(),
        };
        format!("Planning goes on: propose between {open_tag} and {close_tag}; {manual}.")
    }
}

impl Reminder for PlanMode {
    fn policy(&self) -> Policy {
        Policy::new(Trigger::Always)
    }

    fn propose(&self, view: &View<'_>) -> Proposal {
        if !view.facts.is_planning() {
            return Proposal::silent("no plan is being made", "when planning begins");
        }
        let episode = &view.facts.episode;
        let by_mode = view.facts.effective_mode() == Some(PLAN_MODE);
        let directive = view.facts.plan.directive;
        // A directive conversation allows less: its contract is another one.
        let contract_of = format!("{episode}{}", if directive { "@directive" } else { "" });
        let told = view.scope.history.told_or_compacted(view.id, Some("contract"));
        let marks = vec![episode.clone()];
        let is_told = |told: &str| told.strip_suffix("@mode").unwrap_or(told) == contract_of;
        let Some((_, told_at)) = told.filter(|(told, _)| is_told(told)) else {
            let state = format!("{contract_of}{}", if by_mode { "@mode" } else { "" });
            let contract = self.contract(directive);
            let speech = Speech::new("plan", contract).about("contract");
            return Proposal::Speak(vec![speech.telling(state).marking(marks)]);
        };
        let turn = view.moment.ordinals.turn;
        if told_at.turn == turn && !view.scope.native_compaction {
            return Proposal::silent("the contract was told in this turn", "in the next turn");
        }
        if view.moment.phase == Phase::MidTurn && !view.scope.native_compaction {
            return Proposal::silent(
                "the contract is told, and its reference comes once a turn, at the first WAIT",
                "in the next turn",
            );
        }
        let state = format!("{episode}/{turn}");
        let speech = Speech::new("plan", self.reference(view)).about("reference");
        Proposal::Speak(vec![speech.telling(state).marking(marks)])
    }
}
