//! Subset matching: what a script expects of an answer.
//!
//! An object is matched member by member, and members that the pattern does not name are
//! free. An array is matched element by element and must have the same length. Everything
//! else must be equal. An object of matchers (`{"$re": "T1"}`) stands for a condition.
//! Nothing here knows of scripts, daemons or time.

use std::fmt;

use regex::Regex;
use serde_json::{Map, Value};

use super::reference::{Names, Reference, Text, Unresolved};

/// What an answer must look like.
#[derive(Clone, Debug)]
pub enum Pattern {
    /// All of these must hold.
    Matchers(Vec<Matcher>),
    /// An object with at least these members.
    Object(Vec<(String, Pattern)>),
    /// An array of exactly these elements.
    Array(Vec<Pattern>),
    /// This string, number, boolean or null.
    Scalar(Value),
    /// What an earlier step stored; replaced by its value before matching.
    Reference(Reference),
}

/// A condition on one value, written as an object whose member begins with `$`.
#[derive(Clone, Debug)]
pub enum Matcher {
    /// `{"$any": true}`: it must be there, whatever it is.
    Any,
    /// `{"$absent": true}`: the object must not have this member.
    Absent,
    /// `{"$re": "…"}`: a string in which the expression matches somewhere.
    Regex(Regex),
    /// `{"$len": n}`: an array, object or string of this many elements, members or characters.
    Length(u64),
}

/// Names of all matchers, for messages.
const MATCHERS: [&str; 4] = ["$any", "$re", "$len", "$absent"];

/// One place where an answer is not as expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// JSON pointer into the answer; empty for the whole of it.
    pub pointer: String,
    /// What the script wants there.
    pub expected: String,
    /// What is there.
    pub got: String,
}

/// A pattern that means nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternError {
    /// The string in the script that is at fault, for finding its place.
    pub culprit: String,
    /// What, why, and what to do.
    pub message: String,
}

impl Pattern {
    /// Reads a pattern as a script writes it.
    pub fn parse(value: &Value) -> Result<Self, PatternError> {
        match value {
            Value::Object(members) => Self::parse_object(members),
            Value::Array(elements) => {
                elements.iter().map(Self::parse).collect::<Result<_, _>>().map(Self::Array)
            }
            Value::String(string) => match Text::parse(string) {
                Ok(Text::Literal(literal)) => Ok(Self::Scalar(Value::String(literal))),
                Ok(Text::Reference(reference)) => Ok(Self::Reference(reference)),
                Err(message) => Err(PatternError { culprit: string.clone(), message }),
            },
            scalar => Ok(Self::Scalar(scalar.clone())),
        }
    }

    fn parse_object(members: &Map<String, Value>) -> Result<Self, PatternError> {
        let is_matcher = |name: &str| name.starts_with('$') && !name.starts_with("$$");
        let Some(first) = members.keys().find(|name| is_matcher(name)) else {
            let parse = |(name, value): (&String, &Value)| {
                let name = name.strip_prefix('$').unwrap_or(name).to_owned();
                Ok((name, Self::parse(value)?))
            };
            return members.iter().map(parse).collect::<Result<_, _>>().map(Self::Object);
        };
        if let Some(other) = members.keys().find(|name| !is_matcher(name)) {
            return Err(PatternError {
                culprit: first.clone(),
                message: format!(
                    "`{first}` is a matcher and stands beside the member `{other}`, so it is \
                     unclear what is meant; put it into an object of its own, or write \
                     `${first}` for a member of that name"
                ),
            });
        }
        members
            .iter()
            .map(|(name, value)| Matcher::parse(name, value))
            .collect::<Result<_, _>>()
            .map(Self::Matchers)
    }

    /// A pattern for a value as it stands: nothing in it is a matcher or a reference.
    fn literal(value: &Value) -> Self {
        match value {
            Value::Object(members) => Self::Object(
                members.iter().map(|(name, value)| (name.clone(), Self::literal(value))).collect(),
            ),
            Value::Array(elements) => Self::Array(elements.iter().map(Self::literal).collect()),
            scalar => Self::Scalar(scalar.clone()),
        }
    }

    /// Every reference in the pattern, in reading order.
    pub fn references(&self) -> Vec<&Reference> {
        match self {
            Self::Reference(reference) => vec![reference],
            Self::Object(members) => {
                members.iter().flat_map(|(_, pattern)| pattern.references()).collect()
            }
            Self::Array(elements) => elements.iter().flat_map(Self::references).collect(),
            Self::Matchers(_) | Self::Scalar(_) => Vec::new(),
        }
    }

    /// The pattern with every reference replaced by what it stands for.
    pub fn resolve(&self, names: &Names) -> Result<Self, Unresolved> {
        Ok(match self {
            Self::Reference(reference) => Self::literal(names.get(reference)?),
            Self::Object(members) => Self::Object(
                members
                    .iter()
                    .map(|(name, pattern)| Ok((name.clone(), pattern.resolve(names)?)))
                    .collect::<Result<_, Unresolved>>()?,
            ),
            Self::Array(elements) => Self::Array(
                elements.iter().map(|element| element.resolve(names)).collect::<Result<_, _>>()?,
            ),
            Self::Matchers(_) | Self::Scalar(_) => self.clone(),
        })
    }

    /// Every place where a value is not as expected; none when it matches.
    pub fn mismatches(&self, value: &Value) -> Vec<Mismatch> {
        let mut found = Vec::new();
        self.compare(Some(value), "", &mut found);
        found
    }

    fn compare(&self, value: Option<&Value>, pointer: &str, found: &mut Vec<Mismatch>) {
        let differs =
            |expected: String, got: String| Mismatch { pointer: pointer.to_owned(), expected, got };
        if let Self::Matchers(matchers) = self {
            let failed = matchers.iter().filter(|matcher| !matcher.holds(value));
            found.extend(failed.map(|matcher| {
                let length = value.and_then(length_of);
                let got = match (matcher, length) {
                    (Matcher::Length(_), Some(length)) => {
                        format!("length {length}: {}", shown(value))
                    }
                    _ => shown(value),
                };
                differs(matcher.to_string(), got)
            }));
            return;
        }
        match (self, value) {
            (Self::Object(members), Some(Value::Object(object))) => {
                for (name, pattern) in members {
                    let below = format!("{pointer}/{}", escape(name));
                    pattern.compare(object.get(name), &below, found);
                }
            }
            (Self::Array(patterns), Some(Value::Array(elements))) => {
                if patterns.len() != elements.len() {
                    found.push(differs(
                        count(patterns.len(), "element"),
                        format!("{}: {}", count(elements.len(), "element"), shown(value)),
                    ));
                    return;
                }
                for (index, (pattern, element)) in patterns.iter().zip(elements).enumerate() {
                    pattern.compare(Some(element), &format!("{pointer}/{index}"), found);
                }
            }
            (Self::Scalar(expected), Some(value)) if equal(expected, value) => {}
            _ => found.push(differs(self.to_string(), shown(value))),
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Matchers(matchers) => {
                for (index, matcher) in matchers.iter().enumerate() {
                    let joint = if index == 0 { "" } else { " and " };
                    write!(formatter, "{joint}{matcher}")?;
                }
                Ok(())
            }
            Self::Object(members) => {
                let names: Vec<_> = members.iter().map(|(name, _)| name.as_str()).collect();
                match names.as_slice() {
                    [] => write!(formatter, "an object"),
                    names => write!(formatter, "an object with {}", names.join(", ")),
                }
            }
            Self::Array(elements) => {
                write!(formatter, "an array of {}", count(elements.len(), "element"))
            }
            Self::Scalar(value) => write!(formatter, "{value}"),
            Self::Reference(reference) => write!(formatter, "{reference}"),
        }
    }
}

impl Matcher {
    fn parse(name: &str, value: &Value) -> Result<Self, PatternError> {
        let wrong = |message: String| PatternError { culprit: name.to_owned(), message };
        match (name, value) {
            ("$any", Value::Bool(true)) => Ok(Self::Any),
            ("$absent", Value::Bool(true)) => Ok(Self::Absent),
            ("$any" | "$absent", _) => {
                Err(wrong(format!("`{name}` takes only `true`; leave it out to expect nothing")))
            }
            ("$re", Value::String(expression)) => Regex::new(expression)
                .map(Self::Regex)
                .map_err(|error| wrong(format!("`$re` cannot be read: {error}"))),
            ("$re", _) => Err(wrong("`$re` takes a string, a regular expression".to_owned())),
            ("$len", value) => value
                .as_u64()
                .map(Self::Length)
                .ok_or_else(|| wrong("`$len` takes a whole number, zero or more".to_owned())),
            _ => Err(wrong(format!(
                "`{name}` is no matcher{}; there are {}; a member of that name is written `${name}`",
                super::script::did_you_mean(name, &MATCHERS),
                MATCHERS.join(", "),
            ))),
        }
    }

    fn holds(&self, value: Option<&Value>) -> bool {
        match (self, value) {
            (Self::Absent, value) => value.is_none(),
            (Self::Any, Some(_)) => true,
            (Self::Regex(expression), Some(Value::String(text))) => expression.is_match(text),
            (Self::Length(length), Some(value)) => length_of(value) == Some(*length),
            (Self::Regex(_), Some(_)) | (_, None) => false,
        }
    }
}

impl fmt::Display for Matcher {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => write!(formatter, "anything, but there"),
            Self::Absent => write!(formatter, "absent"),
            Self::Regex(expression) => write!(formatter, "matches /{expression}/"),
            Self::Length(length) => write!(formatter, "length {length}"),
        }
    }
}

fn length_of(value: &Value) -> Option<u64> {
    let length = match value {
        Value::Array(elements) => elements.len(),
        Value::Object(members) => members.len(),
        Value::String(text) => text.chars().count(),
        _ => return None,
    };
    u64::try_from(length).ok()
}

/// Numbers are equal by value, so that `1` is `1.0`; integers are compared exactly.
fn equal(expected: &Value, value: &Value) -> bool {
    match (expected, value) {
        (Value::Number(one), Value::Number(other)) if one.is_f64() || other.is_f64() => {
            one.as_f64() == other.as_f64()
        }
        _ => expected == value,
    }
}

/// A value for people: as JSON, and only its beginning when it is very long.
pub fn shown(value: Option<&Value>) -> String {
    const CHARACTERS_MAX: usize = 4000;
    let Some(value) = value else { return "nothing there".to_owned() };
    let text = value.to_string();
    match text.char_indices().nth(CHARACTERS_MAX) {
        Some((end, _)) => format!("{}… ({} bytes in all)", &text[..end], text.len()),
        None => text,
    }
}

fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// Escapes a member name for a JSON pointer (RFC 6901).
fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// The pointers at which `value` differs from `pattern`.
    fn differences(pattern: &Value, value: &Value) -> Vec<String> {
        let pattern = Pattern::parse(pattern).expect("a pattern");
        pattern.mismatches(value).into_iter().map(|mismatch| mismatch.pointer).collect()
    }

    #[test]
    fn what_matches_and_where_it_does_not() {
        let table = [
            (json!({}), json!({"a": 1}), vec![]),
            (json!({"a": 1}), json!({"a": 1, "b": 2}), vec![]),
            (json!({"a": 1}), json!({"b": 2}), vec!["/a"]),
            (json!({"a": 1}), json!({"a": 1.0}), vec![]),
            (json!({"a": 1}), json!({"a": "1"}), vec!["/a"]),
            (json!({"a": null}), json!({}), vec!["/a"]),
            (json!({"a": null}), json!({"a": null}), vec![]),
            (json!({}), json!([]), vec![""]),
            (json!([]), json!([]), vec![]),
            (json!([1]), json!([1, 2]), vec![""]),
            (json!([1, 2]), json!([2, 1]), vec!["/0", "/1"]),
            (json!([{"a": 1}]), json!([{"a": 2, "b": 3}]), vec!["/0/a"]),
            (json!({"a/b": {"~": 1}}), json!({"a/b": {"~": 2}}), vec!["/a~1b/~0"]),
            (json!({"a": {"$any": true}}), json!({"a": null}), vec![]),
            (json!({"a": {"$any": true}}), json!({}), vec!["/a"]),
            (json!({"a": {"$absent": true}}), json!({}), vec![]),
            (json!({"a": {"$absent": true}}), json!({"a": null}), vec!["/a"]),
            (json!({"$re": "T[0-9]"}), json!("see T1."), vec![]),
            (json!({"$re": "^T[0-9]"}), json!("see T1."), vec![""]),
            (json!({"$re": "1"}), json!(1), vec![""]),
            (json!({"$len": 2}), json!([1, 2]), vec![]),
            (json!({"$len": 2}), json!("äö"), vec![]),
            (json!({"$len": 1}), json!({"a": 1}), vec![]),
            (json!({"$len": 0}), json!(null), vec![""]),
            (json!({"$len": 2, "$re": "b"}), json!("ac"), vec![""]),
            (json!("$$5"), json!("$5"), vec![]),
            (json!({"$$re": 1}), json!({"$re": 1}), vec![]),
            (json!(u64::MAX), json!(u64::MAX - 1), vec![""]),
        ];
        for (pattern, value, expected) in table {
            assert_eq!(differences(&pattern, &value), expected, "{pattern} against {value}");
        }
    }

    #[test]
    fn patterns_that_mean_nothing() {
        let table = [
            (json!({"$any": false}), "only `true`"),
            (json!({"$re": "("}), "cannot be read"),
            (json!({"$re": 1}), "takes a string"),
            (json!({"$len": -1}), "whole number"),
            (json!({"$lens": 1}), "did you mean `$len`"),
            (json!({"$re": "a", "b": 1}), "stands beside"),
            (json!(["$"]), "$$"),
        ];
        for (pattern, expected) in table {
            let error = Pattern::parse(&pattern).expect_err("no pattern");
            assert!(error.message.contains(expected), "{pattern}: {}", error.message);
        }
    }

    #[test]
    fn a_mismatch_says_what_was_wanted_and_what_came() {
        let pattern = Pattern::parse(&json!({"body": {"$re": "T1"}})).expect("a pattern");
        assert_eq!(
            pattern.mismatches(&json!({"body": "T2"})),
            [Mismatch {
                pointer: "/body".to_owned(),
                expected: "matches /T1/".to_owned(),
                got: "\"T2\"".to_owned(),
            }]
        );
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "[a-z$]{0,4}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-z$/~]{0,3}", inner, 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
            #[test]
            fn a_value_matches_itself(value in any_json()) {
                prop_assert_eq!(Pattern::literal(&value).mismatches(&value), []);
            }

            #[test]
            fn further_members_are_free(value in any_json(), more in any_json()) {
                let whole = json!({"value": value.clone(), "more": more});
                let pattern = Pattern::Object(vec![("value".to_owned(), Pattern::literal(&value))]);
                prop_assert_eq!(pattern.mismatches(&whole), []);
            }

            #[test]
            fn every_pointer_leads_to_what_was_got(one in any_json(), other in any_json()) {
                for mismatch in Pattern::literal(&one).mismatches(&other) {
                    if let Some(found) = other.pointer(&mismatch.pointer) {
    prop_assert!(mismatch.got.ends_with(&found.to_string()));
    } else {
    prop_assert_eq!(mismatch.got, "nothing there");
    }
                }
            }

            #[test]
            fn reading_a_pattern_never_panics(value in any_json(), other in any_json()) {
                if let Ok(pattern) = Pattern::parse(&value) {
                    let _ = pattern.mismatches(&other);
                }
            }
        }
}
