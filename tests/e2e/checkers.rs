//! Real checkers: what language servers and a linter publish is forwarded to the daemon, and what
//! the WAIT says of it is right (`reminders.md` §6). `tests/run` plays these, and installs those of
//! `checkers.txt`.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Instant;

use serde_json::{Value, json};

use crate::support::{Daemon, Framing, PATIENCE};

fn answer(daemon: &mut Daemon, method: &str, params: &Value) -> Value {
    let reply = daemon.request(method, params.clone());
    assert!(reply["error"].is_null(), "{method}: {reply}");
    reply["result"].clone()
}

/// A daemon with session `s` at this root, in turn `1`.
fn daemon_at(root: &Path) -> Daemon {
    let mut daemon = Daemon::initialized(Framing::Headers);
    answer(&mut daemon, "session/open", &json!({"session": "s", "root": root}));
    answer(&mut daemon, "turn/begin", &json!({"session": "s", "turn": "1"}));
    daemon
}

/// What a WAIT tells of diagnostics, committed; the lines of its body.
fn told(daemon: &mut Daemon) -> Vec<String> {
    let delivery = answer(daemon, "reminder/wait", &json!({"session": "s", "autoCommit": true}));
    let entries = delivery["entries"].as_array().expect("entries");
    let bodies = entries.iter().map(|entry| {
        assert_eq!(entry["type"], "diagnostics");
        entry["body"].as_str().expect("a body")
    });
    bodies.flat_map(str::lines).map(str::to_owned).collect()
}

fn settle(daemon: &mut Daemon) {
    let settled = answer(daemon, "edit/settle", &json!({"session": "s"}));
    assert_eq!(settled["files"][0]["outcome"], "ready", "{settled}");
}

/// A language server on pipes of its own.
struct LanguageServer {
    process: Child,
    input: ChildStdin,
    messages: Receiver<Value>,
    last_id: i64,
}

impl LanguageServer {
    fn start(command: &mut Command, root: &Path, options: &Value) -> Self {
        let process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = process.spawn().expect("the language server is installed (tests/run)");
        let input = process.stdin.take().expect("stdin is piped");
        let mut output = BufReader::new(process.stdout.take().expect("stdout is piped"));
        let (sender, messages) = channel();
        thread::spawn(move || {
            while let Some(message) = read_message(&mut output) {
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let mut server = Self { process, input, messages, last_id: 0 };
        server.last_id += 1;
        server.send(
            &json!({"jsonrpc": "2.0", "id": server.last_id, "method": "initialize", "params": {
                "processId": std::process::id(),
                "rootUri": format!("file://{}", root.display()),
                "capabilities": {"textDocument": {"publishDiagnostics": {"versionSupport": true}}},
                "initializationOptions": options,
            }}),
        );
        let id = json!(server.last_id);
        server.until("the answer to initialize", |message| message["id"] == id);
        server.notify("initialized", &json!({}));
        server
    }

    fn send(&mut self, message: &Value) {
        let text = message.to_string();
        write!(self.input, "Content-Length: {}\r\n\r\n{text}", text.len()).expect("it reads");
        self.input.flush().expect("it reads");
    }

    fn notify(&mut self, method: &str, params: &Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Reads until a message is the one that is awaited. Questions are answered with nothing.
    fn until(&mut self, what: &str, mut is_it: impl FnMut(&Value) -> bool) {
        let deadline = Instant::now() + PATIENCE * 6;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let message = self.messages.recv_timeout(left);
            let message = message.unwrap_or_else(|error| panic!("{what}: {error}"));
            if message.get("method").is_some() && message.get("id").is_some() {
                self.send(&json!({"jsonrpc": "2.0", "id": message["id"], "result": null}));
            }
            if is_it(&message) {
                return;
            }
        }
    }

    /// Forwards everything that is published, unread, until a list of this file is as awaited.
    fn forward_until(
        &mut self,
        daemon: &Daemon,
        what: &str,
        uri: &str,
        is_it: impl Fn(&[(u64, &str)], Option<i64>) -> bool,
    ) {
        self.until(what, |message| {
            if message["method"] != "textDocument/publishDiagnostics" {
                return false;
            }
            let params = &message["params"];
            daemon.notify("textDocument/publishDiagnostics", params.clone());
            let list = params["diagnostics"].as_array().expect("a list");
            let found = list.iter().map(|one| {
                let line = one["range"]["start"]["line"].as_u64().expect("a line");
                (line + 1, one["message"].as_str().unwrap_or_default())
            });
            let found: Vec<_> = found.collect();
            params["uri"] == uri && is_it(&found, params["version"].as_i64())
        });
    }
}

impl Drop for LanguageServer {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

fn read_message(output: &mut impl BufRead) -> Option<Value> {
    let mut length = None;
    loop {
        let mut line = String::new();
        if output.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim() {
            "" => break,
            header => {
                if let Some(number) = header.strip_prefix("Content-Length: ") {
                    length = number.parse().ok();
                }
            }
        }
    }
    let mut body = vec![0; length?];
    output.read_exact(&mut body).ok()?;
    serde_json::from_slice(&body).ok()
}

/// An editor's document, changed in the editor, on disk, in the language server and in the daemon.
struct Document {
    path: PathBuf,
    uri: String,
    version: i64,
}

impl Document {
    fn open(server: &mut LanguageServer, daemon: &Daemon, path: PathBuf, language: &str) -> Self {
        let uri = format!("file://{}", path.display());
        let text = fs::read_to_string(&path).expect("the file is there");
        let document = json!({"uri": uri, "languageId": language, "version": 1, "text": text});
        let params = json!({ "textDocument": document });
        server.notify("textDocument/didOpen", &params);
        daemon.notify("textDocument/didOpen", params);
        Self { path, uri, version: 1 }
    }

    /// An edit of the agent that the editor makes: some lines give way to others.
    fn edit(
        &mut self,
        server: &mut LanguageServer,
        daemon: &mut Daemon,
        lines: std::ops::Range<usize>,
        text: &str,
    ) {
        answer(daemon, "edit/begin", &json!({"session": "s", "uris": [self.uri]}));
        self.version += 1;
        let old = fs::read_to_string(&self.path).expect("the file is there");
        let mut new: Vec<&str> = old.split_inclusive('\n').collect();
        new.splice(lines.clone(), [text]);
        fs::write(&self.path, new.concat()).expect("the file can be written");
        let range = json!({
            "start": {"line": lines.start, "character": 0},
            "end": {"line": lines.end, "character": 0},
        });
        let change = json!({
            "textDocument": {"uri": self.uri, "version": self.version},
            "contentChanges": [{"range": range, "text": text}],
        });
        let saved = json!({"textDocument": {"uri": self.uri}});
        for (method, params) in
            [("textDocument/didChange", change), ("textDocument/didSave", saved)]
        {
            server.notify(method, &params);
            daemon.notify(method, params);
        }
        let uris = json!([{"uri": self.uri, "version": self.version}]);
        answer(daemon, "edit/end", &json!({"session": "s", "uris": uris, "ok": true}));
    }
}

/// Whether a message on this line contains this.
fn has(found: &[(u64, &str)], line: u64, part: &str) -> bool {
    found.iter().any(|(at, message)| *at == line && message.contains(part))
}

/// A program whose line 1 imports what nothing uses, and whose line 4 is the result of a function.
struct Program {
    file: &'static str,
    language: &'static str,
    text: &'static str,
    /// What line 4 is made: wrong, right and wrong.
    results: [&'static str; 3],
    /// Four lines that change nothing.
    comment: &'static str,
    /// What the message on the import contains, and that on a wrong result.
    unused: &'static str,
    mismatch: &'static str,
    /// What is told of them after the line's number.
    unused_told: &'static str,
    mismatch_told: &'static str,
}

/// The program is broken, fixed, shifted and broken again. The import was there before. Returns the
/// lines that were told of each time it was broken: some servers have hints to add.
///
/// Both lines are awaited where they are: a server may publish a version in steps, and what it found
/// in the last one under the next one's number.
fn breaks_fixes_and_shifts(
    root: &Path,
    mut server: LanguageServer,
    program: &Program,
) -> [Vec<String>; 2] {
    let Program { file, unused, mismatch, unused_told, mismatch_told, .. } = *program;
    let [wrong, right, wrong_again] = program.results;
    let mut daemon = daemon_at(root);
    let mut document = Document::open(&mut server, &daemon, root.join(file), program.language);
    let uri = document.uri.clone();
    server.forward_until(&daemon, "the first check", &uri, |all, _| has(all, 1, unused));
    assert_eq!(told(&mut daemon), [""; 0]);
    let told_at = |line: usize, rest: &str| format!("- {file}:{line}:{rest}");

    // Broken: the mismatch is new, the import was there before.
    document.edit(&mut server, &mut daemon, 3..4, wrong);
    server.forward_until(&daemon, "the mismatch", &uri, |all, version| {
        version == Some(2) && has(all, 1, unused) && has(all, 4, mismatch)
    });
    settle(&mut daemon);
    let first = told(&mut daemon);
    let before = first.iter().position(|line| line.contains("there before")).expect("a heading");
    let (new, old) = first.split_at(before);
    let (mismatch_4, unused_1) = (told_at(4, mismatch_told), told_at(1, unused_told));
    assert!(new.iter().any(|line| line.starts_with(&mismatch_4)), "{first:#?}");
    assert!(new.iter().all(|line| !line.contains(unused)), "{first:#?}");
    assert!(old.iter().any(|line| line.starts_with(&unused_1)), "{first:#?}");
    assert!(old.iter().all(|line| !line.contains(mismatch)), "{first:#?}");
    assert_eq!(told(&mut daemon), [""; 0]);

    // Fixed, and shifted by another edit: nothing is new.
    document.edit(&mut server, &mut daemon, 3..4, right);
    document.edit(&mut server, &mut daemon, 0..0, program.comment);
    server.forward_until(&daemon, "the shifted check", &uri, |all, version| {
        version == Some(4)
            && has(all, 5, unused)
            && !all.iter().any(|(_, it)| it.contains(mismatch))
    });
    settle(&mut daemon);
    assert_eq!(told(&mut daemon), [""; 0]);

    // Broken again, on a line that was shifted.
    document.edit(&mut server, &mut daemon, 7..8, wrong_again);
    server.forward_until(&daemon, "the second mismatch", &uri, |all, version| {
        version == Some(5) && has(all, 5, unused) && has(all, 8, mismatch)
    });
    settle(&mut daemon);
    let second = told(&mut daemon);
    let mismatch_8 = told_at(8, mismatch_told);
    assert!(second.iter().any(|line| line.starts_with(&mismatch_8)), "{second:#?}");
    assert!(second.iter().all(|line| !line.contains(unused)), "{second:#?}");
    [first, second]
}

/// A program that `tests/run` installs.
fn installed(name: &str) -> Command {
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/tools/checkers");
    let mut command = Command::new(tools.join("bin").join(name));
    command.env("PYTHONPATH", tools);
    command
}

/// `basedpyright` publishes one list for each version that it has checked.
#[test]
#[ignore = "needs basedpyright, which tests/run installs"]
fn basedpyright_breaks_fixes_and_shifts() {
    let directory = tempfile::tempdir().expect("a directory");
    let root = directory.path().canonicalize().expect("its real path");
    let settings = json!({"typeCheckingMode": "standard", "reportUnusedImport": "warning"});
    fs::write(root.join("pyrightconfig.json"), settings.to_string()).expect("a file");
    let program = Program {
        file: "small.py",
        language: "python",
        text: "import os\n\ndef f() -> int:\n    return 7\n",
        results: ["    return \"seven\"\n", "    return 8\n", "    return \"eight\"\n"],
        comment: "# Small.\n#\n# Smaller.\n\n",
        unused: "\"os\" is not accessed",
        mismatch: "is not assignable to return type",
        unused_told: "8: warning [reportUnusedImport]",
        mismatch_told: "12: error [reportReturnType]",
    };
    fs::write(root.join(program.file), program.text).expect("a file");
    let mut command = installed("basedpyright-langserver");
    let server = LanguageServer::start(command.arg("--stdio"), &root, &json!({}));
    let [first, second] = breaks_fixes_and_shifts(&root, server, &program);
    assert_eq!((first.len(), second.len()), (4, 2), "{first:#?} {second:#?}");
}

/// `rust-analyzer` publishes what it sees itself at once, and what `cargo check` finds when that has
/// run.
#[test]
#[ignore = "needs rust-analyzer; tests/run plays it where that is installed"]
fn rust_analyzer_breaks_fixes_and_shifts() {
    let directory = tempfile::tempdir().expect("a directory");
    let root = directory.path().canonicalize().expect("its real path");
    fs::create_dir(root.join("src")).expect("a directory");
    let manifest =
        "[package]\nname = \"small\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n";
    fs::write(root.join("Cargo.toml"), manifest).expect("a file");
    let program = Program {
        file: "src/lib.rs",
        language: "rust",
        text: "use std::fmt;\n\npub fn f() -> u32 {\n    7\n}\n",
        results: ["    \"seven\"\n", "    8\n", "    \"eight\"\n"],
        comment: "//! Small.\n//!\n//! Smaller.\n\n",
        unused: "unused import",
        mismatch: "mismatched types",
        unused_told: "5: warning",
        mismatch_told: "5: error [E0308]",
    };
    fs::write(root.join(program.file), program.text).expect("a file");
    let options = json!({
        "cachePriming": {"enable": false}, "cargo": {"buildScripts": {"enable": false}},
        "procMacro": {"enable": false},
    });
    let mut command = Command::new("rust-analyzer");
    command.env("CARGO_TARGET_DIR", root.join("target"));
    let server = LanguageServer::start(&mut command, &root, &options);
    breaks_fixes_and_shifts(&root, server, &program);
}

/// What `ruff` finds in a file on disk, in the words of the Language Server Protocol.
fn ruff(file: &Path) -> Vec<Value> {
    let output = installed("ruff")
        .args(["check", "--isolated", "--no-cache", "--select", "F", "--output-format", "json"])
        .arg(file)
        .output()
        .expect("ruff is installed (tests/run)");
    let found: Vec<Value> = serde_json::from_slice(&output.stdout).expect("ruff prints JSON");
    let position = |place: &Value| {
        let number = |name: &str| place[name].as_u64().expect("a number") - 1;
        json!({"line": number("row"), "character": number("column")})
    };
    let found = found.iter().map(|one| {
        json!({
            "range": {"start": position(&one["location"]), "end": position(&one["end_location"])},
            "severity": 2, "code": one["code"], "source": "ruff", "message": one["message"],
        })
    });
    found.collect()
}

/// A linter knows neither versions nor documents: an agent that writes to disk runs it after its
/// edits. Where lines went is read from the file before and after.
#[test]
#[ignore = "needs ruff, which tests/run installs"]
fn a_linter_of_files_on_disk() {
    let directory = tempfile::tempdir().expect("a directory");
    let root = directory.path().canonicalize().expect("its real path");
    let file = root.join("small.py");
    let mut daemon = daemon_at(&root);
    let publish = |daemon: &mut Daemon| {
        let params = json!({"uri": file, "checker": "ruff", "diagnostics": ruff(&file)});
        answer(daemon, "diagnostic/publish", &params);
    };
    let edit = |daemon: &mut Daemon, text: &str| {
        answer(daemon, "edit/begin", &json!({"session": "s", "uris": [file]}));
        fs::write(&file, text).expect("the file can be written");
        let uris = json!([{"uri": file}]);
        answer(daemon, "edit/end", &json!({"session": "s", "uris": uris, "ok": true}));
        publish(daemon);
        settle(daemon);
        told(daemon)
    };
    fs::write(&file, "import os\n\n\ndef f():\n    return 1\n").expect("a file");
    publish(&mut daemon);

    // Shifted, and broken in one place.
    let lines = edit(&mut daemon, "\n# One.\n# Two.\nimport os\n\n\ndef f():\n    return y\n");
    assert_eq!(lines.len(), 4, "{lines:#?}");
    assert!(lines[1].starts_with("- small.py:8:12: warning [F821] (ruff)"), "{lines:#?}");
    assert!(lines[3].starts_with("- small.py:4:8: warning [F401] (ruff)"), "{lines:#?}");

    // The same mistake once more, above the one that is known: the one that was added is told.
    let lines = edit(&mut daemon, "import os\n\nprint(y)\n\n\ndef f():\n    return y\n");
    assert_eq!(lines.len(), 2, "{lines:#?}");
    assert!(lines[1].starts_with("- small.py:3:7: warning [F821] (ruff)"), "{lines:#?}");

    // Fixed: silence; and broken anew.
    assert_eq!(edit(&mut daemon, "def f():\n    return 1\n"), [""; 0]);
    let lines = edit(&mut daemon, "def f():\n    return y\n");
    assert_eq!(lines.len(), 2, "{lines:#?}");
    assert!(lines[1].starts_with("- small.py:2:12: warning [F821] (ruff)"), "{lines:#?}");
}

/// A file that the agent reaches through a link, and the server by its real path, is one file, told
/// of as the agent spells it; one whose link leaves the root is not listed.
#[test]
fn a_linked_file_is_the_file_that_it_leads_to() {
    let directory = tempfile::tempdir().expect("a directory");
    let root = directory.path().canonicalize().expect("its real path");
    for path in ["work/real", "elsewhere"] {
        fs::create_dir_all(root.join(path)).expect("a directory");
        fs::write(root.join(path).join("a.py"), "a\nb\n").expect("a file");
    }
    let work = root.join("work");
    symlink("real", work.join("link")).expect("a link");
    symlink("../elsewhere", work.join("out")).expect("a link");
    let (real, linked, outside) =
        (work.join("real/a.py"), work.join("link/a.py"), work.join("out/a.py"));
    let mut daemon = daemon_at(&work);
    let publish = |daemon: &mut Daemon, file: &Path, messages: &[(&str, usize)]| {
        let problem = |(message, line): &(&str, usize)| {
            let at = json!({"line": line, "character": 0});
            json!({"range": {"start": at, "end": at}, "severity": 1, "message": message})
        };
        let found: Vec<_> = messages.iter().map(problem).collect();
        let params = json!({"uri": file, "checker": "c", "diagnostics": found});
        answer(daemon, "diagnostic/publish", &params);
    };
    publish(&mut daemon, &real, &[("old", 1)]);
    let edit = |daemon: &mut Daemon, file: &Path, text: &str| {
        answer(daemon, "edit/begin", &json!({"session": "s", "uris": [file]}));
        fs::write(file, text).expect("the file can be written");
        let uris = json!([{"uri": file}]);
        answer(daemon, "edit/end", &json!({"session": "s", "uris": uris, "ok": true}));
    };
    edit(&mut daemon, &linked, "new\na\nb\n");
    edit(&mut daemon, &outside, "new\n");
    publish(&mut daemon, &real, &[("old", 2), ("new", 0)]);
    publish(&mut daemon, &root.join("elsewhere/a.py"), &[("outside", 0)]);
    publish(&mut daemon, &outside, &[("outside", 0)]);
    let lines = told(&mut daemon);
    assert_eq!(lines.len(), 4, "{lines:#?}");
    assert_eq!(lines[1], "- link/a.py:1:1: error: new");
    assert_eq!(lines[3], "- link/a.py:3:1: error: old");

    // Known now under both names, and where its lines went.
    edit(&mut daemon, &real, "# x\nnew\na\nb\n");
    publish(&mut daemon, &linked, &[("old", 3), ("new", 1), ("new", 3)]);
    let lines = told(&mut daemon);
    assert_eq!(lines[1..], ["- link/a.py:4:1: error: new"]);
}

/// A checker that is quicker than the agent's host: its result of the new version comes before the host
/// says that the edit is made, and is not moved by that edit.
#[test]
fn a_result_that_is_ahead_of_its_edit_stays_where_it_is() {
    let directory = tempfile::tempdir().expect("a directory");
    let root = directory.path().canonicalize().expect("its real path");
    let file = root.join("a.py");
    fs::write(&file, "old bad\n").expect("a file");
    let mut daemon = daemon_at(&root);
    let publish = |daemon: &mut Daemon, version: u64, places: &[(u64, u64)]| {
        let problem = |&(line, character): &(u64, u64)| {
            let at = json!({"line": line, "character": character});
            json!({"range": {"start": at, "end": at}, "severity": 1, "message": "bad"})
        };
        let found: Vec<_> = places.iter().map(problem).collect();
        let params = json!({"uri": file, "checker": "c", "version": version, "diagnostics": found});
        answer(daemon, "diagnostic/publish", &params);
    };
    publish(&mut daemon, 1, &[(0, 4)]);
    for (version, text, places) in [
        (2, "another one bad\nold bad\n", &[(0, 12), (1, 4)][..]),
        (3, "\nanother one bad\nold bad\n", &[(1, 12), (2, 4)][..]),
    ] {
        answer(&mut daemon, "edit/begin", &json!({"session": "s", "uris": [file]}));
        fs::write(&file, text).expect("the file can be written");
        publish(&mut daemon, version, places);
        let uris = json!([{"uri": file, "version": version}]);
        answer(&mut daemon, "edit/end", &json!({"session": "s", "uris": uris, "ok": true}));
        let lines = told(&mut daemon);
        if version == 2 {
            assert_eq!(lines[1], "- a.py:1:13: error: bad");
            assert_eq!(lines[3], "- a.py:2:5: error: bad");
        } else {
            assert_eq!(lines, [""; 0], "lines that were only shifted are not new");
        }
    }
}

/// A file that an edit removes loses its results.
#[test]
fn an_edit_that_deletes_leaves_nothing_to_tell() {
    let directory = tempfile::tempdir().expect("a directory");
    let root = directory.path().canonicalize().expect("its real path");
    let file = root.join("a.py");
    fs::write(&file, "x\n").expect("a file");
    let mut daemon = daemon_at(&root);
    let found = json!([{"message": "wrong", "severity": 1}]);
    let publish = json!({"uri": file, "checker": "c", "diagnostics": found});
    answer(&mut daemon, "diagnostic/publish", &publish);
    answer(&mut daemon, "edit/begin", &json!({"session": "s", "uris": [file]}));
    fs::remove_file(&file).expect("it is there");
    let end = json!({"session": "s", "uris": [{"uri": file}], "ok": true});
    answer(&mut daemon, "edit/end", &end);
    answer(&mut daemon, "diagnostic/publish", &publish);
    assert_eq!(told(&mut daemon), [""; 0]);
    let state = answer(&mut daemon, "session/state", &json!({"session": "s"}));
    assert_eq!(state["diagnostics"], json!([]));
}

/// A WAIT right behind an edit tells what was found, though the file is still looked at when it comes.
#[test]
fn a_wait_does_not_overtake_the_look_at_an_edited_file() {
    let directory = tempfile::tempdir().expect("a directory");
    let root = directory.path().canonicalize().expect("its real path");
    let mut daemon = daemon_at(&root);
    let session = json!({"session": "s"});
    for round in 0..100 {
        let file = root.join(format!("{round}.py"));
        fs::write(&file, "x = y\n").expect("a file");
        let message = format!("found in round {round}");
        let found = json!([{"message": message, "severity": 1}]);
        let end = json!({"session": "s", "uris": [{"uri": file}], "ok": true});
        daemon.notify("edit/end", end);
        let publish = json!({"uri": file, "checker": "c", "diagnostics": found});
        daemon.notify("diagnostic/publish", publish);
        let explain = daemon.ask("reminder/explain", session.clone());
        let lines = told(&mut daemon);
        assert!(lines.iter().any(|line| line.ends_with(&message)), "{lines:?}");
        let rows = daemon.expect_answer(&explain)["result"]["rows"].take();
        let row = rows.as_array().expect("rows").iter().find(|row| row["id"] == "diagnostics");
        assert_eq!(row.expect("a row")["speaks"], true, "{row:?}");
    }
}
