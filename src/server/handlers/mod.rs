//! What each method does: one file a subject, one row a method. A handler reads its params, applies
//! them under the session's lock, and is done; only what is slow is left to a future.

mod checks;
mod documents;
mod files;
mod roster;
mod session;
mod state;
mod surroundings;
mod wait;

use std::sync::Arc;
use std::time::Duration;

pub use files::tell_changes;

use reminderd_protocol::error::{ErrorKind, ErrorObject};
use reminderd_protocol::initialize::{
    ExperimentalCapabilities, InitializeResult, Limits, PROTOCOL_VERSION, ReminderdCapabilities,
    ServerCapabilities, ServerInfo, TextDocumentSync,
};
use reminderd_protocol::methods::Method;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::{RawValue, to_raw_value};

use super::convert::{self, Reported};
use super::daemon::Daemon;
use super::kept::Kept;
use super::session_files::Question;
use super::tape::Notes;
use super::{Answer, Connection, InitializeRequest, Outcome, transport};
use crate::engine::{
    Applied, Event, Millis, PENDING_MAX, Profile, STAGED_MAX, ScopePath, Session, TURN_EVENTS_MAX,
};
use crate::reminders;
use crate::store::When;

/// One message, on its way to its handler.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// The daemon that it came to.
    pub daemon: &'a Arc<Daemon>,
    /// The connection that it came over.
    pub connection: &'a Arc<Connection>,
    /// The row of its method.
    pub method: &'static Method,
    /// The text of its params, a JSON object.
    pub params: &'a str,
    /// When it came.
    pub at: Millis,
    /// What a recording is to know of it.
    pub notes: &'a Notes,
}

/// Answers `initialize`: what is there.
pub fn initialize(
    request: &InitializeRequest,
    limits: transport::Limits,
) -> Result<serde_json::Value, ErrorObject> {
    let version = &request.options["protocolVersion"];
    if !version.is_null() && *version != PROTOCOL_VERSION {
        return Err(ErrorObject::new(
            ErrorKind::InvalidParams,
            format!(
                "protocol version {version} is not spoken here: initialize again with \
                 {PROTOCOL_VERSION}"
            ),
        )
        .with("kind", "version")
        .with("supported", vec![PROTOCOL_VERSION]));
    }
    let count = |number: usize| number as u64;
    let limits = Limits {
        message_bytes: count(limits.message_bytes),
        others: [
            ("pendingEvents".to_owned(), count(PENDING_MAX)),
            ("turnEvents".to_owned(), count(TURN_EVENTS_MAX)),
            ("stagedEntries".to_owned(), count(STAGED_MAX)),
            ("pendingRequests".to_owned(), count(limits.pending_requests)),
        ]
        .into(),
    };
    let result = InitializeResult {
        server_info: ServerInfo {
            name: "reminderd".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        },
        capabilities: ServerCapabilities {
            text_document_sync: TextDocumentSync {
                open_close: true,
                change: 2,
                save: serde_json::json!({ "includeText": false }),
            },
            experimental: ExperimentalCapabilities {
                reminderd: ReminderdCapabilities {
                    protocol_version: PROTOCOL_VERSION,
                    kinds: reminders::kind_names().map(str::to_owned).collect(),
                    profiles: Profile::ALL.map(|profile| profile.name().to_owned()).into(),
                    limits,
                },
            },
        },
    };
    serde_json::to_value(result).map_err(|error| internal(&error))
}

/// Hands a message to its handler.
pub fn call(call: &Call<'_>) -> Outcome {
    match call.method.name {
        "agent/settle" => call.event(convert::agent_settle),
        "agent/spawn" => call.event(convert::agent_spawn),
        "date/set" => call.event(convert::date_set),
        "diagnostic/publish" => checks::publish(call),
        "edit/begin" => checks::begin(call),
        "edit/end" => checks::end(call),
        "edit/settle" => checks::settle(call),
        "fact/set" => call.event(convert::fact_set),
        "file/forget" => files::forget(call),
        "file/read" => files::read(call),
        "file/wrote" => files::wrote(call),
        "goal/charge" => call.event(convert::goal_charge),
        "goal/set" => call.event(convert::goal_set),
        "history/cleared" => call.event(convert::cleared),
        "history/compacted" => call.event(convert::compacted),
        "history/reported" => call.event(convert::history_reported),
        "history/rewound" => call.event(convert::rewound),
        "hook/context" => call.event(convert::hook_context),
        "hook/outcome" => call.event(convert::hook_outcome),
        "job/ended" => call.event(convert::job_ended),
        "mention/add" => call.event(convert::mention_add),
        "mode/set" => call.event(convert::mode_set),
        "patch/revised" => call.event(convert::patch_revised),
        "plan/set" => call.event(convert::plan_set),
        "pool/set" => call.event(convert::pool_set),
        "reminder/acknowledge" => call.event(convert::acknowledge),
        "reminder/commit" => wait::commit(call),
        "reminder/enqueue" => call.event(convert::enqueue),
        "reminder/explain" => roster::explain(call),
        "reminder/history" => roster::history(call),
        "reminder/observe" => call.event(convert::observe),
        "reminder/release" => wait::release(call),
        "reminder/stage" => call.event(convert::stage),
        "reminder/wait" => wait::wait(call),
        "reminder/withdraw" => call.event(convert::withdraw),
        "reminderd/clock" => session::clock(call),
        "reminderd/surroundings" => surroundings::given(call),
        "roster/configure" => call.event(convert::configure),
        "roster/list" => roster::list(call),
        "roster/register" => call.event(convert::register),
        "roster/remove" => roster::remove(call),
        "roster/reset" => call.event(convert::reset),
        "section/set" => call.event(convert::section_set),
        "session/close" => session::close(call),
        "session/fork" => session::fork(call),
        "session/list" => session::list(call),
        "session/open" => session::open(call),
        "session/state" => state::state(call),
        "skill/attach" => call.event(convert::skill_attach),
        "skill/offer" => call.event(convert::skill_offer),
        "task/list" => state::tasks(call),
        "task/put" => call.event(convert::task_put),
        "task/remove" => call.event(convert::task_remove),
        "task/replace" => call.event(convert::task_replace),
        "textDocument/didChange" => documents::changed(call),
        "textDocument/didClose" => documents::closed(call),
        "textDocument/didOpen" => documents::opened(call),
        "textDocument/didSave" => documents::saved(call),
        "textDocument/publishDiagnostics" => checks::forward(call),
        "tool/begin" => call.event(convert::tool_begin),
        "tool/end" => call.event(convert::tool_end),
        "turn/begin" => call.event(convert::turn_begin),
        "turn/end" => call.flushed_event(convert::turn_end),
        "usage/report" => call.event(convert::usage_report),
        "verifier/started" => call.event(convert::verifier_started),
        "workspace/didChangeWatchedFiles" => documents::watched(call),
        name => Outcome::Now(Err(ErrorObject::new(
            ErrorKind::NotYet,
            format!(
                "{name} belongs to the protocol, but this build has no handler for it: a newer \
                 one will"
            ),
        ))),
    }
}

impl Call<'_> {
    /// Reads the params.
    fn params<P: DeserializeOwned>(&self) -> Result<P, ErrorObject> {
        serde_json::from_str(self.params).map_err(|_| self.misfit::<P>())
    }

    /// Why the params do not fit, by the member that does not: read once more, the slow way.
    fn misfit<P: DeserializeOwned>(&self) -> ErrorObject {
        let mut reader = serde_json::Deserializer::from_str(self.params);
        let error = serde_path_to_error::deserialize::<_, P>(&mut reader).err();
        let what = error.map_or_else(String::new, |error| {
            let path = error.path().to_string();
            let inner = error.into_inner();
            if path == "." { inner.to_string() } else { format!("`{path}`: {inner}") }
        });
        ErrorObject::new(
            ErrorKind::InvalidParams,
            format!("{}: {what} (see its params in the protocol's schema)", self.method.name),
        )
    }

    /// Reads an event, applies it, and answers `null`.
    fn event<P: DeserializeOwned>(
        &self,
        convert: impl FnOnce(P) -> Result<Reported, ErrorObject>,
    ) -> Outcome {
        Outcome::Now(self.apply(convert).map(|_| RawValue::NULL.to_owned()))
    }

    /// Reads an event, applies it, and answers `null` once it is durable.
    fn flushed_event<P: DeserializeOwned>(
        &self,
        convert: impl FnOnce(P) -> Result<Reported, ErrorObject>,
    ) -> Outcome {
        if let Err(error) = self.apply(convert) {
            return Outcome::Now(Err(error));
        }
        if !self.daemon.store().outlives_process() {
            return Outcome::Now(Ok(RawValue::NULL.to_owned()));
        }
        let ticket = self.daemon.store().flush();
        // What cannot be written stays in memory, as `reminderd/problem` says.
        Outcome::Applied(Box::pin(async move {
            drop(ticket.wait().await);
            Ok(RawValue::NULL.to_owned())
        }))
    }

    /// Reads an event and applies it. What a value that this build does not know was left out of
    /// is counted (`SPEC.md`, "Tolerance").
    fn apply<P: DeserializeOwned>(
        &self,
        convert: impl FnOnce(P) -> Result<Reported, ErrorObject>,
    ) -> Result<Applied, ErrorObject> {
        let Reported { session, scope, event, skipped } = convert(self.params()?)?;
        let slot = self.daemon.slot(&session, self.at)?;
        let mut session = slot.live()?;
        session.catch_up(When::Behind);
        let ends_turn = event.as_ref().is_some_and(Event::ends_turn);
        let is_of_an_agent = event.as_ref().is_some_and(Event::begins_or_ends_agent);
        let applied = match event {
            Some(event) => session.apply(self.at, &scope, event),
            // What was left out was sent to a scope all the same.
            None => session.scope(&scope).map(|_| Applied { changed: false }),
        };
        let applied = applied.map_err(|refusal| convert::error(&refusal))?;
        if is_of_an_agent {
            slot.files().forget_scope(scope.clone()).map_err(|refusal| convert::error(&refusal))?;
        }
        if ends_turn {
            self.daemon.checks().end_turn(&session, &scope);
        }
        count_skipped(&mut session, self.at, skipped)?;
        self.keep(&mut session);
        Ok(applied)
    }
}

impl<'a> Call<'a> {
    /// What stands in files, asked for a scope.
    fn question(&self, scope: &'a ScopePath, deadline: Duration) -> Question<'a> {
        Question { scope, editors: self.daemon.editors(), notes: self.notes, deadline }
    }
}

impl Call<'_> {
    /// Hands what happened to the store. Where the store fails, it stays in memory and the client is
    /// told so, once.
    fn keep(&self, session: &mut Kept) {
        session.keep();
        if let Some(trouble) = session.news_of_trouble() {
            self.connection.peer().problem(self.method.name, &convert::store_error(&trouble));
        }
    }
}

/// Counts values that this build does not know, for `session/state`.
fn count_skipped(
    session: &mut Session,
    at: Millis,
    skipped: impl IntoIterator<Item = &'static str>,
) -> Result<(), ErrorObject> {
    for what in skipped {
        let event = Event::Skipped { what: what.to_owned() };
        session.apply(at, &ScopePath::ROOT, event).map_err(|refusal| convert::error(&refusal))?;
    }
    Ok(())
}

/// A result as the text of its JSON.
fn answer(result: &impl Serialize) -> Answer {
    to_raw_value(result).map_err(|error| internal(&error))
}

fn internal(error: &impl std::fmt::Display) -> ErrorObject {
    ErrorObject::new(ErrorKind::Internal, format!("the answer could not be written: {error}"))
}
