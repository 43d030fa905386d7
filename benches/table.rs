//! `cargo bench --bench table`: what the daemon costs, against what cannot be avoided.
//!
//! Wall times differ from machine to machine, so every row but the engine's is a ratio within one
//! run, both sides measured in turns. The floor of a row is an echo: the daemon's own server in a
//! process of its own, over the same kind of pipes, that reads the same messages and answers with
//! as many bytes, but has nothing behind it (`support/echo.rs`). An unknown method or an empty
//! `session/list` would be answered by the daemon itself, with other messages, and an echo of
//! another make would compare servers.

mod support;

use std::time::Duration;

use reminderd::engine::{
    Audience, CallInput, Definition, Event, Kit, Material, Opening, ScopePath, Session, Staged,
    Switch, Task, TaskStatus, Value, WaitRequest,
};
use reminderd::reminders::Catalogue;
use serde_json::json;
use support::client::{Client, notification};
use support::measure::{median_of, medians_in_turns, time};
use support::store;
use support::table::{self, Figure, Target};
use support::{echo, files, report, shared};

/// Round trips over pipes.
const ROUND_TRIPS: usize = 10_000;
/// Notifications that are sent at a stretch, and how often.
const NOTIFICATIONS: usize = 30_000;
const STRETCHES: usize = 21;
/// Measurements of the engine alone; one of its events is too short for a clock.
const ENGINE_ROUNDS: usize = 5_000;
const EVENTS_A_ROUND: u32 = 100;

/// A body of about 200 bytes.
const BODY: &str = "Run the tests of the crate that you changed before you say that the work is \
                    done, and name the ones that fail; a change that cannot be tested needs a \
                    sentence in the summary that says why not.";

fn main() {
    if std::env::args().nth(1).as_deref() == Some(echo::ARGUMENT) {
        echo::serve();
    }
    table::head();
    if std::env::args().any(|argument| argument == "files") {
        return watched_files();
    }
    if std::env::args().any(|argument| argument == "rules") {
        return many_rules();
    }
    if std::env::args().any(|argument| argument == "store") {
        return kept_sessions();
    }
    if std::env::args().any(|argument| argument == "shared") {
        return shared_daemon();
    }
    if std::env::args().any(|argument| argument == "report") {
        return report::pages();
    }
    round_trip("WAIT + commit, nothing to say", 0);
    round_trip("WAIT + commit, 3 entries of 200 bytes", 3);
    notifications("parse each message and drop it", &json!({}), &Target::AtLeast(0.7));
    let unread = json!({"reminder/observe": null, "fact/set": null, "task/put": null});
    notifications("envelopes alone, params unread", &unread, &Target::Nothing);
    engine_events();
    engine_wait("engine: stage + commit, nothing to say", 0);
    engine_wait("engine: stage + commit, 3 entries", 3);
    many_rules();
    grown_session();
    idle_sessions();
    many_diagnostics();
    after_publishes();
    watched_files();
    kept_sessions();
    shared_daemon();
    report::pages();
}

/// One daemon for many clients.
fn shared_daemon() {
    shared::many_clients();
    shared::hook_command();
}

/// Sessions that are kept on disk.
fn kept_sessions() {
    store::durable_commits(BODY);
    store::start(&session_in_a_turn(3).snapshot());
}

/// Watched files at a WAIT, below the wire.
fn watched_files() {
    files::changed("1 of 5,000 lines changed", 1, &Target::AtMost(0.05));
    files::changed("10 of 5,000 lines changed", 10, &Target::AtMost(0.25));
    files::changed("a third of 5,000 lines changed", 1_667, &Target::AtMost(0.7));
    files::unchanged(100, 2_000, &Target::AtMost(1.2));
    files::unchanged(10_000, 100, &Target::AtMost(0.5));
    files::unchanged(50_000, 30, &Target::AtMost(0.5));
}

/// What a session costs that is open and does nothing.
fn idle_sessions() {
    const SESSIONS: u32 = 10_000;
    let mut daemon = Client::daemon();
    let mut open = |name: &str, count: u32| {
        for number in 0..count {
            let params = format!(r#"{{"session":"{name}{number}","root":"/"}}"#);
            daemon.request("session/open", &params);
        }
        daemon.memory()
    };
    let before = open("first ", 100);
    let each = (open("s", SESSIONS) - before) / f64::from(SESSIONS);
    let target = Target::KibibytesAtMost(16.0);
    table::row("memory of each of 10,000 idle sessions", Figure::Kibibytes(each), None, &target);
}

/// A WAIT and its commit, as a client sees them: two messages there and two back.
fn round_trip(what: &str, entries: usize) {
    let mut daemon = daemon_in_a_turn(entries);
    daemon.wait_and_commit();
    let committed = daemon.last_result();
    daemon.request("reminder/wait", r#"{"session":"s","turn":"t"}"#);
    let waited = daemon.last_result();
    assert_eq!(waited["entries"].as_array().map(Vec::len), Some(entries));
    let mut echo = echo::client(&json!({"reminder/wait": waited, "reminder/commit": committed}));

    let (figure, floor) = medians_in_turns(
        ROUND_TRIPS,
        || time(|| daemon.wait_and_commit()),
        || time(|| echo.wait_and_commit()),
    );
    let floor = ("an echo of the same bytes", Figure::Time(floor));
    table::row(what, Figure::Time(figure), Some(floor), &Target::AtMost(1.5));
}

/// Small events as fast as they are read. The floor is the framing loop alone, which reads and
/// parses the same messages and drops them.
fn notifications(against: &str, replies: &serde_json::Value, target: &Target) {
    let stream = notification_stream();
    let mut daemon = daemon_in_a_turn(0);
    let mut echo = echo::client(replies);
    let stretch = |client: &mut Client| {
        time(|| {
            client.send(&stream);
            client.settle();
        })
    };
    let (figure, floor) =
        medians_in_turns(STRETCHES, || stretch(&mut daemon), || stretch(&mut echo));
    let rate = |time: Duration| {
        Figure::Rate(
            f64::from(u32::try_from(NOTIFICATIONS).unwrap_or(u32::MAX)) / time.as_secs_f64(),
        )
    };
    let floor = (against, rate(floor));
    table::row("small events a second", rate(figure), Some(floor), target);
}

/// A third each of turn events, facts and tasks.
fn notification_stream() -> String {
    let message = |index: usize| match index % 3 {
        0 => notification(
            "reminder/observe",
            &json!({
                "session": "s", "key": format!("file-{}", index % 24), "type": "edited-file",
                "body": "src/parse.rs was changed in the editor."
            })
            .to_string(),
        ),
        1 => notification(
            "fact/set",
            &json!({"session": "s", "name": format!("fact-{}", index % 8), "value": index})
                .to_string(),
        ),
        _ => notification(
            "task/put",
            &json!({
                "session": "s",
                "task": {
                    "id": format!("t-{}", index % 16), "subject": "handle empty input",
                    "status": "pending"
                }
            })
            .to_string(),
        ),
    };
    (0..NOTIFICATIONS).map(message).collect()
}

/// The daemon with session `s` in turn `t`, where every WAIT has so many entries.
fn daemon_in_a_turn(entries: usize) -> Client {
    let mut daemon = Client::daemon();
    let reminders: Vec<_> = (0..entries)
        .map(|number| json!({"id": format!("note-{number}"), "body": BODY, "policy": "always"}))
        .collect();
    let opening = json!({"session": "s", "reminders": reminders});
    daemon.request("session/open", &opening.to_string());
    daemon.request("turn/begin", r#"{"session":"s","turn":"t"}"#);
    daemon
}

/// The events of [`notification_stream`], in the engine's own terms.
fn engine_events() {
    let event = |index: u32| match index % 3 {
        0 => Event::Observed {
            turn: None,
            key: format!("file-{}", index % 24),
            entry_type: "edited-file".to_owned(),
            body: "src/parse.rs was changed in the editor.".to_owned(),
        },
        1 => Event::FactSet {
            name: format!("fact-{}", index % 8),
            value: Value::Integer(index.into()),
        },
        _ => Event::TaskPut {
            task: Task {
                id: format!("t-{}", index % 16),
                subject: "handle empty input".to_owned(),
                status: TaskStatus::Pending,
                owner: ScopePath::ROOT,
                blocked_by: Vec::new(),
                blocks: Vec::new(),
                description: None,
            },
            reassigns: false,
        },
    };
    let mut session = session_in_a_turn(0);
    let figure = median_of(ENGINE_ROUNDS, || {
        let events: Vec<_> = (0..EVENTS_A_ROUND).map(event).collect();
        time(|| {
            for event in events {
                session.apply(0, &ScopePath::ROOT, event).expect("the event is sound");
                drop(session.take_lines());
            }
        }) / EVENTS_A_ROUND
    });
    let target = Target::Below(Duration::from_micros(1));
    table::row("engine: apply, a small event", Figure::Time(figure), None, &target);
}

/// A WAIT and its commit, as the daemon calls them.
fn engine_wait(what: &str, entries: usize) {
    let mut session = session_in_a_turn(entries);
    let request = WaitRequest::default();
    let mut number = 0_u64;
    let figure = median_of(ENGINE_ROUNDS, || {
        number += 1;
        let token = format!("{number:032x}.{:016x}", 0);
        let material = Material { token: token.clone(), record: format!("{number:016x}") };
        time(|| {
            let staged = session.stage(0, &request, material).expect("a turn is open");
            assert!(matches!(staged, Staged::Ready(delivery) if delivery.prices.len() == entries));
            session.commit(0, &token, None, None).expect("the token is open");
            session.confirm(&token);
            drop(session.take_lines());
        })
    });
    table::row(what, Figure::Time(figure), None, &Target::Below(Duration::from_micros(20)));
}

/// A WAIT with five hundred rules, after a turn that touched a hundred paths and made fifty calls:
/// a third each of conditions, globs and patterns of calls, none of which has anything to say.
fn many_rules() {
    const RULES: usize = 500;
    let rule = |number: usize| {
        let mut form = match number % 3 {
            0 => json!({"when": format!("facts.f{} > 1 and turn == 1", number % 60)}),
            1 => json!({"globs": [format!("src/part{number}/**"), format!("*.x{number}")]}),
            _ => json!({"tool": {"name": "Bash", "input": format!("make (a{number}|b{number})")}}),
        };
        form["body"] = json!(format!("rule {number}: {{{{ facts.f0 }}}} of {{{{ turn }}}}"));
        Definition {
            id: format!("rule-{number}"),
            kind: "rule".to_owned(),
            settings: serde_json::from_value(form).expect("plain data"),
            audience: Audience::ROOT,
        }
    };
    let mut session = session_in_a_turn(0);
    let root = Some("/w".to_owned());
    let kinds = [("edited-files".to_owned(), Switch::Off)].into();
    let reminders = (0..RULES).map(rule).collect();
    let opening = Opening { root, kinds, reminders, ..Opening::default() };
    session.open(0, opening).expect("the opening is sound");
    let mut events = Vec::new();
    for number in 0..60 {
        let value = Value::Integer(number % 3 / 2 * 2);
        events.push(Event::FactSet { name: format!("f{number}"), value });
    }
    for number in 0..100 {
        let path = format!("/w/src/part{}/some/deep/file{number}.rs", 3 * number);
        events.push(Event::Touched { path, wrote: true, whole: false });
    }
    for number in 0..50 {
        let call = "c".to_owned();
        let command = format!("cd some/where && make c{number} --jobs 4 --verbose");
        let texts = vec![format!(r#"{{"command":"{command}"}}"#), command];
        let input = Some(CallInput { value: Value::Null, texts });
        events.push(Event::CallBegan { call: call.clone(), input });
        events.push(Event::CallEnded { call, name: "Bash".to_owned(), ok: true });
    }
    for event in events {
        session.apply(0, &ScopePath::ROOT, event).expect("the event is sound");
    }
    drop(session.take_lines());
    let mut number = 0;
    let figure = median_of(ENGINE_ROUNDS / 10, || {
        number += 1;
        time(|| wait_and_release(&mut session, number, false))
    });
    let target = Target::Below(Duration::from_millis(2));
    table::row("engine: WAIT with 500 rules", Figure::Time(figure), None, &target);
}

/// A WAIT of a session that has told ten thousand records and holds a thousand open tasks, against
/// one of a session that has just begun. Both have nothing to say.
fn grown_session() {
    const RECORDS: usize = 10_000;
    const TASKS: usize = 1_000;
    let mut fresh = session_in_a_turn(0);
    let mut grown = session_in_a_turn(0);
    for number in 0..TASKS {
        let task = Task {
            id: format!("t-{number}"),
            subject: "handle empty input".to_owned(),
            status: TaskStatus::Pending,
            owner: ScopePath::ROOT,
            blocked_by: Vec::new(),
            blocks: Vec::new(),
            description: None,
        };
        let event = Event::TaskPut { task, reassigns: false };
        grown.apply(0, &ScopePath::ROOT, event).expect("the event is sound");
    }
    for number in 0..RECORDS {
        let event = Event::Observed {
            turn: None,
            key: format!("file-{}", number % 24),
            entry_type: "edited-file".to_owned(),
            body: "src/parse.rs was changed in the editor.".to_owned(),
        };
        grown.apply(0, &ScopePath::ROOT, event).expect("the event is sound");
        wait_and_release(&mut grown, number, true);
    }
    let (figure, floor) = medians_in_turns(
        ENGINE_ROUNDS,
        || time(|| wait_and_release(&mut grown, RECORDS, false)),
        || time(|| wait_and_release(&mut fresh, RECORDS, false)),
    );
    let floor = ("a session that has just begun", Figure::Time(floor));
    let what = "engine: WAIT, 10,000 records, 1,000 tasks";
    table::row(what, Figure::Time(figure), Some(floor), &Target::AtMost(1.2));
}

/// A WAIT, and its commit or else its release.
fn wait_and_release(session: &mut Session, number: usize, commits: bool) {
    let token = format!("{number:032x}.{:016x}", 0);
    let material = Material { token: token.clone(), record: format!("{number:016x}") };
    let staged = session.stage(0, &WaitRequest::default(), material).expect("a turn is open");
    assert!(matches!(staged, Staged::Ready(_)));
    if commits {
        session.commit(0, &token, None, None).expect("the token is open");
        session.confirm(&token);
    } else {
        assert_eq!(session.release(&token), Ok(true));
    }
    drop(session.take_lines());
}

/// A session in an open turn, where every WAIT has so many entries.
fn session_in_a_turn(entries: usize) -> Session {
    let kit = Kit { registry: &Catalogue, digest: reminderd::server::digest };
    let mut session = Session::new(kit, "s");
    let reminder = |number: usize| Definition {
        id: format!("note-{number}"),
        kind: "standing-text".to_owned(),
        settings: Value::Map(
            [("body", BODY), ("policy", "always")]
                .map(|(name, text)| (name.to_owned(), Value::from(text)))
                .into(),
        ),
        audience: Audience::ROOT,
    };
    let opening = Opening { reminders: (0..entries).map(reminder).collect(), ..Opening::default() };
    session.open(0, opening).expect("the opening is sound");
    let turn = Event::TurnBegan { turn: "t".to_owned() };
    session.apply(0, &ScopePath::ROOT, turn).expect("no turn is open");
    session
}

/// A WAIT of a scope that edited a file with 5,000 diagnostics, of which it was told, against one
/// of a scope that edited nothing. Both have nothing to say.
fn many_diagnostics() {
    const DIAGNOSTICS: usize = 5_000;
    let mut plain = daemon_in_a_turn(0);
    let mut checked = daemon_in_a_turn(0);
    let edit = json!({"session": "s", "uris": [{"uri": "/w/a.rs", "version": 1}], "ok": true});
    checked.request("edit/end", &edit.to_string());
    checked.send(&notification("diagnostic/publish", &published(1, DIAGNOSTICS)));
    checked.wait_and_commit();
    let (figure, floor) = medians_in_turns(
        ROUND_TRIPS,
        || time(|| checked.wait_and_commit()),
        || time(|| plain.wait_and_commit()),
    );
    let floor = ("no file was edited", Figure::Time(floor));
    let what = "WAIT + commit, 5,000 diagnostics in a file";
    table::row(what, Figure::Time(figure), Some(floor), &Target::AtMost(1.5));
}

/// A WAIT and its commit right behind a second's worth of publishes, once those are read, against
/// the same without any. Both tell one problem.
fn after_publishes() {
    const PUBLISHES: i64 = 10_000;
    let mut quiet = daemon_in_a_turn(0);
    let mut busy = daemon_in_a_turn(0);
    let mut version = 0;
    let edit = |client: &mut Client, version: i64| {
        let uris = json!([{"uri": "/w/a.rs", "version": version}]);
        let edit = json!({"session": "s", "uris": uris, "ok": true});
        client.request("edit/end", &edit.to_string());
    };
    let (figure, floor) = medians_in_turns(
        STRETCHES,
        || {
            version += PUBLISHES;
            edit(&mut busy, version - PUBLISHES);
            let stream: String = (version - PUBLISHES..version)
                .map(|number| notification("diagnostic/publish", &published(number, 1)))
                .collect();
            busy.send(&stream);
            busy.settle();
            time(|| busy.wait_and_commit())
        },
        {
            let mut version = 0;
            move || {
                version += 1;
                edit(&mut quiet, version);
                quiet.send(&notification("diagnostic/publish", &published(version, 1)));
                quiet.settle();
                time(|| quiet.wait_and_commit())
            }
        },
    );
    let floor = ("one publish", Figure::Time(floor));
    let what = "WAIT + commit behind 10,000 publishes";
    table::row(what, Figure::Time(figure), Some(floor), &Target::AtMost(1.5));
}

/// The params of a publish of so many diagnostics for one file; those of no other version.
fn published(version: i64, diagnostics: usize) -> String {
    let diagnostic = |number: usize| {
        let place = json!({"line": number, "character": 4});
        json!({
            "range": {"start": place, "end": place}, "severity": 2, "code": "E0308",
            "source": "rustc", "message": format!("mismatched types, {version}.{number}"),
        })
    };
    let diagnostics: Vec<_> = (0..diagnostics).map(diagnostic).collect();
    json!({"uri": "/w/a.rs", "checker": "c", "version": version, "diagnostics": diagnostics})
        .to_string()
}
