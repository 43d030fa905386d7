//! Everything on a connection takes effect in the order of its bytes, and what is slow holds up
//! nothing behind it.

use serde_json::{Value, json};

use crate::support::{Daemon, Framing};

const FILE: &str = "file:///project/a.rs";

fn open(daemon: &mut Daemon, session: &str) {
    let answer = daemon.request("session/open", json!({"session": session, "root": "/project"}));
    assert!(answer["result"].is_object(), "{answer}");
    daemon.notify("turn/begin", json!({"session": session, "turn": "t"}));
}

fn publish(version: u64, message: &str) -> Value {
    json!({
        "uri": FILE, "version": version, "checker": "check", "state": "done",
        "diagnostics": [{
            "range": {
                "start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 1}
            },
            "severity": 1, "message": message
        }]
    })
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
        let content = delivery["result"]["message"]["content"].as_str().unwrap_or_default();
        assert!(content.contains("number 1000"), "{delivery}");
        assert!(!content.contains("number 999\n") && !content.contains("too late"), "{delivery}");
    }
}

/// B111: with four calls open the fifth, which would release them, was not read.
#[test]
fn what_settles_pending_calls_is_read() {
    let mut daemon = Daemon::initialized(Framing::Headers);
    let sessions: Vec<String> = (1..=8).map(|number| format!("s{number}")).collect();
    for session in &sessions {
        open(&mut daemon, session);
        daemon.notify("edit/begin", json!({"session": session, "uris": [FILE]}));
        let edited = json!([{"uri": FILE, "version": 2}]);
        daemon.notify("edit/end", json!({"session": session, "uris": edited, "ok": true}));
    }
    let pending: Vec<Value> = sessions
        .iter()
        .map(|session| {
            let params = json!({"session": session, "uris": [FILE], "timeoutMs": 15_000});
            daemon.ask("edit/settle", params)
        })
        .collect();
    daemon.notify("diagnostic/publish", publish(2, "something is wrong"));
    for id in &pending {
        let answer = daemon.expect_answer(id);
        assert_eq!(answer["result"]["files"][0]["outcome"], "ready", "{answer}");
    }
}

/// A cancelled call is answered once, at once.
#[test]
fn a_pending_call_can_be_cancelled() {
    let mut daemon = Daemon::initialized(Framing::Headers);
    open(&mut daemon, "s");
    daemon.notify("edit/begin", json!({"session": "s", "uris": [FILE]}));
    let edited = json!([{"uri": FILE, "version": 2}]);
    daemon.notify("edit/end", json!({"session": "s", "uris": edited, "ok": true}));
    for id in [json!("a"), json!(500)] {
        daemon.send(&json!({"jsonrpc": "2.0", "id": id, "method": "edit/settle",
            "params": {"session": "s", "uris": [FILE], "timeoutMs": 15_000}}));
        daemon.notify("$/cancelRequest", json!({"id": id}));
        assert_eq!(daemon.expect_answer(&id)["error"]["code"], -32800);
    }
}
