//! Laws 4, 5, 9 and 12 on the real binary, sampled: the bytes of a realistic session, cut and ended
//! at random places, sent twice, and mixed with those of another session.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use proptest::collection::btree_set;
use serde_json::{Value, json};

use crate::law;
use crate::world::{Outcome, ensure};

/// How long a daemon may take to end once its input has.
const PATIENCE: Duration = Duration::from_secs(20);

/// A daemon whose answers depend on nothing but its input.
fn daemon() -> Child {
    Command::new(env!("CARGO_BIN_EXE_reminderd"))
        .args(["--ephemeral", "--no-config", "--deterministic"])
        .env_remove("REMINDERD_LOG")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the daemon starts")
}

fn status(mut child: Child) -> Outcome<i32> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            return status.code().ok_or_else(|| "the daemon was killed by a signal".to_owned());
        }
        if Instant::now() > deadline {
            child.kill().map_err(|error| error.to_string())?;
            return Err(format!("the daemon still runs {PATIENCE:?} after its input ended"));
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// Waits until the daemon has taken everything out of the pipe, so that a cut is a cut.
fn taken(input: &ChildStdin) -> Outcome {
    let deadline = Instant::now() + PATIENCE;
    while rustix::io::ioctl_fionread(input).map_err(|error| error.to_string())? > 0 {
        if Instant::now() > deadline {
            return Err("the daemon does not read".to_owned());
        }
        thread::yield_now();
    }
    Ok(())
}

/// Sends bytes in these pieces and ends the input; the replies and the status.
fn replies(pieces: &[&[u8]]) -> Outcome<(Vec<u8>, i32)> {
    let mut child = daemon();
    let mut input = child.stdin.take().expect("stdin is piped");
    let mut output = child.stdout.take().expect("stdout is piped");
    let reader = thread::spawn(move || {
        let mut bytes = Vec::new();
        output.read_to_end(&mut bytes).map(|_| bytes)
    });
    let written: Outcome = pieces.iter().try_for_each(|piece| {
        input.write_all(piece).map_err(|error| error.to_string())?;
        taken(&input)
    });
    drop(input);
    let status = status(child)?;
    written?;
    let bytes = reader.join().expect("the reader ends").map_err(|error| error.to_string())?;
    Ok((bytes, status))
}

/// A client that talks to a daemon line by line and keeps what it said.
struct Client {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    said: Vec<Value>,
    heard: Vec<Value>,
}

impl Client {
    fn new() -> Self {
        let mut child = daemon();
        let input = child.stdin.take().expect("stdin is piped");
        let output = BufReader::new(child.stdout.take().expect("stdout is piped"));
        Self { child, input, output, said: vec![], heard: vec![] }
    }

    fn say(&mut self, message: Value) {
        writeln!(self.input, "{message}").expect("the daemon reads");
        self.said.push(message);
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        let id = self.said.len();
        self.say(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        let mut line = String::new();
        self.output.read_line(&mut line).expect("the daemon answers");
        let answer: Value = serde_json::from_str(&line).expect("an answer is JSON");
        assert_eq!(answer["id"], id, "{method}: {answer}");
        self.heard.push(answer.clone());
        answer["result"].clone()
    }

    fn tell(&mut self, method: &str, params: &Value) {
        self.say(json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    fn begin(&mut self) {
        self.ask("initialize", &json!({"capabilities": {}}));
        self.tell("initialized", &json!({}));
    }

    /// Ends in good order; everything that was said and heard.
    fn end(mut self) -> (Vec<Value>, Vec<Value>) {
        self.ask("shutdown", &Value::Null);
        self.tell("exit", &Value::Null);
        drop(self.input);
        assert_eq!(status(self.child).expect("the daemon ends"), 0);
        (self.said, self.heard)
    }
}

/// One round of a session: what a coding agent's host sends in a turn.
fn round(client: &mut Client, session: &str, round: u64) {
    let scope = json!({"session": session});
    let with = |more: Value| {
        let mut params = scope.clone();
        let members = params.as_object_mut().expect("an object");
        members.extend(more.as_object().expect("an object").clone());
        params
    };
    client.tell("turn/begin", &with(json!({"turn": format!("t{round}")})));
    client.tell("reminder/enqueue", &with(json!({"type": "mail", "body": format!("💌 {round}")})));
    client.tell(
        "reminder/observe",
        &with(json!({
            "key": "lint", "type": "lint", "body": format!("line\n{round} </system-reminder>")
        })),
    );
    client.tell(
        "task/put",
        &with(json!({
            "task": {"id": "t", "subject": "Löse \"alles\"", "status": "pending"}
        })),
    );
    client.tell(
        "pool/set",
        &with(json!({
            "pool": "tools", "names": [{"name": "Read"}, {"name": format!("tool{round}")}]
        })),
    );
    let wait = client.ask("reminder/wait", &scope);
    assert!(wait["token"].is_string(), "{wait}");
    if round.is_multiple_of(2) {
        client.ask("reminder/release", &json!({"token": wait["token"]}));
        let again = client.ask("reminder/wait", &scope);
        client.ask(
            "reminder/commit",
            &json!({
                "token": again["token"], "entries": [again["entries"][0]["id"]]
            }),
        );
    } else {
        client.ask("reminder/commit", &json!({"token": wait["token"]}));
    }
    client.ask("reminder/wait", &with(json!({"limit": {"bytes": 120}, "autoCommit": true})));
    client.ask("reminder/explain", &scope);
    client.ask("turn/end", &with(json!({"turn": format!("t{round}"), "outcome": "completed"})));
    client.ask("reminder/history", &scope);
}

fn open(client: &mut Client, session: &str) {
    client.ask(
        "session/open",
        &json!({"session": session, "reminders": [
            {"id": "style", "body": "Short sentences.", "policy": {"every": {"turns": 2}}},
            {"id": "tools", "pool": "tools", "baseline": ["Read"]}
        ]}),
    );
}

/// A session's messages, as a client would send them to a deterministic daemon.
fn session() -> Vec<Value> {
    let mut client = Client::new();
    client.begin();
    open(&mut client, "ü");
    (1..=3).for_each(|number| round(&mut client, "ü", number));
    client.end().0
}

fn bytes(messages: &[Value], headers: bool) -> Vec<u8> {
    let frame = |message: &Value| {
        let text = message.to_string();
        if headers {
            format!("Content-Length: {}\r\n\r\n{text}", text.len())
        } else {
            format!("{text}\n")
        }
    };
    messages.iter().map(frame).collect::<String>().into_bytes()
}

/// Law 5: the same bytes, cut anywhere, give the same replies. Law 12: and so they do twice.
#[test]
fn cuts_change_nothing() {
    let messages = session();
    for (headers, regressions) in [
        (false, "tests/laws/regressions/cuts_lines.txt"),
        (true, "tests/laws/regressions/cuts_headers.txt"),
    ] {
        let stream = bytes(&messages, headers);
        let whole = replies(&[&stream]).expect("the daemon answers");
        assert_eq!(whole.1, 0);
        assert_eq!(replies(&[&stream]).expect("the daemon answers"), whole, "two runs differ");
        let cuts = btree_set(1..stream.len() - 1, 1..40);
        law(regressions, 12, &cuts, |cuts| {
            let ends: Vec<_> =
                [0].into_iter().chain(cuts.iter().copied()).chain([stream.len()]).collect();
            let pieces: Vec<_> = ends.windows(2).map(|ends| &stream[ends[0]..ends[1]]).collect();
            ensure!(replies(&pieces)? == whole, "cut like this it answers something else");
            Ok(())
        });
    }
}

/// Law 9: wherever the stream ends, the process ends with a documented status and has answered what
/// it was sent, nothing else.
#[test]
fn a_session_may_end_at_any_byte() {
    let messages = session();
    for (headers, regressions) in [
        (false, "tests/laws/regressions/ends_lines.txt"),
        (true, "tests/laws/regressions/ends_headers.txt"),
    ] {
        let stream = bytes(&messages, headers);
        let (whole, _) = replies(&[&stream]).expect("the daemon answers");
        let shutdown = bytes(&messages[..messages.len() - 1], headers).len();
        law(regressions, 20, &(0..stream.len()), |end| {
            let (given, status) = replies(&[&stream[..*end]])?;
            ensure!(whole.starts_with(&given), "it answers what the whole stream does not");
            // A stream that ends inside a message is no good order; a last line needs no break.
            let in_order = [shutdown, stream.len()];
            let in_order = in_order.contains(end) || !headers && in_order.contains(&(*end + 1));
            ensure!(status == i32::from(!in_order), "it ends with {status}");
            Ok(())
        });
    }
}

/// Removes what is random by nature: tokens, ids of records and entries, and digests over them.
fn without_names(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let named = ["token", "id", "digest", "record", "committed", "held", "at", "session"];
            let kept = members.iter().filter(|(name, value)| {
                !(named.contains(&name.as_str()) && (value.is_string() || value.is_number()))
                    && *name != "committed"
                    && !(*name == "held" && value[0].is_string())
            });
            kept.map(|(name, value)| (name.clone(), without_names(value))).collect()
        }
        Value::Array(items) => items.iter().map(without_names).collect(),
        other => other.clone(),
    }
}

/// Law 4: another session's messages in between change nothing that a session gets.
#[test]
fn sessions_do_not_hear_of_each_other() {
    let answers = |others: bool| {
        let mut client = Client::new();
        client.begin();
        if others {
            open(&mut client, "other");
        }
        let mut heard = vec![];
        let mut own = |client: &mut Client, step: &dyn Fn(&mut Client)| {
            let before = client.heard.len();
            step(client);
            heard.extend(client.heard[before..].iter().map(without_names));
        };
        own(&mut client, &|client| open(client, "own"));
        for number in 1..=4 {
            if others {
                round(&mut client, "other", number);
            }
            own(&mut client, &|client| round(client, "own", number));
        }
        client.end();
        heard
    };
    assert_eq!(answers(true), answers(false));
}
