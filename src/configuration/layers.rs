//! Layers, one over the other: what is in force, where each part of it comes from, and what trust
//! leaves out.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::document::{Document, KindEntry, ReminderEntry};
use super::mistake::{Mistake, Severity, nearest};
use super::place::{Given, Layer, Origin, Place};
use crate::engine::{Configuration, Definition, Registry as _, Switch, Value};
use crate::reminders::keys::Untrusted;
use crate::reminders::{self, Catalogue};

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
    /// What an untrusted workspace's file says that has no part in it, in the order of the file.
    pub left_out: Vec<LeftOut>,
    /// What its parts come from: `kinds.KIND` for a switch, `kinds.KIND.KEY`, `reminders.ID`,
    /// `budget.KEY`.
    pub sources: BTreeMap<String, Source>,
}

/// Where a part of what is in force comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Whose file.
    pub origin: Origin,
    /// Where in it.
    pub at: Place,
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
        let mut merge = Merge { known: self.ids(), ..Merge::default() };
        for document in self.documents() {
            let strict = document.origin.layer == Layer::Workspace && !trusted;
            merge.document(document, strict);
        }
        merge.finish()
    }

    /// What is wrong only when the layers are seen together: names in `[kinds]` that neither a kind
    /// nor a reminder of any layer has, and settings that do not fit the reminder that they retune.
    pub fn mistakes(&self) -> Vec<(Arc<Document>, Mistake)> {
        let ids = self.ids();
        let mut found = Vec::new();
        for document in self.documents() {
            for entry in &document.kinds {
                let wrong = match ids.get(entry.name.as_str()) {
                    _ if is_kind(&entry.name) => None,
                    None => Some(unknown(entry, ids.keys().copied())),
                    Some(definition) => unfit(entry, definition),
                };
                found.extend(wrong.map(|mistake| (document.clone(), mistake)));
            }
        }
        found
    }

    /// The layers that can be used, those that win last.
    fn documents(&self) -> impl Iterator<Item = &Arc<Document>> {
        let all = [&self.user, &self.workspace, &self.session];
        all.into_iter().flatten().filter(|document| !document.broken)
    }

    /// The reminders of all layers, each as the last one has it.
    fn ids(&self) -> BTreeMap<&str, &Definition> {
        let all = self.documents().flat_map(|document| &document.reminders);
        all.map(|entry| (entry.definition.id.as_str(), &entry.definition)).collect()
    }
}

fn is_kind(name: &str) -> bool {
    reminders::kind_names().any(|kind| kind == name)
}

fn unknown<'a>(entry: &KindEntry, ids: impl Iterator<Item = &'a str>) -> Mistake {
    let kinds = reminders::kind_names().map(|name| -> &'a str { name });
    let help = match nearest(&entry.name, kinds.chain(ids)) {
        Some(one) => format!("did you mean {one}?"),
        None => format!("kinds are {}", reminders::kind_names().collect::<Vec<_>>().join(", ")),
    };
    Mistake {
        severity: Severity::Unknown,
        at: entry.at.clone(),
        key: format!("kinds.{}", entry.name),
        message: format!("no kind or reminder is called {:?}", entry.name),
        help: Some(help),
    }
}

/// What is wrong with settings for the reminder that they retune.
fn unfit(entry: &KindEntry, definition: &Definition) -> Option<Mistake> {
    let Switch::On(settings) = &entry.switch else { return None };
    let mut definition = definition.clone();
    definition.settings.merge(settings);
    let refusal = Catalogue.build(&definition).err()?;
    let key = refusal.at.and_then(|at| at.key.into_iter().next());
    let at = key.as_ref().and_then(|key| entry.keys.get(key)).unwrap_or(&entry.at);
    let below = key.map(|key| format!(".{key}")).unwrap_or_default();
    Some(Mistake {
        severity: Severity::Mistake,
        at: at.clone(),
        key: format!("kinds.{}{below}", entry.name),
        message: refusal.message,
        help: None,
    })
}

/// A kind, or a reminder by its id, while layers are merged.
#[derive(Debug)]
struct Tuned {
    on: bool,
    settings: Value,
}

/// Layers being merged.
#[derive(Debug, Default)]
struct Merge<'a> {
    /// The reminders of all layers.
    known: BTreeMap<&'a str, &'a Definition>,
    kinds: BTreeMap<String, Tuned>,
    done: Effective,
}

impl<'a> Merge<'a> {
    /// Lays a document over the others; strictly, where its own text has no part in it.
    fn document(&mut self, document: &'a Document, strict: bool) {
        let before: BTreeSet<String> =
            self.done.configuration.reminders.iter().map(|it| it.id.clone()).collect();
        for entry in &document.kinds {
            self.kind(entry, document, strict);
        }
        for entry in &document.reminders {
            let id = &entry.definition.id;
            if strict {
                let why = if before.contains(id) {
                    "it would replace a reminder of the user's own"
                } else {
                    "it is the workspace's own text"
                };
                self.leave_out(document, id, None, why, &entry.at);
            } else {
                self.reminder(entry, document);
            }
        }
        let budget = &document.budget;
        for (key, given) in [("perWait", &budget.per_wait), ("perSession", &budget.per_session)] {
            if let Some(given) = given {
                self.budget(key, given, document, strict);
            }
        }
    }

    fn kind(&mut self, entry: &KindEntry, document: &Document, strict: bool) {
        let name = &entry.name;
        let is_kind = is_kind(name);
        match self.known.get(name.as_str()) {
            _ if is_kind => {}
            Some(_) if strict => {
                let why = "it is a rule, and only a trusted workspace switches or retunes those";
                return self.leave_out(document, name, None, why, &entry.at);
            }
            Some(definition) if unfit(entry, definition).is_none() => {}
            // Reported with the mistakes of the layers.
            _ => return,
        }
        let source = |at: &Place| Source { origin: document.origin.clone(), at: at.clone() };
        let switched = format!("kinds.{name}");
        self.done.sources.insert(switched.clone(), source(&entry.at));
        let tuned = self.kinds.entry(name.clone());
        let tuned = tuned.or_insert(Tuned { on: true, settings: Value::empty_map() });
        let Switch::On(settings) = &entry.switch else {
            tuned.on = false;
            return;
        };
        tuned.on = true;
        let Value::Map(members) = settings else { return };
        for (key, value) in members {
            let at = entry.keys.get(key).unwrap_or(&entry.at);
            if strict && let Some(why) = distrusted(name, key, value, &self.kinds[name].settings) {
                self.leave_out(document, name, Some(key), why, at);
                continue;
            }
            let member = Value::Map([(key.clone(), value.clone())].into());
            if let Some(tuned) = self.kinds.get_mut(name) {
                tuned.settings.merge(&member);
            }
            self.done.sources.insert(format!("{switched}.{key}"), source(at));
        }
    }

    fn reminder(&mut self, entry: &ReminderEntry, document: &Document) {
        let definition = &entry.definition;
        let reminders = &mut self.done.configuration.reminders;
        match reminders.iter_mut().find(|known| known.id == definition.id) {
            Some(known) => *known = definition.clone(),
            None => reminders.push(definition.clone()),
        }
        let source = Source { origin: document.origin.clone(), at: entry.at.clone() };
        self.done.sources.insert(format!("reminders.{}", definition.id), source);
    }

    fn budget(&mut self, key: &str, given: &Given<u64>, document: &Document, strict: bool) {
        let budget = &mut self.done.configuration.budget;
        let limit = match key {
            "perWait" => &mut budget.per_wait,
            _ => &mut budget.per_session,
        };
        if strict && limit.is_some_and(|limit| given.value > limit) {
            let why = "it is more than the user allows";
            return self.leave_out(document, "budget", Some(key), why, &given.at);
        }
        *limit = Some(given.value);
        let source = Source { origin: document.origin.clone(), at: given.at.clone() };
        self.done.sources.insert(format!("budget.{key}"), source);
    }

    fn leave_out(
        &mut self,
        document: &Document,
        id: &str,
        key: Option<&str>,
        why: &str,
        at: &Place,
    ) {
        self.done.left_out.push(LeftOut {
            id: id.to_owned(),
            key: key.map(str::to_owned),
            why: format!("{why}, and the session does not trust the workspace"),
            origin: document.origin.clone(),
            at: at.clone(),
        });
    }

    fn finish(mut self) -> Effective {
        self.done.configuration.kinds = self
            .kinds
            .into_iter()
            .map(|(name, Tuned { on, settings })| {
                (name, if on { Switch::On(settings) } else { Switch::Off })
            })
            .collect();
        self.done.left_out.sort_by_key(|left| left.at.range.start);
        self.done
    }
}

/// The caps that every kind may have, beside its policy or in it.
const CAPS: [&str; 2] = ["maxPerTurn", "maxPerSession"];

/// Whether a key of a kind, set to this, takes away or raises a cap that is set below it.
fn raises_cap(key: &str, value: &Value, below: &Value) -> bool {
    let in_policy = |cap: &str| below.get("policy").and_then(|policy| policy.get(cap));
    let is_raised = |given: Option<&Value>, before: Option<&Value>| {
        let Some(before) = before.and_then(number) else { return false };
        given.and_then(number).is_none_or(|given| given > before)
    };
    match key {
        // What stands beside the policy goes before what stands in it.
        "policy" => CAPS.iter().any(|cap| {
            below.get(cap).is_none_or(|cap| *cap == Value::Null)
                && is_raised(value.get(cap), in_policy(cap))
        }),
        cap if CAPS.contains(&cap) => {
            let beside = below.get(cap).filter(|cap| **cap != Value::Null);
            is_raised(Some(value), beside.or_else(|| in_policy(cap)))
        }
        _ => false,
    }
}

fn number(value: &Value) -> Option<u64> {
    match value {
        Value::Integer(number) => u64::try_from(*number).ok(),
        Value::Unsigned(number) => Some(*number),
        _ => None,
    }
}

/// Why an untrusted workspace may not set a key of a kind to this, over what is set below it.
fn distrusted(kind: &str, key: &str, value: &Value, below: &Value) -> Option<&'static str> {
    if raises_cap(key, value, below) {
        return Some("it raises a cap");
    }
    let key = reminders::own_keys(kind).iter().find(|known| known.name == key)?;
    let before = below.get(&key.name).or(key.default.as_ref());
    match key.untrusted {
        Untrusted::Sets => None,
        Untrusted::LeavesAlone => {
            (Some(value) != before).then_some("it names files or is the workspace's own text")
        }
        Untrusted::Lowers => (number(value) > before.and_then(number)).then_some("it raises a cap"),
        Untrusted::Adds => {
            let (Value::List(patterns), Some(Value::List(known))) = (value, before) else {
                return Some("it may show what is withheld");
            };
            let opens = |pattern: &Value| {
                !known.contains(pattern)
                    && pattern.as_text().is_none_or(|it| it.trim_start().starts_with('!'))
            };
            let loosens =
                known.iter().any(|it| !patterns.contains(it)) || patterns.iter().any(opens);
            loosens.then_some("it would show what is withheld")
        }
    }
}
