//! Layers, one over the other: what is in force, and what trust leaves out.

use std::sync::Arc;

use super::document::Document;
use super::place::{Origin, Place};
use crate::engine::{Budget, Configuration, Switch};

/// The documents of a session; a layer without a file is not there.
#[derive(Clone, Debug, Default)]
pub struct Layers {
    /// The user's own file.
    pub user: Option<Arc<Document>>,
    /// The file at the session's root.
    pub workspace: Option<Arc<Document>>,
    /// What the client gave.
    pub session: Option<Arc<Document>>,
}

/// What is in force.
#[derive(Clone, Debug, Default)]
pub struct Effective {
    /// What a session takes over.
    pub configuration: Configuration,
    /// What an untrusted workspace's file says that has no part in it.
    pub left_out: Vec<LeftOut>,
}

/// Something that trust leaves out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// The reminder's id, the kind's name, or `budget`.
    pub id: String,
    /// The key of a kind or a budget, where it is one alone.
    pub key: Option<String>,
    /// Why, in one sentence for people.
    pub why: String,
    /// Whose file says it.
    pub origin: Origin,
    /// Where.
    pub at: Place,
}

impl Layers {
    /// What comes of the layers for a session that trusts the workspace, or does not.
    pub fn effective(&self, trusted: bool) -> Effective {
        let workspace = self.workspace.as_ref().filter(|_| trusted);
        let layers = [self.user.as_ref(), workspace, self.session.as_ref()];
        let mut configuration = Configuration::default();
        for document in layers.into_iter().flatten().filter(|document| !document.broken) {
            for entry in &document.kinds {
                match (configuration.kinds.get_mut(&entry.name), &entry.switch) {
                    (Some(Switch::On(settings)), Switch::On(over)) => settings.merge(over),
                    _ => drop(configuration.kinds.insert(entry.name.clone(), entry.switch.clone())),
                }
            }
            for entry in &document.reminders {
                let known = configuration.reminders.iter_mut();
                match known.into_iter().find(|known| known.id == entry.definition.id) {
                    Some(known) => *known = entry.definition.clone(),
                    None => configuration.reminders.push(entry.definition.clone()),
                }
            }
            let Budget { per_wait, per_session } = &mut configuration.budget;
            for (value, given) in
                [(per_wait, &document.budget.per_wait), (per_session, &document.budget.per_session)]
            {
                *value = given.as_ref().map(|given| given.value).or(*value);
            }
        }
        Effective { configuration, left_out: Vec::new() }
    }
}
