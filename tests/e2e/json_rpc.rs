//! Framing, life and tolerance of the connection. The tests named after a fault tell how other
//! servers got it wrong.

use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Daemon, Framing, PATIENCE, Start, wait_until};

const MESSAGE_BYTES_MAX: usize = 64 << 20;

fn list(daemon: &mut Daemon) {
    assert_eq!(daemon.request("session/list", json!({}))["result"], json!([]));
}

/// B113: the process did not end on `exit` while its input was open.
#[test]
fn exit_ends_the_process_while_input_is_open() {
    for framing in Framing::ALL {
        let mut daemon = Daemon::initialized(framing);
        assert_eq!(daemon.request("shutdown", Value::Null)["result"], Value::Null);
        daemon.notify("exit", Value::Null);
        assert_eq!(daemon.expect_exit_within(Duration::from_secs(1)), 0);

        let mut daemon = Daemon::initialized(framing);
        daemon.notify("exit", Value::Null);
        assert_eq!(daemon.expect_exit_within(Duration::from_secs(1)), 1);

        let mut daemon = Start::new(framing).spawn();
        daemon.notify("exit", Value::Null);
        assert_eq!(daemon.expect_exit_within(Duration::from_secs(1)), 1);
    }
}

#[test]
fn exit_does_not_wait_for_a_client_that_does_not_read() {
    let mut daemon = Start::new(Framing::Lines).unread().spawn();
    daemon.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}));
    // More than a pipe holds, less than what may wait.
    for id in 2..2000 {
        daemon.send(&json!({"jsonrpc": "2.0", "id": id, "method": "unknown"}));
    }
    daemon.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "shutdown"}));
    daemon.notify("exit", Value::Null);
    assert_eq!(daemon.expect_exit_within(Duration::from_secs(5)), 0);
}

/// B115: the wrong exit code at the end of the input.
#[test]
fn the_end_of_input_counts_as_exit() {
    for framing in Framing::ALL {
        let mut nothing_said = Start::new(framing).spawn();
        nothing_said.close_input();
        assert_eq!(nothing_said.expect_exit(), 1);

        let mut without_shutdown = Daemon::initialized(framing);
        without_shutdown.close_input();
        assert_eq!(without_shutdown.expect_exit(), 1);

        let mut after_shutdown = Daemon::initialized(framing);
        after_shutdown.request("shutdown", Value::Null);
        after_shutdown.close_input();
        assert_eq!(after_shutdown.expect_exit(), 0);

        let mut inside_a_body = Daemon::initialized(framing);
        inside_a_body.request("shutdown", Value::Null);
        let frame = framing.frame(r#"{"jsonrpc":"2.0","method":"exit"}"#);
        inside_a_body.send_bytes(&frame[..frame.len() - 5]);
        inside_a_body.close_input();
        assert_eq!(inside_a_body.expect_exit(), 1);
    }
}

#[test]
fn a_last_line_without_a_line_break_is_a_message() {
    let mut daemon = Daemon::initialized(Framing::Lines);
    daemon.request("shutdown", Value::Null);
    daemon.send_bytes(br#"{"jsonrpc":"2.0","id":"last","method":"session/list"}"#);
    daemon.close_input();
    assert_eq!(daemon.expect_answer(&json!("last"))["error"]["code"], -32600);
    assert_eq!(daemon.expect_exit(), 0);
}

/// B116: `shutdown` with null or empty params was refused.
#[test]
fn params_that_say_nothing_are_accepted() {
    for framing in Framing::ALL {
        for params in ["", r#","params":null"#, r#","params":{}"#, r#","params":[]"#] {
            let mut daemon = Daemon::initialized(framing);
            let say = |daemon: &mut Daemon, id: &str, method: &str| {
                daemon.send_text(&format!(
                    r#"{{"jsonrpc":"2.0","id":"{id}","method":"{method}"{params}}}"#
                ));
                daemon.expect_answer(&json!(id))
            };
            assert_eq!(say(&mut daemon, "l", "session/list")["result"], json!([]));
            daemon.send_text(&format!(r#"{{"jsonrpc":"2.0","method":"custom/note"{params}}}"#));
            assert_eq!(say(&mut daemon, "s", "shutdown")["result"], Value::Null);
            daemon.send_text(&format!(r#"{{"jsonrpc":"2.0","method":"exit"{params}}}"#));
            assert_eq!(daemon.expect_exit(), 0);
        }
    }
}

/// B119: after a bad message the reader looped, or the stream never recovered.
#[test]
fn a_message_that_is_not_json_is_refused_and_the_stream_goes_on() {
    for framing in Framing::ALL {
        let mut daemon = Daemon::initialized(framing);
        for (text, code) in [
            (r#"{"jsonrpc":"2.0","id":1,"method""#, -32700),
            ("nonsense", -32700),
            (r#"[{"jsonrpc":"2.0","id":1,"method":"session/list"}]"#, -32600),
            (r#"{"jsonrpc":"2.0","id":null,"method":"session/list"}"#, -32600),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"session/list"}"#, -32600),
            (r#"{"jsonrpc":"2.0","id":{},"method":"session/list"}"#, -32600),
        ] {
            daemon.send_text(text);
            assert_eq!(daemon.expect_refusal(), code, "{text}");
            list(&mut daemon);
        }
        let mut not_text = framing.frame(r#"{"a":"?"}"#);
        for byte in &mut not_text {
            *byte = if *byte == b'?' { 0xFF } else { *byte };
        }
        daemon.send_bytes(&not_text);
        assert_eq!(daemon.expect_refusal(), -32700);
        list(&mut daemon);
    }
}

/// B119: headers that cannot be read.
#[test]
fn headers_that_cannot_be_read_end_the_process_with_a_reason() {
    let endless = format!("X: {}", "y".repeat(9 * 1024));
    for headers in [
        "Content-Length: abc\r\n\r\n",
        "Content-Length: -5\r\n\r\n",
        "Content-Length: +5\r\n\r\n",
        "Content-Length: 99999999999999999999\r\n\r\n",
        "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
        "Content-Type: x\r\n\r\n",
        "hello\r\n",
        &endless,
    ] {
        let mut daemon = Daemon::initialized(Framing::Headers);
        list(&mut daemon);
        daemon.send_bytes(headers.as_bytes());
        assert_eq!(daemon.expect_exit(), 1, "{headers}");
        assert!(
            wait_until(PATIENCE, || daemon.stderr().contains("the input cannot be followed")),
            "{headers}: {}",
            daemon.stderr()
        );
    }
}

/// B121: string ids came back as another type.
#[test]
fn ids_come_back_as_they_were_sent() {
    for framing in Framing::ALL {
        let mut daemon = Daemon::initialized(framing);
        let ids = ["\"7\"", "7", "\"a-b\"", "0", "-1", "9007199254740993", "\"\""];
        for id in ids {
            daemon.send_text(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"session/list"}}"#));
        }
        for id in ids {
            assert_eq!(daemon.expect_any()["id"].to_string(), id);
        }
    }
}

/// B123: unknown methods broke the session.
#[test]
fn unknown_methods_and_members_are_tolerated() {
    for framing in Framing::ALL {
        let mut daemon = Daemon::initialized(framing);
        for method in ["no/such", "$/no/such", "textDocument/hover"] {
            let answer = daemon.request(method, json!({"x": 1}));
            assert_eq!(answer["error"]["code"], -32601);
            assert_eq!(answer["error"]["data"]["kind"], "methodNotFound");
            assert_eq!(answer["error"]["data"]["method"], method);
            daemon.notify(method, json!({"x": 1}));
        }
        daemon.notify("$/setTrace", json!({"value": "verbose"}));
        daemon.notify("$/cancelRequest", json!({"id": 12345}));
        daemon.send(&json!({
            "jsonrpc": "2.0", "id": "u", "method": "session/list", "unknown": {"x": [1]},
            "params": {"unknown": 1}
        }));
        assert_eq!(daemon.expect_answer(&json!("u"))["result"], json!([]));
    }
}

/// B129: something printed on stdout and broke the framing.
#[test]
fn stdout_carries_frames_only_however_much_is_logged() {
    for framing in Framing::ALL {
        let start = Start::new(framing).env("RUST_LOG", "trace").env("RUST_BACKTRACE", "1");
        let mut daemon = start.spawn();
        daemon.initialize();
        daemon.notify("turn/begin", json!({"prompt": "a secret body"}));
        daemon.expect_method("reminderd/problem");
        daemon.request("no/such", json!({"body": "a secret body"}));
        daemon.send_text("{\"a secret body\":");
        assert_eq!(daemon.expect_refusal(), -32700);
        daemon.request("shutdown", Value::Null);
        daemon.notify("exit", Value::Null);
        assert_eq!(daemon.expect_exit(), 0);
        assert!(!daemon.stderr().contains("secret"), "{}", daemon.stderr());
    }
}

#[test]
fn a_notification_that_fails_is_reported_at_most_once_a_second() {
    let mut daemon = Daemon::initialized(Framing::Lines);
    for _ in 0..50 {
        daemon.notify("turn/begin", json!({}));
    }
    let first = daemon.expect_method("reminderd/problem");
    assert_eq!(first["params"]["method"], "turn/begin");
    assert!(first["params"]["message"].is_string());
    let second = daemon.expect_method("reminderd/problem");
    assert_eq!(second["params"]["code"], first["params"]["code"]);
    assert_eq!(second["params"]["leftOut"], 48);
}

#[test]
fn problems_can_be_switched_off() {
    let mut daemon = Start::new(Framing::Lines).spawn();
    daemon.request("initialize", json!({"initializationOptions": {"problems": false}}));
    daemon.notify("turn/begin", json!({}));
    list(&mut daemon);
}

#[test]
fn nothing_but_initialize_is_answered_before_initialize() {
    for framing in Framing::ALL {
        let mut daemon = Start::new(framing).spawn();
        assert_eq!(daemon.request("session/list", json!({}))["error"]["code"], -32002);
        daemon.notify("turn/begin", json!({}));
        let options = json!({"initializationOptions": {"protocolVersion": 99}});
        let refused = daemon.request("initialize", options);
        assert_eq!(refused["error"]["code"], -32602);
        assert_eq!(refused["error"]["data"]["kind"], "version");
        assert_eq!(refused["error"]["data"]["supported"], json!([1]));
        let result = daemon.initialize();
        assert_eq!(result["serverInfo"]["name"], "reminderd");
        assert_eq!(daemon.request("initialize", json!({}))["error"]["code"], -32600);
        daemon.request("shutdown", json!({}));
        assert_eq!(daemon.request("session/list", json!({}))["error"]["code"], -32600);
    }
}

#[test]
fn odd_clients_can_initialize() {
    for params in [
        json!(null),
        json!({}),
        json!({"capabilities": null}),
        json!({"processId": null, "rootUri": "C:\\x", "rootPath": 5, "capabilities": [],
               "trace": "loud", "workspaceFolders": {}, "clientInfo": {"version": 2}}),
    ] {
        let mut daemon = Start::new(Framing::Headers).spawn();
        assert!(daemon.request("initialize", params)["result"].is_object());
    }
}

#[test]
fn the_first_byte_decides_the_framing() {
    let message = r#"{"jsonrpc":"2.0","id":1,"method":"session/list"}"#;
    for before in ["", "\n\r\n \t", "\u{feff}", "\u{feff} "] {
        let mut daemon = Start::new(Framing::Lines).spawn();
        daemon.send_bytes(format!("{before}{message}\n\n \r\n").as_bytes());
        assert_eq!(daemon.expect_answer(&json!(1))["error"]["code"], -32002);
        let mut daemon = Start::new(Framing::Headers).spawn();
        let length = message.len();
        let headers = format!("X-Other: 1\r\ncontent-LENGTH:{length}\r\n\r\n{message}\r\n");
        daemon.send_bytes(headers.as_bytes());
        assert_eq!(daemon.expect_answer(&json!(1))["error"]["code"], -32002);
    }
}

#[test]
fn a_message_over_the_limit_is_skipped_without_being_held() {
    for framing in Framing::ALL {
        let mut daemon = Daemon::initialized(framing);
        let too_long = "x".repeat(MESSAGE_BYTES_MAX - 1);
        let frame = framing.frame(&format!("{{{too_long}}}"));
        let before_bytes = daemon.memory_peak_bytes();
        // Refused as soon as the limit is passed, and not only when the message ends.
        daemon.send_bytes(&frame[..frame.len() - 1]);
        let refusal = daemon.expect_answer(&Value::Null);
        assert_eq!(refusal["error"]["code"], -33009);
        assert_eq!(refusal["error"]["data"]["kind"], "limitExceeded");
        daemon.send_bytes(&frame[frame.len() - 1..]);
        list(&mut daemon);
        let grown_bytes = daemon.memory_peak_bytes() - before_bytes;
        let allowed_bytes = match framing {
            // An announced length is enough to know.
            Framing::Headers => 2 << 20,
            Framing::Lines => MESSAGE_BYTES_MAX + (2 << 20),
        };
        assert!(grown_bytes < allowed_bytes, "{framing:?}: {grown_bytes}");
    }
}

#[test]
fn a_message_of_just_the_limit_is_read() {
    for framing in Framing::ALL {
        let mut daemon = Daemon::initialized(framing);
        let around = r#"{"jsonrpc":"2.0","id":"big","method":"session/list","x":""}"#;
        let padding = "x".repeat(MESSAGE_BYTES_MAX - around.len());
        daemon.send_text(&around.replace(r#""x":"""#, &format!(r#""x":"{padding}""#)));
        assert_eq!(daemon.expect_answer(&json!("big"))["result"], json!([]));
    }
}

#[test]
fn an_announced_length_costs_nothing() {
    let mut daemon = Daemon::initialized(Framing::Headers);
    let (before_bytes, read_bytes) = (daemon.memory_peak_bytes(), daemon.bytes_read());
    let announced = format!("Content-Length: {MESSAGE_BYTES_MAX}\r\n\r\n{{");
    daemon.send_bytes(announced.as_bytes());
    daemon.expect_read(read_bytes + announced.len());
    assert!(daemon.memory_peak_bytes() - before_bytes < 1 << 20);
    daemon.close_input();
    assert_eq!(daemon.expect_exit(), 1);
}

#[test]
fn deep_nesting_costs_no_stack() {
    for framing in Framing::ALL {
        let mut daemon = Daemon::initialized(framing);
        let nested = "[".repeat(1_000_000) + &"]".repeat(1_000_000);
        daemon.send_text(&format!(
            r#"{{"jsonrpc":"2.0","id":"deep","method":"no/such","params":{{"x":{nested}}}}}"#
        ));
        assert_eq!(daemon.expect_answer(&json!("deep"))["error"]["code"], -32601);
        daemon.send_text(&nested);
        assert_eq!(daemon.expect_refusal(), -32600);
        daemon.send_text(&"[".repeat(1_000_000));
        assert_eq!(daemon.expect_refusal(), -32700);
        list(&mut daemon);
    }
}

/// A stream of every kind of message, and where its messages end.
fn sample_stream(framing: Framing) -> (Vec<u8>, Vec<usize>) {
    let mut stream = Vec::new();
    let mut ends = vec![0];
    for message in [
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{}}}"#,
        r#"{"jsonrpc":"2.0","method":"initialized","params":{}}"#,
        r#"{"jsonrpc":"2.0","id":"lü","method":"session/list"}"#,
        r#"{"jsonrpc":"2.0","id":null,"method":"session/list"}"#,
        r#"{"not json"#,
        r#"{"jsonrpc":"2.0","id":3,"method":"no/such","params":[1]}"#,
        r#"{"jsonrpc":"2.0","id":4,"method":"shutdown"}"#,
    ] {
        stream.extend(framing.frame(message));
        ends.push(stream.len());
    }
    (stream, ends)
}

/// Law 9: a stream that ends at any byte ends the process with a documented status.
#[test]
fn a_stream_may_end_at_any_byte() {
    for framing in Framing::ALL {
        let (stream, ends) = sample_stream(framing);
        let sampled = (0..stream.len()).step_by(13);
        for position in
            sampled.chain(ends.iter().copied()).chain(ends.iter().map(|end| end.saturating_sub(1)))
        {
            let mut daemon = Start::new(framing).unread().spawn();
            daemon.send_bytes(&stream[..position]);
            daemon.close_input();
            let shut_down = position == stream.len()
                || framing == Framing::Lines && position == stream.len() - 1;
            assert_eq!(daemon.expect_exit(), i32::from(!shut_down), "{framing:?} {position}");
        }
    }
}

/// Law 5: the same bytes, cut anywhere, give the same replies.
#[test]
fn a_stream_may_be_cut_anywhere() {
    for framing in Framing::ALL {
        let (stream, _) = sample_stream(framing);
        let replies = |chunk: usize| {
            let mut daemon = Start::new(framing).spawn();
            for piece in stream.chunks(chunk) {
                let written = daemon.written();
                daemon.send_bytes(piece);
                wait_until(PATIENCE, || daemon.written() > written);
            }
            (0..6).map(|_| daemon.expect_any()).collect::<Vec<_>>()
        };
        let whole = replies(stream.len());
        assert_eq!(whole.len(), 6);
        for chunk in [1, 2, 7, 64] {
            assert_eq!(replies(chunk), whole, "{framing:?} {chunk}");
        }
    }
}

/// What a daemon takes that has nothing to do.
fn idle_memory_bytes() -> usize {
    let mut idle = Daemon::initialized(Framing::Lines);
    let bytes = idle.memory_peak_bytes();
    idle.request("shutdown", Value::Null);
    idle.notify("exit", Value::Null);
    assert_eq!(idle.expect_exit(), 0);
    bytes
}

/// A client that does not read is not read from, and loses nothing.
#[test]
fn a_slow_reader_gets_everything() {
    for framing in Framing::ALL {
        let mut daemon = Start::new(framing).unread().spawn();
        daemon.send(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}}));
        let count = 40_000;
        let method = "no/such/method/with/a/long/name".repeat(4);
        let mut stream = Vec::new();
        for id in 1..=count {
            stream.extend(
                framing.frame(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}"}}"#)),
            );
        }
        daemon.send_bytes(&stream);
        let mut last = (0, 0);
        let stands_still = wait_until(PATIENCE, || {
            let written = daemon.written();
            last = if written == last.0 { (written, last.1 + 1) } else { (written, 0) };
            written > 0 && last.1 > 40
        });
        assert!(stands_still);
        assert!(daemon.written() < stream.len(), "the daemon reads on without end");
        // The program itself takes some of it, and more the more it can do.
        let idle = idle_memory_bytes();
        let peak = daemon.memory_peak_bytes();
        assert!(peak < idle + (12 << 20), "{peak} bytes, and {idle} without work");
        daemon.read_on();
        for id in 0..=count {
            assert_eq!(daemon.expect_any()["id"], id);
        }
    }
}

#[test]
fn a_closed_output_ends_the_process_at_the_first_write() {
    let mut daemon = Start::new(Framing::Lines).unread().spawn();
    daemon.close_output();
    daemon.send(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}}));
    assert_eq!(daemon.expect_exit(), 1);
}

#[test]
fn the_death_of_the_client_ends_the_process() {
    let mut client = Command::new("sleep").arg("1000").spawn().expect("sleep starts");
    let mut daemon = Start::new(Framing::Headers).spawn();
    daemon.request("initialize", json!({"processId": client.id(), "capabilities": {}}));
    list(&mut daemon);
    client.kill().expect("sleep runs");
    let status = daemon.expect_exit_within(Duration::from_secs(5));
    client.wait().expect("sleep is our child");
    assert_eq!(status, 1);
}

#[test]
fn a_client_that_is_dead_already_ends_the_process_after_its_answer() {
    let mut client = Command::new("true").spawn().expect("true starts");
    client.wait().expect("true is our child");
    let mut daemon = Start::new(Framing::Headers).spawn();
    daemon.request("initialize", json!({"processId": client.id(), "capabilities": {}}));
    assert_eq!(daemon.expect_exit_within(Duration::from_secs(5)), 1);
}
