//! Whatever the bytes are, they are read: nothing panics or hangs, and every mistake is somewhere.

use std::fmt::Write as _;
use std::sync::Arc;

use proptest::prelude::*;
use reminderd::configuration::{Document, Layer, Layers, Origin};
use serde_json::{Value as Json, json};

/// A file that uses every form.
const GOOD: &str = include_str!("good.toml");

fn read(bytes: &[u8]) -> Document {
    let document = Document::of_bytes(bytes, Origin::new(Layer::User, "f"));
    let length = document.source.len();
    for mistake in &document.mistakes {
        let range = mistake.at.range.clone();
        assert!(range.start <= range.end && range.end <= length, "{mistake:?}");
        assert!(document.source.is_char_boundary(range.start), "{mistake:?}");
        assert!(document.source.is_char_boundary(range.end), "{mistake:?}");
        assert!(!mistake.message.is_empty(), "{mistake:?}");
        let rendered = mistake.rendered(&document.origin, &document.source);
        assert!(rendered.len() < 20_000, "{rendered}");
        let headline = mistake.headline(&document.origin);
        assert!(!headline.contains(char::is_control), "{headline:?}");
    }
    let one = Arc::new(document.clone());
    let layers = Layers { user: Some(one.clone()), workspace: Some(one), session: None };
    layers.mistakes();
    layers.effective(false);
    layers.effective(true);
    document
}

fn json() -> impl Strategy<Value = Json> {
    let words = "(kinds|reminders|budget|id|body|policy|every|turns|after|task-nudge|tool|.{0,4})";
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        any::<u64>().prop_map(Json::from),
        any::<f64>().prop_map(|it| json!(it)),
        ".{0,12}".prop_map(Json::from),
    ];
    leaf.prop_recursive(6, 64, 8, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Json::from),
            prop::collection::btree_map(words, inner, 0..8)
                .prop_map(|it| Json::Object(it.into_iter().collect())),
        ]
    })
}

#[test]
fn the_good_file_is_good() {
    assert_eq!(read(GOOD.as_bytes()).mistakes, []);
}

proptest! {
    #[test]
    fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..2_000)) {
        read(&bytes);
    }

    #[test]
    fn any_text_of_the_languages_signs_is_read(
        pieces in prop::collection::vec(
            prop::sample::select(vec![
                "[", "]", "{", "}", "=", ",", ".", "\n", "\"", "'", "\"\"\"", "'''", "#", "\\", " ",
                "kinds", "reminders", "id", "body", "policy", "task-nudge", "after", "1", "-", "é",
                "{{", "}}", "{%", "true", "0x", "1979-05-27", "\r", "\0", "inf", "_",
            ]),
            0..120,
        ),
    ) {
        read(pieces.concat().as_bytes());
    }

    /// Whatever is changed in a good file, it is read, and what is wrong with it has its place.
    #[test]
    fn a_good_file_that_was_changed_is_read(
        at in any::<prop::sample::Index>(), cut in 0_usize..6,
        put in prop_oneof![Just(String::new()), "[\\x00-\\x7f]{1,3}", ".{1,3}"],
    ) {
        let characters: Vec<char> = GOOD.chars().collect();
        let at = at.index(characters.len());
        let mut changed: String = characters[..at].iter().collect();
        changed.push_str(&put);
        changed.extend(&characters[(at + cut).min(characters.len())..]);
        read(changed.as_bytes());
    }

    #[test]
    fn whatever_a_client_gives_is_read(given in json()) {
        let document = Document::of_json(&given, Origin::client());
        for mistake in &document.mistakes {
            prop_assert!(!mistake.headline(&document.origin).contains(char::is_control));
        }
        let session = Some(Arc::new(document));
        Layers { session, ..Layers::default() }.effective(false);
    }
}

/// What nests deeply, or repeats without end, takes neither the stack nor the day.
#[test]
fn large_and_deep_files_are_read() {
    let (mut lines, mut members) = (String::new(), String::new());
    for id in 0..70_000 {
        let _ = writeln!(lines, "k{id}=3");
        let _ = write!(members, "k{id}=3,");
    }
    for text in [
        "[".repeat(500_000),
        format!("a = {}", "[".repeat(500_000)),
        format!("a = {}", "{a=".repeat(200_000)),
        format!("[{}a]", "a.".repeat(250_000)),
        format!("{}a = 1", "a.".repeat(250_000)),
        format!("[kinds]\n{lines}"),
        "[[reminders]]\n".repeat(60_000),
        format!("kinds = {{ {members} }}"),
        format!("[[reminders]]\nid='a'\nbody='{}'", "{{".repeat(400_000)),
        "=\n".repeat(400_000),
    ] {
        assert!(!read(text.as_bytes()).mistakes.is_empty(), "{text:.40}");
    }
}
