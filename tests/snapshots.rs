//! The body of every kind of reminder, as the real daemon words it, in one file, and the help of every
//! command in another: a change of wording is seen in review, and is made on purpose.
//!
//! `tests/snapshots/bodies.jsonl` is played, and what it was told is compared with
//! `tests/snapshots/bodies.txt`; the help is in `tests/snapshots/help.txt`. `REMINDERD_BLESS=1` writes
//! these files anew.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::{env, fs};

use serde_json::Value;

/// Stands for the directory of the session in the script and in the snapshot.
const ROOT: &str = "$ROOT";

/// Names the variable that writes the snapshot anew.
const BLESS: &str = "REMINDERD_BLESS";

#[test]
fn bodies_are_worded_as_they_were() {
    compare("bodies.txt", &told(&play()));
}

/// Compares a text with its snapshot, or writes that anew.
fn compare(name: &str, text: &str) {
    let snapshot = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots").join(name);
    if env::var_os(BLESS).is_some_and(|value| value == "1") {
        fs::write(&snapshot, text).expect("the snapshot is written");
        return;
    }
    let before = fs::read_to_string(&snapshot).unwrap_or_default();
    assert!(
        text == before,
        "{}\nThis is not worded as in {}. If that is meant, run this test once with {BLESS}=1 and \
         commit what it writes.",
        difference(&before, text),
        snapshot.display()
    );
}

#[test]
fn help_is_worded_as_it_was() {
    let mut text = String::new();
    for command in [Vec::new()].into_iter().chain(commands()) {
        let help = help(&command);
        let _ = writeln!(text, "=== reminderd {}\n{help}", command.join(" "));
    }
    compare("help.txt", &text);
}

/// Help teaches: each command has an example, but for those that only hold others.
#[test]
fn every_command_has_an_example() {
    for command in commands() {
        let help = help(&command);
        let example = help.split_once("\nExample").map(|(_, example)| example);
        let teaches = example.is_some_and(|it| it.contains("  $ "));
        assert!(teaches || help.contains("\nCommands:\n"), "{command:?} has no example: {help}");
    }
}

/// All commands, by their names, and those within them.
fn commands() -> Vec<Vec<String>> {
    commands_of(&[])
}

fn commands_of(command: &[String]) -> Vec<Vec<String>> {
    let help = help(command);
    let Some((_, list)) = help.split_once("Commands:\n") else { return Vec::new() };
    // What is said of a command goes on further to the right.
    let list = list.lines().take_while(|line| line.starts_with("  "));
    let list = list.filter(|line| !line.starts_with("   "));
    let names = list.filter_map(|line| line.split_whitespace().next());
    let mut all = Vec::new();
    for name in names.filter(|name| *name != "help") {
        let whole = [command, &[name.to_owned()]].concat();
        let within = commands_of(&whole);
        all.push(whole);
        all.extend(within);
    }
    all
}

/// The whole help of a command, without the spaces that clap leaves at ends of lines.
fn help(command: &[String]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_reminderd"))
        .args(command)
        .arg("--help")
        .env_remove("COLUMNS")
        .stdin(Stdio::null())
        .output()
        .expect("reminderd starts");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    text.lines().fold(String::new(), |text, line| text + line.trim_end() + "\n")
}

/// A kind that is added comes with its wording.
#[test]
fn every_kind_has_a_body() {
    let messages = play();
    let initialized = messages
        .iter()
        .find_map(|message| {
            message.pointer("/result/capabilities/experimental/reminderd/kinds")?.as_array()
        })
        .expect("the daemon announces its kinds");
    let announced: BTreeSet<&str> = initialized.iter().filter_map(Value::as_str).collect();
    let spoke: BTreeSet<&str> =
        entries(&messages).filter_map(|entry| entry["type"].as_str()).collect();
    let silent: Vec<_> = announced.difference(&spoke).collect();
    assert!(silent.is_empty(), "tests/snapshots/bodies.jsonl has nothing of {silent:?}");
}

/// Plays the script in a directory of its own, and answers what the daemon said.
fn play() -> Vec<Value> {
    let directory = tempfile::tempdir().expect("a directory");
    let real = directory.path().canonicalize().expect("its real path");
    let root = real.join("root");
    for (path, content) in [
        ("notes.txt", "First line.\nSecond line.\n".to_owned()),
        ("folder/one.txt", String::new()),
        ("folder/two.txt", String::new()),
        ("lib/AGENTS.md", "Keep functions short.\n".to_owned()),
        ("lib/AGENTS.local.md", "Mine: run the slow tests too.\n".to_owned()),
        ("lib/deep/AGENTS.md", "Everything here is generated.\n".to_owned()),
        ("lib/deep/x.rs", "x".to_owned()),
        ("src/a.rs", "a".to_owned()),
        ("src/b.rs", "b".to_owned()),
        ("edited/small.rs", "fn one() {}\nfn two() {}\n".to_owned()),
        ("edited/agent.rs", "by an agent\n".to_owned()),
        ("edited/person.rs", "by the person\n".to_owned()),
        ("edited/long.txt", (1..=60).fold(String::new(), |text, line| text + &format!("{line}\n"))),
        ("edited/binary", "\0".to_owned()),
        ("edited/Cargo.lock", "lock\n".to_owned()),
        ("edited/large.txt", "large\n".repeat(50_000)),
        ("edited/.env", "KEY=value\n".to_owned()),
        ("edited/denied.csv", "1,2\n".to_owned()),
        ("edited/directory/file", String::new()),
        ("big.pdf", format!("%PDF-1.4\n{}", "x".repeat(1 << 20))),
    ] {
        let path = root.join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        fs::write(path, content).expect("a file");
    }
    std::os::unix::fs::symlink(real.join("bodies.jsonl"), root.join("edited/link"))
        .expect("a link");
    let root = root.to_str().expect("a name in UTF-8");
    let script = real.join("bodies.jsonl");
    fs::write(&script, include_str!("snapshots/bodies.jsonl").replace(ROOT, root))
        .expect("a script");
    let transcript = real.join("transcript.jsonl");
    let output = Command::new(env!("CARGO_BIN_EXE_reminderd"))
        .args(["run", "--transcript"])
        .args([&transcript, &script])
        .stdin(Stdio::null())
        .output()
        .expect("reminderd starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let transcript = fs::read_to_string(&transcript).expect("a transcript");
    let lines = transcript.lines().map(|line| line.replace(root, ROOT));
    lines
        .map(|line| serde_json::from_str::<Value>(&line).expect("a message a line"))
        .filter(|line| line["from"] == "daemon")
        .map(|mut line| line["message"].take())
        .collect()
}

/// The entries of every WAIT.
fn entries(messages: &[Value]) -> impl Iterator<Item = &Value> {
    messages.iter().filter_map(|message| message.pointer("/result/entries")?.as_array()).flatten()
}

/// Each entry under a heading. Of characters that come often in a row their number is told.
fn told(messages: &[Value]) -> String {
    let mut text = String::new();
    for entry in entries(messages) {
        let kind = entry["type"].as_str().expect("a type");
        let key = entry["key"].as_str().map(|key| format!(" [{key}]")).unwrap_or_default();
        let label = entry["label"].as_str().expect("a label");
        let body = entry["body"].as_str().expect("a body");
        let body = body.replace(&"x".repeat(12_000), "(12,000 times x)");
        let _ = writeln!(text, "=== {kind}{key} ({label})\n{body}\n");
    }
    text
}

/// The first line in which two snapshots differ.
fn difference(before: &str, now: &str) -> String {
    let (mut old, mut new) = (before.lines(), now.lines());
    for number in 1.. {
        match (old.next(), new.next()) {
            (None, None) => break,
            (old, new) if old != new => {
                let shown = |line: Option<&str>| line.unwrap_or("(the end)").to_owned();
                return format!("line {number}:\n- {}\n+ {}", shown(old), shown(new));
            }
            _ => {}
        }
    }
    "only in the ends of lines".to_owned()
}
