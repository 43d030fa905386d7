//! How an event is told to the daemon. In the ordinary case it is one question and one answer, for
//! all of it. Where the daemon was started anew meanwhile, the session is opened, what it had told is
//! handed back to it, and what it refused is said again.

use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use reminderd_protocol::error::ErrorKind;
use reminderd_protocol::wait::Delivery;
use serde_json::{Value as Json, json};

use super::super::asking::{Answered, Client};
use super::super::serve::SharingArguments;
use super::happening::{Happening, Proof, Report};
use super::notes::{self, Given, Notes};
use super::receipt;

/// How long each answer may take. Longer than a WAIT may.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long the slow parts of a WAIT may take, in milliseconds.
const WAIT_MS: u64 = 1500;
/// How long a transcript that should be whole by now may be behind.
const TRANSCRIPT_LAG: Duration = Duration::from_secs(1);
/// How often it is looked at meanwhile.
const TRANSCRIPT_LOOK: Duration = Duration::from_millis(20);
/// How many records of a history are handed back to a daemon that was started anew.
const RECORDS_MAX: u64 = 10_000;

/// An event of a host.
pub struct Event<'a> {
    /// The host's name.
    pub host: &'static str,
    /// The daemon.
    pub sharing: &'a SharingArguments,
    /// What the event says.
    pub happening: &'a Happening,
}

/// What became of a text that the host was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// It is in the conversation, or the request for which nothing spoke was made.
    Arrived,
    /// It never will be.
    Lost,
}

/// A request to the daemon.
type Call = (&'static str, Json);

impl Event<'_> {
    /// Tells it. Returns what the host is to be given, if it asks for it and anything speaks.
    /// The connection that it makes is left to the caller.
    pub fn tell(
        &self,
        client: &mut Option<Client>,
        troubles: &mut Vec<String>,
    ) -> Result<Option<(Delivery, String)>, String> {
        let state = self.sharing.keeping.directory().ok_or(
            "what was given to the agent can be kept nowhere: name a directory with --state",
        )?;
        let says = !matches!(self.happening.proof, Proof::None) || self.happening.wait.is_some();
        let notes = says.then(|| Notes::open(&state, self.host, &self.happening.session));
        let mut notes =
            notes.transpose().map_err(|error| format!("the notes cannot be read: {error}"))?;
        let settled =
            notes.as_mut().map(|notes| self.settle(&mut notes.given, troubles)).unwrap_or_default();
        let mut calls: Vec<_> =
            settled.iter().map(|(given, fate)| settling(given, *fate)).collect();
        let session = calls.len();
        for report in &self.happening.reports {
            let call = match report {
                Report::Event(method, params) => {
                    Some((*method, self.happening.params(params.clone())))
                }
                Report::TurnOver { outcome } => {
                    let client = self.client(client)?;
                    let state =
                        client.ask::<Json>("session/state", &self.happening.params(json!({})));
                    let turn = state
                        .ok()
                        .and_then(|state| state["turn"]["id"].as_str().map(str::to_owned));
                    turn.map(|turn| {
                        let end = json!({ "turn": turn, "outcome": outcome });
                        ("turn/end", self.happening.params(end))
                    })
                }
                Report::TaskChanged { id, changes } => {
                    let client = self.client(client)?;
                    let listed = client.ask("task/list", &self.happening.params(json!({})));
                    changed_task(listed.unwrap_or_default(), id, changes)
                        .map(|task| ("task/put", self.happening.params(json!({ "task": task }))))
                }
            };
            calls.extend(call);
        }
        calls.extend(self.compacted(client, &settled)?);
        let waits = self.happening.wait.as_ref().map(|seam| {
            let wait = json!({ "seam": seam, "deadlineMs": WAIT_MS });
            ("reminder/wait", self.happening.params(wait))
        });
        calls.extend(waits);
        if calls.is_empty() {
            return Ok(None);
        }
        let client = self.client(client)?;
        let mut answers = client.ask_all(&calls)?;
        if answers.iter().any(|answer| is(answer, ErrorKind::UnknownSession))
            || (answers[..session].iter()).any(Result::is_err)
        {
            self.tell_again(client, &settled, &calls, &mut answers)?;
        }
        for ((method, _), answer) in calls.iter().zip(&answers).skip(session) {
            if let Err(error) = answer
                && !is_expected(method, answer)
            {
                troubles.push(format!("{method} was refused: {}", error.message));
            }
        }
        let mut given = None;
        if self.happening.wait.is_some() {
            given = self.waited(client, calls.last(), answers.pop())?;
        }
        let Some(mut notes) = notes else { return Ok(None) };
        if let Some(delivery) = &given {
            notes.given.push(self.note(delivery));
        }
        if given.is_some() || !settled.is_empty() || notes.given.is_empty() {
            notes.save().map_err(|error| format!("the notes cannot be written: {error}"))?;
        }
        if self.is_last() {
            notes::clear_old(&state);
        }
        Ok(given.and_then(|delivery| {
            let text = delivery.message.as_ref()?.content.clone();
            Some((delivery, text))
        }))
    }

    fn client<'a>(&self, client: &'a mut Option<Client>) -> Result<&'a mut Client, String> {
        if client.is_none() {
            *client = Some(Client::of_started(self.sharing, PATIENCE)?);
        }
        client.as_mut().ok_or_else(|| "the connection is over".to_owned())
    }

    /// Whether the session says nothing more.
    fn is_last(&self) -> bool {
        let closes = |report: &Report| matches!(report, Report::Event("session/close", _));
        self.happening.reports.iter().any(closes)
    }

    /// Takes out of the notes what is settled by this event: only the agent's that it is about, but
    /// everybody's when the session is over.
    fn settle(&self, notes: &mut Vec<Given>, troubles: &mut Vec<String>) -> Vec<(Given, Fate)> {
        let everybody = self.is_last();
        let concerns = |given: &Given| everybody || given.agent == self.happening.agent;
        let concerned: Vec<_> = notes.iter().filter(|given| concerns(given)).cloned().collect();
        if concerned.is_empty() {
            return Vec::new();
        }
        let fates = self.fates(&concerned, troubles);
        let settled: Vec<_> = concerned
            .into_iter()
            .zip(fates)
            .filter_map(|(given, fate)| Some((given, fate?)))
            .collect();
        notes.retain(|given| !settled.iter().any(|(settled, _)| settled.token == given.token));
        settled
    }

    /// What became of each; `None` for what may still come.
    fn fates(&self, given: &[Given], troubles: &mut Vec<String>) -> Vec<Option<Fate>> {
        let fate = |arrived: bool, settles: bool| {
            if arrived { Some(Fate::Arrived) } else { settles.then_some(Fate::Lost) }
        };
        match &self.happening.proof {
            Proof::None => vec![None; given.len()],
            // Requests of other kinds come between: what is not in this one may be in the next.
            Proof::Request { texts, .. } => {
                let arrived = |given: &Given| {
                    given.text.is_empty() || texts.iter().any(|text| text.contains(&given.text))
                };
                given.iter().map(|given| fate(arrived(given), false)).collect()
            }
            Proof::Transcript { path, went_out, settles } => {
                let arrived = transcribed(path, given, *went_out, *settles, troubles);
                arrived.into_iter().map(|arrived| fate(arrived, *settles)).collect()
            }
        }
    }

    /// Where a request shows that it carries the conversation, what of the told texts it does not hold
    /// any more: the host has compacted them away, and says so nowhere else.
    fn compacted(
        &self,
        client: &mut Option<Client>,
        settled: &[(Given, Fate)],
    ) -> Result<Option<Call>, String> {
        let Proof::Request { texts, is_whole: true } = &self.happening.proof else {
            return Ok(None);
        };
        let arrived: Vec<_> =
            settled.iter().map(|(given, _)| given).filter(|given| !given.text.is_empty()).collect();
        if arrived.is_empty() {
            return Ok(None);
        }
        let limits = json!({ "retained": true, "limit": RECORDS_MAX });
        let history =
            self.client(client)?.ask::<Json>("reminder/history", &self.happening.params(limits));
        let Ok(history) = history else { return Ok(None) };
        let is_there = |record: &&Json| {
            let bodies = record["entries"].as_array().into_iter().flatten();
            let mut bodies = bodies.filter_map(|entry| entry["body"].as_str());
            bodies.all(|body| {
                let body = (self.happening.kept)(body);
                texts.iter().any(|text| text.contains(&body))
            })
        };
        let records: Vec<_> = history["records"].as_array().into_iter().flatten().collect();
        let mut retained: Vec<_> = records.iter().copied().filter(is_there).collect();
        if retained.len() == records.len() {
            return Ok(None);
        }
        retained.extend(arrived.iter().map(|given| &given.record));
        let retained: Vec<_> = retained.into_iter().map(|record| &record["id"]).collect();
        let compacted = json!({ "retained": retained, "engine": "native" });
        Ok(Some(("history/compacted", self.happening.params(compacted))))
    }

    /// The daemon does not know the session, or what it had offered: opens it, hands back what the
    /// host took and the daemon lost, and says again what was refused.
    fn tell_again(
        &self,
        client: &mut Client,
        settled: &[(Given, Fate)],
        calls: &[Call],
        answers: &mut [Answered],
    ) -> Result<(), String> {
        // A session that nothing is known of ends without having begun.
        if self.is_last() && settled.is_empty() {
            return Ok(());
        }
        let open = |records: Option<&Vec<Json>>| {
            json!({
                "session": self.happening.session,
                "root": self.happening.root,
                "host": self.happening.host,
                "records": records,
            })
        };
        if answers.iter().any(|answer| is(answer, ErrorKind::UnknownSession)) {
            let _: Json = client.ask("session/open", &open(None))?;
        }
        let mut lost = Vec::new();
        for (index, (given, fate)) in settled.iter().enumerate() {
            if answers[index].is_err() {
                answers[index] = client.ask_all(&calls[index..=index])?.remove(0);
            }
            if answers[index].is_err() && *fate == Fate::Arrived && !given.record.is_null() {
                lost.push(given.record.clone());
            }
        }
        if !lost.is_empty() {
            let history = json!({
                "session": self.happening.session, "retained": true, "limit": RECORDS_MAX,
            });
            let history: Json = client.ask("reminder/history", &history)?;
            let mut records = history["records"].as_array().cloned().unwrap_or_default();
            records.reverse();
            records.extend(lost);
            let _: Json = client.ask("session/open", &open(Some(&records)))?;
            // What was offered behind that was offered without knowing of it.
            let wait = answers.len() - 1;
            if let (Some(_), Ok(offered)) = (&self.happening.wait, &answers[wait]) {
                let release = json!({ "token": offered["token"], "reason": "offered too early" });
                let _: Json = client.ask("reminder/release", &release)?;
                answers[wait] = client.ask_all(&calls[wait..])?.remove(0);
            }
        }
        for index in settled.len()..calls.len() {
            if is(&answers[index], ErrorKind::UnknownSession) {
                answers[index] = client.ask_all(&calls[index..=index])?.remove(0);
            }
        }
        Ok(())
    }

    /// What the WAIT was answered with; `None` where nothing can be told now. A turn whose beginning
    /// the daemon missed is begun.
    fn waited(
        &self,
        client: &mut Client,
        wait: Option<&Call>,
        answer: Option<Answered>,
    ) -> Result<Option<Delivery>, String> {
        let (Some(wait), Some(mut answer)) = (wait, answer) else { return Ok(None) };
        if is(&answer, ErrorKind::NoTurn) {
            let Some(turn) = &self.happening.turn else { return Ok(None) };
            for turn in [turn.clone(), format!("{turn}, gone on")] {
                let begin = self.happening.params(json!({ "turn": turn }));
                let both = [("turn/begin", begin), wait.clone()];
                answer = client.ask_all(&both)?.remove(1);
                if answer.is_ok() {
                    break;
                }
            }
        }
        let delivery = answer.map_err(|error| error.message)?;
        serde_json::from_value(delivery)
            .map(Some)
            .map_err(|error| format!("the delivery cannot be read: {error}"))
    }

    fn note(&self, delivery: &Delivery) -> Given {
        let path = match &self.happening.proof {
            Proof::Transcript { path, .. } => path.clone(),
            Proof::None | Proof::Request { .. } => PathBuf::new(),
        };
        Given {
            agent: self.happening.agent.clone(),
            token: delivery.token.clone(),
            text: delivery
                .message
                .as_ref()
                .map_or_else(String::new, |it| (self.happening.kept)(&it.content)),
            record: serde_json::to_value(&delivery.record).unwrap_or_default(),
            offset: receipt::length(&path),
        }
    }
}

/// What settles a text that was given.
fn settling(given: &Given, fate: Fate) -> Call {
    match fate {
        Fate::Arrived => ("reminder/commit", json!({ "token": given.token })),
        Fate::Lost => {
            let reason = "it did not come into the conversation";
            ("reminder/release", json!({ "token": given.token, "reason": reason }))
        }
    }
}

/// Which of the texts stand in a transcript, and of those where nothing spoke whether the request went
/// out. What should be there by now is waited for a little.
fn transcribed(
    path: &Path,
    given: &[Given],
    went_out: bool,
    settles: bool,
    troubles: &mut Vec<String>,
) -> Vec<bool> {
    let until = Instant::now() + TRANSCRIPT_LAG;
    let offset = given.iter().map(|given| given.offset).min().unwrap_or_default();
    let texts: Vec<_> = given.iter().map(|given| &*given.text).collect();
    loop {
        let mut found = receipt::found(path, offset, &texts).unwrap_or_else(|error| {
            troubles.push(format!("{} cannot be read: {error}", path.display()));
            vec![false; given.len()]
        });
        for (given, found) in given.iter().zip(&mut found) {
            if given.text.is_empty() {
                *found = went_out;
            }
        }
        let awaited =
            given.iter().zip(&found).any(|(given, found)| !found && !given.text.is_empty());
        if !(awaited && (settles || went_out)) || Instant::now() >= until {
            return found;
        }
        sleep(TRANSCRIPT_LOOK);
    }
}

/// A task as it is after a change; `None` for one that is not known.
fn changed_task(listed: Json, id: &str, changes: &serde_json::Map<String, Json>) -> Option<Json> {
    let tasks = match listed {
        Json::Array(tasks) => tasks,
        Json::Object(mut members) => match members.remove("tasks")? {
            Json::Array(tasks) => tasks,
            _ => return None,
        },
        _ => return None,
    };
    let mut task = tasks.into_iter().find(|task| task["id"] == id)?;
    let members = task.as_object_mut()?;
    for (name, value) in changes {
        match (members.get_mut(name), value) {
            // Those are added to what is there.
            (Some(Json::Array(there)), Json::Array(more)) => there.extend(more.iter().cloned()),
            _ => drop(members.insert(name.clone(), value.clone())),
        }
    }
    Some(task)
}

/// Whether a refusal is no trouble: the command was put into the settings while a turn was open, or a
/// session ends that was not heard of.
fn is_expected(method: &str, answer: &Answered) -> bool {
    match method {
        "reminder/wait" | "turn/end" => is(answer, ErrorKind::NoTurn),
        "session/close" => is(answer, ErrorKind::UnknownSession),
        _ => false,
    }
}

fn is(answer: &Answered, kind: ErrorKind) -> bool {
    answer.as_ref().is_err_and(|error| error.code == kind.code())
}
