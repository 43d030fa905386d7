//! `goal-budget`: the goal's cost crossed a threshold, or its limit changed (`reminders.md` §3).
//!
//! Each threshold once for each limit. One entry names every threshold that was newly crossed, with
//! the advice of the highest; an agent that was charged hears of the highest alone. A change of the
//! limit is one entry, which also tells the thresholds that are crossed under the new one.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::engine::{
    Definition, Goal, Lane, Policy, Proposal, Refusal, Reminder, Speech, Start, Trigger, View,
    short_name,
};
use crate::rules::read_settings;

/// The kind's own keys.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Settings {
    /// How much of a goal's limit is told of when it is used, in hundredths.
    #[schemars(inner(range(min = 1, max = 100)))]
    thresholds: BTreeSet<u64>,
}

impl Default for Settings {
    fn default() -> Self {
        Self { thresholds: [50, 80, 100].into() }
    }
}

/// What to do when so many hundredths of the limit are used.
fn advice(percent: u64) -> &'static str {
    match percent {
        ..80 => "Spend what is left on what the goal needs.",
        80..100 => "Prefer finishing what is begun to beginning more.",
        100.. => {
            "The budget is used up: bring the work to an end and report where the goal stands."
        }
    }
}

/// Tells what a goal has cost.
#[derive(Debug)]
pub struct GoalBudget {
    settings: Settings,
}

impl GoalBudget {
    /// Makes it of `{thresholds}`.
    pub fn new(definition: &Definition) -> Result<Self, Refusal> {
        Ok(Self { settings: read_settings(definition)? })
    }
}

impl Reminder for GoalBudget {
    fn policy(&self) -> Policy {
        Policy::new(Trigger::Threshold).never_again()
    }

    fn lane(&self) -> Lane {
        Lane::Events
    }

    fn starts_from(&self) -> Option<Start<'_>> {
        Some(Start::GoalLimit)
    }

    fn propose(&self, view: &View<'_>) -> Proposal {
        let Some(goal) = &view.facts.goal else {
            return Proposal::silent("no goal is set", "when one is");
        };
        let is_root = view.scope.path.is_root();
        if !is_root && !view.scope.facts.charged {
            return Proposal::silent("the agent was not charged to the goal", "after it is");
        }
        let changed = if is_root { limit_change(goal, view) } else { None };
        let Some(limit) = goal.report.budget else {
            // A limit that was lifted is told; a goal without one has nothing else to tell.
            return match changed {
                Some((old, mark)) => Proposal::Speak(vec![
                    Speech::new("goal", change(goal, old, None, &[])).marking(vec![mark]),
                ]),
                None => Proposal::silent("the goal has no limit", "when it has"),
            };
        };
        let thresholds = self.settings.thresholds.iter().copied();
        let crossed: Vec<_> =
            thresholds.filter(|percent| reaches(goal.used, limit, *percent)).collect();
        let mark = |percent: u64| format!("{}/{limit}/{percent}", goal.report.id);
        if let Some((old, changed)) = changed {
            let mut marks = vec![changed];
            marks.extend(crossed.iter().map(|percent| mark(*percent)));
            let body = change(goal, old, Some(limit), &crossed);
            return Proposal::Speak(vec![Speech::new("goal", body).marking(marks)]);
        }
        let told = view.told(None).marks;
        let waiting = |mark: &str| {
            let mut tells = view.fifo.iter().filter_map(|pending| pending.tells.as_ref());
            is_root && tells.any(|tells| tells.marks.iter().any(|other| other == mark))
        };
        let fresh: Vec<_> = crossed
            .into_iter()
            .filter(|percent| {
                let mark = mark(*percent);
                !told.is_some_and(|told| told.contains(&mark)) && !waiting(&mark)
            })
            .collect();
        let Some(highest) = fresh.last().copied() else {
            return Proposal::silent(
                format!(
                    "{} of {limit} tokens are used, and every threshold crossed is told",
                    goal.used
                ),
                "at the next threshold",
            );
        };
        let named: Vec<_> = if is_root {
            fresh.iter().map(|percent| format!("{percent}%")).collect()
        } else {
            vec![format!("{highest}%")]
        };
        let (standing, advice) = (standing(goal, limit), advice(highest));
        let body = format!("{standing} It crossed {}. {advice}", named.join(", "));
        let marks = fresh.iter().map(|percent| mark(*percent)).collect();
        Proposal::Speak(vec![Speech::new("goal", body).marking(marks)])
    }
}

fn reaches(used: u64, limit: u64, percent: u64) -> bool {
    u128::from(used) * 100 >= u128::from(limit) * u128::from(percent)
}

/// What was used of the limit, and what remains.
fn standing(goal: &Goal, limit: u64) -> String {
    let name = short_name(&goal.report.id, 200);
    let percent = (u128::from(goal.used) * 100).checked_div(u128::from(limit)).unwrap_or(100);
    format!(
        "Goal {name} has used {percent}% of its budget: {} of {limit} tokens, {} remain.",
        goal.used,
        limit.saturating_sub(goal.used)
    )
}

/// The limit that the model knows, where it is not the present one, and the mark of telling it.
fn limit_change(goal: &Goal, view: &View<'_>) -> Option<(Option<u64>, String)> {
    let prefix = format!("{}/limit/", goal.report.id);
    let written = |limit: Option<u64>| limit.map_or("none".to_owned(), |limit| limit.to_string());
    let told = view.told(None).marks;
    let waiting = view.fifo.iter().filter_map(|pending| pending.tells.as_ref());
    let waiting = waiting.flat_map(|tells| &tells.marks);
    // `{goal}/limit/{count}/{limit}`: the highest count is the last that was told.
    let mut last = (0_u64, written(goal.first_budget));
    for mark in told.into_iter().flatten().chain(waiting) {
        if let Some((count, limit)) = mark.strip_prefix(&prefix).and_then(|it| it.split_once('/'))
            && let Ok(count) = count.parse::<u64>()
            && count > last.0
        {
            last = (count, limit.to_owned());
        }
    }
    let (count, known) = last;
    let present = written(goal.report.budget);
    (known != present).then(|| (known.parse().ok(), format!("{prefix}{}/{present}", count + 1)))
}

/// The sentence about a changed limit.
fn change(goal: &Goal, old: Option<u64>, new: Option<u64>, crossed: &[u64]) -> String {
    let name = short_name(&goal.report.id, 200);
    let written =
        |limit: Option<u64>| limit.map_or("no limit".to_owned(), |limit| format!("{limit} tokens"));
    let mut body =
        format!("The budget of goal {name} changed from {} to {}.", written(old), written(new));
    match new {
        Some(limit) => {
            body.push_str(&format!(
                " {} tokens are used, {} remain.",
                goal.used,
                limit.saturating_sub(goal.used)
            ));
        }
        None => body.push_str(&format!(" {} tokens are used.", goal.used)),
    }
    if !crossed.is_empty() {
        let crossed: Vec<_> = crossed.iter().map(|percent| format!("{percent}%")).collect();
        body.push_str(&format!(" Crossed already: {}.", crossed.join(", ")));
    }
    body
}
