//! The page: one file of HTML that draws itself from data within it, and can reach nothing else.
//!
//! What a session holds is written by models, files and people, so nothing of it is ever read as
//! HTML: the data are JSON in which no character can end the element they stand in, and the page's
//! script makes text nodes of them. A policy in the page forbids everything but the page's own style
//! and script, which it knows by a nonce that no text of the session can know.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::cli::paint;
use crate::engine::{Entry, Millis, estimate_tokens};

const HTML: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// What a page shows.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The build that made it.
    pub version: &'static str,
    /// When it was made.
    pub made: Millis,
    /// The session.
    pub session: String,
    /// Its root directory.
    pub root: Option<String>,
    /// Where it is known from.
    pub source: Source,
    /// All WAITs that are known, oldest first.
    pub waits: Vec<Wait>,
    /// What [`Wait::rows`] name by their place: most of it is the same from WAIT to WAIT.
    pub explanations: Vec<Explanation>,
}

/// Where a report is known from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// The store, which keeps what was told.
    Store,
    /// A recording, which says everything.
    Recording,
}

/// A WAIT, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Wait {
    /// When.
    pub at: Millis,
    /// The agent; empty for the root.
    pub agent: String,
    /// The turn, where it is known.
    pub turn: Option<String>,
    /// `turn-start` or `mid-turn`, where it is known.
    pub phase: Option<String>,
    /// What came of it.
    pub outcome: Outcome,
    /// Where the host put the message.
    pub placement: Option<String>,
    /// The id of the record.
    pub record: Option<String>,
    /// What was told; of a WAIT that was not committed, what was offered.
    pub entries: Vec<Reminder>,
    /// What was kept for a later one.
    pub held: Vec<HeldBack>,
    /// What `reminder/explain` said just before it, as places in [`Report::explanations`]; `None`
    /// where nobody asked.
    pub rows: Option<Vec<usize>>,
}

/// What came of a WAIT.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It was committed: the request went out.
    Committed,
    /// It was released.
    Released,
    /// Neither.
    Offered,
}

/// A reminder of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Reminder {
    /// Its id, or the type that a client gave.
    #[serde(rename = "type")]
    pub entry_type: String,
    /// Its kind.
    pub kind: String,
    /// The member that it is about.
    pub key: Option<String>,
    /// What a row calls it.
    pub label: String,
    /// The complete text.
    pub body: String,
    /// What that costs, estimated.
    pub tokens: u64,
}

impl From<Entry> for Reminder {
    fn from(entry: Entry) -> Self {
        let Entry { entry_type, kind, key, label, body, .. } = entry;
        let tokens = estimate_tokens(&body);
        Self { entry_type, kind, key, label, body, tokens }
    }
}

/// A reminder that was kept for a later WAIT.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HeldBack {
    /// Its id.
    #[serde(rename = "type")]
    pub entry_type: String,
    /// Why.
    pub reason: String,
}

/// Whether a reminder would speak, and why.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Explanation {
    /// Its id, or the queue's name.
    pub id: String,
    /// Whether it speaks.
    pub speaks: bool,
    /// Why, or why not.
    pub reason: String,
    /// When it can next speak.
    pub next: Option<String>,
}

/// Explanations, each kept once.
#[derive(Debug, Default)]
pub struct Explanations {
    all: Vec<Explanation>,
    places: BTreeMap<Explanation, usize>,
}

impl Explanations {
    /// The place of an explanation.
    pub fn place(&mut self, explanation: Explanation) -> usize {
        *self.places.entry(explanation).or_insert_with_key(|explanation| {
            self.all.push(explanation.clone());
            self.all.len() - 1
        })
    }

    /// All of them, in the order of their places.
    pub fn all(self) -> Vec<Explanation> {
        self.all
    }
}

/// The page. The same report makes the same one.
pub fn page(report: &Report) -> Result<String, serde_json::Error> {
    let data = data(report)?;
    // It covers the data, so that no text in them can hold it.
    let nonce = blake3::hash(data.as_bytes()).to_hex();
    let mut page = HTML.replace("@nonce@", &nonce[..32]);
    // The data come last: what looks like a mark in them is none.
    for (mark, text) in [("@style@", STYLE), ("@script@", SCRIPT), ("@data@", &*data)] {
        page = page.replacen(mark, text, 1);
    }
    Ok(page)
}

/// The report as JSON for within HTML. Only in strings is there any of these signs, and no element
/// ends, and no comment begins, without one.
fn data(report: &Report) -> Result<String, serde_json::Error> {
    let json = paint::json_line(&serde_json::to_value(report)?);
    let mut text = String::with_capacity(json.len() + json.len() / 16);
    for c in json.trim_end().chars() {
        match c {
            '<' => text.push_str("\\u003c"),
            '>' => text.push_str("\\u003e"),
            '&' => text.push_str("\\u0026"),
            c => text.push(c),
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(body: &str) -> Report {
        let reminder = Reminder {
            entry_type: "note".to_owned(),
            kind: "note".to_owned(),
            key: None,
            label: "note".to_owned(),
            body: body.to_owned(),
            tokens: 1,
        };
        Report {
            version: "0.0.0",
            made: 0,
            session: body.to_owned(),
            root: None,
            source: Source::Store,
            waits: vec![Wait {
                at: 0,
                agent: String::new(),
                turn: None,
                phase: None,
                outcome: Outcome::Committed,
                placement: None,
                record: None,
                entries: vec![reminder],
                held: Vec::new(),
                rows: None,
            }],
            explanations: Vec::new(),
        }
    }

    #[test]
    fn no_text_ends_the_data_or_stands_for_a_part_of_the_page() {
        let hostile = "</script><script>alert(1)</script><!-- <script> ]]> &lt; \u{2028}\u{2029}\
                       \u{202e}\u{0}\u{1b}\u{7f}\u{feff} @script@ @style@ @data@ @nonce@ \"\\";
        let made = page(&report(hostile)).expect("a page");
        let plain = page(&report("plain")).expect("a page");
        let elements = |page: &str| page.matches('<').count();
        assert_eq!(elements(&made), elements(&plain));
        let begin = made.find("id=\"data\">").expect("the data") + "id=\"data\">".len();
        let length = made[begin..].find("</script>").expect("an end");
        let data = &made[begin..begin + length];
        for c in ['\u{2028}', '\u{202e}', '\u{0}', '\u{1b}', '\u{feff}'] {
            assert!(!data.contains(c), "{c:?}");
        }
        let read: serde_json::Value = serde_json::from_str(data).expect("JSON");
        assert_eq!(read["session"], hostile);
        assert_eq!(read["waits"][0]["entries"][0]["body"], hostile);
    }

    #[test]
    fn the_policy_knows_style_and_script_by_a_nonce_of_their_own() {
        let [one, two] = ["one", "two"].map(|body| page(&report(body)).expect("a page"));
        let nonce = |page: &str| {
            let (_, rest) = page.split_once("script-src 'nonce-").expect("a policy");
            rest.split_once('\'').expect("an end").0.to_owned()
        };
        assert!(one.contains("default-src 'none'"));
        assert_ne!(nonce(&one), nonce(&two));
        assert_eq!(one.matches(&format!("nonce=\"{}\"", nonce(&one))).count(), 2);
        assert_eq!(one, page(&report("one")).expect("a page"));
    }

    #[test]
    fn an_explanation_is_kept_once() {
        let explanation = |reason: &str| Explanation {
            id: "task-nudge".to_owned(),
            speaks: false,
            reason: reason.to_owned(),
            next: None,
        };
        let mut all = Explanations::default();
        let places = ["no task", "1 turn", "no task"].map(|reason| all.place(explanation(reason)));
        assert_eq!(places, [0, 1, 0]);
        assert_eq!(all.all().len(), 2);
    }
}
