//! The store as people read it: without a daemon, without owning anything, and without changing a
//! byte of what is kept.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension as _};

use super::sqlite::{FILE, Fault, check, is_damage, is_locked, texts};
use super::{Holder, StoreError};
use crate::engine::{Commit, Line, Millis};

/// How long another process's lock is waited for.
const BUSY: Duration = Duration::from_secs(2);

/// The stored sessions, to be read.
#[derive(Debug)]
pub struct Archive {
    connection: Connection,
    directory: PathBuf,
}

/// A stored session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Archived {
    /// Its name.
    pub session: String,
    /// Its root directory.
    pub root: Option<String>,
    /// When it was first opened.
    pub opened: Millis,
    /// When a line was last appended.
    pub active: Millis,
    /// How many requests went out.
    pub commits: u64,
    /// The daemon that owns it, if that lives.
    pub holder: Option<Holder>,
}

/// A commit in the order of writing, over all sessions.
#[derive(Clone, Debug)]
pub struct Told {
    /// Its place: later ones have higher numbers.
    pub place: i64,
    /// The session.
    pub session: String,
    /// What was committed.
    pub commit: Commit,
}

impl Archive {
    /// Opens the store of a directory; `None` where there is none. Fails where the file is not one
    /// that this build can read, and says what to do.
    pub fn open(directory: &Path) -> Result<Option<Self>, StoreError> {
        let path = directory.join(FILE);
        let unusable = |why: &str| {
            StoreError::Unusable(format!(
                "the store in {} cannot be read: {why}",
                directory.display()
            ))
        };
        match fs::metadata(&path) {
            Ok(found) if found.len() == 0 => return Ok(None),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(unusable(&error.to_string())),
            Ok(_) => {}
        }
        let opened = connect(&path).map_err(|fault| match fault {
            Fault::Damaged(why) => unusable(&format!(
                "it is damaged: {why} (the next daemon sets it aside and begins a fresh one)"
            )),
            Fault::Other(why) => unusable(&format!("{why} (name another with --state)")),
        })?;
        Ok(opened.map(|connection| Self { connection, directory: directory.to_owned() }))
    }

    /// The sessions that hold any line, by name.
    pub fn sessions(&self) -> Result<Vec<Archived>, StoreError> {
        let list = || {
            let mut all = self.connection.prepare(
                "SELECT session, root, opened, active,
                     (SELECT count(*) FROM lines
                      WHERE lines.ledger = ledgers.id AND kind = 'committed'),
                     daemon, pid, host, since
                 FROM ledgers LEFT JOIN daemons ON daemons.id = ledgers.daemon
                 WHERE EXISTS (SELECT 1 FROM lines WHERE lines.ledger = ledgers.id)
                 ORDER BY session",
            )?;
            let rows = all.query_map([], |row| {
                let holder = match (row.get::<_, Option<String>>(5)?, row.get(6)?) {
                    (Some(id), Some(pid)) if self.lives(&id) => {
                        Some(Holder { pid, host: row.get(7)?, since: row.get(8)? })
                    }
                    _ => None,
                };
                Ok(Archived {
                    session: row.get(0)?,
                    root: row.get(1)?,
                    opened: row.get(2)?,
                    active: row.get(3)?,
                    commits: row.get(4)?,
                    holder,
                })
            })?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        };
        list().map_err(|error| failed(&error))
    }

    /// The lines of a session that a replay needs; empty where nothing is stored.
    pub fn lines(&self, session: &str) -> Result<Vec<Line>, StoreError> {
        let texts = || {
            let ledger: Option<i64> = self
                .connection
                .query_row("SELECT id FROM ledgers WHERE session = ?1", [session], |row| row.get(0))
                .optional()?;
            ledger.map_or(Ok(Vec::new()), |ledger| texts(&self.connection, ledger))
        };
        let texts = texts().map_err(|error| failed(&error))?;
        let lines = texts.iter().map(|text| serde_json::from_str(text));
        lines.collect::<Result<_, _>>().map_err(|error| {
            StoreError::Failed(format!(
                "a line of session {session:?} cannot be read: {error} (`reminderd forget` erases \
                 the session)"
            ))
        })
    }

    /// Shows commits, newest first, of one session or of all, until `look` has seen enough.
    pub fn newest_first(
        &self,
        session: Option<&str>,
        look: impl FnMut(Told) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.commits("DESC", i64::MIN, session, look)
    }

    /// Shows the commits behind a place, oldest first.
    pub fn behind(
        &self,
        place: i64,
        session: Option<&str>,
        look: impl FnMut(Told) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.commits("ASC", place, session, look)
    }

    /// What is wrong with the file, as SQLite's own check finds it; empty when nothing is.
    pub fn faults(&self) -> Result<Vec<String>, StoreError> {
        let look = || {
            let mut check = self.connection.prepare("PRAGMA quick_check")?;
            let found = check.query_map([], |row| row.get::<_, String>(0))?;
            found.collect::<Result<Vec<_>, _>>()
        };
        match look() {
            Ok(found) => Ok(found.into_iter().filter(|line| line != "ok").collect()),
            // Where the check itself comes upon the damage.
            Err(error) if is_damage(&error) => Ok(vec![error.to_string()]),
            Err(error) => Err(failed(&error)),
        }
    }

    /// The place of the last line.
    pub fn end(&self) -> Result<i64, StoreError> {
        let end = self
            .connection
            .query_row("SELECT coalesce(max(id), 0) FROM lines", [], |row| row.get(0));
        end.map_err(|error| failed(&error))
    }

    /// A commit whose text cannot be read is left out: a newer build may have written it.
    fn commits(
        &self,
        order: &str,
        behind: i64,
        session: Option<&str>,
        mut look: impl FnMut(Told) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let mut show = || {
            let mut commits = self.connection.prepare_cached(&format!(
                "SELECT lines.id, session, line FROM lines JOIN ledgers ON ledgers.id = ledger
                 WHERE kind = 'committed' AND lines.id > ?1 AND (?2 IS NULL OR session = ?2)
                 ORDER BY lines.id {order}"
            ))?;
            let mut rows = commits.query((behind, session))?;
            while let Some(row) = rows.next()? {
                let line: String = row.get(2)?;
                let Ok(Line::Committed(commit)) = serde_json::from_str(&line) else { continue };
                let told = Told { place: row.get(0)?, session: row.get(1)?, commit };
                if look(told).is_break() {
                    break;
                }
            }
            Ok(())
        };
        show().map_err(|error: rusqlite::Error| failed(&error))
    }

    fn lives(&self, daemon: &str) -> bool {
        is_locked(&self.directory.join("daemons").join(format!("{daemon}.lock")))
    }
}

/// A connection that can only read; `None` for a file that holds nothing yet.
fn connect(path: &Path) -> Result<Option<Connection>, Fault> {
    let opened = check(path).and_then(|()| {
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        connection.busy_timeout(BUSY)?;
        is_made(&connection).map(|is_made| is_made.then_some(connection))
    });
    let Err(Fault::Other(_)) = &opened else { return opened };
    // Where nothing can be written beside it, SQLite reads it only when told that nobody else does:
    // without a log there is nobody.
    let log = path.with_file_name(format!("{FILE}-wal"));
    if fs::metadata(log).is_ok_and(|log| log.len() > 0) {
        return opened;
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    let escaped: String = path
        .to_string_lossy()
        .chars()
        .map(|c| match c {
            '%' => "%25".to_owned(),
            '?' => "%3f".to_owned(),
            '#' => "%23".to_owned(),
            c => c.to_string(),
        })
        .collect();
    let alone = Connection::open_with_flags(format!("file:{escaped}?immutable=1"), flags);
    let alone = alone
        .map_err(Fault::from)
        .and_then(|connection| is_made(&connection).map(|is_made| is_made.then_some(connection)));
    match alone {
        Ok(Some(connection)) if super::sqlite::check_age(&connection, path).is_ok() => {
            Ok(Some(connection))
        }
        _ => opened,
    }
}

/// Whether the tables are there: a daemon that just started has yet to make them.
fn is_made(connection: &Connection) -> Result<bool, Fault> {
    let tables: i64 = connection.query_row(
        "SELECT count(*) FROM sqlite_schema WHERE name = 'lines'",
        [],
        |row| row.get(0),
    )?;
    Ok(tables > 0)
}

fn failed(error: &rusqlite::Error) -> StoreError {
    let next = match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            "it is damaged: `reminderd doctor` says what to do"
        }
        _ => "try again",
    };
    StoreError::Failed(format!("the store cannot be read: {error} ({next})"))
}
