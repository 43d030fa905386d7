//! What the model is told of files that changed under it: each sentence of `reminders.md` §5, on real
//! files.

use std::fs::{self, File, FileTimes, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{
    Daemon, Framing, ODD_NAMES, Project, Start, on_session, pipe, text_of, write,
};

/// Agents are told too, when their spawn says so.
const SWITCHED_ON: &str = "edited-files";

impl Project {
    /// The files that a WAIT tells of, after which they are known.
    #[track_caller]
    fn is_told(&mut self, words: &[&str]) -> String {
        holds(self.told().edited(), words)
    }

    /// Nothing is due.
    #[track_caller]
    fn is_quiet(&mut self) {
        assert_eq!(self.told().edited(), "");
    }

    /// Writes a file and reads it.
    fn known(&mut self, name: &str, content: impl AsRef<[u8]>) {
        self.write(name, content);
        self.read(name);
    }

    /// An agent that watches files, in a turn.
    fn agent(&mut self, path: &str) {
        let kinds = json!({SWITCHED_ON: {}});
        self.event("agent/spawn", json!({"agent": path, "kinds": kinds}));
        self.event("turn/begin", json!({"agent": path, "turn": format!("turn of {path}")}));
    }

    fn told_to(&mut self, agent: &str) -> String {
        let delivery = self.ask(json!({"agent": agent}));
        self.commit(&delivery);
        delivery.edited()
    }

    fn says(&mut self, method: &str, params: Value) {
        let answer = self.daemon.request(method, params);
        assert_eq!(answer.get("result"), Some(&Value::Null), "{method}: {answer}");
    }

    /// A file event of the client's.
    fn hint(&mut self, name: &str) {
        let changes = json!([{"uri": self.at(name), "type": 2}]);
        self.says("workspace/didChangeWatchedFiles", json!({"changes": changes}));
    }

    /// The person opens, changes and saves a file in the editor.
    fn saved_by_the_person(&mut self, name: &str, content: &str) {
        self.opened_by_the_person(name, "before\n");
        self.changed_by_the_person(name, content);
        self.write(name, content);
        self.says("textDocument/didSave", json!({"textDocument": {"uri": self.at(name)}}));
    }

    fn opened_by_the_person(&mut self, name: &str, content: &str) {
        let document = json!({"uri": self.at(name), "languageId": "x", "version": 1,
            "text": content});
        self.says("textDocument/didOpen", json!({"textDocument": document}));
    }

    fn changed_by_the_person(&mut self, name: &str, content: &str) {
        let document = json!({"uri": self.at(name), "version": 2});
        let changes = json!([{"text": content}]);
        let params = json!({"textDocument": document, "contentChanges": changes});
        self.says("textDocument/didChange", params);
    }
}

#[track_caller]
fn holds(body: String, words: &[&str]) -> String {
    for word in words {
        assert!(body.contains(word), "no {word:?} in {body:?}");
    }
    body
}

/// Lines with numbers.
fn lines(count: usize, word: &str) -> String {
    (0..count).fold(String::new(), |lines, number| lines + &format!("{word} {number}\n"))
}

/// The lines of a body that belong to differences.
fn diff_lines(body: &str) -> usize {
    body.lines()
        .filter(|line| {
            line.starts_with([' ', '+']) || (line.starts_with('-') && !line.starts_with("- "))
        })
        .count()
}

// What is watched, and what a read tells

/// Watched are the files that agents read or wrote, nothing else.
#[test]
fn only_what_was_read_or_written_is_watched() {
    let mut project = Project::new();
    project.write("never", "one\n");
    project.known("read", "one\n");
    project.wrote("written", "one\n");
    project.is_quiet();
    for name in ["never", "read", "written"] {
        project.write(name, "two\n");
        project.hint(name);
    }
    let body = project.is_told(&["read, changed", "written, changed"]);
    assert!(!body.contains("never"), "{body}");
    project.is_quiet();
}

#[test]
fn a_full_read_tells_the_file_as_it_is() {
    let mut project = Project::new();
    project.known("a", "one\n");
    project.write("a", "two\n");
    project.read("a");
    project.is_quiet();
    project.write("a", "three\n");
    project.is_told(&["@@ -1 +1 @@\n-two\n+three"]);
}

/// A part of a file, or pages of it, only start the watch.
#[test]
fn a_partial_read_starts_the_watch() {
    for part in [json!({"partial": true}), json!({"pages": "1-5"})] {
        let mut project = Project::new();
        let read = |project: &mut Project| {
            let mut params = part.clone();
            params["uri"] = json!(project.at("a"));
            project.event("file/read", params);
        };
        project.write("a", "one\n");
        read(&mut project);
        project.is_quiet();
        project.write("a", "two\n");
        read(&mut project);
        project.is_told(&["-one\n+two"]);
    }
}

/// A part that is read of a file that has changed takes nothing from what is known of it.
#[test]
fn a_partial_read_keeps_what_is_known() {
    let mut project = Project::new();
    project.known("a", "one\n");
    project.write("a", "two\n");
    let uri = project.at("a");
    project.event("file/read", json!({"uri": uri, "partial": true}));
    project.is_told(&["-one\n+two"]);
}

/// One large file does not keep those that are ready from being told.
#[test]
fn a_large_file_does_not_take_the_time_of_the_others() {
    let mut project = Project::new();
    for name in ["a", "z"] {
        project.known(name, "one\n");
    }
    let large = File::create(project.path("m")).expect("it can be made");
    let uri = project.at("m");
    project.event("file/read", json!({"uri": uri, "partial": true}));
    // No disk gives that much within the deadline.
    large.set_len(1 << 40).expect("it can be sparse");
    for name in ["a", "z"] {
        project.write(name, "two\n");
    }
    let delivery = project.wait();
    let told = delivery.0["message"]["content"].as_str().expect("something is told");
    assert_eq!(told.matches("-one\n+two").count(), 2, "{told}");
}

/// A read that is sent as a notification takes its snapshot before whatever comes behind it.
#[test]
fn a_snapshot_is_taken_when_the_read_takes_effect() {
    let mut project = Project::new();
    project.write("a", "one\n");
    let read = on_session(json!({"uri": project.at("a")}));
    project.daemon.notify("file/read", read);
    project.is_quiet();
    project.write("a", "two\n");
    project.is_told(&["-one\n+two"]);
}

/// Text that the client gives is what the model saw, whatever stands on the disk.
#[test]
fn the_text_of_a_read_is_what_is_known() {
    let mut project = Project::new();
    project.write("a", "one\r\ntwo\r\n");
    let uri = project.at("a");
    project.event("file/read", json!({"uri": uri, "text": "one\ntwo\n"}));
    project.is_quiet();
    project.event("file/read", json!({"uri": uri, "text": "one\n"}));
    project.is_told(&["+two"]);
}

#[test]
fn a_file_that_is_not_there_yet_is_watched() {
    let mut project = Project::new();
    project.read("d/later");
    project.is_quiet();
    project.write("d/later", "one\n");
    project.is_told(&["d/later, made", "+one"]);
}

// Changed means content

/// B021, B028, B030.
#[test]
fn what_is_not_content_says_nothing() {
    let mut project = Project::new();
    project.known("a", lines(5000, "line"));
    let file = File::options().write(true).open(project.path("a")).expect("it is there");
    let later = std::time::SystemTime::now() + Duration::from_secs(100);
    file.set_times(FileTimes::new().set_modified(later)).expect("it is ours");
    project.is_quiet();
    fs::set_permissions(project.path("a"), Permissions::from_mode(0o755)).expect("it is ours");
    project.is_quiet();
    for same in [
        lines(5000, "line"),
        lines(5000, "line").replace('\n', "\r\n"),
        format!("\u{feff}{}", lines(5000, "line")),
    ] {
        project.write("a", same);
        project.hint("a");
        project.is_quiet();
    }
    project.write("a", "other\n");
    assert_ne!(project.released().edited(), "");
    project.write("a", lines(5000, "line"));
    project.is_quiet();
}

/// The same size, with its old time put back.
#[test]
fn an_edit_that_hides_is_found_when_an_event_named_it() {
    let mut project = Project::new();
    project.known("a", "one\n");
    let before = fs::metadata(project.path("a")).and_then(|it| it.modified()).expect("a time");
    project.write("a", "two\n");
    let file = File::options().write(true).open(project.path("a")).expect("it is there");
    file.set_times(FileTimes::new().set_modified(before)).expect("it is ours");
    project.hint("a");
    project.is_told(&["-one\n+two"]);
}

// Who did it

/// B023: in both orders, with the client's event and without, with the text and without.
#[test]
fn own_writes_never_come_back() {
    let mut project = Project::new();
    project.known("a", "one\n");
    for (number, is_first) in [false, true, false, true].into_iter().enumerate() {
        let content = format!("{number}\n");
        project.write("a", &content);
        if is_first {
            project.hint("a");
            // The write may even be seen before it is reported.
            assert_ne!(project.released().edited(), "");
        }
        let mut params = json!({"uri": project.at("a")});
        if number > 1 {
            params["text"] = json!(content);
        }
        project.event("file/wrote", params);
        project.hint("a");
        project.is_quiet();
    }
}

/// B025: what a formatter makes of it afterwards does.
#[test]
fn a_formatter_is_told_of_with_a_small_difference() {
    let mut project = Project::new();
    project.wrote("a", lines(100, "let  x ="));
    project.write("a", lines(100, "let  x =").replace("let  x = 50", "let x = 50"));
    let body = project.is_told(&["a, changed from outside", "-let  x = 50", "+let x = 50"]);
    assert!(diff_lines(&body) <= 8, "{body}");
}

#[test]
fn other_agents_and_sessions_are_named() {
    let mut project = Project::new();
    project.known("a", "one\n");
    project.known("b", "one\n");
    project.agent("/x");
    project.write("a", "two\n");
    let uri = project.at("a");
    project.event("file/wrote", json!({"agent": "/x", "uri": uri}));
    project.is_told(&["a, changed by agent /x"]);
    assert_eq!(project.told_to("/x"), "");
    project.wrote("a", "three\n");
    holds(project.told_to("/x"), &["a, changed by the root conversation", "-two\n+three"]);
    let root = text_of(&project.root).to_owned();
    let opened = project.daemon.request("session/open", json!({"session": "t", "root": root}));
    assert!(opened["result"].is_object(), "{opened}");
    project.write("b", "two\n");
    let uri = project.at("b");
    project.says("file/wrote", json!({"session": "t", "uri": uri}));
    project.is_told(&["b, changed by an agent of another session"]);
}

/// An editor that attaches when its text is changed already reports no change before it saves.
#[test]
fn the_person_is_named_when_a_changed_text_was_opened_and_saved() {
    let mut project = Project::new();
    let save = |project: &mut Project| {
        let document = json!({"uri": project.at("a")});
        project.says("textDocument/didSave", json!({"textDocument": document}));
    };
    project.known("a", "before\n");
    project.opened_by_the_person("a", "changed\n");
    project.is_quiet();
    project.write("a", "changed\n");
    save(&mut project);
    project.is_told(&["a, changed by the person in the editor", "-before\n+changed"]);
    // What another program wrote is not the person's, who only saves it again.
    project.known("b", "before\n");
    project.write("b", "elsewhere\n");
    project.opened_by_the_person("b", "elsewhere\n");
    let document = json!({"uri": project.at("b")});
    project.says("textDocument/didSave", json!({"textDocument": document}));
    let told = project.is_told(&["b, changed", "-before\n+elsewhere"]);
    assert!(!told.contains("person"), "{told}");
}

#[test]
fn the_person_is_named_and_unsaved_text_is_no_change() {
    let mut project = Project::new();
    project.known("a", "before\n");
    project.opened_by_the_person("a", "before\n");
    project.changed_by_the_person("a", "unsaved\n");
    project.is_quiet();
    project.saved_by_the_person("a", "saved\n");
    project.is_told(&["a, changed by the person in the editor", "-before\n+saved"]);
    // Saved without having been changed: somebody else did it.
    project.write("a", "by somebody\n");
    project.says("textDocument/didSave", json!({"textDocument": {"uri": project.at("a")}}));
    project.is_told(&["a, changed from outside"]);
    project.write("a", "by nobody known\n");
    project.hint("a");
    project.is_told(&["a, changed from outside"]);
    let closed = json!({"textDocument": {"uri": project.at("a")}});
    project.says("textDocument/didClose", closed);
}

// In the middle of things

/// B032: a truncated file is given the time to be written.
#[test]
fn a_truncated_file_is_never_told_as_emptied() {
    let mut project = Project::new();
    project.known("a", "one\n");
    project.known("b", "one\n");
    for round in 0..10 {
        project.write("a", "");
        fs::rename(project.path("b"), project.path("moved")).expect("it is there");
        let wait = project.daemon.ask("reminder/wait", json!({"session": "s"}));
        let content = format!("round {round}\n");
        project.write("a", &content);
        fs::remove_file(project.path("moved")).expect("it is there");
        project.write("b", &content);
        let answer = project.daemon.expect_answer(&wait);
        let body = answer["result"]["entries"][0]["body"].as_str().expect("a body");
        assert_eq!(body.matches(&format!("+round {round}")).count(), 2, "{body}");
        let token = &answer["result"]["token"];
        project.daemon.request("reminder/commit", json!({"token": token}));
    }
}

/// What stays empty is told as what it is.
#[test]
fn a_file_that_stays_empty_is_told() {
    let mut project = Project::new();
    project.known("a", "one\n");
    project.write("a", "");
    project.is_told(&["a, changed", "-one"]);
    project.is_quiet();
}

#[test]
fn what_is_no_file_is_said_to_be_that() {
    let mut project = Project::new();
    for name in ["fifo", "directory", "device", "unreadable"] {
        project.known(name, "one\n");
        fs::remove_file(project.path(name)).expect("it is there");
    }
    pipe(&project.path("fifo"));
    fs::create_dir(project.path("directory")).expect("it can be made");
    symlink("/dev/null", project.path("device")).expect("a link");
    symlink("unreadable", project.path("unreadable")).expect("a link");
    project.is_told(&[
        "- fifo: replaced from outside, it is a FIFO now",
        "- directory: replaced from outside, it is a directory now",
        "- device: replaced from outside, it is a device now",
        "- unreadable: cannot be read any more",
    ]);
    project.is_quiet();
    fs::remove_file(project.path("fifo")).expect("it is there");
    project.write("fifo", "one\n");
    project.is_told(&["fifo"]);
}

/// B038.
#[test]
fn a_deletion_is_told_once_and_the_return_too() {
    let mut project = Project::new();
    project.known("d/a", "one\n");
    project.remove("d/a");
    project.is_told(&["- d/a: deleted from outside"]);
    project.is_quiet();
    project.write("d/a", "one\n");
    project.is_told(&["d/a, made again from outside", "+one"]);
    project.remove("d/a");
    assert_ne!(project.released().edited(), "");
    project.write("d/a", "one\n");
    project.is_quiet();
    fs::remove_dir_all(&project.root).expect("it is there");
    project.is_told(&["- d/a: deleted"]);
}

// How much is told

#[test]
fn the_lines_of_a_file_are_capped_and_the_rest_is_counted() {
    let mut project = Project::new();
    project.known("a", "");
    project.write("a", lines(100, "line"));
    let body = project.is_told(&["60 more lines"]);
    assert_eq!(diff_lines(&body), 40, "{body}");
    project.write("a", lines(140, "line"));
    let body = project.is_told(&["+line 100", "3 more lines"]);
    assert_eq!(diff_lines(&body), 40, "{body}");
}

/// B034: small ones first, so that none starves; every file is named.
#[test]
fn the_lines_of_all_files_are_capped_small_ones_first() {
    let mut project = Project::new();
    let names: Vec<_> = (0..30).map(|number| format!("f{number:02}")).collect();
    for name in &names {
        project.known(name, "");
    }
    for (number, name) in names.iter().enumerate() {
        project.write(name, lines(if number % 2 == 0 { 35 } else { 2 }, "line"));
    }
    let body = project.told().edited();
    for (number, name) in names.iter().enumerate() {
        assert!(body.contains(name.as_str()), "{name} is not named in {body}");
        let shown = body.contains(&format!("{name}, changed"));
        assert!(shown || number % 2 == 0, "{name} starved: {body}");
    }
    assert!(diff_lines(&body) <= 400, "{}", diff_lines(&body));
    assert!(diff_lines(&body) > 350, "{}", diff_lines(&body));
    project.is_quiet();
}

#[test]
fn the_bytes_of_all_files_are_capped() {
    let mut project = Project::new();
    for number in 0..30 {
        project.known(&format!("f{number}"), "");
    }
    for number in 0..30 {
        project.write(&format!("f{number}"), lines(20, &"x".repeat(200)));
    }
    let body = project.told().edited();
    for number in 0..30 {
        assert!(body.contains(&format!("f{number}")), "f{number}");
    }
    assert!(body.len() < (32 << 10) + 4096, "{}", body.len());
    assert!(body.len() > 24 << 10, "{}", body.len());
}

/// Thousands of changed files are named, and the whole reaches the model.
#[test]
fn every_file_is_named_however_many_there_are() {
    let mut project = Project::new();
    for number in 0..1000 {
        project.write(&format!("f{number}"), "one\n");
        let uri = project.at(&format!("f{number}"));
        project.daemon.notify("file/read", on_session(json!({"uri": uri})));
    }
    project.is_quiet();
    for number in 0..1000 {
        project.write(&format!("f{number}"), lines(3, "two"));
    }
    let body = project.told().edited();
    for number in 0..1000 {
        assert!(body.contains(&format!("f{number}")), "f{number}");
    }
    project.is_quiet();
}

#[test]
fn large_and_binary_files_are_named_with_their_size() {
    let mut project = Project::new();
    let large = lines(40_000, "a line");
    project.known("large", &large);
    project.known("binary", b"a\0b");
    project.known("huge", vec![b'x'; 2 << 20]);
    project.write("large", format!("{large}more\n"));
    project.write("binary", b"a\0cd");
    project.write("huge", vec![b'y'; (2 << 20) + 1]);
    let size = format!("{} bytes", large.len() + 5);
    let body = project.is_told(&[
        "- large: ",
        &size,
        "- binary: ",
        "it is binary, 4 bytes",
        "2097153 bytes",
    ]);
    assert_eq!(diff_lines(&body), 0, "{body}");
}

#[test]
fn generated_files_are_named_with_their_size() {
    let kinds = json!({"edited-files": {"generated": ["*.out", "!kept.lock"]}});
    let mut project = Project::with(kinds);
    for name in ["Cargo.lock", "a.out", "dist/x.js", "kept.lock", "source"] {
        project.known(name, lines(3000, "one"));
    }
    for name in ["Cargo.lock", "a.out", "dist/x.js", "kept.lock", "source"] {
        project.write(name, lines(3000, "one").replace("one 5\n", "two 5\n"));
    }
    project.is_told(&[
        "- Cargo.lock: changed from outside (it is generated, ",
        "- a.out: changed from outside (it is generated, ",
        "- dist/x.js: changed from outside (it is generated, ",
        "kept.lock, changed from outside:\n@@",
        "source, changed from outside:\n@@",
    ]);
}

/// The kind's own keys.
#[test]
fn caps_can_be_configured() {
    let mut project = Project::with(json!({"edited-files": {"diffLines": 3, "contentFiles": 2,
        "totalLines": 4, "watchedFiles": 3}}));
    for name in ["a", "b", "c", "d"] {
        project.known(name, format!("{name}\n"));
    }
    for name in ["a", "b", "c", "d"] {
        project.write(name, lines(5, name));
    }
    let body = project.is_told(&["b: changed from outside (its earlier content is not kept"]);
    assert!(!body.contains("- a:") && !body.contains("a, changed"), "{body}");
    assert!(diff_lines(&body) <= 4, "{body}");
}

// Secrecy

/// No content of what is secret, ignored or denied, under any of its names.
#[test]
fn what_must_not_be_shown_is_named_without_its_size() {
    let mut project = Project::opened(
        Daemon::initialized(Framing::Lines),
        json!({"deny": ["private/"], "kinds": {"edited-files": {"secret": ["*.vault"]}}}),
    );
    project.git(&["init", "-q"]);
    project.write(".gitignore", "*.log\n");
    let names = [".env", "x.vault", "private/a", "x.log", "deploy/id_rsa"];
    for name in names {
        project.known(name, "CANARY 1\n");
        symlink(name, project.path(&format!("link-{}", name.replace('/', "-")))).expect("a link");
    }
    let links = ["link-.env", "link-x.vault", "link-private-a", "link-x.log"];
    for link in links {
        project.read(link);
    }
    for name in names {
        project.write(name, "CANARY 22\n");
    }
    let body = project.is_told(
        &[
            ".env: changed from outside (it matches a secret pattern)",
            "x.vault: changed from outside (it matches a secret pattern)",
            "private/a: changed from outside (the client denied its content)",
            "x.log: changed from outside (git ignores it)",
            "deploy/id_rsa: changed from outside (it matches a secret pattern)",
        ]
        .map(|words| words.rsplit_once(": ").map_or(words, |(_, why)| why)),
    );
    // A file stands once, under one of its names.
    for name in names {
        let link = format!("link-{}", name.replace('/', "-"));
        let is_it = |line: &&str| line.contains(&format!("- {name}:")) || line.contains(&link);
        assert_eq!(body.lines().filter(is_it).count(), 1, "{name}: {body}");
    }
    assert_eq!(body.matches("- ").count(), names.len(), "{body}");
    assert!(!body.contains("CANARY") && !body.contains("bytes"), "{body}");
    project.is_quiet();
}

/// A file that was a secret, and one that becomes one: both names count.
#[test]
fn a_renamed_secret_stays_one() {
    let mut project = Project::new();
    project.known(".env", "CANARY\n");
    project.known("plain", "one\n");
    symlink("plain", project.path("link")).expect("a link");
    project.read("link");
    // The secret under a plain name, which was known with other content.
    fs::remove_file(project.path("link")).expect("it is there");
    symlink(".env", project.path("link")).expect("a link");
    let body = project.is_told(&["link"]);
    assert!(!body.contains("CANARY"), "{body}");
    fs::rename(project.path(".env"), project.path("plain")).expect("it is there");
    let body = project.told().edited();
    // What now is a plain file under a plain name may be shown; what the secret name held may not.
    assert!(body.contains(".env: deleted"), "{body}");
}

/// A link whose target now lies outside the root is named only.
#[test]
fn a_link_that_leaves_the_root_is_named() {
    let mut project = Project::new();
    write(&project.outside("elsewhere"), "OUTSIDE\n");
    project.write("a", "one\n");
    symlink("a", project.path("link")).expect("a link");
    project.read("link");
    fs::remove_file(project.path("link")).expect("it is there");
    symlink(project.outside("elsewhere"), project.path("link")).expect("a link");
    let body =
        project.is_told(&["- link: changed from outside (it is a link that leaves the root)"]);
    assert!(!body.contains("OUTSIDE"), "{body}");
    write(&project.outside("elsewhere"), "OUTSIDE TOO\n");
    let body = project.is_told(&["link"]);
    assert!(!body.contains("OUTSIDE"), "{body}");
}

/// The session's bookkeeping and the daemon's own state.
#[test]
fn bookkeeping_is_never_watched() {
    let state = tempfile::tempdir().expect("a directory");
    let mut daemon = Start::keeping(Framing::Lines, state.path()).spawn();
    daemon.initialize();
    let mut project = Project::opened(daemon, json!({"own": ["own", "file:///nowhere/else"]}));
    project.known("own/log", "one\n");
    project.known("owner", "one\n");
    symlink(project.path("own"), project.path("alias")).expect("a link");
    project.read("alias/log");
    let ledger = state.path().join("ledger.sqlite3");
    let uri = text_of(&ledger).to_owned();
    project.event("file/read", json!({"uri": uri}));
    project.write("own/log", "two\n");
    project.write("owner", "two\n");
    let body = project.is_told(&["owner, changed"]);
    assert!(!body.contains("log") && !body.contains("ledger"), "{body}");
}

// Names

/// B126.
#[test]
fn odd_names_mean_themselves_and_stand_on_one_line() {
    let mut project = Project::new();
    let root = text_of(&project.root).to_owned();
    for (name, spelled) in ODD_NAMES {
        project.write(name, "one\n");
        project.event("file/read", json!({"uri": format!("file://{root}/./{spelled}")}));
        project.is_quiet();
        project.write(name, "two\n");
        let body = project.told().edited();
        assert_eq!(body.lines().count(), 6, "{body:?}");
        assert!(!body.contains(['\u{1b}', '\u{202e}']), "{body:?}");
        // The plain path is the same file.
        project.read(name);
        project.is_quiet();
    }
}

#[test]
fn other_schemes_are_accepted_and_never_read() {
    let mut project = Project::new();
    for uri in ["untitled:Untitled-1", "vscode-remote://host/etc/passwd", "relative/path", ""] {
        for (method, params) in [
            ("file/read", json!({"uri": uri})),
            ("file/read", json!({"uri": uri, "text": "text"})),
            ("file/wrote", json!({"uri": uri})),
            ("file/forget", json!({"uri": uri})),
        ] {
            let answer = project.daemon.request(method, on_session(params));
            assert!(answer.get("result").is_some() || uri.is_empty(), "{method} {uri}: {answer}");
        }
        let changes = json!([{"uri": uri, "type": 2}]);
        project.says("workspace/didChangeWatchedFiles", json!({"changes": changes}));
    }
    project.is_quiet();
}

/// B035: compared as bytes; the answer is JSON whatever they are.
#[test]
fn what_is_not_utf_8_is_compared_as_bytes() {
    let mut project = Project::new();
    project.known("latin", b"caf\xe9\n2\n3\n4\n5\n6\n7\n8\n9\n");
    project.known("other", b"caf\xe9\n");
    project.write("latin", b"caf\xe9\n2\n3\n4\n5\n6\n7\n8\nnine\n");
    project.write("other", b"caf\xe8\n");
    let body = project.is_told(&["-9\n+nine", "-café\n+cafè"]);
    assert!(!body.contains('\u{fffd}'), "{body}");
}

/// A name in bytes that are no UTF-8 arrives with percent signs.
#[test]
fn a_name_that_is_not_utf_8_is_a_file_like_any_other() {
    use std::os::unix::ffi::OsStrExt;
    let mut project = Project::new();
    let path = project.root.join(std::ffi::OsStr::from_bytes(b"caf\xe9"));
    write(&path, "one\n");
    let uri = format!("file://{}/caf%E9", text_of(&project.root));
    project.event("file/read", json!({"uri": uri}));
    project.is_quiet();
    write(&path, "two\n");
    project.is_told(&["caf\\xe9, changed", "-one\n+two"]);
    project.is_quiet();
}

// Commit, release, and all that undoes them

/// An edit between the WAIT and its commit is the next report.
#[test]
fn a_commit_tells_what_was_compared() {
    let mut project = Project::new();
    project.known("a", "one\n");
    project.write("a", "two\n");
    let delivery = project.wait();
    project.write("a", "three\n");
    project.commit(&delivery);
    project.is_told(&["-two\n+three"]);
    project.is_quiet();
}

/// A write of the agent's own between the WAIT and its commit is newer.
#[test]
fn a_write_before_the_commit_stands() {
    let mut project = Project::new();
    project.known("a", "one\n");
    project.write("a", "two\n");
    let delivery = project.wait();
    project.wrote("a", "three\n");
    project.commit(&delivery);
    project.is_quiet();
}

#[test]
fn what_is_released_is_told_again() {
    let mut project = Project::new();
    project.known("a", "one\n");
    project.write("a", "two\n");
    let first = project.released().edited();
    assert_eq!(project.released().edited(), first);
    project.write("a", "three\n");
    project.is_told(&["-one\n+three"]);
}

/// Told is what the commit names.
#[test]
fn a_partial_commit_leaves_the_files_due() {
    let mut project = Project::new();
    project.known("a", "one\n");
    project.write("a", "two\n");
    project.event("reminder/enqueue", json!({"body": "other"}));
    let delivery = project.wait();
    let entries = delivery.0["entries"].as_array().expect("entries");
    let other = entries.iter().find(|entry| entry["type"] == "pending-events").expect("one");
    let params = json!({"token": delivery.0["token"], "entries": [other["id"]]});
    let answer = project.daemon.request("reminder/commit", params);
    assert!(answer["result"].is_object(), "{answer}");
    project.is_told(&["-one\n+two"]);
    project.is_quiet();
}

/// B041, B082: also between turns, and during a compaction.
#[test]
fn edits_outside_a_turn_are_told_in_the_next() {
    let mut project = Project::new();
    project.known("a", "one\n");
    project.is_quiet();
    project.event("turn/end", json!({"turn": "1", "outcome": "completed"}));
    for content in ["two\n", "three\n", "four\n"] {
        project.write("a", content);
        project.hint("a");
    }
    project.known("b", "one\n");
    project.next_turn("2");
    let body = project.is_told(&["-one\n+four"]);
    assert!(!body.contains("two"), "{body}");
    project.write("b", "two\n");
    project.compact();
    project.is_told(&["b, changed"]);
    project.is_quiet();
}

#[test]
fn what_is_forgotten_is_watched_no_more() {
    let mut project = Project::new();
    project.known("a", "one\n");
    project.write("a", "two\n");
    let uri = project.at("a");
    project.event("file/forget", json!({"uri": uri}));
    project.is_quiet();
    project.read("a");
    project.write("a", "three\n");
    project.is_told(&["-two\n+three"]);
}

#[test]
fn agents_have_snapshots_of_their_own() {
    let mut project = Project::new();
    project.agent("/x");
    project.known("a", "one\n");
    project.write("a", "two\n");
    let uri = project.at("a");
    project.event("file/read", json!({"agent": "/x", "uri": uri}));
    assert_eq!(project.told_to("/x"), "");
    project.is_told(&["-one\n+two"]);
    project.write("a", "three\n");
    holds(project.told_to("/x"), &["-two\n+three"]);
    // Begun anew, it knows nothing.
    project.event("agent/settle", json!({"agent": "/x", "outcome": "succeeded"}));
    project.agent("/x");
    project.write("a", "four\n");
    assert_eq!(project.told_to("/x"), "");
    project.is_told(&["-two\n+four"]);
}

#[test]
fn agents_are_told_only_when_switched_on() {
    let mut project = Project::new();
    project.event("agent/spawn", json!({"agent": "/x"}));
    project.event("turn/begin", json!({"agent": "/x", "turn": "1"}));
    project.write("a", "one\n");
    let uri = project.at("a");
    project.event("file/read", json!({"agent": "/x", "uri": uri}));
    project.write("a", "two\n");
    assert_eq!(project.told_to("/x"), "");
}

#[test]
fn a_rewind_brings_a_telling_back_and_a_compaction_does_not() {
    let mut project = Project::new();
    project.known("a", "one\n");
    project.write("a", "two\n");
    project.is_told(&["-one\n+two"]);
    project.compact();
    project.is_quiet();
    // What it knew before is known by its fingerprint alone.
    for (method, params) in
        [("history/rewound", json!({"through": null})), ("history/cleared", json!({}))]
    {
        project.event(method, params);
        project.is_told(&["a: changed from outside (its earlier content is not kept"]);
        project.is_quiet();
    }
}

#[test]
fn a_fork_knows_what_its_history_holds() {
    let mut project = Project::new();
    project.known("a", "one\n");
    project.known("b", "one\n");
    project.write("a", "two\n");
    project.is_told(&["-one\n+two"]);
    project.write("b", "two\n");
    let forked = project.daemon.request("session/fork", on_session(json!({"into": "t"})));
    assert!(forked["result"].is_object(), "{forked}");
    project.says("turn/begin", json!({"session": "t", "turn": "1"}));
    let answer = project.daemon.request("reminder/wait", json!({"session": "t"}));
    let body = answer["result"]["entries"].to_string();
    assert!(body.contains("b: changed") || body.contains("b, changed"), "{body}");
    assert!(!body.contains("a, changed") && !body.contains("a: changed"), "{body}");
    project.is_told(&["b, changed"]);
}

#[test]
fn what_is_not_ready_in_time_stays_eligible() {
    let mut project = Project::new();
    project.known("a", "one\n");
    project.write("a", "two\n");
    let late = project.ask(json!({"deadlineMs": 0}));
    project.commit(&late);
    assert!(late.edited().is_empty(), "{}", late.edited());
    project.is_told(&["-one\n+two"]);
}

#[test]
fn a_cancelled_wait_leaves_all_as_it_was() {
    let mut project = Project::new();
    project.known("a", "one\n");
    // A file that is gone is looked at for a while.
    project.known("b", "one\n");
    project.remove("b");
    project.write("a", "two\n");
    let id = project.daemon.ask("reminder/wait", json!({"session": "s"}));
    project.daemon.notify("$/cancelRequest", json!({"id": id}));
    assert_eq!(project.daemon.expect_answer(&id)["error"]["code"], -32800);
    project.is_told(&["-one\n+two", "b: deleted"]);
    project.is_quiet();
}

#[test]
fn explain_agrees_with_the_wait_and_changes_nothing() {
    let mut project = Project::new();
    let row = project.explained("edited-files");
    assert_eq!(row["speaks"], false, "{row}");
    project.known("a", "one\n");
    let row = project.explained("edited-files");
    assert_eq!(row["speaks"], false, "{row}");
    assert!(row["reason"].as_str().is_some_and(|reason| reason.contains('1')), "{row}");
    project.write("a", "two\n");
    for _ in 0..2 {
        let row = project.explained("edited-files");
        assert_eq!(row["speaks"], true, "{row}");
    }
    project.is_told(&["-one\n+two"]);
    let row = project.explained("edited-files");
    assert_eq!(row["speaks"], false, "{row}");
}

#[test]
fn switched_off_and_on_again_it_tells_what_changed_meanwhile() {
    let mut project = Project::new();
    project.known("a", "one\n");
    project.event("roster/configure", json!({"kinds": {"edited-files": false}}));
    project.write("a", "two\n");
    project.is_quiet();
    project.known("b", "one\n");
    project.write("b", "two\n");
    project.event("roster/configure", json!({"kinds": {"edited-files": {}}}));
    project.is_told(&["a, changed", "b, changed"]);
}

// Around it

/// A person sees how many files are watched, and how well.
#[test]
fn the_state_says_what_is_watched() {
    let mut project = Project::with(json!({"edited-files": {"watchedFiles": 2}}));
    for name in ["a", "d/b", ".env"] {
        project.known(name, name);
    }
    project.is_quiet();
    let state = project.daemon.request("session/state", json!({"session": "s"}));
    let files = &state["result"]["files"];
    assert_eq!([&files["watched"], &files["contents"], &files["dropped"]], [2, 1, 1], "{files}");
    let watcher = &files["watcher"];
    assert_eq!(watcher["directories"], 2, "{files}");
    assert!(watcher["heard"].as_u64() <= Some(2), "{files}");
    assert_eq!(watcher["degraded"], Value::Null, "{files}");
}

/// Clients that ask for live hints get them, as they spell the file; others get none, or their tests
/// would fail for a message that nobody claimed.
#[test]
fn clients_that_ask_are_told_of_changes_at_once() {
    let mut daemon = Start::new(Framing::Lines).spawn();
    daemon.initialize_with(json!({"fileChanged": true}));
    daemon.forgive("file/changed");
    let mut project = Project::opened(daemon, json!({}));
    project.write("d/a b", "one\n");
    symlink("d", project.path("link")).expect("a link");
    let uri = format!("file://{}/link/a%20b", text_of(&project.root));
    project.event("file/read", json!({"uri": uri}));
    project.write("d/a b", "two\n");
    let changed = project.daemon.expect_method("file/changed");
    assert_eq!(changed["params"], json!({"uri": uri}));
    project.is_told(&["link/a b, changed"]);
}

/// A change that was made while the daemon was away is told, without a difference.
#[test]
fn a_restart_forgets_no_file() {
    let state = tempfile::tempdir().expect("a directory");
    let start = || {
        let mut daemon = Start::keeping(Framing::Lines, state.path()).spawn();
        daemon.initialize();
        daemon
    };
    let mut project = Project::opened(start(), json!({}));
    for name in ["a", "b", "c", "told"] {
        project.known(name, format!("{name} one\n"));
    }
    project.write("told", "two\n");
    project.is_told(&["told, changed"]);
    project.event("turn/end", json!({"turn": "1", "outcome": "completed"}));
    // One at a time may have the store.
    project.daemon = Daemon::initialized(Framing::Lines);
    project.write("a", "two\n");
    project.remove("b");
    project.daemon = start();
    project.open(json!({}));
    project.next_turn("2");
    let body = project
        .is_told(&["- a: changed from outside (its earlier content is not kept", "- b: deleted"]);
    assert!(!body.contains("told") && !body.contains("- c"), "{body}");
    project.is_quiet();
    // What was looked at since has its content again.
    project.write("a", "three\n");
    project.write("c", "two\n");
    project.is_told(&["-two\n+three", "-c one\n+two"]);
}

/// B145: 30 of 40 files change at once, and back.
#[test]
fn a_branch_is_switched_and_switched_back() {
    let mut project = Project::new();
    project.git(&["init", "-q"]);
    let names: Vec<_> = (0..40).map(|number| format!("src/f{number:02}")).collect();
    for name in &names {
        project.write(name, lines(30, "main"));
    }
    project.git(&["add", "."]);
    project.git(&["commit", "-qm", "main"]);
    project.git(&["switch", "-qc", "other"]);
    for name in &names[..30] {
        project.write(name, lines(30, "other"));
    }
    project.git(&["commit", "-qam", "other"]);
    project.git(&["switch", "-q", "main"]);
    for name in &names {
        project.read(name);
    }
    project.is_quiet();
    for branch in ["other", "main"] {
        project.git(&["switch", "-q", branch]);
        let delivery = project.told();
        assert_eq!(delivery.of("edited-files").len(), 1);
        let body = delivery.edited();
        assert!(names[..30].iter().all(|name| body.contains(name.as_str())), "{body}");
        assert!(names[30..].iter().all(|name| !body.contains(name.as_str())), "{body}");
        assert!(diff_lines(&body) <= 400, "{body}");
    }
    project.git(&["switch", "-q", "other"]);
    project.git(&["switch", "-q", "main"]);
    project.is_quiet();
}

/// B132, B138, B142: renamed over, made just now, removed with its directory and made again.
#[test]
fn files_are_followed_through_renames_and_directories() {
    let mut project = Project::new();
    project.known("d/a", "one\n");
    project.write("d/a", "at once\n");
    project.is_told(&["-one\n+at once"]);
    for content in ["two", "three"] {
        project.write("d/a.tmp", format!("{content}\n"));
        fs::rename(project.path("d/a.tmp"), project.path("d/a")).expect("it is there");
        project.is_told(&["d/a, changed", &format!("+{content}")]);
    }
    fs::remove_dir_all(project.path("d")).expect("it is there");
    project.write("d/a", "four\n");
    project.is_told(&["-three\n+four"]);
    project.write("d/a", "five\n");
    project.is_told(&["-four\n+five"]);
    fs::remove_dir_all(&project.root).expect("it is there");
    project.is_told(&["d/a: deleted"]);
    project.write("d/a", "six\n");
    project.is_told(&["+six"]);
}

/// B136: a root with a tree of dependencies costs nothing.
#[test]
fn trees_are_not_walked() {
    let mut project = Project::new();
    for number in 0..2000 {
        fs::create_dir_all(project.path(&format!("node_modules/p{number}"))).expect("a directory");
    }
    let before = project.daemon.bytes_read();
    project.known("a", "one\n");
    project.write("a", "two\n");
    project.is_told(&["-one\n+two"]);
    assert!(project.daemon.bytes_read() - before < 1 << 20);
}

/// B144: 100,000 events for five paths, from the client and from the disk.
#[test]
fn a_flood_of_events_leaves_waits_quick_and_memory_small() {
    let mut project = Project::new();
    let names = ["a", "b", "c", "d", "e"];
    for name in names {
        project.known(name, "one\n");
    }
    let changes: Vec<_> =
        names.iter().map(|name| json!({"uri": project.at(name), "type": 2})).collect();
    project.is_quiet();
    let memory = project.daemon.memory_peak_bytes();
    for round in 0..20_000 {
        project.daemon.notify("workspace/didChangeWatchedFiles", json!({"changes": changes}));
        if round % 20 == 0 {
            for name in names {
                project.write(name, format!("{round}\n"));
            }
        }
        if round % 2000 == 0 {
            let began = Instant::now();
            project.is_told(&["a, changed", "e, changed"]);
            assert!(began.elapsed() < Duration::from_secs(15), "a WAIT hangs in the flood");
        }
    }
    project.is_told(&["a, changed", "e, changed"]);
    let grown = project.daemon.memory_peak_bytes().saturating_sub(memory);
    assert!(grown < 64 << 20, "{grown} bytes more");
}
