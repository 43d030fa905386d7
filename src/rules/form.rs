//! The forms in which a user's own reminder is given, over the wire and in files alike
//! (`configuration.md`, "Keys"): which kind a form means, and which of its members belong together.

use crate::engine::{Audience, Definition, Refusal, Value};

/// The longest id of a reminder, in bytes.
const ID_BYTES_MAX: usize = 200;

/// The members that a form of each sort may have beside those that all of them share.
const RULE: &[&str] = &["when", "globs", "tool"];
const POOL: &[&str] = &["baseline", "added", "removed"];

/// Reads one form: its members as `configuration.md` names them, in a map. Members that no form has
/// are left alone. What the members themselves say is read when the reminder is built
/// (`engine::Registry::build`), which refuses in the same manner.
///
/// Refused, with its place, is a form without a usable id, one that is of no sort or of two, one
/// with a member that its sort has no use for, and one for a scope that there is not.
pub fn definition(form: &Value) -> Result<Definition, Refusal> {
    let Value::Map(members) = form else {
        return Err(Refusal::invalid("a reminder is a table with an id"));
    };
    let id = match members.get("id") {
        Some(Value::Text(id)) if !id.trim().is_empty() && id.len() <= ID_BYTES_MAX => id,
        _ => {
            let refusal = Refusal::invalid(format!(
                "a reminder's id has 1 to {ID_BYTES_MAX} bytes: give it a name"
            ));
            return Err(refusal.about(["id"]));
        }
    };
    let has = |name: &&&str| members.get(**name).is_some_and(|value| *value != Value::Null);
    let is_client = match members.get("client") {
        None | Some(Value::Null | Value::Bool(false)) => false,
        Some(Value::Bool(true)) => true,
        Some(_) => {
            return Err(Refusal::invalid("client is true or false").about(["client"]).of(id));
        }
    };
    let (kind, sort, others) = match (has(&&"body"), has(&&"pool"), is_client) {
        (true, false, false) if RULE.iter().any(|name| has(&name)) => ("rule", "body", &[POOL][..]),
        (true, false, false) => ("standing-text", "body", &[POOL][..]),
        (false, true, false) => ("announced-delta", "pool", &[RULE][..]),
        (false, false, true) => ("client-generator", "client", &[RULE, POOL][..]),
        (body, pool, _) => {
            let refusal = Refusal::invalid(
                "a reminder has one of body (a text), pool (announced changes) and client = true \
                 (computed by the client)",
            );
            // The second of two is pointed at, and the whole form where there is none.
            let second = match (body, pool, is_client) {
                (true, true, _) => Some("pool"),
                (_, _, true) => Some("client"),
                _ => None,
            };
            return Err(refusal.about(second).of(id));
        }
    };
    if let Some(stray) = others.iter().copied().flatten().find(has) {
        let goes = if RULE.contains(stray) { "body" } else { "pool" };
        let refusal =
            Refusal::invalid(format!("{stray} goes with {goes}, and this reminder has {sort}"));
        return Err(refusal.about([*stray]).of(id));
    }
    let audience = audience(members.get("scopes")).map_err(|refusal| refusal.of(id))?;
    let kept = members.iter().filter(|(name, value)| {
        !["id", "scopes", "client"].contains(&name.as_str()) && **value != Value::Null
    });
    let settings = Value::Map(kept.map(|(name, value)| (name.clone(), value.clone())).collect());
    Ok(Definition { id: id.clone(), kind: kind.to_owned(), settings, audience })
}

/// The scopes that a form names; the root alone when it names none.
fn audience(given: Option<&Value>) -> Result<Audience, Refusal> {
    let scopes = match given {
        None | Some(Value::Null) => return Ok(Audience::ROOT),
        Some(Value::List(scopes)) => scopes,
        Some(_) => return Err(Refusal::invalid(SCOPES).about(["scopes"])),
    };
    let mut audience = Audience { root: false, agents: false };
    for (place, scope) in scopes.iter().enumerate() {
        match scope.as_text() {
            Some("root") => audience.root = true,
            Some("agents") => audience.agents = true,
            _ => {
                let refusal = Refusal::invalid(SCOPES);
                return Err(refusal.about(["scopes".to_owned(), place.to_string()]));
            }
        }
    }
    Ok(audience)
}

const SCOPES: &str = "scopes is a list of \"root\" and \"agents\"";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn given(form: serde_json::Value) -> Result<Definition, Refusal> {
        definition(&serde_json::from_value(form).expect("plain data"))
    }

    #[test]
    fn members_say_which_kind_is_meant() {
        for (form, kind) in [
            (json!({"id": "r", "body": "B"}), "standing-text"),
            (json!({"id": "r", "body": "B", "when": "true"}), "rule"),
            (json!({"id": "r", "body": "B", "globs": ["*.rs"]}), "rule"),
            (json!({"id": "r", "body": "B", "tool": {"ok": false}}), "rule"),
            (json!({"id": "r", "pool": "tools", "added": "A"}), "announced-delta"),
            (json!({"id": "r", "client": true}), "client-generator"),
            (json!({"id": "r", "body": "B", "client": false, "when": null}), "standing-text"),
        ] {
            let definition = given(form.clone()).map(|definition| definition.kind);
            assert_eq!(definition, Ok(kind.to_owned()), "{form}");
        }
    }

    #[test]
    fn scopes_are_the_root_unless_others_are_named() {
        for (scopes, audience) in [
            (json!(null), Audience::ROOT),
            (json!(["agents"]), Audience::AGENTS),
            (json!(["root", "agents"]), Audience::ALL),
        ] {
            let form = given(json!({"id": "r", "body": "B", "scopes": scopes}));
            assert_eq!(form.expect("a form").audience, audience);
        }
    }

    #[test]
    fn mistakes_say_where() {
        for (form, key, part) in [
            (json!({"body": "B"}), &["id"][..], "a name"),
            (json!({"id": " ", "body": "B"}), &["id"], "a name"),
            (json!({"id": "r"}), &[], "one of body"),
            (json!({"id": "r", "body": "B", "pool": "p"}), &["pool"], "one of body"),
            (json!({"id": "r", "body": "B", "client": true}), &["client"], "one of body"),
            (json!({"id": "r", "client": 1}), &["client"], "true or false"),
            (json!({"id": "r", "client": true, "when": "1"}), &["when"], "when goes with body"),
            (json!({"id": "r", "pool": "p", "globs": ["*"]}), &["globs"], "globs goes with body"),
            (json!({"id": "r", "body": "B", "added": "A"}), &["added"], "added goes with pool"),
            (json!({"id": "r", "body": "B", "scopes": "root"}), &["scopes"], "a list"),
            (json!({"id": "r", "body": "B", "scopes": ["x"]}), &["scopes", "0"], "a list"),
        ] {
            let refusal = given(form.clone()).expect_err(&form.to_string());
            assert!(refusal.message.contains(part), "{form}: {refusal}");
            assert_eq!(refusal.at.expect("a place").key, key, "{form}");
        }
    }
}
