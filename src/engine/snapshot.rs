//! A snapshot: what a session's lines come to, so that a replay stays short. It holds what outlives
//! the process and nothing else: a replay of the lines and a replay that begins at a snapshot of
//! them yield the same session.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::configuration::{Configuration, LeftOut, Tunings};
use super::event::{Definition, HostReport, Profile};
use super::facts::{ScopeFacts, SessionFacts};
use super::ledger::{KeptHistory, Line};
use super::path::ScopePath;
use super::queue::{Fifo, Pending};
use super::record::{Record, Serial};
use super::refusal::Refusal;
use super::reminder::Registry;
use super::scope::{Member, Scope, Source, Turn};
use super::token::{Fate, Fates};
use super::value::Value;
use super::{Kit, Session};

/// The durable state of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Snapshot {
    root: Option<String>,
    opened: bool,
    profile: Profile,
    trusted: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    deny: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    own: Vec<String>,
    host: HostReport,
    facts: SessionFacts,
    /// What reminders put into the FIFO. What clients enqueued does not outlive the process.
    fifo: Vec<Pending>,
    ancestors: Vec<String>,
    continued_episode: Option<String>,
    scopes: Vec<KeptScope>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    awaited: BTreeMap<ScopePath, Vec<Record>>,
    for_agents: Vec<KeptMember>,
    for_capped_agents: Vec<KeptMember>,
    #[serde(default, skip_serializing_if = "Configuration::is_empty")]
    configuration: Configuration,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    left_out: Vec<LeftOut>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    configuration_file: Option<Value>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    tunings: Tunings,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    removed: BTreeSet<String>,
    /// Committed tokens: a second commit answers the same after a restart too.
    committed: BTreeMap<String, Fate>,
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    left_behind: VecDeque<Record>,
    serial: Serial,
}

/// A scope without what waits in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct KeptScope {
    path: ScopePath,
    settled: bool,
    max_requests: Option<u64>,
    role: Option<String>,
    roster: Vec<KeptMember>,
    turn: Option<Turn>,
    used_turns: BTreeSet<String>,
    turns_ended: u64,
    requests: u64,
    prompts: u64,
    history: KeptHistory,
    facts: ScopeFacts,
    native_compaction: bool,
}

/// A member of a roster as data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct KeptMember {
    definition: Definition,
    enabled: bool,
    source: Source,
    since: Serial,
}

impl Session {
    /// The session's durable state, as a line that stands for all lines before it.
    pub fn snapshot(&self) -> Line {
        let pushed = self.fifo.iter().filter(|item| item.tells.is_some());
        let committed = self.fates.committed();
        Line::Snapshot(Box::new(Snapshot {
            root: self.root.clone(),
            opened: self.opened,
            profile: self.profile,
            trusted: self.trusted,
            deny: self.deny.clone(),
            own: self.own.clone(),
            host: self.host.clone(),
            facts: self.facts.clone(),
            fifo: pushed.cloned().collect(),
            ancestors: self.ancestors.clone(),
            continued_episode: self.continued_episode.clone(),
            scopes: self.scopes.values().map(KeptScope::of).collect(),
            awaited: self.awaited.clone(),
            for_agents: self.for_agents.iter().map(KeptMember::of).collect(),
            for_capped_agents: self.for_capped_agents.iter().map(KeptMember::of).collect(),
            configuration: self.configuration.clone(),
            left_out: self.left_out.clone(),
            configuration_file: self.configuration_file.clone(),
            tunings: self.tunings.clone(),
            removed: self.removed.clone(),
            committed: committed.map(|(token, fate)| (token.clone(), fate.clone())).collect(),
            left_behind: self.former.clone(),
            serial: self.serial,
        }))
    }
}

impl Snapshot {
    /// The session that it was made of. What waited in queues is gone.
    pub(super) fn into_session(self, kit: Kit, id: String) -> Result<Session, Refusal> {
        let mut session = Session::new(kit, id);
        let mut fifo = Fifo::default();
        for item in self.fifo {
            fifo.push(item)?;
        }
        let mut fates = Fates::default();
        for (token, fate) in self.committed {
            fates.note(token, fate);
        }
        for kept in self.scopes {
            session.scopes.insert(kept.path.clone(), kept.into_scope(kit.registry)?);
        }
        session.root = self.root;
        session.opened = self.opened;
        session.profile = self.profile;
        session.trusted = self.trusted;
        session.deny = self.deny;
        session.own = self.own;
        session.host = self.host;
        session.facts = self.facts;
        session.fifo = fifo;
        session.ancestors = self.ancestors;
        session.continued_episode = self.continued_episode;
        session.awaited = self.awaited;
        session.for_agents = into_roster(self.for_agents, kit.registry)?;
        session.for_capped_agents = into_roster(self.for_capped_agents, kit.registry)?;
        session.configuration = self.configuration;
        session.left_out = self.left_out;
        session.configuration_file = self.configuration_file;
        session.tunings = self.tunings;
        session.removed = self.removed;
        session.fates = fates;
        session.former = self.left_behind;
        session.serial = self.serial;
        Ok(session)
    }
}

impl KeptScope {
    fn of(scope: &Scope) -> Self {
        let Scope {
            path,
            settled,
            max_requests,
            role,
            roster,
            turn,
            used_turns,
            turns_ended,
            requests,
            prompts,
            history,
            queue: _,
            tokens: _,
            calls: _,
            facts,
            native_compaction,
        } = scope;
        Self {
            path: path.clone(),
            settled: *settled,
            max_requests: *max_requests,
            role: role.clone(),
            roster: roster.iter().map(KeptMember::of).collect(),
            turn: turn.clone(),
            used_turns: used_turns.clone(),
            turns_ended: *turns_ended,
            requests: *requests,
            prompts: *prompts,
            history: history.kept(),
            facts: facts.clone(),
            native_compaction: *native_compaction,
        }
    }

    fn into_scope(self, registry: &dyn Registry) -> Result<Scope, Refusal> {
        Ok(Scope {
            settled: self.settled,
            max_requests: self.max_requests,
            role: self.role,
            roster: into_roster(self.roster, registry)?,
            turn: self.turn,
            used_turns: self.used_turns,
            turns_ended: self.turns_ended,
            requests: self.requests,
            prompts: self.prompts,
            history: self.history.into(),
            facts: self.facts,
            native_compaction: self.native_compaction,
            ..Scope::new(self.path)
        })
    }
}

impl KeptMember {
    fn of(member: &Member) -> Self {
        let Member { definition, enabled, source, since, reminder: _ } = member;
        let definition = Definition::clone(definition);
        Self { definition, enabled: *enabled, source: *source, since: *since }
    }
}

fn into_roster(kept: Vec<KeptMember>, registry: &dyn Registry) -> Result<Vec<Member>, Refusal> {
    let members = kept.into_iter().map(|kept| {
        let KeptMember { definition, enabled, source, since } = kept;
        let reminder = registry.build(&definition)?;
        Ok(Member { definition: Arc::new(definition), enabled, source, since, reminder })
    });
    members.collect()
}
