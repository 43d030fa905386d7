//! Every mistake as it is told. `REMINDERD_BLESS=1` writes `tests/snapshots/mistakes.txt` anew.

use std::fmt::Write as _;

use reminderd::configuration::{Document, FILE_BYTES_MAX, Layer, Layers, Origin};
use serde_json::json;

/// A name for each, and the file.
const FILES: &[(&str, &str)] = &[
    ("a key without a value", "[kinds]\ntask-nudge = \n"),
    ("two mistakes of syntax", "[kinds\na = 1\nb = = 2\n"),
    ("a key twice", "[kinds]\nsections = false\nsections = true\n"),
    ("a table twice", "[budget]\nperWait = 1\n[budget]\nperSession = 1\n"),
    ("a text without its end", "[[reminders]]\nid = \"a\nbody = \"b\"\n"),
    ("a NUL", "[kinds]\nsections = \"\0\"\n"),
    ("a number that no key holds", "[budget]\nperWait = 99999999999999999999\n"),
    ("an unknown table", "[kind]\nsections = false\n"),
    ("an unknown table that is like no other", "[zzzzzzzz]\n"),
    ("an unknown key of a kind", "[kinds]\ntask-nudge = { aftr = 3 }\n"),
    ("an unknown key that is like no other", "[kinds.sections]\nquite-another = 3\n"),
    ("an unknown kind", "[kinds]\ntokn-usage = false\n"),
    ("an unknown kind that is like no other", "[kinds]\nzzzzzzzz = false\n"),
    ("an unknown key of a reminder", "[[reminders]]\nid = \"a\"\nbody = \"b\"\nwhem = \"true\"\n"),
    ("an unknown key of the budget", "[budget]\nperwait = 3\n"),
    (
        "an unknown unit",
        "[[reminders]]\nid = \"a\"\nbody = \"b\"\npolicy = { every = { minutes = 3 } }\n",
    ),
    ("a kind that is a number", "[kinds]\nsections = 3\n"),
    ("a word for a number", "[kinds]\ntask-nudge = { after = \"eight\" }\n"),
    ("a part of a number", "[kinds]\ntask-nudge = { after = 1.5 }\n"),
    ("a date for a number", "[kinds]\ntask-nudge = { after = 2026-01-01 }\n"),
    ("a number out of range", "[kinds]\ntoken-usage = { percent = 101 }\n"),
    ("a number below the least", "[kinds]\ntask-nudge = { cooldown = 0 }\n"),
    ("a word that is none of the words", "[kinds]\ntask-nudge = { unit = \"request\" }\n"),
    ("a member of a list", "[kinds]\ngoal-budget = { thresholds = [50, 200] }\n"),
    ("a text for a list", "[kinds]\nedited-files = { secret = \"*.pem\" }\n"),
    ("a bad glob", "[kinds]\nedited-files = { secret = [\"*.pem\", \"a{b\"] }\n"),
    ("a name with a folder", "[kinds]\nworkspace-instructions = { names = [\"a/b.md\"] }\n"),
    ("a policy of a kind", "[kinds]\nsections = { policy = { every = { turns = 0 } } }\n"),
    ("a policy that is no word", "[kinds]\nsections = { policy = \"sometimes\" }\n"),
    (
        "two triggers",
        "[[reminders]]\nid = \"a\"\nbody = \"b\"\npolicy = { once = true, always = true }\n",
    ),
    ("no trigger", "[[reminders]]\nid = \"a\"\nbody = \"b\"\npolicy = { maxPerTurn = 1 }\n"),
    (
        "a trigger that is off",
        "[[reminders]]\nid = \"a\"\nbody = \"b\"\npolicy = { once = false }\n",
    ),
    ("a cap of none", "[[reminders]]\nid = \"a\"\nbody = \"b\"\nmaxPerSession = 0\n"),
    (
        "a spacing of a pool",
        "[[reminders]]\nid = \"a\"\npool = \"p\"\npolicy = { every = { turns = 3 } }\n",
    ),
    (
        "an id twice",
        "[[reminders]]\nid = \"a\"\nbody = \"b\"\n\n[[reminders]]\nid = \"a\"\nbody = \"c\"\n",
    ),
    ("the id of a kind", "[[reminders]]\nid = \"sections\"\nbody = \"b\"\n"),
    ("no id", "[[reminders]]\nbody = \"b\"\n"),
    ("an empty id", "[[reminders]]\nid = \"\"\nbody = \"b\"\n"),
    ("nothing to say", "[[reminders]]\nid = \"a\"\n"),
    ("two things to say", "[[reminders]]\nid = \"a\"\nbody = \"b\"\npool = \"p\"\n"),
    ("a member of another form", "[[reminders]]\nid = \"a\"\npool = \"p\"\nwhen = \"true\"\n"),
    (
        "a scope that is not there",
        "[[reminders]]\nid = \"a\"\nbody = \"b\"\nscopes = [\"root\", \"agent\"]\n",
    ),
    ("a lane that is not there", "[[reminders]]\nid = \"a\"\nbody = \"b\"\nlane = \"rooster\"\n"),
    ("a template", "[[reminders]]\nid = \"a\"\nbody = \"é {{ facts.x | }}\"\n"),
    (
        "a template of many lines",
        "[[reminders]]\nid = \"a\"\nbody = \"\"\"\nFirst.\n{% if x %}\n  {{ y }\n\"\"\"\n",
    ),
    ("a filter that is not there", "[[reminders]]\nid = \"a\"\nbody = \"{{ turn|uper }}\"\n"),
    (
        "a test that is not there",
        "[[reminders]]\nid = \"a\"\nbody = \"b\"\nwhen = \"turn is odds\"\n",
    ),
    (
        "a list of names that is given a name",
        "[[reminders]]\nid = \"a\"\nbody = \"{% set a = [turn, turn] %}{{ a }}\"\n",
    ),
    (
        "a loop that calls itself",
        "[[reminders]]\nid = \"a\"\nbody = \"{% for t in tasks recursive %}{% endfor %}\"\n",
    ),
    (
        "a value that map puts in",
        "[[reminders]]\nid = \"a\"\nbody = \"{{ paths|map('default', turn)|join }}\"\n",
    ),
    ("a body that is misspelt", "[[reminders]]\nid = \"a\"\nboddy = \"b\"\n"),
    ("a misspelt kind with keys", "[kinds]\ntask-nudg = { after = 3 }\n"),
    ("a template with escapes", "[[reminders]]\nid = \"a\"\nbody = \"First.\\n{{ y }\"\n"),
    ("a template of a pool", "[[reminders]]\nid = \"a\"\npool = \"p\"\nadded = \"{{ names\"\n"),
    ("an expression", "[[reminders]]\nid = \"a\"\nbody = \"b\"\nwhen = \"openTasks >\"\n"),
    (
        "an expression of many lines",
        "[[reminders]]\nid = \"a\"\nbody = \"b\"\nwhen = \"\"\"\nplan.active\n  and ) \"\"\"\n",
    ),
    ("a glob of a rule", "[[reminders]]\nid = \"a\"\nbody = \"b\"\nglobs = [\"*.rs\", \"a{b\"]\n"),
    (
        "a pattern of a rule",
        "[[reminders]]\nid = \"a\"\nbody = \"b\"\ntool = { name = \"Bash\", input = \"cargo (\" }\n",
    ),
    (
        "a word that a pattern has not",
        "[[reminders]]\nid = \"a\"\nbody = \"b\"\ntool = { nmae = \"Bash\" }\n",
    ),
    ("reminders that are no list", "[reminders]\nid = \"a\"\nbody = \"b\"\n"),
    ("a reminder that is no table", "reminders = [\"a\"]\n"),
    ("a table that is none", "budget = 4000\n"),
    ("a limit that is too low", "[limits]\nmessageBytes = 1\n"),
    (
        "several, in order",
        "[budget]\nperWait = 0\n[kinds]\nzzzzzzzz = 3\ntask-nudge = { aftr = 3, after = 0, unit = \"x\" }\n\
         [[reminders]]\nid = \"a\"\nbody = 3\nlane = \"x\"\n",
    ),
];

fn document(text: &str) -> Document {
    Document::read(text, Origin::new(Layer::User, "reminderd.toml"))
}

/// All that is told of a document, also what shows only when the layers are seen together.
fn told(document: Document) -> String {
    let document = std::sync::Arc::new(document);
    let layers = Layers { user: Some(document.clone()), ..Layers::default() };
    let mut mistakes = document.mistakes.clone();
    mistakes.extend(layers.mistakes().into_iter().map(|(_, mistake)| mistake));
    let rendered: Vec<_> =
        mistakes.iter().map(|it| it.rendered(&document.origin, &document.source)).collect();
    rendered.join("\n\n")
}

#[test]
fn mistakes_are_told_as_they_were() {
    let mut text = String::new();
    let mut section = |name: &str, document: Document| {
        let told = told(document);
        assert!(!told.is_empty(), "{name}: nothing is wrong");
        let _ = writeln!(text, "=== {name}\n{told}\n");
    };
    for (name, file) in FILES {
        section(name, document(file));
    }
    let user = || Origin::new(Layer::User, "reminderd.toml");
    section(
        "bytes that are not UTF-8",
        Document::of_bytes(b"[kinds]\nsections = \"\xff\"\n", user()),
    );
    section("a long file", document(&" ".repeat(FILE_BYTES_MAX + 1)));
    section("a deep file", document(&format!("a = {}{}", "[".repeat(300), "]".repeat(300))));
    section(
        "a long line",
        document(&format!("[kinds]\n#{}\n{}zzzzzzzz = 1", "x".repeat(300), " ".repeat(300))),
    );
    let mut reminders = String::new();
    for id in 0..1001 {
        let _ = writeln!(reminders, "[[reminders]]\nid = \"{id}\"\nbody = \"b\"");
    }
    section("too many reminders", document(&reminders));
    let mut many = "[kinds]\n".to_owned();
    for id in 0..103 {
        let _ = writeln!(many, "k{id} = 3");
    }
    let last = document(&many).mistakes.pop().expect("a last one");
    let _ = writeln!(text, "=== too many mistakes\n{}\n", last.headline(&user()));
    let mut section = |name: &str, document: Document| {
        let _ = writeln!(text, "=== {name}\n{}\n", told(document));
    };
    let workspace = Origin::new(Layer::Workspace, "/w/reminderd.toml");
    section(
        "what is for the whole daemon, in a workspace",
        Document::read("[limits]\nmessageBytes = 1\n[store]\nkeepDays = 1\n", workspace),
    );
    for (name, json) in [
        (
            "a client's keys",
            json!({"kinds": {"task-nudge": {"aftr": 3, "after": 0}}, "limits": {}}),
        ),
        (
            "a client's reminders",
            json!({"reminders": [{"id": "a", "body": "{{"}, {"id": "b", "body": 3}]}),
        ),
        ("a client's configuration that is none", json!(["kinds"])),
    ] {
        section(name, Document::of_json(&json, Origin::client()));
    }
    crate::hold("tests/snapshots/mistakes.txt", &text);
}

/// What is good stands beside what is not.
#[test]
fn good_parts_stand() {
    let document = document(
        "[kinds]\nsections = false\ntask-nudge = { after = 0 }\nmention = { listingNames = 3, x = 1 }\n\
         [budget]\nperWait = 0\nperSession = 9\n\
         [[reminders]]\nid = \"bad\"\nbody = \"{{\"\n\
         [[reminders]]\nid = \"good\"\nbody = \"b\"\nx = 1\n\
         [[reminders]]\nid = \"good\"\nbody = \"c\"\n",
    );
    assert!(!document.broken);
    let kinds: Vec<_> = document.kinds.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(kinds, ["sections", "mention"]);
    assert_eq!(document.budget.per_session.as_ref().map(|it| it.value), Some(9));
    assert_eq!(document.ids().collect::<Vec<_>>(), ["good"]);
    assert_eq!(document.reminders[0].at.line, 12);
    let lines: Vec<_> = document.mistakes.iter().map(|it| it.at.line).collect();
    assert_eq!(lines, [3, 4, 6, 10, 14, 16]);
}

/// A byte order mark and the other line end are as good as none.
#[test]
fn spellings_of_text_do_not_matter() {
    let plain = "[kinds]\nsections = false\n";
    for text in [format!("\u{feff}{plain}"), plain.replace('\n', "\r\n")] {
        let document = document(&text);
        assert_eq!(document.mistakes, []);
        assert_eq!(document.kinds.len(), 1);
    }
}
