//! Rules: a body that is told while a condition over the state holds, after a path was touched that
//! globs match, after a call finished that a pattern matches, or when all that is given holds.

use serde::Deserialize;

use super::common::Common;
use super::effort::{Effort, SPENT};
use super::expression::Condition;
use super::matching::{Globs, Ranges, ToolPattern, ToolSettings, mark};
use super::names::{self, Own};
use super::settings;
use super::standing_text::said;
use super::template::Template;
use crate::engine::{
    Definition, Lane, Policy, Proposal, Refusal, Reminder, Silence, Trigger, View,
};

#[derive(Debug, Deserialize)]
struct Settings {
    body: String,
    when: Option<String>,
    globs: Option<Vec<String>>,
    tool: Option<ToolSettings>,
}

/// A text of the user's own with a condition.
#[derive(Debug)]
pub struct Rule {
    body: Template,
    when: Option<Condition>,
    globs: Option<Globs>,
    tool: Option<ToolPattern>,
    common: Common,
}

impl Rule {
    /// Makes it of `{body, when?, globs?, tool?}` and what all forms share.
    pub fn new(definition: &Definition) -> Result<Self, Refusal> {
        let Settings { body, when, globs, tool } = settings::read(definition)?;
        let id = &definition.id;
        let when = when.map(|when| Condition::new(&when).map_err(|it| it.refusal(id, "when")));
        let globs = globs.map(|globs| Globs::new(&globs).map_err(|refusal| refusal.of(id)));
        let tool = tool.map(|tool| ToolPattern::new(tool).map_err(|refusal| refusal.of(id)));
        Ok(Self {
            body: Template::new(&body).map_err(|it| it.refusal(id, "body"))?,
            when: when.transpose()?,
            globs: globs.transpose()?,
            tool: tool.transpose()?,
            common: Common::of(definition, Trigger::OnChange)?,
        })
    }
}

impl Reminder for Rule {
    fn policy(&self) -> Policy {
        self.common.policy
    }

    fn lane(&self) -> Lane {
        self.common.lane
    }

    fn priority(&self) -> i64 {
        self.common.priority
    }

    /// What happens in the middle of a turn is told there.
    fn rides_seams(&self) -> bool {
        self.common.lane != Lane::Roster || self.globs.is_some() || self.tool.is_some()
    }

    fn propose(&self, view: &View<'_>) -> Proposal {
        if let Some(silence) = self.common.silence(view) {
            return silence;
        }
        let effort = Effort::of(view);
        let looks_back = self.globs.is_some() || self.tool.is_some();
        let told = if looks_back {
            Ranges::told(view, self.common.policy.rearm)
        } else {
            Ranges::default()
        };
        let touched = self.globs.as_ref().map(|globs| globs.matched(view, &told));
        if touched.as_ref().is_some_and(Vec::is_empty) {
            return no_path(view);
        }
        let calls = self.tool.as_ref().map(|tool| tool.matched(view, &told, &effort)).transpose();
        let Ok(calls) = calls else { return Proposal::Fail(SPENT.to_owned()) };
        if calls.as_ref().is_some_and(Vec::is_empty) {
            return no_call(view);
        }
        let own = Own { names: None, touched: touched.as_deref(), calls: calls.as_deref() };
        if let Some(when) = &self.when {
            match when.holds(&effort, |uses| names::context(view, uses, own)) {
                Ok(true) => {}
                Ok(false) => {
                    return Proposal::Silent(Silence::Quoting {
                        text: when.source().clone(),
                        reason: |when| format!("its condition does not hold: {when}"),
                        next: "when it does",
                    });
                }
                Err(error) => return Proposal::Fail(format!("when: {error}")),
            }
        }
        let touched = touched.iter().flatten().map(|(_, touch)| touch.at);
        let happened = touched.chain(calls.iter().flatten().map(|call| call.serial));
        let marks = mark(happened);
        said(&self.common, self.body.render(&effort, |uses| names::context(view, uses, own)), marks)
    }
}

fn no_path(view: &View<'_>) -> Proposal {
    if view.root.is_none() {
        return Proposal::silent("the session has no root", "in a session with one");
    }
    Proposal::counting(
        [view.scope.facts.touched.len() as u64, 0, 0],
        |[touched, ..]| {
            format!("none of the {touched} paths touched in this turn matches and is new to it")
        },
        |_| "after a path is touched that its globs match".to_owned(),
    )
}

fn no_call(view: &View<'_>) -> Proposal {
    Proposal::counting(
        [view.scope.calls.finished().len() as u64, 0, 0],
        |[finished, ..]| {
            format!("none of the {finished} calls finished in this turn matches and is new to it")
        },
        |_| "after a call that its pattern matches".to_owned(),
    )
}
