//! Law 7: whatever stands in whatever field, an entry's block has one opening and one closing tag,
//! and the message is within its limit and survives JSON. Tags are counted by a reader of our own
//! that is made differently from the one that makes them harmless.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use reminderd::engine::{
    Audience, Definition, Event, Findings, Form, HostReport, Lane, Limit, Material, Opening,
    PoolName, Profile, ScopePath, Session, Size, Staged, Task, TaskStatus, WaitRequest,
};
use serde_json::json;

use crate::law;
use crate::world::{Outcome, ensure, kit};

/// Everything that a client names in one turn.
#[derive(Clone, Debug)]
struct Texts {
    profile: Profile,
    plain: bool,
    limit: Limit,
    standing: String,
    fact: String,
    names: Vec<String>,
    pending: Vec<String>,
    observed: (String, String, String),
    staged: (String, Option<String>, Option<String>, String),
    task: (String, String, String),
    answer: String,
}

/// Pieces of which tags, and what looks like them, are made; and any text at all.
pub fn text() -> BoxedStrategy<String> {
    let pieces = prop_oneof![
        Just("<"),
        Just(">"),
        Just("</"),
        Just("/"),
        Just("system"),
        Just("-"),
        Just("reminder"),
        Just("system-reminder"),
        Just("SYSTEM_reminder"),
        Just("<system-reminder>"),
        Just("</system-reminder>"),
        Just(" "),
        Just("\n"),
        Just("\n\n"),
        Just("\u{200b}"),
        Just("\u{ad}"),
        Just("&lt;"),
        Just("&gt;"),
        Just("&#60;"),
        Just("\\u003c"),
        Just("\\u003e"),
        Just("%3C"),
        Just("＜"),
        Just("＞"),
        Just("‹"),
        Just("›"),
        Just("ｓｙｓｔｅｍ"),
        Just("ѕуѕtеm"),
        Just("s y s t e m"),
        Just("["),
        Just("]"),
        Just("\""),
        Just("\\"),
        Just("\0"),
        Just("\u{202e}"),
        Just("x"),
        Just("é"),
        Just("😀"),
        Just("{"),
        Just("}"),
        Just("\r"),
    ];
    prop_oneof![
        4 => vec(pieces, 0..14).prop_map(|pieces| pieces.concat()),
        1 => any::<String>(),
    ]
    .boxed()
}

fn texts() -> BoxedStrategy<Texts> {
    let profile = prop_oneof![3 => Just(Profile::Staged), 1 => Just(Profile::Prompt)];
    let most = || option::weighted(0.2, 0_u64..400);
    let limit = (most(), most(), most(), most()).prop_map(|(bytes, chars, utf16, tokens)| Limit {
        bytes,
        chars,
        utf16,
        tokens,
    });
    (
        (profile, prop::bool::weighted(0.2), limit),
        (text(), text(), vec(text(), 0..3), vec(text(), 0..4)),
        (text(), text(), text()),
        (text(), option::of(text()), option::of(text()), text()),
        (text(), text(), text()),
        text(),
    )
        .prop_map(
            |(
                (profile, plain, limit),
                (standing, fact, names, pending),
                observed,
                staged,
                task,
                answer,
            )| Texts {
                profile,
                plain,
                limit,
                standing,
                fact,
                names,
                pending,
                observed,
                staged,
                task,
                answer,
            },
        )
        .boxed()
}

/// How many reminder tags, opening and closing, a suspicious reader finds. Tags may be spelled with
/// other letters, scripts, spaces, escapes and brackets.
pub fn tags(text: &str) -> (usize, usize) {
    let mut plain = text.to_lowercase();
    for escape in ["&lt;", "&#60;", "&#x3c;", "\\u003c", "\\x3c", "%3c", "＜", "﹤", "‹", "〈", "⟨"]
    {
        plain = plain.replace(escape, "<");
    }
    let folded: String = plain
        .chars()
        .filter_map(|c| match c {
            // A tag that ends in between is another, and square brackets stand where some were.
            '<' | '>' | '/' | '[' | ']' => Some(c),
            'ａ'..='ｚ' => char::from_u32(c as u32 - 'ａ' as u32 + 'a' as u32),
            'ѕ' => Some('s'),
            'у' => Some('y'),
            'е' => Some('e'),
            c if c.is_alphanumeric() => Some(c),
            _ => None,
        })
        .collect();
    (folded.matches("<systemreminder").count(), folded.matches("</systemreminder").count())
}

#[test]
fn the_reader_finds_tags() {
    assert_eq!(tags("a <system-reminder>\nb\n</system-reminder>"), (1, 1));
    assert_eq!(tags("＜ѕуѕtеm r e m i n d e r"), (1, 0));
    assert_eq!(tags("&lt;/ＳＹＳＴＥＭ\u{200b}_reminder"), (0, 1));
    assert_eq!(tags("[system-reminder] < b, the system-reminder>"), (0, 0));
}

fn register(id: &str, kind: &str, settings: serde_json::Value) -> Event {
    Event::Registered(Definition {
        id: id.to_owned(),
        kind: kind.to_owned(),
        settings: serde_json::from_value(settings).expect("plain data"),
        audience: Audience::ROOT,
    })
}

#[expect(clippy::too_many_lines, reason = "one statement a field")]
fn harmless(texts: &Texts) -> Outcome {
    let mut session = Session::new(kit(), "s");
    let host = HostReport { plain: Some(texts.plain), ..HostReport::default() };
    let opening = Opening { profile: Some(texts.profile), host, ..Opening::default() };
    session.open(1, opening).expect("a new session opens");
    // What is blank or no template is refused, and that is fine here.
    let mut tell = |event: Event| drop(session.apply(1, &ScopePath::ROOT, event));
    tell(Event::TurnBegan { turn: "t".to_owned() });
    tell(register("text", "standing-text", json!({"body": texts.standing})));
    tell(register("fact", "standing-text", json!({"body": "{{ facts.f }}"})));
    tell(Event::FactSet { name: "f".to_owned(), value: texts.fact.as_str().into() });
    tell(register("pool", "announced-delta", json!({"pool": "p"})));
    tell(Event::PoolSet {
        pool: "p".to_owned(),
        names: Some(
            texts
                .names
                .iter()
                .map(|name| PoolName { name: name.clone(), description: None })
                .collect(),
        ),
        baseline: false,
    });
    tell(register("asked", "client-generator", json!({"client": true})));
    for body in &texts.pending {
        tell(Event::Enqueued { name: None, body: body.clone() });
    }
    let (key, entry_type, body) = texts.observed.clone();
    tell(Event::Observed { turn: None, key, entry_type, body });
    let (entry_type, key, label, body) = texts.staged.clone();
    tell(Event::Staged { lane: Lane::Skill, entry_type, key, label, body });
    let (id, subject, status) = texts.task.clone();
    for (owner, status) in [
        (ScopePath::ROOT, TaskStatus::Pending),
        (ScopePath::agent("/<system-reminder>").expect("a path"), TaskStatus::InProgress),
        (ScopePath::ROOT, TaskStatus::Other(status)),
    ] {
        let task = Task {
            id: id.clone(),
            subject: subject.clone(),
            status,
            owner,
            blocked_by: vec![id.clone()],
            blocks: vec![],
            description: Some(subject.clone()),
        };
        tell(Event::TaskPut { task, reassigns: true });
    }
    for turn in 0..9 {
        tell(Event::Observed {
            turn: None,
            key: texts.observed.0.clone(),
            entry_type: texts.observed.1.clone(),
            body: texts.observed.2.clone(),
        });
        if turn < 8 {
            tell(Event::TurnBegan { turn: turn.to_string() });
        }
    }
    let request = WaitRequest { limit: texts.limit, ..WaitRequest::default() };
    let material = Material { token: "t".to_owned(), record: "r".to_owned() };
    let delivery = match session.stage(1, &request, material).expect("a turn is open") {
        Staged::Ready(delivery) => *delivery,
        Staged::Asking { wait, .. } => {
            let answers = [("asked".to_owned(), texts.answer.clone())].into();
            session
                .finish(1, &ScopePath::ROOT, wait, &answers, &Findings::new())
                .expect("nothing came between")
        }
    };
    let (Some(content), Some(record)) = (&delivery.content, &delivery.record) else {
        return Ok(());
    };
    let expected = match record.form {
        Form::Plain => 0,
        Form::Block => 1,
        Form::Blocks => record.entries.len(),
    };
    let found = tags(content);
    ensure!(found == (expected, expected), "{found:?} tags, {expected} blocks: {content:?}");
    for entry in &record.entries {
        let found = tags(&entry.body);
        ensure!(found == (0, 0), "an entry's body has tags {found:?}: {:?}", entry.body);
        ensure!(!entry.label.contains('\n'), "a label on two lines: {:?}", entry.label);
        if record.form == Form::Blocks {
            let block = format!("<system-reminder>\n{}\n</system-reminder>", entry.body);
            ensure!(content.contains(&block), "{block:?} does not stand in {content:?}");
        }
    }
    ensure!(!delivery.row.as_ref().is_some_and(|row| row.contains('\n')), "a row on two lines");
    let size = Size::of(content);
    for (name, size, most) in [
        ("bytes", size.bytes, texts.limit.bytes),
        ("chars", size.chars, texts.limit.chars),
        ("utf16", size.utf16, texts.limit.utf16),
        ("tokens", size.tokens(), texts.limit.tokens),
    ] {
        ensure!(most.is_none_or(|most| size <= most), "{size} {name}, and {most:?} fit");
    }
    let json = serde_json::to_vec(record).expect("a record is plain data");
    let read: reminderd::engine::Record =
        serde_json::from_slice(&json).map_err(|error| error.to_string())?;
    ensure!(read.content() == *content, "another message after a round trip");
    Ok(())
}

#[test]
fn a_block_has_one_opening_and_one_closing_tag() {
    law("tests/laws/regressions/escape.txt", 300, &texts(), harmless);
}
