//! Data of any shape, as clients report it (`fact/set`, a kind's settings), without JSON text.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A tree of plain data whose maps are ordered by name, so that equal data is equal output.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// Nothing.
    #[default]
    Null,
    /// True or false.
    Bool(bool),
    /// A whole number that fits 64 bits with a sign.
    Integer(i64),
    /// A whole number above `i64::MAX`.
    Unsigned(u64),
    /// Any other number.
    Float(f64),
    /// A string.
    Text(String),
    /// A sequence.
    List(Vec<Value>),
    /// Members by name.
    Map(BTreeMap<String, Value>),
}

impl Value {
    /// A map with no members.
    pub fn empty_map() -> Self {
        Self::Map(BTreeMap::new())
    }

    /// The text, if this is one.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The named member of a map.
    pub fn get(&self, name: &str) -> Option<&Value> {
        match self {
            Self::Map(members) => members.get(name),
            _ => None,
        }
    }

    /// Puts the members of `other` over those of this map, one by one (`configuration.md`:
    /// `[kinds]` tables merge member by member). Anything that is not a map is replaced.
    pub fn merge(&mut self, other: &Value) {
        match (self, other) {
            (Self::Map(members), Self::Map(others)) => {
                for (name, value) in others {
                    members.insert(name.clone(), value.clone());
                }
            }
            (this, other) => *this = other.clone(),
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        i64::try_from(number).map_or(Self::Unsigned(number), Self::Integer)
    }
}
