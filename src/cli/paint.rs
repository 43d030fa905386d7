//! How commands show things to people: tables to the width of a terminal, plain aligned text where
//! the output is not one, JSON for programs; names and texts of others can do no harm in any of them.

use std::borrow::Cow;
use std::io::{self, IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anstyle::{AnsiColor, Style};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::Value as Json;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use crate::engine::{Millis, one_line, short_name};

/// Of what is shown, what matters less.
pub const FAINT: Style = Style::new().dimmed();
/// What matters more.
pub const STRONG: Style = Style::new().bold();
/// What is about to happen.
pub const LIVELY: Style = AnsiColor::Green.on_default();

/// Columns that a table leaves between two of its own.
const GAP: usize = 2;
/// The columns that a cell has on a terminal at most, unless it is the last of its row.
const CELL_MAX: usize = 32;
/// The columns that the last cell of a row has at least.
const LAST_MIN: usize = 24;
/// How often it is said what takes its time.
const PROGRESS: Duration = Duration::from_secs(1);
/// How many characters of a name are shown within a line.
const NAME_CHARS: usize = 100;
/// Columns of a terminal that does not say how many it has.
const COLUMNS: usize = 80;

/// Where a command's output goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Screen {
    /// To a terminal of so many columns.
    Terminal(usize),
    /// To a file, or to another program.
    Pipe,
}

impl Screen {
    /// What stdout is.
    pub fn of_stdout() -> Self {
        let stdout = io::stdout();
        if !stdout.is_terminal() {
            return Self::Pipe;
        }
        let size = rustix::termios::tcgetwinsize(&stdout);
        let columns = size.map_or(0, |size| usize::from(size.ws_col));
        Self::Terminal(if columns == 0 { COLUMNS } else { columns })
    }
}

/// How the cells of a column stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// At its left side.
    Left,
    /// Numbers: at its right side.
    Right,
}

/// A cell.
#[derive(Clone, Debug, Default)]
pub struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    /// A cell in a style. Whatever the text is, it stands on one line.
    pub fn new(text: &str, style: Style) -> Self {
        Self { text: one_line(text).into_owned(), style }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::new(text, Style::new())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::from(&*text)
    }
}

impl From<u64> for Cell {
    fn from(number: u64) -> Self {
        Self::from(number.to_string())
    }
}

/// A table. On a terminal a long last cell goes on in further lines, or is cut.
#[derive(Clone, Debug)]
pub struct Table {
    columns: Vec<(&'static str, Align)>,
    rows: Vec<Vec<Cell>>,
    wraps: bool,
}

impl Table {
    /// A table without rows.
    pub fn new(columns: &[(&'static str, Align)]) -> Self {
        Self { columns: columns.to_vec(), rows: Vec::new(), wraps: false }
    }

    /// The same, with last cells that are shown whole.
    #[must_use]
    pub fn wrapping(self) -> Self {
        Self { wraps: true, ..self }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// The table as text, with its heading.
    pub fn text(&self, screen: Screen) -> String {
        let heading: Vec<_> =
            self.columns.iter().map(|(title, _)| Cell::new(title, FAINT)).collect();
        let rows = || [&heading].into_iter().chain(&self.rows);
        let last = self.columns.len().saturating_sub(1);
        let mut widths = vec![0; self.columns.len()];
        for row in rows() {
            for (place, cell) in row.iter().enumerate() {
                let width = cell.text.width();
                let is_cut = matches!(screen, Screen::Terminal(_)) && place < last;
                let width = if is_cut { width.min(CELL_MAX) } else { width };
                widths[place] = widths[place].max(width);
            }
        }
        if let Screen::Terminal(columns) = screen
            && let Some((last, others)) = widths.split_last_mut()
        {
            let taken: usize = others.iter().map(|width| width + GAP).sum();
            *last = (*last).min(columns.saturating_sub(taken).max(LAST_MIN));
        }
        let mut text = String::new();
        for row in rows() {
            self.draw(row, &widths, screen, &mut text);
        }
        text
    }

    fn draw(&self, row: &[Cell], widths: &[usize], screen: Screen, text: &mut String) {
        let mut column = 0;
        let last = row.len().saturating_sub(1);
        for (place, (cell, width)) in row.iter().zip(widths).enumerate() {
            let lines = match screen {
                Screen::Terminal(_) if place == last && self.wraps => wrapped(&cell.text, *width),
                Screen::Terminal(_) => vec![cut(&cell.text, *width)],
                Screen::Pipe => vec![Cow::Borrowed(&*cell.text)],
            };
            for (number, line) in lines.iter().enumerate() {
                if number > 0 {
                    text.push('\n');
                    text.push_str(&" ".repeat(column));
                }
                let space = " ".repeat(width.saturating_sub(line.width()));
                let is_right = self.columns[place].1 == Align::Right;
                if is_right {
                    text.push_str(&space);
                }
                let shown = isolated(line, screen);
                text.push_str(&format!("{0}{shown}{0:#}", cell.style));
                if place < last && !is_right {
                    text.push_str(&space);
                }
            }
            if place < last {
                text.push_str(&" ".repeat(GAP));
            }
            column += width + GAP;
        }
        let end = text.trim_end_matches(' ').len();
        text.truncate(end);
        text.push('\n');
    }
}

/// At most so many columns of a text; what was cut shows.
fn cut(text: &str, columns: usize) -> Cow<'_, str> {
    if text.width() <= columns {
        return Cow::Borrowed(text);
    }
    let end = end_of(text, columns.saturating_sub(1));
    Cow::Owned(format!("{}…", &text[..end]))
}

/// A text in lines of so many columns, broken between words where that can be.
fn wrapped(text: &str, columns: usize) -> Vec<Cow<'_, str>> {
    let mut lines = Vec::new();
    let mut rest = text;
    while rest.width() > columns {
        let end = end_of(rest, columns).max(rest.chars().next().map_or(0, char::len_utf8));
        let broken = if rest[end..].starts_with(' ') { Some(end) } else { rest[..end].rfind(' ') };
        let end = broken.filter(|end| *end > 0).unwrap_or(end);
        lines.push(Cow::Borrowed(rest[..end].trim_end()));
        rest = rest[end..].trim_start();
    }
    lines.push(Cow::Borrowed(rest));
    lines
}

/// Where the text ends that takes up so many columns.
fn end_of(text: &str, columns: usize) -> usize {
    let mut taken = 0;
    let mut ends = text.char_indices().map(|(at, c)| {
        taken += c.width().unwrap_or(0);
        (at, taken)
    });
    ends.find(|(_, taken)| *taken > columns).map_or(text.len(), |(at, _)| at)
}

/// The text by itself: on a terminal one that is read from right to left turns nothing around it.
fn isolated(text: &str, screen: Screen) -> Cow<'_, str> {
    let turns = |c: char| {
        matches!(
            c,
            '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}'
                | '\u{10800}'..='\u{10fff}' | '\u{1e800}'..='\u{1efff}'
        )
    };
    match screen {
        Screen::Terminal(_) if text.chars().any(turns) => {
            Cow::Owned(format!("\u{2068}{text}\u{2069}"))
        }
        _ => Cow::Borrowed(text),
    }
}

/// A name within a line of other words, which it neither ends nor turns around.
pub fn name(name: &str, screen: Screen) -> String {
    isolated(&short_name(name, NAME_CHARS), screen).into_owned()
}

/// A text of several lines, each behind an indentation.
pub fn block(text: &str, indent: &str, screen: Screen) -> String {
    let mut block = String::new();
    for line in text.lines() {
        let line = line.replace('\t', "    ");
        let line = one_line(&line);
        block.push_str(format!("{indent}{}", isolated(&line, screen)).trim_end());
        block.push('\n');
    }
    block
}

/// A value as one line of JSON, in which nothing can turn or hide anything on a terminal either.
pub fn json_line(value: &Json) -> String {
    let text = value.to_string();
    let mut line = String::with_capacity(text.len() + 1);
    for c in text.chars() {
        // Only in strings is there anything that is not ASCII or a control character.
        let is_safe = c == ' ' || c.is_ascii_graphic();
        if is_safe || matches!(one_line(c.encode_utf8(&mut [0; 4])), Cow::Borrowed(_)) {
            line.push(c);
        } else {
            let units = c.encode_utf16(&mut [0; 2]).to_vec();
            units.iter().for_each(|unit| line.push_str(&format!("\\u{unit:04x}")));
        }
    }
    line.push('\n');
    line
}

/// A moment where the person is: `2026-01-01 12:00:00`.
pub fn local_time(at: Millis) -> String {
    match timestamp(at) {
        Some(at) => at.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string(),
        None => "?".to_owned(),
    }
}

/// A moment for programs: `2026-01-01T12:00:00.000Z`.
pub fn utc(at: Millis) -> Json {
    timestamp(at).map(|at| format!("{at:.3}")).into()
}

fn timestamp(at: Millis) -> Option<Timestamp> {
    Timestamp::from_millisecond(i64::try_from(at).ok()?).ok()
}

/// A number of things: `1 reminder`, `2 reminders`.
pub fn count(number: u64, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

/// Writes to stdout: in colour where that is a terminal and the person wants it.
pub fn print(text: &str) -> io::Result<()> {
    let mut stdout = anstream::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

/// Says something beside the output.
pub fn remark(text: &str) {
    let lines: Vec<_> = text.lines().map(one_line).collect();
    // Who closed stderr does not want to know.
    drop(writeln!(io::stderr(), "{}", lines.join("\n")));
}

/// Something that may take its time: from the first second on it is said on the terminal, until this is
/// dropped.
#[derive(Debug)]
pub struct Progress {
    is_over: Option<Sender<()>>,
    teller: Option<JoinHandle<()>>,
}

impl Progress {
    /// Begins; nothing is said where stderr is no terminal.
    pub fn of(what: &'static str) -> Self {
        if !io::stderr().is_terminal() {
            return Self { is_over: None, teller: None };
        }
        Self::told_to(io::stderr(), what, PROGRESS)
    }

    fn told_to(
        mut out: impl io::Write + Send + 'static,
        what: &'static str,
        each: Duration,
    ) -> Self {
        let (is_over, over) = channel::<()>();
        let began = Instant::now();
        let tell = move || {
            let mut is_said = false;
            while over.recv_timeout(each) == Err(RecvTimeoutError::Timeout) {
                is_said = true;
                // Who cannot be told does not wait for it.
                drop(write!(out, "\r{what}… {} s", began.elapsed().as_secs()));
                drop(out.flush());
            }
            if is_said {
                drop(out.write_all(b"\r\x1b[K"));
            }
        };
        Self { is_over: Some(is_over), teller: Some(thread::spawn(tell)) }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        drop(self.is_over.take());
        if let Some(teller) = self.teller.take() {
            drop(teller.join());
        }
    }
}

/// Why a command came to nothing.
#[derive(Debug)]
pub enum Failure {
    /// What is wrong, why, and what to do.
    Said(String),
    /// The output cannot be written.
    Output(io::Error),
}

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Self::Said(message)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

/// The exit status of a command, whose failure is said here. Who reads only the beginning of the
/// output has what he wanted.
pub fn ended(command: &str, outcome: Result<(), Failure>) -> ExitCode {
    let message = match outcome {
        Ok(()) => return ExitCode::SUCCESS,
        Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            return ExitCode::SUCCESS;
        }
        Err(Failure::Output(error)) => format!("the output cannot be written: {error}"),
        Err(Failure::Said(message)) => message,
    };
    remark(&format!("reminderd {command}: {message}"));
    ExitCode::FAILURE
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn table(wraps: bool) -> Table {
        let table = Table::new(&[("NAME", Align::Left), ("N", Align::Right), ("WHY", Align::Left)]);
        let mut table = if wraps { table.wrapping() } else { table };
        table.row(["日本".into(), 7.into(), "one two three four five six seven".into()]);
        table.row(["שלום".into(), 120.into(), "a\nb\u{202e}c\u{1b}[31m\u{e0041}".into()]);
        table
    }

    fn plain(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    #[test]
    fn a_table_is_plain_and_whole_in_a_pipe() {
        assert_eq!(
            plain(&table(true).text(Screen::Pipe)),
            "NAME    N  WHY\n\
             日本    7  one two three four five six seven\n\
             שלום  120  a\\nb\\u{202e}c\\u{1b}[31m\\u{e0041}\n"
        );
    }

    #[test]
    fn a_table_fits_a_terminal() {
        let wrapped = plain(&table(true).text(Screen::Terminal(36)));
        assert_eq!(
            wrapped,
            "NAME    N  WHY\n\
             日本    7  one two three four five\n           six seven\n\
             \u{2068}שלום\u{2069}  120  a\\nb\\u{202e}c\\u{1b}[31m\\u\n           {e0041}\n"
        );
        let cut = plain(&table(false).text(Screen::Terminal(36)));
        assert!(cut.contains("日本    7  one two three four five …\n"), "{cut}");
    }

    #[test]
    fn json_stays_what_it_is_and_does_no_harm() {
        let value = json!({ "שלום": "a\u{202e}b\u{9b}\u{e0041}\u{7f}\n" });
        let line = json_line(&value);
        assert!(line.contains("a\\u202eb\\u009b\\udb40\\udc41\\u007f\\n"), "{line}");
        assert!(line.contains("שלום"));
        assert_eq!(serde_json::from_str::<Json>(&line).expect("JSON"), value);
    }

    #[test]
    fn what_takes_its_time_is_said_and_wiped_away() {
        let (mut reader, writer) = io::pipe().expect("a pipe");
        let progress = Progress::told_to(writer, "reading", Duration::from_millis(1));
        let mut said = [0; 15];
        io::Read::read_exact(&mut reader, &mut said).expect("it is said");
        assert!(said.starts_with("\rreading… ".as_bytes()), "{said:?}");
        drop(progress);
        let mut rest = String::new();
        io::Read::read_to_string(&mut reader, &mut rest).expect("it ends");
        assert!(rest.ends_with("\r\u{1b}[K"), "{rest:?}");
        // What is quick is not worth a word.
        let (mut reader, writer) = io::pipe().expect("a pipe");
        drop(Progress::told_to(writer, "reading", Duration::from_secs(3600)));
        let mut nothing = String::new();
        io::Read::read_to_string(&mut reader, &mut nothing).expect("it ends");
        assert_eq!(nothing, "");
    }

    #[test]
    fn a_name_stands_by_itself() {
        let terminal = Screen::Terminal(80);
        assert_eq!(name("שלום", terminal), "\u{2068}שלום\u{2069}");
        assert_eq!(name("שלום", Screen::Pipe), "שלום");
        assert_eq!(name("a\u{2069}\nb", terminal), "a\\u{2069}\\nb");
    }

    #[test]
    fn a_block_keeps_its_lines() {
        let text = block("a\n\n\tb\u{1b}", "  ", Screen::Pipe);
        assert_eq!(text, "  a\n\n      b\\u{1b}\n");
    }
}
