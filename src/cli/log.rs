//! `reminderd log`: what models were told.

use std::collections::BTreeSet;
use std::io;
use std::ops::ControlFlow;
use std::process::ExitCode;

use clap::Args;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, Zoned, civil};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::json;

use super::asking::{PlaceArguments, choose, known};
use super::paint::{self, Align, Cell, FAINT, Failure, Progress, STRONG, Screen, Table, count};
use crate::engine::{Commit, Entry, Millis, Record, estimate_tokens};
use crate::store::{Archive, Told};

/// How often it is looked whether more was told, in nanoseconds.
const LOOK: i64 = 200_000_000;

/// Show what models were told: when, in which session, to whom, at what cost.
///
/// One line a reminder, oldest first, of all sessions or of one. It reads the store, beside whatever
/// daemon runs. TOKENS is the estimate that budgets are counted with. With `--json` each line is an
/// object: `at`, `session`, `agent` (`null` for the root), `turn`, `phase`, `type`, `kind`, `key`,
/// `label`, `tokens`, `record`, `placement`, `text` (its first line) or, with `--bodies`, `body`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example, what an agent heard of files in the last two hours, as it is told:\n  \
                  $ reminderd log --since 2h --agent /reviewer --kind edited-files --follow"
)]
pub struct LogArguments {
    /// One session; all of them when absent
    #[arg(value_name = "SESSION")]
    session: Option<String>,
    #[command(flatten)]
    place: PlaceArguments,
    /// From then on: a date and time, or how long ago (`2h`, `3 days`)
    #[arg(long, value_name = "TIME", value_parser = moment)]
    since: Option<Millis>,
    /// Until then
    #[arg(long, value_name = "TIME", value_parser = moment, conflicts_with = "follow")]
    until: Option<Millis>,
    /// Of this kind, or of this id of one's own; may be repeated
    #[arg(long, value_name = "KIND")]
    kind: Vec<String>,
    /// To this agent; `/` is the root
    #[arg(long, value_name = "PATH")]
    agent: Option<String>,
    /// At most so many reminders, the newest ones
    #[arg(long, value_name = "COUNT", default_value_t = 100)]
    limit: usize,
    /// With the whole text of each
    #[arg(long)]
    bodies: bool,
    /// Go on as more is told, until it is interrupted
    #[arg(long, short)]
    follow: bool,
    /// One JSON object a line
    #[arg(long)]
    json: bool,
}

/// A reminder that was told.
struct Row {
    session: String,
    at: Millis,
    placement: Option<String>,
    /// What is known of its message, without its entries.
    record: Record,
    entry: Entry,
}

/// Runs the command.
pub fn run(arguments: &LogArguments) -> ExitCode {
    paint::ended("log", logged(arguments))
}

fn logged(arguments: &LogArguments) -> Result<(), Failure> {
    let archive = arguments.place.needed_archive()?;
    if arguments.session.is_some() {
        // One that was never told anything is known all the same; a misspelt one is not.
        choose(&known(None, Some(&archive))?, arguments.session.as_deref())?;
    }
    let end = archive.end().map_err(|error| error.to_string())?;
    let reading = Progress::of("reading the store");
    let (mut rows, more) = newest(arguments, &archive)?;
    drop(reading);
    rows.reverse();
    let screen = Screen::of_stdout();
    let mut shown = Shown { arguments, screen, is_headed: false };
    shown.print(&rows)?;
    if more && !arguments.json {
        paint::remark(&format!(
            "(the newest {}; --limit shows more)",
            count(rows.len() as u64, "reminder")
        ));
    }
    if arguments.follow {
        return follow(arguments, &archive, end, &mut shown);
    }
    if rows.is_empty() && !arguments.json {
        paint::remark("nothing was told that fits");
    } else if let Screen::Terminal(_) = screen
        && !arguments.json
    {
        let messages: BTreeSet<_> = rows.iter().map(|row| &row.record.id).collect();
        let tokens = rows.iter().map(Row::tokens).sum();
        paint::print(&format!(
            "{FAINT}{} in {}, {}{FAINT:#}\n",
            count(rows.len() as u64, "reminder"),
            count(messages.len() as u64, "message"),
            count(tokens, "token"),
        ))?;
    }
    Ok(())
}

/// What fits, newest first, and whether there is more than the limit lets through.
fn newest(arguments: &LogArguments, archive: &Archive) -> Result<(Vec<Row>, bool), Failure> {
    let mut rows = Vec::new();
    let mut more = false;
    let looked = archive.newest_first(arguments.session.as_deref(), |told| {
        // Within a message the last one is the newest.
        for row in arguments.rows(told).into_iter().rev() {
            if rows.len() == arguments.limit {
                more = true;
                return ControlFlow::Break(());
            }
            rows.push(row);
        }
        ControlFlow::Continue(())
    });
    looked.map_err(|error| error.to_string())?;
    Ok((rows, more))
}

/// Shows what is told from now on. Ends when nobody reads it any more.
fn follow(
    arguments: &LogArguments,
    archive: &Archive,
    mut place: i64,
    shown: &mut Shown<'_>,
) -> Result<(), Failure> {
    let look = Timespec { tv_sec: 0, tv_nsec: LOOK };
    loop {
        let mut rows = Vec::new();
        let looked = archive.behind(place, arguments.session.as_deref(), |told| {
            place = place.max(told.place);
            rows.extend(arguments.rows(told));
            ControlFlow::Continue(())
        });
        looked.map_err(|error| error.to_string())?;
        shown.print(&rows)?;
        let stdout = io::stdout();
        let mut output = [PollFd::new(&stdout, PollFlags::empty())];
        poll(&mut output, Some(&look)).map_err(io::Error::from)?;
        if output[0].revents().intersects(PollFlags::ERR | PollFlags::HUP) {
            return Ok(());
        }
    }
}

impl LogArguments {
    /// The reminders of a commit that are asked for.
    fn rows(&self, told: Told) -> Vec<Row> {
        let Commit { at, record: Some(mut record), placement, .. } = told.commit else {
            return Vec::new();
        };
        let is_within = self.since.is_none_or(|since| since <= at)
            && self.until.is_none_or(|until| at <= until);
        let agent = self.agent.as_deref().map(|agent| agent.trim_end_matches('/'));
        if !is_within || agent.is_some_and(|agent| agent != record.agent.as_str()) {
            return Vec::new();
        }
        let entries = std::mem::take(&mut record.entries);
        let asked = |entry: &Entry| {
            self.kind.is_empty()
                || self.kind.iter().any(|kind| *kind == entry.kind || *kind == entry.entry_type)
        };
        let row = |entry| Row {
            session: told.session.clone(),
            at,
            placement: placement.clone(),
            record: record.clone(),
            entry,
        };
        entries.into_iter().filter(asked).map(row).collect()
    }
}

impl Row {
    fn tokens(&self) -> u64 {
        estimate_tokens(&self.entry.body)
    }

    /// Its first line that says anything.
    fn text(&self) -> &str {
        self.entry.body.lines().find(|line| !line.trim().is_empty()).unwrap_or_default()
    }

    fn as_json(&self, with_body: bool) -> String {
        let Self { record, entry, .. } = self;
        let mut row = json!({
            "at": paint::utc(self.at),
            "session": self.session,
            "agent": (!record.agent.is_root()).then(|| record.agent.as_str()),
            "turn": record.turn,
            "phase": record.phase.name(),
            "type": entry.entry_type,
            "kind": entry.kind,
            "key": entry.key,
            "label": entry.label,
            "tokens": self.tokens(),
            "record": record.id,
            "placement": self.placement,
        });
        let (member, text) = if with_body { ("body", &*entry.body) } else { ("text", self.text()) };
        row[member] = text.into();
        paint::json_line(&row)
    }
}

/// What was shown so far.
struct Shown<'a> {
    arguments: &'a LogArguments,
    screen: Screen,
    is_headed: bool,
}

impl Shown<'_> {
    fn print(&mut self, rows: &[Row]) -> io::Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let text = if self.arguments.json {
            rows.iter().map(|row| row.as_json(self.arguments.bodies)).collect()
        } else if self.arguments.bodies {
            rows.iter().map(|row| self.with_body(row)).collect()
        } else {
            self.table(rows)
        };
        self.is_headed = true;
        paint::print(&text)
    }

    fn table(&self, rows: &[Row]) -> String {
        let mut columns = vec![("TIME", Align::Left)];
        let of_one = self.arguments.session.is_some();
        if !of_one {
            columns.push(("SESSION", Align::Left));
        }
        columns.extend([
            ("TO", Align::Left),
            ("TURN", Align::Left),
            ("TYPE", Align::Left),
            ("TOKENS", Align::Right),
            ("TEXT", Align::Left),
        ]);
        let mut table = Table::new(&columns);
        for row in rows {
            let mut cells = vec![Cell::new(&paint::local_time(row.at), FAINT)];
            if !of_one {
                cells.push(Cell::from(&*row.session));
            }
            cells.extend([
                Cell::from(to(&row.record)),
                Cell::from(&*row.record.turn),
                Cell::new(&row.entry.entry_type, STRONG),
                Cell::from(row.tokens()),
                Cell::from(row.text().trim()),
            ]);
            table.row(cells);
        }
        let text = table.text(self.screen);
        match text.split_once('\n') {
            Some((_, rows)) if self.is_headed => rows.to_owned(),
            _ => text,
        }
    }

    fn with_body(&self, row: &Row) -> String {
        let name = |text: &str| paint::name(text, self.screen);
        let Row { session, record, entry, .. } = row;
        let mut head = paint::local_time(row.at);
        for text in [session, to(record), &record.turn, &entry.entry_type] {
            head.push_str(&format!("  {}", name(text)));
        }
        if let Some(key) = &entry.key {
            head.push_str(&format!(" {}", name(key)));
        }
        let tokens = count(row.tokens(), "token");
        let body = paint::block(&entry.body, "  ", self.screen);
        format!("{STRONG}{head}  {tokens}{STRONG:#}\n{body}\n")
    }
}

/// Whom a record was told to.
fn to(record: &Record) -> &str {
    if record.agent.is_root() { "/" } else { record.agent.as_str() }
}

/// A moment as people write it: `2026-01-01`, `2026-01-01 12:00`, `2026-01-01T12:00:00Z`, `2h`,
/// `3 days ago`.
fn moment(text: &str) -> Result<Millis, String> {
    let zone = TimeZone::system();
    let at = if let Ok(at) = text.parse::<Timestamp>() {
        at
    } else if let Ok(at) = text.parse::<civil::DateTime>() {
        at.to_zoned(zone).map_err(|error| error.to_string())?.timestamp()
    } else if let Ok(span) = text.parse::<Span>() {
        let now = Zoned::now();
        now.checked_sub(span.abs()).map_err(|error| error.to_string())?.timestamp()
    } else {
        return Err(
            "write a date (2026-01-31), a date and time (2026-01-31T12:00), or how long ago \
                    (2h, 3 days)"
                .to_owned(),
        );
    };
    Ok(Millis::try_from(at.as_millisecond()).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_read_as_people_write_them() {
        let exact = |text| moment(text).expect(text);
        assert_eq!(exact("2026-01-01T00:00:00Z"), 1_767_225_600_000);
        assert_eq!(exact("2026-01-01T01:00+01:00"), 1_767_225_600_000);
        let day = exact("2026-01-02") - exact("2026-01-01");
        assert_eq!(day, 86_400_000);
        assert!(exact("2026-01-01 12:00") > exact("2026-01-01"));
        let now = exact("0s");
        for (text, ago) in [("2h", 7_200_000), ("90 minutes", 5_400_000), ("1h ago", 3_600_000)] {
            let spread = now.abs_diff(exact(text) + ago);
            assert!(spread < 60_000, "{text}: {spread}");
        }
        assert!(exact("3 days") < exact("2 days"));
        for text in ["", "yesterdayish", "2026-13-01", "12"] {
            assert!(moment(text).is_err(), "{text:?}");
        }
    }
}
