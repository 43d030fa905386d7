//! `reminderd report`: what it writes, and what it refuses. `tests/page` opens its pages in a browser.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use crate::people::{command, json_of, play, refused};
use crate::shared::Home;

const FIRST_SESSION: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/tests/scenarios/first-session.jsonl");

/// The data in the page that these arguments make.
pub fn data(home: &Home, arguments: &[&str]) -> Value {
    let output =
        command(home, &[&["report"], arguments, &["-o", "-"]].concat()).output().expect("it runs");
    assert!(output.status.success(), "{output:?}");
    let page = String::from_utf8(output.stdout).expect("UTF-8");
    let (_, rest) = page.split_once("id=\"data\">").expect("the data");
    let (data, _) = rest.split_once("</script>").expect("their end");
    serde_json::from_str(data).expect("JSON")
}

fn list<'a>(value: &'a Value, member: &str) -> &'a [Value] {
    value[member].as_array().expect("a list")
}

/// What was told, as the page has it: (turn, type, body) in order.
fn told(data: &Value) -> Vec<(String, String, String)> {
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let of_wait = |wait: &Value| {
        let entries = list(wait, "entries").to_vec();
        let turn = wait["turn"].clone();
        entries.into_iter().map(move |it| (text(&turn), text(&it["type"]), text(&it["body"])))
    };
    list(data, "waits")
        .iter()
        .filter(|wait| wait["outcome"] == "committed")
        .flat_map(of_wait)
        .collect()
}

#[test]
fn a_stored_session_and_its_recording_tell_the_same() {
    let home = Home::new();
    play(&home, &["first-session.jsonl"]);
    let stored = data(&home, &[]);
    assert_eq!(stored["source"], "store");
    assert_eq!(stored["session"], "demo");
    let log: Vec<_> = json_of(&home, &["log", "--bodies"])
        .iter()
        .map(|row| {
            let text = |member: &str| row[member].as_str().expect("text").to_owned();
            (text("turn"), text("type"), text("body"))
        })
        .collect();
    assert_eq!(told(&stored), log);
    assert!(list(&stored, "waits").iter().all(|wait| wait["rows"].is_null()));

    let played = data(&home, &[FIRST_SESSION]);
    assert_eq!(played["source"], "recording");
    assert_eq!(told(&played), log);
    // What was released was offered, and is known from the recording only.
    let outcomes =
        |outcome| list(&played, "waits").iter().filter(|it| it["outcome"] == outcome).count();
    assert_eq!(outcomes("committed"), list(&stored, "waits").len());
    assert_eq!(outcomes("released"), 1);
}

/// What is explained before a WAIT is what the WAIT does.
#[test]
fn each_wait_of_a_recording_comes_with_its_reasons() {
    let home = Home::new();
    let nudged = FIRST_SESSION.replace("first-session", "task-nudge/after-eight-requests");
    for script in [FIRST_SESSION, &nudged] {
        let played = data(&home, &[script]);
        let explanations = list(&played, "explanations");
        for wait in list(&played, "waits") {
            let rows = list(wait, "rows").iter().map(|row| {
                let place = usize::try_from(row.as_u64().expect("a place")).expect("it fits");
                &explanations[place]
            });
            let rows: Vec<_> = rows.collect();
            assert!(!rows.is_empty(), "{wait}");
            assert!(rows.iter().all(|row| !row["reason"].as_str().expect("text").is_empty()));
            let speaks = rows.iter().any(|row| row["speaks"] == true);
            assert_eq!(speaks, !list(wait, "entries").is_empty(), "{wait}");
        }
    }
}

#[test]
fn the_page_is_written_whole_and_for_nobody_else() {
    let home = Home::new();
    let page = home.path().join("page.html");
    let name = page.to_str().expect("text");
    fs::write(&page, "an older page").expect("it is written");
    let output = command(&home, &["report", FIRST_SESSION, "-o", name]).output().expect("it runs");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), format!("{name}: 14 WAITs, 6 reminders\n"));
    assert!(fs::read_to_string(&page).expect("a page").starts_with("<!doctype html>"));
    let mode = fs::metadata(&page).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn what_cannot_be_shown_is_said() {
    let home = Home::new();
    let said = refused(&home, &["report", "-o", "page.html"]);
    assert!(said.contains("there is no store"), "{said}");
    let said = refused(&home, &["report", "missing.jsonl", "-o", "page.html"]);
    assert!(said.contains("missing.jsonl: cannot be read"), "{said}");
    fs::write(home.path().join("bad.jsonl"), "{\"opne\": {}}\n").expect("it is written");
    let said = refused(&home, &["report", "bad.jsonl", "-o", "page.html"]);
    assert!(said.contains("bad.jsonl:1"), "{said}");
    let said = refused(&home, &["report", FIRST_SESSION, "-o", "nowhere/page.html"]);
    assert!(said.contains("nowhere/page.html cannot be written"), "{said}");
    let said = refused(&home, &["report", FIRST_SESSION, "-o", "run"]);
    assert!(said.contains("run is no file"), "{said}");
    assert!(!home.path().join("page.html").exists());
    play(&home, &["first-session.jsonl"]);
    let said = refused(&home, &["report", "dmo", "-o", "page.html"]);
    assert!(said.contains("there is no session \"dmo\""), "{said}");
}
