//! What is wrong with a document, as compilers say it: place, line, caret, and the way out.

use std::fmt::Write as _;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use super::place::{Origin, Place};
use crate::engine::one_line;

/// How bad a mistake is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The part that it is in is left out.
    Mistake,
    /// A key or name that nobody knows: it alone is left out. A warning in the daemon, a mistake
    /// for `config check`.
    Unknown,
}

/// One thing that is wrong with a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// How bad it is.
    pub severity: Severity,
    /// Where it stands.
    pub at: Place,
    /// The key it is about, from the top: `kinds.task-nudge.after`, `reminders[2].policy`. Empty
    /// for the document itself.
    pub key: String,
    /// What is wrong, in one sentence.
    pub message: String,
    /// What to do about it, where there is something to say beside the message.
    pub help: Option<String>,
}

/// How much of a line is shown beside a mistake, in bytes to each side.
const SHOWN_BYTES: usize = 200;
/// How many lines of what a mistake is about are shown.
const SHOWN_LINES: usize = 3;

impl Mistake {
    /// One line for people: `FILE:LINE:COLUMN: message: help`. Where there is no text, the key stands
    /// for the place.
    pub fn headline(&self, origin: &Origin) -> String {
        let Place { line, column, .. } = self.at;
        let (origin, key) = (one_line(&origin.name), one_line(&self.key));
        let mut text = match (line, &*key) {
            (0, "") => format!("{origin}: "),
            (0, key) => format!("{origin}: {key}: "),
            _ => format!("{origin}:{line}:{column}: "),
        };
        text.push_str(&one_line(&self.message));
        if let Some(help) = &self.help {
            let _ = write!(text, ": {}", one_line(help));
        }
        text
    }

    /// The headline, and under it the line with a caret where it is wrong.
    pub fn rendered(&self, origin: &Origin, source: &str) -> String {
        let mut text = self.headline(origin);
        if let Some(snippet) = self.snippet(source) {
            text.push('\n');
            text.push_str(&snippet);
        }
        text
    }

    fn snippet(&self, source: &str) -> Option<String> {
        let Place { range, line, .. } = &self.at;
        if *line == 0 || source.is_empty() {
            return None;
        }
        // A caret under many lines, or far out on a long one, helps nobody.
        let line_start = source[..range.start].rfind('\n').map_or(0, |newline| newline + 1);
        let start = back(source, range.start, SHOWN_BYTES).max(line_start);
        let mut end = range.start;
        for (count, piece) in source[range.start..].split_inclusive('\n').enumerate() {
            end += piece.len();
            if count + 1 == SHOWN_LINES || end >= range.end {
                break;
            }
        }
        let end = end.min(forth(source, range.end.min(end), SHOWN_BYTES));
        let shown = &source[start..end];
        let marked = range.start - start..range.end.clamp(range.start, end) - start;
        let snippet = Snippet::source(shown)
            .line_start(*line)
            .fold(false)
            .annotation(AnnotationKind::Primary.span(marked));
        let report = [Group::with_level(Level::ERROR).element(snippet)];
        Some(Renderer::plain().render(&report))
    }
}

/// So many bytes before this one, at the start of a character.
fn back(text: &str, from: usize, bytes: usize) -> usize {
    let least = from.saturating_sub(bytes);
    (least..=from).find(|index| text.is_char_boundary(*index)).unwrap_or(from)
}

/// So many bytes behind this one, at the start of a character.
fn forth(text: &str, from: usize, bytes: usize) -> usize {
    let most = from.saturating_add(bytes).min(text.len());
    (from..=most).rev().find(|index| text.is_char_boundary(*index)).unwrap_or(from)
}

/// The word that was probably meant, if one is near.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // The distance of long words takes long, and no name is long.
    if word.len() > 200 {
        return None;
    }
    let known = known.into_iter().map(|one| (strsim::damerau_levenshtein(word, one), one));
    let (distance, one) = known.min_by_key(|(distance, _)| *distance)?;
    (distance <= 1 + one.len() / 3).then_some(one)
}
