//! A conversation with a daemon, and the WAITs in it: what was offered, what came of it.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::report::page::{Explanation, Explanations, HeldBack, Outcome, Reminder, Wait};
use super::run::Message;
use crate::engine::{Millis, estimate_tokens};
use crate::server::EPOCH;

/// What is known of a session so far.
#[derive(Debug, Default)]
pub struct Played {
    /// Its root directory.
    pub root: Option<String>,
    /// Its WAITs.
    pub waits: Vec<Wait>,
    /// What was explained before them.
    pub explanations: Explanations,
}

/// The sessions of a conversation.
pub fn sessions(messages: &[Message]) -> BTreeMap<String, Played> {
    Listener::default().listen(messages)
}

/// Listens to a conversation.
#[derive(Debug, Default)]
struct Listener {
    sessions: BTreeMap<String, Played>,
    /// Requests that are not answered yet.
    asked: BTreeMap<i64, (String, Json)>,
    /// The open turn of each scope.
    turns: BTreeMap<(String, String), String>,
    /// What was said of a scope last.
    explained: BTreeMap<(String, String), Vec<usize>>,
    /// Where the WAIT of a token is.
    tokens: BTreeMap<String, (String, usize)>,
    /// How far the clock was moved.
    moved: Millis,
}

impl Listener {
    fn listen(mut self, messages: &[Message]) -> BTreeMap<String, Played> {
        for Message { from, message } in messages {
            let is_ours = from == "client";
            let method = message["method"].as_str();
            match (is_ours, method, message["id"].as_i64()) {
                (true, Some(method), Some(id)) => {
                    self.asked.insert(id, (method.to_owned(), message["params"].clone()));
                }
                // What is only told has no answer, and takes effect at once.
                (true, Some(method), None) => {
                    self.answered(method, &message["params"], &Json::Null);
                }
                (false, None, Some(id)) => {
                    if let Some((method, params)) = self.asked.remove(&id)
                        && message["error"].is_null()
                    {
                        self.answered(&method, &params, &message["result"]);
                    }
                }
                _ => {}
            }
        }
        self.sessions
    }

    fn answered(&mut self, method: &str, params: &Json, result: &Json) {
        let session = text(&params["session"]).unwrap_or_default();
        let agent = text(&params["agent"]).unwrap_or_default();
        let scope = (session, agent);
        match method {
            "reminderd/clock" => self.moved += params["advanceMs"].as_u64().unwrap_or(0),
            "session/open" => {
                let played = self.sessions.entry(scope.0).or_default();
                played.root = text(&params["root"]).or_else(|| played.root.take());
            }
            "turn/begin" => {
                if let Some(turn) = text(&params["turn"]) {
                    self.turns.insert(scope, turn);
                }
            }
            "reminder/explain" => {
                let played = self.sessions.entry(scope.0.clone()).or_default();
                let rows = result["rows"].as_array().into_iter().flatten();
                let places = rows.map(|row| played.explanations.place(explanation(row))).collect();
                self.explained.insert(scope, places);
            }
            "reminder/wait" => self.waited(scope, result),
            "reminder/commit" => self.committed(params, result),
            "reminder/release" if result["released"] == true => {
                if let Some(wait) = self.wait_of(params) {
                    wait.outcome = Outcome::Released;
                }
            }
            _ => {}
        }
    }

    fn waited(&mut self, scope: (String, String), delivery: &Json) {
        let rows = self.explained.remove(&scope);
        let turn = self.turns.get(&scope).cloned();
        let (session, agent) = scope;
        let played = self.sessions.entry(session.clone()).or_default();
        if let Some(token) = text(&delivery["token"]) {
            self.tokens.insert(token, (session, played.waits.len()));
        }
        let is_committed = delivery["committed"] == true;
        let held = delivery["held"].as_array().into_iter().flatten();
        played.waits.push(Wait {
            at: EPOCH + self.moved,
            agent,
            turn,
            phase: text(&delivery["phase"]),
            outcome: if is_committed { Outcome::Committed } else { Outcome::Offered },
            placement: None,
            record: text(&delivery["record"]["id"]).filter(|_| is_committed),
            entries: reminders(&delivery["record"]),
            held: held
                .map(|held| HeldBack {
                    entry_type: text(&held["type"]).unwrap_or_default(),
                    reason: text(&held["reason"]).unwrap_or_default(),
                })
                .collect(),
            rows,
        });
    }

    fn committed(&mut self, params: &Json, result: &Json) {
        let Some(wait) = self.wait_of(params) else { return };
        wait.outcome = Outcome::Committed;
        wait.placement = text(&params["placement"]).or_else(|| wait.placement.take());
        wait.record = text(&result["record"]["id"]);
        // After a partial receipt it is less than what was offered.
        wait.entries = reminders(&result["record"]);
    }

    fn wait_of(&mut self, params: &Json) -> Option<&mut Wait> {
        let (session, place) = self.tokens.get(params["token"].as_str()?)?;
        self.sessions.get_mut(session)?.waits.get_mut(*place)
    }
}

fn text(value: &Json) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn reminders(record: &Json) -> Vec<Reminder> {
    let entries = record["entries"].as_array().into_iter().flatten();
    let reminder = |entry: &Json| {
        let body = text(&entry["body"]).unwrap_or_default();
        Reminder {
            entry_type: text(&entry["type"]).unwrap_or_default(),
            kind: text(&entry["kind"]).unwrap_or_default(),
            key: text(&entry["key"]),
            label: text(&entry["label"]).unwrap_or_default(),
            tokens: estimate_tokens(&body),
            body,
        }
    };
    entries.map(reminder).collect()
}

fn explanation(row: &Json) -> Explanation {
    Explanation {
        id: text(&row["id"]).unwrap_or_default(),
        speaks: row["speaks"] == true,
        reason: text(&row["reason"]).unwrap_or_default(),
        next: text(&row["next"]),
    }
}
