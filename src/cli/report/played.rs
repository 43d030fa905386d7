//! A session as a recording plays: before each WAIT it is asked of every reminder why it speaks or is
//! silent. Asking changes nothing, so that the WAITs are those of the recording.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value as Json, json};

use super::page::{Explanation, Explanations, HeldBack, Outcome, Reminder, Report, Source, Wait};
use crate::cli::paint::{self, count};
use crate::cli::run::report::{Case, End, ScriptReport, Verdict};
use crate::cli::run::script::{Action, Expectations, Script, Step};
use crate::cli::run::{self, Message};
use crate::engine::{Millis, estimate_tokens, short_name};
use crate::server::EPOCH;

/// The line of a question that no recording holds.
const ASKED: usize = 0;

/// The session of a recording; of several the one that waits most often.
pub fn played(path: &Path, made: Millis) -> Result<Report, String> {
    let name = run::display_name(path);
    let stopped = |report: &ScriptReport| Err(report.ending().join("\n"));
    let mut script = match run::read_script(path) {
        Ok(script) => script,
        Err(end) => {
            return stopped(&ScriptReport { name, cases: Vec::new(), end });
        }
    };
    ask_before_waits(&mut script);
    let (messages, report) =
        run::play(&script, path).map_err(|error| format!("{name} cannot be played: {error}"))?;
    if !matches!(report.end, End::Finished) {
        return stopped(&report);
    }
    let is_unmet = |case: &&Case| case.line != ASKED && !matches!(case.verdict, Verdict::Passed);
    let unmet = report.cases.iter().filter(is_unmet).count() as u64;
    if unmet > 0 {
        paint::remark(&format!(
            "{name} expects other answers than this build gives ({}): the page shows what it says \
             now",
            count(unmet, "difference")
        ));
    }
    let mut sessions = Player::default().listen(&messages);
    let waits_most = sessions.iter().max_by_key(|(_, played)| played.waits.len());
    let Some(session) = waits_most.map(|(session, _)| session.clone()) else {
        return Err(format!("{name} opens no session"));
    };
    if sessions.len() > 1 {
        paint::remark(&format!(
            "{name} holds {} sessions: the page shows {:?}, which waits most often",
            sessions.len(),
            short_name(&session, 100)
        ));
    }
    let Played { root, waits, explanations } = sessions.remove(&session).unwrap_or_default();
    Ok(Report {
        version: env!("CARGO_PKG_VERSION"),
        made,
        session,
        root,
        source: Source::Recording,
        waits,
        explanations: explanations.all(),
    })
}

/// Puts a question before each WAIT: whose answer the page shows beside it.
fn ask_before_waits(script: &mut Script) {
    let steps = std::mem::take(&mut script.steps);
    for step in steps {
        let scope = match &step.action {
            Action::Wait { params, .. } => Some(params),
            Action::Send { method, params } | Action::Request { method, params, .. }
                if method == "reminder/wait" =>
            {
                Some(params)
            }
            _ => None,
        };
        if let Some(params) = scope {
            let mut scope = json!({ "session": params["session"] });
            if !params["agent"].is_null() {
                scope["agent"] = params["agent"].clone();
            }
            script.steps.push(Step {
                line: ASKED,
                action: Action::Request {
                    verb: "request",
                    method: "reminder/explain".to_owned(),
                    params: scope,
                },
                name: None,
                expectations: Expectations::default(),
            });
        }
        script.steps.push(step);
    }
}

/// What is known of a session so far.
#[derive(Debug, Default)]
struct Played {
    root: Option<String>,
    waits: Vec<Wait>,
    explanations: Explanations,
}

/// Listens to a conversation.
#[derive(Debug, Default)]
struct Player {
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

impl Player {
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
