//! Drives the engine and the model through the same operations and compares them at every step.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use reminderd::engine::{
    Delivery, Event, Findings, HostReport, Kit, Lane, Limit, Line, Material, Mode, Opening,
    PlanReport, PlanState, PoolName, Profile, Record, Retained, Serial, Session, SettleOutcome,
    Staged, Switch, Switches, Task, TaskStatus, TurnOutcome, WaitRequest,
};
use reminderd::reminders::Catalogue;

use crate::model::{Body, Entry, Model, Receipt, Waiting};
use crate::operation::{
    Answers, Choice, Operation, PATHS, Script, Setting, StageLane, TASKS, TOUCHED, chosen_ids,
    names, path,
};

/// What went wrong.
pub type Outcome<T = ()> = Result<T, String>;

/// Fails with a message unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $($message:tt)*) => {
        if !$condition {
            return Err(format!($($message)*));
        }
    };
}
pub(crate) use ensure;

/// A digest that can be read: the fingerprint of a body is the body.
fn readable(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What the engine is given here.
pub fn kit() -> Kit {
    Kit { registry: &Catalogue, digest: readable }
}

/// The session that these lines yield.
pub fn restore<'a>(lines: impl Iterator<Item = &'a String>) -> Outcome<Session> {
    let lines: Result<Vec<Line>, _> = lines.map(|line| serde_json::from_str(line)).collect();
    let lines = lines.map_err(|error| format!("a ledger line cannot be read: {error}"))?;
    Session::restore(kit(), "s", lines).map_err(|error| format!("cannot be restored: {error}"))
}

/// A session and its model.
#[derive(Debug)]
pub struct World {
    pub session: Session,
    pub model: Model,
    /// Ledger lines as a store would keep them.
    pub ledger: Vec<String>,
    /// Snapshots on the way, each with the number of lines that it stands for.
    pub snapshots: Vec<(usize, String)>,
    /// Whether the store loses every commit at first.
    pub stumbles: bool,
    /// Everything that the engine answered, as text.
    pub transcript: String,
    /// The records of each scope, oldest first, as they were committed.
    pub records: [Vec<Record>; 4],
    /// What each answered WAIT told, in order.
    pub deliveries: Vec<(u8, String)>,
    /// Each token's entry ids, in order.
    entry_ids: Vec<Vec<String>>,
    /// The tokens themselves, by the model's numbers: a WAIT whose generators think gets its number
    /// only when it is answered.
    names: Vec<String>,
    /// How much randomness was given.
    given: usize,
    /// The record of each committed token.
    committed: BTreeMap<usize, Option<Record>>,
    thinking: [Option<(Serial, u64)>; 4],
    turns: u64,
    bodies: u64,
    now: u64,
}

impl World {
    pub fn new(profile: Profile, late_receipts: bool) -> Self {
        let mut world = Self {
            session: Session::new(kit(), "s"),
            model: Model::new(profile, late_receipts),
            ledger: vec![],
            snapshots: vec![],
            stumbles: false,
            transcript: String::new(),
            records: Default::default(),
            deliveries: vec![],
            entry_ids: vec![],
            names: vec![],
            given: 0,
            committed: BTreeMap::new(),
            thinking: [None; 4],
            turns: 0,
            bodies: 0,
            now: 1,
        };
        // Kinds that look at touched files have laws of their own.
        let off = ["edited-files", "verification-suggestion", "compacted-files"];
        let opening = Opening {
            root: Some("/w".to_owned()),
            kinds: off.map(|kind| (kind.to_owned(), Switch::Off)).into(),
            profile: Some(profile),
            host: HostReport { late_receipts: Some(late_receipts), ..HostReport::default() },
            ..Opening::default()
        };
        world.session.open(1, opening).expect("a new session opens");
        world.keep_lines();
        world
    }

    /// Runs a whole script, and ends with the laws that can be asked of any state.
    pub fn run(script: &Script) -> Outcome<Self> {
        Self::new(script.profile, script.late_receipts).after(script)
    }

    /// The same whose store loses every commit at first: each is undone and comes again.
    pub fn run_stumbling(script: &Script) -> Outcome<Self> {
        let mut world = Self::new(script.profile, script.late_receipts);
        world.stumbles = true;
        world.after(script)
    }

    fn after(mut self, script: &Script) -> Outcome<Self> {
        for (index, operation) in script.operations.iter().enumerate() {
            self.step(operation)
                .map_err(|why| format!("operation {index} {operation:?}: {why}"))?;
            if index % 5 == 0 {
                let snapshot = serde_json::to_string(&self.session.snapshot());
                self.snapshots.push((self.ledger.len(), snapshot.expect("it is plain data")));
            }
        }
        Ok(self)
    }

    fn keep_lines(&mut self) {
        for line in self.session.take_lines() {
            self.ledger.push(serde_json::to_string(&line).expect("a line is plain data"));
        }
    }

    fn note(&mut self, what: &str, answer: &impl std::fmt::Debug) {
        writeln!(self.transcript, "{what} {answer:?}").expect("a string takes everything");
    }

    fn hear(&mut self, scope: u8, delivery: &Delivery) {
        self.note("delivered", delivery);
        let entries = delivery.record.iter().flat_map(|record| &record.entries);
        let entries: Vec<_> =
            entries.map(|entry| (&entry.entry_type, &entry.key, &entry.body)).collect();
        let told = format!("{:?} {entries:?} {:?}", delivery.phase, delivery.held);
        self.deliveries.push((scope, told));
    }

    /// Leaves an operation out, so that what follows is named as if it had been there.
    pub fn skip(&mut self, operation: &Operation) {
        self.now += 1;
        self.turns += u64::from(matches!(operation, Operation::BeginTurn { used: false, .. }));
        self.bodies += u64::from(operation.is_event());
    }

    /// One operation on both sides.
    pub fn step(&mut self, operation: &Operation) -> Outcome {
        self.now += 1;
        match operation {
            Operation::Wait { scope, waiter, answers } => {
                self.wait(*scope, None, *waiter, None, Some(answers))?;
            }
            Operation::WaitHolding { scope, held, answers } => {
                self.wait(*scope, Some(*held), 1, None, Some(answers))?;
            }
            Operation::WaitThinking { scope, waiter } => {
                self.wait(*scope, None, *waiter, None, None)?;
            }
            Operation::Finish { scope, answers } => self.finish_thinking(*scope, answers)?,
            Operation::Abandon { scope } => {
                if let Some((serial, wait)) = self.thinking[usize::from(*scope)].take() {
                    self.session.abandon(&path(*scope), serial);
                    self.model.abandon(*scope, wait);
                }
            }
            Operation::WaitWithin { scope, bytes, answers } => {
                self.wait_within(*scope, *bytes, answers)?;
            }
            Operation::Commit { token, entries } => {
                if let Some(token) = self.back(*token) {
                    self.commit(token, *entries)?;
                }
            }
            Operation::Release { token } => {
                if let Some(token) = self.back(*token) {
                    self.release(token)?;
                }
            }
            Operation::Deliver { scope, answers } => {
                if let Some((token, _)) = self.wait(*scope, None, 1, None, Some(answers))? {
                    self.commit(token, Choice::All)?;
                }
            }
            _ => self.apply(operation)?,
        }
        self.keep_lines();
        Ok(())
    }

    fn back(&self, token: u8) -> Option<usize> {
        self.model.tokens.len().checked_sub(1 + usize::from(token))
    }

    fn apply(&mut self, operation: &Operation) -> Outcome {
        let turn = match operation {
            Operation::BeginTurn { used: false, .. } => {
                self.turns += 1;
                format!("turn {}", self.turns)
            }
            Operation::BeginTurn { used: true, .. } => format!("turn {}", self.turns),
            Operation::EndTurn { scope, right: true } => {
                self.model.open_turn(*scope).unwrap_or("none").to_owned()
            }
            _ => "another".to_owned(),
        };
        self.bodies += 1;
        let body = format!("body {}", self.bodies);
        let expected = self.model.apply(operation, &turn, &body);
        let given: Result<bool, _> = match operation {
            Operation::Disconnect { waiter } => {
                self.session.disconnect(*waiter);
                Ok(true)
            }
            Operation::Reopen { profile } => {
                let opening = Opening { profile: *profile, ..Opening::default() };
                self.session.open(self.now, opening).map(|_| true)
            }
            Operation::Restart => {
                self.restart()?;
                Ok(true)
            }
            _ => {
                let (scope, event) = self.event(operation, &turn, &body);
                self.session.apply(self.now, &path(scope), event).map(|applied| applied.changed)
            }
        };
        self.note("applied", &given);
        let given = given.map_err(|refusal| refusal.kind);
        ensure!(given == expected, "answered {given:?}, and the model says {expected:?}");
        if let (Operation::Spawn { agent, .. }, Ok(_)) = (operation, &expected) {
            self.records[usize::from(*agent)].clear();
        }
        Ok(())
    }

    #[expect(clippy::too_many_lines, reason = "one arm an operation")]
    fn event(&self, operation: &Operation, turn: &str, body: &str) -> (u8, Event) {
        let keyed = |key: &u8| format!("k{key}");
        let event = match operation {
            Operation::BeginTurn { .. } => Event::TurnBegan { turn: turn.to_owned() },
            Operation::EndTurn { .. } => {
                Event::TurnEnded { turn: turn.to_owned(), outcome: TurnOutcome::Completed }
            }
            Operation::BeginCall { call, .. } => {
                Event::CallBegan { call: call.to_string(), input: None }
            }
            Operation::EndCall { call, .. } => {
                Event::CallEnded { call: call.to_string(), name: "Bash".to_owned(), ok: true }
            }
            Operation::Call { ok, .. } => {
                Event::CallEnded { call: "none".to_owned(), name: "Test".to_owned(), ok: *ok }
            }
            Operation::Touch { file, .. } => Event::Touched {
                path: format!("/w/{}", TOUCHED[usize::from(*file)]),
                wrote: true,
                whole: false,
            },
            Operation::Spawn { cap, switch, .. } => Event::AgentSpawned {
                kinds: switch
                    .iter()
                    .map(|(name, setting)| (name.text(), switched(*setting)))
                    .collect(),
                max_requests: *cap,
                role: None,
            },
            Operation::Settle { succeeded, .. } => Event::AgentSettled {
                outcome: if *succeeded { SettleOutcome::Succeeded } else { SettleOutcome::Failed },
            },
            Operation::Enqueue => Event::Enqueued { name: None, body: body.to_owned() },
            Operation::Observe { key, .. } => Event::Observed {
                turn: None,
                key: keyed(key),
                entry_type: "note".to_owned(),
                body: body.to_owned(),
            },
            Operation::Stage { lane, entry_type, key, .. } => Event::Staged {
                lane: match lane {
                    StageLane::Mention => Lane::Mention,
                    StageLane::Skill => Lane::Skill,
                    StageLane::Compaction => Lane::Compaction,
                    StageLane::Steering => Lane::Steering,
                },
                entry_type: format!("s{entry_type}"),
                key: key.as_ref().map(keyed),
                label: None,
                body: body.to_owned(),
            },
            Operation::Withdraw { key, .. } => Event::Withdrawn { key: keyed(key) },
            Operation::Acknowledge { name, key, text, .. } => Event::Acknowledged {
                reminder: name.text(),
                key: key.as_ref().map(keyed),
                fingerprint: text.map(|text| format!("text {text}")),
            },
            Operation::AcknowledgeStaged { entry_type, key, .. } => Event::Acknowledged {
                reminder: format!("s{entry_type}"),
                key: key.as_ref().map(keyed),
                fingerprint: None,
            },
            Operation::Register { id, form, root, agents, .. } => {
                let audience = reminderd::engine::Audience { root: *root, agents: *agents };
                Event::Registered(form.definition(*id, audience))
            }
            Operation::Remove { id, .. } => Event::Removed { id: format!("r{id}") },
            Operation::Configure { name, setting, .. } => {
                Event::Configured(Switches::from([(name.text(), switched(*setting))]))
            }
            Operation::Reset { .. } => Event::Reset,
            Operation::Compact { scope, retained } => Event::Compacted {
                native: false,
                retained: match retained {
                    Choice::All => Retained::All,
                    Choice::None => Retained::None,
                    _ => Retained::Records(self.record_ids(*scope, *retained)),
                },
            },
            Operation::Rewind { scope, through } => {
                let records = &self.records[usize::from(*scope)];
                let index =
                    through.and_then(|back| records.len().checked_sub(1 + usize::from(back)));
                Event::Rewound { through: index.map(|index| records[index].id.clone()) }
            }
            Operation::Clear { .. } => Event::Cleared,
            Operation::Report { scope, held } => {
                Event::HistoryReported { records: self.record_ids(*scope, *held) }
            }
            Operation::Mode { planning, overrides } => Event::ModeSet(Mode {
                name: if *planning { "plan" } else { "ask" }.to_owned(),
                overrides: *overrides,
            }),
            Operation::Plan { active } => Event::PlanSet(PlanReport {
                state: if *active { PlanState::Active } else { PlanState::None },
                ..PlanReport::default()
            }),
            Operation::TaskPut { scope, task, status, owner, blocked_by } => Event::TaskPut {
                task: Task {
                    id: TASKS[usize::from(*task)].to_owned(),
                    subject: subject(TASKS[usize::from(*task)]),
                    status: [
                        TaskStatus::Pending,
                        TaskStatus::InProgress,
                        TaskStatus::Completed,
                        TaskStatus::Other("blocked".to_owned()),
                    ][usize::from(*status)]
                    .clone(),
                    owner: path(owner.unwrap_or(*scope)),
                    blocked_by: blocked_by
                        .map(|by| TASKS[usize::from(by)].to_owned())
                        .into_iter()
                        .collect(),
                    blocks: vec![],
                    description: None,
                },
                reassigns: owner.is_some(),
            },
            Operation::TaskRemove { task, .. } => {
                Event::TaskRemoved { id: TASKS[usize::from(*task)].to_owned() }
            }
            Operation::TasksReplace { scope, tasks } => {
                let meant = TASKS.into_iter().enumerate().filter(|(bit, _)| tasks >> bit & 1 == 1);
                let tasks = meant.map(|(_, id)| Task {
                    id: id.to_owned(),
                    subject: subject(id),
                    status: TaskStatus::Pending,
                    owner: path(*scope),
                    blocked_by: vec![],
                    blocks: vec![],
                    description: None,
                });
                Event::TasksReplaced { tasks: tasks.collect() }
            }
            Operation::Pool { pool, names: mask, baseline, .. } => Event::PoolSet {
                pool: format!("p{pool}"),
                names: mask.map(|mask| {
                    let name = |name: &str| PoolName { name: name.to_owned(), description: None };
                    names(mask).into_iter().map(name).collect()
                }),
                baseline: *baseline,
            },
            Operation::Fact { fact, value, .. } => Event::FactSet {
                name: format!("f{fact}"),
                value: value.map_or_else(Default::default, |value| u64::from(value).into()),
            },
            _ => unreachable!("not an event: {operation:?}"),
        };
        (operation.scope().unwrap_or(0), event)
    }

    fn record_ids(&self, scope: u8, choice: Choice) -> Vec<String> {
        let ids: Vec<_> = self.records[usize::from(scope)].iter().map(|it| it.id.clone()).collect();
        chosen_ids(choice, &ids)
    }

    /// The process died and another read the ledger.
    fn restart(&mut self) -> Outcome {
        self.thinking = [None; 4];
        self.session = self.restored()?;
        Ok(())
    }

    /// The session that the ledger yields, through its text.
    pub fn restored(&self) -> Outcome<Session> {
        restore(self.ledger.iter())
    }

    /// Commits, loses the commit's line, and finds everything as it was.
    fn lose(&mut self, token: &str, named: Option<&[String]>) -> Outcome {
        let before = self.session.snapshot();
        let open = self.session.open_tokens();
        if !self.session.commit(self.now, token, named, None).is_ok_and(|given| !given.already) {
            return Ok(());
        }
        drop(self.session.take_lines());
        ensure!(self.session.undo(token), "there is nothing to undo");
        ensure!(self.session.snapshot() == before, "an undone commit leaves something behind");
        ensure!(self.session.open_tokens() == open, "the token is not open again");
        Ok(())
    }

    // The WAIT

    /// A WAIT on both sides; the number of its token, if it has one. Without answers the
    /// generators go on thinking.
    pub fn wait(
        &mut self,
        scope: u8,
        held: Option<Choice>,
        waiter: u64,
        limit: Option<u64>,
        answers: Option<&Answers>,
    ) -> Outcome<Option<(usize, Delivery)>> {
        let rows = self.session.explain(self.now, &path(scope), &Findings::new());
        let given = self.given;
        self.given += 1;
        let request = WaitRequest {
            scope: path(scope),
            turn: None,
            history: held.map(|held| self.record_ids(scope, held)),
            limit: Limit { bytes: limit, ..Limit::default() },
            waiter,
            ..WaitRequest::default()
        };
        // Randomness is never used twice, whatever becomes of the WAIT.
        let material =
            Material { token: format!("token {given}"), record: format!("record {given}") };
        let expected = self.model.wait(scope, held, waiter);
        let given = self.session.stage(self.now, &request, material);
        let (delivery, number) = match (given, expected) {
            (Err(given), Err(expected)) => {
                ensure!(given.kind == expected, "refused {given:?}, the model says {expected:?}");
                self.note("refused", &given);
                return Ok(None);
            }
            (Ok(Staged::Ready(delivery)), Ok(Waiting::Answered(number))) => (*delivery, number),
            (
                Ok(Staged::Asking { wait: serial, asks, .. }),
                Ok(Waiting::Asking { wait, asks: expected }),
            ) => {
                let asks: Vec<_> = asks.into_iter().map(|ask| (ask.generator, ask.force)).collect();
                ensure!(asks == expected, "asks {asks:?}, and the model says {expected:?}");
                self.note("asks", &asks);
                let Some(answers) = answers else {
                    self.thinking[usize::from(scope)] = Some((serial, wait));
                    return Ok(None);
                };
                match self.finish(scope, serial, wait, answers)? {
                    Some(finished) => finished,
                    None => return Err("a WAIT was lost while nothing happened".to_owned()),
                }
            }
            (given, expected) => {
                return Err(format!("answered {given:?}, and the model says {expected:?}"));
            }
        };
        self.hear(scope, &delivery);
        if limit.is_none() {
            self.compare(&delivery, number)?;
            if held.is_none() {
                let rows = rows.map_err(|refusal| format!("explain refused: {refusal}"))?;
                agrees(&rows, &delivery)?;
            }
        }
        let entries = delivery.record.iter().flat_map(|record| &record.entries);
        self.entry_ids.push(entries.map(|entry| entry.id.clone()).collect());
        self.names.push(delivery.token.clone());
        ensure!(self.entry_ids.len() == number + 1, "tokens are counted apart");
        Ok(Some((number, delivery)))
    }

    /// Both sides are told what the generators answered; none when the WAIT is gone.
    fn finish(
        &mut self,
        scope: u8,
        serial: Serial,
        wait: u64,
        answers: &Answers,
    ) -> Outcome<Option<(Delivery, usize)>> {
        let answers: BTreeMap<_, _> = answers
            .iter()
            .enumerate()
            .filter_map(|(id, text)| Some((format!("r{id}"), format!("text {}", (*text)?))))
            .collect();
        let given = self.session.finish(self.now, &path(scope), serial, &answers, &Findings::new());
        match (given, self.model.finish(scope, wait, &answers)) {
            (Ok(delivery), Ok(number)) => Ok(Some((delivery, number))),
            (Err(given), Err(expected)) if given.kind == expected => Ok(None),
            (given, expected) => {
                Err(format!("finished with {given:?}, and the model says {expected:?}"))
            }
        }
    }

    fn finish_thinking(&mut self, scope: u8, answers: &Answers) -> Outcome {
        let Some((serial, wait)) = self.thinking[usize::from(scope)].take() else { return Ok(()) };
        if let Some((delivery, number)) = self.finish(scope, serial, wait, answers)? {
            self.hear(scope, &delivery);
            self.compare(&delivery, number)?;
            let entries = delivery.record.iter().flat_map(|record| &record.entries);
            self.entry_ids.push(entries.map(|entry| entry.id.clone()).collect());
            self.names.push(delivery.token.clone());
        }
        Ok(())
    }

    /// A WAIT with a limit offers what fits of one without: whole entries in order, of the FIFO the
    /// leading bodies, later and smaller ones behind those that do not fit.
    fn wait_within(&mut self, scope: u8, bytes: u64, answers: &Answers) -> Outcome {
        let Some((all, unlimited)) = self.wait(scope, None, 1, None, Some(answers))? else {
            return Ok(());
        };
        self.release(all)?;
        let silent = vec![None; 6];
        let Some((_, limited)) = self.wait(scope, None, 1, Some(bytes), Some(&silent))? else {
            return Err("a WAIT with a limit was refused".to_owned());
        };
        let bodies = bodies_of(&unlimited);
        let one_block = unlimited
            .record
            .as_ref()
            .is_some_and(|record| record.form == reminderd::engine::Form::Block);
        let mut fitting = vec![];
        let mut kept: Vec<String> = vec![];
        let mut held = vec![];
        for (body, entry) in bodies.iter().zip(&self.model.tokens[all].entries) {
            let items: Vec<_> = if entry.items.len() > 1 {
                entry.items.iter().map(|(_, body)| body.clone()).collect()
            } else {
                vec![body.clone()]
            };
            let parts = (0..=items.len()).rev().find(|parts| {
                let mut tried = kept.clone();
                if *parts > 0 {
                    tried.push(items[..*parts].join("\n\n"));
                }
                *parts == 0 || content(&tried, one_block).len() as u64 <= bytes
            });
            let parts = parts.unwrap_or(0);
            if parts > 0 {
                kept.push(items[..parts].join("\n\n"));
            }
            if parts < items.len() {
                held.push(entry.entry_type.clone());
            }
            fitting.push(parts);
        }
        let awaits = self.model.tokens.last().is_some_and(|token| token.awaits);
        if awaits {
            return Ok(());
        }
        let given: Vec<_> = limited.held.iter().map(|held| held.entry_type.clone()).collect();
        ensure!(
            bodies_of(&limited) == kept,
            "offers {:?}, fitting is {kept:?}",
            bodies_of(&limited)
        );
        ensure!(given == held, "holds {given:?}, the model {held:?}");
        let oversize = fitting.first() == Some(&0);
        ensure!(limited.oversize == oversize, "oversize is {}", limited.oversize);
        let length = limited.content.as_ref().map_or(0, String::len) as u64;
        ensure!(length <= bytes, "{length} bytes, and at most {bytes} fit");
        self.model.keep_fitting(&fitting);
        Ok(())
    }

    /// What was delivered is what the model says.
    fn compare(&self, delivery: &Delivery, number: usize) -> Outcome {
        let token = &self.model.tokens[number];
        let given: Vec<_> = delivery.record.iter().flat_map(|record| &record.entries).collect();
        let told = |entries: &[Entry]| -> Vec<_> {
            entries.iter().map(|entry| (entry.entry_type.clone(), entry.body.clone())).collect()
        };
        let expected = told(&token.entries);
        ensure!(
            given.len() == token.entries.len(),
            "delivers {:?}, and the model says {expected:?}",
            given.iter().map(|entry| (&entry.entry_type, &entry.body)).collect::<Vec<_>>()
        );
        for (given, expected) in given.iter().zip(&token.entries) {
            ensure!(
                given.entry_type == expected.entry_type
                    && given.key == expected.key
                    && given.kind == expected.kind
                    && says(&given.body, &expected.body),
                "delivers {given:?}, and the model says {expected:?}"
            );
        }
        let problems: Vec<_> = delivery.problems.iter().map(|problem| problem.id.clone()).collect();
        ensure!(problems == token.problems, "left out {problems:?}, not {:?}", token.problems);
        let turn_start = delivery.phase == reminderd::engine::Phase::TurnStart;
        ensure!(turn_start == token.turn_start, "its phase is {:?}", delivery.phase);
        let held = delivery.held.iter().any(|held| held.reason == "receipt");
        ensure!(held == token.awaits, "awaits a receipt: {held}");
        Ok(())
    }

    pub fn commit(&mut self, token: usize, choice: Choice) -> Outcome {
        let ids = &self.entry_ids[token];
        let named = match choice {
            Choice::All => None,
            Choice::None => Some(vec![]),
            Choice::Some(mask) => {
                let bits =
                    ids.iter().enumerate().filter(|(bit, _)| *bit < 8 && mask >> bit & 1 == 1);
                Some(bits.map(|(_, id)| id.clone()).collect())
            }
            Choice::Unknown => Some(vec!["no such entry".to_owned()]),
        };
        let name = self.names[token].clone();
        if self.stumbles {
            self.lose(&name, named.as_deref())?;
        }
        let given = self.session.commit(self.now, &name, named.as_deref(), None);
        let expected = self.model.commit(token, choice);
        self.note("committed", &given);
        let (given, expected) = match (given, expected) {
            (Ok(given), Ok(expected)) => (given, expected),
            (Err(given), Err(expected)) if given.kind == expected => return Ok(()),
            (given, expected) => {
                return Err(format!("committed {given:?}, and the model says {expected:?}"));
            }
        };
        let ids = self.entry_ids[token].clone();
        let meant = |places: &[usize]| -> Vec<_> {
            places.iter().map(|place| ids[*place].clone()).collect()
        };
        let Receipt { record, committed, held, already } = &expected;
        ensure!(
            tells(given.record.as_ref()) == *record
                && given.committed == meant(committed)
                && given.held == meant(held)
                && given.already == *already,
            "answered {given:?}, and the model says {expected:?}"
        );
        if let Some(first) = self.committed.get(&token) {
            ensure!(*first == given.record, "a second commit answers another record");
            return Ok(());
        }
        self.committed.insert(token, given.record.clone());
        if let Some(record) = given.record {
            ensure!(record.is_whole(readable), "the record is not whole: {record:?}");
            let scope = self.model.tokens[token].scope;
            if tells(Some(&record)) {
                self.records[usize::from(scope)].push(record);
            }
        }
        Ok(())
    }

    pub fn release(&mut self, token: usize) -> Outcome {
        let given = self.session.release(&self.names[token]);
        let expected = self.model.release(token);
        self.note("released", &given);
        let given = given.map_err(|refusal| refusal.kind);
        ensure!(given == expected, "released {given:?}, and the model says {expected:?}");
        Ok(())
    }

    /// Every record that was ever committed.
    pub fn told(&self) -> impl Iterator<Item = &Record> {
        self.committed.values().flatten()
    }

    /// Makes a WAIT of the scope possible: a turn, no open call, no open token. `false` where no
    /// agent runs.
    pub fn make_ready(&mut self, scope: u8) -> Outcome<bool> {
        if !self.model.exists(scope) || self.model.is_settled(scope) {
            return Ok(false);
        }
        for call in self.model.open_calls(scope) {
            self.step(&Operation::EndCall { scope, call })?;
        }
        if self.model.open_turn(scope).is_none() {
            self.step(&Operation::BeginTurn { scope, used: false })?;
        }
        for token in 0..self.model.tokens.len() {
            let known = &self.model.tokens[token];
            if known.scope == scope && known.fate == crate::model::Fate::Open {
                self.release(token)?;
            }
        }
        Ok(true)
    }
}

/// Law 11: whoever was said to speak speaks, and nobody else does.
pub fn agrees(rows: &[reminderd::engine::Explanation], delivery: &Delivery) -> Outcome {
    let given: Vec<_> = delivery.record.iter().flat_map(|record| &record.entries).collect();
    for row in rows {
        let spoke = given.iter().any(|entry| match row.id.as_str() {
            "staged" => entry.kind == "staged",
            "turn-events" => entry.kind == "turn-event",
            id => entry.entry_type == id && entry.kind == row.kind,
        });
        // What a client computes is known when it has answered.
        let open = row.next.as_deref() == Some("at the next WAIT, if it answers");
        ensure!(
            row.speaks == spoke || open && spoke,
            "explain says of {} that it {}, and it {}: {}",
            row.id,
            if row.speaks { "speaks" } else { "is silent" },
            if spoke { "spoke" } else { "was silent" },
            row.reason
        );
    }
    Ok(())
}

/// The bodies of a message.
pub fn bodies_of(delivery: &Delivery) -> Vec<String> {
    let entries = delivery.record.iter().flat_map(|record| &record.entries);
    entries.map(|entry| entry.body.clone()).collect()
}

fn content(bodies: &[String], one_block: bool) -> String {
    if one_block {
        return format!("<system-reminder>\n{}\n</system-reminder>", bodies.join("\n\n"));
    }
    let blocks: Vec<_> = bodies
        .iter()
        .map(|body| format!("<system-reminder>\n{body}\n</system-reminder>"))
        .collect();
    blocks.join("\n")
}

fn subject(task: &str) -> String {
    format!("subject of {task}")
}

fn switched(setting: Setting) -> Switch {
    match setting {
        Setting::Off => Switch::Off,
        on => Switch::On(serde_json::from_value(on.settings()).expect("plain data")),
    }
}

/// Whether a body says what the model wants said.
fn says(body: &str, expected: &Body) -> bool {
    match expected {
        Body::Exactly(text) => body == text,
        Body::Mentions(words) => {
            let said: Vec<_> = body.split(|c: char| !c.is_alphanumeric()).collect();
            words.iter().all(|word| said.contains(&word.as_str()))
        }
        Body::Tasks(tasks) => {
            let rows: Vec<_> = body.lines().filter_map(|line| line.strip_prefix("- ")).collect();
            rows.len() == tasks.len()
                && rows.iter().zip(tasks).all(|(row, task)| {
                    let start =
                        format!("{} [{}] {}", task.id, task.status_name(), subject(&task.id));
                    let Some(rest) = row.strip_prefix(&start) else { return false };
                    let owner = PATHS[usize::from(task.owner)];
                    let owner_fits = if owner.is_empty() {
                        !rest.contains('/')
                    } else {
                        rest.contains(&format!("{owner})"))
                    };
                    let blockers_fit = TASKS.iter().all(|other| {
                        rest.contains(other) == task.blocked_by.iter().any(|by| by == other)
                    });
                    owner_fits && blockers_fit
                })
        }
    }
}

/// Whether a record tells anything, beside what it notes of the conversation's start. The model
/// knows that start from what it was given, and needs no notes.
fn tells(record: Option<&Record>) -> bool {
    record.is_some_and(|record| {
        !record.entries.is_empty() || record.silent.iter().any(|silent| silent.kind != "start")
    })
}
