//! What an event of a host says, in the daemon's words: the one form that every host's events are
//! read into.

use std::path::PathBuf;

use reminderd_protocol::wait::{Delivery, Seam};
use serde_json::{Map, Value as Json, json};

use super::settings::Settings;

/// A host that runs a command for each of its events.
pub trait Host: Sync {
    /// Reads an event; `None` for one that says nothing to the daemon.
    fn read(&self, input: &Json) -> Result<Option<Happening>, String>;

    /// What the host is to be told at a WAIT, in its own format: the text of the delivery, which is
    /// never empty.
    fn answer(&self, input: &Json, delivery: &Delivery, text: &str) -> Json;

    /// What its settings look like, to put the command in.
    fn settings(&self) -> &'static Settings;
}

/// An event.
#[derive(Debug)]
pub struct Happening {
    /// The conversation, by the host's own name.
    pub session: String,
    /// Where it works.
    pub root: Option<String>,
    /// What the host does, as `session/open` takes it.
    pub host: Json,
    /// The agent that it is about, by its path; `None` for the root.
    pub agent: Option<String>,
    /// What it proves of what was given to the host before.
    pub proof: Proof,
    /// How the host writes down a text that it was given.
    pub kept: fn(&str) -> String,
    /// What is reported, in order.
    pub reports: Vec<Report>,
    /// Whether the host is about to call a model, and takes a text with it.
    pub wait: Option<Seam>,
    /// The turn that is open at the WAIT, by the host's own name, in case that the daemon missed its
    /// beginning.
    pub turn: Option<String>,
}

/// What is reported.
#[derive(Debug)]
pub enum Report {
    /// An event of the protocol.
    Event(&'static str, Json),
    /// A task that changed: the members that did, without those that stayed.
    TaskChanged {
        /// Its id.
        id: String,
        /// What changed.
        changes: Map<String, Json>,
    },
    /// The open turn is over, of a host that has no names for its turns.
    TurnOver {
        /// How it ended.
        outcome: &'static str,
    },
}

/// What an event proves of the texts that were given to the host before it.
#[derive(Debug)]
pub enum Proof {
    /// Nothing.
    None,
    /// Texts of the request that is about to go out.
    Request {
        /// The texts.
        texts: Vec<String>,
        /// Whether they are all that there are, so that what they lack is gone.
        is_whole: bool,
    },
    /// What stands in a transcript that the host writes.
    Transcript {
        /// The file.
        path: PathBuf,
        /// Whether the request for which a text was given was made: what follows it is there.
        went_out: bool,
        /// Whether what is not there by now is not coming any more.
        settles: bool,
    },
}

impl Happening {
    /// An event that reports nothing yet.
    pub fn new(session: &str, root: Option<&str>, host: Json) -> Self {
        Self {
            session: session.to_owned(),
            root: root.map(str::to_owned),
            host,
            agent: None,
            proof: Proof::None,
            kept: str::to_owned,
            reports: Vec::new(),
            wait: None,
            turn: None,
        }
    }

    /// Reports the permission mode, in the words that Claude Code and Codex have for it.
    pub fn permission_mode(&mut self, mode: &str) {
        let known = match mode {
            "default" => "ask",
            "acceptEdits" => "edits",
            "bypassPermissions" => "full-auto",
            other => other,
        };
        self.report("mode/set", json!({ "mode": known }));
    }

    /// Reports whether a plan is being made. What was planned, or accepted, was so up to the last
    /// prompt.
    pub fn plans(&mut self, planning: bool, at_prompt: bool) {
        if planning {
            self.report("plan/set", json!({ "state": "active" }));
        } else if at_prompt {
            self.report("plan/set", json!({ "state": "none" }));
        }
    }

    /// Reports a call that is over. Its beginning is told with its end, since no WAIT is answered while
    /// a call is open, and only the beginning says what the model passed.
    pub fn called(&mut self, call: &str, name: &str, input: &Json, ok: bool, output: &Json) {
        self.report("tool/begin", json!({ "call": call, "name": name, "input": input }));
        self.report("tool/end", json!({ "call": call, "name": name, "ok": ok, "output": output }));
    }

    /// Reports an event of the protocol.
    pub fn report(&mut self, method: &'static str, params: Json) {
        self.reports.push(Report::Event(method, params));
    }

    /// The scope, and more, as params.
    pub fn params(&self, more: Json) -> Json {
        let mut params = Map::new();
        params.insert("session".to_owned(), json!(self.session));
        if let Some(agent) = &self.agent {
            params.insert("agent".to_owned(), json!(agent));
        }
        if let Json::Object(more) = more {
            params.extend(more);
        }
        Json::Object(params)
    }
}

/// The answer by which a text reaches the model at an event, as Claude Code and Codex take it.
pub fn additional_context(input: &Json, text: &str) -> Json {
    let event = &input["hook_event_name"];
    json!({ "hookSpecificOutput": { "hookEventName": event, "additionalContext": text } })
}

/// A member that has to be a string.
pub fn text<'a>(input: &'a Json, name: &str) -> Result<&'a str, String> {
    input[name].as_str().ok_or_else(|| format!("the event has no text {name:?}"))
}
