//! `$NAME.path.to.member`: how a step of a script uses what an earlier one was answered.
//!
//! A reference is always a whole string; there is no replacing inside text. A string that
//! really begins with `$` is written with two.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

/// A string of a script: text, or a reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Text {
    /// The text itself.
    Literal(String),
    /// What an earlier step stored.
    Reference(Reference),
}

/// A place in the result of an earlier step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// The name that the step gave with `as`.
    pub name: String,
    /// Members and indices from there on.
    pub path: Vec<String>,
}

impl fmt::Display for Reference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "${}", self.name)?;
        self.path.iter().try_for_each(|member| write!(formatter, ".{member}"))
    }
}

impl Text {
    /// Reads a string of a script; the error says what to write instead.
    pub fn parse(string: &str) -> Result<Self, String> {
        let Some(rest) = string.strip_prefix('$') else {
            return Ok(Self::Literal(string.to_owned()));
        };
        if rest.starts_with('$') {
            return Ok(Self::Literal(rest.to_owned()));
        }
        let mut parts = rest.split('.').map(str::to_owned);
        let name = parts.next().unwrap_or_default();
        let path: Vec<_> = parts.collect();
        if !is_name(&name) || path.iter().any(String::is_empty) {
            return Err(format!(
                "`{string}` is no reference (`$NAME.member.0`); text that begins with `$` is \
                 written with two: `${string}`"
            ));
        }
        Ok(Self::Reference(Reference { name, path }))
    }
}

/// Whether a word can stand after `as` and `$`.
pub fn is_name(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && word.chars().all(|each| each.is_ascii_alphanumeric() || each == '_' || each == '-')
}

/// A reference that stands for nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unresolved {
    /// The reference as written.
    pub reference: String,
    /// Why it stands for nothing.
    pub reason: String,
}

/// What the steps so far have stored.
#[derive(Debug, Default)]
pub struct Names {
    values: BTreeMap<String, Option<Value>>,
}

impl Names {
    /// Stores a result under a name; a later one replaces it.
    pub fn set(&mut self, name: &str, value: Value) {
        self.values.insert(name.to_owned(), Some(value));
    }

    /// Notes that the step of this name had no result, so that no older one is used for it.
    pub fn set_failed(&mut self, name: &str) {
        self.values.insert(name.to_owned(), None);
    }

    /// What a reference stands for.
    pub fn get(&self, reference: &Reference) -> Result<&Value, Unresolved> {
        let unresolved = |reason: String| Unresolved { reference: reference.to_string(), reason };
        let mut value = match self.values.get(&reference.name) {
            Some(Some(value)) => value,
            Some(None) => {
                return Err(unresolved(format!(
                    "nothing, for the step named `{}` failed",
                    reference.name
                )));
            }
            None => {
                return Err(unresolved(format!("nothing, no step is named `{}`", reference.name)));
            }
        };
        for member in &reference.path {
            let below = match value {
                Value::Object(members) => members.get(member),
                Value::Array(elements) => {
                    member.parse().ok().and_then(|index: usize| elements.get(index))
                }
                _ => None,
            };
            value = below.ok_or_else(|| {
                unresolved(format!("no `{member}` in {}", super::matching::shown(Some(value))))
            })?;
        }
        Ok(value)
    }

    /// A value of a script with every reference in it replaced.
    pub fn fill(&self, template: &Value) -> Result<Value, Unresolved> {
        Ok(match template {
            Value::String(string) => match Text::parse(string) {
                Ok(Text::Literal(literal)) => Value::String(literal),
                Ok(Text::Reference(reference)) => self.get(&reference)?.clone(),
                Err(reason) => return Err(Unresolved { reference: string.clone(), reason }),
            },
            Value::Array(elements) => Value::Array(
                elements.iter().map(|element| self.fill(element)).collect::<Result<_, _>>()?,
            ),
            Value::Object(members) => Value::Object(
                members
                    .iter()
                    .map(|(name, value)| Ok((name.clone(), self.fill(value)?)))
                    .collect::<Result<_, Unresolved>>()?,
            ),
            scalar => scalar.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn strings_are_text_or_references() {
        let literal = |text: &str| Ok(Text::Literal(text.to_owned()));
        assert_eq!(Text::parse("plain $w1"), literal("plain $w1"));
        assert_eq!(Text::parse("$$w1"), literal("$w1"));
        assert_eq!(
            Text::parse("$w1.entries.0"),
            Ok(Text::Reference(Reference {
                name: "w1".to_owned(),
                path: vec!["entries".to_owned(), "0".to_owned()],
            }))
        );
        for wrong in ["$", "$1", "$w 1", "$w1.", "$w1..a", "$HOME/x"] {
            assert!(Text::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn references_are_replaced_everywhere_or_explained() {
        let mut names = Names::default();
        names.set("w1", json!({"token": "t", "entries": [{"id": 7}]}));
        names.set_failed("w2");
        assert_eq!(
            names.fill(&json!({"a": ["$w1.token", {"b": "$w1.entries.0.id"}], "c": "$$w1"})),
            Ok(json!({"a": ["t", {"b": 7}], "c": "$w1"}))
        );
        let table = [
            ("$w1.entries.1.id", "no `1` in"),
            ("$w1.token.x", "no `x` in"),
            ("$w2", "the step named `w2` failed"),
            ("$w3", "no step is named `w3`"),
        ];
        for (reference, reason) in table {
            let error = names.fill(&json!(reference)).expect_err("unresolved");
            assert!(error.reason.contains(reason), "{reference}: {}", error.reason);
        }
    }
}
