//! Standing text: a body that a client registered, told as its policy says (once by default).

use serde::Deserialize;

use super::common::Common;
use super::effort::Effort;
use super::names::{self, Own};
use super::settings;
use super::template::Template;
use crate::engine::{Definition, Lane, Policy, Proposal, Refusal, Reminder, Speech, Trigger, View};

#[derive(Debug, Deserialize)]
struct Settings {
    body: String,
}

/// A text of the user's own.
#[derive(Debug)]
pub struct StandingText {
    body: Template,
    common: Common,
}

impl StandingText {
    /// Makes it of `{body}` and what all forms share.
    pub fn new(definition: &Definition) -> Result<Self, Refusal> {
        let Settings { body } = settings::read(definition)?;
        Ok(Self {
            body: Template::new(&body).map_err(|it| it.refusal(&definition.id, "body"))?,
            common: Common::of(definition, Trigger::Once)?,
        })
    }
}

impl Reminder for StandingText {
    fn policy(&self) -> Policy {
        self.common.policy
    }

    fn lane(&self) -> Lane {
        self.common.lane
    }

    fn priority(&self) -> i64 {
        self.common.priority
    }

    fn propose(&self, view: &View<'_>) -> Proposal {
        if let Some(silence) = self.common.silence(view) {
            return silence;
        }
        let body =
            self.body.render(&Effort::of(view), |uses| names::context(view, uses, Own::default()));
        said(&self.common, body, Vec::new())
    }
}

/// A body as it is told, or why it is not.
pub fn said(common: &Common, body: Result<String, String>, marks: Vec<String>) -> Proposal {
    match body {
        Ok(body) if body.is_empty() => Proposal::silent("its body is blank now", "when it is not"),
        Ok(body) => Proposal::Speak(vec![Speech::new(common.label.clone(), body).marking(marks)]),
        Err(error) => Proposal::Fail(error),
    }
}
