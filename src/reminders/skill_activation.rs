//! `skill-activation`: a path touched in this turn is what an offered skill is for
//! (`reminders.md` §3). Each skill once while history holds it.

use std::collections::BTreeSet;

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::engine::{
    Definition, Lane, OfferedSkill, Policy, Proposal, Refusal, Reminder, Speech, Trigger, View,
    short_name,
};
use crate::rules::read_settings;

/// The kind's own keys.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Settings {
    /// How many skills one entry names; it says how many more there are.
    #[schemars(range(min = 1), extend("x-untrusted" = "lower"))]
    names: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { names: 5 }
    }
}

/// Names the skills that became relevant.
#[derive(Debug)]
pub struct SkillActivation {
    settings: Settings,
}

impl SkillActivation {
    /// Makes it of `{names}`.
    pub fn new(definition: &Definition) -> Result<Self, Refusal> {
        Ok(Self { settings: read_settings(definition)? })
    }
}

impl Reminder for SkillActivation {
    fn policy(&self) -> Policy {
        Policy::new(Trigger::Always)
    }

    fn lane(&self) -> Lane {
        Lane::Skill
    }

    fn propose(&self, view: &View<'_>) -> Proposal {
        let facts = &view.scope.facts;
        let Some(root) = view.root else {
            return Proposal::silent("the session has no root", "in a session with one");
        };
        if facts.skills.is_empty() || facts.touched.is_empty() {
            return Proposal::silent(
                "no skill is offered, or no path was touched in this turn",
                "after a path is touched that a skill is for",
            );
        }
        let told: BTreeSet<&str> = view.scope.history.held_marks(view.id, None, 0).collect();
        let below = root.trim_end_matches('/');
        let touched = facts.touched.keys();
        let touched: Vec<&str> =
            touched.filter_map(|path| path.strip_prefix(below)?.strip_prefix('/')).collect();
        // Skills that became relevant, each with the first path that it is for.
        let mut active: Vec<(&str, &str)> = Vec::new();
        let mut mistake = None;
        for skill in facts.skills.iter().filter(|skill| !told.contains(skill.name.as_str())) {
            let matcher = match matcher(skill) {
                Ok(matcher) => matcher,
                Err(error) => {
                    mistake = Some(error);
                    continue;
                }
            };
            let hit = touched
                .iter()
                .find(|path| matcher.matched_path_or_any_parents(path, false).is_ignore());
            active.extend(hit.map(|path| (*path, skill.name.as_str())));
        }
        if active.is_empty() {
            // A skill that is wrong keeps no other one from being named.
            return match mistake {
                Some(mistake) => Proposal::Fail(mistake),
                None => Proposal::silent(
                    "no skill that is not told yet is for the paths of this turn",
                    "after a path is touched that a skill is for",
                ),
            };
        }
        let marks = active.iter().map(|(_, name)| (*name).to_owned()).collect();
        Proposal::Speak(vec![
            Speech::new("skills", body(&active, self.settings.names)).marking(marks),
        ])
    }
}

/// A line for each path with the skills that it is for; all lines together list the first few.
fn body(active: &[(&str, &str)], names_max: usize) -> String {
    let listed = &active[..active.len().min(names_max)];
    let mut lines: Vec<(&str, Vec<String>)> = Vec::new();
    for (path, name) in listed {
        let name = short_name(name, 200);
        match lines.iter_mut().find(|(known, _)| known == path) {
            Some((_, names)) => names.push(name),
            None => lines.push((*path, vec![name])),
        }
    }
    let lines: Vec<_> = lines
        .into_iter()
        .map(|(path, names)| {
            format!("{} is what these skills are for: {}", short_name(path, 500), names.join(", "))
        })
        .collect();
    let mut body = lines.join(".\n");
    if active.len() > listed.len() {
        body.push_str(&format!(" and {} more", active.len() - listed.len()));
    }
    body.push('.');
    body
}

/// A skill's globs, relative to the root, gitignore style.
fn matcher(skill: &OfferedSkill) -> Result<Gitignore, String> {
    let mut builder = GitignoreBuilder::new("");
    for glob in &skill.globs {
        builder
            .add_line(None, glob)
            .map_err(|error| format!("skill {:?}: glob {glob:?}: {error}", skill.name))?;
    }
    builder.build().map_err(|error| format!("skill {:?}: {error}", skill.name))
}
