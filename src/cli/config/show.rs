//! `reminderd config show`: what holds, and which file and line it comes from.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use serde_json::{Value as Json, json};

use super::{document, is_same};
use crate::configuration::{
    Document, Effective, FILE_NAME, Given, Layer, Layers, LeftOut, Source, Unreadable, schema,
    users_file,
};
use crate::engine::{Audience, Definition, Switch, Value};
use crate::reminders;

/// Say what holds in a session, and which file and line it comes from.
///
/// Prints every key with its value as TOML, and behind each `FILE:LINE` or `default`; then the
/// reminders; then what trust leaves out. Sessions trust a workspace only when the client says so.
/// What a client configures itself is not in it. Exit status: 0, or 2 when a file cannot be read.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  $ reminderd config show --root . --trusted")]
pub struct ShowArguments {
    /// The session's root, whose `reminderd.toml` counts
    #[arg(long, value_name = "DIR", default_value = ".")]
    root: PathBuf,
    /// As in a session that trusts the workspace
    #[arg(long)]
    trusted: bool,
    /// Say it as JSON
    #[arg(long)]
    json: bool,
}

/// One value that holds.
struct Row {
    key: String,
    value: Value,
    /// `FILE:LINE` or `default`.
    from: String,
    source: Option<Source>,
}

/// Runs the command.
pub fn run(arguments: &ShowArguments) -> ExitCode {
    let users = users_file();
    let workspaces = arguments.root.join(FILE_NAME);
    let mut exit = ExitCode::SUCCESS;
    let mut layer = |path: Option<&Path>, layer: Layer| {
        let path = path?;
        match document(path, layer) {
            Ok(document) => {
                for mistake in &document.mistakes {
                    eprintln!("{}", mistake.headline(&document.origin));
                }
                Some(Arc::new(document))
            }
            Err(Unreadable::Missing) => None,
            Err(error) => {
                eprintln!("{}: {error}", path.display());
                exit = ExitCode::from(2);
                None
            }
        }
    };
    let user = layer(users.as_deref(), Layer::User);
    // At home the two are one file.
    let is_one = is_same(&workspaces, users.as_ref());
    let workspace = layer(Some(&*workspaces).filter(|_| !is_one), Layer::Workspace);
    let layers = Layers { user, workspace, session: None };
    for (document, mistake) in layers.mistakes() {
        eprintln!("{}", mistake.headline(&document.origin));
    }
    let effective = layers.effective(arguments.trusted);
    let rows = rows(&effective, layers.user.as_deref());
    if arguments.json {
        println!("{:#}", as_json(&effective, &rows));
    } else {
        print!("{}", as_text(&effective, &rows));
    }
    exit
}

/// Every key that has a value.
fn rows(effective: &Effective, user: Option<&Document>) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut row = |key: String, value: Value, source: Option<Source>| {
        let from = source.as_ref().map_or_else(|| "default".to_owned(), from);
        rows.push(Row { key, value, from, source });
    };
    let configuration = &effective.configuration;
    for name in reminders::kind_names() {
        let switch = configuration.kinds.get(name);
        let place = format!("kinds.{name}");
        let source = |key: &str| effective.sources.get(key).cloned();
        let on = !matches!(switch, Some(Switch::Off));
        let given = match switch {
            Some(Switch::On(Value::Map(given))) => given.clone(),
            _ => std::collections::BTreeMap::new(),
        };
        let keys = reminders::own_keys(name);
        if !on || (keys.is_empty() && given.is_empty()) {
            row(place.clone(), Value::Bool(on), source(&place));
        }
        if !on {
            continue;
        }
        for key in keys {
            let value = given.get(&key.name).or(key.default.as_ref());
            if let Some(value) = value {
                let place = format!("{place}.{}", key.name);
                row(place.clone(), value.clone(), source(&place));
            }
        }
        for (key, value) in given.iter().filter(|(key, _)| keys.iter().all(|it| it.name != **key)) {
            let place = format!("{place}.{key}");
            row(place.clone(), value.clone(), source(&place));
        }
    }
    let rules = configuration.kinds.iter();
    for (id, switch) in rules.filter(|(id, _)| reminders::kind_names().all(|name| name != **id)) {
        let value = match switch {
            Switch::Off => Value::Bool(false),
            Switch::On(Value::Map(given)) if given.is_empty() => Value::Bool(true),
            Switch::On(given) => given.clone(),
        };
        let place = format!("kinds.{id}");
        row(format!("kinds.{}", quoted(id)), value, effective.sources.get(&place).cloned());
    }
    let budget = configuration.budget;
    for (key, limit) in [("perWait", budget.per_wait), ("perSession", budget.per_session)] {
        if let Some(limit) = limit {
            let place = format!("budget.{key}");
            row(place.clone(), Value::from(limit), effective.sources.get(&place).cloned());
        }
    }
    let limits = user.map(|user| user.limits.clone()).unwrap_or_default();
    let store = user.map(|user| user.store.clone()).unwrap_or_default();
    for (table, key, given) in [
        ("limits", "messageBytes", limits.message_bytes),
        ("store", "keepDays", store.keep_days),
        ("store", "keepSessions", store.keep_sessions),
        ("store", "keepBytes", store.keep_bytes),
    ] {
        let default = &schema()["properties"][table]["properties"][key]["default"];
        let (value, source) = match (given, user) {
            (Some(Given { value, at }), Some(user)) => {
                (value, Some(Source { origin: user.origin.clone(), at }))
            }
            _ => (default.as_u64().unwrap_or_default(), None),
        };
        row(format!("{table}.{key}"), Value::from(value), source);
    }
    rows
}

fn from(source: &Source) -> String {
    source.origin.with_line(&source.at)
}

/// TOML with a comment behind each value.
fn as_text(effective: &Effective, rows: &[Row]) -> String {
    let mut text = String::new();
    let lines: Vec<_> =
        rows.iter().map(|row| (format!("{} = {}", row.key, toml(&row.value)), &row.from)).collect();
    let width = lines.iter().map(|(line, _)| line.chars().count()).filter(|it| *it <= 50).max();
    for (line, from) in lines {
        text.push_str(&format!("{line:width$}  # {from}\n", width = width.unwrap_or(0)));
    }
    for definition in &effective.configuration.reminders {
        let source = effective.sources.get(&format!("reminders.{}", definition.id));
        text.push_str(&format!("\n[[reminders]]  # {}\n", source.map_or_else(String::new, from)));
        for (key, value) in form(definition) {
            text.push_str(&format!("{key} = {}\n", toml(&value)));
        }
    }
    if !effective.left_out.is_empty() {
        text.push_str("\n# Left out:\n");
    }
    for LeftOut { id, key, why, origin, at } in &effective.left_out {
        let key = key.as_ref().map(|key| format!(".{key}")).unwrap_or_default();
        text.push_str(&format!("# {}: {}{key}: {why}\n", origin.with_line(at), quoted(id)));
    }
    text
}

fn as_json(effective: &Effective, rows: &[Row]) -> Json {
    let place = |source: &Source| match source.at.line {
        0 => json!({ "file": source.origin.name }),
        line => json!({ "file": source.origin.name, "line": line }),
    };
    let source = |source: Option<&Source>| source.map_or_else(|| Json::from("default"), place);
    json!({
        "values": rows.iter().map(|row| {
            json!({ "key": row.key, "value": row.value, "source": source(row.source.as_ref()) })
        }).collect::<Vec<_>>(),
        "reminders": effective.configuration.reminders.iter().map(|definition| {
            let key = format!("reminders.{}", definition.id);
            let form: serde_json::Map<_, _> =
                form(definition).into_iter().map(|(key, value)| (key, json!(value))).collect();
            json!({ "reminder": form, "source": source(effective.sources.get(&key)) })
        }).collect::<Vec<_>>(),
        "leftOut": effective.left_out.iter().map(|left| {
            let at = Source { origin: left.origin.clone(), at: left.at.clone() };
            json!({ "id": left.id, "key": left.key, "why": left.why, "source": place(&at) })
        }).collect::<Vec<_>>(),
    })
}

/// A reminder as its form: the id first.
fn form(definition: &Definition) -> Vec<(String, Value)> {
    let mut members = vec![("id".to_owned(), Value::from(definition.id.as_str()))];
    if definition.kind == "client-generator" {
        members.push(("client".to_owned(), Value::Bool(true)));
    }
    if let Value::Map(settings) = &definition.settings {
        members.extend(settings.iter().map(|(key, value)| (key.clone(), value.clone())));
    }
    let Audience { root, agents } = definition.audience;
    let scopes = [(root, "root"), (agents, "agents")].into_iter();
    let scopes = scopes.filter(|(there, _)| *there).map(|(_, name)| Value::from(name)).collect();
    members.push(("scopes".to_owned(), Value::List(scopes)));
    members
}

/// A value as TOML writes it.
fn toml(value: &Value) -> String {
    match toml::Value::try_from(value) {
        Ok(value) => value.to_string(),
        // `null` and numbers above what TOML has, which no key takes.
        Err(_) => json!(value).to_string(),
    }
}

/// A key as TOML writes it.
fn quoted(name: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !name.is_empty() && name.chars().all(bare) { name.to_owned() } else { toml(&name.into()) }
}
