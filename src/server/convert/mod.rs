//! Wire types to the engine's, and back: the only place that knows both (law 10 of the
//! architecture). One file a subject.

mod diagnostics;
mod history;
mod queues;
mod records;
mod rosters;
mod state;
mod turns;
mod wait;

use crate::engine::{Event, Refusal, RefusalKind, ScopePath, Value};
use crate::store::{Holder, StoreError};
use reminderd_protocol::error::{ErrorKind, ErrorObject};
use reminderd_protocol::scope::Scope as WireScope;

pub use diagnostics::{add_checks, changes, outcome, publish, report};
pub use history::{cleared, compacted, history_reported, history_row, rewound};
pub use queues::{acknowledge, enqueue, observe, stage, withdraw};
pub use records::{record, record_content, wire_record};
pub use rosters::{Parsed, configure, fork, opening, register, remove, reset, roster};
pub use state::{
    date_set, fact_set, file, goal_charge, goal_set, hook_context, hook_outcome, job_ended,
    mention_add, mode_set, patch_revised, plan_set, pool_set, section_set, skill_attach,
    skill_offer, spent, state, task_put, task_remove, task_replace, usage_report, verifier_started,
    watched_files, wire_task,
};
pub use turns::{agent_settle, agent_spawn, tool_begin, tool_end, turn_begin, turn_end};
pub use wait::{delivery, explanation, records_report, wait};

use queues::named;
use records::wire_phase;
use rosters::switches;

/// An event of a client, and which of its values this build does not know.
#[derive(Debug)]
pub struct Reported {
    /// The session's name.
    pub session: String,
    /// The scope within it.
    pub scope: ScopePath,
    /// What happened; nothing when only unknown values came.
    pub event: Option<Event>,
    /// What unknown values were, as `session/state` counts them.
    pub skipped: Vec<&'static str>,
}

type Result<T> = std::result::Result<T, ErrorObject>;

/// A refusal of the engine as an error on the wire.
pub fn error(refusal: &Refusal) -> ErrorObject {
    let kind = match refusal.kind {
        RefusalKind::InvalidParams => ErrorKind::InvalidParams,
        RefusalKind::UnknownAgent => ErrorKind::UnknownAgent,
        RefusalKind::NoTurn => ErrorKind::NoTurn,
        RefusalKind::NotReady => ErrorKind::NotReady,
        RefusalKind::UnknownToken => ErrorKind::UnknownToken,
        RefusalKind::TokenReleased => ErrorKind::TokenReleased,
        RefusalKind::TokenExpired => ErrorKind::TokenExpired,
        RefusalKind::LimitExceeded => ErrorKind::LimitExceeded,
        RefusalKind::BadRecord => ErrorKind::BadRecord,
    };
    ErrorObject::new(kind, refusal.message.clone())
}

/// What the store says as an error on the wire.
pub fn store_error(error: &StoreError) -> ErrorObject {
    match error {
        StoreError::Held(holder) => {
            let held = ErrorObject::new(
                ErrorKind::SessionHeld,
                format!("{error}: close it there, or end that daemon, then try again"),
            );
            match holder {
                Some(Holder { pid, since, host }) => held.with(
                    "holder",
                    serde_json::json!({ "pid": pid, "since": since, "host": host }),
                ),
                None => held,
            }
        }
        StoreError::Failed(why) | StoreError::Unusable(why) => {
            ErrorObject::new(ErrorKind::StoreFailed, format!("nothing was told: {why}"))
        }
    }
}

/// A stored session whose lines this build cannot replay.
pub fn unreadable(session: &str, refusal: &Refusal) -> ErrorObject {
    ErrorObject::new(
        ErrorKind::StoreFailed,
        format!(
            "what is stored of session {session:?} cannot be replayed: {} (session/close with \
             forget erases it)",
            refusal.message
        ),
    )
}

fn invalid(message: impl Into<String>) -> ErrorObject {
    ErrorObject::new(ErrorKind::InvalidParams, message)
}

/// The scope within its session.
pub fn path(scope: &WireScope) -> Result<ScopePath> {
    agent_path(scope.agent.as_deref())
}

fn agent_path(agent: Option<&str>) -> Result<ScopePath> {
    match agent {
        None | Some("") => Ok(ScopePath::ROOT),
        Some(agent) => ScopePath::agent(agent).map_err(|refusal| error(&refusal)),
    }
}

fn on_scope(scope: WireScope, event: Event) -> Result<Reported> {
    let path = path(&scope)?;
    Ok(Reported { session: scope.session, scope: path, event: Some(event), skipped: Vec::new() })
}

fn on_session(session: String, event: Event) -> Reported {
    Reported { session, scope: ScopePath::ROOT, event: Some(event), skipped: Vec::new() }
}

impl Reported {
    /// Notes a value that this build does not know.
    fn skipping(mut self, what: impl IntoIterator<Item = &'static str>) -> Self {
        self.skipped.extend(what);
        self
    }
}

/// Plain data of the wire as the engine's. Not by serde, whose way to find the variant is to try
/// one after the other, with an error for each that it is not.
pub fn value(json: serde_json::Value) -> Value {
    match json {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(bool) => Value::Bool(bool),
        serde_json::Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => Value::Integer(number),
            (None, Some(number)) => Value::Unsigned(number),
            (None, None) => number.as_f64().map_or(Value::Null, Value::Float),
        },
        serde_json::Value::String(text) => Value::Text(text),
        serde_json::Value::Array(items) => Value::List(items.into_iter().map(value).collect()),
        serde_json::Value::Object(members) => {
            Value::Map(members.into_iter().map(|(name, json)| (name, value(json))).collect())
        }
    }
}
