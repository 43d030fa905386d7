//! Everything on a connection takes effect in the order of its bytes, and what is slow holds up
//! nothing behind it. What is slow here are generators: the client itself computes them, so that a
//! test decides when they are done.

use serde_json::{Value, json};

use crate::support::{Daemon, Framing};

/// Generators have 250 ms to answer. A machine that is busy may take longer than that for a few
/// messages, so that what needs an answer in time is tried so often before it counts as a failure.
const ROUNDS: usize = 20;

fn open(daemon: &mut Daemon, session: &str) {
    let answer = daemon.request("session/open", json!({"session": session, "root": "/project"}));
    assert!(answer["result"].is_object(), "{answer}");
    begin(daemon, session, "t");
}

fn begin(daemon: &mut Daemon, session: &str, turn: &str) {
    let answer = daemon.request("turn/begin", json!({"session": session, "turn": turn}));
    assert_eq!(answer["result"], Value::Null, "{answer}");
}

/// Opens a session with a generator of this client, called `generator`.
fn open_with_generator(daemon: &mut Daemon, session: &str) {
    open(daemon, session);
    let reminder = json!({"id": "generator", "client": true, "policy": "always"});
    let answer =
        daemon.request("roster/register", json!({"session": session, "reminder": reminder}));
    assert_eq!(answer["result"], Value::Null, "{answer}");
}

fn wait_message(id: &str, session: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "reminder/wait", "params": {"session": session}})
}

fn notification(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

/// Messages in one write.
fn send_at_once(daemon: &Daemon, framing: Framing, messages: &[Value]) {
    let frames = messages.iter().flat_map(|message| framing.frame(&message.to_string()));
    daemon.send_bytes(&frames.collect::<Vec<_>>());
}

fn bodies(delivery: &Value) -> Vec<&str> {
    let entries = delivery["result"]["entries"].as_array();
    let entries = entries.unwrap_or_else(|| panic!("no delivery: {delivery}"));
    entries.iter().map(|entry| entry["body"].as_str().expect("a body")).collect()
}

fn open_tokens(daemon: &mut Daemon, session: &str) -> Value {
    daemon.request("session/state", json!({"session": session}))["result"]["openTokens"].clone()
}

/// B109: handlers of notifications ran side by side, so that later ones overtook earlier ones.
#[test]
fn a_wait_sees_every_event_before_it() {
    for framing in Framing::ALL {
        let mut daemon = Daemon::initialized(framing);
        open(&mut daemon, "s");
        let mut stream = Vec::new();
        let mut push = |message: Value| stream.extend(framing.frame(&message.to_string()));
        for number in 1..=1000 {
            push(json!({"jsonrpc": "2.0", "method": "reminder/observe", "params": {
                "session": "s", "turn": "t", "key": "k", "type": "note",
                "body": format!("number {number}")
            }}));
        }
        push(json!({"jsonrpc": "2.0", "id": "w", "method": "reminder/wait",
            "params": {"session": "s", "turn": "t"}}));
        push(json!({"jsonrpc": "2.0", "method": "reminder/observe", "params": {
            "session": "s", "turn": "t", "key": "k", "type": "note", "body": "too late"
        }}));
        daemon.send_bytes(&stream);
        let delivery = daemon.expect_answer(&json!("w"));
        assert_eq!(bodies(&delivery), ["number 1000"]);
    }
}

/// B111: with four calls open the fifth, which would release them, was not read.
#[test]
fn what_settles_pending_waits_is_read() {
    for framing in Framing::ALL {
        let mut daemon = Daemon::initialized(framing);
        let sessions: Vec<String> = (1..=8).map(|number| format!("s{number}")).collect();
        sessions.iter().for_each(|session| open_with_generator(&mut daemon, session));
        open(&mut daemon, "other");

        let in_time = (1..=ROUNDS).any(|round| {
            let waits: Vec<_> =
                sessions.iter().map(|session| wait_message(session, session)).collect();
            send_at_once(&daemon, framing, &waits);
            let asked: Vec<_> =
                sessions.iter().map(|_| daemon.expect_method("reminder/compute")).collect();
            // Each asks about its own session, in the order of the WAITs.
            let about: Vec<_> = asked.iter().map(|one| one["params"]["session"].clone()).collect();
            assert_eq!(json!(about), json!(sessions));

            // All eight are pending; another session is served meanwhile.
            let body = format!("round {round}");
            let told = json!({"session": "other", "type": "note", "body": body});
            assert_eq!(daemon.request("reminder/stage", told)["result"], Value::Null);
            let delivery = daemon.request("reminder/wait", json!({"session": "other"}));
            assert_eq!(bodies(&delivery), [body]);
            let token = &delivery["result"]["token"];
            let commit = daemon.request("reminder/commit", json!({"token": token}));
            assert_eq!(commit["result"]["already"], false, "{commit}");

            for one in asked.iter().rev() {
                let session = one["params"]["session"].as_str().expect("a session");
                daemon.answer(one, json!({"body": format!("of {session}")}));
            }
            // Every WAIT is answered, and never with the answer that belongs to another.
            let answered = sessions.iter().filter(|session| {
                let delivery = daemon.expect_answer(&json!(session));
                let bodies = bodies(&delivery);
                assert!(bodies.is_empty() || bodies == [format!("of {session}")], "{delivery}");
                !bodies.is_empty()
            });
            answered.count() == sessions.len()
        });
        assert!(in_time, "answers that were there were not used in {ROUNDS} rounds");
    }
}

/// A request's answer reflects every message before it and none after it, however long its
/// generators take.
#[test]
fn a_pending_wait_reflects_nothing_behind_it() {
    let mut daemon = Daemon::initialized(Framing::Headers);
    open_with_generator(&mut daemon, "s");
    let rule = json!({"id": "rule", "body": "rule", "policy": "always"});
    daemon.request("roster/register", json!({"session": "s", "reminder": rule}));
    let stage = |body: &str| json!({"session": "s", "type": body, "key": body, "body": body});
    daemon.request("reminder/stage", stage("before"));
    let wait = || wait_message("w", "s");
    for behind in [
        notification("reminder/stage", &stage("after")),
        notification("reminder/withdraw", &json!({"session": "s", "key": "before"})),
        notification("roster/configure", &json!({"session": "s", "kinds": {"rule": false}})),
        notification("roster/remove", &json!({"session": "s", "id": "rule"})),
        notification("reminder/acknowledge", &json!({"session": "s", "kind": "rule"})),
    ] {
        send_at_once(&daemon, Framing::Headers, &[wait(), behind.clone()]);
        let asked = daemon.expect_method("reminder/compute");
        daemon.answer(&asked, json!({"body": null}));
        let delivery = daemon.expect_answer(&json!("w"));
        assert_eq!(bodies(&delivery), ["before", "rule"], "before {behind}");
        // The next WAIT does reflect it; then all is as it was.
        daemon.send(&wait());
        let asked = daemon.expect_method("reminder/compute");
        daemon.answer(&asked, json!({"body": null}));
        let delivery = daemon.expect_answer(&json!("w"));
        assert_ne!(bodies(&delivery), ["before", "rule"], "behind {behind}");
        let token = &delivery["result"]["token"];
        daemon.request("reminder/commit", json!({"token": token}));
        daemon.request("reminder/stage", stage("before"));
        daemon.request("roster/register", json!({"session": "s", "reminder": rule}));
        daemon.request("roster/configure", json!({"session": "s", "kinds": {"rule": true}}));
    }

    // How the host wants it is as it was told, too.
    let host = json!({"session": "s", "host": {"render": "plain", "maxBytes": 10}});
    send_at_once(&daemon, Framing::Headers, &[wait(), notification("session/open", &host)]);
    let asked = daemon.expect_method("reminder/compute");
    daemon.answer(&asked, json!({"body": null}));
    let delivery = daemon.expect_answer(&json!("w"));
    let content = delivery["result"]["message"]["content"].as_str().unwrap_or_default();
    assert!(content.starts_with("<system-reminder>"), "{delivery}");
}

/// A cancelled WAIT is answered once, at once, and leaves no open token.
#[test]
fn a_pending_wait_can_be_cancelled() {
    for framing in Framing::ALL {
        let mut daemon = Daemon::initialized(framing);
        open_with_generator(&mut daemon, "s");
        let staged = json!({"session": "s", "type": "note", "body": "still there"});
        daemon.request("reminder/stage", staged);
        let cancel = notification("$/cancelRequest", &json!({"id": "w"}));
        send_at_once(&daemon, framing, &[wait_message("w", "s"), cancel]);
        let asked = daemon.expect_method("reminder/compute");
        let answer = daemon.expect_answer(&json!("w"));
        assert_eq!(answer["error"]["code"], -32800, "{answer}");
        assert_eq!(open_tokens(&mut daemon, "s"), 0);

        // What comes after it is for nobody, and nothing was consumed.
        daemon.answer(&asked, json!({"body": "too late"}));
        daemon.send(&wait_message("again", "s"));
        let asked = daemon.expect_method("reminder/compute");
        daemon.answer(&asked, json!({"body": null}));
        assert_eq!(bodies(&daemon.expect_answer(&json!("again"))), ["still there"]);
        assert_eq!(open_tokens(&mut daemon, "s"), 1);
    }
}

/// A WAIT whose ground is gone while it is prepared says so: it is never answered with entries of
/// which its client could commit nothing.
#[test]
fn a_wait_that_is_overtaken_gets_a_clear_error() {
    let turn_ends = json!({"session": "s", "turn": "t", "outcome": "completed"});
    for (overtaking, reason) in [
        (notification("turn/end", &turn_ends), "turn"),
        (notification("turn/begin", &json!({"session": "s", "turn": "u"})), "turn"),
        (notification("history/cleared", &json!({"session": "s"})), "history"),
    ] {
        let mut daemon = Daemon::initialized(Framing::Headers);
        open_with_generator(&mut daemon, "s");
        send_at_once(&daemon, Framing::Headers, &[wait_message("w", "s"), overtaking]);
        let asked = daemon.expect_method("reminder/compute");
        daemon.answer(&asked, json!({"body": "of no use"}));
        let answer = daemon.expect_answer(&json!("w"));
        assert_eq!(answer["error"]["code"], -33008, "{answer}");
        let message = answer["error"]["message"].as_str().expect("a message");
        assert!(message.contains(reason), "says why, {reason}: {message}");
        assert!(message.contains("reminder/wait"), "says what to do: {message}");
        assert_eq!(open_tokens(&mut daemon, "s"), 0);
    }
}

#[test]
fn a_wait_that_is_superseded_gets_a_clear_error() {
    let mut daemon = Daemon::initialized(Framing::Headers);
    open_with_generator(&mut daemon, "s");
    let waits = [wait_message("one", "s"), wait_message("two", "s")];
    send_at_once(&daemon, Framing::Headers, &waits);
    let first = daemon.expect_method("reminder/compute");
    let second = daemon.expect_method("reminder/compute");
    daemon.answer(&first, json!({"body": "of no use"}));
    daemon.answer(&second, json!({"body": null}));
    let superseded = daemon.expect_answer(&json!("one"));
    assert_eq!(superseded["error"]["code"], -33008, "{superseded}");
    assert_eq!(superseded["error"]["data"]["kind"], "tokenExpired");
    let message = superseded["error"]["message"].as_str().expect("a message");
    assert!(message.contains("superseded"), "{message}");
    assert!(bodies(&daemon.expect_answer(&json!("two"))).is_empty());
    assert_eq!(open_tokens(&mut daemon, "s"), 1);
}

/// A session that is closed while its WAIT is prepared has nothing to offer.
#[test]
fn a_wait_of_a_closed_session_gets_an_error() {
    let mut daemon = Daemon::initialized(Framing::Headers);
    open_with_generator(&mut daemon, "s");
    let close = json!({"jsonrpc": "2.0", "id": "close", "method": "session/close",
        "params": {"session": "s"}});
    send_at_once(&daemon, Framing::Headers, &[wait_message("w", "s"), close]);
    let asked = daemon.expect_method("reminder/compute");
    assert_eq!(daemon.expect_answer(&json!("close"))["result"], Value::Null);
    daemon.answer(&asked, json!({"body": "of no use"}));
    let answer = daemon.expect_answer(&json!("w"));
    assert_eq!(answer["error"]["code"], -33008, "{answer}");
}

/// A generator that does not answer is left out after its deadline, and what it says later is for
/// nobody.
#[test]
fn a_missing_answer_never_fails_the_wait() {
    let mut daemon = Daemon::initialized(Framing::Headers);
    open_with_generator(&mut daemon, "s");
    daemon.request("reminder/stage", json!({"session": "s", "type": "note", "body": "staged"}));
    daemon.send(&wait_message("w", "s"));
    let asked = daemon.expect_method("reminder/compute");
    let delivery = daemon.expect_answer(&json!("w"));
    assert_eq!(bodies(&delivery), ["staged"]);
    daemon.answer(&asked, json!({"body": "too late"}));
    let token = &delivery["result"]["token"];
    let commit = daemon.request("reminder/commit", json!({"token": token}));
    assert_eq!(commit["result"]["already"], false, "{commit}");

    daemon.send(&wait_message("again", "s"));
    let asked = daemon.expect_method("reminder/compute");
    daemon.answer(&asked, json!({"body": null}));
    assert!(bodies(&daemon.expect_answer(&json!("again"))).is_empty());
}

/// The same for answers that are errors, or mean nothing.
#[test]
fn a_failed_answer_never_fails_the_wait() {
    let mut daemon = Daemon::initialized(Framing::Headers);
    open_with_generator(&mut daemon, "s");
    daemon.request("reminder/stage", json!({"session": "s", "type": "note", "body": "staged"}));
    for mut answer in [
        json!({"error": {"code": -32601, "message": "no such generator"}}),
        json!({"result": null}),
        json!({"result": {"body": 7}}),
        json!({"result": "a body without its object"}),
        json!({}),
    ] {
        daemon.send(&wait_message("w", "s"));
        let asked = daemon.expect_method("reminder/compute");
        answer["jsonrpc"] = json!("2.0");
        answer["id"] = asked["id"].clone();
        daemon.send(&answer);
        // What is no message at all may be refused on its own.
        let first = daemon.expect_any();
        let delivery = if first["id"] == "w" { first } else { daemon.expect_answer(&json!("w")) };
        assert_eq!(bodies(&delivery), ["staged"]);
    }
}

/// The end of the input ends a WAIT that is pending, too: nothing waits for its generator.
#[test]
fn a_pending_wait_does_not_outlive_the_input() {
    let mut daemon = Daemon::initialized(Framing::Headers);
    open_with_generator(&mut daemon, "s");
    daemon.send(&wait_message("w", "s"));
    let _asked = daemon.expect_method("reminder/compute");
    daemon.notify("exit", Value::Null);
    assert_eq!(daemon.expect_exit(), 1);
    // Whether it was still answered is a matter of its deadline.
    daemon.forgive_answer(&json!("w"));
}
