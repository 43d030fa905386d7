//! One conversation of a session: the root's or an agent's, with its own roster, queue, turn,
//! counters and history. Nothing crosses between scopes except what `reminders.md` §2 says.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::calls::Calls;
use super::event::{Audience, Definition};
use super::facts::ScopeFacts;
use super::ledger::History;
use super::path::ScopePath;
use super::policy::Ordinals;
use super::queue::TurnQueue;
use super::record::{Phase, Serial};
use super::refusal::{Refusal, RefusalKind};
use super::reminder::Reminder;
use super::token::Tokens;

/// Where a roster's member came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Source {
    /// The profile's defaults.
    Default,
    /// The daemon itself: kinds that speak of queues and lanes, listed by `explain` alone.
    Standing,
    /// The configuration.
    Config,
    /// A client, over the wire.
    Client,
}

impl Source {
    /// The name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Default | Self::Standing => "default",
            Self::Config => "config",
            Self::Client => "client",
        }
    }
}

/// One member of a roster.
#[derive(Clone, Debug)]
pub struct Member {
    /// What it was made from; members that nobody retuned share it.
    pub definition: Arc<Definition>,
    /// Whether it may speak.
    pub enabled: bool,
    /// Where it came from.
    pub source: Source,
    /// When it was registered or configured, among all that is told.
    pub since: Serial,
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
    /// Its tool calls: the open ones, and those of the open turn that are over.
    pub calls: Calls,
    /// What is known of it.
    pub facts: ScopeFacts,
    /// Whether the host compacted its history since the last commit: everything is due at once.
    pub native_compaction: bool,
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
