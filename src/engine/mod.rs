//! The engine: events in, deliveries and ledger lines out.
//!
//! It is pure and deterministic. Time, randomness, and whatever is read from disks or computed by
//! clients are arguments; containers are ordered; the same input yields the same output, byte for
//! byte. It does no I/O, knows no wire and no clock, and holds no lock.
//!
//! [`Session`] is the whole interface, in four families:
//! - inputs: [`Session::open`], [`Session::apply`], [`Session::disconnect`];
//! - the WAIT: [`Session::stage`], [`Session::finish`], [`Session::abandon`],
//!   [`Session::commit`], [`Session::release`];
//! - insight: [`Session::explain`], [`Session::scope`] and the other getters;
//! - the ledger: [`Session::take_lines`], [`Session::confirm`] and [`Session::undo`] when the store
//!   has or has not kept them, [`Session::snapshot`] and [`Session::restore`].

mod apply;
mod calls;
mod configuration;
mod delivery;
mod diagnosis;
mod event;
mod explain;
mod facts;
mod files;
mod histories;
mod ledger;
mod opening;
mod path;
mod policy;
mod queue;
mod record;
mod refusal;
mod reminder;
mod render;
mod room;
mod rosters;
mod scope;
mod snapshot;
mod start;
mod tasks;
mod token;
mod turns;
mod unconfirmed;
mod value;
mod watched;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

pub use calls::{CallInput, Calls, FinishedCall};
pub use configuration::{Budget, Configuration, LeftOut};
pub use delivery::{Ask, Delivery, Held, Material, Problem, Seam, Staged, WaitRequest};
pub use diagnosis::{Checked, Diagnosis, DiagnosisCounts, Problem as DiagnosedProblem, Severity};
pub use event::{
    Applied, Audience, Charge, Definition, Event, HostReport, Limit, Opening, Profile, Retained,
    SettleOutcome, Switch, Switches, TurnOutcome,
};
pub use explain::Explanation;
pub use facts::{
    AttachedSkill, Fork, Goal, GoalReport, HookOutcome, Job, Mention, MentionKind, Mode,
    OfferedSkill, PLAN_MODE, PlanReport, PlanState, Pool, PoolName, Revision, ScopeFacts, Section,
    SessionFacts, Touch, Usage, Worktree,
};
pub use files::{Author, Change, DiffLimits, Edited, FileState, Fingerprint};
pub use ledger::{Commit, Delivered, History, Line, Loss, Spent};
pub use opening::{Opened, Rejected};
pub use path::ScopePath;
pub use policy::{Ordinals, Policy, Rearm, Span, Spoken, Told, Trigger, Unit, Withheld};
pub use queue::{Fifo, HookContext, PENDING_MAX, Pending, STAGED_MAX, TURN_EVENTS_MAX, TurnQueue};
pub use record::{Digest, Effect, Entry, Lane, Millis, Phase, Record, Serial, SilentEntry};
pub use refusal::{At, Refusal, RefusalKind};
pub use reminder::{
    Findings, Found, Moment, Part, Proposal, Reading, Registry, Reminder, Silence, Speech, View,
    Wanted, Workings, member,
};
pub use render::{Form, Size, content, estimate_tokens, neutralise, one_line, row, short_name};
pub use scope::{Member, Scope, Source, Turn};
pub use snapshot::Snapshot;
pub use start::Start;
pub use tasks::{Task, TaskStatus, Tasks, WriteMark};
pub use token::{Expiry, Fate, OpenWait, Tokens, Waiter};
pub use value::Value;
pub use watched::{WatchedFile, WatchedFiles};

use configuration::Tunings;
use delivery::Need;
use token::Fates;
use unconfirmed::{Taken, Unconfirmed};

/// What the engine is given instead of reaching for it.
#[derive(Clone, Copy, Debug)]
pub struct Kit {
    /// Makes reminders.
    pub registry: &'static dyn Registry,
    /// Makes fingerprints and digests.
    pub digest: Digest,
}

/// One conversation with its agents: everything the daemon believes about it.
#[derive(Debug)]
pub struct Session {
    kit: Kit,
    id: String,
    root: Option<String>,
    /// Whether it was ever opened: the profile counts at the first opening only.
    opened: bool,
    profile: Profile,
    trusted: bool,
    deny: Vec<String>,
    own: Vec<String>,
    host: HostReport,
    facts: SessionFacts,
    fifo: Fifo,
    /// What hooks have to add, in order.
    hook_contexts: Vec<HookContext>,
    /// Sessions that this one was forked from, whose records its history may hold.
    ancestors: Vec<String>,
    /// The planning episode that a conversation resumed from records was in.
    continued_episode: Option<String>,
    scopes: BTreeMap<ScopePath, Scope>,
    /// Records that a client handed in of agents that it has yet to spawn again.
    awaited: BTreeMap<ScopePath, Vec<Record>>,
    /// The roster that agents are given a clone of at their spawn.
    for_agents: Vec<Member>,
    /// What agents with a cap on their requests are given beside it.
    for_capped_agents: Vec<Member>,
    configuration: Configuration,
    /// What is configured and not used.
    left_out: Vec<LeftOut>,
    /// The configuration file that a client gave.
    configuration_file: Option<Value>,
    /// What the client switched over the wire.
    tunings: Tunings,
    /// Ids that are configured and that the client removed.
    removed: BTreeSet<String>,
    fates: Fates,
    /// Commits that the store has not kept yet, oldest first.
    unconfirmed: Vec<Unconfirmed>,
    /// Records of agents that were spawned again since, for commits that come twice: oldest first,
    /// `FORMER_MAX` at most.
    former: VecDeque<Record>,
    /// The number of the last queued item.
    serial: Serial,
    /// Values of clients that this build does not know, by what they are.
    skipped: BTreeMap<String, u64>,
    /// Lines that the store has not taken yet.
    lines: Vec<Line>,
}

/// The answer to a commit.
#[derive(Clone, Debug, PartialEq)]
pub struct Receipt {
    /// The whole record of what was told; `None` when nothing was.
    pub record: Option<Record>,
    /// Ids of what was told.
    pub committed: Vec<String>,
    /// Ids of what was offered and not told.
    pub held: Vec<String>,
    /// Whether an earlier commit had told it.
    pub already: bool,
}

impl Session {
    /// A session that nothing has happened to. [`Session::open`] comes next.
    pub fn new(kit: Kit, id: impl Into<String>) -> Self {
        let root = Scope::new(ScopePath::ROOT);
        Self {
            kit,
            id: id.into(),
            root: None,
            opened: false,
            profile: Profile::default(),
            trusted: false,
            deny: Vec::new(),
            own: Vec::new(),
            host: HostReport::default(),
            facts: SessionFacts::default(),
            fifo: Fifo::default(),
            hook_contexts: Vec::new(),
            ancestors: Vec::new(),
            continued_episode: None,
            scopes: BTreeMap::from([(ScopePath::ROOT, root)]),
            awaited: BTreeMap::new(),
            for_agents: Vec::new(),
            for_capped_agents: Vec::new(),
            configuration: Configuration::default(),
            left_out: Vec::new(),
            configuration_file: None,
            tunings: Tunings::new(),
            removed: BTreeSet::new(),
            fates: Fates::default(),
            unconfirmed: Vec::new(),
            former: VecDeque::new(),
            serial: 0,
            skipped: BTreeMap::new(),
            lines: Vec::new(),
        }
    }

    /// The session that these lines of a former process yield. What waited in queues is gone, as
    /// [`Event::is_durable`] says, and what was under way was interrupted.
    pub fn restore(
        kit: Kit,
        id: impl Into<String>,
        lines: impl IntoIterator<Item = Line>,
    ) -> Result<Self, Refusal> {
        let mut session = Self::replay(kit, id, lines)?;
        // A later restore must not take them for open again.
        if session.resume_cold()? {
            session.lines.push(Line::Resumed);
        }
        Ok(session)
    }

    /// The session that these lines yield, as if its process went on.
    pub fn replay(
        kit: Kit,
        id: impl Into<String>,
        lines: impl IntoIterator<Item = Line>,
    ) -> Result<Self, Refusal> {
        let mut session = Self::new(kit, id);
        for line in lines {
            match line {
                Line::Opened { at, serial, opening } => {
                    session.serial = serial;
                    session.open(at, opening)?;
                }
                Line::Reported { at, serial, scope, event } => {
                    session.serial = serial;
                    session.apply(at, &scope, event)?;
                }
                Line::Committed(commit) => drop(session.absorb(commit)?),
                Line::Resumed => drop(session.resume_cold()?),
                Line::Snapshot(snapshot) => session = snapshot.into_session(kit, session.id)?,
            }
            session.lines.clear();
        }
        Ok(session)
    }

    /// The lines that came since this was last called, for the store.
    pub fn take_lines(&mut self) -> Vec<Line> {
        std::mem::take(&mut self.lines)
    }

    /// The client's name of it.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Its root directory.
    pub fn root(&self) -> Option<&str> {
        self.root.as_deref()
    }

    /// Its profile.
    pub fn profile(&self) -> Profile {
        self.profile
    }

    /// Whether the workspace's own text may be used.
    pub fn is_trusted(&self) -> bool {
        self.trusted
    }

    /// Globs of files whose content is never shown, as `.gitignore` has them, in order.
    pub fn deny(&self) -> &[String] {
        &self.deny
    }

    /// Its bookkeeping directories, which are never watched.
    pub fn own(&self) -> &[String] {
        &self.own
    }

    /// What its host does.
    pub fn host(&self) -> &HostReport {
        &self.host
    }

    /// What is known of it.
    pub fn facts(&self) -> &SessionFacts {
        &self.facts
    }

    /// Its pending FIFO.
    pub fn fifo(&self) -> &Fifo {
        &self.fifo
    }

    /// Its scopes, the root first.
    pub fn scopes(&self) -> impl Iterator<Item = &Scope> {
        self.scopes.values()
    }

    /// Values of clients that this build does not know, by what they are, with their number.
    pub fn skipped(&self) -> &BTreeMap<String, u64> {
        &self.skipped
    }

    /// A scope, or a refusal that says how to get it.
    pub fn scope(&self, path: &ScopePath) -> Result<&Scope, Refusal> {
        self.scopes.get(path).ok_or_else(|| unknown(path))
    }

    fn scope_mut(&mut self, path: &ScopePath) -> Result<&mut Scope, Refusal> {
        self.scopes.get_mut(path).ok_or_else(|| unknown(path))
    }

    /// The number of the newest thing that happened, to name it by later.
    pub fn newest(&self) -> Serial {
        self.serial
    }

    /// What a scope knows of the files that changed in its watch since this was last called, for
    /// those who compare them with the disk.
    pub fn take_watch_changes(&mut self, path: &ScopePath) -> Vec<(String, Option<FileState>)> {
        let scope = self.scopes.get_mut(path);
        scope.map(|scope| scope.facts.watched.take_changes()).unwrap_or_default()
    }

    fn next_serial(&mut self) -> Serial {
        self.serial += 1;
        self.serial
    }

    /// A client is about to call a model: captures everything that would be told now. Nothing is
    /// consumed; an open WAIT of the scope is superseded and what it offered is offered again.
    pub fn stage(
        &mut self,
        at: Millis,
        request: &WaitRequest,
        material: Material,
    ) -> Result<Staged, Refusal> {
        let path = request.scope.clone();
        let scope = self.scope(&path)?;
        scope.running()?;
        scope.open_turn(request.turn.as_deref())?;
        if let Some(call) = scope.calls.open().next() {
            return Err(Refusal::new(
                RefusalKind::NotReady,
                format!(
                    "{path} has {} open tool calls, {call:?} is one: send tool/end for each, then \
                     wait",
                    scope.calls.open().len()
                ),
            ));
        }
        if let Some(records) = &request.history {
            self.apply(at, &path, Event::HistoryReported { records: records.clone() })?;
        }
        if self.awaits_receipt(self.scope(&path)?) {
            return Ok(Staged::Ready(Box::new(self.offer_nothing(&path, request, material, at)?)));
        }
        self.expire(&path, Expiry::Superseded, |_| true);
        let scope = self.scope(&path)?;
        let moment = self.moment(scope, request.seam, at);
        let (chosen, needs) = self.choose(scope, moment, &request.prepared);
        let prepared = self.capture(request, material, chosen, needs)?;
        match prepared.staged() {
            None => Ok(Staged::Ready(Box::new(self.offer(&path, prepared, at)))),
            Some(staged) => {
                self.scope_mut(&path)?.tokens.preparing = Some(prepared);
                Ok(staged)
            }
        }
    }

    /// What explaining the scope needs to have looked at first, beside what is prepared.
    pub fn wanted(
        &self,
        at: Millis,
        path: &ScopePath,
        prepared: &Findings,
    ) -> Result<Vec<Wanted>, Refusal> {
        let scope = self.scope(path)?;
        let (_, needs) = self.choose(scope, self.moment(scope, Seam::Unsaid, at), prepared);
        Ok(needs.into_iter().flat_map(Need::into_wanted).collect())
    }

    /// Completes a WAIT with what the generators answered and what stands in files; those without
    /// an answer are left out.
    pub fn finish(
        &mut self,
        at: Millis,
        path: &ScopePath,
        wait: Serial,
        answers: &BTreeMap<String, String>,
        findings: &Findings,
    ) -> Result<Delivery, Refusal> {
        let scope = self.scope_mut(path)?;
        let Some(prepared) = scope.tokens.preparing.take_if(|prepared| prepared.wait == wait)
        else {
            let overtaken = scope.tokens.overtaken.iter().find(|(other, _)| *other == wait);
            let expiry = overtaken.map_or(Expiry::Superseded, |(_, expiry)| *expiry);
            return Err(expiry.refusal("this WAIT was not answered in time"));
        };
        self.fill(path, prepared, answers, findings, at)
    }

    /// A WAIT that is being prepared was cancelled: it leaves no token.
    pub fn abandon(&mut self, path: &ScopePath, wait: Serial) {
        if let Some(scope) = self.scopes.get_mut(path) {
            scope.tokens.preparing.take_if(|prepared| prepared.wait == wait);
        }
    }

    /// The payload that will be sent contains the message: what it offered, or the chosen entries
    /// of it, are told. Answering twice tells once.
    pub fn commit(
        &mut self,
        at: Millis,
        token: &str,
        chosen: Option<&[String]>,
        placement: Option<String>,
    ) -> Result<Receipt, Refusal> {
        let Some((path, open)) = self.open_wait(token) else {
            return self.commit_again(token);
        };
        let indices = open.choose(chosen)?;
        let path = path.clone();
        let since = self.acknowledged_since(&path, at)?;
        let record = open.record_of(&self.id, &path, &indices, &since).map(|mut record| {
            if indices.len() < open.offered.len() || open.digest.is_empty() || !since.is_empty() {
                return record.sealed(self.kit.digest);
            }
            record.digest.clone_from(&open.digest);
            record
        });
        let mut effects = open.effects_of(&indices);
        effects.extend(since.into_iter().flat_map(|(_, effects)| effects));
        let held = open.without(&indices);
        let commit =
            Commit { at, scope: path, token: token.to_owned(), record, held, placement, effects };
        self.lines.push(Line::Committed(commit.clone()));
        let unconfirmed = self.absorb(commit)?;
        self.unconfirmed.extend(unconfirmed);
        let mut receipt = self.commit_again(token)?;
        receipt.already = false;
        Ok(receipt)
    }

    /// That payload never came to be: everything stays eligible. `false` when the token was not
    /// open any more.
    pub fn release(&mut self, token: &str) -> Result<bool, Refusal> {
        let Some((path, _)) = self.open_wait(token) else {
            return match self.fates.get(token) {
                Some(_) => Ok(false),
                None => Err(unknown_token(token)),
            };
        };
        let path = path.clone();
        self.scope_mut(&path)?.tokens.open.retain(|open| open.token != token);
        self.fates.note(token.to_owned(), Fate::Released);
        Ok(true)
    }

    /// A connection is gone, and with it the WAITs that it waited for. Where receipts are late, an
    /// answer that went out outlives it: a host that runs a command for each event is never there
    /// when the proof comes.
    pub fn disconnect(&mut self, waiter: Waiter) {
        let paths: Vec<_> = self.scopes.keys().cloned().collect();
        let proves_late = self.host.late_receipts == Some(true);
        for path in paths {
            if proves_late {
                self.overtake(&path, Expiry::Disconnected, |by| by == waiter);
            } else {
                self.expire(&path, Expiry::Disconnected, |by| by == waiter);
            }
        }
    }

    /// The session is over: nothing that it offered can be committed any more.
    pub fn close(&mut self) {
        let paths: Vec<_> = self.scopes.keys().cloned().collect();
        for path in paths {
            self.expire(&path, Expiry::Closed, |_| true);
        }
    }

    /// How many WAITs of a scope are open.
    pub fn open_tokens(&self) -> usize {
        self.scopes.values().map(|scope| scope.tokens.open.len()).sum()
    }

    fn open_wait(&self, token: &str) -> Option<(&ScopePath, &OpenWait)> {
        self.scopes.iter().find_map(|(path, scope)| {
            scope.tokens.open.iter().find(|open| open.token == token).map(|open| (path, open))
        })
    }

    /// What a commit of a token that is no longer open answers.
    fn commit_again(&self, token: &str) -> Result<Receipt, Refusal> {
        match self.fates.get(token) {
            Some(Fate::Committed { scope, record, held }) => {
                let history = &self.scope(scope)?.history;
                let record = record.as_deref().and_then(|id| {
                    let held = history.record(id).map(|delivered| &delivered.record);
                    let mut former = self.former.iter();
                    held.or_else(|| former.find(|record| record.id == id)).cloned()
                });
                let committed = record
                    .iter()
                    .flat_map(|record| &record.entries)
                    .map(|entry| entry.id.clone())
                    .collect();
                Ok(Receipt { record, committed, held: held.clone(), already: true })
            }
            Some(Fate::Released) => Err(Refusal::new(
                RefusalKind::TokenReleased,
                format!(
                    "cannot commit token {token}: it was released, and nothing was told (send \
                     reminder/wait again)"
                ),
            )),
            Some(Fate::Expired(expiry)) => {
                Err(expiry.refusal(&format!("cannot commit token {token}")))
            }
            None => Err(unknown_token(token)),
        }
    }

    /// Applies a commit, live or from the ledger: the one place where something becomes told.
    /// Answers what undoing it takes, when the token was open.
    fn absorb(&mut self, commit: Commit) -> Result<Option<Unconfirmed>, Refusal> {
        let Commit { at, scope: path, token, record, held, placement, effects } = commit;
        // The scope alone is borrowed: effects reach into the rest of the session too.
        let scope = self.scopes.get_mut(&path).ok_or_else(|| unknown(&path))?;
        let open = scope.tokens.open.extract_if(.., |open| open.token == token).next();
        scope.requests += 1;
        let mut begins_prompt = false;
        if let Some(turn) = &mut scope.turn {
            begins_prompt = turn.committed == 0;
            scope.prompts += u64::from(begins_prompt);
            turn.committed += 1;
        }
        let native_compaction = std::mem::take(&mut scope.native_compaction);
        let mut taken = Vec::new();
        for effect in effects {
            match effect {
                Effect::Take(serial) => {
                    taken.extend(scope.queue.take(serial));
                    taken.extend(scope.facts.take(serial));
                    taken.extend(self.fifo.take(serial).map(Taken::Pending));
                    let context = self.hook_contexts.iter().position(|it| it.serial == serial);
                    let context = context.map(|place| self.hook_contexts.remove(place));
                    taken.extend(context.map(Taken::HookContext));
                }
                Effect::TakeDropped => {
                    taken.push(Taken::Dropped(std::mem::take(&mut scope.facts.dropped)));
                }
                Effect::TakeReads(until) => {
                    let reads = &mut scope.facts.reads;
                    let (later, looked_at) =
                        std::mem::take(reads).into_iter().partition(|(_, read)| *read > until);
                    *reads = later;
                    taken.push(Taken::Reads(looked_at));
                }
                Effect::ForgetAnswer(generator) => {
                    let answer = scope.queue.forget_answer(&generator);
                    taken.extend(answer.map(|body| Taken::Answer(generator, body)));
                }
                Effect::TellDiagnostics { states, failed } => {
                    let checked = &mut scope.facts.checked;
                    let before =
                        states.keys().map(|path| (path.clone(), checked.states.get(path).copied()));
                    let before = before.collect();
                    let failed: Vec<_> =
                        failed.into_iter().filter(|one| !checked.failed.contains(one)).collect();
                    checked.states.extend(states);
                    checked.failed.extend(failed.iter().cloned());
                    taken.push(Taken::Diagnostics { before, failed });
                }
                Effect::KnowFile { path, state, at } => {
                    if let Some(record) = &record {
                        scope.facts.watched.tell(&path, state, at, &record.id);
                    }
                }
                Effect::EndOverride(serial) => {
                    let ended = self.facts.mode_override.take_if(|(set, _)| *set == serial);
                    taken.extend(ended.map(Taken::Override));
                }
            }
        }
        let told = record.as_ref().map(|record| record.id.clone());
        if let Some(record) = record {
            scope.history.add(Delivered { record, at, placement, lost: None });
        }
        let unconfirmed = open.map(|open| Unconfirmed {
            scope: path.clone(),
            open,
            told: told.clone(),
            taken,
            begins_prompt,
            native_compaction,
            expired: None,
            left_behind: false,
        });
        self.fates.note(token, Fate::Committed { scope: path, record: told, held });
        Ok(unconfirmed)
    }

    /// Expires the open WAITs of a scope, and the one being prepared, of these waiters.
    fn expire(&mut self, path: &ScopePath, expiry: Expiry, whose: impl Fn(Waiter) -> bool) {
        self.overtake(path, expiry, &whose);
        let Some(scope) = self.scopes.get_mut(path) else { return };
        for open in scope.tokens.open.extract_if(.., |open| whose(open.waiter)) {
            self.fates.note(open.token, Fate::Expired(expiry));
        }
        // What would have expired is not opened again either, should its commit come to nothing.
        for unconfirmed in self.unconfirmed.iter_mut().filter(|it| it.scope == *path) {
            if whose(unconfirmed.open.waiter) {
                unconfirmed.expired.get_or_insert(expiry);
            }
        }
    }

    /// Expires the WAIT of a scope that is being prepared, if it is one of these waiters'.
    fn overtake(&mut self, path: &ScopePath, expiry: Expiry, whose: impl Fn(Waiter) -> bool) {
        let Some(scope) = self.scopes.get_mut(path) else { return };
        if let Some(prepared) = scope.tokens.preparing.take_if(|prepared| whose(prepared.waiter)) {
            scope.tokens.overtake(prepared.wait, expiry);
        }
    }

    /// Whether the scope's host proves arrival late and has yet to prove it.
    fn awaits_receipt(&self, scope: &Scope) -> bool {
        self.host.late_receipts == Some(true)
            && scope.tokens.open.iter().any(|open| !open.offered.is_empty())
    }

    /// Answers a WAIT with nothing new while a receipt is awaited. Its commit still says that a
    /// request went out.
    fn offer_nothing(
        &mut self,
        path: &ScopePath,
        request: &WaitRequest,
        material: Material,
        at: Millis,
    ) -> Result<Delivery, Refusal> {
        let nothing = delivery::Chosen::default();
        let mut prepared = self.capture(request, material, nothing, Vec::new())?;
        // What rides in the prompt text is told with the message that is awaited.
        prepared.leave_acknowledged();
        let mut delivery = self.offer(path, prepared, at);
        let scope = self.scopes.get_mut(path).ok_or_else(|| unknown(path))?;
        let awaited = scope.tokens.open.iter().flat_map(|open| &open.offered);
        delivery.held = awaited
            .map(|offered| Held {
                entry_type: offered.entry.entry_type.clone(),
                key: offered.entry.key.clone(),
                reason: "receipt",
            })
            .collect();
        // The oldest empty WAIT gives way, so that a host that never commits stays bounded.
        if scope.tokens.open.len() > token::OPEN_MAX
            && let Some(oldest) = scope.tokens.open.iter().position(|open| open.offered.is_empty())
        {
            let oldest = scope.tokens.open.remove(oldest);
            self.fates.note(oldest.token, Fate::Expired(Expiry::Superseded));
        }
        Ok(delivery)
    }
}

impl OpenWait {
    /// The places of the chosen entries, in the order of the message; all when none are named.
    fn choose(&self, chosen: Option<&[String]>) -> Result<Vec<usize>, Refusal> {
        let Some(chosen) = chosen else { return Ok((0..self.offered.len()).collect()) };
        let mut indices = Vec::with_capacity(chosen.len());
        for id in chosen {
            let index = self.offered.iter().position(|offered| offered.entry.id == *id);
            indices.push(index.ok_or_else(|| {
                Refusal::invalid(format!(
                    "cannot commit entry {id:?}: token {} did not offer it; nothing was told (name \
                     ids of the WAIT's entries)",
                    self.token
                ))
            })?);
        }
        indices.sort_unstable();
        indices.dedup();
        Ok(indices)
    }

    /// What a commit of these consumes: what telling them consumes, what rides in the prompt text,
    /// what ends with any request, and, where nothing was left out, what was looked at.
    fn effects_of(&self, indices: &[usize]) -> Vec<Effect> {
        let told = indices.iter().flat_map(|index| &self.offered[*index].effects);
        let silent = self.silent.iter().flat_map(|(_, effects)| effects);
        let whole = self.whole && indices.len() == self.offered.len();
        let looked_at = self.looked_at.iter().filter(|_| whole);
        told.chain(silent).chain(&self.ends).chain(looked_at).cloned().collect()
    }

    /// The ids of what was offered and not chosen.
    fn without(&self, indices: &[usize]) -> Vec<String> {
        let others = self.offered.iter().enumerate().filter(|(index, _)| !indices.contains(index));
        others.map(|(_, offered)| offered.entry.id.clone()).collect()
    }
}

fn unknown(path: &ScopePath) -> Refusal {
    Refusal::new(
        RefusalKind::UnknownAgent,
        format!("the session has no agent {path}: send agent/spawn first, its parent before it"),
    )
}

fn unknown_token(token: &str) -> Refusal {
    let shown = short_name(token, 64);
    Refusal::new(
        RefusalKind::UnknownToken,
        format!("token {shown:?} is unknown: use the token of the newest reminder/wait"),
    )
}
