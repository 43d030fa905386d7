//! Policies as a person writes them (`configuration.md`, "Policies").

use crate::engine::{Policy, Rearm, Refusal, Span, Trigger, Unit, Value};

/// Reads the member `policy`: a word, or a table with one trigger and what stands beside it.
pub fn read(given: &Value) -> Result<Policy, Refusal> {
    let members = match given {
        Value::Text(word) => return word_trigger(word).map(Policy::new),
        Value::Map(members) => members,
        _ => return Err(wrong(&[], format!("policy is a word or a table: {TRIGGERS}"))),
    };
    let mut trigger = None;
    let mut policy = Policy::new(Trigger::OnChange);
    for (name, value) in members {
        let found = match name.as_str() {
            "once" | "onChange" | "always" => match value {
                Value::Bool(true) => Some(word_trigger(name)?),
                _ => {
                    let message = format!("policy.{name} can only be true: leave it out otherwise");
                    return Err(wrong(&[name], message));
                }
            },
            "every" => Some(Trigger::Every(span("every", value)?)),
            "cooldown" => {
                policy.cooldown = Some(span("cooldown", value)?);
                None
            }
            "rearm" => {
                policy.rearm = match value.as_text() {
                    Some("dropped") => Rearm::Dropped,
                    Some("never") => Rearm::Never,
                    _ => {
                        let message = "policy.rearm is \"dropped\" or \"never\"";
                        return Err(wrong(&[name], message.to_owned()));
                    }
                };
                None
            }
            "maxPerTurn" | "maxPerSession" => {
                let most = cap(name, value).map_err(|message| wrong(&[name], message))?;
                match name.as_str() {
                    "maxPerTurn" => policy.max_per_turn = Some(most),
                    _ => policy.max_per_session = Some(most),
                }
                None
            }
            _ => {
                let message = format!(
                    "policy has no {name:?}: write {TRIGGERS}, and beside it rearm, cooldown, \
                     maxPerTurn, maxPerSession"
                );
                return Err(wrong(&[name], message));
            }
        };
        if found.is_some() && trigger.is_some() {
            let message = format!("policy has two triggers, {name:?} is one: keep one of them");
            return Err(wrong(&[name], message));
        }
        trigger = trigger.or(found);
    }
    policy.trigger =
        trigger.ok_or_else(|| wrong(&[], format!("policy has no trigger: {TRIGGERS}")))?;
    Ok(policy)
}

const TRIGGERS: &str =
    "\"always\", \"once\", \"onChange\", or every = { turns | requests | prompts = N }";

/// A mistake in the policy, at the member that these names lead to.
fn wrong(below: &[&str], message: String) -> Refusal {
    Refusal::invalid(message).about([&["policy"], below].concat())
}

fn word_trigger(word: &str) -> Result<Trigger, Refusal> {
    match word {
        "always" => Ok(Trigger::Always),
        "once" => Ok(Trigger::Once),
        "onChange" => Ok(Trigger::OnChange),
        _ => Err(wrong(&[], format!("policy {word:?} is unknown: write {TRIGGERS}"))),
    }
}

/// Reads a cap; zero would be a switch, and there is a switch already.
pub fn cap(name: &str, value: &Value) -> Result<u64, String> {
    match value {
        Value::Integer(number) if *number > 0 => Ok(number.unsigned_abs()),
        _ => Err(format!("{name} is a whole number from 1 (leave it out for no limit)")),
    }
}

fn span(name: &str, value: &Value) -> Result<Span, Refusal> {
    let mistake = |below: &[&str]| {
        let message = format!("{name} is one of {{ turns | requests | prompts = N }}, N from 1");
        wrong(&[&[name], below].concat(), message)
    };
    let Value::Map(members) = value else { return Err(mistake(&[])) };
    let mut members = members.iter();
    let (Some((unit_name, count)), None) = (members.next(), members.next()) else {
        return Err(mistake(&[]));
    };
    let unit = match unit_name.as_str() {
        "turns" => Unit::Turns,
        "requests" => Unit::Requests,
        "prompts" => Unit::Prompts,
        _ => return Err(mistake(&[unit_name])),
    };
    let count = cap(name, count).map_err(|_| mistake(&[unit_name]))?;
    Ok(Span { unit, count })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn given(value: serde_json::Value) -> Result<Policy, Refusal> {
        read(&serde_json::from_value(value).expect("plain data"))
    }

    #[test]
    fn words_and_tables_mean_the_same() {
        for word in ["always", "once", "onChange"] {
            assert_eq!(given(json!(word)), given(json!({ word: true })));
        }
        let policy = given(json!({
            "every": {"turns": 3}, "cooldown": {"requests": 5}, "maxPerSession": 10,
            "rearm": "never"
        }));
        let mut expected = Policy::new(Trigger::Every(Span::turns(3))).never_again();
        expected.cooldown = Some(Span { unit: Unit::Requests, count: 5 });
        expected.max_per_session = Some(10);
        assert_eq!(policy, Ok(expected));
    }

    #[test]
    fn mistakes_name_the_member_and_the_way_out() {
        for (value, part) in [
            (json!("sometimes"), "\"sometimes\" is unknown"),
            (json!(3), "a word or a table"),
            (json!({}), "no trigger"),
            (json!({"once": true, "always": true}), "two triggers"),
            (json!({"once": false}), "can only be true"),
            (json!({"every": {"minutes": 3}}), "every is one of"),
            (json!({"every": {"turns": 0}}), "N from 1"),
            (json!({"every": {"turns": 1, "requests": 2}}), "every is one of"),
            (json!({"once": true, "maxPerTurn": 0}), "maxPerTurn is a whole number from 1"),
            (json!({"once": true, "max": 1}), "no \"max\""),
            (json!({"once": true, "rearm": "always"}), "rearm is"),
        ] {
            let message = given(value.clone()).expect_err(&value.to_string()).message;
            assert!(message.contains(part), "{value}: {message}");
        }
    }

    #[test]
    fn mistakes_say_where() {
        for (value, key) in [
            (json!("sometimes"), &["policy"][..]),
            (json!({"once": true, "onChange": true}), &["policy", "once"]),
            (json!({"every": {"minutes": 3}}), &["policy", "every", "minutes"]),
            (json!({"every": {"turns": 0}}), &["policy", "every", "turns"]),
            (json!({"once": true, "cooldown": 3}), &["policy", "cooldown"]),
            (json!({"once": true, "maxPerTurn": 0}), &["policy", "maxPerTurn"]),
        ] {
            let at = given(value.clone()).expect_err(&value.to_string()).at.expect("a place");
            assert_eq!(
                (at.key, at.within),
                (key.iter().map(|it| (*it).to_owned()).collect(), None)
            );
        }
    }
}
