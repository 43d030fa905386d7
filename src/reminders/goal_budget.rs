//! `goal-budget`: the goal's cost crossed a threshold, or its limit changed (`reminders.md` §3).
//!
//! Each threshold once for each limit. One entry names every threshold that was newly crossed, with
//! the advice of the highest; an agent that was charged hears of the highest alone. A change of the
//! limit is one entry, which also tells the thresholds that are crossed under the new one.

use crate::engine::{
    Goal, Lane, Policy, Proposal, Reminder, Speech, Start, Trigger, View, short_name,
};

/// Hundredths of the limit that are told, each with its advice.
const THRESHOLDS: [(u64, &str); 3] = [
    (50, "Spend what is left on what the goal needs."),
    (80, "Prefer finishing what is begun to beginning more."),
    (100, "The budget is used up: bring the work to an end and report where the goal stands."),
];

/// Tells what a goal has cost.
#[derive(Debug)]
pub struct GoalBudget;

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
        let crossed: Vec<_> = THRESHOLDS
            .into_iter()
            .filter(|(percent, _)| reaches(goal.used, limit, *percent))
            .collect();
        let mark = |percent: u64| format!("{}/{limit}/{percent}", goal.report.id);
        if let Some((old, changed)) = changed {
            let percents: Vec<_> = crossed.iter().map(|(percent, _)| *percent).collect();
            let mut marks = vec![changed];
            marks.extend(percents.iter().map(|percent| mark(*percent)));
            let body = change(goal, old, Some(limit), &percents);
            return Proposal::Speak(vec![Speech::new("goal", body).marking(marks)]);
        }
        let told = view.told(None).marks;
        let waiting = |mark: &str| {
            let mut tells = view.fifo.iter().filter_map(|pending| pending.tells.as_ref());
            is_root && tells.any(|tells| tells.marks.iter().any(|other| other == mark))
        };
        let fresh: Vec<_> = crossed
            .into_iter()
            .filter(|(percent, _)| {
                let mark = mark(*percent);
                !told.is_some_and(|told| told.contains(&mark)) && !waiting(&mark)
            })
            .collect();
        let Some((highest, advice)) = fresh.last().copied() else {
            return Proposal::silent(
                format!(
                    "{} of {limit} tokens are used, and every threshold crossed is told",
                    goal.used
                ),
                "at the next threshold",
            );
        };
        let named: Vec<_> = if is_root {
            fresh.iter().map(|(percent, _)| format!("{percent}%")).collect()
        } else {
            vec![format!("{highest}%")]
        };
        let body = format!("{} It crossed {}. {advice}", standing(goal, limit), named.join(", "));
        let marks = fresh.iter().map(|(percent, _)| mark(*percent)).collect();
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
