//! One conversation of a session: the root's or an agent's, with its own roster, queue, turn,
//! counters and history. Nothing crosses between scopes except what `reminders.md` §2 says.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::event::{Audience, Definition};
use super::facts::ScopeFacts;
use super::ledger::{History, Phase};
use super::policy::Ordinals;
use super::queue::TurnQueue;
use super::refusal::{Refusal, RefusalKind};
use super::reminder::Reminder;
use super::token::Tokens;

/// The longest path of an agent, in bytes.
pub const PATH_BYTES_MAX: usize = 1024;

/// The path of a scope: empty for the root, `/reviewer/linter` for an agent.
///
/// The root is no empty text: to compare two of those can cost hundreds of nanoseconds, since they
/// point nowhere and a vectorised `memcmp` may look there all the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct ScopePath(Option<Arc<str>>);

impl From<String> for ScopePath {
    fn from(path: String) -> Self {
        Self((!path.is_empty()).then(|| path.into()))
    }
}

impl From<ScopePath> for String {
    fn from(path: ScopePath) -> Self {
        path.as_str().to_owned()
    }
}

impl ScopePath {
    /// The root conversation.
    pub const ROOT: Self = Self(None);

    /// Reads an agent's path: `/`, then names joined by `/`, none of them empty.
    pub fn agent(path: &str) -> Result<Self, Refusal> {
        let names = path.strip_prefix('/');
        let valid = names.is_some_and(|names| names.split('/').all(|name| !name.is_empty()));
        if !valid || path.len() > PATH_BYTES_MAX {
            return Err(Refusal::new(
                RefusalKind::UnknownAgent,
                format!(
                    "{path:?} is no agent's path: write \"/name\" or \"/parent/name\", at most \
                     {PATH_BYTES_MAX} bytes"
                ),
            ));
        }
        Ok(Self(Some(path.into())))
    }

    /// The path as text; empty for the root.
    pub fn as_str(&self) -> &str {
        self.0.as_deref().unwrap_or_default()
    }

    /// Whether this is the root conversation.
    pub fn is_root(&self) -> bool {
        self.0.is_none()
    }

    /// The scope that spawned this one; `None` for the root.
    pub fn parent(&self) -> Option<Self> {
        let path = self.0.as_deref()?;
        let (parent, _) = path.rsplit_once('/')?;
        Some(parent.to_owned().into())
    }
}

impl fmt::Display for ScopePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_deref().unwrap_or("the root"))
    }
}

/// Where a roster's member came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The profile's defaults.
    Default,
    /// The daemon itself: kinds that speak of queues and lanes, listed by `explain` alone.
    Standing,
    /// A client, over the wire.
    Client,
}

impl Source {
    /// The name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Default | Self::Standing => "default",
            Self::Client => "client",
        }
    }
}

/// One member of a roster.
#[derive(Clone, Debug)]
pub struct Member {
    /// What it was made from.
    pub definition: Definition,
    /// Whether it may speak.
    pub enabled: bool,
    /// Where it came from.
    pub source: Source,
    /// The reminder itself.
    pub reminder: Arc<dyn Reminder>,
}

impl Member {
    /// Its id in the roster.
    pub fn id(&self) -> &str {
        &self.definition.id
    }

    /// Whether a switch by this name means it.
    pub fn answers_to(&self, name: &str) -> bool {
        self.definition.id == name || self.definition.kind == name
    }

    /// Whether it is for this scope.
    pub fn is_for(&self, scope: &ScopePath) -> bool {
        let Audience { root, agents } = self.definition.audience;
        if scope.is_root() { root } else { agents }
    }
}

/// The open turn of a scope.
#[derive(Clone, Debug)]
pub struct Turn {
    /// The client's id of it.
    pub id: String,
    /// WAITs of it that were committed.
    pub committed: u64,
}

/// One conversation.
#[derive(Debug, Default)]
pub struct Scope {
    /// Who it is.
    pub path: ScopePath,
    /// Whether the agent has ended.
    pub settled: bool,
    /// How many requests the agent may make.
    pub max_requests: Option<u64>,
    /// What the agent is for.
    pub role: Option<String>,
    /// Who may speak, in the order of registration.
    pub roster: Vec<Member>,
    /// The open turn.
    pub turn: Option<Turn>,
    /// Ids that turns of this scope have used.
    pub used_turns: BTreeSet<String>,
    /// Turns that ended.
    pub turns_ended: u64,
    /// WAITs that were committed.
    pub requests: u64,
    /// Turns whose first WAIT was committed.
    pub prompts: u64,
    /// What it was told.
    pub history: History,
    /// What its turn has to tell.
    pub queue: TurnQueue,
    /// The WAITs that are open or being prepared.
    pub tokens: Tokens,
    /// Tool calls that are open.
    pub calls: BTreeSet<String>,
    /// What is known of it.
    pub facts: ScopeFacts,
}

impl Scope {
    /// A scope that nothing has happened to.
    pub fn new(path: ScopePath) -> Self {
        Self { path, ..Self::default() }
    }

    /// Where the scope stands while its next WAIT is prepared.
    pub fn ordinals(&self) -> Ordinals {
        let prompt_begun = self.turn.as_ref().is_some_and(|turn| turn.committed > 0);
        Ordinals {
            turn: self.turns_ended + 1,
            request: self.requests + 1,
            prompt: self.prompts + u64::from(!prompt_begun),
        }
    }

    /// Where in the open turn its next WAIT stands.
    pub fn phase(&self) -> Phase {
        match &self.turn {
            Some(turn) if turn.committed > 0 => Phase::MidTurn,
            _ => Phase::TurnStart,
        }
    }

    /// The open turn, or a refusal: none is open, or it is not the one that the client means.
    pub fn open_turn(&self, meant: Option<&str>) -> Result<&Turn, Refusal> {
        let Some(turn) = &self.turn else {
            return Err(Refusal::new(
                RefusalKind::NoTurn,
                format!("no turn is open on {}: send turn/begin first", self.path),
            ));
        };
        match meant {
            Some(meant) if meant != turn.id => Err(Refusal::new(
                RefusalKind::NoTurn,
                format!(
                    "turn {meant:?} is not open on {}, {:?} is: end it with turn/end, or leave \
                     the turn out",
                    self.path, turn.id
                ),
            )),
            _ => Ok(turn),
        }
    }

    /// Refuses what only a running agent may do.
    pub fn running(&self) -> Result<(), Refusal> {
        if self.settled {
            return Err(Refusal::new(
                RefusalKind::UnknownAgent,
                format!("agent {} has settled: spawn it again with agent/spawn", self.path),
            ));
        }
        Ok(())
    }
}
