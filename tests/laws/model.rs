//! The reference model: what the pages say, written as plainly as it can be. Lists and full scans,
//! nothing remembered that a scan can find again, nothing shared with the engine but the names of
//! refusals. Where the two differ, one of them is wrong.

use std::collections::BTreeMap;

use reminderd::engine::{Profile, RefusalKind};

use crate::operation::{
    Choice, Form, NAMES, Name, Operation, PATHS, Policy, Rule, Setting, Span, StageLane, TASKS,
    TOUCHED, Text, TextLane, Trigger, Unit, chosen, names,
};

/// What a refusal is about.
pub type Refused = RefusalKind;

/// What an entry's body must be.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    Exactly(String),
    /// These rows, in this order; wording around them is free.
    Tasks(Vec<Task>),
    /// All of these.
    Mentions(Vec<String>),
}

/// One entry of a message, and what telling it consumes.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::struct_field_names, reason = "`type` is a word of the language")]
pub struct Entry {
    pub entry_type: String,
    pub key: Option<String>,
    pub kind: &'static str,
    pub body: Body,
    /// What `onChange` compares.
    state: String,
    marks: Vec<String>,
    /// Numbers of queued items, each with its own text.
    pub items: Vec<(u64, String)>,
    forgets_answer: bool,
    /// Lane, then roster before queues, then place or arrival.
    order: (u8, bool, u64),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    pub id: String,
    pub status: u8,
    pub owner: u8,
    pub blocked_by: Vec<String>,
}

impl Task {
    pub fn is_open(&self) -> bool {
        self.status < 2
    }

    pub fn status_name(&self) -> &'static str {
        ["pending", "in_progress", "completed", "blocked"][usize::from(self.status)]
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Fate {
    Open,
    Committed {
        record: bool,
        committed: Vec<usize>,
        held: Vec<usize>,
    },
    Released,
    Expired,
    /// Of a former process.
    Unknown,
}

/// An answered WAIT.
#[derive(Clone, Debug)]
pub struct Token {
    pub scope: u8,
    pub fate: Fate,
    pub entries: Vec<Entry>,
    pub problems: Vec<String>,
    /// Whether a receipt was awaited, so that nothing new was offered.
    pub awaits: bool,
    pub turn_start: bool,
    silent: Vec<Entry>,
    acknowledgements: Vec<u64>,
    /// The override that ends with it.
    ends: Option<u64>,
    waiter: u64,
    at: Standing,
}

/// Ordinals of a scope, from 1.
#[derive(Clone, Copy, Debug)]
struct Standing {
    turn: u64,
    request: u64,
    prompt: u64,
}

impl Standing {
    fn of(self, unit: Unit) -> u64 {
        match unit {
            Unit::Turns => self.turn,
            Unit::Requests => self.request,
            Unit::Prompts => self.prompt,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Lost {
    Compacted,
    Removed,
}

/// One thing told to a scope.
#[derive(Clone, Debug)]
struct Telling {
    record: usize,
    reminder: String,
    key: Option<String>,
    state: String,
    marks: Vec<String>,
    at: Standing,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Pending,
    Modes,
    Planning,
    Recovery,
    Nudge { requests: bool, after: u64, cooldown: u64 },
    Warning,
    Limit,
    Registered(Form),
}

#[derive(Clone, Debug)]
struct Member {
    id: String,
    kind: Kind,
    enabled: bool,
    per_turn: Option<u64>,
    /// When it was registered.
    since: u64,
}

#[derive(Clone, Debug)]
struct Queued {
    number: u64,
    lane: u8,
    entry_type: String,
    key: Option<String>,
    body: String,
    is_event: bool,
}

#[derive(Clone, Debug)]
struct Acknowledged {
    number: u64,
    reminder: String,
    key: Option<String>,
    state: Option<String>,
}

#[derive(Clone, Debug)]
struct Pool {
    names: Option<u8>,
    /// The names that the client declared told, when, and how many records there were then.
    declared: Option<(u8, u64, usize)>,
}

#[derive(Clone, Debug)]
struct Preparing {
    number: u64,
    waiter: u64,
    entries: Vec<Entry>,
    problems: Vec<String>,
    asks: Vec<(String, bool)>,
    ends: Option<u64>,
}

#[derive(Clone, Debug, Default)]
struct Scope {
    settled: bool,
    cap: Option<u64>,
    roster: Vec<Member>,
    turn: Option<(String, u64)>,
    used_turns: Vec<String>,
    turns_ended: u64,
    requests: u64,
    prompts: u64,
    /// How history lost each record; none while it holds it.
    records: Vec<Option<Lost>>,
    tellings: Vec<Telling>,
    queue: Vec<Queued>,
    acknowledged: Vec<Acknowledged>,
    answered: Vec<(String, String)>,
    calls: Vec<u8>,
    /// Files that the turn touched, each with when it last did.
    touched: Vec<(u8, u64)>,
    /// Tests that the turn ran: when each ended, and whether well.
    tests: Vec<(u64, bool)>,
    pools: BTreeMap<u8, Pool>,
    facts: BTreeMap<u8, u8>,
    /// How often its work was interrupted.
    interrupted: u64,
    preparing: Option<Preparing>,
}

/// What a WAIT comes to at first.
#[derive(Clone, Debug, PartialEq)]
pub enum Waiting {
    /// The number of its token.
    Answered(usize),
    Asking {
        wait: u64,
        asks: Vec<(String, bool)>,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub struct Receipt {
    pub record: bool,
    pub committed: Vec<usize>,
    pub held: Vec<usize>,
    pub already: bool,
}

/// A session.
#[derive(Clone, Debug)]
pub struct Model {
    profile: Profile,
    late_receipts: bool,
    fifo: Vec<(u64, String)>,
    scopes: Vec<Option<Scope>>,
    for_agents: Vec<Member>,
    /// Every switch of the whole session, in order.
    switched: Vec<(Name, Setting)>,
    mode: Option<bool>,
    /// Set when, and whether to planning.
    mode_override: Option<(u64, bool)>,
    episodes: u64,
    plan_active: bool,
    tasks: Vec<Task>,
    last_write: Option<(u64, u64)>,
    pub tokens: Vec<Token>,
    number: u64,
}

impl Model {
    pub fn new(profile: Profile, late_receipts: bool) -> Self {
        let defaults = match profile {
            Profile::Staged => {
                vec![Kind::Pending, Kind::Modes, Kind::Planning, nudge(false), Kind::Recovery]
            }
            Profile::Nudge => vec![Kind::Pending, nudge(true)],
            Profile::Prompt => vec![],
        };
        let for_agents: Vec<_> =
            defaults.iter().filter(|kind| **kind == Kind::Recovery).copied().map(builtin).collect();
        let roster = defaults.into_iter().map(builtin).collect();
        let root = Scope { roster, ..Scope::default() };
        Self {
            profile,
            late_receipts,
            fifo: vec![],
            scopes: vec![Some(root), None, None, None],
            for_agents,
            switched: vec![],
            mode: None,
            mode_override: None,
            episodes: 0,
            plan_active: false,
            tasks: vec![],
            last_write: None,
            tokens: vec![],
            number: 0,
        }
    }

    fn scope(&self, scope: u8) -> Result<&Scope, Refused> {
        self.scopes[usize::from(scope)].as_ref().ok_or(Refused::UnknownAgent)
    }

    fn scope_mut(&mut self, scope: u8) -> Result<&mut Scope, Refused> {
        self.scopes[usize::from(scope)].as_mut().ok_or(Refused::UnknownAgent)
    }

    fn running(&mut self, scope: u8) -> Result<&mut Scope, Refused> {
        let scope = self.scope_mut(scope)?;
        if scope.settled { Err(Refused::UnknownAgent) } else { Ok(scope) }
    }

    fn in_turn(&mut self, scope: u8) -> Result<&mut Scope, Refused> {
        let scope = self.running(scope)?;
        if scope.turn.is_none() { Err(Refused::NoTurn) } else { Ok(scope) }
    }

    pub fn exists(&self, scope: u8) -> bool {
        self.scope(scope).is_ok()
    }

    pub fn is_settled(&self, scope: u8) -> bool {
        self.scope(scope).is_ok_and(|scope| scope.settled)
    }

    pub fn open_turn(&self, scope: u8) -> Option<&str> {
        Some(self.scope(scope).ok()?.turn.as_ref()?.0.as_str())
    }

    pub fn open_calls(&self, scope: u8) -> Vec<u8> {
        self.scope(scope).map(|scope| scope.calls.clone()).unwrap_or_default()
    }

    /// Reminders that may speak at every request: their spacing counts requests, or there is none.
    pub fn speaks_every_request(&self, scope: u8) -> Vec<String> {
        let by_requests = |span: Option<Span>| span.is_some_and(|span| span.unit == Unit::Requests);
        let Ok(scope) = self.scope(scope) else { return vec![] };
        let may = scope.roster.iter().filter(|member| {
            let policy = member.policy();
            let looks_back = matches!(
                member.kind,
                Kind::Registered(Form::Rule(rule)) if rule.touched || rule.failed
            );
            let told_anew =
                !looks_back && !matches!(member.kind, Kind::Nudge { .. } | Kind::Planning);
            let spaced = match policy.trigger {
                Trigger::Every(span) => by_requests(Some(span)),
                _ => false,
            };
            let generator = matches!(member.kind, Kind::Registered(Form::Generator { .. }));
            spaced
                || by_requests(policy.cooldown)
                || generator
                || policy.trigger == Trigger::Always && told_anew
                // Comes up with the number of the request, whatever was told before.
                || matches!(member.kind, Kind::Warning)
        });
        may.map(|member| member.id.clone()).collect()
    }

    fn effective_mode(&self) -> Option<bool> {
        self.mode_override.map(|(_, planning)| planning).or(self.mode)
    }

    /// Whether something rides in the prompt text, to be told by the next commit: a state other than
    /// the present one is then corrected by the WAIT behind it.
    pub fn is_acknowledged(&self, scope: u8) -> bool {
        self.scope(scope).is_ok_and(|scope| !scope.acknowledged.is_empty())
    }

    /// Whether a mode holds for the next request only.
    pub fn is_overridden(&self) -> bool {
        self.mode_override.is_some()
    }

    fn is_planning(&self) -> bool {
        self.plan_active || self.effective_mode() == Some(true)
    }

    /// The override that ends when the request goes out.
    fn ending_override(&self, scope: u8) -> Option<u64> {
        self.mode_override.filter(|_| scope == 0).map(|(number, _)| number)
    }

    fn expire(&mut self, scope: u8, whose: impl Fn(u64) -> bool) {
        for token in &mut self.tokens {
            if token.scope == scope && token.fate == Fate::Open && whose(token.waiter) {
                token.fate = Fate::Expired;
            }
        }
        self.overtake(scope, whose);
    }

    fn overtake(&mut self, scope: u8, whose: impl Fn(u64) -> bool) {
        if let Ok(scope) = self.scope_mut(scope) {
            scope.preparing = scope.preparing.take().filter(|preparing| !whose(preparing.waiter));
        }
    }

    /// Everything but WAITs and what becomes of them. `turn` is the id of the turn that it begins
    /// or ends, `body` the text that it queues.
    #[expect(clippy::too_many_lines, reason = "one arm an operation, each as the pages say it")]
    pub fn apply(
        &mut self,
        operation: &Operation,
        turn: &str,
        body: &str,
    ) -> Result<bool, Refused> {
        self.number += 1;
        let number = self.number;
        match operation {
            Operation::BeginTurn { scope, .. } => {
                let scope_number = *scope;
                let scope = self.running(scope_number)?;
                if scope.used_turns.iter().any(|used| used == turn) {
                    return Err(Refused::NoTurn);
                }
                if scope.turn.is_some() {
                    self.end_turn(scope_number)?;
                }
                let scope = self.scope_mut(scope_number)?;
                scope.used_turns.push(turn.to_owned());
                scope.turn = Some((turn.to_owned(), 0));
            }
            Operation::EndTurn { scope, .. } => {
                match &self.scope(*scope)?.turn {
                    Some((open, _)) if open == turn => {}
                    _ => return Err(Refused::NoTurn),
                }
                self.end_turn(*scope)?;
            }
            Operation::BeginCall { scope, call } => {
                let scope = self.running(*scope)?;
                if !scope.calls.contains(call) {
                    scope.calls.push(*call);
                }
            }
            Operation::EndCall { scope, call } => {
                self.scope_mut(*scope)?.calls.retain(|open| open != call);
            }
            Operation::Call { scope, ok } => {
                let scope = self.scope_mut(*scope)?;
                if scope.turn.is_some() {
                    scope.tests.push((number, *ok));
                }
            }
            Operation::Touch { scope, file } => {
                let scope = self.scope_mut(*scope)?;
                scope.touched.retain(|(known, _)| known != file);
                scope.touched.push((*file, number));
            }
            Operation::Spawn { agent, cap, switch } => self.spawn(*agent, *cap, *switch)?,
            Operation::Settle { agent, succeeded } => {
                self.running(*agent)?;
                self.end_turn(*agent)?;
                self.scope_mut(*agent)?.settled = true;
                if *succeeded {
                    self.complete_tasks_of(*agent);
                }
            }
            Operation::Enqueue => {
                if self.fifo.len() >= 256 {
                    return Err(Refused::LimitExceeded);
                }
                self.fifo.push((number, body.to_owned()));
            }
            Operation::Observe { scope, key } => {
                let scope = self.in_turn(*scope)?;
                let key = Some(format!("k{key}"));
                scope.queue.retain(|queued| !(queued.is_event && queued.key == key));
                scope.queue.push(Queued {
                    number,
                    lane: 6,
                    entry_type: "note".to_owned(),
                    key,
                    body: body.to_owned(),
                    is_event: true,
                });
            }
            Operation::Stage { scope, lane, entry_type, key } => {
                let scope = self.in_turn(*scope)?;
                let lane = match lane {
                    StageLane::Mention => 0,
                    StageLane::Skill => 1,
                    StageLane::Compaction => 3,
                    StageLane::Steering => 4,
                };
                let entry_type = format!("s{entry_type}");
                let key = key.map(|key| format!("k{key}"));
                scope.queue.retain(|queued| {
                    queued.is_event
                        || key.is_none()
                        || queued.key != key
                        || queued.entry_type != entry_type
                });
                let body = body.to_owned();
                scope.queue.push(Queued { number, lane, entry_type, key, body, is_event: false });
            }
            Operation::Withdraw { scope, key } => {
                let scope = self.running(*scope)?;
                let before = scope.queue.len();
                let key = Some(format!("k{key}"));
                scope.queue.retain(|queued| queued.key != key);
                return Ok(scope.queue.len() < before);
            }
            Operation::Acknowledge { scope, name, key, text } => {
                let state = text.map(|text| format!("text {text}"));
                self.acknowledge(*scope, name.text(), *key, state)?;
            }
            Operation::AcknowledgeStaged { scope, entry_type, key } => {
                self.acknowledge(*scope, format!("s{entry_type}"), *key, None)?;
            }
            Operation::Register { scope, id, form, root, agents } => {
                let member = Member {
                    id: format!("r{id}"),
                    kind: Kind::Registered(*form),
                    enabled: true,
                    per_turn: None,
                    since: number,
                };
                if *scope == 0 {
                    let roster = &mut self.scope_mut(0)?.roster;
                    enlist(roster, &member, *root);
                    enlist(&mut self.for_agents, &member, *agents);
                } else {
                    enlist(&mut self.scope_mut(*scope)?.roster, &member, true);
                }
            }
            Operation::Remove { scope, id } => return self.remove(*scope, &format!("r{id}")),
            Operation::Configure { scope, name, setting } => {
                self.configure(*scope, *name, *setting)?;
            }
            Operation::Reset { scope } => self.scope_mut(*scope)?.tellings.clear(),
            Operation::Compact { scope, retained } => {
                self.scope(*scope)?;
                if *retained == Choice::Unknown {
                    return Err(Refused::BadRecord);
                }
                self.expire(*scope, |_| true);
                let scope = self.scope_mut(*scope)?;
                let count = scope.records.len();
                for (index, lost) in scope.records.iter_mut().enumerate() {
                    match retained {
                        Choice::All => {}
                        Choice::Some(_) if chosen(*retained, count).contains(&index) => {
                            *lost = None;
                        }
                        _ => *lost = lost.or(Some(Lost::Compacted)),
                    }
                }
            }
            Operation::Rewind { scope, through } => {
                self.scope(*scope)?;
                self.expire(*scope, |_| true);
                let scope = self.scope_mut(*scope)?;
                let count = scope.records.len();
                let kept = through.map_or(0, |back| count - usize::from(back).min(count));
                for lost in scope.records.iter_mut().skip(kept) {
                    *lost = Some(Lost::Removed);
                }
            }
            Operation::Clear { scope } => {
                self.scope(*scope)?;
                self.expire(*scope, |_| true);
                self.scope_mut(*scope)?.records.fill(Some(Lost::Removed));
            }
            Operation::Report { scope, held } => self.report(*scope, *held)?,
            Operation::Mode { planning, overrides } => {
                let was_planning = self.is_planning();
                if *overrides {
                    self.mode_override = Some((number, *planning));
                } else {
                    self.mode = Some(*planning);
                }
                self.episodes += u64::from(self.is_planning() && !was_planning);
            }
            Operation::Plan { active } => {
                let was_planning = self.is_planning();
                self.plan_active = *active;
                self.episodes += u64::from(self.is_planning() && !was_planning);
            }
            Operation::TaskPut { scope, task, status, owner, blocked_by } => {
                self.scope(*scope)?;
                let task = Task {
                    id: TASKS[usize::from(*task)].to_owned(),
                    status: *status,
                    owner: owner.unwrap_or(*scope),
                    blocked_by: blocked_by
                        .map(|by| TASKS[usize::from(by)].to_owned())
                        .into_iter()
                        .collect(),
                };
                self.put_task(task, *scope);
                self.mark_write();
            }
            Operation::TaskRemove { scope, task } => {
                self.scope(*scope)?;
                self.mark_write();
                return Ok(self.remove_task(*scope, TASKS[usize::from(*task)]));
            }
            Operation::TasksReplace { scope, tasks } => {
                self.scope(*scope)?;
                self.tasks.retain(|task| task.owner != *scope);
                for (bit, id) in TASKS.into_iter().enumerate() {
                    if tasks >> bit & 1 == 1 {
                        let id = id.to_owned();
                        self.tasks.push(Task { id, status: 0, owner: *scope, blocked_by: vec![] });
                    }
                }
                self.mark_write();
            }
            Operation::Pool { scope, pool, names, baseline } => {
                let scope = self.scope_mut(*scope)?;
                let told = scope.records.len();
                match names {
                    None => {
                        if let Some(pool) = scope.pools.get_mut(pool) {
                            pool.names = None;
                        }
                    }
                    Some(mask) => {
                        let pool = scope
                            .pools
                            .entry(*pool)
                            .or_insert(Pool { names: None, declared: None });
                        pool.names = Some(*mask);
                        if *baseline {
                            pool.declared = Some((*mask, number, told));
                        }
                    }
                }
            }
            Operation::Fact { scope, fact, value } => {
                let scope = self.scope_mut(*scope)?;
                match value {
                    Some(value) => drop(scope.facts.insert(*fact, *value)),
                    None => drop(scope.facts.remove(fact)),
                }
            }
            Operation::Disconnect { waiter } => {
                for scope in 0..4 {
                    if self.late_receipts {
                        // What was answered outlives its connection.
                        self.overtake(scope, |by| by == *waiter);
                    } else {
                        self.expire(scope, |by| by == *waiter);
                    }
                }
            }
            // Counts at the first opening only.
            Operation::Reopen { .. } => {}
            Operation::Restart => self.restart(),
            _ => unreachable!("WAITs go their own way"),
        }
        Ok(true)
    }

    fn end_turn(&mut self, scope: u8) -> Result<(), Refused> {
        self.expire(scope, |_| true);
        let scope = self.scope_mut(scope)?;
        scope.turns_ended += u64::from(scope.turn.take().is_some());
        scope.queue.clear();
        scope.acknowledged.clear();
        scope.calls.clear();
        scope.touched.clear();
        scope.tests.clear();
        Ok(())
    }

    fn spawn(
        &mut self,
        agent: u8,
        cap: Option<u64>,
        switch: Option<(Name, Setting)>,
    ) -> Result<(), Refused> {
        let parent = u8::from(agent == 3);
        self.scope(parent)?;
        if self.exists(agent) && !self.is_settled(agent) {
            return Err(Refused::UnknownAgent);
        }
        let mut roster = self.for_agents.clone();
        if cap.unwrap_or(0) > 0 {
            for kind in [Kind::Warning, Kind::Limit] {
                let mut member = builtin(kind);
                for (name, setting) in &self.switched {
                    if name.text() == member.id {
                        member.set(*setting);
                    }
                }
                roster.push(member);
            }
        }
        if let Some((name, setting)) = switch {
            switch_in(&mut roster, None, name, setting, false)?;
        }
        self.scopes[usize::from(agent)] = Some(Scope { cap, roster, ..Scope::default() });
        Ok(())
    }

    fn complete_tasks_of(&mut self, owner: u8) {
        let mut done = vec![];
        for task in &mut self.tasks {
            if task.owner == owner && task.is_open() {
                task.status = 2;
                done.push(task.id.clone());
            }
        }
        for task in &mut self.tasks {
            task.blocked_by.retain(|blocker| !done.contains(blocker));
        }
    }

    fn acknowledge(
        &mut self,
        scope: u8,
        reminder: String,
        key: Option<u8>,
        state: Option<String>,
    ) -> Result<(), Refused> {
        let number = self.number;
        let scope = self.in_turn(scope)?;
        let key = key.map(|key| format!("k{key}"));
        scope.acknowledged.retain(|known| known.reminder != reminder || known.key != key);
        scope.acknowledged.push(Acknowledged { number, reminder, key, state });
        Ok(())
    }

    fn remove(&mut self, scope_number: u8, id: &str) -> Result<bool, Refused> {
        let scope = self.scope_mut(scope_number)?;
        let is_it = |member: &Member| member.id == id;
        let mut there = scope.roster.iter().any(is_it);
        scope.roster.retain(|member| !is_it(member));
        if scope_number == 0 {
            there |= self.for_agents.iter().any(is_it);
            self.for_agents.retain(|member| !is_it(member));
        }
        if there {
            let scope = self.scope_mut(scope_number)?;
            scope.tellings.retain(|telling| telling.reminder != id);
            scope.answered.retain(|(generator, _)| generator != id);
        }
        Ok(there)
    }

    fn configure(&mut self, scope: u8, name: Name, setting: Setting) -> Result<(), Refused> {
        let mut roster = self.scope(scope)?.roster.clone();
        if scope == 0 {
            let mut agents = self.for_agents.clone();
            switch_in(&mut roster, Some(&mut agents), name, setting, true)?;
            self.for_agents = agents;
            self.switched.push((name, setting));
        } else {
            switch_in(&mut roster, None, name, setting, false)?;
        }
        self.scope_mut(scope)?.roster = roster;
        Ok(())
    }

    fn report(&mut self, scope: u8, held: Choice) -> Result<(), Refused> {
        let scope = self.scope_mut(scope)?;
        if held == Choice::Unknown {
            return Err(Refused::BadRecord);
        }
        let held = chosen(held, scope.records.len());
        for (index, lost) in scope.records.iter_mut().enumerate() {
            *lost = if held.contains(&index) { None } else { lost.or(Some(Lost::Removed)) };
        }
        Ok(())
    }

    fn put_task(&mut self, task: Task, from: u8) {
        let same = |known: &Task| known.owner == task.owner && known.id == task.id;
        if let Some(known) = self.tasks.iter_mut().find(|known| same(known)) {
            *known = task;
            return;
        }
        // Another owner than its former: it moves there.
        self.tasks.retain(|known| known.owner != from || known.id != task.id);
        self.tasks.push(task);
    }

    fn remove_task(&mut self, scope: u8, id: &str) -> bool {
        let before = self.tasks.len();
        self.tasks.retain(|task| task.owner != scope || task.id != id);
        if self.tasks.len() == before && self.tasks.iter().filter(|task| task.id == id).count() == 1
        {
            self.tasks.retain(|task| task.id != id);
        }
        self.tasks.len() < before
    }

    fn mark_write(&mut self) {
        let root = self.scopes[0].as_ref().expect("the root is always there");
        let turns = root.turns_ended + u64::from(root.turn.is_some());
        self.last_write = Some((turns, root.requests));
    }

    /// The process died: what waited in queues is gone, and so are tokens that were not committed.
    fn restart(&mut self) {
        self.fifo.clear();
        for scope in self.scopes.iter_mut().flatten() {
            scope.queue.clear();
            scope.acknowledged.clear();
            scope.answered.clear();
            scope.calls.clear();
            scope.preparing = None;
            // Its turn has ended, and its id may be used again.
            scope.tests.clear();
            if let Some((turn, _)) = scope.turn.take() {
                scope.touched.clear();
                scope.turns_ended += 1;
                scope.used_turns.retain(|used| *used != turn);
                scope.interrupted += 1;
            }
        }
        for token in &mut self.tokens {
            if !matches!(token.fate, Fate::Committed { .. }) {
                token.fate = Fate::Unknown;
            }
        }
    }

    // The WAIT

    pub fn wait(
        &mut self,
        scope_number: u8,
        held: Option<Choice>,
        waiter: u64,
    ) -> Result<Waiting, Refused> {
        let scope = self.in_turn(scope_number)?;
        if !scope.calls.is_empty() {
            return Err(Refused::NotReady);
        }
        if let Some(held) = held {
            self.report(scope_number, held)?;
        }
        let awaits = self.late_receipts
            && self.tokens.iter().any(|token| {
                token.scope == scope_number && token.fate == Fate::Open && !token.entries.is_empty()
            });
        if awaits {
            let ends = self.ending_override(scope_number);
            let nothing = (vec![], vec![], ends);
            return Ok(Waiting::Answered(self.offer(scope_number, nothing, waiter, true)?));
        }
        self.expire(scope_number, |_| true);
        let (entries, problems, asks) = self.capture(scope_number)?;
        let ends = self.ending_override(scope_number);
        if asks.is_empty() {
            let all = (entries, problems, ends);
            let token = self.offer(scope_number, all, waiter, false)?;
            return Ok(Waiting::Answered(token));
        }
        self.number += 1;
        let number = self.number;
        let preparing = Preparing { number, waiter, entries, problems, asks: asks.clone(), ends };
        self.scope_mut(scope_number)?.preparing = Some(preparing);
        Ok(Waiting::Asking { wait: number, asks })
    }

    /// The generators answered.
    pub fn finish(
        &mut self,
        scope_number: u8,
        wait: u64,
        answers: &BTreeMap<String, String>,
    ) -> Result<usize, Refused> {
        let scope = self.scope_mut(scope_number)?;
        match &scope.preparing {
            Some(preparing) if preparing.number == wait => {}
            _ => return Err(Refused::TokenExpired),
        }
        let Preparing { waiter, mut entries, problems, asks, ends, .. } =
            scope.preparing.take().expect("it was just seen");
        for (generator, _) in &asks {
            if let Some(body) = answers.get(generator) {
                scope.answered.retain(|(known, _)| known != generator);
                scope.answered.push((generator.clone(), body.clone()));
            }
        }
        for (generator, _) in asks {
            let Some(place) = scope.roster.iter().position(|member| member.id == generator) else {
                continue;
            };
            let member = &scope.roster[place];
            let Some((_, body)) = scope.answered.iter().find(|(known, _)| *known == generator)
            else {
                continue;
            };
            let policy = member.policy();
            if member.enabled && scope.due(&policy, &generator, body) {
                let mut entry = spoken(member, place, Body::Exactly(body.clone()), body);
                entry.forgets_answer = true;
                entries.push(entry);
            }
        }
        self.offer(scope_number, (entries, problems, ends), waiter, false)
    }

    pub fn abandon(&mut self, scope: u8, wait: u64) {
        if let Ok(scope) = self.scope_mut(scope) {
            scope.preparing = scope.preparing.take().filter(|preparing| preparing.number != wait);
        }
    }

    /// What everyone but the generators would say, and whom to ask.
    #[expect(clippy::type_complexity, reason = "three lists, each used once")]
    fn capture(
        &self,
        scope_number: u8,
    ) -> Result<(Vec<Entry>, Vec<String>, Vec<(String, bool)>), Refused> {
        let scope = self.scope(scope_number)?;
        let (mut entries, mut problems, mut asks) = (vec![], vec![], vec![]);
        let prompt_profile = self.profile == Profile::Prompt;
        let mid_turn = scope.turn.as_ref().is_some_and(|(_, committed)| *committed > 0);
        for (place, member) in scope.roster.iter().enumerate() {
            if !member.enabled || prompt_profile && mid_turn || !scope.passes_gate(member) {
                continue;
            }
            match self.says(scope, member) {
                Says::Nothing => {}
                Says::Fails => problems.push(member.id.clone()),
                Says::Asks { force } => asks.push((member.id.clone(), force)),
                Says::Something { body, key, state, marks, items } => {
                    let is_pool = matches!(member.kind, Kind::Registered(Form::Pool { .. }));
                    if is_pool || scope.due(&member.policy(), &member.id, &state) {
                        let mut entry = spoken(member, place, body, &state);
                        entry.key = key;
                        entry.marks = marks;
                        entry.items = items;
                        entries.push(entry);
                    }
                }
            }
        }
        if !prompt_profile {
            entries.extend(scope.queue.iter().map(|queued| Entry {
                entry_type: queued.entry_type.clone(),
                key: queued.key.clone(),
                kind: if queued.is_event { "turn-event" } else { "staged" },
                body: Body::Exactly(queued.body.clone()),
                state: queued.body.clone(),
                marks: vec![],
                items: vec![(queued.number, queued.body.clone())],
                forgets_answer: false,
                order: (queued.lane, true, queued.number),
            }));
        }
        Ok((entries, problems, asks))
    }

    #[expect(clippy::too_many_lines, reason = "one arm a kind, each as the pages say it")]
    fn says(&self, scope: &Scope, member: &Member) -> Says {
        let standing = scope.standing();
        match member.kind {
            Kind::Pending => {
                if self.fifo.is_empty() {
                    return Says::Nothing;
                }
                let bodies: Vec<_> = self.fifo.iter().map(|(_, body)| body.clone()).collect();
                let body = bodies.join("\n\n");
                let items = self.fifo.clone();
                Says::Something {
                    state: body.clone(),
                    body: Body::Exactly(body),
                    key: None,
                    marks: vec![],
                    items,
                }
            }
            Kind::Nudge { requests, after, .. } => {
                let Some((turns, written)) = self.last_write else { return Says::Nothing };
                let mut open: Vec<_> =
                    self.tasks.iter().filter(|task| task.is_open()).cloned().collect();
                let quiet = if requests {
                    scope.requests - written
                } else {
                    scope.turns_ended.saturating_sub(turns)
                };
                if open.is_empty() || self.is_planning() || quiet < after {
                    return Says::Nothing;
                }
                open.sort_by_key(|task| PATHS[usize::from(task.owner)]);
                let ids: Vec<_> = open.iter().map(|task| task.id.clone()).collect();
                for task in &mut open {
                    task.blocked_by.retain(|blocker| ids.contains(blocker));
                }
                Says::something(Body::Tasks(open), "nudge")
            }
            Kind::Modes => {
                let Some(planning) = self.effective_mode() else { return Says::Nothing };
                let explains = |member: &Member| member.kind == Kind::Planning && member.enabled;
                if planning && scope.roster.iter().any(explains) {
                    return Says::Nothing;
                }
                let mode = if planning { "plan" } else { "ask" };
                let planned = scope.contract().map(|telling| telling.state.clone());
                let planned = planned.filter(|state| state.ends_with("@mode")).unwrap_or_default();
                Says::something(Body::Mentions(vec![mode.to_owned()]), &format!("{mode};{planned}"))
            }
            Kind::Planning => {
                if !self.is_planning() {
                    return Says::Nothing;
                }
                let episode = format!("#{}", self.episodes);
                let by_mode = self.effective_mode() == Some(true);
                let told = scope
                    .contract()
                    .filter(|telling| telling.state.trim_end_matches("@mode") == episode);
                let (key, state, word) = match told {
                    None => (
                        "contract",
                        format!("{episode}{}", if by_mode { "@mode" } else { "" }),
                        "replaces",
                    ),
                    Some(told) if told.at.turn == standing.turn || scope.is_mid_turn() => {
                        return Says::Nothing;
                    }
                    Some(_) => ("reference", format!("{episode}/{}", standing.turn), "manual"),
                };
                Says::Something {
                    body: Body::Mentions(vec![word.to_owned()]),
                    key: Some(key.to_owned()),
                    state,
                    marks: vec![episode],
                    items: vec![],
                }
            }
            Kind::Recovery => match scope.interrupted {
                0 => Says::Nothing,
                count => {
                    Says::something(Body::Mentions(vec!["partial".to_owned()]), &count.to_string())
                }
            },
            Kind::Warning | Kind::Limit => {
                let Some(cap) = scope.cap.filter(|cap| *cap > 0) else { return Says::Nothing };
                let count = standing.request;
                let at_limit = count >= cap;
                let warns = !at_limit && count >= cap * 8 / 10;
                let speaks = if member.kind == Kind::Limit { at_limit } else { warns };
                if !speaks {
                    return Says::Nothing;
                }
                let mut mentioned = vec![count.to_string(), cap.to_string()];
                if warns {
                    mentioned.push((cap - count).to_string());
                }
                Says::something(Body::Mentions(mentioned), "requests")
            }
            Kind::Registered(Form::Text { body, .. }) => {
                let text = match body {
                    Text::Plain(number) => Some(format!("text {number}")),
                    Text::Fact(fact) | Text::IfFact(fact) => {
                        scope.facts.get(&fact).map(|value| format!("fact {value}"))
                    }
                };
                match (text, body) {
                    (Some(text), _) => Says::something(Body::Exactly(text.clone()), &text),
                    (None, Text::Fact(_)) => Says::Fails,
                    (None, _) => Says::Nothing,
                }
            }
            Kind::Registered(Form::Pool { pool, baseline, .. }) => {
                let known = scope.pools.get(&pool);
                let Some(listed) = known.and_then(|pool| pool.names) else { return Says::Nothing };
                let declared = known.and_then(|pool| pool.declared);
                // The latest that was given holds, whichever way it came.
                let declared =
                    declared.filter(|(_, at, _)| baseline.is_none() || *at > member.since);
                let (start, from) =
                    declared.map_or((baseline.unwrap_or(0), 0), |(names, _, from)| (names, from));
                let (listed, mut model_knows) = (names(listed), names(start));
                for telling in &scope.tellings {
                    if telling.reminder != member.id
                        || telling.key.is_some()
                        || telling.record < from
                        || scope.records[telling.record].is_some()
                    {
                        continue;
                    }
                    for mark in &telling.marks {
                        let name = NAMES.into_iter().find(|name| *name == &mark[1..]);
                        let name = name.expect("marks carry names");
                        model_knows.retain(|known| *known != name);
                        if mark.starts_with('+') {
                            model_knows.push(name);
                        }
                    }
                }
                model_knows.sort_unstable();
                let came: Vec<_> =
                    listed.iter().filter(|name| !model_knows.contains(name)).copied().collect();
                let went: Vec<_> =
                    model_knows.iter().filter(|name| !listed.contains(name)).copied().collect();
                let mut lines = vec![];
                let mut marks = vec![];
                for (word, sign, names) in [("New", '+', came), ("Gone", '-', went)] {
                    if !names.is_empty() {
                        lines.push(format!("{word}: {}.", names.join(", ")));
                        marks.extend(names.iter().map(|name| format!("{sign}{name}")));
                    }
                }
                if marks.is_empty() {
                    return Says::Nothing;
                }
                let body = Body::Exactly(lines.join("\n"));
                Says::Something { body, key: None, state: "pool".to_owned(), marks, items: vec![] }
            }
            Kind::Registered(Form::Rule(rule)) => Self::rule(scope, member, rule),
            Kind::Registered(Form::Generator { policy }) => {
                // Whatever it would answer, it was told its once.
                if member.policy().trigger == Trigger::Once
                    && !scope.due(&member.policy(), &member.id, "")
                {
                    return Says::Nothing;
                }
                let Some(Policy { trigger: Trigger::Every(Span { unit, count }), .. }) = policy
                else {
                    return Says::Asks { force: false };
                };
                let mid_turn = scope.turn.as_ref().is_some_and(|(_, committed)| *committed > 0);
                if unit == Unit::Prompts && mid_turn {
                    return Says::Nothing;
                }
                let last = scope.tellings_of(&member.id).last().map_or(0, |last| last.at.of(unit));
                Says::Asks { force: standing.of(unit) >= last + count }
            }
        }
    }

    /// What was not told of, of what happened in the turn: a telling tells of all that happened from
    /// the first of what it found to the last.
    fn rule(scope: &Scope, member: &Member, rule: Rule) -> Says {
        let never = member.policy().never_rearmed;
        let turn = scope.standing().turn;
        let told = |number: u64| {
            scope.tellings_of(&member.id).iter().any(|telling| {
                let range = telling.marks.first().and_then(|mark| mark.split_once('-'));
                let is_in = |(first, last): (&str, &str)| {
                    let at = |text: &str| text.parse::<u64>().expect("a number");
                    (at(first)..=at(last)).contains(&number)
                };
                telling.at.turn == turn
                    && (never || scope.records[telling.record].is_none())
                    && range.is_some_and(is_in)
            })
        };
        let mut files: Vec<_> =
            scope.touched.iter().filter(|(file, at)| *file < 2 && !told(*at)).collect();
        files.sort_unstable();
        let tests: Vec<_> = scope.tests.iter().filter(|(at, ok)| !ok && !told(*at)).collect();
        if rule.touched && files.is_empty() || rule.failed && tests.is_empty() {
            return Says::Nothing;
        }
        let mut body = "rule".to_owned();
        if let Some(fact) = rule.fact {
            match scope.facts.get(&fact) {
                None => return Says::Fails,
                Some(0) => return Says::Nothing,
                Some(value) => body.push_str(&format!(" fact {value}")),
            }
        }
        let mut happened = vec![];
        if rule.touched {
            let names: Vec<_> = files.iter().map(|(file, _)| TOUCHED[usize::from(*file)]).collect();
            body.push_str(&format!(" paths {}", names.join(" ")));
            happened.extend(files.iter().map(|(_, at)| *at));
        }
        if rule.failed {
            body.push_str(&format!(" calls {}", tests.len()));
            happened.extend(tests.iter().map(|(at, _)| *at));
        }
        let range = happened.iter().min().zip(happened.iter().max());
        let marks = range.map(|(first, last)| format!("{first}-{last}")).into_iter().collect();
        let state = body.clone();
        Says::Something { body: Body::Exactly(body), key: None, state, marks, items: vec![] }
    }

    /// Puts the message together and opens its token.
    fn offer(
        &mut self,
        scope_number: u8,
        (mut entries, problems, ends): (Vec<Entry>, Vec<String>, Option<u64>),
        waiter: u64,
        awaits: bool,
    ) -> Result<usize, Refused> {
        let scope = self.scope_mut(scope_number)?;
        entries.sort_by_key(|entry| entry.order);
        let mut silent = vec![];
        let mut acknowledgements = vec![];
        if !awaits {
            for context in &scope.acknowledged {
                acknowledgements.push(context.number);
                let riding = riding(&mut entries, context, &told(scope, context));
                silent.extend(riding);
            }
        }
        let turn_start = scope.turn.as_ref().is_none_or(|(_, committed)| *committed == 0);
        let at = scope.standing();
        self.tokens.push(Token {
            scope: scope_number,
            fate: Fate::Open,
            entries,
            problems,
            awaits,
            turn_start,
            silent,
            acknowledgements,
            ends,
            waiter,
            at,
        });
        Ok(self.tokens.len() - 1)
    }

    /// What was acknowledged since the open WAITs of a scope were answered, each with what it tells:
    /// the next commit tells it.
    fn acknowledged_since(&self, scope_number: u8) -> Result<Vec<(u64, Vec<Entry>)>, Refused> {
        let scope = self.scope(scope_number)?;
        let is_open = |token: &&Token| token.scope == scope_number && token.fate == Fate::Open;
        let open = self.tokens.iter().filter(is_open);
        let captured: Vec<_> = open.flat_map(|token| &token.acknowledgements).collect();
        let (mut entries, _, _) = self.capture(scope_number)?;
        entries.sort_by_key(|entry| entry.order);
        let since =
            scope.acknowledged.iter().filter(|context| !captured.contains(&&context.number));
        Ok(since
            .map(|context| (context.number, riding(&mut entries, context, &told(scope, context))))
            .collect())
    }

    /// What of the newest WAIT fits into a limit: `sizes` says which entries do, and how many
    /// items of each.
    pub fn keep_fitting(&mut self, fitting: &[usize]) {
        let token = self.tokens.last_mut().expect("a WAIT was just answered");
        let mut kept = vec![];
        for (entry, parts) in token.entries.drain(..).zip(fitting) {
            let whole = entry.items.is_empty() || *parts == entry.items.len();
            if *parts == 0 {
                continue;
            }
            let mut entry = entry;
            if !whole {
                entry.items.truncate(*parts);
                let bodies: Vec<_> = entry.items.iter().map(|(_, body)| body.clone()).collect();
                entry.body = Body::Exactly(bodies.join("\n\n"));
            }
            kept.push(entry);
        }
        token.entries = kept;
    }

    pub fn commit(&mut self, token: usize, choice: Choice) -> Result<Receipt, Refused> {
        let Token {
            scope: scope_number,
            fate,
            entries,
            silent,
            mut acknowledgements,
            at,
            ends,
            ..
        } = self.tokens[token].clone();
        match fate {
            Fate::Open => {}
            Fate::Committed { record, committed, held } => {
                return Ok(Receipt { record, committed, held, already: true });
            }
            Fate::Released => return Err(Refused::TokenReleased),
            Fate::Expired => return Err(Refused::TokenExpired),
            Fate::Unknown => return Err(Refused::UnknownToken),
        }
        if choice == Choice::Unknown {
            return Err(Refused::InvalidParams);
        }
        let committed: Vec<_> = match choice {
            Choice::Some(mask) => (0..entries.len()).filter(|bit| mask >> bit & 1 == 1).collect(),
            Choice::None => vec![],
            _ => (0..entries.len()).collect(),
        };
        let held: Vec<_> = (0..entries.len()).filter(|index| !committed.contains(index)).collect();
        let since = self.acknowledged_since(scope_number)?;
        acknowledgements.extend(since.iter().map(|(number, _)| *number));
        let since: Vec<_> = since.into_iter().flat_map(|(_, riding)| riding).collect();
        self.mode_override = self.mode_override.filter(|(number, _)| ends != Some(*number));
        let scope = self.scope_mut(scope_number)?;
        scope.requests += 1;
        if let Some((_, in_turn)) = &mut scope.turn {
            if *in_turn == 0 {
                scope.prompts += 1;
            }
            *in_turn += 1;
        }
        scope.acknowledged.retain(|context| !acknowledgements.contains(&context.number));
        let told: Vec<_> = silent
            .iter()
            .chain(&since)
            .chain(committed.iter().map(|index| &entries[*index]))
            .collect();
        let record = scope.records.len();
        let mut items_told = vec![];
        for entry in &told {
            items_told.extend(entry.items.iter().map(|(number, _)| *number));
            if entry.forgets_answer {
                scope.answered.retain(|(generator, _)| *generator != entry.entry_type);
            }
            scope.tellings.push(Telling {
                record,
                reminder: entry.entry_type.clone(),
                key: entry.key.clone(),
                state: entry.state.clone(),
                marks: entry.marks.clone(),
                at,
            });
        }
        if !told.is_empty() {
            scope.records.push(None);
        }
        scope.queue.retain(|queued| !items_told.contains(&queued.number));
        let record = !told.is_empty();
        self.fifo.retain(|(number, _)| !items_told.contains(number));
        self.tokens[token].fate =
            Fate::Committed { record, committed: committed.clone(), held: held.clone() };
        Ok(Receipt { record, committed, held, already: false })
    }

    pub fn release(&mut self, token: usize) -> Result<bool, Refused> {
        match self.tokens[token].fate {
            Fate::Open => {
                self.tokens[token].fate = Fate::Released;
                Ok(true)
            }
            Fate::Unknown => Err(Refused::UnknownToken),
            _ => Ok(false),
        }
    }
}

/// The state of what an acknowledgement means that history holds.
fn told(scope: &Scope, context: &Acknowledged) -> String {
    let held = scope.tellings.iter().rev().find(|telling| {
        telling.reminder == context.reminder
            && telling.key == context.key
            && scope.records[telling.record].is_none()
    });
    held.map_or_else(String::new, |telling| telling.state.clone())
}

/// Takes out what rides in the prompt text; where nothing does, the acknowledgement stands for itself.
fn riding(entries: &mut Vec<Entry>, context: &Acknowledged, told: &str) -> Vec<Entry> {
    let rides = |entry: &mut Entry| {
        (entry.entry_type == context.reminder || entry.kind == context.reminder)
            && entry.key == context.key
            && (context.state.is_none() || context.state.as_ref() == Some(&entry.state))
    };
    let riding: Vec<_> = entries.extract_if(.., rides).collect();
    if !riding.is_empty() {
        return riding;
    }
    vec![Entry {
        entry_type: context.reminder.clone(),
        key: context.key.clone(),
        kind: "",
        body: Body::Exactly(String::new()),
        state: context.state.clone().unwrap_or_else(|| told.to_owned()),
        marks: vec![],
        items: vec![],
        forgets_answer: false,
        order: (0, false, 0),
    }]
}

enum Says {
    Nothing,
    Fails,
    Asks {
        force: bool,
    },
    Something {
        body: Body,
        key: Option<String>,
        state: String,
        marks: Vec<String>,
        items: Vec<(u64, String)>,
    },
}

impl Says {
    fn something(body: Body, state: &str) -> Self {
        Self::Something { body, key: None, state: state.to_owned(), marks: vec![], items: vec![] }
    }
}

impl Scope {
    fn standing(&self) -> Standing {
        let begun = self.turn.as_ref().is_some_and(|(_, committed)| *committed > 0);
        Standing {
            turn: self.turns_ended + 1,
            request: self.requests + 1,
            prompt: if begun { self.prompts } else { self.prompts + 1 },
        }
    }

    fn is_mid_turn(&self) -> bool {
        self.turn.as_ref().is_some_and(|(_, committed)| *committed > 0)
    }

    /// The newest telling of a planning contract that was not removed from the conversation: what a
    /// compaction summarised counts.
    fn contract(&self) -> Option<&Telling> {
        self.tellings.iter().rev().find(|telling| {
            telling.reminder == "plan-mode"
                && telling.key.as_deref() == Some("contract")
                && self.records[telling.record] != Some(Lost::Removed)
        })
    }

    fn tellings_of(&self, reminder: &str) -> Vec<&Telling> {
        self.tellings.iter().filter(|telling| telling.reminder == reminder).collect()
    }

    /// Spacing and caps: they count tellings, whether history holds them or not.
    fn passes_gate(&self, member: &Member) -> bool {
        let policy = member.policy();
        let now = self.standing();
        let told = self.tellings_of(&member.id);
        let generator = matches!(member.kind, Kind::Registered(Form::Generator { .. }));
        let every = match policy.trigger {
            // A generator's interval decides when it is asked by force.
            Trigger::Every(span) if !generator => Some(span),
            _ => None,
        };
        let elapsed = |span: Span| {
            told.last().is_none_or(|last| now.of(span.unit) >= last.at.of(span.unit) + span.count)
        };
        // One message is one telling, however many entries of it there are.
        let count = |in_turn: Option<u64>| {
            let mut records: Vec<_> = told
                .iter()
                .filter(|telling| in_turn.is_none_or(|turn| telling.at.turn == turn))
                .map(|telling| telling.record)
                .collect();
            records.dedup();
            records.len() as u64
        };
        policy.cooldown.is_none_or(elapsed)
            && every.is_none_or(elapsed)
            && policy.per_turn.is_none_or(|most| count(Some(now.turn)) < most)
            && policy.per_session.is_none_or(|most| count(None) < most)
    }

    /// `once` and `onChange`: they ask what history holds, or, never rearmed, what was ever told.
    fn due(&self, policy: &Policy, reminder: &str, state: &str) -> bool {
        let counted = self.tellings_of(reminder).into_iter().rev().find(|telling| {
            telling.key.is_none()
                && (policy.never_rearmed || self.records[telling.record].is_none())
        });
        match policy.trigger {
            Trigger::Always | Trigger::Every(_) => true,
            Trigger::Once => counted.is_none(),
            Trigger::OnChange => counted.is_none_or(|telling| telling.state != state),
        }
    }
}

impl Member {
    fn policy(&self) -> Policy {
        let mut policy = match self.kind {
            Kind::Pending | Kind::Limit | Kind::Planning => Policy::plain(Trigger::Always),
            Kind::Modes => Policy::plain(Trigger::OnChange),
            Kind::Recovery => Policy { never_rearmed: true, ..Policy::plain(Trigger::OnChange) },
            Kind::Nudge { requests, cooldown, .. } => {
                let unit = if requests { Unit::Requests } else { Unit::Turns };
                Policy {
                    cooldown: Some(Span { unit, count: cooldown }),
                    ..Policy::plain(Trigger::Always)
                }
            }
            Kind::Warning => Policy { never_rearmed: true, ..Policy::plain(Trigger::Once) },
            Kind::Registered(Form::Text { policy, .. }) => {
                policy.unwrap_or(Policy::plain(Trigger::Once))
            }
            Kind::Registered(Form::Generator { policy } | Form::Rule(Rule { policy, .. })) => {
                policy.unwrap_or(Policy::plain(Trigger::OnChange))
            }
            Kind::Registered(Form::Pool { cooldown, per_session, .. }) => {
                Policy { cooldown, per_session, ..Policy::plain(Trigger::OnChange) }
            }
        };
        policy.per_turn = self.per_turn.or(policy.per_turn);
        policy
    }

    fn set(&mut self, setting: Setting) {
        self.enabled = setting != Setting::Off;
        match (setting, &mut self.kind) {
            (Setting::PerTurn(most), _) => self.per_turn = Some(most),
            (Setting::Stale { requests, after, cooldown }, kind @ Kind::Nudge { .. }) => {
                *kind = Kind::Nudge { requests, after, cooldown };
            }
            _ => {}
        }
    }
}

fn nudge(requests: bool) -> Kind {
    Kind::Nudge { requests, after: 8, cooldown: 8 }
}

fn builtin(kind: Kind) -> Member {
    let id = match kind {
        Kind::Pending => "pending-events",
        Kind::Modes => "mode-constraints",
        Kind::Planning => "plan-mode",
        Kind::Recovery => "recovery",
        Kind::Nudge { .. } => "task-nudge",
        Kind::Warning => "max-requests-warning",
        Kind::Limit => "max-requests-limit",
        Kind::Registered(_) => unreachable!("registered ones have names of their own"),
    };
    Member { id: id.to_owned(), kind, enabled: true, per_turn: None, since: 0 }
}

/// Replaces a member in its place or adds it; one that is not for this roster leaves it.
fn enlist(roster: &mut Vec<Member>, member: &Member, wanted: bool) {
    if !wanted {
        roster.retain(|known| known.id != member.id);
    } else if let Some(known) = roster.iter_mut().find(|known| known.id == member.id) {
        *known = member.clone();
    } else {
        roster.push(member.clone());
    }
}

fn switch_in(
    roster: &mut Vec<Member>,
    agents: Option<&mut Vec<Member>>,
    name: Name,
    setting: Setting,
    is_root: bool,
) -> Result<(), Refused> {
    let mut known = false;
    for member in roster.iter_mut().chain(agents.into_iter().flatten()) {
        if member.id == name.text() {
            member.set(setting);
            known = true;
        }
    }
    if known {
        return Ok(());
    }
    let (kind, fits) = match name {
        Name::Pending => (Kind::Pending, is_root),
        Name::Modes => (Kind::Modes, is_root),
        Name::Planning => (Kind::Planning, is_root),
        Name::Recovery => (Kind::Recovery, true),
        Name::Nudge => (nudge(false), is_root),
        Name::Warning => (Kind::Warning, !is_root),
        Name::Limit => (Kind::Limit, !is_root),
        Name::Registered(_) => return Err(Refused::InvalidParams),
    };
    if setting != Setting::Off && fits {
        let mut member = builtin(kind);
        member.set(setting);
        roster.push(member);
    }
    Ok(())
}

fn spoken(member: &Member, place: usize, body: Body, state: &str) -> Entry {
    let (kind, lane) = match member.kind {
        Kind::Pending => ("pending-events", 2),
        Kind::Modes => ("mode-constraints", 2),
        Kind::Planning => ("plan-mode", 2),
        Kind::Recovery => ("recovery", 2),
        Kind::Nudge { .. } => ("task-nudge", 2),
        Kind::Warning => ("max-requests-warning", 2),
        Kind::Limit => ("max-requests-limit", 2),
        Kind::Registered(Form::Text { lane, .. }) => {
            let lane = match lane {
                TextLane::Mention => 0,
                TextLane::Roster => 2,
                TextLane::Sections => 5,
            };
            ("standing-text", lane)
        }
        Kind::Registered(Form::Pool { .. }) => ("announced-delta", 2),
        Kind::Registered(Form::Generator { .. }) => ("client-generator", 2),
        Kind::Registered(Form::Rule(_)) => ("rule", 2),
    };
    Entry {
        entry_type: member.id.clone(),
        key: None,
        kind,
        body,
        state: state.to_owned(),
        marks: vec![],
        items: vec![],
        forgets_answer: false,
        order: (lane, false, place as u64),
    }
}
