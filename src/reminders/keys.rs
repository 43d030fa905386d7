//! The kinds' own keys: names, types, ranges, defaults and meanings, all from the `Settings` of each
//! kind's file, so that what is read, what is refused and what is documented are one.

use std::fmt;

use schemars::{Schema, SchemaGenerator, generate::SchemaSettings};
use serde_json::Value as Json;

use crate::engine::{Refusal, Value};

/// Gives the schema of a kind's `Settings`.
pub type SettingsSchema = fn(&mut SchemaGenerator) -> Schema;

/// A key of a kind.
#[derive(Clone, Debug)]
pub struct Key {
    /// Its name.
    pub name: String,
    /// What it takes.
    pub shape: Shape,
    /// What holds without it; `None` where nothing does.
    pub default: Option<Value>,
    /// What it means, for people.
    pub meaning: String,
    /// What an untrusted workspace's file may do with it.
    pub untrusted: Untrusted,
    /// The key as JSON Schema.
    pub schema: Json,
}

/// What an untrusted workspace's file may do with a key (`configuration.md`, "Trust").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Untrusted {
    /// Set it.
    Sets,
    /// Make it smaller.
    Lowers,
    /// Add patterns to those that are there; none that takes others back.
    Adds,
    /// Nothing.
    LeavesAlone,
}

/// What a key takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// `true` or `false`.
    Flag,
    /// A whole number.
    Whole {
        /// The least.
        least: u64,
        /// The greatest.
        most: Option<u64>,
    },
    /// A whole number, below zero too.
    Signed,
    /// Any text.
    Text,
    /// One of these words.
    Word(Vec<String>),
    /// A list of such.
    List(Box<Shape>),
}

/// The keys that `Settings` declare, in the order of their declaration.
pub fn of(settings: SettingsSchema) -> Vec<Key> {
    let schema_settings = SchemaSettings::draft07().with(|it| it.inline_subschemas = true);
    let schema = settings(&mut schema_settings.into_generator());
    let properties = schema.get("properties").and_then(Json::as_object);
    properties.into_iter().flatten().map(|(name, schema)| Key::of(name, schema)).collect()
}

impl Key {
    fn of(name: &str, schema: &Json) -> Self {
        let mut schema = schema.clone();
        let untrusted = match schema.as_object_mut().and_then(|it| it.remove("x-untrusted")) {
            None => Untrusted::Sets,
            Some(word) if word == "lower" => Untrusted::Lowers,
            Some(word) if word == "more" => Untrusted::Adds,
            Some(_) => Untrusted::LeavesAlone,
        };
        let default = schema.get("default").cloned();
        let meaning = schema["description"].as_str().unwrap_or_default().replace('\n', " ");
        Self {
            name: name.to_owned(),
            shape: Shape::of(&schema).expect("a key takes what a shape says"),
            default: default.and_then(|json| serde_json::from_value(json).ok()),
            meaning,
            untrusted,
            schema,
        }
    }

    /// Refuses a value that the key does not take.
    pub fn check(&self, value: &Value) -> Result<(), Refusal> {
        self.shape.check(value).map_err(|below| {
            let message = format!("{} is {}", self.name, self.shape);
            Refusal::invalid(message).about([vec![self.name.clone()], below].concat())
        })
    }
}

impl Shape {
    /// The shape that a schema says, if it is one of these.
    pub fn of(schema: &Json) -> Option<Self> {
        if let Some(words) = schema["oneOf"].as_array() {
            let words = words.iter().map(|word| word["const"].as_str().map(str::to_owned));
            return words.collect::<Option<_>>().map(Self::Word);
        }
        Some(match schema["type"].as_str()? {
            "boolean" => Self::Flag,
            "integer" if schema["minimum"].is_null() => Self::Signed,
            "integer" => Self::Whole {
                least: schema["minimum"].as_u64().unwrap_or(0),
                most: schema["maximum"].as_u64().filter(|most| *most < i64::MAX.unsigned_abs()),
            },
            "string" => match schema["enum"].as_array() {
                None => Self::Text,
                Some(words) => {
                    Self::Word(words.iter().filter_map(Json::as_str).map(str::to_owned).collect())
                }
            },
            "array" => Self::List(Box::new(Self::of(&schema["items"])?)),
            _ => return None,
        })
    }

    /// Refuses what it does not take, with the way to it from here.
    pub fn check(&self, value: &Value) -> Result<(), Vec<String>> {
        let fits = match (self, value) {
            (Self::Flag, Value::Bool(_))
            | (Self::Text, Value::Text(_))
            | (Self::Signed, Value::Integer(_)) => true,
            (Self::Whole { least, most }, Value::Integer(_) | Value::Unsigned(_)) => {
                let number = match value {
                    Value::Integer(number) => u64::try_from(*number).ok(),
                    Value::Unsigned(number) => Some(*number),
                    _ => None,
                };
                number.is_some_and(|it| it >= *least && most.is_none_or(|most| it <= most))
            }
            (Self::Word(words), Value::Text(word)) => words.contains(word),
            (Self::List(inner), Value::List(items)) => {
                for (place, item) in items.iter().enumerate() {
                    inner.check(item).map_err(|below| [vec![place.to_string()], below].concat())?;
                }
                true
            }
            _ => false,
        };
        if fits { Ok(()) } else { Err(Vec::new()) }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag => f.write_str("true or false"),
            Self::Whole { least, most: None } => write!(f, "a whole number from {least}"),
            Self::Whole { least, most: Some(most) } => {
                write!(f, "a whole number from {least} to {most}")
            }
            Self::Signed => f.write_str("a whole number"),
            Self::Text => f.write_str("a text"),
            Self::Word(words) => {
                let quoted: Vec<_> = words.iter().map(|word| format!("{word:?}")).collect();
                match quoted.as_slice() {
                    [one, other] => write!(f, "{one} or {other}"),
                    all => write!(f, "one of {}", all.join(", ")),
                }
            }
            Self::List(inner) => match &**inner {
                Self::Text => f.write_str("a list of texts"),
                Self::Word(words) => {
                    let quoted: Vec<_> = words.iter().map(|word| format!("{word:?}")).collect();
                    write!(f, "a list of {}", quoted.join(" and "))
                }
                Self::Whole { least, most: Some(most) } => {
                    write!(f, "a list of whole numbers from {least} to {most}")
                }
                inner => write!(f, "a list, each member {inner}"),
            },
        }
    }
}
