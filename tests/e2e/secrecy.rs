//! What is told to a model goes to the model alone: no log line and no message for people carries a
//! body, or the content of a file.

use serde_json::{Value, json};

use crate::support::{Daemon, Framing, Start};

/// Stands wherever a client could put a text of its own.
const CANARY: &str = "canary-7f3a";

/// A daemon that logs all that it ever would.
fn talkative(framing: Framing, problems: bool) -> Daemon {
    let mut daemon = Start::new(framing)
        .env("REMINDERD_LOG", "trace")
        .env("RUST_LOG", "trace")
        .env("RUST_BACKTRACE", "1")
        .spawn();
    let options = json!({"problems": problems, "client": {"name": "tests", "version": "1"}});
    let params = json!({"capabilities": {}, "initializationOptions": options});
    let answer = daemon.request("initialize", params);
    assert!(answer["result"].is_object(), "{answer}");
    daemon.notify("initialized", json!({}));
    daemon
}

/// Params of every method that takes text, right and wrong.
fn messages() -> Vec<(&'static str, Value)> {
    let text = |name: &str| format!("{CANARY} {name}");
    let task = |status: Value| {
        json!({"id": text("id"), "subject": text("subject"),
        "description": text("description"), "status": status})
    };
    vec![
        (
            "session/open",
            json!({"session": "s", "reminders": [
                {"id": "rule", "body": text("rule")}, {"id": "fails", "body": "{{ facts.nobody }}"},
            ]}),
        ),
        ("session/open", json!({"session": "s", "profile": text("profile")})),
        ("session/open", json!({"session": "s", "records": [text("record"), {"id": text("id")}]})),
        ("reminder/stage", json!({"session": "s", "type": "note", "body": text("no turn")})),
        ("turn/begin", json!({"session": "s", "turn": "t", "prompt": text("prompt")})),
        ("turn/begin", json!({"session": "s", "turn": "t", "prompt": [text("prompt")]})),
        ("reminder/stage", json!({"session": "s", "type": "note", "body": text("staged")})),
        ("reminder/stage", json!({"session": "s", "type": "note", "body": {CANARY: CANARY}})),
        (
            "reminder/observe",
            json!({"session": "s", "key": "k", "type": "note", "body": text("event")}),
        ),
        ("reminder/observe", json!({"session": CANARY, "key": "k", "type": "n", "body": CANARY})),
        ("reminder/enqueue", json!({"session": "s", "body": text("pending")})),
        ("reminder/enqueue", json!({"session": "s", "body": [text("pending")]})),
        ("task/put", json!({"session": "s", "task": task(json!("pending"))})),
        ("task/put", json!({"session": "s", "task": task(json!(text("status")))})),
        ("task/put", json!({"session": "s", "task": text("task")})),
        ("task/replace", json!({"session": "s", "tasks": text("tasks")})),
        ("fact/set", json!({"session": "s", "name": "n", "value": {CANARY: [CANARY]}})),
        ("pool/set", json!({"session": "s", "pool": "p", "names": [{"name": CANARY}]})),
        ("plan/set", json!({"session": "s", "state": "accepted", "content": text("plan")})),
        ("roster/register", json!({"session": "s", "reminder": {"id": "r", "body": "{{ ("}})),
        (
            "roster/register",
            json!({"session": "s", "reminder": {"id": "r", "when": CANARY,
            "body": CANARY}}),
        ),
        ("tool/begin", json!({"session": "s", "call": "c", "name": "Bash", "input": CANARY})),
        (
            "tool/end",
            json!({"session": "s", "call": "c", "name": "Bash", "ok": true,
            "output": text("output")}),
        ),
        ("file/read", json!({"session": "s", "uri": "file:///a.rs", "text": text("file")})),
        ("file/wrote", json!({"session": "s", "uri": "file:///a.rs", "text": text("file")})),
        ("section/set", json!({"session": "s", "section": "guide", "content": text("section")})),
        (
            "textDocument/didOpen",
            json!({"textDocument": {"uri": "file:///a.rs", "languageId": "r",
            "version": 1, "text": text("document")}}),
        ),
        (
            "textDocument/didChange",
            json!({"textDocument": {"uri": "file:///a.rs", "version": 2},
            "contentChanges": [{"text": text("document")}]}),
        ),
        (
            "diagnostic/publish",
            json!({"uri": "file:///a.rs", "checker": "c", "diagnostics": [
            {"message": text("diagnostic")}]}),
        ),
        ("reminder/commit", json!({"token": CANARY, "entries": [CANARY]})),
        ("history/rewound", json!({"session": "s", "through": CANARY})),
        ("unknown/method", json!({"body": CANARY})),
        ("reminder/wait", json!(CANARY)),
        ("reminder/wait", json!({"session": "s"})),
    ]
}

/// B129: something printed on stdout and broke the framing; what goes to the log is without bodies.
#[test]
fn nothing_that_a_client_wrote_is_logged() {
    for framing in Framing::ALL {
        let mut daemon = talkative(framing, false);
        for (method, params) in messages() {
            daemon.request(method, params.clone());
            if method != "session/open" && method != "reminder/wait" {
                // As a notification the same fails unseen, or does the same again.
                daemon.notify(method, params);
            }
        }
        let delivery = daemon.request("reminder/wait", json!({"session": "s"}));
        let content = delivery["result"]["message"]["content"].as_str().expect("something to say");
        assert!(content.contains(CANARY), "the canary sings where it should: {delivery}");
        let token = &delivery["result"]["token"];
        for _ in 0..2 {
            daemon.request("reminder/commit", json!({"token": token, "placement": CANARY}));
        }
        for broken in [
            format!("{{\"body\": \"{CANARY}\""),
            format!("[\"{CANARY}\"]"),
            format!("{{\"jsonrpc\": \"2.0\", \"id\": {{\"a\": \"{CANARY}\"}}, \"method\": \"m\"}}"),
        ] {
            // A broken line must still look like a message to the reader of lines.
            daemon.send_text(&broken);
            daemon.expect_refusal();
        }
        daemon.request("shutdown", Value::Null);
        daemon.notify("exit", Value::Null);
        assert_eq!(daemon.expect_exit(), 0);
        let log = daemon.stderr();
        assert!(!log.contains(CANARY), "{log}");
    }
}

/// B007: reminder text showed up to the person. What is reported of a failed notification says
/// which and why, not what it would have told.
#[test]
fn problems_carry_no_body() {
    let mut daemon = talkative(Framing::Headers, true);
    daemon.request("session/open", json!({"session": "s"}));
    for (method, params) in [
        ("reminder/stage", json!({"session": "s", "type": "note", "body": CANARY})),
        ("reminder/enqueue", json!({"session": "nobody", "body": CANARY})),
        ("reminder/enqueue", json!({"session": "s", "body": [CANARY]})),
    ] {
        daemon.notify(method, params);
        let problem = daemon.expect_method("reminderd/problem");
        assert_eq!(problem["params"]["method"], method, "{problem}");
        assert!(!problem.to_string().contains(CANARY), "{problem}");
    }
    assert!(!daemon.stderr().contains(CANARY));
}

/// B007: a body stands in the delivery and in the record, and in no member that is for people.
#[test]
fn rows_and_labels_carry_no_body() {
    let mut daemon = talkative(Framing::Headers, true);
    daemon.request("session/open", json!({"session": "s"}));
    daemon.request("turn/begin", json!({"session": "s", "turn": "t"}));
    daemon.request("reminder/stage", json!({"session": "s", "type": "note", "body": CANARY}));
    daemon.request("reminder/enqueue", json!({"session": "s", "body": CANARY}));
    let delivery = daemon.request("reminder/wait", json!({"session": "s"}))["result"].clone();
    assert_eq!(delivery["row"], "◇ 2 system reminders (note, pending events)");
    for method in ["reminder/explain", "session/state", "roster/list"] {
        let told = daemon.request(method, json!({"session": "s"}));
        assert!(told["result"].is_object() || told["result"].is_array(), "{told}");
        assert!(!told.to_string().contains(CANARY), "{method}: {told}");
    }
}
