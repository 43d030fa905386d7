//! `sections`: named sections of context that differ from what history holds (`reminders.md` §3).

use crate::engine::{Lane, Policy, Proposal, Reminder, Section, Speech, Trigger, View, short_name};

/// Tells each changed section whole.
#[derive(Debug)]
pub struct Sections;

impl Reminder for Sections {
    fn policy(&self) -> Policy {
        Policy::new(Trigger::OnChange)
    }

    fn lane(&self) -> Lane {
        Lane::Sections
    }

    fn propose(&self, view: &View<'_>) -> Proposal {
        let mut speeches = Vec::new();
        for section in &view.scope.facts.sections {
            let told = view.told(Some(&section.name)).held;
            let Some(content) = &section.content else { continue };
            // Asked before the body is made: most sections stay as they are.
            if told == Some(section.fingerprint.as_str()) || (content.is_empty() && told.is_none())
            {
                continue;
            }
            speeches.push(speech(section, content));
        }
        if speeches.is_empty() {
            return Proposal::silent(
                "every section is as history holds it",
                "when one changes or history loses it",
            );
        }
        Proposal::Speak(speeches)
    }
}

fn speech(section: &Section, content: &str) -> Speech {
    let name = short_name(&section.name, 200);
    let replaces = "It replaces the section's earlier text; everything else that was said before \
                    stays valid.";
    let body = if content.is_empty() {
        format!("# {name}\nThis section is empty now. {replaces}")
    } else {
        format!("# {name}\nThis is the whole section. {replaces}\n\n{content}")
    };
    Speech::new(name, body).about(section.name.clone()).telling(section.fingerprint.clone())
}
