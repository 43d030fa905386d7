//! One file: what it says, and what is wrong with it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use toml::de::DeTable;

use super::mistake::{Mistake, Severity};
use super::place::{Given, Origin, Place};
use super::tree::{Data, Member, Node};
use crate::engine::{Definition, Registry as _, Switch, Value};
use crate::reminders::Catalogue;

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

/// `[budget]`, in tokens.
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
    /// Reads the text of a file.
    pub fn read(text: &str, origin: Origin) -> Self {
        let (table, errors) = DeTable::parse_recoverable(text);
        let mut reader = Reader::new(text, origin);
        if errors.is_empty() {
            let tree = Node::of_toml(table.get_ref(), table.span());
            reader.document(&tree);
        } else {
            reader.found.broken = true;
            for error in errors {
                let at = error.span().unwrap_or_default();
                reader.mistake(at, String::new(), error.message().to_owned());
            }
        }
        reader.finish()
    }

    /// Reads what a client gave, a whole file as JSON.
    pub fn of_json(json: &serde_json::Value, origin: Origin) -> Self {
        let mut reader = Reader::new("", origin);
        reader.document(&Node::of_json(json));
        reader.finish()
    }
}

struct Reader {
    found: Document,
}

impl Reader {
    fn new(text: &str, origin: Origin) -> Self {
        Self {
            found: Document {
                origin,
                broken: false,
                kinds: Vec::new(),
                reminders: Vec::new(),
                budget: BudgetEntries::default(),
                limits: LimitEntries::default(),
                store: StoreEntries::default(),
                mistakes: Vec::new(),
                source: text.into(),
            },
        }
    }

    fn finish(mut self) -> Document {
        self.found.mistakes.sort_by_key(|mistake| mistake.at.range.start);
        self.found
    }

    fn place(&self, at: Range<usize>) -> Place {
        match &*self.found.source {
            "" => Place::default(),
            text => Place::in_text(text, at),
        }
    }

    fn mistake(&mut self, at: Range<usize>, key: String, message: String) {
        let at = self.place(at);
        let severity = Severity::Mistake;
        self.found.mistakes.push(Mistake { severity, at, key, message, help: None });
    }

    fn document(&mut self, tree: &Node) {
        for table in tree.members() {
            match table.name.as_str() {
                "kinds" => table.value.members().iter().for_each(|member| self.kind(member)),
                "budget" => {
                    self.found.budget = BudgetEntries {
                        per_wait: self.count(table, "perWait"),
                        per_session: self.count(table, "perSession"),
                    }
                }
                "limits" => {
                    let message_bytes = self.count(table, "messageBytes");
                    self.found.limits = LimitEntries { message_bytes };
                }
                "store" => {
                    self.found.store = StoreEntries {
                        keep_days: self.count(table, "keepDays"),
                        keep_sessions: self.count(table, "keepSessions"),
                        keep_bytes: self.count(table, "keepBytes"),
                    }
                }
                _ => {}
            }
        }
    }

    fn kind(&mut self, member: &Member) {
        let switch = match &member.value.data {
            Data::Plain(Value::Bool(false)) => Switch::Off,
            Data::Plain(Value::Bool(true)) => Switch::On(Value::empty_map()),
            Data::Table(_) => Switch::On(member.value.value()),
            _ => {
                let key = format!("kinds.{}", member.name);
                let message = "a kind is false, true or a table of settings".to_owned();
                return self.mistake(member.value.at.clone(), key, message);
            }
        };
        if let Switch::On(settings) = &switch
            && let Ok(mut definition) = Catalogue.kind(&member.name)
        {
            definition.settings.merge(settings);
            if let Err(refusal) = Catalogue.build(&definition) {
                let key = format!("kinds.{}", member.name);
                return self.mistake(member.at.clone(), key, refusal.message);
            }
        }
        let keys = member.value.members().iter();
        let keys = keys.map(|key| (key.name.clone(), self.place(key.at.clone()))).collect();
        let at = self.place(member.at.clone());
        self.found.kinds.push(KindEntry { name: member.name.clone(), switch, at, keys });
    }

    fn count(&mut self, table: &Member, name: &str) -> Option<Given<u64>> {
        let member = table.value.member(name)?;
        match member.value.data {
            Data::Plain(Value::Integer(number @ 1..)) => Some(Given {
                value: number.unsigned_abs(),
                at: self.place(member.value.at.clone()),
            }),
            _ => {
                let key = format!("{}.{name}", table.name);
                let message = format!("{name} is a whole number from 1");
                self.mistake(member.value.at.clone(), key, message);
                None
            }
        }
    }
}
