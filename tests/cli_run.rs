//! `reminderd run` and `reminderd check` on the real binary, against a scripted peer.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

/// A directory with scripts, and the rules of the peer that they run against.
struct Bench {
    directory: TempDir,
}

/// What a command did.
struct Outcome {
    status: i32,
    stdout: String,
    stderr: String,
}

impl Bench {
    fn new(rules: &Value) -> Self {
        let bench = Self { directory: tempfile::tempdir().expect("a directory") };
        bench.write("rules.json", &rules.to_string());
        bench
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).expect("a file");
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).expect("a file")
    }

    /// Runs `reminderd` in the directory.
    fn reminderd(&self, arguments: &[&str]) -> Outcome {
        let mut command = Command::new(env!("CARGO_BIN_EXE_reminderd"));
        command.current_dir(self.directory.path()).args(arguments).stdin(Stdio::null());
        Outcome::from(command.output().expect("reminderd starts"))
    }

    /// Runs `reminderd run` against the peer.
    fn run(&self, arguments: &[&str]) -> Outcome {
        let peer = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/fake_daemon.py");
        let against = format!("python3 '{}' rules.json", peer.display());
        let mut all = vec!["run", "--against", &against];
        all.extend(arguments);
        self.reminderd(&all)
    }

    /// Runs one script against the peer.
    fn script(rules: &Value, script: &str) -> Outcome {
        let bench = Self::new(rules);
        bench.write("script.jsonl", script);
        bench.run(&["script.jsonl"])
    }
}

impl From<Output> for Outcome {
    fn from(output: Output) -> Self {
        Self {
            status: output.status.code().expect("an exit status"),
            stdout: String::from_utf8(output.stdout).expect("UTF-8"),
            stderr: String::from_utf8(output.stderr).expect("UTF-8"),
        }
    }
}

impl Outcome {
    #[track_caller]
    fn assert(&self, status: i32, last_line: &str) {
        let told = format!("stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        assert_eq!(self.status, status, "{told}");
        assert_eq!(self.stdout.lines().last(), Some(last_line), "{told}");
    }

    #[track_caller]
    fn says(&self, part: &str) {
        assert!(self.stdout.contains(part), "no {part:?} in\n{}", self.stdout);
    }
}

/// The rules of a peer that has one reminder to tell.
fn one_reminder() -> Value {
    json!({
        "reminder/wait": [
            {"result": {
                "token": "t1", "phase": "turn-start", "tokens": 9, "held": [],
                "entries": [{"id": "e1", "type": "task-nudge", "body": "Look at T1."}],
                "message": {"role": "user",
                    "content": "<system-reminder>\nLook at T1.\n</system-reminder>"},
            }},
            {"result": {"token": "t2", "phase": "mid-turn", "tokens": 0, "held": [],
                "entries": [], "message": null}},
        ],
        "reminder/commit": [{"echo": true}],
        "reminder/release": [{"error": {"code": -33008, "message": "expired"}}],
    })
}

#[test]
fn a_script_that_passes() {
    let script = r#"
# One reminder, told once.
{"open": {"session": "s"}, "expect": null}
{"event": "task/put", "params": {"session": "s", "task": {"id": "T1"}}}
{"wait": {"session": "s"}, "as": "w1", "expect": {"entries": [{"body": {"$re": "T\\d"}}], "error": {"$absent": true}, "token": {"$any": true}, "message": {"content": {"$len": 48}}}}
{"commit": "$w1.token", "expect": {"token": "t1", "entries": {"$absent": true}}}
{"commit": {"token": "$w1.token", "entries": ["$w1.entries.0.id", "$$x"]}, "expect": {"token": "$w1.token", "entries": ["e1", "$$x"]}}
{"wait": {"session": "s"}, "expectNone": true}
{"release": "$w1.token", "expectError": -33008, "expect": {"message": {"$re": "^exp"}}}
{"clock": "+8m"}
"#;
    Bench::script(&one_reminder(), script).assert(0, "7 passed, 0 failed");
}

#[test]
fn a_failure_says_line_pointer_expected_and_got() {
    let script = r#"{"wait": {}, "expect": {"entries": [{"body": {"$re": "T2"}}]}}
{"wait": {}, "expect": {"phase": "turn-start"}}
"#;
    let outcome = Bench::script(&one_reminder(), script);
    outcome.assert(1, "0 passed, 2 failed");
    outcome.says(
        "script.jsonl:1: /entries/0/body\n  expected: matches /T2/\n  got:      \"Look at T1.\"\n",
    );
    outcome.says("script.jsonl:2: /phase\n  expected: \"turn-start\"\n  got:      \"mid-turn\"\n");
}

#[test]
fn errors_that_were_expected_and_errors_that_were_not() {
    let rules = json!({"a": [{"error": {"code": -33004, "message": "no turn"}}]});
    let table = [
        (r#"{"request": "a", "expectError": -33004}"#, 0, "1 passed, 0 failed"),
        (r#"{"event": "a"}"#, 1, "0 passed, 1 failed"),
        (r#"{"request": "a", "expect": {}}"#, 1, "0 passed, 1 failed"),
        (r#"{"request": "a", "expectError": -33005}"#, 1, "0 passed, 1 failed"),
        (r#"{"request": "b", "expectError": -33004}"#, 1, "0 passed, 1 failed"),
    ];
    for (script, status, last_line) in table {
        Bench::script(&rules, script).assert(status, last_line);
    }
}

#[test]
fn what_depends_on_a_failed_step_fails_and_the_script_goes_on() {
    let rules = json!({"reminder/wait": [{"error": {"code": -33004, "message": "no turn"}}]});
    let script = r#"{"wait": {}, "as": "w1"}
{"commit": "$w1.token"}
{"request": "a", "expect": null}
"#;
    let outcome = Bench::script(&rules, script);
    outcome.assert(1, "1 passed, 2 failed");
    outcome.says("expected: a value for $w1.token\n  got:      nothing, for the step named `w1`");
}

#[test]
fn bad_scripts_are_pointed_at_and_not_run() {
    let bench = Bench::new(&json!({}));
    bench.write("bad.jsonl", "{\"say\": \"fine\"}\n{\"wiat\": {}}\n{\"commit\": \"$w9.token\"}\n");
    for arguments in [&["run", "bad.jsonl"][..], &["check", "bad.jsonl"][..]] {
        let outcome = bench.reminderd(arguments);
        assert_eq!(outcome.status, 2, "{}", outcome.stderr);
        let lines: Vec<_> = outcome.stderr.lines().collect();
        assert!(lines[0].starts_with("bad.jsonl:2:2: `wiat` is no verb, did you mean `wait`?"));
        assert!(lines[1].starts_with("bad.jsonl:3:12: `$w9.token` stands for nothing"));
    }
    bench.write("good.jsonl", "{\"say\": \"fine\"}\n");
    assert_eq!(bench.reminderd(&["check", "good.jsonl"]).status, 0);
    assert_eq!(bench.reminderd(&["check", "missing.jsonl"]).status, 2);
    assert_eq!(bench.reminderd(&["run", "--step-timeout", "soon", "good.jsonl"]).status, 2);
    assert_eq!(bench.reminderd(&["run", "--junit", "no/such/file", "good.jsonl"]).status, 2);
    assert_eq!(bench.reminderd(&["run"]).status, 2);
}

#[test]
fn a_daemon_that_dies_or_breaks_the_protocol() {
    let notice = json!({"result": null, "id": "unknown"});
    let table = [
        (json!({"stderr": "out of luck", "exit": 7}), "exit status: 7"),
        (json!({"raw": "hello\n"}), "where the header of a message belongs"),
        (json!({"raw": "Content-Length: 2\r\n\r\n{]"}), "not JSON"),
        (json!({"before": [{"result": 1}]}), "a response without id"),
    ];
    for (action, reason) in table {
        let script = "{\"request\": \"b\", \"expect\": null}\n{\"request\": \"a\"}\n\
                      {\"request\": \"b\", \"expect\": null}\n";
        let outcome = Bench::script(&json!({"a": [action]}), script);
        outcome.assert(3, "1 passed, 2 failed");
        outcome.says("script.jsonl:2: the daemon died or broke the protocol: ");
        outcome.says(reason);
    }
    let outcome = Bench::script(
        &json!({"a": [{"stderr": "out of luck", "exit": 7}]}),
        "{\"request\": \"a\"}",
    );
    outcome.says("  stderr: out of luck");
    let outcome = Bench::script(&json!({"a": [{"before": [notice]}]}), "{\"request\": \"a\"}");
    outcome.assert(1, "0 passed, 1 failed");
    let outcome = Bench::script(&json!({"exit": [{"exit": 9}]}), "{\"request\": \"a\"}");
    outcome.assert(3, "0 passed, 1 failed");
    let bench = Bench::new(&json!({}));
    bench.write("script.jsonl", "{\"request\": \"a\"}");
    let outcome = bench.reminderd(&["run", "--against", "true", "script.jsonl"]);
    outcome.assert(3, "0 passed, 1 failed");
}

#[test]
fn a_step_or_a_run_that_takes_too_long() {
    let bench = Bench::new(&json!({"a": [{"hang": true}]}));
    bench.write("script.jsonl", "{\"request\": \"a\"}\n{\"request\": \"b\", \"expect\": null}\n");
    let outcome = bench.run(&["--step-timeout", "2s", "script.jsonl"]);
    outcome.assert(124, "0 passed, 2 failed");
    outcome.says("script.jsonl:1: timed out: the answer to a did not come in time");
    let outcome = bench.reminderd(&[
        "run",
        "--against",
        "sleep 1000; true",
        "--step-timeout",
        "200ms",
        "script.jsonl",
    ]);
    outcome.assert(124, "0 passed, 2 failed");
    // The whole run is over although the step could go on, and later scripts are not reached.
    bench.write("later.jsonl", "{\"request\": \"b\", \"expect\": null}\n");
    let outcome = bench.run(&["--timeout", "3s", "script.jsonl", "later.jsonl"]);
    outcome.assert(124, "0 passed, 4 failed");
}

#[test]
fn over_several_scripts_the_gravest_exit_status_counts() {
    let rules = json!({"die": [{"exit": 1}], "hang": [{"hang": true}]});
    let bench = Bench::new(&rules);
    bench.write("0", "{\"request\": \"a\", \"expect\": null}");
    bench.write("1", "{\"request\": \"a\", \"expect\": 1}");
    bench.write("2", "{\"requst\": \"a\"}");
    bench.write("3", "{\"request\": \"die\"}");
    bench.write("124", "{\"request\": \"hang\"}");
    let table: [(&[&str], i32); 6] = [
        (&["0", "0"], 0),
        (&["0", "1"], 1),
        (&["124", "1"], 124),
        (&["1", "124", "3"], 3),
        (&["3", "2", "124"], 2),
        (&["2", "0"], 2),
    ];
    for (scripts, status) in table {
        let mut arguments = vec!["--step-timeout", "2s"];
        arguments.extend(scripts);
        let outcome = bench.run(&arguments);
        assert_eq!(outcome.status, status, "{scripts:?}\n{}{}", outcome.stdout, outcome.stderr);
    }
    let outcome = bench.run(&["0", "1", "0"]);
    outcome.assert(1, "2 passed, 1 failed");
    outcome.says("0: 1 passed, 0 failed\n");
    outcome.says("1: 0 passed, 1 failed\n");
}

#[test]
fn tap_has_a_line_for_each_expectation() {
    let bench = Bench::new(&json!({"#": [{"result": "a\nb"}]}));
    let script =
        "{\"request\": \"#\", \"expect\": \"a\\nb\"}\n{\"request\": \"#\", \"expect\": 1}\n";
    bench.write("script.jsonl", script);
    let outcome = bench.run(&["--tap", "script.jsonl"]);
    assert_eq!(outcome.status, 1);
    assert_eq!(
        outcome.stdout,
        "TAP version 14\n\
         ok 1 - script.jsonl:1 request \\#: expect\n\
         not ok 2 - script.jsonl:2 request \\#: expect\n  ---\n  differences:\n    \
         - at: \"\"\n      expected: \"1\"\n      got: \"\\\"a\\\\nb\\\"\"\n  ...\n\
         1..2\n\
         # 1 passed, 1 failed\n"
    );
}

#[test]
fn junit_has_a_suite_for_each_script() {
    let bench = Bench::new(&json!({"die": [{"exit": 1}], "a": [{"result": "<&\u{1}]]>"}]}));
    bench.write(
        "a.jsonl",
        "{\"request\": \"a\", \"expect\": {\"$any\": true}}\n\
                            {\"request\": \"a\", \"expect\": \"<\"}\n",
    );
    bench.write("b.jsonl", "{\"request\": \"die\"}\n");
    bench.write("c.jsonl", "{\"re\": 1}\n");
    let outcome = bench.run(&["--junit", "report.xml", "a.jsonl", "b.jsonl", "c.jsonl"]);
    outcome.assert(2, "1 passed, 3 failed");
    // Python's parser judges whether it is well-formed.
    let judge = "import xml.etree.ElementTree as t; r = t.parse('report.xml').getroot(); \
        print(r.tag, *((s.get('name'), s.get('tests'), s.get('failures'), s.get('errors')) \
        for s in r))";
    let output = Command::new("python3")
        .args(["-c", judge])
        .current_dir(bench.directory.path())
        .output()
        .expect("python3 starts");
    assert_eq!(
        Outcome::from(output).stdout,
        "testsuites ('a.jsonl', '2', '1', '0') ('b.jsonl', '1', '0', '1') \
         ('c.jsonl', '1', '0', '1')\n"
    );
}

#[test]
fn the_transcript_holds_every_message_and_no_time() {
    let bench = Bench::new(&json!({}));
    bench.write("script.jsonl", "{\"request\": \"a\", \"params\": {\"b\": 1}}\n");
    let mut transcripts = Vec::new();
    for name in ["one", "other"] {
        bench.run(&["--transcript", name, "script.jsonl"]).assert(0, "0 passed, 0 failed");
        transcripts.push(bench.read(name));
    }
    assert_eq!(transcripts[0], transcripts[1]);
    let lines: Vec<Value> =
        transcripts[0].lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let told: Vec<_> = lines
        .iter()
        .map(|line| (line["n"].as_u64(), line["from"].as_str(), line["message"]["method"].as_str()))
        .collect();
    let (client, daemon) = (Some("client"), Some("daemon"));
    assert_eq!(
        told,
        [
            (Some(1), client, Some("initialize")),
            (Some(2), daemon, None),
            (Some(3), client, Some("initialized")),
            (Some(4), client, Some("a")),
            (Some(5), daemon, None),
            (Some(6), client, Some("shutdown")),
            (Some(7), daemon, None),
            (Some(8), client, Some("exit")),
        ]
    );
    assert_eq!(lines[3]["message"]["params"], json!({"b": 1}));
    assert!(lines.iter().all(|line| line["script"] == "script.jsonl"));
}

#[test]
fn messages_that_nobody_asked_for_fail() {
    let problem = |code: i64| json!({"method": "reminderd/problem", "params": {"method": "e", "code": code, "message": "m"}});
    let rules = json!({
        "log": [{"before": [{"method": "window/logMessage", "params": {}}]}],
        "question": [{"ask": {"method": "workspace/configuration", "params": {}}}],
        "doubled": [{"after": [{"id": 2, "result": null}]}],
        "e": [{"before": [problem(-33004)]}],
        "two": [{"before": [problem(-33001), problem(-33004)]}],
    });
    let table = [
        (r#"{"request": "log"}"#, 1, "0 passed, 1 failed"),
        (
            r#"{"request": "question", "expect": {"answer": {"code": -32601}}}"#,
            1,
            "1 passed, 1 failed",
        ),
        (r#"{"request": "doubled"}"#, 1, "0 passed, 1 failed"),
        (r#"{"notify": "e"}"#, 1, "0 passed, 1 failed"),
        (r#"{"notify": "e", "expectError": -33004}"#, 0, "1 passed, 0 failed"),
        (r#"{"notify": "e", "expectError": -33001}"#, 1, "0 passed, 1 failed"),
        (
            "{\"notify\": \"two\"}\n{\"problem\": true, \"expect\": {\"code\": -33001}}\n\
             {\"problem\": true, \"as\": \"p\", \"expect\": {\"code\": -33004}}",
            0,
            "2 passed, 0 failed",
        ),
        ("{\"notify\": \"two\"}\n{\"problem\": true}", 1, "0 passed, 1 failed"),
    ];
    for (script, status, last_line) in table {
        Bench::script(&rules, script).assert(status, last_line);
    }
}

#[test]
fn generators_answer_as_the_script_says() {
    let ask = |force: bool| {
        let params = json!({"generator": "g", "scope": {"session": "s"}, "force": force});
        json!({"ask": {"method": "reminder/compute", "params": params}, "askSeconds": 0.3})
    };
    let mut patient = ask(false);
    patient["askSeconds"] = json!(30);
    let rules = json!({"reminder/wait": [patient.clone(), patient.clone(), patient, ask(true)]});
    let script = r#"{"wait": {}, "expect": {"answer": {"body": null}}}
{"generator": "g", "body": "Hello."}
{"wait": {}, "expect": {"answer": {"body": "Hello."}}}
{"asked": "g", "expect": [{"force": false}, {"scope": {"session": "s"}}]}
{"asked": "g", "expect": []}
{"generator": "g", "body": null}
{"wait": {}, "expect": {"answer": {"body": null}}}
{"generator": "g", "silent": true}
{"wait": {}, "expect": {"answer": null}}
{"asked": "g", "expect": [{"force": false}, {"force": true}]}
"#;
    Bench::script(&rules, script).assert(0, "7 passed, 0 failed");
}

#[test]
fn a_cancelled_wait_may_be_answered_either_way() {
    let late = json!({"reminder/wait": [{"awaitCancel": true}]});
    let quick = json!({"reminder/wait": [{"result": {"token": "t"}}]});
    let free = r#"{"wait": {}, "cancel": true}"#;
    let bound = r#"{"wait": {}, "cancel": true, "expectError": -32800}"#;
    Bench::script(&late, free).assert(0, "0 passed, 0 failed");
    Bench::script(&quick, free).assert(0, "0 passed, 0 failed");
    Bench::script(&late, bound).assert(0, "1 passed, 0 failed");
    Bench::script(&quick, bound).assert(1, "0 passed, 1 failed");
}

#[test]
fn what_was_sent_is_awaited_later() {
    let script = r#"{"open":{"session":"s"}}
{"event":"turn/begin","params":{"session":"s","turn":"1"}}
{"event":"diagnostic/publish","params":{"uri":"/a","checker":"c","state":"running"}}
{"event":"edit/end","params":{"session":"s","uris":[{"uri":"/a"}],"ok":true}}
{"send":"edit/settle","params":{"session":"s"},"as":"d"}
{"pending":"d"}
{"event":"diagnostic/publish","params":{"uri":"/a","checker":"c","state":"failed"}}
{"pending":"d"}
{"await":"d","expect":{"files":[{"outcome":"none"}]}}
{"request":"session/state","params":{"session":"$d.files.0.uri"},"expectError":-33001}"#;
    let bench = Bench::new(&json!({}));
    bench.write("script.jsonl", script);
    let outcome = bench.reminderd(&["run", "script.jsonl"]);
    // The second time it had been answered.
    outcome.assert(1, "3 passed, 1 failed");
    outcome.says("script.jsonl:8: (the whole answer)\n  expected: no answer yet");
}

#[test]
fn a_restart_begins_a_new_process() {
    // The peer answers the first call of `a` with 1, later ones with 2; a new process forgets.
    let rules = json!({"a": [{"result": 1}, {"result": 2}], "initialize": [{"echo": true}]});
    let script = r#"{"initialize": {"trusted": true}, "expect": {"initializationOptions": {"trusted": true}}}
{"request": "a", "expect": 1}
{"request": "a", "expect": 2}
{"restart": true, "expect": {"initializationOptions": {"trusted": true}}}
{"request": "a", "expect": 1}
{"restart": "kill"}
{"request": "a", "expect": 1}
"#;
    Bench::script(&rules, script).assert(0, "6 passed, 0 failed");
}

#[test]
fn show_tells_a_story() {
    let bench = Bench::new(&one_reminder());
    let script = r#"{"say": "A task waits"}
{"wait": {"session": "s"}, "as": "w1"}
{"commit": "$w1.token"}
{"say": "Told once, and not again"}
{"clock": "+8m"}
{"wait": {"session": "s", "agent": "/reviewer"}, "as": "w2", "expectNone": true}
"#;
    bench.write("script.jsonl", script);
    let outcome = bench.run(&["--show", "script.jsonl"]);
    assert_eq!(
        outcome.stdout,
        "A task waits\n\
         WAIT w1 · turn-start · root · 1 reminder · ~9 tokens\n  \
         │ <system-reminder>\n  │ Look at T1.\n  │ </system-reminder>\n\
         COMMIT w1 · nothing to tell, the request is counted\n\
         \n\
         Told once, and not again\n\
         CLOCK · +8m\n\
         WAIT w2 · mid-turn · /reviewer · nothing to say\n\
         \n\
         1 passed, 0 failed\n"
    );
}

#[test]
fn a_script_may_come_from_standard_input() {
    use std::io::Write;
    let mut child = Command::new(env!("CARGO_BIN_EXE_reminderd"))
        .args(["run", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("reminderd starts");
    child.stdin.take().expect("a pipe").write_all(b"{\"x\": 1}\n").expect("written");
    let outcome = Outcome::from(child.wait_with_output().expect("an end"));
    assert_eq!(outcome.status, 2);
    assert!(outcome.stderr.starts_with("<stdin>:1:2: `x` is no verb"), "{}", outcome.stderr);
}

#[test]
fn help_ends_with_an_example() {
    let bench = Bench::new(&json!({}));
    for arguments in [&["--help"][..], &["run", "--help"][..], &["check", "--help"][..]] {
        let outcome = bench.reminderd(arguments);
        assert_eq!(outcome.status, 0);
        let (_, example) = outcome.stdout.rsplit_once("Example").expect("an example");
        assert!(example.contains("$ reminderd"), "{example}");
    }
}
