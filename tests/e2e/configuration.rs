//! The configuration files of the real daemon: found, laid over each other, read again however an
//! editor saves, trusted or not, kept over restarts.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Daemon, Framing, PATIENCE, Start, wait_until};

/// A user's place and a workspace.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().expect("a directory"));
        for directory in ["config/reminderd", "work", "run"] {
            fs::create_dir_all(place.path(directory)).expect("it can be made");
        }
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn users(&self) -> PathBuf {
        self.path("config/reminderd/reminderd.toml")
    }

    fn workspaces(&self) -> PathBuf {
        self.path("work/reminderd.toml")
    }

    fn root(&self) -> String {
        text(&self.path("work"))
    }

    fn start(&self) -> Daemon {
        self.start_with(json!({}))
    }

    fn start_with(&self, options: Value) -> Daemon {
        let config = text(&self.path("config"));
        let mut daemon = Start::new(Framing::Lines).env("XDG_CONFIG_HOME", &config).spawn();
        daemon.initialize_with(options);
        daemon
    }

    /// With a store.
    fn keep(&self) -> Daemon {
        let config = text(&self.path("config"));
        let start = Start::keeping(Framing::Lines, &self.path("state"));
        let mut daemon = start.env("XDG_CONFIG_HOME", &config).spawn();
        daemon.initialize();
        daemon
    }
}

fn text(path: &Path) -> String {
    path.to_str().expect("it is text").to_owned()
}

fn write(path: &Path, content: &str) {
    fs::write(path, content).expect("it can be written");
}

/// A way to save a file.
type Save<'a> = &'a dyn Fn(&str);

/// A reminder in a file.
fn reminder(id: &str, body: &str) -> String {
    format!("[[reminders]]\nid = \"{id}\"\nbody = \"{body}\"\n")
}

fn result(answer: &Value) -> &Value {
    assert!(answer.get("error").is_none(), "{answer}");
    &answer["result"]
}

fn open(daemon: &mut Daemon, params: Value) -> Value {
    result(&daemon.request("session/open", params)).clone()
}

/// Opens a session at the place's root and begins a turn.
fn begin(daemon: &mut Daemon, place: &Place, trusted: bool) -> Value {
    let params = json!({"session": "s", "root": place.root(), "trusted": trusted});
    let opened = open(daemon, params);
    turn(daemon, "1");
    opened
}

fn turn(daemon: &mut Daemon, turn: &str) {
    result(&daemon.request("turn/begin", json!({"session": "s", "turn": turn})));
}

/// The bodies that a WAIT tells; what comes of a restart is left out.
fn told(daemon: &mut Daemon) -> Vec<String> {
    let params = json!({"session": "s", "autoCommit": true});
    let delivery = daemon.request("reminder/wait", params);
    let entries = result(&delivery)["entries"].as_array().expect("entries").clone();
    let said = entries.iter().filter(|entry| entry["type"] != "recovery");
    said.map(|entry| entry["body"].as_str().expect("a body").to_owned()).collect()
}

/// The ids on the roster that are configured.
fn configured(daemon: &mut Daemon, session: &str) -> Vec<String> {
    let answer = daemon.request("roster/list", json!({"session": session}));
    let rows = result(&answer).as_array().expect("rows").clone();
    let rows = rows.iter().filter(|row| row["source"] == "config");
    rows.map(|row| row["id"].as_str().expect("an id").to_owned()).collect()
}

fn await_configured(daemon: &mut Daemon, session: &str, expected: &[&str]) {
    let mut last = Vec::new();
    let came = wait_until(PATIENCE, || {
        last = configured(daemon, session);
        last == expected
    });
    assert!(came, "{last:?} is configured, and not {expected:?}");
}

fn problem(daemon: &mut Daemon) -> String {
    let problem = daemon.expect_method("reminderd/problem");
    assert_eq!(problem["params"]["method"], "config", "{problem}");
    assert_eq!(problem["params"]["code"], -32602, "{problem}");
    problem["params"]["message"].as_str().expect("a message").to_owned()
}

fn explained(daemon: &mut Daemon, id: &str) -> Value {
    let answer = daemon.request("reminder/explain", json!({"session": "s"}));
    let rows = result(&answer)["rows"].as_array().expect("rows").clone();
    let row = rows.into_iter().rev().find(|row| row["id"] == id);
    row.unwrap_or_else(|| panic!("no row {id}"))
}

#[test]
fn three_files_are_laid_over_each_other_and_hold_at_once() {
    let place = Place::new();
    let users = "[kinds]\ntask-nudge = { after = 3 }\ntoken-usage = false\n";
    write(&place.users(), &format!("{users}{}{}", reminder("a", "users"), reminder("b", "users")));
    let workspaces = "[kinds]\ntask-nudge = { cooldown = 5 }\n";
    write(&place.workspaces(), &format!("{workspaces}{}", reminder("b", "workspaces")));
    let given = json!({"reminders": [{"id": "c", "body": "the client's"}]});
    let mut daemon = place.start_with(json!({"config": given}));
    let opened = begin(&mut daemon, &place, true);
    assert_eq!(opened["untrusted"], json!([]));
    let rows = opened["roster"].as_array().expect("a roster");
    let row = |id: &str| rows.iter().find(|row| row["id"] == id).expect("it is there");
    assert_eq!(row("token-usage")["enabled"], false);
    assert_eq!(row("b")["source"], "config");
    assert_eq!(told(&mut daemon), ["users", "workspaces", "the client's"]);
    // What is said over the wire stands above all of them.
    let params = json!({"session": "s", "reminder": {"id": "b", "body": "registered"}});
    result(&daemon.request("roster/register", params));
    assert_eq!(configured(&mut daemon, "s"), ["a", "c"]);
    let removed = daemon.request("roster/remove", json!({"session": "s", "id": "a"}));
    assert_eq!(result(&removed)["removed"], true);
    assert_eq!(configured(&mut daemon, "s"), ["c"]);
}

#[test]
fn however_an_editor_saves_it_is_read_again_and_nothing_is_told_twice() {
    let place = Place::new();
    // Many people keep their files elsewhere, behind a link.
    let dotfiles = place.path("dotfiles.toml");
    let content = |id: &str| format!("{}{}", reminder("stays", "it stays"), reminder(id, id));
    write(&dotfiles, &content("first"));
    symlink(&dotfiles, place.users()).expect("it can be linked");
    let mut daemon = place.start();
    begin(&mut daemon, &place, false);
    assert_eq!(told(&mut daemon), ["it stays", "first"]);

    let ways: [(&str, Save<'_>); 6] = [
        ("written-in-place", &|content| write(&dotfiles, content)),
        ("renamed-over", &|content| {
            write(&place.path("new"), content);
            fs::rename(place.path("new"), &dotfiles).expect("it can be renamed");
        }),
        ("moved-away-first", &|content| {
            fs::rename(&dotfiles, place.path("backup")).expect("it can be renamed");
            write(&dotfiles, content);
        }),
        ("deleted-first", &|content| {
            fs::remove_file(&dotfiles).expect("it can be removed");
            write(&dotfiles, content);
        }),
        ("linked-elsewhere", &|content| {
            write(&place.path("other.toml"), content);
            fs::remove_file(place.users()).expect("it can be removed");
            symlink(place.path("other.toml"), place.users()).expect("it can be linked");
        }),
        ("not-a-link-any-more", &|content| {
            write(&place.path("new"), content);
            fs::rename(place.path("new"), place.users()).expect("it can be renamed");
        }),
    ];
    for (id, save) in ways {
        save(&content(id));
        await_configured(&mut daemon, "s", &["stays", id]);
        assert_eq!(told(&mut daemon), [id], "what stays was told");
    }
}

#[test]
fn a_file_that_is_gone_takes_its_layer_along_and_one_that_came_brings_it() {
    let place = Place::new();
    let mut daemon = place.start();
    begin(&mut daemon, &place, true);
    assert!(told(&mut daemon).is_empty());
    write(&place.workspaces(), &reminder("w", "the workspace's"));
    await_configured(&mut daemon, "s", &["w"]);
    write(&place.users(), &reminder("u", "the user's"));
    await_configured(&mut daemon, "s", &["u", "w"]);
    assert_eq!(told(&mut daemon), ["the user's", "the workspace's"]);
    fs::remove_file(place.users()).expect("it can be removed");
    await_configured(&mut daemon, "s", &["w"]);
    fs::remove_dir_all(place.path("work")).expect("it can be removed");
    await_configured(&mut daemon, "s", &[]);
    // Removing forgets.
    fs::create_dir(place.path("work")).expect("it can be made");
    write(&place.workspaces(), &reminder("w", "the workspace's"));
    await_configured(&mut daemon, "s", &["w"]);
    assert_eq!(told(&mut daemon), ["the workspace's"]);
}

#[test]
fn a_broken_file_leaves_the_last_good_one_in_force_and_is_reported_once() {
    let place = Place::new();
    write(&place.users(), &reminder("a", "one"));
    let mut daemon = place.start();
    begin(&mut daemon, &place, false);
    assert_eq!(told(&mut daemon), ["one"]);
    let broken = format!("{}\nx = unquotedsecret\n", reminder("a", "one"));
    let shown = text(&place.users());
    for good in [&["a"][..], &["a", "b"]] {
        write(&place.users(), &broken);
        let message = problem(&mut daemon);
        assert!(message.starts_with(&format!("{shown}:5:5: ")), "{message}");
        assert!(message.ends_with("(what it said before stays in force)"), "{message}");
        assert_eq!(configured(&mut daemon, "s"), good);
        // Another opening on the same connection hears of it no more.
        open(&mut daemon, json!({"session": "s"}));
        write(&place.users(), &format!("{}{}", reminder("a", "one"), reminder("b", "two")));
        await_configured(&mut daemon, "s", &["a", "b"]);
    }
    assert_eq!(told(&mut daemon), ["two"], "what was told before stays told");
    assert!(!daemon.stderr().contains("unquotedsecret"), "{}", daemon.stderr());
}

#[test]
fn a_mistake_leaves_out_its_own_part_alone() {
    let place = Place::new();
    let file = format!(
        "[kinds]\ntask-nudge = {{ afterr = 3 }}\ntoken-usage = false\n\n{}\n{}",
        reminder("bad", "{{{{ open"),
        reminder("good", "it is told")
    );
    write(&place.users(), &file.replace("{{{{", "{{"));
    let mut daemon = place.start();
    begin(&mut daemon, &place, false);
    let message = problem(&mut daemon);
    // What is left out for its mistake comes first, and has a row of its own.
    let lines: Vec<_> = message.lines().collect();
    let at = |line: u32| format!("{}:{line}:", text(&place.users()));
    assert!(lines[0].starts_with(&at(7)) && lines[1].starts_with(&at(2)), "{message}");
    assert!(lines.len() == 2 && lines[1].contains("afterr"), "{message}");
    let reason = explained(&mut daemon, "bad")["reason"].clone();
    assert!(reason.as_str().is_some_and(|it| it.starts_with("is left out: ")), "{reason}");
    assert_eq!(told(&mut daemon), ["it is told"]);
    assert_eq!(explained(&mut daemon, "token-usage")["reason"], "is switched off");
}

#[test]
fn a_restart_keeps_what_a_file_said_while_the_file_is_broken() {
    let place = Place::new();
    write(&place.users(), &format!("{}{}", reminder("a", "one"), reminder("b", "two")));
    let mut daemon = place.keep();
    begin(&mut daemon, &place, false);
    assert_eq!(told(&mut daemon), ["one", "two"]);
    result(&daemon.request("roster/remove", json!({"session": "s", "id": "b"})));
    drop(daemon);

    // As it stands it would be forgotten, and told again when it is mended.
    write(&place.users(), "[[reminders]\n");
    let mut daemon = place.keep();
    assert_eq!(open(&mut daemon, json!({"session": "s"}))["state"], "restored");
    assert!(problem(&mut daemon).contains("(nothing of it is in force in new sessions)"));
    turn(&mut daemon, "2");
    assert_eq!(configured(&mut daemon, "s"), ["a"]);
    assert!(told(&mut daemon).is_empty());
    let file = [("a", "one"), ("b", "two"), ("c", "three")];
    let file: String = file.iter().map(|(id, body)| reminder(id, body)).collect();
    write(&place.users(), &file);
    await_configured(&mut daemon, "s", &["a", "c"]);
    assert_eq!(told(&mut daemon), ["three"], "what the client removed stays away");
    drop(daemon);

    // A change that was made while no daemon was there is seen, too.
    write(&place.users(), &format!("{}{}", reminder("a", "one"), reminder("d", "four")));
    let mut daemon = place.keep();
    open(&mut daemon, json!({"session": "s"}));
    turn(&mut daemon, "3");
    assert_eq!(told(&mut daemon), ["four"]);
}

#[test]
fn what_the_client_gave_is_there_after_a_restart() {
    let place = Place::new();
    let mut daemon = Start::keeping(Framing::Lines, &place.path("state")).spawn();
    let config = json!({"reminders": [{"id": "c", "body": "given"}], "budget": {"perWait": 50}});
    daemon.initialize_with(json!({"config": config}));
    open(&mut daemon, json!({"session": "s"}));
    drop(daemon);
    let mut daemon = place.keep();
    open(&mut daemon, json!({"session": "s"}));
    turn(&mut daemon, "1");
    assert_eq!(told(&mut daemon), ["given"]);
    let state = daemon.request("session/state", json!({"session": "s"}));
    assert_eq!(result(&state)["budget"], json!({"perWait": 50}));
    assert_eq!(result(&state)["spent"]["standing-text"], json!({"entries": 1, "tokens": 2}));
}

#[test]
fn an_untrusted_workspace_switches_and_retunes_kinds_and_no_more() {
    let place = Place::new();
    let users = format!("[budget]\nperWait = 4000\n{}", reminder("mine", "the user's"));
    write(&place.users(), &users);
    let workspaces = format!(
        "[kinds]\ntoken-usage = false\ntask-nudge = {{ after = 3 }}\nmine = false\n\
         edited-files = {{ secret = [] , diffLines = 10 }}\n[budget]\nperWait = 5000\n{}{}",
        reminder("theirs", "the workspace's"),
        reminder("mine", "another text"),
    );
    write(&place.workspaces(), &workspaces);
    let mut daemon = place.start();
    let opened = begin(&mut daemon, &place, false);
    let untrusted = opened["untrusted"].as_array().expect("a list");
    for id in ["theirs", "mine", "budget"] {
        assert!(untrusted.contains(&json!(id)), "{untrusted:?}");
        let row = explained(&mut daemon, id);
        assert_eq!(row["kind"], "configuration", "{row}");
        let reason = row["reason"].as_str().expect("a reason");
        assert!(reason.starts_with("is not trusted: "), "{reason}");
        assert!(reason.contains(&text(&place.workspaces())), "{reason}");
        assert_eq!(row["next"], "when the session is opened with trusted: true");
    }
    assert_eq!(explained(&mut daemon, "token-usage")["reason"], "is switched off");
    assert_eq!(told(&mut daemon), ["the user's"]);
    let state = daemon.request("session/state", json!({"session": "s"}));
    assert_eq!(result(&state)["budget"]["perWait"], 4000);

    // Trust decides anew when the session is opened again.
    let opened = open(&mut daemon, json!({"session": "s", "trusted": true}));
    assert_eq!(opened["untrusted"], json!([]));
    let state = daemon.request("session/state", json!({"session": "s"}));
    assert_eq!(result(&state)["budget"]["perWait"], 5000);
    assert_eq!(configured(&mut daemon, "s"), ["mine", "theirs"]);
    assert_eq!(told(&mut daemon), ["the workspace's"], "theirs is on, and mine is switched off");
}

#[test]
fn a_file_outside_of_an_untrusted_root_is_not_read() {
    let place = Place::new();
    write(&place.path("elsewhere.toml"), "[kinds]\ntoken-usage = false\n");
    symlink(place.path("elsewhere.toml"), place.workspaces()).expect("it can be linked");
    let mut daemon = place.start();
    let opened = begin(&mut daemon, &place, false);
    assert_eq!(opened["untrusted"], json!(["reminderd.toml"]));
    assert_ne!(explained(&mut daemon, "token-usage")["reason"], "is switched off");
    open(&mut daemon, json!({"session": "s", "trusted": true}));
    assert_eq!(explained(&mut daemon, "token-usage")["reason"], "is switched off");
}

#[test]
fn a_root_has_many_spellings_and_the_users_own_file_is_read_once() {
    let place = Place::new();
    write(&place.users(), &reminder("a", "the user's"));
    symlink(place.path("config"), place.path("work/link")).expect("it can be linked");
    let home = text(&place.path("config/reminderd"));
    let spellings = [
        home.clone(),
        format!("{home}/../reminderd/."),
        format!("file://{home}"),
        text(&place.path("work/link/reminderd")),
    ];
    for root in spellings {
        let mut daemon = place.start();
        let params = json!({"session": "s", "root": root, "trusted": false});
        let opened = open(&mut daemon, params);
        assert_eq!(opened["untrusted"], json!([]), "{root}");
        turn(&mut daemon, "1");
        assert_eq!(told(&mut daemon), ["the user's"], "{root}");
    }
    // A workspace behind a link is the workspace.
    write(&place.workspaces(), &reminder("w", "the workspace's"));
    symlink(place.path("work"), place.path("linked")).expect("it can be linked");
    let mut daemon = place.start();
    let root = text(&place.path("linked"));
    let opened = open(&mut daemon, json!({"session": "s", "root": root, "trusted": false}));
    assert_eq!(opened["untrusted"], json!(["w"]));
}

#[test]
fn nothing_that_lies_in_its_place_holds_anything_up() {
    let place = Place::new();
    let made = Command::new("mkfifo").arg(place.users()).status().expect("mkfifo runs");
    assert!(made.success());
    fs::create_dir(place.workspaces()).expect("it can be made");
    let mut daemon = place.start();
    begin(&mut daemon, &place, true);
    let message = problem(&mut daemon);
    for path in [place.users(), place.workspaces()] {
        assert!(message.contains(&format!("{}: ", text(&path))), "{message}");
    }
    assert!(message.contains("no regular file") && message.contains("a directory"), "{message}");
    assert!(told(&mut daemon).is_empty());
    // What comes in its place is read.
    fs::remove_file(place.users()).expect("it can be removed");
    write(&place.users(), &reminder("a", "one"));
    await_configured(&mut daemon, "s", &["a"]);
    let endless = format!("{}# {}\n", reminder("b", "two"), "x".repeat(1 << 20));
    write(&place.users(), &endless);
    let message = problem(&mut daemon);
    assert!(message.contains("longer than 1048576 bytes"), "{message}");
    assert_eq!(configured(&mut daemon, "s"), ["a"]);
}

#[test]
fn sessions_of_two_roots_have_two_workspaces() {
    let place = Place::new();
    write(&place.users(), &reminder("u", "the user's"));
    let mut daemon = place.start_with(json!({"trusted": true}));
    for session in ["one", "two"] {
        let root = place.path(session);
        fs::create_dir(&root).expect("it can be made");
        write(&root.join("reminderd.toml"), &reminder(session, session));
        open(&mut daemon, json!({"session": session, "root": text(&root)}));
    }
    assert_eq!(configured(&mut daemon, "one"), ["u", "one"]);
    assert_eq!(configured(&mut daemon, "two"), ["u", "two"]);
    write(&place.path("two/reminderd.toml"), &reminder("three", "three"));
    await_configured(&mut daemon, "two", &["u", "three"]);
    assert_eq!(configured(&mut daemon, "one"), ["u", "one"]);
    write(&place.users(), &reminder("v", "the user's"));
    await_configured(&mut daemon, "one", &["v", "one"]);
    await_configured(&mut daemon, "two", &["v", "three"]);
    // A fork into a worktree has that one's file.
    let worktree = json!({"directory": text(&place.path("two")), "branch": "b", "base": "c"});
    let params = json!({"session": "one", "into": "fork", "worktree": worktree});
    result(&daemon.request("session/fork", params));
    assert_eq!(configured(&mut daemon, "fork"), ["v", "three"]);
}

#[test]
fn all_clients_of_a_shared_daemon_see_and_hear_it() {
    let place = Place::new();
    write(&place.users(), &reminder("a", "one"));
    let connect = || {
        let mut client = Start::connecting(Framing::Lines, place.0.path(), &[]).spawn();
        client.initialize();
        client
    };
    let (mut first, mut second) = (connect(), connect());
    open(&mut first, json!({"session": "s"}));
    open(&mut second, json!({"session": "t"}));
    write(&place.users(), "id = \n");
    for client in [&mut first, &mut second] {
        assert!(problem(client).contains("reminderd.toml:1:"));
    }
    // Who comes later hears of it as well, and has what was there before.
    let mut third = connect();
    open(&mut third, json!({"session": "t"}));
    assert!(problem(&mut third).contains("reminderd.toml:1:"));
    assert_eq!(configured(&mut third, "t"), ["a"]);
    write(&place.users(), &reminder("b", "two"));
    await_configured(&mut first, "s", &["b"]);
    await_configured(&mut second, "t", &["b"]);
}

#[test]
fn a_daemon_may_be_told_to_read_none() {
    let place = Place::new();
    write(&place.users(), &reminder("a", "one"));
    write(&place.workspaces(), &reminder("b", "two"));
    let config = text(&place.path("config"));
    let start = Start::new(Framing::Lines).env("XDG_CONFIG_HOME", &config);
    let mut daemon = start.argument("--no-config").spawn();
    let given = json!({"reminders": [{"id": "c", "body": "given"}]});
    daemon.initialize_with(json!({"config": given}));
    begin(&mut daemon, &place, true);
    assert_eq!(told(&mut daemon), ["given"]);
}

#[test]
fn the_users_file_sets_the_longest_message() {
    let place = Place::new();
    write(&place.users(), "[limits]\nmessageBytes = 65536\n");
    let config = text(&place.path("config"));
    let mut daemon = Start::new(Framing::Lines).env("XDG_CONFIG_HOME", &config).spawn();
    let said = daemon.initialize();
    let limits = &said["capabilities"]["experimental"]["reminderd"]["limits"];
    assert_eq!(limits["messageBytes"], 65536);
    let padding = "x".repeat(65536);
    daemon.notify("session/open", json!({"session": "s", "padding": padding}));
    assert_eq!(daemon.expect_refusal(), -33009);
}
