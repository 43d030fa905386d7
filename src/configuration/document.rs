//! One file: what it says, and what is wrong with it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use serde_json::Value as Json;
use toml::de::DeTable;

use super::mistake::{Mistake, Severity, nearest};
use super::place::{Given, Layer, Origin, Place, PlaceFinder};
use super::text;
use super::tree::{Data, Member, Node};
use super::walk::{Finding, Walk};
use super::{FILE_BYTES_MAX, REMINDERS_MAX, schema};
use crate::engine::{Definition, Refusal, Registry as _, Switch, Value};
use crate::reminders::{self, Catalogue};
use crate::rules::form;

/// Mistakes of one document that are listed.
const MISTAKES_MAX: usize = 100;

/// A configuration file as it was read. Mistaken parts are not in it, but listed.
#[derive(Clone, Debug)]
pub struct Document {
    /// Where it comes from.
    pub origin: Origin,
    /// Whether nothing in it can be used, as after a mistake of syntax: the last one that could be
    /// read stays in force.
    pub broken: bool,
    /// `[kinds]`, in the order of the file.
    pub kinds: Vec<KindEntry>,
    /// `[[reminders]]`, in the order of the file.
    pub reminders: Vec<ReminderEntry>,
    /// Ids of reminders that are mistaken, each with the mistake that says why.
    pub left_out: Vec<(String, Mistake)>,
    /// `[budget]`
    pub budget: BudgetEntries,
    /// `[limits]`, of the user's file alone.
    pub limits: LimitEntries,
    /// `[store]`, of the user's file alone.
    pub store: StoreEntries,
    /// What is wrong, in the order of the file.
    pub mistakes: Vec<Mistake>,
    /// The text, which mistakes are shown in; empty for what a client gave.
    pub source: Arc<str>,
}

/// A kind, or an id of a reminder, that is switched or retuned.
#[derive(Clone, Debug, PartialEq)]
pub struct KindEntry {
    /// Its name.
    pub name: String,
    /// Off, or on with settings.
    pub switch: Switch,
    /// Where the name stands.
    pub at: Place,
    /// Where its keys stand.
    pub keys: BTreeMap<String, Place>,
}

/// A reminder of the user's own.
#[derive(Clone, Debug, PartialEq)]
pub struct ReminderEntry {
    /// The reminder.
    pub definition: Definition,
    /// Where its id stands.
    pub at: Place,
}

/// `[budget]`, in estimated tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BudgetEntries {
    /// `perWait`
    pub per_wait: Option<Given<u64>>,
    /// `perSession`
    pub per_session: Option<Given<u64>>,
}

/// `[limits]`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LimitEntries {
    /// `messageBytes`: the longest message that is taken, in bytes.
    pub message_bytes: Option<Given<u64>>,
}

/// `[store]`: what is kept of sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreEntries {
    /// `keepDays`: days after which a quiet session goes.
    pub keep_days: Option<Given<u64>>,
    /// `keepSessions`: sessions that are kept at most.
    pub keep_sessions: Option<Given<u64>>,
    /// `keepBytes`: bytes that are kept at most.
    pub keep_bytes: Option<Given<u64>>,
}

impl Document {
    /// Reads the bytes of a file.
    pub fn of_bytes(bytes: &[u8], origin: Origin) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::read(text, origin),
            Err(error) => {
                // What is before it shows where.
                let good = &bytes[..error.valid_up_to()];
                let text = std::str::from_utf8(good).unwrap_or_default();
                let mut reader = Reader::new(text, origin);
                let message = "the file is not UTF-8 from here on: save it as UTF-8";
                reader.broken(text.len()..text.len(), message.to_owned());
                reader.finish()
            }
        }
    }

    /// Reads the text of a file.
    pub fn read(text: &str, origin: Origin) -> Self {
        if text.len() > FILE_BYTES_MAX {
            let mut reader = Reader::new("", origin);
            let message = format!(
                "the file has {} bytes, and at most {FILE_BYTES_MAX} are read: make it smaller",
                text.len()
            );
            reader.broken(0..0, message);
            return reader.finish();
        }
        let (table, errors) = DeTable::parse_recoverable(text);
        let mut reader = Reader::new(text, origin);
        if errors.is_empty() {
            reader.document(&Node::of_toml(table.get_ref(), table.span()));
        }
        for error in errors {
            let at = error.span().unwrap_or_default();
            reader.broken(at, error.message().trim_end().replace('\n', ", "));
        }
        reader.finish()
    }

    /// Reads what a client gave, a whole file as JSON.
    pub fn of_json(json: &Json, origin: Origin) -> Self {
        let mut reader = Reader::new("", origin);
        let tree = Node::of_json(json);
        if matches!(tree.data, Data::Table(_)) {
            reader.document(&tree);
        } else {
            reader.broken(0..0, format!("is a table of tables, not {}", tree.described()));
        }
        reader.finish()
    }

    /// A document that could not even be looked at, for this reason.
    pub fn unreadable(why: String, origin: Origin) -> Self {
        let mut reader = Reader::new("", origin);
        reader.broken(0..0, why);
        reader.finish()
    }

    /// The ids of its reminders.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.reminders.iter().map(|entry| entry.definition.id.as_str())
    }

    /// Every mistake with its line and a caret, a blank line between.
    pub fn report(&self) -> String {
        let rendered = self.mistakes.iter().map(|it| it.rendered(&self.origin, &self.source));
        rendered.collect::<Vec<_>>().join("\n\n")
    }
}

struct Reader<'a> {
    places: PlaceFinder<'a>,
    found: Document,
    /// Where the ids stand that were given.
    ids: BTreeMap<String, usize>,
    unlisted: usize,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str, origin: Origin) -> Self {
        Self {
            places: PlaceFinder::new(text),
            found: Document {
                origin,
                broken: false,
                kinds: Vec::new(),
                reminders: Vec::new(),
                budget: BudgetEntries::default(),
                limits: LimitEntries::default(),
                store: StoreEntries::default(),
                left_out: Vec::new(),
                mistakes: Vec::new(),
                source: text.into(),
            },
            ids: BTreeMap::new(),
            unlisted: 0,
        }
    }

    fn finish(mut self) -> Document {
        self.found.mistakes.sort_by_key(|mistake| mistake.at.range.start);
        if self.unlisted > 0 {
            self.found.mistakes.push(Mistake {
                severity: Severity::Mistake,
                at: Place::default(),
                key: String::new(),
                message: format!("{} more mistakes are not listed", self.unlisted),
                help: Some("mend these first".to_owned()),
            });
        }
        self.found
    }

    /// Lists a mistake, or counts it where enough are listed.
    fn push(
        &mut self,
        severity: Severity,
        at: &Range<usize>,
        key: String,
        message: String,
        help: Option<String>,
    ) {
        if self.found.mistakes.len() < MISTAKES_MAX {
            let at = self.places.place(at.clone());
            self.found.mistakes.push(Mistake { severity, at, key, message, help });
        } else {
            self.unlisted += 1;
        }
    }

    fn broken(&mut self, at: Range<usize>, message: String) {
        self.found.broken = true;
        self.mistake(&at, String::new(), message, None);
    }

    fn mistake(&mut self, at: &Range<usize>, key: String, message: String, help: Option<String>) {
        self.push(Severity::Mistake, at, key, message, help);
    }

    /// Lists what a walk found below a node; answers whether something of it is a mistake.
    fn list(&mut self, root: &Node, top: &[String], findings: Vec<Finding>) -> bool {
        let mut bad = false;
        for finding in findings {
            bad |= finding.severity == Severity::Mistake;
            let at = located(root, &finding.key[top.len()..], finding.of_key);
            let Finding { severity, key, message, help, .. } = finding;
            self.push(severity, &at, shown(&key), message, help);
        }
        bad
    }

    fn document(&mut self, tree: &Node) {
        for table in tree.members() {
            let name = table.name.as_str();
            let is_users = matches!(name, "limits" | "store");
            if is_users && self.found.origin.layer != Layer::User {
                let message = format!(
                    "[{name}] is for the whole daemon, and belongs into the user's file alone"
                );
                self.mistake(&table.at, name.to_owned(), message, None);
                continue;
            }
            match name {
                "kinds" => self.kinds(table),
                "reminders" => self.reminders(table),
                "budget" | "limits" | "store" => self.counts(table),
                "$schema" => {}
                _ => {
                    let known = schema::document()["properties"].as_object();
                    let known = known.into_iter().flatten().map(|(name, _)| name.as_str());
                    let known = known.filter(|name| !name.starts_with('$'));
                    let help = match nearest(name, known) {
                        Some(one) => format!("did you mean {one}?"),
                        None => "known are kinds, reminders, budget, limits, store".to_owned(),
                    };
                    let message = format!("no table is called {name:?}");
                    self.push(Severity::Unknown, &table.at, name.to_owned(), message, Some(help));
                }
            }
        }
    }

    fn kinds(&mut self, table: &Member) {
        let Data::Table(members) = &table.value.data else {
            return self.not_a_table(table, "a table of kinds");
        };
        for (count, member) in members.iter().enumerate() {
            if count == REMINDERS_MAX {
                let message = format!("at most {REMINDERS_MAX} kinds and reminders are switched");
                return self.mistake(&member.at, "kinds".to_owned(), message, None);
            }
            self.kind(member);
        }
    }

    fn kind(&mut self, member: &Member) {
        let top = ["kinds".to_owned(), member.name.clone()];
        let is_built_in = reminders::kind_names().any(|name| name == member.name);
        let schema = if is_built_in { schema::kind(&member.name) } else { schema::reminder() };
        // A misspelt kind's keys are not a reminder's: that it is misspelt is said of its name.
        let is_misspelt = !is_built_in && nearest(&member.name, reminders::kind_names()).is_some();
        let switch = match &member.value.data {
            Data::Plain(Value::Bool(false)) => Switch::Off,
            Data::Plain(Value::Bool(true)) => Switch::On(Value::empty_map()),
            Data::Table(_) => {
                let mut walk = Walk::default();
                let good = walk.table(schema, &member.value, &top);
                if is_misspelt {
                    walk.findings.retain(|finding| finding.severity == Severity::Mistake);
                }
                let mut bad = self.list(&member.value, &top, walk.findings);
                let mut settings: BTreeMap<String, Value> = good.into_iter().collect();
                if is_built_in {
                    let build = |settings: &BTreeMap<String, Value>| {
                        let mut definition = Catalogue.kind(&member.name)?;
                        definition.settings.merge(&Value::Map(settings.clone()));
                        Catalogue.build(&definition).map(drop)
                    };
                    bad |= self.tried(&member.value, &top, &member.name, &mut settings, build);
                }
                if bad {
                    return;
                }
                Switch::On(Value::Map(settings))
            }
            _ => {
                let found = member.value.described();
                let message =
                    format!("{} is false, true or a table of keys, not {found}", member.name);
                return self.mistake(&member.value.at, shown(&top), message, None);
            }
        };
        let kept = match &switch {
            Switch::On(Value::Map(settings)) => settings.keys().cloned().collect(),
            _ => BTreeSet::new(),
        };
        let keys = member.value.members().iter().filter(|key| kept.contains(&key.name));
        let keys = keys.map(|key| (key.name.clone(), self.places.place(key.at.clone()))).collect();
        let at = self.places.place(member.at.clone());
        self.found.kinds.push(KindEntry { name: member.name.clone(), switch, at, keys });
    }

    /// Builds of settings, taking away what is refused until nothing is, and lists every refusal.
    /// Answers whether there was one.
    fn tried(
        &mut self,
        node: &Node,
        top: &[String],
        id: &str,
        settings: &mut BTreeMap<String, Value>,
        build: impl Fn(&BTreeMap<String, Value>) -> Result<(), Refusal>,
    ) -> bool {
        let mut bad = false;
        while let Err(refusal) = build(settings) {
            bad = true;
            let at = refusal.at.unwrap_or_default();
            let name = at.key.first().cloned();
            self.refused(node, top, id, &refusal.message, &at.key, at.within);
            let Some(name) = name else { break };
            // Whatever happens, each member is changed once at most.
            let before = match stand_in(&name) {
                Some(value) => settings.insert(name, value.clone()).filter(|old| *old == value),
                None if settings.remove(&name).is_some() => None,
                None => break,
            };
            if before.is_some() {
                break;
            }
        }
        bad
    }

    fn refused(
        &mut self,
        node: &Node,
        top: &[String],
        id: &str,
        message: &str,
        key: &[String],
        within: Option<(u32, u32)>,
    ) {
        let path = [top, key].concat();
        let name = shown(&path);
        // One that was listed for what is in it, or around it, says enough.
        let listed = |mistake: &Mistake| {
            !key.is_empty()
                && (is_below(&mistake.key, &name) || is_below(&name, &mistake.key))
                && mistake.key.len() > shown(top).len()
        };
        if self.found.mistakes.iter().any(listed) {
            return;
        }
        let mut at = located(node, key, false);
        if let Some((line, column)) = within {
            at = text::within(&self.found.source, at, line, column);
        }
        let message = message.strip_prefix(&format!("{id}: ")).unwrap_or(message);
        self.mistake(&at, name, message.to_owned(), None);
    }

    fn reminders(&mut self, table: &Member) {
        let Data::List(items) = &table.value.data else {
            return self.not_a_table(table, "a list of tables, [[reminders]]");
        };
        for (place, item) in items.iter().enumerate() {
            if place == REMINDERS_MAX {
                let message = format!("a file has at most {REMINDERS_MAX} reminders");
                return self.mistake(&item.at, "reminders".to_owned(), message, None);
            }
            self.reminder(place, item);
        }
    }

    fn reminder(&mut self, place: usize, node: &Node) {
        let top = ["reminders".to_owned(), place.to_string()];
        if !matches!(node.data, Data::Table(_)) {
            let message = format!("a reminder is a table, not {}", node.described());
            return self.mistake(&node.at, shown(&top), message, None);
        }
        let known = self.found.mistakes.len();
        let mut walk = Walk::default();
        let good = walk.table(schema::reminder(), node, &top);
        let mut bad = self.list(node, &top, walk.findings);
        let mut members: BTreeMap<String, Value> = good.into_iter().collect();
        let has_text = |members: &BTreeMap<String, Value>| {
            FORMS.iter().any(|name| members.contains_key(*name))
        };
        // What was left out as mistaken must not be missed again, nor what was misspelt.
        for member in node.members() {
            if let Some(value) = stand_in(&member.name) {
                members.entry(member.name.clone()).or_insert(value);
            } else if !members.contains_key(&member.name)
                && let Some(meant) = nearest(&member.name, FORMS)
                && !has_text(&members)
                && let Some(value) = stand_in(meant)
            {
                bad = true;
                members.insert(meant.to_owned(), value);
            }
        }
        let id = members.get("id").and_then(Value::as_text).unwrap_or_default().to_owned();
        let read = |members: &BTreeMap<String, Value>| {
            let definition = form::definition(&Value::Map(members.clone()))?;
            Catalogue.build(&definition).map(|_| definition)
        };
        bad |= self.tried(node, &top, &id, &mut members, |members| read(members).map(drop));
        let at = node.member("id").map_or(node.at.clone(), |id| id.value.at.clone());
        bad |= self.claimed(&id, &at, &top);
        if !bad && let Ok(definition) = read(&members) {
            let at = self.places.place(at);
            self.found.reminders.push(ReminderEntry { definition, at });
        } else if !id.is_empty() {
            let found = &self.found.mistakes[known..];
            let grave = found.iter().find(|mistake| mistake.severity == Severity::Mistake);
            let why = grave.or(found.first()).cloned();
            self.found.left_out.extend(why.map(|why| (id, why)));
        }
    }

    /// Lists an id that another one has. Answers whether it is so.
    fn claimed(&mut self, id: &str, at: &Range<usize>, top: &[String]) -> bool {
        if id.is_empty() {
            return false;
        }
        let key = shown(&[top, &["id".to_owned()]].concat());
        if reminders::kind_names().any(|name| name == id) {
            let message = format!("{id:?} is a built-in kind");
            let help = format!("retune it in [kinds], as {id} = {{ … }}, or take another id");
            self.mistake(at, key, message, Some(help));
            return true;
        }
        let line = self.places.place(at.clone()).line;
        match self.ids.get(id) {
            None => {
                self.ids.insert(id.to_owned(), line);
                false
            }
            Some(first) => {
                let place = if *first > 0 { format!(" on line {first}") } else { String::new() };
                let message =
                    format!("{id:?} is an id already{place}: each is given once in a file");
                self.mistake(at, key, message, None);
                true
            }
        }
    }

    fn counts(&mut self, table: &Member) {
        let name = table.name.clone();
        if !matches!(table.value.data, Data::Table(_)) {
            return self.not_a_table(table, "a table");
        }
        let schema = &schema::document()["properties"][&name];
        let mut walk = Walk::default();
        let top = [name];
        let good = walk.table(schema, &table.value, &top);
        self.list(&table.value, &top, walk.findings);
        for (key, value) in good {
            let Value::Integer(value) = value else { continue };
            let at = table.value.member(&key).map_or(0..0, |member| member.at.clone());
            let given = Given { value: value.unsigned_abs(), at: self.places.place(at) };
            let Document { budget, limits, store, .. } = &mut self.found;
            let place = match key.as_str() {
                "perWait" => &mut budget.per_wait,
                "perSession" => &mut budget.per_session,
                "messageBytes" => &mut limits.message_bytes,
                "keepDays" => &mut store.keep_days,
                "keepSessions" => &mut store.keep_sessions,
                _ => &mut store.keep_bytes,
            };
            *place = Some(given);
        }
    }

    fn not_a_table(&mut self, table: &Member, what: &str) {
        let Member { name, value, .. } = table;
        let message = format!("{name} is {what}, not {}", value.described());
        self.mistake(&value.at, name.clone(), message, None);
    }
}

/// What stands for a mistaken member without which a form would be of another sort.
/// The members of which a reminder has one.
const FORMS: [&str; 3] = ["body", "pool", "client"];

fn stand_in(name: &str) -> Option<Value> {
    Some(match name {
        "id" | "body" | "pool" => Value::from("-"),
        "when" => Value::from("true"),
        "client" => Value::Bool(true),
        "globs" => Value::List(vec![Value::from("-")]),
        "tool" => Value::Map([("name".to_owned(), Value::from("-"))].into()),
        _ => return None,
    })
}

/// The bytes of what a way leads to, as far as it leads: of the key itself if so wanted.
fn located(root: &Node, way: &[String], of_key: bool) -> Range<usize> {
    let mut node = root;
    let mut at = root.at.clone();
    for (step, name) in way.iter().enumerate() {
        if let Some(member) = node.member(name) {
            let is_last = step + 1 == way.len();
            at = if is_last && of_key { member.at.clone() } else { member.value.at.clone() };
            node = &member.value;
        } else if let Some(item) = node.item(name) {
            at = item.at.clone();
            node = item;
        } else {
            break;
        }
    }
    at
}

/// A way as people write it: `reminders[2].policy`.
fn shown(way: &[String]) -> String {
    let mut text = String::new();
    for (step, name) in way.iter().enumerate() {
        if step > 0 && !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit()) {
            text.push_str(&format!("[{name}]"));
        } else {
            let dot = if step > 0 { "." } else { "" };
            text.push_str(&format!("{dot}{name}"));
        }
    }
    text
}

/// Whether one way, as it is shown, is another or leads on from it.
fn is_below(way: &str, other: &str) -> bool {
    way.strip_prefix(other).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}
