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

impl Place {
    /// The place of bytes in a text.
    pub fn in_text(text: &str, range: Range<usize>) -> Self {
        let floor = |index: usize| {
            let index = index.min(text.len());
            (0..=index).rev().find(|index| text.is_char_boundary(*index)).unwrap_or(0)
        };
        let range = floor(range.start)..floor(range.end.max(range.start));
        let before = &text[..range.start];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Self {
            line: before.bytes().filter(|byte| *byte == b'\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            range,
        }
    }
}

/// A value, and where it was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given<T> {
    /// The value.
    pub value: T,
    /// Where it stands.
    pub at: Place,
}
