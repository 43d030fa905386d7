//! What a daemon that plays a recording has in place of its machine: nothing but what the recording
//! says (`reminderd/surroundings`).

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::Arc;

use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::glimpse::Glimpse;
use super::recorder::is_recorded;
use crate::engine::{FileState, Findings, Line, ScopePath, Wanted};
use crate::files::Looked;
use crate::server::lsp::InitializeRequest;
use crate::server::{Connection, Outcome, Peer};

/// The client that messages come from, as recordings name it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Client {
    /// The number of its connection.
    pub id: u64,
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Those of its `initializationOptions` that sessions depend on.
    #[serde(default, skip_serializing_if = "Json::is_null")]
    pub options: Json,
}

/// What was kept of a session before its recording began.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ledger {
    /// The session.
    pub session: String,
    /// Its ledger.
    pub lines: Vec<Line>,
}

/// What the recording that is played says of its machine.
#[derive(Debug, Default)]
pub struct Played(Mutex<World>);

#[derive(Debug, Default)]
struct World {
    /// What is seen of files, by the glimpses' subjects.
    seen: BTreeMap<String, Glimpse>,
    ledgers: BTreeMap<String, Vec<Line>>,
    clients: BTreeMap<u64, Arc<Connection>>,
    speaks: Option<Arc<Connection>>,
    /// Whether the next request is left unanswered.
    leaves_unanswered: bool,
}

impl Played {
    /// Takes over what was seen.
    pub fn see(&self, seen: Vec<Glimpse>) {
        self.0.lock().seen.extend(seen.into_iter().map(|glimpse| (glimpse.subject(), glimpse)));
    }

    fn seen(&self, subject: &Glimpse) -> Option<Glimpse> {
        self.0.lock().seen.get(&subject.subject()).cloned()
    }

    /// What stands at a path that is read or written; `None` where no snapshot is taken.
    pub fn standing(&self, path: &str) -> Option<FileState> {
        match self.seen(&Glimpse::Standing(path.to_owned(), None))? {
            Glimpse::Standing(_, state) => state,
            _ => None,
        }
    }

    /// What a WAIT of a scope finds.
    pub fn found(&self, scope: &ScopePath, wanted: Vec<Wanted>) -> Findings {
        let found = |wanted: Wanted| match self.seen(&Glimpse::Found(
            scope.clone(),
            wanted.clone(),
            None,
        ))? {
            Glimpse::Found(_, _, found) => Some((wanted, found?)),
            _ => None,
        };
        wanted.into_iter().filter_map(found).collect()
    }

    /// What a look at an edited file finds.
    pub fn edited(&self, path: &str) -> Option<Looked> {
        match self.seen(&Glimpse::Edited(path.to_owned(), None))? {
            Glimpse::Edited(_, sight) => sight.map(Looked::from),
            _ => None,
        }
    }

    /// Whether a file is gone.
    pub fn is_gone(&self, path: &str) -> bool {
        let seen = self.seen(&Glimpse::Gone(path.to_owned(), false));
        matches!(seen, Some(Glimpse::Gone(_, true)))
    }

    /// Takes over what was kept of a session.
    pub fn keep(&self, Ledger { session, lines }: Ledger) {
        self.0.lock().ledgers.insert(session, lines);
    }

    /// What was kept of a session, once.
    pub fn kept(&self, session: &str) -> Option<Vec<Line>> {
        self.0.lock().ledgers.remove(session)
    }

    /// Another client speaks from here on. Answers it when it is new.
    pub fn speaks(&self, client: Client, peer: &Peer) -> Option<Arc<Connection>> {
        let mut world = self.0.lock();
        let is_new = !world.clients.contains_key(&client.id);
        let connection = world.clients.entry(client.id).or_insert_with(|| {
            let request = InitializeRequest {
                client: client.name.map(|name| (name, None)),
                options: client.options,
                ..InitializeRequest::default()
            };
            Arc::new(Connection::played(client.id, peer.clone(), request))
        });
        let connection = Arc::clone(connection);
        world.speaks = Some(Arc::clone(&connection));
        is_new.then_some(connection)
    }

    /// The next request that takes its time is cancelled before it is answered.
    pub fn leave_unanswered(&self) {
        self.0.lock().leaves_unanswered = true;
    }

    /// What becomes of a call: it may have to wait until it is cancelled. Not one that no recording holds,
    /// as who makes a page of it asks.
    pub fn outcome(&self, method: &str, outcome: Outcome) -> Outcome {
        if !is_recorded(method) {
            return outcome;
        }
        let is_left = std::mem::take(&mut self.0.lock().leaves_unanswered);
        match outcome {
            Outcome::Later(future) if is_left => Outcome::Later(Box::pin(async move {
                let _undone_by_the_cancel = future;
                pending().await
            })),
            outcome => outcome,
        }
    }

    /// The client that speaks.
    pub fn client(&self) -> Option<Arc<Connection>> {
        self.0.lock().speaks.clone()
    }

    /// A client is gone.
    pub fn closed(&self, id: u64) -> Option<Arc<Connection>> {
        self.0.lock().clients.remove(&id)
    }
}

/// Reads a member of `reminderd/surroundings`.
pub fn read<T: DeserializeOwned>(what: &str, value: Json) -> Result<T, String> {
    T::deserialize(value).map_err(|error| {
        format!("`{what}` is not as this build records it ({error}): record it again")
    })
}
