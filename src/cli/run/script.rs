//! Reading a script: one JSON object a line, one verb a line.
//!
//! Everything that can be known without running is checked here, and all of it is reported,
//! each with its line and column: misspelt verbs and members, expectations that mean
//! nothing, references to names that no earlier line gives.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::{Map, Value, json};

use super::matching::Pattern;
use super::reference::{Text, is_name};
use crate::configuration::nearest;

/// A script that can be run.
#[derive(Debug)]
pub struct Script {
    /// Its steps in order; the first is always the one that initializes.
    pub steps: Vec<Step>,
    /// Whether the daemon keeps what it told over restarts.
    pub keeps: bool,
    /// Whether it is a recording: the daemon has nothing of its machine but what the script says.
    pub plays: bool,
}

/// One line of a script.
#[derive(Debug)]
pub struct Step {
    /// Its line, from 1.
    pub line: usize,
    /// What it does.
    pub action: Action,
    /// The name under which its result is stored.
    pub name: Option<String>,
    /// What its answer must look like.
    pub expectations: Expectations,
}

/// What a step does.
#[derive(Clone, Debug)]
pub enum Action {
    /// Has the daemon keep what it told over restarts.
    Store,
    /// Says what to initialize with.
    Initialize {
        /// The `initializationOptions`.
        options: Value,
    },
    /// Sends a request and awaits its answer.
    Request {
        /// The verb that was written, for the report.
        verb: &'static str,
        /// The method.
        method: String,
        /// Its params, references included.
        params: Value,
    },
    /// Waits for reminders.
    Wait {
        /// The params of `reminder/wait`.
        params: Value,
        /// Whether it is cancelled as soon as it is sent.
        cancel: bool,
    },
    /// Sends a request whose answer a later step awaits.
    Send {
        /// The method.
        method: String,
        /// Its params, references included.
        params: Value,
    },
    /// Awaits the answer of a request that was sent.
    Await {
        /// The name under which it was sent.
        sent: String,
        /// Whether it is cancelled first.
        cancel: bool,
    },
    /// Makes sure that a request that was sent is still unanswered.
    Pending {
        /// The name under which it was sent.
        sent: String,
    },
    /// Sends a notification, which has no answer.
    Notify {
        /// The method.
        method: String,
        /// Its params.
        params: Value,
    },
    /// Moves virtual time.
    Clock {
        /// As written, for people.
        text: String,
        /// How far.
        advance_ms: u64,
    },
    /// Ends the daemon and starts it again.
    Restart {
        /// Whether it is killed rather than asked.
        kill: bool,
    },
    /// Settles what a generator of this client answers from now on.
    Generator {
        /// Its id.
        id: String,
        /// What it answers.
        answer: GeneratorAnswer,
    },
    /// Takes the list of what a generator was asked since the last such step.
    Asked {
        /// Its id.
        id: String,
    },
    /// Waits for the next `reminderd/problem`.
    Problem,
    /// A heading for people.
    Say {
        /// Its text.
        text: String,
    },
}

/// What a generator of this client answers to `reminder/compute`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GeneratorAnswer {
    /// This body, or none.
    Body(Option<String>),
    /// Nothing at all, so that the daemon runs into its deadline.
    Silence,
}

/// What the answer of a step must look like; each part counts for itself.
#[derive(Clone, Debug, Default)]
pub struct Expectations {
    /// `expect`: the result (with `expectError`, the error object) matches.
    pub answer: Option<Pattern>,
    /// `expectError`: the answer is an error of this code.
    pub error: Option<i64>,
    /// `expectNone`: the wait has nothing to say.
    pub none: bool,
}

impl Expectations {
    /// A label for each expectation, in the order in which they are judged.
    pub fn labels(&self) -> Vec<String> {
        let error = self.error.map(|code| format!("expectError {code}"));
        let none = self.none.then(|| "expectNone".to_owned());
        let answer = self.answer.as_ref().map(|_| "expect".to_owned());
        error.into_iter().chain(none).chain(answer).collect()
    }
}

impl Action {
    /// The action in a few words, for reports.
    pub fn describe(&self) -> String {
        match self {
            Self::Store => "store".to_owned(),
            Self::Initialize { .. } => "initialize".to_owned(),
            Self::Request { verb, method, .. } if matches!(*verb, "event" | "request") => {
                format!("{verb} {method}")
            }
            Self::Request { verb, .. } => (*verb).to_owned(),
            Self::Wait { cancel: false, .. } => "wait".to_owned(),
            Self::Wait { cancel: true, .. } => "wait, cancelled".to_owned(),
            Self::Send { method, .. } => format!("send {method}"),
            Self::Await { sent, cancel: false } => format!("await {sent}"),
            Self::Await { sent, cancel: true } => format!("await {sent}, cancelled"),
            Self::Pending { sent } => format!("pending {sent}"),
            Self::Notify { method, .. } => format!("notify {method}"),
            Self::Clock { text, .. } => format!("clock {text}"),
            Self::Restart { kill: false } => "restart".to_owned(),
            Self::Restart { kill: true } => "restart by kill".to_owned(),
            Self::Generator { id, .. } => format!("generator {id}"),
            Self::Asked { id } => format!("asked {id}"),
            Self::Problem => "problem".to_owned(),
            Self::Say { .. } => "say".to_owned(),
        }
    }
}

impl Step {
    /// Whether only recordings have it.
    pub fn is_of_recordings(&self) -> bool {
        matches!(&self.action, Action::Request { verb: SURROUNDINGS, .. })
    }

    /// The step that a script need not write: initializes with what every client says.
    fn initialize_before(line: usize) -> Self {
        let options = json!({"protocolVersion": 1, "client": {"name": "reminderd run"}});
        let action = Action::Initialize { options };
        Self { line, action, name: None, expectations: Expectations::default() }
    }

    /// The step in a few words, with its name.
    pub fn describe(&self) -> String {
        match &self.name {
            Some(name) => format!("{} ({name})", self.action.describe()),
            None => self.action.describe(),
        }
    }
}

/// Something that is wrong with a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptError {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What, why, and what to do.
    pub message: String,
}

impl fmt::Display for ScriptError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}: {}", self.line, self.column, self.message)
    }
}

/// A verb and the other members that may stand beside it.
struct Verb {
    name: &'static str,
    beside: &'static [&'static str],
}

/// The verbs of the language.
const VERBS: &[Verb] = &[
    Verb { name: "store", beside: &[] },
    Verb { name: "initialize", beside: &["as", "expect", "expectError"] },
    Verb { name: "open", beside: &["as", "expect", "expectError"] },
    Verb { name: "event", beside: &["params", "as", "expect", "expectError"] },
    Verb { name: "wait", beside: &["as", "expect", "expectError", "expectNone", "cancel"] },
    Verb { name: "commit", beside: &["as", "expect", "expectError"] },
    Verb { name: "release", beside: &["as", "expect", "expectError"] },
    Verb { name: "request", beside: &["params", "as", "expect", "expectError"] },
    Verb { name: "send", beside: &["params", "as"] },
    Verb { name: "await", beside: &["cancel", "expect", "expectError"] },
    Verb { name: "pending", beside: &[] },
    Verb { name: "notify", beside: &["params", "expectError"] },
    Verb { name: "clock", beside: &["as", "expect", "expectError"] },
    Verb { name: "restart", beside: &["as", "expect", "expectError"] },
    Verb { name: "generator", beside: &["body", "silent"] },
    Verb { name: "asked", beside: &["as", "expect"] },
    Verb { name: "problem", beside: &["as", "expect"] },
    Verb { name: "say", beside: &[] },
    Verb { name: SURROUNDINGS, beside: &[] },
];

/// The verb of recordings.
const SURROUNDINGS: &str = "surroundings";

/// Reads a script, or says everything that is wrong with it.
pub fn parse(text: &str) -> Result<Script, Vec<ScriptError>> {
    let mut steps = Vec::new();
    let mut errors = Vec::new();
    let mut defined = BTreeSet::new();
    let mut seen_step = false;
    let mut keeps = false;
    for (index, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with('#') {
            continue;
        }
        match parse_line(index + 1, line, &defined) {
            Ok(Step { action: Action::Store, line, .. }) => {
                if seen_step {
                    let message = "`store` comes too late, the daemon is already running; make it \
                                   the first step";
                    errors.push(ScriptError { line, column: 1, message: message.to_owned() });
                }
                keeps = true;
                continue;
            }
            Ok(step) => {
                let initializes = matches!(step.action, Action::Initialize { .. });
                if initializes && seen_step {
                    errors.push(ScriptError {
                        line: step.line,
                        column: 1,
                        message: "`initialize` comes too late, the daemon is already running; \
                                  make it the first step"
                            .to_owned(),
                    });
                } else if !initializes && !seen_step {
                    steps.push(Step::initialize_before(step.line));
                }
                defined.extend(step.name.clone());
                steps.push(step);
            }
            Err(mut found) => {
                // A name in a line that is wrong elsewhere is still known to later lines.
                defined.extend(name_in(line));
                errors.append(&mut found);
            }
        }
        seen_step = true;
    }
    if !seen_step {
        steps.push(Step::initialize_before(1));
    }
    if errors.is_empty() {
        let plays = steps.iter().any(Step::is_of_recordings);
        Ok(Script { steps, keeps, plays })
    } else {
        Err(errors)
    }
}

fn name_in(line: &str) -> Option<String> {
    let value: Value = serde_json::from_str(line).ok()?;
    value.get("as")?.as_str().map(str::to_owned)
}

fn parse_line(
    number: usize,
    line: &str,
    defined: &BTreeSet<String>,
) -> Result<Step, Vec<ScriptError>> {
    let members = match serde_json::from_str::<Value>(line) {
        Ok(Value::Object(members)) => members,
        Ok(_) => {
            return Err(vec![ScriptError {
                line: number,
                column: 1,
                message: "a step is one JSON object, such as {\"wait\": {\"session\": \"s\"}}"
                    .to_owned(),
            }]);
        }
        Err(error) => return Err(vec![not_json(number, line, &error)]),
    };
    let mut reader = LineReader {
        number,
        line,
        places: member_places(line),
        members,
        defined,
        errors: Vec::new(),
    };
    let step = reader.step();
    match step {
        Some(step) if reader.errors.is_empty() => Ok(step),
        _ => Err(reader.errors),
    }
}

fn not_json(number: usize, line: &str, error: &serde_json::Error) -> ScriptError {
    let text = error.to_string();
    let what = text.rsplit_once(" at line ").map_or(text.as_str(), |(what, _)| what);
    // The parser counts bytes; people count characters.
    let column =
        line.char_indices().take_while(|(offset, _)| *offset < error.column()).count().max(1);
    ScriptError {
        line: number,
        column,
        message: format!("not JSON, {what}; a step is one JSON object on one line"),
    }
}

/// Takes one line apart, collecting what is wrong with it.
struct LineReader<'a> {
    number: usize,
    line: &'a str,
    places: Vec<(String, usize)>,
    members: Map<String, Value>,
    defined: &'a BTreeSet<String>,
    errors: Vec<ScriptError>,
}

impl LineReader<'_> {
    fn step(&mut self) -> Option<Step> {
        self.check_repeated();
        let verb = self.verb()?;
        self.check_members(verb);
        let action = self.action(verb);
        let name = match &action {
            // What is awaited is stored under the name that it was sent with.
            Some(Action::Await { sent, .. }) => Some(sent.clone()),
            _ => self.name(),
        };
        let expectations = self.expectations();
        Some(Step { line: self.number, action: action?, name, expectations })
    }

    /// Complains at a member, or at a string inside it.
    fn complain(&mut self, member: &str, culprit: Option<&str>, message: impl Into<String>) {
        let place = self.places.iter().find(|(name, _)| name == member);
        let mut offset = place.map_or(0, |(_, offset)| *offset);
        if let Some(culprit) = culprit {
            let written = Value::from(culprit).to_string();
            offset += self.line[offset..].find(&written).unwrap_or(0);
        }
        self.complain_at(offset, message);
    }

    fn complain_at(&mut self, offset: usize, message: impl Into<String>) {
        self.errors.push(ScriptError {
            line: self.number,
            column: self.line[..offset].chars().count() + 1,
            message: message.into(),
        });
    }

    fn check_repeated(&mut self) {
        let repeated: Vec<_> = self
            .places
            .iter()
            .enumerate()
            .filter(|(index, (name, _))| self.places[..*index].iter().any(|(one, _)| one == name))
            .map(|(_, place)| place.clone())
            .collect();
        for (name, offset) in repeated {
            self.complain_at(offset, format!("`{name}` stands here twice; leave one of them out"));
        }
    }

    fn verb(&mut self) -> Option<&'static Verb> {
        let mut found: Vec<&Verb> = self
            .places
            .iter()
            .filter_map(|(name, _)| VERBS.iter().find(|verb| verb.name == name))
            .collect();
        // A verb that stands there twice has been complained of.
        found.dedup_by_key(|verb| verb.name);
        match found.as_slice() {
            [verb] => Some(verb),
            [first, second, ..] => {
                let message = format!(
                    "`{}` and `{}` are both verbs, and a step has one; make two lines of it",
                    first.name, second.name
                );
                self.complain(second.name, None, message);
                None
            }
            [] => {
                let names: Vec<_> = VERBS.iter().map(|verb| verb.name).collect();
                let beside: BTreeSet<_> = VERBS.iter().flat_map(|verb| verb.beside).collect();
                let stranger = self
                    .places
                    .iter()
                    .map(|(name, _)| name.clone())
                    .find(|name| !beside.contains(&name.as_str()));
                if let Some(name) = stranger {
                    let hint = did_you_mean(&name, &names);
                    let message =
                        format!("`{name}` is no verb{hint}; there are {}", names.join(", "));
                    self.complain(&name, None, message);
                } else {
                    let message = format!("the step has no verb; add one of {}", names.join(", "));
                    self.complain_at(0, message);
                }
                None
            }
        }
    }

    fn check_members(&mut self, verb: &Verb) {
        let strangers: Vec<_> = self
            .members
            .keys()
            .filter(|name| *name != verb.name && !verb.beside.contains(&name.as_str()))
            .cloned()
            .collect();
        for name in strangers {
            let hint = did_you_mean(&name, verb.beside);
            let may = match verb.beside {
                [] => "nothing may stand beside it".to_owned(),
                beside => format!("beside it may stand {}", beside.join(", ")),
            };
            let message = format!("`{}` has no member `{name}`{hint}; {may}", verb.name);
            self.complain(&name, None, message);
        }
    }

    fn action(&mut self, verb: &Verb) -> Option<Action> {
        let value = self.members.get(verb.name)?.clone();
        match verb.name {
            "store" => self.flag("store").then_some(Action::Store),
            "initialize" => self
                .object(verb.name, value, "its initializationOptions")
                .map(|options| Action::Initialize { options }),
            "open" => {
                let params = self.params(verb.name, Some(value))?;
                Some(Action::Request { verb: "open", method: "session/open".to_owned(), params })
            }
            "wait" => {
                let params = self.params(verb.name, Some(value))?;
                let cancel = self.flag("cancel");
                Some(Action::Wait { params, cancel })
            }
            "event" | "request" => {
                let method = self.word(verb.name, &value, "the name of a method")?;
                let params = self.members.get("params").cloned();
                let params = self.params("params", params)?;
                Some(Action::Request { verb: verb.name, method, params })
            }
            "send" => {
                let method = self.word(verb.name, &value, "the name of a method")?;
                let params = self.members.get("params").cloned();
                let params = self.params("params", params)?;
                if !self.members.contains_key("as") {
                    let message = "`send` needs a name under which it is awaited: add \"as\"";
                    self.complain("send", None, message);
                }
                Some(Action::Send { method, params })
            }
            "await" | "pending" => {
                let sent = self.word(verb.name, &value, "the name of a request that was sent")?;
                if !self.defined.contains(&sent) {
                    let message =
                        format!("no earlier `send` has \"as\": \"{sent}\"; send it first");
                    self.complain(verb.name, None, message);
                }
                Some(match verb.name {
                    "await" => Action::Await { sent, cancel: self.flag("cancel") },
                    _ => Action::Pending { sent },
                })
            }
            "notify" => {
                let method = self.word(verb.name, &value, "the name of a method")?;
                let params = self.members.get("params").cloned();
                let params = self.params("params", params)?;
                Some(Action::Notify { method, params })
            }
            "commit" | "release" => {
                let params = match value {
                    Value::String(_) => json!({ "token": value }),
                    other => other,
                };
                if !params.is_object() {
                    let message = format!(
                        "`{}` takes a token, such as \"$w1.token\", or an object with one",
                        verb.name
                    );
                    self.complain(verb.name, None, message);
                    return None;
                }
                let params = self.params(verb.name, Some(params))?;
                let method = format!("reminder/{}", verb.name);
                Some(Action::Request { verb: verb.name, method, params })
            }
            "clock" => self.clock(&value),
            SURROUNDINGS => {
                let params = self.object(verb.name, value, "as a recording has it")?;
                let params = self.params(verb.name, Some(params))?;
                let method = "reminderd/surroundings".to_owned();
                Some(Action::Request { verb: SURROUNDINGS, method, params })
            }
            "restart" => match value {
                Value::Bool(true) => Some(Action::Restart { kill: false }),
                Value::String(how) if how == "kill" => Some(Action::Restart { kill: true }),
                _ => {
                    self.complain("restart", None, "`restart` takes true or \"kill\"");
                    None
                }
            },
            "generator" => self.generator(&value),
            "asked" => {
                let id = self.word(verb.name, &value, "the id of a generator")?;
                Some(Action::Asked { id })
            }
            "problem" => self.flag("problem").then_some(Action::Problem),
            _ => {
                let text = self.word(verb.name, &value, "a text")?;
                Some(Action::Say { text })
            }
        }
    }

    fn clock(&mut self, value: &Value) -> Option<Action> {
        let text = value.as_str().unwrap_or_default();
        let advance = text.strip_prefix('+').and_then(|span| milliseconds(span, None));
        if advance.is_none() {
            self.complain(
                "clock",
                None,
                "`clock` takes how far time moves, such as \"+8m\"; units are ms, s, m, h, d",
            );
        }
        Some(Action::Clock { text: text.to_owned(), advance_ms: advance? })
    }

    fn generator(&mut self, value: &Value) -> Option<Action> {
        let id = self.word("generator", value, "the id of a generator")?;
        let silent = self.members.contains_key("silent") && self.flag("silent");
        let body = match (self.members.get("body"), silent) {
            (Some(_), true) => {
                self.complain("body", None, "`body` and `silent` exclude each other; choose one");
                return None;
            }
            (None, true) => {
                return Some(Action::Generator { id, answer: GeneratorAnswer::Silence });
            }
            (Some(Value::String(body)), false) => Some(body.clone()),
            (Some(Value::Null), false) => None,
            (Some(_), false) => {
                self.complain("body", None, "`body` takes a string, or null for nothing to say");
                return None;
            }
            (None, false) => {
                self.complain(
                    "generator",
                    None,
                    "`generator` needs what it answers: add \"body\" (a string or null) or \
                     \"silent\": true",
                );
                return None;
            }
        };
        Some(Action::Generator { id, answer: GeneratorAnswer::Body(body) })
    }

    fn name(&mut self) -> Option<String> {
        match self.members.get("as")?.clone() {
            Value::String(name) if is_name(&name) => Some(name),
            _ => {
                self.complain(
                    "as",
                    None,
                    "`as` takes a name: a letter, then letters, digits, `-` and `_`",
                );
                None
            }
        }
    }

    fn expectations(&mut self) -> Expectations {
        let none = self.members.contains_key("expectNone") && self.flag("expectNone");
        let error = match self.members.get("expectError").map(Value::as_i64) {
            Some(None) => {
                self.complain(
                    "expectError",
                    None,
                    "`expectError` takes the code of an error, such as -33007",
                );
                None
            }
            Some(code) => code,
            None => None,
        };
        if none && error.is_some() {
            let message = "`expectNone` and `expectError` exclude each other; choose one";
            self.complain("expectNone", None, message);
        }
        let answer = self.members.get("expect").cloned();
        let answer = answer.and_then(|value| match Pattern::parse(&value) {
            Ok(pattern) => {
                for reference in pattern.references() {
                    self.check_defined("expect", &reference.to_string(), &reference.name);
                }
                Some(pattern)
            }
            Err(error) => {
                self.complain("expect", Some(&error.culprit), error.message);
                None
            }
        });
        Expectations { answer, error, none }
    }

    /// Params: an object or an array, absent for none; references must be known.
    fn params(&mut self, member: &str, value: Option<Value>) -> Option<Value> {
        let value = match value {
            None => Value::Null,
            Some(value @ (Value::Object(_) | Value::Array(_) | Value::Null)) => value,
            Some(_) => {
                self.complain(member, None, format!("`{member}` takes an object"));
                return None;
            }
        };
        let mut strings = Vec::new();
        collect_strings(&value, &mut strings);
        for string in strings {
            match Text::parse(string) {
                Ok(Text::Literal(_)) => {}
                Ok(Text::Reference(reference)) => {
                    self.check_defined(member, string, &reference.name);
                }
                Err(message) => self.complain(member, Some(string), message),
            }
        }
        Some(value)
    }

    fn check_defined(&mut self, member: &str, written: &str, name: &str) {
        if !self.defined.contains(name) {
            let names: Vec<_> = self.defined.iter().map(String::as_str).collect();
            let hint = did_you_mean(name, &names);
            let message = format!(
                "`{written}` stands for nothing, no earlier step has \"as\": \"{name}\"{hint}; \
                 text that begins with `$` is written with two"
            );
            self.complain(member, Some(written), message);
        }
    }

    fn object(&mut self, member: &str, value: Value, what: &str) -> Option<Value> {
        if value.is_object() {
            return Some(value);
        }
        self.complain(member, None, format!("`{member}` takes an object, {what}"));
        None
    }

    fn word(&mut self, member: &str, value: &Value, what: &str) -> Option<String> {
        match value.as_str() {
            Some(word) if !word.is_empty() => Some(word.to_owned()),
            _ => {
                self.complain(member, None, format!("`{member}` takes {what}, a string"));
                None
            }
        }
    }

    /// A member that is `true` or left out.
    fn flag(&mut self, member: &str) -> bool {
        match self.members.get(member) {
            None => false,
            Some(Value::Bool(true)) => true,
            Some(_) => {
                self.complain(member, None, format!("`{member}` takes only true; or leave it out"));
                false
            }
        }
    }
}

fn collect_strings<'a>(value: &'a Value, strings: &mut Vec<&'a str>) {
    match value {
        Value::String(string) => strings.push(string),
        Value::Array(elements) => {
            for element in elements {
                collect_strings(element, strings);
            }
        }
        Value::Object(members) => {
            for member in members.values() {
                collect_strings(member, strings);
            }
        }
        _ => {}
    }
}

/// The members of the object on a line and the byte offsets of their names, in order.
///
/// The line is known to be a JSON object, so strings and brackets are balanced.
fn member_places(line: &str) -> Vec<(String, usize)> {
    let mut places = Vec::new();
    let mut depth = 0_usize;
    let mut before = ' ';
    let mut characters = line.char_indices();
    while let Some((start, character)) = characters.next() {
        match character {
            '{' | '[' => depth += 1,
            '}' | ']' => depth -= 1,
            '"' => {
                let mut escaped = false;
                let end = characters.find(|(_, inner)| {
                    let closes = *inner == '"' && !escaped;
                    escaped = *inner == '\\' && !escaped;
                    closes
                });
                let end = end.map_or(line.len(), |(end, _)| end + 1);
                if depth == 1 && matches!(before, '{' | ',') {
                    let name = serde_json::from_str(&line[start..end]).unwrap_or_default();
                    places.push((name, start));
                }
            }
            _ => {}
        }
        if !character.is_whitespace() {
            before = character;
        }
    }
    places
}

/// A hint at the word that was probably meant, empty when none is near.
pub fn did_you_mean(word: &str, known: &[&str]) -> String {
    match nearest(word, known.iter().copied()) {
        Some(one) => format!(", did you mean `{one}`?"),
        None => String::new(),
    }
}

/// A span of time such as `8m`, `500ms` or `1h30m`; a bare number is of the unit given, if any.
pub fn milliseconds(text: &str, bare: Option<u64>) -> Option<u64> {
    if let (Ok(number), Some(unit)) = (text.parse::<u64>(), bare) {
        return number.checked_mul(unit);
    }
    let mut rest = text;
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let digits = rest.find(|character: char| !character.is_ascii_digit())?;
        let (number, after) = rest.split_at(digits);
        let letters = after.find(|character: char| character.is_ascii_digit());
        let (unit, after) = after.split_at(letters.unwrap_or(after.len()));
        let unit = match unit {
            "ms" => 1,
            "s" => 1000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return None,
        };
        total = total.checked_add(number.parse::<u64>().ok()?.checked_mul(unit)?)?;
        rest = after;
    }
    (!text.is_empty()).then_some(total)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn comments_and_blank_lines_do_nothing() {
        let script = parse("\u{feff}# a comment\n\n  # another\r\n{\"say\":\"hello\"}\r\n");
        let steps = script.expect("a script").steps;
        assert_eq!(steps.iter().map(|step| step.line).collect::<Vec<_>>(), [4, 4]);
    }

    #[test]
    fn every_verb_is_read() {
        let text = r#"
{"store":true}
{"initialize":{"protocolVersion":1}}
{"say":"A heading"}
{"surroundings":{"closed":2}}
{"open":{"session":"s"},"as":"o","expect":{"state":"new"}}
{"event":"task/put","params":{"session":"s"}}
{"wait":{"session":"s"},"as":"w1","expectNone":true}
{"wait":{"session":"s"},"cancel":true,"expectError":-32800}
{"commit":"$w1.token"}
{"commit":{"token":"$w1.token","entries":["$w1.entries.0.id"]},"expect":{"already":false}}
{"release":"$w1.token"}
{"request":"session/list","as":"l","expect":[]}
{"send":"edit/settle","params":{"session":"s"},"as":"d"}
{"pending":"d"}
{"await":"d","expect":{"files":[]}}
{"send":"edit/settle","as":"e"}
{"await":"e","cancel":true,"expectError":-32800}
{"notify":"turn/end","params":{},"expectError":-33004}
{"clock":"+8m"}
{"restart":true}
{"restart":"kill"}
{"generator":"g","body":"text"}
{"generator":"g","body":null}
{"generator":"g","silent":true}
{"asked":"g","expect":[]}
{"problem":true,"expect":{"code":-33004}}
"#;
        let script = parse(text).expect("a script");
        assert!(script.keeps);
        let described: Vec<_> = script.steps.iter().map(Step::describe).collect();
        assert_eq!(
            described,
            [
                "initialize",
                "say",
                "surroundings",
                "open (o)",
                "event task/put",
                "wait (w1)",
                "wait, cancelled",
                "commit",
                "commit",
                "release",
                "request session/list (l)",
                "send edit/settle (d)",
                "pending d",
                "await d (d)",
                "send edit/settle (e)",
                "await e, cancelled (e)",
                "notify turn/end",
                "clock +8m",
                "restart",
                "restart by kill",
                "generator g",
                "generator g",
                "generator g",
                "asked g",
                "problem",
            ]
        );
    }

    #[test]
    fn the_help_teaches_every_verb_and_its_example_is_a_script() {
        let help = crate::cli::run::LANGUAGE;
        for verb in VERBS {
            assert!(help.contains(&format!("{{\"{}\":", verb.name)), "{}", verb.name);
            for member in verb.beside.iter().filter(|member| **member != "params") {
                assert!(help.contains(&format!("\"{member}\"")), "{member}");
            }
        }
        let (_, example) = help.split_once("<<'END'\n").expect("an example");
        let example = example.trim_end().trim_end_matches("END");
        assert_eq!(parse(example).expect("a script").steps.len(), 7);
    }

    #[test]
    fn what_is_wrong_and_where() {
        let table = [
            (r#"{"wiat":{}}"#, "1:2: `wiat` is no verb, did you mean `wait`?"),
            (r#"{"say":"ä","wait":{}}"#, "1:12: `say` and `wait`"),
            (r#"{"as":"x"}"#, "1:1: the step has no verb"),
            (r"{}", "1:1: the step has no verb"),
            (r"[]", "1:1: a step is one JSON object"),
            (r#"{"wait":{}"#, "1:10: not JSON"),
            (
                r#"{"wait":{},"expct":{}}"#,
                "1:12: `wait` has no member `expct`, did you mean `expect`?",
            ),
            (r#"{"say":"a","as":"x"}"#, "1:12: `say` has no member `as`"),
            (r#"{"wait":{},"wait":{}}"#, "1:12: `wait` stands here twice"),
            (r#"{"wait":"s"}"#, "1:2: `wait` takes an object"),
            (r#"{"event":3}"#, "1:2: `event` takes the name of a method"),
            (r#"{"event":"a","params":"b"}"#, "1:14: `params` takes an object"),
            (r#"{"commit":7}"#, "1:2: `commit` takes a token"),
            (r#"{"commit":"$w1.token"}"#, "1:11: `$w1.token` stands for nothing"),
            (r#"{"wait":{},"expect":{"a":"$w1"}}"#, "1:26: `$w1` stands for nothing"),
            (r#"{"open":{"session":"$5 a"}}"#, "1:20: `$5 a` is no reference"),
            (r#"{"wait":{},"expect":{"a":{"$rx":"b"}}}"#, "1:27: `$rx` is no matcher"),
            (r#"{"wait":{},"expectError":"a"}"#, "1:12: `expectError` takes the code"),
            (r#"{"wait":{},"expectNone":false}"#, "1:12: `expectNone` takes only true"),
            (r#"{"wait":{},"expectNone":true,"expectError":1}"#, "1:12: `expectNone` and"),
            (r#"{"event":"a","expectNone":true}"#, "1:14: `event` has no member `expectNone`"),
            (r#"{"clock":"8m"}"#, "1:2: `clock` takes how far"),
            (r#"{"clock":"+8"}"#, "1:2: `clock` takes how far"),
            (r#"{"restart":false}"#, "1:2: `restart` takes true"),
            (r#"{"generator":"g"}"#, "1:2: `generator` needs what it answers"),
            (r#"{"generator":"g","body":1}"#, "1:18: `body` takes a string"),
            (r#"{"generator":"g","body":"a","silent":true}"#, "1:18: `body` and `silent`"),
            (r#"{"wait":{},"as":"1"}"#, "1:12: `as` takes a name"),
            ("{\"say\":\"a\"}\n{\"initialize\":{}}", "2:1: `initialize` comes too late"),
        ];
        for (text, expected) in table {
            let errors = parse(text).expect_err(text);
            let first = errors[0].to_string();
            assert!(first.starts_with(expected), "{text}: {first}");
        }
    }

    #[test]
    fn all_errors_are_reported_at_once() {
        let errors = parse("{\"wiat\":{}}\n{\"wait\":{},\"a\":1,\"b\":2}\n{").expect_err("errors");
        assert_eq!(errors.iter().map(|error| error.line).collect::<Vec<_>>(), [1, 2, 2, 3]);
    }

    #[test]
    fn a_name_in_a_wrong_line_is_still_known() {
        let errors = parse("{\"wait\":{},\"a\":1,\"as\":\"w1\"}\n{\"commit\":\"$w1.token\"}")
            .expect_err("one error");
        assert_eq!(errors.len(), 1);
    }

    #[test]
    fn spans_of_time() {
        let table = [
            ("8m", None, Some(480_000)),
            ("1h30m", None, Some(5_400_000)),
            ("500ms", Some(1000), Some(500)),
            ("5", Some(1000), Some(5000)),
            ("2d", None, Some(172_800_000)),
            ("5", None, None),
            ("", None, None),
            ("m", None, None),
            ("5x", Some(1000), None),
            ("-5s", Some(1000), None),
            ("99999999999999999999d", None, None),
        ];
        for (text, bare, expected) in table {
            assert_eq!(milliseconds(text, bare), expected, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn reading_a_script_never_panics(text in "(\\PC|[\n\"{}\\[\\]:,$\\\\]){0,60}") {
            let _ = parse(&text);
        }

        #[test]
        fn the_members_of_a_line_are_found(
            members in prop::collection::btree_map(".{0,6}", "[\\PC]{0,8}", 0..5)
        ) {
            let line = serde_json::to_string(&members).expect("JSON");
            let found: Vec<_> = member_places(&line).into_iter().map(|(name, _)| name).collect();
            prop_assert_eq!(found, members.into_keys().collect::<Vec<_>>());
        }
    }
}
