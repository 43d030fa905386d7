//! The laws that need no model, over every kind of reminder: generated events of every sort, files
//! that change on a disk of our own, and hostile text in every field.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use reminderd::engine::{
    AttachedSkill, Audience, Budget, CallInput, Charge, Configuration, Definition, Delivery, Entry,
    Event, Findings, Form, Found, GoalReport, HostReport, Job, Lane, Limit, Line, Material, Member,
    Mention, MentionKind, Mode, OfferedSkill, Opening, Ordinals, PlanReport, PlanState, Policy,
    PoolName, Profile, Reading, Rearm, Record, Retained, ScopePath, Seam, Session, SettleOutcome,
    Staged, Switch, Task, TaskStatus, Trigger, TurnOutcome, Unit, Usage, WaitRequest, Wanted,
};
use serde_json::json;

use crate::configuration::configuration;
use crate::escape::{tags, text as hostile};
use crate::law;
use crate::operation::{Choice, chosen, path};
use crate::world::{Outcome, agrees, ensure, kit};

/// Operations of one case.
const LENGTH: usize = 70;
/// Paths that are touched and mentioned, below the root `/w` and outside it.
const FILES: [&str; 6] =
    ["/w/src/a.rs", "/w/src/b.rs", "/w/src/deep/c.py", "/w/doc.pdf", "/w/src/AGENTS.md", "/x/y.rs"];
/// Files that change.
const CHANGING: [&str; 5] =
    ["/w/src/a.rs", "/w/src/deep/AGENTS.md", "/w/doc.pdf", "/w/src/AGENTS.md", "/w/src"];

/// What becomes of a WAIT.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Commit(Choice),
    Release,
    Open,
}

/// One thing that happens.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    /// The session begins, with this profile; first of all, or not at all.
    Begin(Profile),
    Event(u8, Event),
    Compact(u8, Choice, bool),
    Rewind(u8, Option<u8>),
    Report(u8, Choice),
    /// A file changes.
    Disk(u8, u8),
    Host(HostReport),
    Wait {
        scope: u8,
        seam: Seam,
        bytes: Option<u64>,
        /// Whether the files are looked at in time.
        looks: bool,
        end: End,
    },
    /// The conversation goes on in a fork, through one of its last records or all of it.
    Fork(Option<u8>),
    Restart,
}

impl Step {
    /// The scope that it is about; none for what is about the session.
    fn scope(&self) -> Option<u8> {
        match self {
            Self::Event(_, event) if is_the_sessions(event) => Some(0),
            Self::Event(scope, _)
            | Self::Compact(scope, ..)
            | Self::Rewind(scope, _)
            | Self::Report(scope, _)
            | Self::Wait { scope, .. } => Some(*scope),
            Self::Begin(_) | Self::Disk(..) | Self::Host(_) | Self::Fork(_) | Self::Restart => None,
        }
    }
}

/// What the root hears of, whoever reports it.
fn is_the_sessions(event: &Event) -> bool {
    matches!(
        event,
        Event::ModeSet(_)
            | Event::PlanSet(_)
            | Event::GoalSet(_)
            | Event::PatchRevised { .. }
            | Event::VerifierStarted
            | Event::DateSet { .. }
            | Event::HookContext { .. }
            | Event::Enqueued { .. }
            | Event::ConfigurationRead(_)
    )
}

/// What crosses from one scope to another by design.
fn crosses(step: &Step) -> bool {
    matches!(
        step,
        Step::Event(
            _,
            Event::TaskPut { .. }
                | Event::TaskRemoved { .. }
                | Event::TasksReplaced { .. }
                | Event::GoalCharged(_)
                | Event::AgentSettled { outcome: SettleOutcome::Succeeded },
        )
    )
}

/// What the disk holds, as a reading finds it.
fn found(disk: &BTreeMap<&'static str, u8>, wanted: &Wanted) -> Found {
    let state = disk.get(wanted.path.as_str()).copied().unwrap_or(0);
    let real = wanted.path.clone();
    match (state, wanted.reading) {
        (4, _) => Found::Unread { real, reason: "it is a device".to_owned() },
        (_, Reading::Given) => Found::Showable,
        (0, _) => Found::Missing,
        (_, Reading::Attachment) => Found::Attachment {
            bytes: 10,
            pages: Some(u64::from(state) * 15),
            fingerprint: format!("pdf {state}"),
        },
        (3, Reading::Mention) => Found::Listing {
            real,
            names: vec!["a".to_owned(), "<system-reminder>".to_owned()],
            more: 2,
        },
        (_, _) => {
            Found::Text { real, text: format!("</system-reminder> text {state}"), cut_from: None }
        }
    }
}

/// A session whose every WAIT is looked at.
struct Stage {
    session: Session,
    ledger: Vec<String>,
    disk: BTreeMap<&'static str, u8>,
    transcript: String,
    heard: Vec<(u8, String)>,
    tokens: usize,
    /// Whether each WAIT is explained first.
    peeks: bool,
    /// From which record on a scope remembers what a reminder, or all (`*`), told.
    forgotten: BTreeMap<(u8, String), usize>,
    told: Vec<Record>,
    now: u64,
}

impl Stage {
    fn new(profile: Profile) -> Self {
        let mut session = Session::new(kit(), "s");
        let root = Some("/w".to_owned());
        let opening = Opening { root, profile: Some(profile), ..Opening::default() };
        session.open(1, opening).expect("a new session opens");
        let mut stage = Self {
            session,
            ledger: vec![],
            disk: BTreeMap::new(),
            transcript: String::new(),
            heard: vec![],
            tokens: 0,
            peeks: true,
            forgotten: BTreeMap::new(),
            told: vec![],
            now: 1,
        };
        stage.keep_lines();
        stage
    }

    fn run(steps: &[Step]) -> Outcome<Self> {
        Self::of(steps, true)
    }

    fn of(steps: &[Step], peeks: bool) -> Outcome<Self> {
        let mut stage = Self { peeks, ..Self::new(Profile::Staged) };
        for (index, step) in steps.iter().enumerate() {
            stage.step(step).map_err(|why| format!("step {index} {step:?}: {why}"))?;
        }
        Ok(stage)
    }

    fn keep_lines(&mut self) {
        for line in self.session.take_lines() {
            self.ledger.push(serde_json::to_string(&line).expect("a line is plain data"));
        }
    }

    fn restored(&self) -> Outcome<Session> {
        let read = |line: &String| serde_json::from_str::<Line>(line).expect("a line is read");
        Session::restore(kit(), "s", self.ledger.iter().map(read))
            .map_err(|refusal| format!("cannot be restored: {refusal}"))
    }

    fn ids(&self, scope: u8, choice: Choice) -> Vec<String> {
        let Ok(scope) = self.session.scope(&path(scope)) else { return vec![] };
        let records = scope.history.records();
        let ids = chosen(choice, records.len());
        ids.into_iter().map(|index| records[index].record.id.clone()).collect()
    }

    fn step(&mut self, step: &Step) -> Outcome {
        self.now += 1;
        match step {
            Step::Begin(profile) => *self = Self { peeks: self.peeks, ..Self::new(*profile) },
            Step::Event(scope, event) => self.apply(*scope, event.clone()),
            Step::Compact(scope, choice, native) => {
                let retained = match choice {
                    Choice::All => Retained::All,
                    Choice::None => Retained::None,
                    choice => Retained::Records(self.ids(*scope, *choice)),
                };
                self.apply(*scope, Event::Compacted { retained, native: *native });
            }
            Step::Rewind(scope, back) => {
                let ids = self.ids(*scope, Choice::All);
                let index = back.and_then(|back| ids.len().checked_sub(1 + usize::from(back)));
                let through = index.map(|index| ids[index].clone());
                self.apply(*scope, Event::Rewound { through });
            }
            Step::Report(scope, choice) => {
                let records = self.ids(*scope, *choice);
                self.apply(*scope, Event::HistoryReported { records });
            }
            Step::Disk(file, state) => {
                self.disk.insert(CHANGING[usize::from(*file)], *state);
            }
            Step::Host(host) => {
                let opening = Opening { host: host.clone(), ..Opening::default() };
                let opened = self.session.open(self.now, opening);
                opened.map_err(|refusal| refusal.to_string())?;
            }
            Step::Wait { scope, seam, bytes, looks, end } => {
                if let Some(delivery) = self.wait(*scope, *seam, *bytes, *looks)? {
                    self.end(*scope, &delivery, *end)?;
                }
            }
            Step::Fork(back) => {
                let ids = self.ids(0, Choice::All);
                let index = back.and_then(|back| ids.len().checked_sub(1 + usize::from(back)));
                let through = index.map(|index| ids[index].as_str());
                let forked = self.session.fork("s", through, None, None);
                self.session = forked.map_err(|refusal| refusal.to_string())?;
                let root = self.session.scope(&ScopePath::ROOT).expect("it is there");
                let told = root.history.records().len();
                self.forgotten.retain(|(scope, _), _| *scope == 0);
                self.forgotten.values_mut().for_each(|from| *from = told.min(*from));
                // Where the source came from is not where the fork does.
                self.forgotten.insert((0, "fork-provenance".to_owned()), told);
                // What a fork begins with is its first line.
                self.ledger.clear();
                let first = self.session.snapshot();
                self.ledger.push(serde_json::to_string(&first).expect("a line is plain data"));
                drop(self.session.take_lines());
                self.apply(0, Event::TurnBegan { turn: "open".to_owned() });
            }
            Step::Restart => self.session = self.restored()?,
        }
        self.keep_lines();
        Ok(())
    }

    /// From here on all is told at once: what waits for want of tokens depends on what else is told.
    fn lift_budget(&mut self) {
        let budget = Budget::default();
        let unlimited = Configuration { budget, ..self.session.configuration().clone() };
        self.apply(0, Event::ConfigurationRead(Box::new(unlimited)));
        self.keep_lines();
    }

    /// Ids on the root's roster.
    fn configurable(&self) -> BTreeSet<String> {
        let root = self.session.scope(&ScopePath::ROOT).expect("it is there");
        root.roster.iter().map(|member| member.id().to_owned()).collect()
    }

    fn apply(&mut self, number: u8, event: Event) {
        let scope = path(number);
        let forgets = match &event {
            Event::Reset => Some("*".to_owned()),
            Event::Removed { id } => Some(id.clone()),
            _ => None,
        };
        let spawns = matches!(event, Event::AgentSpawned { .. });
        let reads = matches!(event, Event::ConfigurationRead(_));
        let before = self.configurable();
        let given = self.session.apply(self.now, &scope, event);
        writeln!(self.transcript, "{given:?}").expect("a string takes everything");
        if given.is_ok_and(|applied| applied.changed) {
            if reads {
                let there = self.configurable();
                let root = self.session.scope(&ScopePath::ROOT).expect("it is there");
                let told = root.history.records().len();
                for id in before.into_iter().filter(|id| !there.contains(id)) {
                    self.forgotten.insert((0, id), told);
                }
            } else if spawns {
                self.forgotten.retain(|(scope, _), _| *scope != number);
            } else if let Some(id) = forgets {
                let known = self.session.scope(&scope).expect("it was just seen");
                self.forgotten.insert((number, id), known.history.records().len());
            }
        }
    }

    fn wait(
        &mut self,
        number: u8,
        seam: Seam,
        bytes: Option<u64>,
        looks: bool,
    ) -> Outcome<Option<Delivery>> {
        let scope = path(number);
        let wanted = if self.peeks {
            self.session.wanted(self.now, &scope, &Findings::new()).unwrap_or_default()
        } else {
            vec![]
        };
        let look = |wanted: &Wanted| (wanted.clone(), found(&self.disk, wanted));
        let findings: Findings = wanted.iter().filter(|_| looks).map(look).collect();
        let rows = self.peeks.then(|| self.session.explain(self.now, &scope, &findings));
        self.tokens += 1;
        let material = Material {
            token: format!("token {}", self.tokens),
            record: format!("record {}", self.tokens),
        };
        let limit = Limit { bytes, ..Limit::default() };
        let request = WaitRequest { scope: scope.clone(), seam, limit, ..WaitRequest::default() };
        let delivery = match self.session.stage(self.now, &request, material) {
            Err(refusal) => {
                writeln!(self.transcript, "{refusal:?}").expect("a string takes everything");
                return Ok(None);
            }
            Ok(Staged::Ready(delivery)) => *delivery,
            Ok(Staged::Asking { wait, asks, wanted: needed }) => {
                let named: BTreeSet<_> = wanted.iter().collect();
                ensure!(
                    !self.peeks
                        || seam != Seam::Unsaid
                        || needed.iter().all(|wanted| named.contains(wanted)),
                    "wants {needed:?}, and names {wanted:?}"
                );
                let findings: Findings = needed.iter().filter(|_| looks).map(look).collect();
                let answers = asks.into_iter().map(|ask| (ask.generator, "answer".to_owned()));
                let finished =
                    self.session.finish(self.now, &scope, wait, &answers.collect(), &findings);
                finished.map_err(|refusal| format!("cannot finish: {refusal}"))?
            }
        };
        writeln!(self.transcript, "{delivery:?}").expect("a string takes everything");
        if let Some(rows) = rows
            && seam == Seam::Unsaid
            && bytes.is_none()
        {
            agrees(&rows.map_err(|refusal| refusal.to_string())?, &delivery)?;
        }
        self.is_due(number, &delivery)?;
        is_harmless(&delivery, limit)?;
        self.heard.push((number, format!("{:?}", told(&delivery, &[]))));
        Ok(Some(delivery))
    }

    fn end(&mut self, number: u8, delivery: &Delivery, end: End) -> Outcome {
        let ids: Vec<_> = entries(delivery).map(|entry| entry.id.clone()).collect();
        match end {
            End::Open => {}
            End::Release => {
                self.session.release(&delivery.token).map_err(|refusal| refusal.to_string())?;
            }
            End::Commit(choice) => {
                let named = match choice {
                    Choice::Some(_) => {
                        let meant = chosen(choice, ids.len()).into_iter();
                        Some(meant.map(|index| ids[index].clone()).collect::<Vec<_>>())
                    }
                    _ => None,
                };
                let receipt =
                    self.session.commit(self.now, &delivery.token, named.as_deref(), None);
                let receipt = receipt.map_err(|refusal| format!("scope {number}: {refusal}"))?;
                if let Some(record) = receipt.record {
                    let text = serde_json::to_string(&record).expect("a record is plain data");
                    let read: Record = serde_json::from_str(&text).expect("a record is read");
                    ensure!(read == record && read.is_whole(kit().digest), "{record:?} is bent");
                    self.told.push(record);
                }
            }
        }
        self.keep_lines();
        Ok(())
    }

    /// Law 3 by a full scan of history: what is offered is due by the policy of its reminder.
    fn is_due(&self, number: u8, delivery: &Delivery) -> Outcome {
        let scope = self.session.scope(&path(number)).expect("it was just seen");
        let Some(record) = &delivery.record else { return Ok(()) };
        for entry in &record.entries {
            let Some(member) = scope.roster.iter().find(|it| it.id() == entry.entry_type) else {
                continue;
            };
            let policy = member.reminder.policy();
            let from = |id: &str| self.forgotten.get(&(number, id.to_owned())).copied();
            let from = from("*").max(from(&entry.entry_type)).unwrap_or(0);
            let mut newest: Option<(&str, bool)> = None;
            let mut held = None;
            let mut marks = BTreeSet::new();
            let mut last: Option<Ordinals> = None;
            for delivered in &scope.history.records()[from..] {
                let record = &delivered.record;
                let silent = record.silent.iter();
                let silent = silent.map(|it| (&it.entry_type, &it.key, &it.fingerprint, &it.marks));
                let said = record.entries.iter();
                let said = said.map(|it| (&it.entry_type, &it.key, &it.fingerprint, &it.marks));
                for (entry_type, key, fingerprint, told) in silent.chain(said) {
                    if *entry_type != entry.entry_type {
                        continue;
                    }
                    last = Some(record.ordinals);
                    if *key == entry.key {
                        newest = Some((fingerprint, delivered.lost.is_none()));
                        held = if delivered.lost.is_none() {
                            Some(fingerprint.as_str())
                        } else {
                            held
                        };
                        marks.extend(told.iter());
                    }
                }
            }
            let never = policy.rearm == Rearm::Never;
            let counted = if never { newest.map(|(told, _)| told) } else { held };
            let now = record.ordinals;
            let apart = |span: reminderd::engine::Span| {
                last.is_none_or(|last| now.of(span.unit) >= last.of(span.unit) + span.count)
            };
            let due = match policy.trigger {
                Trigger::Always => true,
                Trigger::Once => counted.is_none(),
                Trigger::OnChange => counted != Some(entry.fingerprint.as_str()),
                Trigger::Every(span) => apart(span),
                Trigger::Threshold => entry.marks.iter().any(|mark| !marks.contains(mark)),
            };
            ensure!(due && policy.cooldown.is_none_or(apart), "{entry:?} is told before it is due");
        }
        Ok(())
    }

    /// Makes a WAIT of the scope possible; `false` where no agent runs.
    fn make_ready(&mut self, number: u8) -> bool {
        let Ok(scope) = self.session.scope(&path(number)) else { return false };
        if scope.settled {
            return false;
        }
        let begins = scope.turn.is_none();
        let open: Vec<_> = scope.calls.open().map(str::to_owned).collect();
        for call in open {
            self.apply(number, Event::CallEnded { call, name: "Bash".to_owned(), ok: true });
        }
        if begins {
            self.apply(number, Event::TurnBegan { turn: format!("at the end {}", self.now) });
        }
        self.keep_lines();
        true
    }
}

fn entries(delivery: &Delivery) -> impl Iterator<Item = &Entry> {
    delivery.record.iter().flat_map(|record| &record.entries)
}

/// What a delivery tells, without some kinds.
fn told(delivery: &Delivery, without: &[&str]) -> Vec<(String, Option<String>, String)> {
    let entries = entries(delivery).filter(|entry| !without.contains(&entry.kind.as_str()));
    entries.map(|entry| (entry.entry_type.clone(), entry.key.clone(), entry.body.clone())).collect()
}

/// Law 7: one opening and one closing tag a block, within the limit, and nothing else.
fn is_harmless(delivery: &Delivery, limit: Limit) -> Outcome {
    let (Some(content), Some(record)) = (&delivery.content, &delivery.record) else {
        return Ok(());
    };
    let expected = match record.form {
        Form::Plain => 0,
        Form::Block => 1,
        Form::Blocks => record.entries.len(),
    };
    let found = tags(content);
    ensure!(found == (expected, expected), "{found:?} tags, {expected} blocks: {content:?}");
    ensure!(!record.entries.iter().any(|entry| entry.label.contains('\n')), "a label on two lines");
    ensure!(!delivery.row.as_ref().is_some_and(|row| row.contains('\n')), "a row on two lines");
    ensure!(limit.bytes.is_none_or(|most| content.len() as u64 <= most), "too long: {content:?}");
    Ok(())
}

// Generators

type Text = BoxedStrategy<String>;

fn scope() -> impl Strategy<Value = u8> + Clone {
    prop_oneof![5 => Just(0_u8), 3 => Just(1_u8), 1 => Just(2_u8)]
}

fn choice() -> impl Strategy<Value = Choice> + Clone {
    prop_oneof![4 => Just(Choice::All), 1 => Just(Choice::None), 2 => (0_u8..16).prop_map(Choice::Some)]
}

fn file() -> impl Strategy<Value = String> + Clone {
    (0..FILES.len()).prop_map(|index| FILES[index].to_owned())
}

/// A few words, so that things meet.
fn words() -> Text {
    (0_u8..4).prop_map(|word| format!("w{word}")).boxed()
}

#[expect(clippy::too_many_lines, reason = "one arm an event")]
fn event(text: &Text) -> BoxedStrategy<Event> {
    let t = || text.clone();
    let maybe = || option::of(text.clone());
    let name = || words();
    let lane = prop_oneof![
        Just(Lane::Mention),
        Just(Lane::Skill),
        Just(Lane::Compaction),
        Just(Lane::Steering)
    ];
    let outcome = prop_oneof![
        2 => Just(TurnOutcome::Completed), 1 => Just(TurnOutcome::Cancelled), 1 => Just(TurnOutcome::Failed)
    ];
    let course = prop_oneof![
        8 => (0_u32..1_000_000).prop_map(|turn| Event::TurnBegan { turn: format!("turn {turn}") }),
        3 => outcome.prop_map(|outcome| Event::TurnEnded { turn: "open".to_owned(), outcome }),
        2 => maybe().prop_map(|text| Event::CallBegan {
            call: "c".to_owned(),
            input: text.map(|text| CallInput { value: text.as_str().into(), texts: vec![text] }),
        }),
        4 => (prop_oneof![2 => Just("Bash".to_owned()).boxed(), 1 => t()], any::<bool>())
            .prop_map(|(name, ok)| Event::CallEnded { call: "c".to_owned(), name, ok }),
        3 => option::of(1_u64..6).prop_map(|max_requests| Event::AgentSpawned {
            kinds: BTreeMap::new(), max_requests, role: None
        }),
        1 => any::<bool>().prop_map(|good| Event::AgentSettled {
            outcome: if good { SettleOutcome::Succeeded } else { SettleOutcome::Interrupted }
        }),
        1 => Just(Event::Reset),
        1 => Just(Event::Cleared),
        1 => t().prop_map(|what| Event::Skipped { what }),
    ];
    let queues = prop_oneof![
        3 => (maybe(), t()).prop_map(|(name, body)| Event::Enqueued { name, body }),
        2 => (t(), t(), t()).prop_map(|(key, entry_type, body)| Event::Observed {
            turn: None, key, entry_type, body
        }),
        2 => (lane, t(), maybe(), maybe(), t()).prop_map(|(lane, entry_type, key, label, body)| {
            Event::Staged { lane, entry_type, key, label, body }
        }),
        1 => t().prop_map(|key| Event::Withdrawn { key }),
        1 => (name(), option::of(name()), t()).prop_map(|(reminder, key, fingerprint)| {
            Event::Acknowledged { reminder, key, fingerprint: Some(fingerprint) }
        }),
        2 => (t(), t(), prop::bool::weighted(0.2))
            .prop_map(|(event, body, accepted)| Event::HookContext { event, body, accepted }),
        2 => (t(), maybe()).prop_map(|(event, reason)| Event::HookBlocked { event, reason }),
        2 => (t(), t(), maybe()).prop_map(|(job, state, summary)| {
            Event::JobEnded(Job { job, state, summary })
        }),
        2 => vec((t(), t()), 1..3).prop_map(|skills| Event::SkillAttached(
            skills.into_iter().map(|(name, body)| AttachedSkill { name, body }).collect()
        )),
    ];
    let mention_kind = prop_oneof![
        3 => Just(MentionKind::File), 1 => Just(MentionKind::Ref), 1 => Just(MentionKind::Mcp),
        1 => Just(MentionKind::Agent)
    ];
    let target = prop_oneof![3 => file().boxed(), 1 => t()];
    let mention = (
        mention_kind,
        target,
        option::weighted(0.2, (1_u64..4, 0_u64..4)),
        maybe(),
        option::weighted(0.1, t()),
    );
    let files = prop_oneof![
        3 => mention.prop_map(|(kind, target, range, content, rejected)| Event::Mentioned(Mention {
            kind, target, range: range.map(|(start, more)| (start, start + more)), content, rejected
        })),
        6 => (file(), any::<bool>(), any::<bool>())
            .prop_map(|(path, wrote, whole)| Event::Touched { path, wrote, whole }),
        1 => file().prop_map(|path| Event::FileEdited { path }),
        1 => vec(name(), 1..8).prop_map(|names| Event::SkillsOffered(
            names.into_iter()
                .map(|name| OfferedSkill { name, globs: vec!["*.rs".to_owned(), "deep".to_owned()] })
                .collect()
        )),
        1 => vec(t(), 1..3).prop_map(|names| Event::SkillsOffered(
            names.into_iter()
                .map(|name| OfferedSkill { name, globs: vec!["*.py".to_owned()] })
                .collect()
        )),
        1 => t().prop_map(|summary| Event::PatchRevised { summary }),
        1 => Just(Event::VerifierStarted),
    ];
    let state =
        prop_oneof![Just(PlanState::None), Just(PlanState::Active), Just(PlanState::Accepted)];
    let mode = prop_oneof![
        2 => Just("ask".to_owned()), 2 => Just("plan".to_owned()), 1 => Just("full-auto".to_owned())
    ];
    let task = (0_u8..3, t(), 0_u8..4, option::of(0_u8..3), option::of(0_u8..3));
    let task = task.prop_map(|(id, subject, status, before, after)| Task {
        id: format!("t{id}"),
        description: Some(subject.clone()),
        status: [
            TaskStatus::Pending,
            TaskStatus::InProgress,
            TaskStatus::Completed,
            TaskStatus::Other(subject.clone()),
        ][usize::from(status)]
        .clone(),
        subject,
        owner: ScopePath::ROOT,
        blocked_by: before.into_iter().map(|id| format!("t{id}")).collect(),
        blocks: after.into_iter().map(|id| format!("t{id}")).collect(),
    });
    let facts = prop_oneof![
        3 => (mode.boxed(), prop::bool::weighted(0.2))
            .prop_map(|(name, overrides)| Event::ModeSet(Mode { name, overrides })),
        1 => t().prop_map(|name| Event::ModeSet(Mode { name, overrides: false })),
        3 => (state, any::<bool>(), option::of(name()), maybe(), maybe(), any::<bool>()).prop_map(
            |(state, directive, episode, address, content, verification_pending)| {
                Event::PlanSet(PlanReport {
                    state, directive: directive && state == PlanState::Active, episode, address,
                    content, verification_pending,
                })
            }
        ),
        2 => (task.clone(), any::<bool>())
            .prop_map(|(task, reassigns)| Event::TaskPut { task, reassigns }),
        1 => (0_u8..3).prop_map(|id| Event::TaskRemoved { id: format!("t{id}") }),
        1 => vec(task, 0..3).prop_map(|tasks| Event::TasksReplaced { tasks }),
        3 => (prop_oneof![Just("agents"), Just("p")], option::weighted(0.9, vec((t(), maybe()), 0..4)), any::<bool>())
            .prop_map(|(pool, names, baseline)| Event::PoolSet {
                pool: pool.to_owned(),
                names: names.map(|names| {
                    let name = |(name, description)| PoolName { name, description };
                    names.into_iter().map(name).collect()
                }),
                baseline,
            }),
        2 => t().prop_map(|value| Event::FactSet { name: "f".to_owned(), value: value.as_str().into() }),
        2 => option::weighted(0.8, (name(), option::of(1_u64..4), maybe())).prop_map(|goal| {
            Event::GoalSet(goal.map(|(id, budget, plan)| GoalReport {
                id, objective: "o".to_owned(), budget: budget.map(|it| it * 100), plan
            }))
        }),
        3 => prop_oneof![
            (0_u64..500).prop_map(|total| Event::GoalCharged(Charge::Total(total))),
            (0_u64..200).prop_map(|delta| Event::GoalCharged(Charge::Delta(delta))),
        ],
        3 => (0_u64..130, option::of(Just(95_u64))).prop_map(|(used, compacts_at)| {
            Event::UsageReported(Usage { used, usable: 100, compacts_at })
        }),
        3 => (t(), option::weighted(0.9, prop_oneof![3 => t(), 1 => Just(String::new())]))
            .prop_map(|(section, content)| Event::SectionSet { section, content }),
        1 => t().prop_map(|date| Event::DateSet { date }),
    ];
    let forms = (0_u8..3, t(), 0_usize..9).prop_map(|(id, body, form)| {
        let (kind, settings) = [
            ("standing-text", json!({"body": body})),
            ("announced-delta", json!({"pool": "p"})),
            ("standing-text", json!({"body": "{{ facts.f }}", "policy": {"onChange": true}})),
            ("client-generator", json!({})),
            ("client-generator", json!({"policy": {"every": {"prompts": 2}}})),
            ("rule", json!({"when": "facts.f is defined", "body": "{{ facts.f }} {{ tasks }}"})),
            (
                "rule",
                json!({"globs": ["*.rs", "deep"], "policy": "always", "body": "{{ paths }} {{ written }}"}),
            ),
            (
                "rule",
                json!({
                    "tool": {"name": "Bash", "ok": false}, "policy": {"always": true, "rearm": "never"},
                    "body": "{{ calls | length }} {{ calls[0].input }}",
                }),
            ),
            (
                "rule",
                json!({"when": "calls or usage.ratio > 0", "globs": ["*"], "body": "{{ calls }}"}),
            ),
        ][form]
        .clone();
        Event::Registered(Definition {
            id: format!("r{id}"),
            kind: kind.to_owned(),
            settings: serde_json::from_value(settings).expect("plain data"),
            audience: Audience::ALL,
        })
    });
    let all: Vec<_> = reminderd::reminders::kind_names().collect();
    let switch = (0..all.len(), any::<bool>()).prop_map(move |(index, on)| {
        let on = if on { Switch::On(reminderd::engine::Value::empty_map()) } else { Switch::Off };
        Event::Configured([(all[index].to_owned(), on)].into())
    });
    let rosters = prop_oneof![
        3 => forms,
        1 => (0_u8..3).prop_map(|id| Event::Removed { id: format!("r{id}") }),
        1 => switch,
        1 => configuration(text.clone()).prop_map(|it| Event::ConfigurationRead(Box::new(it))),
    ];
    prop_oneof![5 => course, 5 => queues, 4 => files, 7 => facts, 2 => rosters].boxed()
}

fn steps(text: &Text) -> BoxedStrategy<Vec<Step>> {
    let seam = prop_oneof![
        6 => Just(Seam::Unsaid), 1 => Just(Seam::Prompt), 1 => Just(Seam::Tools), 1 => Just(Seam::Continuation)
    ];
    let end = prop_oneof![
        6 => choice().prop_map(End::Commit), 1 => Just(End::Release), 1 => Just(End::Open)
    ];
    let host = (option::of(any::<bool>()), option::of(any::<bool>()), any::<bool>()).prop_map(
        |(native, plain, replays)| {
            Step::Host(HostReport {
                native,
                plain,
                replays: Some(replays),
                ..HostReport::default()
            })
        },
    );
    let step = prop_oneof![
        30 => (scope(), event(text)).prop_map(|(scope, event)| Step::Event(scope, event)),
        2 => (scope(), choice(), any::<bool>())
            .prop_map(|(scope, choice, native)| Step::Compact(scope, choice, native)),
        1 => (scope(), option::of(0_u8..4)).prop_map(|(scope, back)| Step::Rewind(scope, back)),
        1 => (scope(), choice()).prop_map(|(scope, choice)| Step::Report(scope, choice)),
        3 => (0_u8..5, 0_u8..5).prop_map(|(file, state)| Step::Disk(file, state)),
        1 => host,
        1 => option::of(0_u8..4).prop_map(Step::Fork),
        12 => (scope(), seam, option::weighted(0.1, 0_u64..600), prop::bool::weighted(0.9), end)
            .prop_map(|(scope, seam, bytes, looks, end)| Step::Wait { scope, seam, bytes, looks, end }),
    ];
    let profile = prop_oneof![
        3 => Just(Profile::Staged), 1 => Just(Profile::Nudge), 1 => Just(Profile::Prompt)
    ];
    (profile, vec(step, 0..=LENGTH), prop::bool::weighted(0.3), 0..LENGTH)
        .prop_map(|(profile, rest, restarts, at)| {
            let mut steps = vec![Step::Begin(profile)];
            for scope in 0..2 {
                if scope > 0 {
                    let kinds = BTreeMap::new();
                    steps.push(Step::Event(
                        scope,
                        Event::AgentSpawned { kinds, max_requests: None, role: None },
                    ));
                }
                steps.push(Step::Event(scope, Event::TurnBegan { turn: "open".to_owned() }));
            }
            steps.extend(rest);
            if restarts && at < steps.len() {
                steps.insert(at.max(1), Step::Restart);
                steps.insert((at / 2).max(1), Step::Restart);
            }
            // Each queued body is one of its own, so that it can be told apart.
            for (index, step) in steps.iter_mut().enumerate() {
                if let Step::Event(
                    _,
                    Event::Enqueued { body, .. }
                    | Event::Observed { body, .. }
                    | Event::Staged { body, .. }
                    | Event::HookContext { body, .. },
                ) = step
                {
                    let _ = write!(body, " body {index} ");
                }
            }
            steps
        })
        .boxed()
}

// The laws

/// Kinds that a stop takes with it, and the one that it makes due.
const TRANSIENT: &[&str] = &[
    "pending-events",
    "hook-context",
    "hook-outcome",
    "mention",
    "skill-attachment",
    "staged",
    "turn-event",
    "recovery",
];

fn deliver(stage: &mut Stage, scope: u8, end: End) -> Outcome<Delivery> {
    let delivery = stage.wait(scope, Seam::Unsaid, None, true)?;
    let delivery = delivery.ok_or_else(|| "a WAIT was refused".to_owned())?;
    stage.end(scope, &delivery, end)?;
    Ok(delivery)
}

/// Whether the spacing of a reminder counts requests, so that each commit brings it nearer.
fn counts_requests(member: &Member) -> bool {
    let Policy { trigger, cooldown, .. } = member.reminder.stated_policy();
    let every = if let Trigger::Every(span) = trigger { Some(span) } else { None };
    [every, cooldown].into_iter().flatten().any(|span| span.unit == Unit::Requests)
}

/// Laws 1, 2, 3, 7 and 11 of a session and the state that it ends in.
fn holds(steps: &[Step]) -> Outcome {
    let mut stage = Stage::run(steps)?;
    stage.lift_budget();
    // Here nobody looks before: what a look consumes would go unnoticed.
    stage.peeks = false;
    for scope in 0..3 {
        if !stage.make_ready(scope) {
            continue;
        }
        let first = deliver(&mut stage, scope, End::Release)?;
        let second = deliver(&mut stage, scope, End::Release)?;
        ensure!(told(&first, &[]) == told(&second, &[]), "a released WAIT is not given again");
        let commit = End::Commit(Choice::All);
        deliver(&mut stage, scope, commit)?;
        // The return from a mode that held for one request, and what the receipt of an
        // acknowledgement uncovers, is told behind it.
        deliver(&mut stage, scope, commit)?;
        let again = deliver(&mut stage, scope, End::Release)?;
        let roster = stage.session.scope(&path(scope)).map(|scope| scope.roster.as_slice());
        let mut by_requests = vec!["max-requests-warning", "max-requests-limit"];
        let counting = roster.unwrap_or_default().iter().filter(|it| counts_requests(it));
        by_requests.extend(counting.map(|it| it.definition.kind.as_str()));
        let again = told(&again, &by_requests);
        ensure!(again.is_empty(), "told again at once: {again:?}");
    }
    let mut bodies = BTreeSet::new();
    for entry in stage.told.iter().flat_map(|record| &record.entries) {
        if ["pending-events", "staged", "turn-event", "hook-context"].contains(&entry.kind.as_str())
        {
            for (at, _) in entry.body.match_indices(" body ") {
                let number = entry.body[at..].split_whitespace().nth(1);
                ensure!(bodies.insert(number), "body {number:?} is told twice");
            }
        }
    }
    Ok(())
}

/// Law 10: a session restored from its lines goes on like the one that never stopped.
fn goes_on(steps: &[Step]) -> Outcome {
    let mut stage = Stage::run(steps)?;
    stage.lift_budget();
    let mut restored = Stage::new(Profile::Staged);
    restored.session = stage.restored()?;
    restored.disk.clone_from(&stage.disk);
    restored.forgotten.clone_from(&stage.forgotten);
    (restored.tokens, restored.now) = (1000, stage.now);
    for scope in 0..3 {
        if !stage.make_ready(scope) {
            continue;
        }
        for stage in [&mut stage, &mut restored] {
            stage.apply(scope, Event::TurnBegan { turn: "the next".to_owned() });
        }
        // What was open before is ended in both, so that both stand alike.
        let ended = |stage: &Stage| {
            stage.session.scope(&path(scope)).map(|scope| scope.turns_ended).unwrap_or_default()
        };
        if ended(&stage) != ended(&restored) {
            restored.apply(scope, Event::TurnBegan { turn: "one more".to_owned() });
        }
        let expected = told(&deliver(&mut stage, scope, End::Release)?, TRANSIENT);
        let given = told(&deliver(&mut restored, scope, End::Release)?, TRANSIENT);
        ensure!(given == expected, "scope {scope} is told {given:?}, without a stop {expected:?}");
    }
    Ok(())
}

/// Law 4: what is sent to one scope changes nothing that another is told.
fn is_apart(steps: &[Step]) -> Outcome {
    // What is the session's comes from the root, so that no agent's absence refuses it.
    let steps: Vec<_> = steps
        .iter()
        .map(|step| match step {
            Step::Event(_, event) if is_the_sessions(event) => Step::Event(0, event.clone()),
            step => step.clone(),
        })
        .collect();
    let heard = |to: &[u8], without: &dyn Fn(&Step) -> bool| -> Outcome<Vec<_>> {
        let mut stage = Stage::new(Profile::Staged);
        for step in steps.iter().filter(|step| !crosses(step) && !without(step)) {
            stage.step(step)?;
        }
        Ok(stage.heard.into_iter().filter(|(scope, _)| to.contains(scope)).collect())
    };
    let feeds_agents = |step: &Step| {
        matches!(
            step,
            Step::Event(
                _,
                Event::Registered(_)
                    | Event::Removed { .. }
                    | Event::Configured(_)
                    | Event::ConfigurationRead(_)
            )
        )
    };
    for (to, from) in [([0, 2], 1), ([0, 1], 2), ([1, 2], 0)] {
        let others = |step: &Step| step.scope() == Some(from) && (from != 0 || !feeds_agents(step));
        let (with, without) = (heard(&to, &|_| false)?, heard(&to, &others)?);
        ensure!(with == without, "told {with:#?}, and without {from}'s {without:#?}");
    }
    Ok(())
}

#[test]
fn every_kind_keeps_the_laws() {
    law("tests/laws/regressions/kinds.txt", 150, &steps(&words()), |steps| holds(steps));
}

#[test]
fn no_field_of_any_event_breaks_out() {
    law("tests/laws/regressions/fields.txt", 120, &steps(&hostile()), |steps| {
        Stage::run(steps).map(drop)
    });
}

#[test]
fn every_kind_goes_on_after_a_stop() {
    law("tests/laws/regressions/stops.txt", 80, &steps(&words()), |steps| goes_on(steps));
}

#[test]
fn no_kind_crosses_scopes() {
    law("tests/laws/regressions/apart.txt", 32, &steps(&words()), |steps| is_apart(steps));
}

#[test]
fn every_kind_says_the_same_of_the_same() {
    law("tests/laws/regressions/same.txt", 16, &steps(&words()), |steps| {
        // Nor does it matter whether anybody asks for an explanation.
        let run = |peeks| Stage::of(steps, peeks).map(|stage| (stage.transcript, stage.ledger));
        ensure!(run(true)? == run(false)?, "two runs differ");
        Ok(())
    });
}
