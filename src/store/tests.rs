//! What every store does, and what one that outlives the process does besides.

use std::fs;
use std::path::Path;

use super::*;
use crate::engine::{Commit, Event, Kit, Opening, ScopePath, Session};
use crate::reminders::Catalogue;

const PATIENCE: Duration = Duration::from_secs(10);

fn opened(at: Millis) -> Line {
    Line::Opened { at, serial: 0, opening: Opening::default() }
}

fn told(at: Millis, text: &str) -> Line {
    let event = Event::SectionSet { section: "s".to_owned(), content: Some(text.to_owned()) };
    Line::Reported { at, serial: 0, scope: ScopePath::ROOT, event }
}

fn committed(at: Millis, token: &str) -> Line {
    Line::Committed(Commit {
        at,
        scope: ScopePath::ROOT,
        token: token.to_owned(),
        record: None,
        held: Vec::new(),
        placement: None,
        effects: Vec::new(),
    })
}

fn snapshot() -> Line {
    let kit = Kit { registry: &Catalogue, digest: |bytes| bytes.len().to_string() };
    Session::new(kit, "s").snapshot()
}

fn kept(appended: &Appended) {
    appended.ticket.wait_here(PATIENCE).expect("it is kept");
}

fn acquired(store: &dyn Store, session: &str, lines: &[Line]) -> Lease {
    let fence = store.load(session).expect("it can be read").fence;
    let (lease, appended) = store.acquire(session, fence, Some("/root"), lines);
    kept(&appended);
    lease
}

fn released(store: &dyn Store, lease: &Lease) {
    store.release(lease, 0).wait_here(PATIENCE).expect("it is given back");
}

fn lines_of(store: &dyn Store, session: &str) -> Vec<Line> {
    store.load(session).expect("it can be read").lines
}

/// Runs a test over every store.
fn with_each(test: impl Fn(&dyn Store)) {
    test(&MemoryStore::default());
    let directory = tempfile::tempdir().expect("a directory");
    test(&sqlite(directory.path()));
}

fn sqlite(directory: &Path) -> SqliteStore {
    SqliteStore::open(directory, Options::default()).expect("it opens")
}

#[test]
fn lines_come_back_in_order() {
    with_each(|store| {
        let lease = acquired(store, "s", &[opened(1)]);
        let other = acquired(store, "t", &[opened(1)]);
        kept(&store.append(&lease, &[told(2, "a"), told(3, "b")], When::Behind));
        kept(&store.append(&other, &[told(2, "x")], When::Now));
        kept(&store.append(&lease, &[committed(4, "1")], When::Now));
        let expected = [opened(1), told(2, "a"), told(3, "b"), committed(4, "1")];
        released(store, &lease);
        assert_eq!(lines_of(store, "s"), expected);
        assert_eq!(lines_of(store, "u"), []);
    });
}

/// What need not be on the disk yet is in the file when its ticket says so, whatever is written around it.
#[test]
fn what_is_written_is_there_for_others() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = sqlite(directory.path());
    let lease = acquired(&store, "s", &[opened(1)]);
    let archive = Archive::open(directory.path()).expect("it can be read").expect("it is there");
    let mut expected = vec![opened(1)];
    for (at, when) in
        [When::Written, When::Now, When::Written, When::Behind].into_iter().enumerate()
    {
        let line = told(at as Millis + 2, "a");
        kept(&store.append(&lease, std::slice::from_ref(&line), when));
        expected.push(line);
        assert_eq!(archive.lines("s").expect("they can be read"), expected, "{when:?}");
    }
}

#[test]
fn a_replay_begins_at_the_last_snapshot() {
    with_each(|store| {
        let lease = acquired(store, "s", &[opened(1), committed(2, "1")]);
        kept(&store.append(&lease, &[snapshot(), told(3, "a")], When::Now));
        assert_eq!(lines_of(store, "s"), [snapshot(), told(3, "a")]);
        kept(&store.append(&lease, &[snapshot()], When::Now));
        assert_eq!(lines_of(store, "s"), [snapshot()]);
    });
}

#[test]
fn sessions_are_listed_by_name() {
    with_each(|store| {
        for (session, at) in [("b", 7), ("a", 5)] {
            let lease = acquired(store, session, &[opened(at)]);
            released(store, &lease);
        }
        let listed = store.list().expect("they can be read");
        let names: Vec<_> = listed.iter().map(|it| (it.session.as_str(), it.active)).collect();
        assert_eq!(names, [("a", 5), ("b", 7)]);
        assert_eq!(listed[0].root.as_deref(), Some("/root"));
    });
}

#[test]
fn what_is_forgotten_is_gone() {
    with_each(|store| {
        let lease = acquired(store, "s", &[opened(1)]);
        kept(&store.append(&lease, &[told(2, "a")], When::Now));
        store.forget("s").wait_here(PATIENCE).expect("it is erased");
        assert_eq!(store.load("s"), Ok(Loaded::default()));
        assert_eq!(store.list(), Ok(Vec::new()));
        acquired(store, "s", &[opened(2)]);
        assert_eq!(lines_of(store, "s"), [opened(2)]);
    });
}

/// Whoever opens a session right behind its end finds what that leaves, written or not yet.
#[test]
fn what_is_loaded_is_what_was_asked_for_before() {
    with_each(|store| {
        for at in 0..20 {
            let lease = acquired(store, "s", &[opened(at)]);
            store.append(&lease, &[told(at, "behind")], When::Behind);
            drop(store.release(&lease, at));
            assert_eq!(lines_of(store, "s"), [opened(at), told(at, "behind")]);
            drop(store.forget("s"));
            assert_eq!(store.load("s"), Ok(Loaded::default()));
        }
    });
}

#[test]
fn a_former_owner_is_refused() {
    with_each(|store| {
        let former = acquired(store, "s", &[opened(1)]);
        released(store, &former);
        let lease = acquired(store, "s", &[opened(2)]);
        assert_eq!(lease.fence(), former.fence() + 1);
        let late = store.append(&former, &[told(3, "late")], When::Now);
        assert!(matches!(late.ticket.wait_here(PATIENCE), Err(StoreError::Held(_))));
        // It stood elsewhere when it was looked at.
        let (_, late) = store.acquire("s", former.fence(), None, &[told(3, "late")]);
        assert!(matches!(late.ticket.wait_here(PATIENCE), Err(StoreError::Held(_))));
        assert_eq!(lines_of(store, "s"), [opened(1), opened(2)]);
    });
}

/// What memory holds of closed sessions is bounded, in number and in bytes.
#[test]
fn closed_sessions_in_memory_are_bounded() {
    let store = MemoryStore::default();
    let open = acquired(&store, "open", &[opened(0)]);
    let close = |session: &str, at: Millis, line: Line| {
        let lease = acquired(&store, session, &[line]);
        store.release(&lease, at).wait_here(PATIENCE).expect("it is given back");
    };
    let names = || {
        let listed = store.list().expect("they can be read");
        listed.into_iter().map(|it| it.session).collect::<Vec<_>>()
    };
    for number in 0..memory::CLOSED_MAX as u64 {
        close(&format!("{number}"), number, opened(number));
    }
    // One that is opened and closed again is the latest.
    close("0", 10_000, told(10_000, "again"));
    assert_eq!(names().len(), memory::CLOSED_MAX + 1);
    close("one more", 10_001, opened(10_001));
    let left = names();
    assert_eq!(left.len(), memory::CLOSED_MAX + 1);
    assert!(!left.contains(&"1".to_owned()), "the quietest went");
    assert!(left.contains(&"0".to_owned()) && left.contains(&"open".to_owned()));
    assert_eq!(lines_of(&store, "1"), []);
    // One large one makes room for itself, and stays.
    close("large", 10_002, told(10_002, &"x".repeat(memory::CLOSED_BYTES_MAX + 1)));
    assert_eq!(names(), ["large", "open"]);
    close("small", 10_003, opened(10_003));
    assert_eq!(names(), ["open", "small"]);
    kept(&store.append(&open, &[told(1, "a")], When::Now));
}

#[test]
fn a_flush_covers_what_came_before_it() {
    with_each(|store| {
        let lease = acquired(store, "s", &[opened(1)]);
        let behind = store.append(&lease, &[told(2, "a")], When::Behind);
        store.flush().wait_here(PATIENCE).expect("it is flushed");
        assert_eq!(behind.ticket.outcome(), Some(Ok(())));
    });
}

#[test]
fn two_daemons_never_own_one_session() {
    let directory = tempfile::tempdir().expect("a directory");
    let (one, two) = (sqlite(directory.path()), sqlite(directory.path()));
    let lease = acquired(&one, "s", &[opened(1)]);
    match two.load("s") {
        Err(StoreError::Held(Some(holder))) => assert_eq!(holder.pid, std::process::id()),
        other => panic!("{other:?}"),
    }
    let forgotten = two.forget("s").wait_here(PATIENCE);
    assert!(matches!(forgotten, Err(StoreError::Held(_))), "{forgotten:?}");
    released(&one, &lease);
    acquired(&two, "s", &[opened(2)]);
    assert!(matches!(one.load("s"), Err(StoreError::Held(Some(_)))));
    // The end of a daemon gives everything back.
    two.close(PATIENCE);
    assert_eq!(lines_of(&one, "s"), [opened(1), opened(2)]);
}

#[test]
fn everything_is_there_again_after_a_restart() {
    let directory = tempfile::tempdir().expect("a directory");
    let lease = {
        let store = sqlite(directory.path());
        let lease = acquired(&store, "s", &[opened(1)]);
        store.append(&lease, &[told(2, "written behind")], When::Behind);
        lease
    };
    let store = sqlite(directory.path());
    let loaded = store.load("s").expect("it can be read");
    assert_eq!(loaded.lines, [opened(1), told(2, "written behind")]);
    assert_eq!(loaded.fence, lease.fence());
}

/// The names and bytes of every file below a directory.
fn files(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).expect("a directory").flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            let bytes = fs::read(&path).expect("a file");
            found.push((path.display().to_string(), bytes));
        }
    }
    found
}

fn holding(directory: &Path, text: &str) -> Vec<String> {
    let holds = |bytes: &[u8]| bytes.windows(text.len()).any(|part| part == text.as_bytes());
    files(directory).into_iter().filter(|(_, bytes)| holds(bytes)).map(|(name, _)| name).collect()
}

/// Bodies of all sizes, among those of other sessions, with snapshots that replaced some of them.
#[test]
fn nothing_of_what_is_forgotten_is_readable_in_any_file() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = sqlite(directory.path());
    let leases = ["s", "t", "u"].map(|session| acquired(&store, session, &[opened(1)]));
    for round in 0..40_usize {
        for (lease, word) in leases.iter().zip(["CANARY", "robin", "robin"]) {
            let text = word.repeat(1 + round * round);
            kept(&store.append(lease, &[told(2, &text)], When::Behind));
            if round % 15 == 14 {
                kept(&store.append(lease, &[snapshot()], When::Now));
            }
        }
    }
    assert!(!holding(directory.path(), "CANARY").is_empty(), "the canary was never written");
    store.forget("s").wait_here(PATIENCE).expect("it is erased");
    assert_eq!(holding(directory.path(), "CANARY"), Vec::<String>::new());
    assert!(!holding(directory.path(), "robin").is_empty(), "the others are still there");
}

/// Daemons that are killed never end in order, and none may live long enough to write as much as
/// makes it look after the log.
#[test]
fn what_killed_daemons_leave_in_the_log_is_worked_in() {
    let directory = tempfile::tempdir().expect("a directory");
    let log = directory.path().join(format!("{FILE}-wal"));
    let log_bytes = || fs::metadata(&log).map_or(0, |log| log.len());
    // Another connection reads, which keeps the log as it is when the store ends.
    let store = sqlite(directory.path());
    let lease = acquired(&store, "s", &[opened(1)]);
    let other = rusqlite::Connection::open(directory.path().join(FILE)).expect("it opens");
    let read = "BEGIN; SELECT count(*) FROM lines";
    other.execute_batch(read).expect("it reads");
    for at in 0..40 {
        kept(&store.append(&lease, &[told(at, &"x".repeat(500_000))], When::Now));
    }
    drop(store);
    other.execute_batch("ROLLBACK").expect("it ends");
    let before = log_bytes();
    assert!(before > 20_000_000, "{before}");
    let store = sqlite(directory.path());
    let until = std::time::Instant::now() + PATIENCE;
    // The next line behind that begins the log anew.
    while log_bytes() >= before {
        assert!(std::time::Instant::now() < until, "the log is as long as before");
        acquired(&store, "t", &[opened(1)]);
        std::thread::yield_now();
    }
    assert_eq!(lines_of(&store, "s").len(), 41);
}

#[test]
fn nobody_else_may_look_into_it() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = tempfile::tempdir().expect("a directory");
    let directory = home.path().join("state").join("reminderd");
    let store = sqlite(&directory);
    acquired(&store, "s", &[opened(1)]);
    let mode = |path: &Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    assert_eq!(mode(&directory), 0o700);
    let found = files(&directory);
    assert!(found.len() >= 3, "{:?}", found.iter().map(|(name, _)| name).collect::<Vec<_>>());
    for (name, _) in found {
        assert_eq!(mode(Path::new(&name)), 0o600, "{name}");
    }
}

#[test]
fn a_newer_file_is_refused_and_left_as_it_is() {
    let directory = tempfile::tempdir().expect("a directory");
    drop(sqlite(directory.path()));
    let path = directory.path().join(FILE);
    let connection = rusqlite::Connection::open(&path).expect("it opens");
    connection.pragma_update(None, "user_version", 99).expect("it can be written");
    connection.close().expect("it closes");
    let before = fs::read(&path).expect("a file");
    let refused = SqliteStore::open(directory.path(), Options::default()).expect_err("newer");
    assert!(refused.to_string().contains("a newer reminderd"), "{refused}");
    assert_eq!(fs::read(&path).expect("a file"), before);
}

#[test]
fn a_database_of_another_program_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let connection = rusqlite::Connection::open(directory.path().join(FILE)).expect("it opens");
    connection.execute_batch("CREATE TABLE theirs (a)").expect("it can be written");
    connection.close().expect("it closes");
    let refused = SqliteStore::open(directory.path(), Options::default()).expect_err("theirs");
    assert!(refused.to_string().contains("another program"), "{refused}");
}

#[test]
fn a_damaged_file_is_set_aside_whole() {
    let directory = tempfile::tempdir().expect("a directory");
    drop(sqlite(directory.path()));
    let garbage = b"no database at all, but text that somebody wrote over it ".repeat(200);
    fs::write(directory.path().join(FILE), &garbage).expect("it can be written");
    let store = sqlite(directory.path());
    acquired(&store, "s", &[opened(1)]);
    // Its log may stand beside it.
    let is_it = |name: &str| {
        name.contains("damaged-") && !name.ends_with("-wal") && !name.ends_with("-shm")
    };
    let aside = files(directory.path()).into_iter().find(|(name, _)| is_it(name));
    assert!(aside.expect("it is set aside").1 == garbage, "it is not what was there");
}

#[test]
fn a_place_that_cannot_be_written_is_said() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("file");
    fs::write(&file, "").expect("it can be written");
    let refused = SqliteStore::open(&file.join("below"), Options::default()).expect_err("no place");
    assert!(refused.to_string().contains("--ephemeral"), "{refused}");
}

#[test]
fn while_another_process_holds_the_lock_nothing_is_kept_and_a_snapshot_mends_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = sqlite(directory.path());
    let lease = acquired(&store, "s", &[opened(1)]);
    let other = rusqlite::Connection::open(directory.path().join(FILE)).expect("it opens");
    other.execute_batch("BEGIN IMMEDIATE").expect("it locks");
    let lost = store.append(&lease, &[told(2, "lost")], When::Now).ticket.wait_here(PATIENCE);
    assert!(matches!(&lost, Err(StoreError::Failed(why)) if why.contains("lock")), "{lost:?}");
    assert_eq!(lease.lost(), Lost::Failed);
    assert!(store.trouble().is_some());
    other.execute_batch("ROLLBACK").expect("it unlocks");
    // What comes behind lost lines is lost too.
    let behind = store.append(&lease, &[told(3, "behind")], When::Now).ticket.wait_here(PATIENCE);
    assert!(behind.is_err(), "{behind:?}");
    lease.make_good();
    kept(&store.append(&lease, &[snapshot(), told(4, "after")], When::Now));
    assert_eq!(lines_of(&store, "s"), [snapshot(), told(4, "after")]);
    assert_eq!(store.trouble(), None);
}

#[test]
fn the_quietest_sessions_go_when_there_are_too_many() {
    let directory = tempfile::tempdir().expect("a directory");
    let now = 4_000_000_000_000;
    {
        let store = sqlite(directory.path());
        for (session, at) in [("old", 1), ("quiet", now), ("held", 2), ("new", now + 1)] {
            acquired(&store, session, &[opened(at)]);
        }
    }
    let store = sqlite(directory.path());
    acquired(&store, "held", &[]);
    let options = Options { sessions: 2, ..Options::default() };
    let removed = sqlite::removed_by(&store, directory.path(), options);
    assert_eq!(removed, 2);
    let left: Vec<_> = store.list().expect("a list").into_iter().map(|it| it.session).collect();
    assert_eq!(left, ["held", "new"]);
}

#[test]
fn people_can_ask_what_a_model_was_told() {
    use crate::engine::{Entry, Form, Ordinals, Phase, Record};
    let directory = tempfile::tempdir().expect("a directory");
    let store = sqlite(directory.path());
    let entry = |id: &str, body: &str| Entry {
        id: id.to_owned(),
        entry_type: "note".to_owned(),
        key: None,
        kind: "staged".to_owned(),
        label: "note".to_owned(),
        body: body.to_owned(),
        fingerprint: String::new(),
        marks: Vec::new(),
    };
    let Line::Committed(mut commit) = committed(1_767_225_600_000, "t") else { unreachable!() };
    commit.record = Some(Record {
        id: "r".to_owned(),
        session: "s".to_owned(),
        agent: ScopePath::ROOT,
        turn: "1".to_owned(),
        phase: Phase::TurnStart,
        form: Form::Blocks,
        ordinals: Ordinals::default(),
        entries: vec![entry("r.1", "one"), entry("r.2", "two")],
        silent: Vec::new(),
        digest: String::new(),
    });
    acquired(&store, "s", &[opened(1), Line::Committed(commit)]);
    let reader = rusqlite::Connection::open(directory.path().join(FILE)).expect("it opens");
    let mut rows = reader
        .prepare("SELECT session, at, turn, phase, type, body FROM deliveries")
        .expect("the view is there");
    let rows = rows.query_map([], |row| {
        let columns: Result<Vec<String>, _> = (0..6).map(|column| row.get(column)).collect();
        Ok(columns?.join(" "))
    });
    let rows: Vec<_> = rows.expect("rows").map(|row| row.expect("a row")).collect();
    let told = |body| format!("s 2026-01-01T00:00:00.000Z 1 turn-start note {body}");
    assert_eq!(rows, [told("one"), told("two")]);
    let held: (String, i64, u32) = reader
        .query_row("SELECT session, commits, held_by FROM sessions", [], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })
        .expect("the view is there");
    assert_eq!(held, ("s".to_owned(), 1, std::process::id()));
}
