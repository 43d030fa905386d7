//! Places within a text literal of TOML: where a line and column of what it says stand in the file.

use std::ops::Range;

/// The bytes in a file of a place in a text whose literal stands at `at`. Where the literal has
/// escapes, so that what it says is not what stands there, the start of the value.
pub fn within(source: &str, at: Range<usize>, line: u32, column: u32) -> Range<usize> {
    found(source, &at, line, column).unwrap_or(at)
}

fn found(source: &str, at: &Range<usize>, line: u32, column: u32) -> Option<Range<usize>> {
    let literal = source.get(at.clone())?;
    let (quote, is_basic) = match literal.get(..3) {
        Some(triple @ ("\"\"\"" | "'''")) => (triple, triple == "\"\"\""),
        _ => (literal.get(..1)?, literal.starts_with('"')),
    };
    let mut start = quote.len();
    let end = literal.len().checked_sub(quote.len())?;
    let said = literal.get(start..end)?;
    if is_basic && said.contains('\\') {
        return None;
    }
    if quote.len() == 3 {
        // The newline right behind the opening quotes is not part of what is said.
        start += if said.starts_with("\r\n") { 2 } else { usize::from(said.starts_with('\n')) };
    }
    for _ in 1..line {
        start += literal.get(start..end)?.find('\n')? + 1;
    }
    let rest = literal.get(start..end)?;
    let rest = rest.split('\n').next()?;
    let skip = usize::try_from(column.checked_sub(1)?).ok()?;
    let offset = match rest.char_indices().nth(skip) {
        Some((offset, _)) => offset,
        None if rest.chars().count() == skip => rest.len(),
        None => return None,
    };
    let length = rest[offset..].chars().next().map_or(0, char::len_utf8);
    let start = at.start + start + offset;
    Some(start..start + length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns_are_those_of_the_file() {
        for (source, line, column, found) in [
            ("x = \"a {{ b\"", 1, 6, "b"),
            ("x = 'é {{ b'", 1, 6, "b"),
            ("x = \"\"\"\na\n {{ b }}\"\"\"", 2, 5, "b"),
            ("x = '''a\r\n{{ b'''", 2, 4, "b"),
            // An escape says something else than what stands there.
            ("x = \"\\n{{ b\"", 2, 4, "\"\\n{{ b\""),
            ("x = \"ab\"", 1, 3, ""),
            ("x = \"ab\"", 7, 1, "\"ab\""),
        ] {
            let at = within(source, 4..source.len(), line, column);
            assert_eq!(&source[at], found, "{source}");
        }
    }
}
