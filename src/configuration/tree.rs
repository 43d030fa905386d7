//! A document as a tree: what TOML and JSON have in common, with the place of every key and value.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

use crate::engine::Value;

/// A value with its place.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its bytes in the text; empty where there is no text.
    pub at: Range<usize>,
    /// What it is.
    pub data: Data,
}

/// What a value is.
#[derive(Clone, Debug)]
pub enum Data {
    /// Anything without parts.
    Plain(Value),
    /// A date or a time of TOML, which no key takes.
    Date,
    /// A sequence.
    List(Vec<Node>),
    /// Members, in the order in which they stand.
    Table(Vec<Member>),
}

/// A member of a table.
#[derive(Clone, Debug)]
pub struct Member {
    /// Its key.
    pub name: String,
    /// The key's bytes in the text; empty where there is no text.
    pub at: Range<usize>,
    /// What it is set to.
    pub value: Node,
}

impl Node {
    /// The tree of a TOML table.
    pub fn of_toml(table: &DeTable<'_>, at: Range<usize>) -> Self {
        let mut members: Vec<_> = table
            .iter()
            .map(|(key, value)| Member {
                name: key.get_ref().clone().into_owned(),
                at: key.span(),
                value: Self::of_toml_value(value.get_ref(), value.span()),
            })
            .collect();
        members.sort_by_key(|member| member.at.start);
        Self { at, data: Data::Table(members) }
    }

    fn of_toml_value(value: &DeValue<'_>, at: Range<usize>) -> Self {
        let data = match value {
            DeValue::Table(table) => return Self::of_toml(table, at),
            DeValue::Array(items) => Data::List(
                items.iter().map(|item| Self::of_toml_value(item.get_ref(), item.span())).collect(),
            ),
            DeValue::String(text) => Data::Plain(Value::Text(text.clone().into_owned())),
            DeValue::Boolean(yes) => Data::Plain(Value::Bool(*yes)),
            DeValue::Integer(number) => Data::Plain(integer(number.as_str(), number.radix())),
            DeValue::Float(number) => {
                Data::Plain(Value::Float(number.as_str().parse().unwrap_or(f64::NAN)))
            }
            DeValue::Datetime(_) => Data::Date,
        };
        Self { at, data }
    }

    /// The tree of JSON. A member that is `null` is not there.
    pub fn of_json(json: &serde_json::Value) -> Self {
        let data = match json {
            serde_json::Value::Object(members) => Data::Table(
                members
                    .iter()
                    .filter(|(_, value)| !value.is_null())
                    .map(|(name, value)| Member {
                        name: name.clone(),
                        at: 0..0,
                        value: Self::of_json(value),
                    })
                    .collect(),
            ),
            serde_json::Value::Array(items) => {
                Data::List(items.iter().map(Self::of_json).collect())
            }
            serde_json::Value::Null => Data::Plain(Value::Null),
            serde_json::Value::Bool(yes) => Data::Plain(Value::Bool(*yes)),
            serde_json::Value::String(text) => Data::Plain(Value::Text(text.clone())),
            serde_json::Value::Number(number) => Data::Plain(match number.as_u64() {
                Some(number) => Value::from(number),
                None => match number.as_i64() {
                    Some(number) => Value::Integer(number),
                    None => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
                },
            }),
        };
        Self { at: 0..0, data }
    }

    /// The same without places.
    pub fn value(&self) -> Value {
        match &self.data {
            Data::Plain(value) => value.clone(),
            Data::Date => Value::Null,
            Data::List(items) => Value::List(items.iter().map(Self::value).collect()),
            Data::Table(members) => {
                Value::Map(members.iter().map(|it| (it.name.clone(), it.value.value())).collect())
            }
        }
    }

    /// What it is, in words.
    pub fn described(&self) -> String {
        match &self.data {
            Data::Plain(Value::Null) => "nothing".to_owned(),
            Data::Plain(Value::Bool(yes)) => yes.to_string(),
            Data::Plain(Value::Integer(number)) => number.to_string(),
            Data::Plain(Value::Unsigned(number)) => number.to_string(),
            Data::Plain(Value::Float(number)) => number.to_string(),
            Data::Plain(Value::Text(text)) if text.chars().count() <= 40 => format!("{text:?}"),
            Data::Plain(_) => "a text".to_owned(),
            Data::Date => "a date".to_owned(),
            Data::List(_) => "a list".to_owned(),
            Data::Table(_) => "a table".to_owned(),
        }
    }

    /// The member of a table by its key, or of a list by its place, from 0.
    pub fn item(&self, name: &str) -> Option<&Node> {
        match &self.data {
            Data::List(items) => items.get(name.parse::<usize>().ok()?),
            _ => self.member(name).map(|member| &member.value),
        }
    }

    /// The members of a table, none of anything else.
    pub fn members(&self) -> &[Member] {
        match &self.data {
            Data::Table(members) => members,
            _ => &[],
        }
    }

    /// The member of a table by its key.
    pub fn member(&self, name: &str) -> Option<&Member> {
        self.members().iter().find(|member| member.name == name)
    }
}

/// A whole number of TOML. One that 64 bits do not hold is a number all the same, and no key's.
fn integer(digits: &str, radix: u32) -> Value {
    if let Ok(number) = i64::from_str_radix(digits, radix) {
        return Value::Integer(number);
    }
    match u64::from_str_radix(digits, radix) {
        Ok(number) => Value::Unsigned(number),
        Err(_) => Value::Float(digits.parse().unwrap_or(f64::INFINITY)),
    }
}
