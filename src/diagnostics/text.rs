//! Texts of files with the positions of the Language Server Protocol: lines from 0, and UTF-16 code
//! units in them.

/// A place in a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line, from 0.
    pub line: u32,
    /// The UTF-16 code unit in the line, from 0.
    pub character: u32,
}

/// A change of an open document, as the client reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextChange {
    /// What is replaced, the end not included; the whole text when absent.
    pub range: Option<(Position, Position)>,
    /// What replaces it.
    pub text: String,
}

/// How many line ends a text has: `\n`, `\r\n` or `\r`.
pub fn line_ends(text: &str) -> usize {
    line_starts(text).count() - 1
}

/// Where each line of a text begins, in bytes.
fn line_starts(text: &str) -> impl Iterator<Item = usize> {
    let bytes = text.as_bytes();
    let ends = bytes.iter().enumerate().filter(|(index, byte)| match byte {
        b'\n' => true,
        b'\r' => bytes.get(index + 1) != Some(&b'\n'),
        _ => false,
    });
    std::iter::once(0).chain(ends.map(|(index, _)| index + 1))
}

/// A line without its end; the last one when there are fewer, with its number.
pub fn line(text: &str, number: u32) -> (u32, &str) {
    let mut last = (0, 0);
    for (count, start) in (0..=number).zip(line_starts(text)) {
        last = (count, start);
    }
    let rest = &text[last.1..];
    let end = rest.find(['\n', '\r']).unwrap_or(rest.len());
    (last.0, &rest[..end])
}

/// The code unit at which the character begins that holds this one; the line's end when the line is
/// shorter. And the same in bytes.
pub fn character_start(line: &str, character: u32) -> (u32, usize) {
    let mut units = 0_u32;
    for (start, each) in line.char_indices() {
        let width = if each.len_utf16() == 2 { 2 } else { 1 };
        if units + width > character {
            return (units, start);
        }
        units += width;
    }
    (units, line.len())
}

/// Where a position is, in bytes. One beyond the text is its end.
fn offset(text: &str, position: Position) -> usize {
    let Some(start) =
        usize::try_from(position.line).ok().and_then(|number| line_starts(text).nth(number))
    else {
        return text.len();
    };
    let rest = &text[start..];
    let end = rest.find(['\n', '\r']).unwrap_or(rest.len());
    start + character_start(&rest[..end], position.character).1
}

impl TextChange {
    /// Applies the change to the text as it was. A range whose ends are in the wrong order is taken
    /// the other way round.
    pub fn apply(&self, text: &mut String) {
        let Some((one, other)) = self.range else {
            text.clone_from(&self.text);
            return;
        };
        let (start, end) = (offset(text, one.min(other)), offset(text, one.max(other)));
        text.replace_range(start..end, &self.text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(line: u32, character: u32) -> Position {
        Position { line, character }
    }

    #[test]
    fn columns_are_utf_16_and_never_within_a_character() {
        let line = "let 😀 = x;";
        for (character, start) in [(0, 0), (4, 4), (5, 4), (6, 6), (9, 9), (99, 11)] {
            assert_eq!(character_start(line, character).0, start, "{character}");
        }
    }

    #[test]
    fn lines_end_in_three_ways() {
        let text = "a\r\nb\rc\nd";
        assert_eq!(line_ends(text), 3);
        let lines: Vec<_> = (0..5).map(|number| line(text, number)).collect();
        assert_eq!(lines, [(0, "a"), (1, "b"), (2, "c"), (3, "d"), (3, "d")]);
    }

    #[test]
    fn changes_apply_wherever_they_point() {
        for (start, end, text, after) in [
            (at(0, 0), at(0, 0), "x\n", "x\na😀\nb"),
            (at(0, 1), at(0, 3), "", "a\nb"),
            (at(0, 3), at(1, 0), " ", "a😀 b"),
            (at(1, 1), at(0, 3), "", "a😀"),
            (at(7, 0), at(9, 9), "!", "a😀\nb!"),
        ] {
            let mut document = "a😀\nb".to_owned();
            TextChange { range: Some((start, end)), text: text.to_owned() }.apply(&mut document);
            assert_eq!(document, after);
        }
    }
}
