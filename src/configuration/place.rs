//! Where something stands: in which layer's file, on which line.

use std::fmt;
use std::ops::Range;

/// Whose configuration it is. Later layers win.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layer {
    /// The user's own file.
    User,
    /// The file at the session's root.
    Workspace,
    /// What the client gave (`initializationOptions.config`).
    Session,
}

/// Where a document comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Whose it is.
    pub layer: Layer,
    /// The file as people are shown it, or what the client calls it.
    pub name: String,
}

impl Origin {
    /// A file of a layer.
    pub fn new(layer: Layer, name: impl Into<String>) -> Self {
        Self { layer, name: name.into() }
    }

    /// What a client gave at `initialize`.
    pub fn client() -> Self {
        Self::new(Layer::Session, "initializationOptions.config")
    }

    /// The file and line of a place in it; the name alone of what has no text.
    pub fn with_line(&self, at: &Place) -> String {
        match at.line {
            0 => self.name.clone(),
            line => format!("{}:{line}", self.name),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// A place in a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The bytes of the text. Empty in what a client gave, which has no text.
    pub range: Range<usize>,
    /// The line, from 1; 0 where there is no text.
    pub line: usize,
    /// The column in characters, from 1; 0 where there is no text.
    pub column: usize,
}

/// A value, and where it was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given<T> {
    /// The value.
    pub value: T,
    /// Where it stands.
    pub at: Place,
}

/// Bytes between two marks of a [`PlaceFinder`].
const BLOCK_BYTES: usize = 1 << 10;

/// Finds places in a text, in a time that neither its length nor that of its lines decides.
#[derive(Debug)]
pub struct PlaceFinder<'a> {
    text: &'a str,
    /// At the start of each block: where it is, its line and column.
    marks: Vec<(usize, usize, usize)>,
}

impl<'a> PlaceFinder<'a> {
    /// For a text.
    pub fn new(text: &'a str) -> Self {
        let mut finder = Self { text, marks: vec![(0, 1, 1)] };
        for start in (BLOCK_BYTES..text.len()).step_by(BLOCK_BYTES) {
            let start = floor(text, start);
            let (line, column) = finder.line_and_column(start);
            finder.marks.push((start, line, column));
        }
        finder
    }

    /// The place of these bytes. What lies outside the text is moved into it.
    pub fn place(&self, range: Range<usize>) -> Place {
        if self.text.is_empty() {
            return Place::default();
        }
        let start = floor(self.text, range.start);
        let end = floor(self.text, range.end).max(start);
        let (line, column) = self.line_and_column(start);
        Place { range: start..end, line, column }
    }

    fn line_and_column(&self, index: usize) -> (usize, usize) {
        let after = self.marks.partition_point(|(start, ..)| *start <= index);
        let (start, line, column) = self.marks[after - 1];
        let between = &self.text[start..index];
        match between.rfind('\n') {
            None => (line, column + between.chars().count()),
            Some(newline) => (
                line + between.bytes().filter(|byte| *byte == b'\n').count(),
                between[newline + 1..].chars().count() + 1,
            ),
        }
    }
}

/// The start of the character that the byte is in, or the end of the text.
fn floor(text: &str, index: usize) -> usize {
    let index = index.min(text.len());
    (0..=index).rev().find(|index| text.is_char_boundary(*index)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn places_are_those_that_one_counts(
            lines in prop::collection::vec("[aé]{0,700}", 0..8), at in 0_usize..6_000,
        ) {
            let text = lines.join("\n");
            prop_assume!(!text.is_empty());
            let at = floor(&text, at);
            let before = &text[..at];
            let line = before.matches('\n').count() + 1;
            let column = before.chars().rev().take_while(|it| *it != '\n').count() + 1;
            let place = PlaceFinder::new(&text).place(at..usize::MAX);
            prop_assert_eq!(place, Place { range: at..text.len(), line, column });
        }
    }
}
