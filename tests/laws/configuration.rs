//! What is configured, as layers of a roster: whatever comes in which order, the rosters are what the
//! layers yield, and nothing that stays is told again. Budgets hold, and `explain` says so.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use reminderd::engine::{
    Applied, Audience, Budget, Configuration, Definition, Delivery, Event, Explanation, Findings,
    Lane, Limit, Line, Material, Opening, Profile, Refusal, ScopePath, Session, Source, Staged,
    Switch, Value, WaitRequest,
};
use serde_json::json;

use crate::law;
use crate::world::{Outcome, ensure, kit};

const ROOT: ScopePath = ScopePath::ROOT;

fn value(json: serde_json::Value) -> Value {
    serde_json::from_value(json).expect("plain data")
}

fn text(id: &str, body: &str) -> Definition {
    Definition {
        id: id.to_owned(),
        kind: "standing-text".to_owned(),
        settings: value(json!({ "body": body })),
        audience: Audience::ALL,
    }
}

/// A configuration of a few kinds and reminders, some of which no registry takes.
pub fn configuration(words: BoxedStrategy<String>) -> BoxedStrategy<Configuration> {
    let names = ["task-nudge", "token-usage", "sections", "max-requests-warning", "c0", "c1", "r0"];
    let names = names.into_iter().chain(["pending-events", "staging"]).collect::<Vec<_>>();
    let switch = prop_oneof![
        2 => Just(Switch::Off),
        2 => Just(Switch::On(Value::empty_map())),
        1 => Just(Switch::On(value(json!({"maxPerTurn": 1})))),
        1 => Just(Switch::On(value(json!({"maxPerTurn": 0})))),
        1 => (-2_i64..3).prop_map(|it| Switch::On(value(json!({"priority": it})))),
    ];
    let kinds = prop::collection::btree_map(prop::sample::select(names), switch, 0..4);
    let ids = ["c0", "c1", "c2", "r0", "task-nudge"].map(str::to_owned).to_vec();
    let body = prop_oneof![4 => words, 1 => Just("{{ open".to_owned())];
    let audience = prop_oneof![
        3 => Just(Audience::ALL), 2 => Just(Audience::ROOT), 1 => Just(Audience::AGENTS)
    ];
    let reminders = (prop::sample::subsequence(ids, 0..4).prop_shuffle(), vec((body, audience), 4))
        .prop_map(|(ids, rest)| {
            let made = ids.into_iter().zip(rest);
            made.map(|(id, (body, audience))| Definition { audience, ..text(&id, &body) }).collect()
        });
    let budget = (option::weighted(0.3, 5_u64..200), option::weighted(0.2, 50_u64..1000))
        .prop_map(|(per_wait, per_session)| Budget { per_wait, per_session });
    (kinds, reminders, budget)
        .prop_map(|(kinds, reminders, budget)| {
            let kinds = kinds.into_iter().map(|(name, switch)| (name.to_owned(), switch)).collect();
            Configuration { kinds, reminders, budget, left_out: Vec::new() }
        })
        .boxed()
}

/// A session with a turn that is open, and what it has to say.
struct Scene {
    session: Session,
    lines: Vec<Line>,
    waits: usize,
}

impl Scene {
    fn new(profile: Profile) -> Self {
        let opening = Opening { profile: Some(profile), ..Opening::default() };
        let mut session = Session::new(kit(), "s");
        session.open(1, opening).expect("a new session opens");
        let mut scene = Self { session, lines: vec![], waits: 0 };
        scene.begin("t");
        scene
    }

    fn begin(&mut self, turn: &str) {
        self.apply(Event::TurnBegan { turn: turn.to_owned() }).expect("a turn can begin");
    }

    fn apply(&mut self, event: Event) -> Result<Applied, Refusal> {
        let applied = self.session.apply(1, &ROOT, event);
        self.lines.extend(self.session.take_lines());
        applied
    }

    /// Says whether it was another.
    fn read(&mut self, configuration: &Configuration) -> bool {
        let event = Event::ConfigurationRead(Box::new(configuration.clone()));
        self.apply(event).expect("no configuration is refused").changed
    }

    fn stage(&mut self, body: &str) {
        self.apply(Event::Staged {
            lane: Lane::Mention,
            entry_type: "note".to_owned(),
            key: None,
            label: None,
            body: body.to_owned(),
        })
        .expect("it can be staged");
    }

    fn wait_of(&mut self, scope: &ScopePath, limit: Limit) -> Delivery {
        self.waits += 1;
        let name = self.waits.to_string();
        let material = Material { token: format!("token {name}"), record: format!("r{name}") };
        let request = WaitRequest { scope: scope.clone(), limit, ..WaitRequest::default() };
        match self.session.stage(1, &request, material).expect("a turn is open") {
            Staged::Ready(delivery) => *delivery,
            Staged::Asking { wait, .. } => self
                .session
                .finish(1, scope, wait, &BTreeMap::new(), &Findings::new())
                .expect("it was just asked"),
        }
    }

    fn wait(&mut self) -> Delivery {
        self.wait_of(&ROOT, Limit::default())
    }

    fn tell(&mut self) -> Vec<String> {
        let delivery = self.wait();
        self.session.commit(1, &delivery.token, None, None).expect("it was just offered");
        self.lines.extend(self.session.take_lines());
        bodies(&delivery)
    }

    fn row(&self, id: &str) -> Explanation {
        let rows = self.session.explain(1, &ROOT, &Findings::new()).expect("the root is there");
        rows.into_iter().find(|row| row.id == id).unwrap_or_else(|| panic!("no row {id}"))
    }

    fn ids(&self, scope: &ScopePath) -> Vec<String> {
        let scope = self.session.scope(scope).expect("it is there");
        let shown = scope.roster.iter().filter(|it| it.source == Source::Config);
        shown.map(|it| it.id().to_owned()).collect()
    }

    /// The same session after a stop.
    fn restarted(&self) -> Self {
        let session = Session::restore(kit(), "s", self.lines.clone()).expect("it was kept");
        Self { session, lines: self.lines.clone(), waits: 100 }
    }
}

fn bodies(delivery: &Delivery) -> Vec<String> {
    let entries = delivery.record.iter().flat_map(|record| &record.entries);
    entries.map(|entry| entry.body.clone()).collect()
}

fn of(reminders: impl IntoIterator<Item = Definition>) -> Configuration {
    Configuration { reminders: reminders.into_iter().collect(), ..Configuration::default() }
}

#[test]
fn a_changed_file_keeps_what_was_told_and_a_removed_reminder_forgets() {
    let mut scene = Scene::new(Profile::Staged);
    assert!(scene.read(&of([text("a", "one"), text("b", "two")])));
    assert_eq!(scene.tell(), ["one", "two"]);
    assert!(!scene.read(&of([text("a", "one"), text("b", "two")])), "the same is no news");
    assert!(scene.read(&of([text("a", "another one"), text("c", "three"), text("b", "two")])));
    assert_eq!(scene.tell(), ["three"], "what stays was told");
    scene.read(&of([text("a", "another one")]));
    scene.read(&of([text("a", "another one"), text("b", "two")]));
    let mut restarted = scene.restarted();
    assert_eq!(scene.tell(), ["two"], "it was gone in between");
    restarted.begin("after it");
    assert!(restarted.tell().iter().any(|body| body == "two"));
}

#[test]
fn the_next_wait_sees_what_was_read() {
    let mut scene = Scene::new(Profile::Staged);
    scene.read(&of([text("a", "one")]));
    let offered = scene.wait();
    assert_eq!(bodies(&offered), ["one"]);
    scene.read(&of([text("b", "two")]));
    assert_eq!(bodies(&scene.wait()), ["two"], "what was staged and not committed is given up");
}

#[test]
fn agents_keep_the_roster_that_they_were_given() {
    let mut scene = Scene::new(Profile::Staged);
    let agent = |name| ScopePath::agent(name).expect("a path");
    let spawn = |scene: &mut Scene, name| {
        let kinds = BTreeMap::new();
        let event = Event::AgentSpawned { kinds, max_requests: None, role: None };
        scene.session.apply(1, &agent(name), event).expect("it can be spawned");
    };
    scene.read(&of([text("a", "one")]));
    spawn(&mut scene, "/early");
    scene.read(&of([text("b", "two")]));
    spawn(&mut scene, "/late");
    assert_eq!(scene.ids(&agent("/early")), ["a"]);
    assert_eq!(scene.ids(&agent("/late")), ["b"]);
}

#[test]
fn what_no_registry_takes_is_left_out_and_named() {
    let mut scene = Scene::new(Profile::Staged);
    let mut configuration =
        of([text("task-nudge", "mine"), text("open", "{{ open"), text("good", "good")]);
    configuration.kinds = [
        ("token-usage".to_owned(), Switch::On(value(json!({"percent": 0})))),
        ("tokn-usage".to_owned(), Switch::Off),
        ("sections".to_owned(), Switch::Off),
    ]
    .into();
    scene.read(&configuration);
    assert_eq!(scene.tell(), ["good"]);
    for (id, part) in [("open", "is left out: "), ("tokn-usage", "no kind or reminder is called")] {
        let row = scene.row(id);
        assert_eq!((row.kind.as_str(), row.speaks), ("configuration", false));
        assert!(row.reason.contains(part), "{row:?}");
        assert_eq!(row.next.as_deref(), Some("when the configuration is mended"));
    }
    let left_out: Vec<_> = scene.session.left_out().iter().map(|it| it.id.as_str()).collect();
    assert_eq!(left_out, ["task-nudge", "open", "token-usage", "tokn-usage"]);
    assert_eq!(scene.row("sections").reason, "is switched off");
    assert!(!scene.row("task-nudge").reason.contains("left out"), "the kind itself stands");
}

#[test]
fn the_client_stands_above_what_is_configured() {
    let mut scene = Scene::new(Profile::Staged);
    scene.read(&of([text("a", "configured"), text("b", "two"), text("c", "three")]));
    scene.apply(Event::Registered(text("a", "registered"))).expect("any id of one's own");
    scene.apply(Event::Configured([("b".to_owned(), Switch::Off)].into())).expect("it is there");
    assert!(scene.apply(Event::Removed { id: "c".to_owned() }).expect("it may go").changed);
    let tuned = [("task-nudge".to_owned(), Switch::On(value(json!({"after": 3}))))];
    scene.apply(Event::Configured(tuned.into())).expect("the kind takes it");
    let mut other = of([text("b", "two"), text("c", "three"), text("a", "configured anew")]);
    let after = [("after", 5), ("cooldown", 6)].map(|(key, it)| (key.to_owned(), it.into()));
    let settings = Value::Map(after.into_iter().collect());
    other.kinds.insert("task-nudge".to_owned(), Switch::On(settings));
    scene.read(&other);
    for scene in [&mut scene.restarted(), &mut scene] {
        let root = scene.session.scope(&ROOT).expect("it is there");
        let nudge = root.roster.iter().find(|it| it.id() == "task-nudge").expect("a default");
        let settings = value(json!({"after": 3, "cooldown": 6}));
        assert_eq!(nudge.definition.settings, settings, "member by member");
        scene.begin("after it");
        let told = scene.tell();
        assert!(told.contains(&"registered".to_owned()), "{told:?}");
        assert!(!told.iter().any(|body| body.starts_with('t') || body.contains("configured")));
    }
    let gone = scene.apply(Event::Removed { id: "a".to_owned() }).expect("it may go");
    assert!(gone.changed);
    scene.read(&of([text("a", "configured once more")]));
    assert!(scene.ids(&ROOT).is_empty(), "what the client removed stays away");
    scene.apply(Event::Registered(text("a", "back"))).expect("an id of one's own");
    assert_eq!(scene.tell(), ["back"]);
}

#[test]
fn a_fork_takes_its_layers_along() {
    let mut scene = Scene::new(Profile::Staged);
    scene.read(&of([text("a", "one"), text("b", "two")]));
    scene.apply(Event::Removed { id: "b".to_owned() }).expect("it may go");
    assert_eq!(scene.tell(), ["one"]);
    let forked = scene.session.fork("f", None, None, None).expect("it can be forked");
    let first = forked.snapshot();
    let mut forked = Scene { session: forked, lines: vec![first], waits: 0 };
    forked.begin("of the fork");
    forked.read(&of([text("b", "two"), text("a", "one"), text("c", "three")]));
    for forked in [&mut forked.restarted(), &mut forked] {
        forked.begin("the next");
        let told: Vec<_> = forked.tell().into_iter().filter(|body| body.len() < 6).collect();
        assert_eq!(told, ["three"], "a was told, and b was removed");
    }
}

/// A step of a roster's life.
#[derive(Clone, Debug)]
enum Step {
    Read(Configuration),
    Client(Event),
    Restart,
}

fn step() -> BoxedStrategy<Step> {
    let words = prop_oneof![Just("one".to_owned()), Just("two".to_owned())].boxed();
    let ids = ["c0", "c1", "r0", "r1"].map(str::to_owned).to_vec();
    let names = ["task-nudge", "max-requests-warning", "token-usage", "c0", "r0"];
    let names = names.map(str::to_owned).to_vec();
    let switch = prop_oneof![
        Just(Switch::Off),
        Just(Switch::On(Value::empty_map())),
        Just(Switch::On(value(json!({"maxPerSession": 2})))),
    ];
    let id = || prop::sample::select(ids.clone());
    let client = prop_oneof![
        3 => (id(), any::<bool>(), any::<bool>()).prop_map(|(id, root, agents)| {
            Event::Registered(Definition { audience: Audience { root, agents }, ..text(&id, "x") })
        }),
        2 => id().prop_map(|id| Event::Removed { id }),
        3 => (prop::sample::select(names), switch)
            .prop_map(|(name, switch)| Event::Configured([(name, switch)].into())),
    ];
    prop_oneof![
        4 => configuration(words).prop_map(Step::Read),
        6 => client.prop_map(Step::Client),
        1 => Just(Step::Restart),
    ]
    .boxed()
}

/// The rosters of a session, a line a member, without when its reminders came.
fn rosters(session: &Session) -> Vec<String> {
    let state = serde_json::to_value(session.snapshot()).expect("it is plain data");
    let state = &state["snapshot"];
    let rosters = [&state["scopes"][0]["roster"], &state["forAgents"], &state["forCappedAgents"]];
    let lines = rosters.into_iter().enumerate().flat_map(|(roster, members)| {
        let members = members.as_array().expect("a roster is a list").iter();
        members.map(move |it| {
            let [definition, enabled, source] = ["definition", "enabled", "source"].map(|m| &it[m]);
            format!("{roster} {source} {enabled} {definition}")
        })
    });
    lines.collect()
}

/// However a roster came to be, its layers alone yield it.
fn layers_yield_the_roster(profile: Profile, steps: &[Step]) -> Outcome {
    let mut scene = Scene::new(profile);
    for (index, step) in steps.iter().enumerate() {
        match step {
            Step::Read(configuration) => drop(scene.read(configuration)),
            Step::Client(event) => drop(scene.apply(event.clone())),
            Step::Restart => scene = scene.restarted(),
        }
        let present = scene.session.configuration().clone();
        let expected = rosters(&scene.session);
        let mut other = scene.restarted();
        other.read(&Configuration::default());
        other.read(&present);
        let given = rosters(&other.session);
        let differ = given.iter().zip(&expected).find(|(given, expected)| given != expected);
        ensure!(given == expected, "after step {index}: derived and there: {differ:#?}");
        let (given, expected) = (other.session.left_out(), scene.session.left_out());
        ensure!(given == expected, "after step {index}: left out {given:?}, not {expected:?}");
    }
    let snapshot = scene.session.snapshot();
    let read = Session::restore(kit(), "s", [snapshot]).map_err(|refusal| refusal.to_string())?;
    ensure!(rosters(&read) == rosters(&scene.session), "a snapshot is read as another roster");
    ensure!(read.left_out() == scene.session.left_out(), "a snapshot forgets what is left out");
    Ok(())
}

#[test]
fn rosters_are_what_their_layers_yield() {
    let profile = prop::sample::select(Profile::ALL.to_vec());
    let life = (profile, vec(step(), 0..20));
    law("tests/laws/regressions/layers.txt", 300, &life, |(profile, steps)| {
        layers_yield_the_roster(*profile, steps)
    });
}

// Budgets

fn per_wait(tokens: u64) -> Budget {
    Budget { per_wait: Some(tokens), per_session: None }
}

/// A text of so many tokens.
fn long(tokens: u64, letter: &str) -> String {
    let letters = usize::try_from(tokens * 4).expect("a short text");
    letter.repeat(letters)
}

fn held(delivery: &Delivery) -> Vec<(&str, &str)> {
    delivery.held.iter().map(|held| (held.entry_type.as_str(), held.reason)).collect()
}

#[test]
fn what_a_wait_may_cost_is_kept_and_the_rest_comes_later() {
    let mut scene = Scene::new(Profile::Staged);
    let mut configuration = of([text("a", &long(60, "a")), text("b", &long(50, "b"))]);
    configuration.reminders.push(text("c", &long(30, "c")));
    configuration.budget = per_wait(100);
    scene.read(&configuration);
    let row = scene.row("b");
    assert!(!row.speaks);
    assert_eq!(
        row.reason,
        "1 entry is due, but it takes 50 tokens, and what comes before it leaves 40 of the 100 of \
         budget.perWait"
    );
    assert_eq!(row.next.as_deref(), Some("at a later WAIT"));
    assert!(scene.row("c").speaks, "a later and smaller one goes");
    let delivery = scene.wait();
    assert_eq!(delivery.prices, [60, 30]);
    assert_eq!(held(&delivery), [("b", "budget")]);
    assert!(!delivery.oversize, "a client's larger limit would change nothing");
    assert_eq!(scene.tell().len(), 2);
    assert_eq!(scene.tell(), [long(50, "b")]);
}

#[test]
fn what_can_never_fit_is_held_and_says_so() {
    let mut scene = Scene::new(Profile::Staged);
    let mut configuration = of([text("a", &long(101, "a")), text("b", "b")]);
    configuration.budget = per_wait(100);
    scene.read(&configuration);
    for _ in 0..2 {
        let row = scene.row("a");
        assert_eq!(
            row.reason,
            "1 entry is due, but it takes 101 tokens, more than the 100 of budget.perWait"
        );
        let next = "when it is shorter, or budget.perWait is raised";
        assert_eq!((row.speaks, row.next.as_deref()), (false, Some(next)));
        let delivery = scene.wait();
        assert_eq!(held(&delivery), [("a", "budget")]);
        scene.tell();
    }
    configuration.budget = per_wait(101);
    scene.read(&configuration);
    assert_eq!(scene.tell(), [long(101, "a")]);
}

#[test]
fn priority_decides_what_waits_and_never_the_order_in_a_message() {
    let mut scene = Scene::new(Profile::Staged);
    let section = |section: &str, body: String| Event::SectionSet {
        section: section.to_owned(),
        content: Some(body),
    };
    scene.apply(section("guide", long(10, "g"))).expect("a section");
    scene.stage(&long(40, "s"));
    let mut configuration = of([text("a", &long(30, "a"))]);
    let priority = value(json!({"priority": 1}));
    configuration.kinds.insert("sections".to_owned(), Switch::On(priority));
    scene.read(&configuration);
    let whole = scene.wait();
    let size = whole.prices.iter().sum::<u64>();
    assert_eq!(whole.prices.len(), 3);
    // One token is missing: without a priority the last would wait.
    configuration.budget = per_wait(size - 1);
    scene.read(&configuration);
    let delivery = scene.wait();
    assert_eq!(held(&delivery), [("a", "budget")]);
    assert_eq!(delivery.prices, [whole.prices[0], whole.prices[2]], "in the order of the message");
    assert!(!scene.row("a").speaks);
    assert!(scene.row("sections").speaks && scene.row("staged").speaks);
    // The same where a client's limit bites.
    configuration.budget = Budget::default();
    scene.read(&configuration);
    let limit = Limit { tokens: Some(whole.tokens - 1), ..Limit::default() };
    let delivery = scene.wait_of(&ROOT, limit);
    assert_eq!(held(&delivery), [("a", "limit")]);
    assert_eq!(delivery.prices, [whole.prices[0], whole.prices[2]]);
    configuration.kinds.insert("sections".to_owned(), Switch::On(value(json!({"priority": -1}))));
    scene.read(&configuration);
    let delivery = scene.wait_of(&ROOT, limit);
    assert_eq!(held(&delivery), [("sections", "limit")]);
}

#[test]
fn oversize_is_said_of_the_first_in_line() {
    let mut scene = Scene::new(Profile::Staged);
    scene.stage(&long(5, "s"));
    scene
        .apply(Event::SectionSet { section: "g".to_owned(), content: Some(long(90, "g")) })
        .expect("a section");
    let limit = Limit { tokens: Some(50), ..Limit::default() };
    assert!(!scene.wait_of(&ROOT, limit).oversize, "the first fits");
    let priority = Switch::On(value(json!({"priority": 1})));
    scene.read(&Configuration {
        kinds: [("sections".to_owned(), priority)].into(),
        ..Configuration::default()
    });
    let delivery = scene.wait_of(&ROOT, limit);
    assert!(delivery.oversize, "the first in line does not");
    assert_eq!(delivery.prices, [5], "and what comes behind it goes");
}

#[test]
fn a_spent_session_is_silent_and_a_restart_does_not_fill_it() {
    let mut scene = Scene::new(Profile::Staged);
    let mut configuration = Configuration {
        budget: Budget { per_wait: None, per_session: Some(100) },
        ..Configuration::default()
    };
    scene.read(&configuration);
    scene.stage(&long(60, "a"));
    scene.tell();
    scene.stage(&long(41, "b"));
    assert_eq!(held(&scene.wait()), [("note", "budget")]);
    assert_eq!(
        scene.row("staged").reason,
        "1 entry waits, but it takes 41 tokens, and 40 of the 100 of budget.perSession are left"
    );
    scene.stage(&long(40, "c"));
    assert_eq!(scene.tell(), [long(40, "c")]);
    let mut restarted = scene.restarted();
    restarted.begin("after it");
    for scene in [&mut restarted, &mut scene] {
        scene.stage("one more");
        assert!(scene.tell().is_empty());
        let row = scene.row("staged");
        assert!(row.reason.ends_with(", but the 100 tokens of budget.perSession are spent"));
        assert_eq!(row.next.as_deref(), Some("when budget.perSession is raised"));
        assert_eq!((row.spent.entries, row.spent.tokens), (2, 100));
        let history = &scene.session.scope(&ROOT).expect("it is there").history;
        assert_eq!(history.tokens(), 100);
    }
    // What was told is paid for, whether it is remembered or held.
    scene.apply(Event::Reset).expect("it can be forgotten");
    scene.apply(Event::Cleared).expect("it can be cleared");
    assert!(scene.tell().is_empty());
    configuration.budget.per_session = None;
    scene.read(&configuration);
    assert_eq!(scene.tell().len(), 2);
}

#[test]
fn a_commit_that_came_to_nothing_costs_nothing() {
    let mut scene = Scene::new(Profile::Staged);
    scene.stage(&long(60, "a"));
    let delivery = scene.wait();
    scene.session.commit(1, &delivery.token, None, None).expect("it was just offered");
    assert!(scene.session.undo(&delivery.token));
    let history = &scene.session.scope(&ROOT).expect("it is there").history;
    assert_eq!((history.tokens(), history.spent().count()), (0, 0));
}

#[test]
fn the_price_of_each_kind_adds_up() {
    let mut scene = Scene::new(Profile::Staged);
    scene.read(&of([text("a", &long(7, "a")), text("b", &long(8, "b"))]));
    scene.stage(&long(5, "s"));
    scene.tell();
    let history = &scene.session.scope(&ROOT).expect("it is there").history;
    let spent: Vec<_> = history.spent().map(|(kind, it)| (kind, it.entries, it.tokens)).collect();
    assert_eq!(spent, [("staged", 1, 5), ("standing-text", 2, 15)]);
    assert_eq!(scene.row("b").spent.tokens, 8);
    assert_eq!(scene.row("task-nudge").spent.entries, 0);
}
