//! What can happen to a session, as small data: entities are small numbers, so that a case that
//! shrinks stays a case about the same things. Printed one operation a line.

use std::fmt;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use reminderd::engine::{Audience, Definition, Profile, ScopePath};
use serde_json::{Value, json};

/// The scopes of a case: the root, two agents, and an agent of the first one.
pub const PATHS: [&str; 4] = ["", "/a", "/b", "/a/c"];
/// Names that pools are made of; a mask says which.
pub const NAMES: [&str; 4] = ["n0", "n1", "n2", "n3"];
/// Tasks of a case.
pub const TASKS: [&str; 3] = ["t0", "t1", "t2"];

/// A scope by its number.
pub fn path(scope: u8) -> ScopePath {
    match PATHS[usize::from(scope)] {
        "" => ScopePath::ROOT,
        agent => ScopePath::agent(agent).expect("an agent's path"),
    }
}

/// The names of a mask.
pub fn names(mask: u8) -> Vec<&'static str> {
    NAMES.into_iter().enumerate().filter(|(bit, _)| mask >> bit & 1 == 1).map(|it| it.1).collect()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Turns,
    Requests,
    Prompts,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub unit: Unit,
    pub count: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    Once,
    OnChange,
    Always,
    Every(Span),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    pub trigger: Trigger,
    pub never_rearmed: bool,
    pub cooldown: Option<Span>,
    pub per_turn: Option<u64>,
    pub per_session: Option<u64>,
}

impl Policy {
    /// A policy with nothing beside its trigger.
    pub const fn plain(trigger: Trigger) -> Self {
        Self { trigger, never_rearmed: false, cooldown: None, per_turn: None, per_session: None }
    }

    fn json(&self) -> Value {
        let span = |span: Span| match span.unit {
            Unit::Turns => json!({"turns": span.count}),
            Unit::Requests => json!({"requests": span.count}),
            Unit::Prompts => json!({"prompts": span.count}),
        };
        let mut policy = match self.trigger {
            Trigger::Once => json!({"once": true}),
            Trigger::OnChange => json!({"onChange": true}),
            Trigger::Always => json!({"always": true}),
            Trigger::Every(every) => json!({ "every": span(every) }),
        };
        if self.never_rearmed {
            policy["rearm"] = json!("never");
        }
        if let Some(cooldown) = self.cooldown {
            policy["cooldown"] = span(cooldown);
        }
        if let Some(most) = self.per_turn {
            policy["maxPerTurn"] = json!(most);
        }
        if let Some(most) = self.per_session {
            policy["maxPerSession"] = json!(most);
        }
        policy
    }
}

/// The body of a standing text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Text {
    /// No markup.
    Plain(u8),
    /// Names a fact, and cannot be worked out without it.
    Fact(u8),
    /// Blank while the fact is not known.
    IfFact(u8),
}

impl Text {
    fn template(self) -> String {
        match self {
            Self::Plain(number) => format!("text {number}"),
            Self::Fact(fact) => format!("fact {{{{ facts.f{fact} }}}}"),
            Self::IfFact(fact) => {
                format!(
                    "{{% if facts.f{fact} is defined %}}fact {{{{ facts.f{fact} }}}}{{% endif %}}"
                )
            }
        }
    }
}

/// Where a standing text stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextLane {
    Mention,
    Roster,
    Sections,
}

/// What a client registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Text { body: Text, policy: Option<Policy>, lane: TextLane },
    Pool { pool: u8, baseline: Option<u8>, cooldown: Option<Span>, per_session: Option<u64> },
    Generator { policy: Option<Policy> },
    Rule(Rule),
}

/// A rule: it speaks when all that is given holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// This fact is above 0; it cannot be worked out while the fact is not known.
    pub fact: Option<u8>,
    /// A file below `src` was touched.
    pub touched: bool,
    /// A test failed.
    pub failed: bool,
    pub policy: Option<Policy>,
}

impl Rule {
    fn settings(self) -> Value {
        let mut body = vec!["rule".to_owned()];
        let mut settings = json!({});
        if let Some(fact) = self.fact {
            settings["when"] = json!(format!("facts.f{fact} > 0"));
            body.push(format!("fact {{{{ facts.f{fact} }}}}"));
        }
        if self.touched {
            settings["globs"] = json!(["src/**"]);
            body.push("paths {{ paths | join(' ') }}".to_owned());
        }
        if self.failed {
            settings["tool"] = json!({"name": "Test", "ok": false});
            body.push("calls {{ calls | length }}".to_owned());
        }
        settings["body"] = json!(body.join(" "));
        settings
    }
}

/// Files that are touched; the last is not below `src`.
pub const TOUCHED: [&str; 3] = ["src/a", "src/b", "c"];

impl Form {
    /// What the engine is given.
    pub fn definition(&self, id: u8, audience: Audience) -> Definition {
        let (kind, mut settings) = match self {
            Self::Text { body, lane, .. } => {
                let lane = match lane {
                    TextLane::Mention => "mention",
                    TextLane::Roster => "roster",
                    TextLane::Sections => "sections",
                };
                ("standing-text", json!({"body": body.template(), "lane": lane}))
            }
            Self::Pool { pool, baseline, cooldown, per_session } => {
                let mut settings = json!({"pool": format!("p{pool}")});
                if let Some(mask) = baseline {
                    settings["baseline"] = json!(names(*mask));
                }
                let policy = Policy {
                    cooldown: *cooldown,
                    per_session: *per_session,
                    ..Policy::plain(Trigger::OnChange)
                };
                if policy != Policy::plain(Trigger::OnChange) {
                    settings["policy"] = policy.json();
                }
                ("announced-delta", settings)
            }
            Self::Generator { .. } => ("client-generator", json!({"client": true})),
            Self::Rule(rule) => ("rule", rule.settings()),
        };
        if let Self::Text { policy: Some(policy), .. }
        | Self::Generator { policy: Some(policy) }
        | Self::Rule(Rule { policy: Some(policy), .. }) = self
        {
            settings["policy"] = policy.json();
        }
        Definition {
            id: format!("r{id}"),
            kind: kind.to_owned(),
            settings: serde_json::from_value(settings).expect("plain data"),
            audience,
        }
    }
}

/// What a switch names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    Pending,
    Modes,
    Planning,
    Nudge,
    Recovery,
    Warning,
    Limit,
    Registered(u8),
}

impl Name {
    pub fn text(self) -> String {
        match self {
            Self::Pending => "pending-events".to_owned(),
            Self::Modes => "mode-constraints".to_owned(),
            Self::Planning => "plan-mode".to_owned(),
            Self::Recovery => "recovery".to_owned(),
            Self::Nudge => "task-nudge".to_owned(),
            Self::Warning => "max-requests-warning".to_owned(),
            Self::Limit => "max-requests-limit".to_owned(),
            Self::Registered(id) => format!("r{id}"),
        }
    }
}

/// How it is switched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    Off,
    On,
    /// On, and at most this often in a turn.
    PerTurn(u64),
    /// On, and nudging after and every so many turns or requests. Means the nudge alone.
    Stale {
        requests: bool,
        after: u64,
        cooldown: u64,
    },
}

impl Setting {
    pub fn settings(self) -> Value {
        match self {
            Self::Off | Self::On => json!({}),
            Self::PerTurn(most) => json!({ "maxPerTurn": most }),
            Self::Stale { requests, after, cooldown } => {
                let unit = if requests { "requests" } else { "turns" };
                json!({"unit": unit, "after": after, "cooldown": cooldown})
            }
        }
    }
}

/// Which of several things: a mask over them, counted from the newest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    All,
    None,
    Some(u8),
    /// One that does not exist.
    Unknown,
}

/// The lanes that `reminder/stage` knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StageLane {
    Mention,
    Skill,
    Compaction,
    Steering,
}

/// What generators r0 to r5 answer, in order; none when they are silent.
pub type Answers = Vec<Option<u8>>;

/// One thing that happens. Bodies that are queued are numbered by the driver, so that each is
/// unlike any other.
#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    BeginTurn {
        scope: u8,
        used: bool,
    },
    EndTurn {
        scope: u8,
        right: bool,
    },
    BeginCall {
        scope: u8,
        call: u8,
    },
    EndCall {
        scope: u8,
        call: u8,
    },
    /// A tool call without its beginning.
    Call {
        scope: u8,
        ok: bool,
    },
    Touch {
        scope: u8,
        file: u8,
    },
    Spawn {
        agent: u8,
        cap: Option<u64>,
        switch: Option<(Name, Setting)>,
    },
    Settle {
        agent: u8,
        succeeded: bool,
    },
    Enqueue,
    Observe {
        scope: u8,
        key: u8,
    },
    Stage {
        scope: u8,
        lane: StageLane,
        entry_type: u8,
        key: Option<u8>,
    },
    Withdraw {
        scope: u8,
        key: u8,
    },
    Acknowledge {
        scope: u8,
        name: Name,
        key: Option<u8>,
        text: Option<u8>,
    },
    AcknowledgeStaged {
        scope: u8,
        entry_type: u8,
        key: Option<u8>,
    },
    Register {
        scope: u8,
        id: u8,
        form: Form,
        root: bool,
        agents: bool,
    },
    Remove {
        scope: u8,
        id: u8,
    },
    Configure {
        scope: u8,
        name: Name,
        setting: Setting,
    },
    Reset {
        scope: u8,
    },
    Compact {
        scope: u8,
        retained: Choice,
    },
    Rewind {
        scope: u8,
        through: Option<u8>,
    },
    Clear {
        scope: u8,
    },
    Report {
        scope: u8,
        held: Choice,
    },
    Mode {
        planning: bool,
        overrides: bool,
    },
    Plan {
        active: bool,
    },
    TaskPut {
        scope: u8,
        task: u8,
        status: u8,
        owner: Option<u8>,
        blocked_by: Option<u8>,
    },
    TaskRemove {
        scope: u8,
        task: u8,
    },
    TasksReplace {
        scope: u8,
        tasks: u8,
    },
    Pool {
        scope: u8,
        pool: u8,
        names: Option<u8>,
        baseline: bool,
    },
    Fact {
        scope: u8,
        fact: u8,
        value: Option<u8>,
    },
    Wait {
        scope: u8,
        waiter: u64,
        answers: Answers,
    },
    /// A WAIT that says what its payload holds.
    WaitHolding {
        scope: u8,
        held: Choice,
        answers: Answers,
    },
    /// A WAIT whose generators are thinking until `Finish`.
    WaitThinking {
        scope: u8,
        waiter: u64,
    },
    Finish {
        scope: u8,
        answers: Answers,
    },
    Abandon {
        scope: u8,
    },
    /// A WAIT with a limit in bytes.
    WaitWithin {
        scope: u8,
        bytes: u64,
        answers: Answers,
    },
    /// The newest token is 0.
    Commit {
        token: u8,
        entries: Choice,
    },
    Release {
        token: u8,
    },
    /// The usual course: a WAIT whose message is sent.
    Deliver {
        scope: u8,
        answers: Answers,
    },
    Disconnect {
        waiter: u64,
    },
    Reopen {
        profile: Option<Profile>,
    },
    Restart,
}

impl Operation {
    /// Whether it is anything but a WAIT and what becomes of it.
    pub fn is_event(&self) -> bool {
        !matches!(
            self,
            Self::Wait { .. }
                | Self::WaitHolding { .. }
                | Self::WaitThinking { .. }
                | Self::WaitWithin { .. }
                | Self::Finish { .. }
                | Self::Abandon { .. }
                | Self::Commit { .. }
                | Self::Release { .. }
                | Self::Deliver { .. }
        )
    }

    /// The scope that it is about; none for what is about the session.
    pub fn scope(&self) -> Option<u8> {
        match self {
            Self::BeginTurn { scope, .. }
            | Self::EndTurn { scope, .. }
            | Self::BeginCall { scope, .. }
            | Self::EndCall { scope, .. }
            | Self::Call { scope, .. }
            | Self::Touch { scope, .. }
            | Self::Observe { scope, .. }
            | Self::Stage { scope, .. }
            | Self::Withdraw { scope, .. }
            | Self::Acknowledge { scope, .. }
            | Self::AcknowledgeStaged { scope, .. }
            | Self::Register { scope, .. }
            | Self::Remove { scope, .. }
            | Self::Configure { scope, .. }
            | Self::Reset { scope }
            | Self::Compact { scope, .. }
            | Self::Rewind { scope, .. }
            | Self::Clear { scope }
            | Self::Report { scope, .. }
            | Self::TaskPut { scope, .. }
            | Self::TaskRemove { scope, .. }
            | Self::TasksReplace { scope, .. }
            | Self::Pool { scope, .. }
            | Self::Fact { scope, .. }
            | Self::Wait { scope, .. }
            | Self::WaitHolding { scope, .. }
            | Self::WaitThinking { scope, .. }
            | Self::Finish { scope, .. }
            | Self::Abandon { scope }
            | Self::WaitWithin { scope, .. }
            | Self::Deliver { scope, .. } => Some(*scope),
            Self::Spawn { agent, .. } | Self::Settle { agent, .. } => Some(*agent),
            Self::Enqueue => Some(0),
            Self::Mode { .. }
            | Self::Plan { .. }
            | Self::Commit { .. }
            | Self::Release { .. }
            | Self::Disconnect { .. }
            | Self::Reopen { .. }
            | Self::Restart => None,
        }
    }
}

/// A session from its opening on.
#[derive(Clone, PartialEq)]
pub struct Script {
    pub profile: Profile,
    /// Whether the host proves arrival late.
    pub late_receipts: bool,
    pub operations: Vec<Operation>,
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let late = if self.late_receipts { ", late receipts" } else { "" };
        writeln!(f, "profile {}{late}", self.profile.name())?;
        self.operations.iter().try_for_each(|operation| writeln!(f, "  {operation:?},"))
    }
}

/// A session of up to `most` operations.
pub fn script(most: usize) -> impl Strategy<Value = Script> {
    let profile = prop_oneof![
        6 => Just(Profile::Staged), 1 => Just(Profile::Nudge), 2 => Just(Profile::Prompt)
    ];
    // Most sessions begin with an open turn, many with an agent: else half of what follows would be
    // refused.
    let beginning = (prop::bool::weighted(0.8), prop::bool::weighted(0.5), option::of(1_u64..7));
    (profile, prop::bool::weighted(0.1), beginning, vec(operation(), 0..=most)).prop_map(
        |(profile, late_receipts, (turn, agent, cap), rest)| {
            let mut operations = vec![];
            if turn {
                operations.push(Operation::BeginTurn { scope: 0, used: false });
            }
            if agent {
                operations.push(Operation::Spawn { agent: 1, cap, switch: None });
                operations.push(Operation::BeginTurn { scope: 1, used: false });
            }
            operations.extend(rest);
            Script { profile, late_receipts, operations }
        },
    )
}

fn scope() -> impl Strategy<Value = u8> + Clone {
    prop_oneof![6 => Just(0_u8), 3 => Just(1_u8), 1 => Just(2_u8), 1 => Just(3_u8)]
}

fn span() -> impl Strategy<Value = Span> + Clone {
    let unit = prop_oneof![Just(Unit::Turns), Just(Unit::Requests), Just(Unit::Prompts)];
    (unit, 1_u64..4).prop_map(|(unit, count)| Span { unit, count })
}

fn policy() -> BoxedStrategy<Policy> {
    let trigger = prop_oneof![
        Just(Trigger::Once),
        Just(Trigger::OnChange),
        Just(Trigger::Always),
        span().prop_map(Trigger::Every),
    ];
    let rarely = |strategy: BoxedStrategy<u64>| option::weighted(0.15, strategy);
    (
        trigger,
        prop::bool::weighted(0.25),
        option::weighted(0.2, span()),
        rarely((1_u64..3).boxed()),
        rarely((1_u64..4).boxed()),
    )
        .prop_map(|(trigger, never_rearmed, cooldown, per_turn, per_session)| Policy {
            trigger,
            never_rearmed,
            cooldown,
            per_turn,
            per_session,
        })
        .boxed()
}

fn form() -> BoxedStrategy<Form> {
    let body = prop_oneof![
        3 => (0_u8..3).prop_map(Text::Plain),
        1 => (0_u8..2).prop_map(Text::Fact),
        1 => (0_u8..2).prop_map(Text::IfFact),
    ];
    let lane = prop_oneof![
        4 => Just(TextLane::Roster), 1 => Just(TextLane::Mention), 1 => Just(TextLane::Sections)
    ];
    prop_oneof![
        4 => (body, option::weighted(0.8, policy()), lane)
            .prop_map(|(body, policy, lane)| Form::Text { body, policy, lane }),
        2 => (
            0_u8..2,
            option::weighted(0.5, 0_u8..16),
            option::weighted(0.1, span()),
            option::weighted(0.1, 1_u64..4),
        )
            .prop_map(|(pool, baseline, cooldown, per_session)| Form::Pool {
                pool,
                baseline,
                cooldown,
                per_session
            }),
        2 => option::weighted(0.7, policy()).prop_map(|policy| Form::Generator { policy }),
        3 => (option::weighted(0.4, 0_u8..2), any::<bool>(), any::<bool>(), option::weighted(0.7, policy()))
            .prop_map(|(fact, touched, failed, policy)| {
                let touched = touched || (fact.is_none() && !failed);
                Form::Rule(Rule { fact, touched, failed, policy })
            }),
    ]
    .boxed()
}

fn name() -> impl Strategy<Value = Name> + Clone {
    prop_oneof![
        Just(Name::Pending),
        Just(Name::Modes),
        Just(Name::Planning),
        Just(Name::Recovery),
        Just(Name::Nudge),
        Just(Name::Warning),
        Just(Name::Limit),
        (0_u8..6).prop_map(Name::Registered),
    ]
}

/// A name, and a switch that means something for it.
fn switch() -> impl Strategy<Value = (Name, Setting)> + Clone {
    let turn =
        prop_oneof![Just(Setting::Off), Just(Setting::On), (1_u64..3).prop_map(Setting::PerTurn)];
    let stale = (any::<bool>(), 1_u64..4, 1_u64..4)
        .prop_map(|(requests, after, cooldown)| Setting::Stale { requests, after, cooldown });
    prop_oneof![3 => (name(), turn), 2 => (Just(Name::Nudge), stale)]
}

fn choice() -> impl Strategy<Value = Choice> + Clone {
    prop_oneof![
        4 => Just(Choice::All),
        2 => Just(Choice::None),
        3 => (0_u8..16).prop_map(Choice::Some),
        1 => Just(Choice::Unknown),
    ]
}

fn answers() -> impl Strategy<Value = Answers> + Clone {
    vec(option::weighted(0.6, 0_u8..3), 6)
}

fn operation() -> BoxedStrategy<Operation> {
    use Operation as Op;
    let lane = prop_oneof![
        Just(StageLane::Mention),
        Just(StageLane::Skill),
        Just(StageLane::Compaction),
        Just(StageLane::Steering),
    ];
    let token = prop_oneof![8 => Just(0_u8), 2 => 1_u8..4];
    let key = option::of(0_u8..3);
    let course = prop_oneof![
        8 => (scope(), prop::bool::weighted(0.03))
            .prop_map(|(scope, used)| Op::BeginTurn { scope, used }),
        5 => (scope(), prop::bool::weighted(0.95))
            .prop_map(|(scope, right)| Op::EndTurn { scope, right }),
        1 => (scope(), 0_u8..2).prop_map(|(scope, call)| Op::BeginCall { scope, call }),
        3 => (scope(), 0_u8..2).prop_map(|(scope, call)| Op::EndCall { scope, call }),
        3 => (1_u8..4, option::of(0_u64..7), option::weighted(0.2, switch()))
            .prop_map(|(agent, cap, switch)| Op::Spawn { agent, cap, switch }),
        1 => (1_u8..4, any::<bool>())
            .prop_map(|(agent, succeeded)| Op::Settle { agent, succeeded }),
        1 => Just(Op::Restart),
        1 => option::of(Just(Profile::Staged)).prop_map(|profile| Op::Reopen { profile }),
    ]
    .boxed();
    let queues = prop_oneof![
        6 => Just(Op::Enqueue),
        4 => (scope(), 0_u8..3).prop_map(|(scope, key)| Op::Observe { scope, key }),
        4 => (scope(), lane, 0_u8..2, key.clone())
            .prop_map(|(scope, lane, entry_type, key)| Op::Stage { scope, lane, entry_type, key }),
        1 => (scope(), 0_u8..3).prop_map(|(scope, key)| Op::Withdraw { scope, key }),
        3 => (scope(), name(), option::weighted(0.1, 0_u8..3), option::weighted(0.3, 0_u8..3))
            .prop_map(|(scope, name, key, text)| Op::Acknowledge { scope, name, key, text }),
        1 => (scope(), 0_u8..2, key)
            .prop_map(|(scope, entry_type, key)| Op::AcknowledgeStaged { scope, entry_type, key }),
    ]
    .boxed();
    let rosters = prop_oneof![
        8 => (scope(), 0_u8..6, form(), prop::bool::weighted(0.85), any::<bool>()).prop_map(
            |(scope, id, form, root, agents)| Op::Register {
                scope, id, form, root, agents: agents || !root
            }
        ),
        1 => (scope(), 0_u8..6).prop_map(|(scope, id)| Op::Remove { scope, id }),
        3 => (scope(), switch())
            .prop_map(|(scope, (name, setting))| Op::Configure { scope, name, setting }),
        1 => scope().prop_map(|scope| Op::Reset { scope }),
    ]
    .boxed();
    let history = prop_oneof![
        3 => (scope(), choice()).prop_map(|(scope, retained)| Op::Compact { scope, retained }),
        2 => (scope(), option::of(0_u8..4))
            .prop_map(|(scope, through)| Op::Rewind { scope, through }),
        1 => scope().prop_map(|scope| Op::Clear { scope }),
        2 => (scope(), choice()).prop_map(|(scope, held)| Op::Report { scope, held }),
    ]
    .boxed();
    let state = prop_oneof![
        1 => (any::<bool>(), prop::bool::weighted(0.2))
            .prop_map(|(planning, overrides)| Op::Mode { planning, overrides }),
        1 => any::<bool>().prop_map(|active| Op::Plan { active }),
        3 => (
            scope(), 0_u8..3, 0_u8..4, option::weighted(0.2, 0_u8..4), option::weighted(0.3, 0_u8..3)
        )
            .prop_map(|(scope, task, status, owner, blocked_by)| Op::TaskPut {
                scope, task, status, owner, blocked_by
            }),
        1 => (scope(), 0_u8..3).prop_map(|(scope, task)| Op::TaskRemove { scope, task }),
        1 => (scope(), 0_u8..8).prop_map(|(scope, tasks)| Op::TasksReplace { scope, tasks }),
        4 => (scope(), 0_u8..2, option::weighted(0.9, 0_u8..16), prop::bool::weighted(0.15))
            .prop_map(|(scope, pool, names, baseline)| Op::Pool { scope, pool, names, baseline }),
        4 => (scope(), any::<bool>()).prop_map(|(scope, ok)| Op::Call { scope, ok }),
        4 => (scope(), 0_u8..3).prop_map(|(scope, file)| Op::Touch { scope, file }),
        3 => (scope(), 0_u8..2, option::weighted(0.85, 0_u8..3))
            .prop_map(|(scope, fact, value)| Op::Fact { scope, fact, value }),
    ]
    .boxed();
    let waits = prop_oneof![
        8 => (scope(), 1_u64..3, answers())
            .prop_map(|(scope, waiter, answers)| Op::Wait { scope, waiter, answers }),
        1 => (scope(), choice(), answers())
            .prop_map(|(scope, held, answers)| Op::WaitHolding { scope, held, answers }),
        1 => (scope(), 1_u64..3)
            .prop_map(|(scope, waiter)| Op::WaitThinking { scope, waiter }),
        1 => (scope(), answers()).prop_map(|(scope, answers)| Op::Finish { scope, answers }),
        1 => scope().prop_map(|scope| Op::Abandon { scope }),
        2 => (scope(), 0_u64..200, answers())
            .prop_map(|(scope, bytes, answers)| Op::WaitWithin { scope, bytes, answers }),
        7 => (token.clone(), choice())
            .prop_map(|(token, entries)| Op::Commit { token, entries }),
        2 => token.prop_map(|token| Op::Release { token }),
        14 => (scope(), answers()).prop_map(|(scope, answers)| Op::Deliver { scope, answers }),
        1 => (1_u64..3).prop_map(|waiter| Op::Disconnect { waiter }),
    ]
    .boxed();
    prop_oneof![6 => course, 5 => queues, 4 => rosters, 2 => history, 4 => state, 8 => waits]
        .boxed()
}

/// The ids that a choice means, counted from the newest.
pub fn chosen_ids(choice: Choice, ids: &[String]) -> Vec<String> {
    if choice == Choice::Unknown {
        return vec!["no such record".to_owned()];
    }
    chosen(choice, ids.len()).into_iter().map(|index| ids[index].clone()).collect()
}

/// The places that a choice means among so many, counted from the newest.
pub fn chosen(choice: Choice, count: usize) -> Vec<usize> {
    match choice {
        Choice::All => (0..count).collect(),
        Choice::None | Choice::Unknown => vec![],
        Choice::Some(mask) => {
            let is_meant = |index: &usize| {
                let back = count - 1 - index;
                back < 8 && mask >> back & 1 == 1
            };
            (0..count).filter(is_meant).collect()
        }
    }
}
