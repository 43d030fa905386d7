//! Recordings of live sessions, with a real disk behind them, and what replays of them say.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::people::{command, json_of};
use crate::shared::Home;
use crate::support::{Daemon, PATIENCE, wait_until};

/// A session that was recorded.
struct Recorded {
    home: Home,
    file: PathBuf,
    /// What the model was told, in order.
    told: Vec<String>,
}

fn done(client: &mut Daemon, method: &str, params: Value) -> Value {
    let answer = client.request(method, params);
    assert!(answer.get("error").is_none(), "{method}: {answer}");
    answer["result"].clone()
}

/// What a WAIT tells, committed.
fn tell(client: &mut Daemon, told: &mut Vec<String>) {
    let delivery = done(client, "reminder/wait", json!({"session": "s"}));
    let entries = delivery["entries"].as_array().expect("entries");
    told.extend(entries.iter().map(|entry| entry["body"].as_str().expect("text").to_owned()));
    done(client, "reminder/commit", json!({"token": delivery["token"]}));
}

impl Recorded {
    /// A session of two clients, with instructions, an edited file, a secret one, diagnostics, a rule
    /// that changes meanwhile, and text that is read from right to left.
    fn new() -> Self {
        let home = Home::new();
        let root = home.path().join("project");
        let users = home.path().join("config/reminderd/reminderd.toml");
        fs::create_dir_all(root.join("src")).expect("it can be made");
        fs::create_dir_all(users.parent().expect("a directory")).expect("it can be made");
        let write = |name: &str, text: &str| {
            let path = root.join(name);
            fs::write(&path, text).expect("it can be written");
            path
        };
        let rule = |id: &str, body: &str| {
            let rule =
                format!("[[reminders]]\nid = \"{id}\"\nwhen = \"true\"\nbody = \"{body}\"\n");
            fs::write(&users, rule).expect("it can be written");
        };
        rule("mine", "One at a time.");
        write("src/AGENTS.md", "Write tests first.");
        let (code, secret) = (write("src/code.rs", "one\ntwo\n"), write(".env", "KEY=xyzzy-1\n"));
        assert!(command(&home, &["record", "start"]).status().expect("it runs").success());
        let mut told = Vec::new();
        let mut client = home.connect();
        done(&mut client, "session/open", json!({"session": "s", "root": root}));
        done(&mut client, "turn/begin", json!({"session": "s", "turn": "1", "prompt": "שלום"}));
        done(&mut client, "file/read", json!({"session": "s", "uri": code}));
        done(
            &mut client,
            "file/read",
            json!({"session": "s", "uri": secret, "text": "KEY=xyzzy-1\n"}),
        );
        // An editor has it open, and the person speaks of it.
        let document =
            json!({"uri": secret, "languageId": "x", "version": 1, "text": "KEY=xyzzy-1\n"});
        client.notify("textDocument/didOpen", json!({"textDocument": document}));
        let change = json!({"textDocument": {"uri": secret, "version": 2},
            "contentChanges": [{"text": "KEY=xyzzy-3\n"}]});
        client.notify("textDocument/didChange", change);
        let mention =
            json!({"session": "s", "kind": "file", "target": secret, "content": "KEY=xyzzy-4\n"});
        done(&mut client, "mention/add", mention);
        done(&mut client, "reminder/enqueue", json!({"session": "s", "body": "مرحبا $HOME"}));
        tell(&mut client, &mut told);
        // One that is cancelled before anything is looked at for it.
        let wait = json!({"jsonrpc": "2.0", "id": "w", "method": "reminder/wait",
            "params": {"session": "s"}});
        let cancel = json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": "w"}});
        client.send_bytes(format!("{wait}\n{cancel}\n").as_bytes());
        assert_eq!(client.expect_answer(&json!("w"))["error"]["code"], -32800);
        write("src/code.rs", "one\nthree\n");
        write(".env", "KEY=xyzzy-2\n");
        tell(&mut client, &mut told);
        // Another client of the same session, which checks.
        let mut checker = home.connect();
        done(&mut checker, "session/open", json!({"session": "s"}));
        done(&mut client, "edit/begin", json!({"session": "s", "uris": [code]}));
        write("src/code.rs", "one\nthree\nfour\n");
        let edited = json!({"session": "s", "uris": [{"uri": code}], "ok": true});
        done(&mut client, "edit/end", edited);
        let problem = json!({"range": {"start": {"line": 2, "character": 0},
            "end": {"line": 2, "character": 4}}, "severity": 1, "message": "four is unknown"});
        done(
            &mut checker,
            "diagnostic/publish",
            json!({"uri": code, "checker": "c", "diagnostics": [problem]}),
        );
        tell(&mut client, &mut told);
        done(&mut checker, "shutdown", Value::Null);
        checker.notify("exit", Value::Null);
        checker.expect_exit();
        rule("later", "Two at a time.");
        assert!(wait_until(PATIENCE, || {
            let explained = done(&mut client, "reminder/explain", json!({"session": "s"}));
            let rows = explained["rows"].as_array().expect("rows");
            rows.iter().any(|row| row["id"] == "later" && row["speaks"] == true)
        }));
        tell(&mut client, &mut told);
        done(&mut client, "turn/end", json!({"session": "s", "turn": "1", "outcome": "completed"}));
        done(&mut client, "session/close", json!({"session": "s"}));
        let rows = || json_of(&home, &["record"]);
        let file = rows()[0]["file"].as_str().expect("a path").to_owned();
        let is_whole = || {
            let text = fs::read_to_string(&file).unwrap_or_default();
            text.lines().last().is_some_and(|line| line.contains("session/close"))
        };
        assert!(wait_until(PATIENCE, is_whole));
        let told_of = |text: &str| told.iter().any(|body| body.contains(text));
        for text in ["One at", "Write tests", "مرحبا $HOME", "three", "four is", "Two at", ".env"]
        {
            assert!(told_of(text), "{text}: {told:?}");
        }
        // Nothing is left of what it was made on.
        fs::remove_dir_all(&root).expect("it is there");
        fs::remove_file(&users).expect("it is there");
        Self { file: file.into(), home, told }
    }

    fn text(&self) -> String {
        fs::read_to_string(&self.file).expect("it can be read")
    }

    /// Another one beside it.
    fn with(&self, name: &str, text: &str) -> String {
        let path = self.home.path().join(name);
        fs::write(&path, text).expect("it can be written");
        path.to_str().expect("it is text").to_owned()
    }

    fn replay(&self, arguments: &[&str]) -> (i32, String) {
        let file = self.file.to_str().expect("it is text");
        let output = command(&self.home, &[&["replay", file], arguments].concat()).output();
        let output = output.expect("it runs");
        let said = [output.stdout, output.stderr].concat();
        (output.status.code().expect("a status"), String::from_utf8(said).expect("UTF-8"))
    }
}

#[test]
fn a_recording_says_the_same_where_nothing_is_left_of_its_machine() {
    let recorded = Recorded::new();
    let (status, said) = recorded.replay(&[]);
    assert_eq!(status, 0, "{said}");
    let reminders = recorded.told.len();
    assert!(said.contains(&format!("4 WAITs, {reminders} reminders")), "{said}");
    // It is a script like any other.
    let file = recorded.file.to_str().expect("it is text");
    let output = command(&recorded.home, &["run", file]).output().expect("it runs");
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn a_recording_holds_no_secret_and_is_its_owners_alone() {
    let recorded = Recorded::new();
    assert!(!recorded.text().contains("xyzzy"), "what a secret file holds");
    let mode =
        |path: &std::path::Path| fs::metadata(path).expect("it is there").permissions().mode();
    assert_eq!(mode(&recorded.file) & 0o777, 0o600);
    assert_eq!(mode(recorded.file.parent().expect("a directory")) & 0o777, 0o700);
}

/// What would my new rule have said, and what would it have cost?
#[test]
fn another_configuration_shows_what_it_would_have_said() {
    let recorded = Recorded::new();
    let rule = "[[reminders]]\nid = \"new\"\nwhen = \"true\"\nbody = \"Ask before you push.\"\n\
                policy = \"always\"\n";
    let config = recorded.with("new.toml", rule);
    let (status, said) = recorded.replay(&["--config", &config]);
    assert_eq!(status, 1, "{said}");
    for part in ["WAIT 1 of session s", "now: new", "Ask before you push.", "recorded: mine"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let file = recorded.file.to_str().expect("it is text");
    let output = command(&recorded.home, &["replay", file, "--config", &config, "--json"]).output();
    let said: Value = serde_json::from_slice(&output.expect("it runs").stdout).expect("JSON");
    let new = &said["byType"]["new"];
    assert_eq!((&new["recorded"]["times"], &new["now"]["times"]), (&json!(0), &json!(4)), "{said}");
    assert_eq!(said["byType"]["mine"]["now"]["times"], 0, "{said}");
    let more = new["now"]["tokens"].as_u64().expect("a number");
    assert!(more >= 4 * 3, "{said}");
    let broken = recorded.with("broken.toml", "[[reminders]\n");
    let (status, said) = recorded.replay(&["--config", &broken]);
    assert!(status == 2 && said.contains("broken.toml:1"), "{said}");
}

#[test]
fn a_planted_difference_is_shown_with_its_place() {
    let recorded = Recorded::new();
    let text = recorded.text();
    for (from, to, shown) in [
        ("Write tests first.", "Write tests last.", "WAIT 1 of session s"),
        ("four is unknown", "four is known", "WAIT 3 of session s"),
    ] {
        // What was recorded is told in an expectation; what was seen, in front of it.
        let changed: String = text
            .lines()
            .map(|line| {
                let line = if line.contains("\"expect\"") {
                    line.replace(from, to)
                } else {
                    line.to_owned()
                };
                line + "\n"
            })
            .collect();
        let file = recorded.with("changed.jsonl", &changed);
        let output = command(&recorded.home, &["replay", &file]).output().expect("it runs");
        let said = String::from_utf8(output.stdout).expect("UTF-8");
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(shown) && said.contains(from) && said.contains(to), "{said}");
    }
}

#[test]
fn what_cannot_be_replayed_is_said_with_the_reason() {
    let recorded = Recorded::new();
    let refuse = |name: &str, text: &str| {
        let file = recorded.with(name, text);
        let output = command(&recorded.home, &["replay", &file]).output().expect("it runs");
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        String::from_utf8(output.stderr).expect("UTF-8")
    };
    assert!(refuse("a.jsonl", "{\"open\":{\"session\":\"s\"}}\n").contains("is no recording"));
    assert!(refuse("b.jsonl", "\u{0}\u{1}").contains("b.jsonl:1"));
    assert!(refuse("c.jsonl", "").contains("is no recording"));
    let strange =
        recorded.text().replacen("{\"surroundings\":{", "{\"surroundings\":{\"seen\":[5],", 1);
    assert!(refuse("e.jsonl", &strange).contains("record it again"));
    assert!(refuse_missing(&recorded).contains("/nowhere.jsonl"));
}

/// The page of a recording says of each WAIT why every reminder spoke or was silent.
#[test]
fn a_recording_makes_a_page() {
    let recorded = Recorded::new();
    let page = crate::report::data(&recorded.home, &[recorded.file.to_str().expect("it is text")]);
    let waits = page["waits"].as_array().expect("WAITs");
    let told = waits.iter().flat_map(|wait| wait["entries"].as_array().expect("entries"));
    let told: Vec<_> = told.map(|entry| entry["body"].as_str().expect("text")).collect();
    assert_eq!(told, recorded.told);
    for wait in waits {
        let explained = wait["rows"].as_array().expect("rows").iter();
        let explained = explained.map(|row| {
            let place = row.as_u64().and_then(|place| usize::try_from(place).ok());
            &page["explanations"][place.expect("a place")]
        });
        let speaks: Vec<_> = explained.filter(|row| row["speaks"] == true).collect();
        let entries = wait["entries"].as_array().expect("entries");
        assert_eq!(speaks.is_empty(), entries.is_empty(), "{wait}");
    }
}

/// As when the daemon was killed.
#[test]
fn a_recording_that_ends_within_a_line_is_played_as_far_as_it_goes() {
    let recorded = Recorded::new();
    let text = recorded.text();
    for cut in [10, text.len() / 2] {
        let file = recorded.with("cut.jsonl", &text[..text.floor_char_boundary(text.len() - cut)]);
        let output = command(&recorded.home, &["replay", &file]).output().expect("it runs");
        assert!(output.status.success(), "{output:?}");
    }
}

fn refuse_missing(recorded: &Recorded) -> String {
    let output = command(&recorded.home, &["replay", "/nowhere.jsonl"]).output().expect("it runs");
    assert_eq!(output.status.code(), Some(2));
    String::from_utf8(output.stderr).expect("UTF-8")
}

#[test]
fn recording_is_begun_and_ended_by_a_word_and_forgotten_with_the_session() {
    let home = Home::new();
    let count = || json_of(&home, &["record"]).len();
    let say = |arguments: &[&str]| {
        assert!(command(&home, arguments).status().expect("it runs").success(), "{arguments:?}");
    };
    let session = |client: &mut Daemon, name: &str| {
        done(client, "session/open", json!({"session": name}));
        done(client, "session/close", json!({"session": name}));
    };
    let mut client = home.connect();
    session(&mut client, "a");
    assert_eq!(count(), 0);
    say(&["record", "start"]);
    say(&["record", "start"]);
    session(&mut client, "b");
    session(&mut client, "b");
    // One that cannot be opened leaves nothing.
    assert!(client.request("session/open", json!({"session": ""})).get("error").is_some());
    assert!(wait_until(PATIENCE, || count() == 2), "{}", count());
    say(&["record", "stop"]);
    say(&["record", "stop"]);
    session(&mut client, "c");
    assert_eq!(count(), 2);
    say(&["forget", "b", "--yes"]);
    assert_eq!(count(), 0);
}

/// What checkers said before a session was opened is of no one session, and in each recording.
#[test]
fn what_was_said_of_files_before_a_session_is_in_its_recording() {
    let home = Home::new();
    let file = home.path().join("code.rs");
    fs::write(&file, "one\n").expect("it can be written");
    assert!(command(&home, &["record", "start"]).status().expect("it runs").success());
    let mut told = Vec::new();
    let mut client = home.connect();
    let problem = |text: &str| {
        json!({"range": {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 3}},
            "severity": 1, "message": text})
    };
    let publish = |client: &mut Daemon, problems: Vec<Value>| {
        done(
            client,
            "diagnostic/publish",
            json!({"uri": file, "checker": "c", "diagnostics": problems}),
        );
    };
    // What a session denies is known before it is opened, too.
    for name in ["secret.pem", "denied.txt"] {
        let document = json!({"uri": home.path().join(name), "languageId": "x", "version": 1,
            "text": "xyzzy"});
        client.notify("textDocument/didOpen", json!({"textDocument": document}));
    }
    publish(&mut client, vec![problem("old")]);
    let opening = json!({"session": "s", "root": home.path(), "deny": ["denied.txt"]});
    done(&mut client, "session/open", opening);
    done(&mut client, "turn/begin", json!({"session": "s", "turn": "1"}));
    done(&mut client, "edit/begin", json!({"session": "s", "uris": [file]}));
    done(&mut client, "edit/end", json!({"session": "s", "uris": [{"uri": file}], "ok": true}));
    publish(&mut client, vec![problem("old"), problem("new")]);
    tell(&mut client, &mut told);
    assert!(told[0].contains("there before") && told[0].contains("old"), "{told:?}");
    done(&mut client, "session/close", json!({"session": "s"}));
    let files = || json_of(&home, &["record"]);
    assert!(wait_until(PATIENCE, || files().len() == 1));
    let recording = files()[0]["file"].as_str().expect("a path").to_owned();
    assert!(wait_until(PATIENCE, || {
        let output = command(&home, &["replay", &recording]).output().expect("it runs");
        String::from_utf8_lossy(&output.stdout).contains("1 WAIT, 1 reminder")
    }));
    let text = fs::read_to_string(&recording).expect("it can be read");
    assert!(text.contains("denied.txt") && !text.contains("xyzzy"), "{text}");
}

/// A recording that begins in the midst of a session has what went before.
#[test]
fn a_session_that_is_live_already_is_recorded_from_its_next_opening() {
    let home = Home::new();
    let mut told = Vec::new();
    let mut client = home.connect();
    done(&mut client, "session/open", json!({"session": "s"}));
    done(&mut client, "turn/begin", json!({"session": "s", "turn": "1"}));
    done(
        &mut client,
        "task/put",
        json!({"session": "s",
        "task": {"id": "t", "subject": "x", "status": "pending"}}),
    );
    tell(&mut client, &mut told);
    assert!(command(&home, &["record", "start"]).status().expect("it runs").success());
    let mut other = home.connect();
    done(&mut other, "session/open", json!({"session": "s"}));
    done(&mut other, "reminder/enqueue", json!({"session": "s", "body": "news"}));
    tell(&mut other, &mut told);
    done(&mut other, "session/close", json!({"session": "s"}));
    let files = || json_of(&home, &["record"]);
    assert!(wait_until(PATIENCE, || files().len() == 1));
    let file = files()[0]["file"].as_str().expect("a path").to_owned();
    let replayed = || command(&home, &["replay", &file]).output().expect("it runs");
    assert!(
        wait_until(PATIENCE, || {
            let output = replayed();
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            output.status.success() && said.contains("1 WAIT, 1 reminder")
        }),
        "{:?}",
        replayed()
    );
}
