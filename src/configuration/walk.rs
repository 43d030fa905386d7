//! A value held against its schema: keys that nobody knows, and what they do not take.

use serde_json::Value as Json;

use super::mistake::{Severity, nearest};
use super::tree::{Data, Node};
use crate::engine::Value;
use crate::reminders::keys::Shape;

/// Names that a help lists at most.
const LISTED_MAX: usize = 24;

/// Something that a walk finds.
#[derive(Clone, Debug)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// The way to it from the top; a list's member goes by its place, from 0.
    pub key: Vec<String>,
    /// Whether it is about the key rather than its value.
    pub of_key: bool,
    /// What is wrong.
    pub message: String,
    /// The way out.
    pub help: Option<String>,
}

/// Walks through a value.
#[derive(Debug, Default)]
pub struct Walk {
    /// What was found.
    pub findings: Vec<Finding>,
}

impl Walk {
    /// The members of a table that can be used. Those that cannot are found, each alone.
    pub fn table(&mut self, schema: &Json, node: &Node, key: &[String]) -> Vec<(String, Value)> {
        let mut good = Vec::new();
        for member in node.members() {
            let below = [key, std::slice::from_ref(&member.name)].concat();
            match &schema["properties"][&member.name] {
                Json::Null => self.unknown(schema, &member.name, below),
                inner => good.extend(
                    self.value(inner, &member.value, &below).map(|it| (member.name.clone(), it)),
                ),
            }
        }
        good
    }

    /// What can be used of a value; a table that has something mistaken in it cannot.
    fn value(&mut self, schema: &Json, node: &Node, key: &[String]) -> Option<Value> {
        let fitting = match schema["anyOf"].as_array() {
            None => schema,
            Some(branches) => {
                let is_table = matches!(node.data, Data::Table(_));
                branches
                    .iter()
                    .find(|it| (it["type"] == "object") == is_table)
                    .unwrap_or(&branches[0])
            }
        };
        if fitting["type"] == "object" && matches!(node.data, Data::Table(_)) {
            let before = self.mistakes();
            let good = self.table(fitting, node, key);
            return (self.mistakes() == before).then(|| Value::Map(good.into_iter().collect()));
        }
        let value = node.value();
        let refused = match Shape::of(fitting) {
            Some(shape) => shape.check(&value).err(),
            None if fitting["const"] == true && value == Value::Bool(true) => None,
            None => Some(Vec::new()),
        };
        let Some(below) = refused else { return Some(value) };
        let name = key.last().map_or("", String::as_str);
        let found = below.iter().fold(node, |node, place| node.item(place).unwrap_or(node));
        let words = words(fitting).unwrap_or_default();
        let word = word_of(found).unwrap_or_default();
        let help = nearest(word, words.iter().map(String::as_str));
        self.findings.push(Finding {
            severity: Severity::Mistake,
            key: [key, &below].concat(),
            of_key: false,
            message: format!("{name} is {}, not {}", described(schema), found.described()),
            help: help.map(|word| format!("did you mean {word:?}?")),
        });
        None
    }

    fn mistakes(&self) -> usize {
        self.findings.iter().filter(|it| it.severity == Severity::Mistake).count()
    }

    fn unknown(&mut self, schema: &Json, name: &str, key: Vec<String>) {
        let known: Vec<&str> = schema["properties"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, _)| &**name)
            .collect();
        let help = match nearest(name, known.iter().copied()) {
            Some(one) => format!("did you mean {one}?"),
            None if known.len() <= LISTED_MAX => format!("known are {}", known.join(", ")),
            None => "protocol/CONFIGURATION.md lists those that are known".to_owned(),
        };
        self.findings.push(Finding {
            severity: Severity::Unknown,
            key,
            of_key: true,
            message: format!("no key is called {name:?} here"),
            help: Some(help),
        });
    }
}

/// The words that a key, or each member of its list, takes, where it is one of some.
fn words(schema: &Json) -> Option<Vec<String>> {
    match Shape::of(schema)? {
        Shape::Word(words) => Some(words),
        Shape::List(inner) => match *inner {
            Shape::Word(words) => Some(words),
            _ => None,
        },
        _ => None,
    }
}

fn word_of(node: &Node) -> Option<&str> {
    match &node.data {
        Data::Plain(value) => value.as_text(),
        _ => None,
    }
}

/// What a schema takes, in words.
fn described(schema: &Json) -> String {
    if let Some(branches) = schema["anyOf"].as_array() {
        return branches.iter().map(described).collect::<Vec<_>>().join(" or ");
    }
    match Shape::of(schema) {
        Some(shape) => shape.to_string(),
        None if schema["const"] == true => "true, or not there".to_owned(),
        None if schema["type"] == "array" => "a list of tables".to_owned(),
        None => "a table".to_owned(),
    }
}
