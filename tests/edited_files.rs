//! Watched files on a real file system: what reports of faults in other programs taught
//! (`reminders.md` §5). Everything is looked at with and without the watcher, and with few files and
//! after a barrier.

use std::fs::{self, File, FileTimes};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use reminderd::engine::{Author, Change, DiffLimits, FileState, ScopePath};
use reminderd::files::secrecy::{self, Secrecy};
use reminderd::files::{Bounds, Desk, Difference, Files, Options};
use tempfile::TempDir;

const ROOT: ScopePath = ScopePath::ROOT;

/// A session with a directory of its own.
struct Session {
    _home: TempDir,
    root: PathBuf,
    files: Arc<Files>,
    desk: Arc<Desk>,
}

impl Session {
    fn new(options: Options, bounds: Bounds) -> Self {
        let home = tempfile::tempdir().expect("there is room");
        let root = fs::canonicalize(home.path()).expect("it was made").join("w");
        fs::create_dir(&root).expect("it can be made");
        let files = Files::new(options);
        let desk = open(&files, "s", &root, bounds);
        Self { _home: home, root, files, desk }
    }

    fn path(&self, name: &str) -> String {
        self.root.join(name).to_str().expect("it is text").to_owned()
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path(name), content).expect("it can be written");
    }

    /// The agent reads files.
    fn read<'a>(&self, names: impl IntoIterator<Item = &'a str>) {
        for name in names {
            let seen = self.desk.look(&ROOT, &self.path(name));
            self.desk.learn(&ROOT, &self.path(name), Some(&seen.state));
        }
    }

    /// The agent writes a file.
    fn wrote(&self, scope: &ScopePath, name: &str, content: &str) {
        self.write(name, content);
        let seen = self.desk.look(scope, &self.path(name));
        self.desk.wrote(scope, &self.path(name), &seen.state);
        self.desk.learn(scope, &self.path(name), Some(&seen.state));
    }

    fn git(&self, arguments: &[&str]) {
        let output = Command::new("git")
            .args(["-c", "user.name=x", "-c", "user.email=x@example.org"])
            .args(["-c", "init.defaultBranch=main", "-c", "commit.gpgSign=false"])
            .args(arguments)
            .current_dir(&self.root)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .output()
            .expect("git is there");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    fn differences(&self) -> Vec<Difference> {
        let deadline = Instant::now() + Duration::from_secs(30);
        self.desk.compare(&ROOT, deadline, &|| false)
    }

    /// The names that differ, sorted, each with what stands there; nothing of it is told.
    fn wait(&self) -> Vec<String> {
        let differences = self.differences().into_iter().flat_map(|difference| {
            let said = said(&difference);
            difference.paths.into_iter().map(move |path| {
                let name = Path::new(&path).strip_prefix(&self.root).expect("it lies there");
                format!("{} {said}", name.display())
            })
        });
        let mut differences: Vec<_> = differences.collect();
        differences.sort();
        differences
    }

    /// The same, and it is told.
    fn wait_and_commit(&self) -> Vec<String> {
        let told = self.wait();
        for difference in self.differences() {
            for path in &difference.paths {
                self.desk.learn(&ROOT, path, Some(&difference.now));
            }
        }
        told
    }
}

fn open(files: &Arc<Files>, session: &str, root: &Path, bounds: Bounds) -> Arc<Desk> {
    let options = secrecy::Options { own: vec!["own".to_owned()], ..secrecy::Options::default() };
    files.open(session, Arc::new(Secrecy::new(Some(root), &options)), bounds)
}

fn said(difference: &Difference) -> String {
    match &difference.now {
        FileState::Missing => "is gone".to_owned(),
        FileState::File { bytes: 0, .. } => "is empty".to_owned(),
        FileState::File { .. } if difference.was == FileState::Missing => "is there".to_owned(),
        FileState::File { .. } => "changed".to_owned(),
        FileState::Other(kind) => format!("is {kind}"),
        FileState::Unreadable(reason) => format!("cannot be read: {reason}"),
    }
}

/// Every way to look, with nothing waited for where a test does not need it.
fn ways() -> Vec<Session> {
    let quick = Options { quiet: Duration::ZERO, settle: Duration::ZERO, ..Options::default() };
    [(true, usize::MAX), (true, 0), (false, usize::MAX)]
        .into_iter()
        .map(|(watches, small)| {
            Session::new(Options { watches, small, ..quick.clone() }, Bounds::default())
        })
        .collect()
}

const NOTHING: [&str; 0] = [];

/// B021, B028, B030: what is not content says nothing, nor what went there and back.
#[test]
fn only_content_counts() {
    for session in ways() {
        session.write("a", "one\ntwo\n".repeat(2500));
        session.read(["a"]);
        session.write("a", "one\ntwo\n".repeat(2500));
        assert_eq!(session.wait(), NOTHING);
        session.write("a", "one\r\ntwo\r\n".repeat(2500));
        assert_eq!(session.wait(), NOTHING);
        session.write("a", format!("\u{feff}{}", "one\ntwo\n".repeat(2500)));
        assert_eq!(session.wait(), NOTHING);
        fs::set_permissions(session.path("a"), fs::Permissions::from_mode(0o755))
            .expect("it is ours");
        assert_eq!(session.wait(), NOTHING);
        session.write("a", "three\n");
        assert_eq!(session.wait(), ["a changed"]);
        session.write("a", "one\ntwo\n".repeat(2500));
        assert_eq!(session.wait(), NOTHING);
    }
}

/// B023, B025: own writes never come back; a formatter's do.
#[test]
fn own_writes_never_come_back() {
    for session in ways() {
        session.write("a", "one\n");
        session.read(["a"]);
        session.wrote(&ROOT, "a", "two\n");
        session.files.hint(&session.path("a"));
        assert_eq!(session.wait(), NOTHING);
        // The event comes first.
        session.write("a", "three\n");
        session.files.hint(&session.path("a"));
        session.wrote(&ROOT, "a", "three\n");
        assert_eq!(session.wait(), NOTHING);
        session.write("a", "three, formatted\n");
        let differences = session.differences();
        assert_eq!(differences.len(), 1);
        assert_eq!(differences[0].author, Author::Outside);
        let contents = [&differences[0].old, &differences[0].new]
            .map(|content| content.as_ref().expect("it is kept").read());
        assert_eq!([&**contents[0], &**contents[1]], [&b"three\n"[..], b"three, formatted\n"]);
    }
}

#[test]
fn who_did_it_is_said_where_it_is_known() {
    for session in ways() {
        for name in ["a", "b", "c", "d"] {
            session.write(name, "one\n");
        }
        session.read(["a", "b", "c", "d"]);
        let agent = ScopePath::agent("/x").expect("it is one");
        session.wrote(&agent, "a", "by an agent\n");
        let other = open(&session.files, "t", &session.root, Bounds::default());
        session.write("b", "by another session\n");
        let seen = other.look(&ROOT, &session.path("b"));
        other.wrote(&ROOT, &session.path("b"), &seen.state);
        session.write("c", "by the person\n");
        session.files.saved_by_person(&session.path("c"), None);
        session.write("d", "by somebody\n");
        let authors: Vec<_> =
            session.differences().into_iter().map(|difference| difference.author).collect();
        assert_eq!(
            authors,
            [Author::Agent(agent), Author::OtherSession, Author::Person, Author::Outside]
        );
    }
}

/// B032: truncated and written again a moment later is one change.
#[test]
fn a_save_in_progress_is_waited_for() {
    for (watches, small) in [(true, usize::MAX), (true, 0), (false, usize::MAX)] {
        // The machine may be busy: the writer gets more time than it has in earnest.
        let options = Options {
            watches,
            small,
            quiet: Duration::from_secs(2),
            settle: Duration::from_secs(30),
            ..Options::default()
        };
        let session = Session::new(options, Bounds::default());
        for name in ["a", "b"] {
            session.write(name, "one\n");
        }
        session.read(["a", "b"]);
        session.write("a", "");
        fs::remove_file(session.path("b")).expect("it was there");
        let questions = AtomicUsize::new(0);
        thread::scope(|scope| {
            scope.spawn(|| {
                // One question comes before each look; at the third both were looked at.
                while questions.load(Ordering::Relaxed) < 3 {
                    thread::yield_now();
                }
                session.write("a", "two\n");
                session.write("b", "two\n");
            });
            let deadline = Instant::now() + Duration::from_secs(60);
            let is_cancelled = || {
                questions.fetch_add(1, Ordering::Relaxed);
                false
            };
            let found = session.desk.compare(&ROOT, deadline, &is_cancelled);
            let found: Vec<_> = found.iter().map(said).collect();
            assert_eq!(found, ["changed", "changed"]);
        });
    }
}

/// What stays missing or empty is told, after one window for all such files.
#[test]
fn what_stays_gone_or_empty_is_told_after_one_window() {
    let session = Session::new(Options::default(), Bounds::default());
    let names: Vec<_> = (0..40).map(|number| format!("f{number:02}")).collect();
    for name in &names {
        session.write(name, "one\n");
    }
    session.read(names.iter().map(String::as_str));
    for (number, name) in names.iter().enumerate() {
        if number % 2 == 0 {
            fs::remove_file(session.path(name)).expect("it was there");
        } else {
            session.write(name, "");
        }
    }
    let began = Instant::now();
    let told = session.wait();
    let took = began.elapsed();
    assert!(took >= Duration::from_millis(60), "{took:?}");
    assert!(took < Duration::from_secs(4), "{took:?}: one window a file");
    assert_eq!(told.len(), 40);
    assert_eq!(told[..2], ["f00 is gone", "f01 is empty"]);
}

/// B037: one identity by the real path; the name is the session's.
#[test]
fn a_link_and_its_target_are_one_file() {
    for session in ways() {
        session.write("a", "one\n");
        session.write("b", "another\n");
        let outside = session.root.with_file_name("outside");
        fs::write(&outside, "secret\n").expect("it can be written");
        symlink("a", session.path("link")).expect("it can be linked");
        session.read(["link"]);
        session.wrote(&ROOT, "a", "two\n");
        assert_eq!(session.wait(), NOTHING);
        session.write("a", "three\n");
        let differences = session.differences();
        assert_eq!(differences.len(), 1);
        assert_eq!(differences[0].paths, [session.path("a"), session.path("link")]);
        assert_eq!(differences[0].real, Path::new(&session.path("a")));
        session.wait_and_commit();
        let retarget = |target: &Path| {
            fs::remove_file(session.path("link")).expect("it was there");
            symlink(target, session.path("link")).expect("it can be linked");
        };
        retarget(Path::new("b"));
        assert_eq!(session.wait_and_commit(), ["link changed"]);
        retarget(&outside);
        assert_eq!(session.wait_and_commit(), ["link changed"]);
        fs::remove_file(&outside).expect("it was there");
        assert_eq!(session.wait_and_commit(), ["link is gone"]);
        assert_eq!(session.wait(), NOTHING);
    }
}

/// B038: deleted once, back again, and back before it was told.
#[test]
fn a_deletion_is_told_once_and_so_is_the_return() {
    for session in ways() {
        session.write("a", "one\n");
        session.read(["a"]);
        let remove = || fs::remove_file(session.path("a")).expect("it was there");
        remove();
        assert_eq!(session.wait_and_commit(), ["a is gone"]);
        assert_eq!(session.wait(), NOTHING);
        session.write("a", "one\n");
        assert_eq!(session.wait_and_commit(), ["a is there"]);
        remove();
        assert_eq!(session.wait(), ["a is gone"]);
        session.write("a", "one\n");
        assert_eq!(session.wait(), NOTHING);
    }
}

/// B041: one difference from what was told last to now.
#[test]
fn many_edits_are_one_difference() {
    for session in ways() {
        session.write("a", "one\n");
        session.read(["a"]);
        for text in ["two\n", "three\n", "four\n"] {
            session.write("a", text);
            session.wait();
        }
        let differences = session.differences();
        let old = differences[0].old.as_ref().expect("it is kept").read();
        let new = differences[0].new.as_ref().expect("it is kept").read();
        assert_eq!((&**old, &**new), (&b"one\n"[..], &b"four\n"[..]));
        // What is told is what was compared; what came after that is the next report.
        session.write("a", "five\n");
        session.desk.learn(&ROOT, &session.path("a"), Some(&differences[0].now));
        let old = session.differences()[0].old.as_ref().expect("it is kept").read();
        assert_eq!(&*old, b"four\n");
    }
}

/// B132, B138, B142: renamed over, made just now, removed with its directory and made again.
#[test]
fn directories_are_followed_through_everything() {
    for session in ways() {
        let directory = session.path("d");
        fs::create_dir(&directory).expect("it can be made");
        session.write("d/a", "one\n");
        session.read(["d/a"]);
        session.write("d/a", "at once\n");
        assert_eq!(session.wait_and_commit(), ["d/a changed"]);
        for text in ["two\n", "three\n"] {
            session.write("d/a.tmp", text);
            fs::rename(session.path("d/a.tmp"), session.path("d/a")).expect("it is ours");
            assert_eq!(session.wait_and_commit(), ["d/a changed"]);
        }
        fs::remove_dir_all(&directory).expect("it was there");
        fs::create_dir(&directory).expect("it can be made");
        session.write("d/a", "new\n");
        assert_eq!(session.wait_and_commit(), ["d/a changed"]);
        session.write("d/a", "newer\n");
        assert_eq!(session.wait_and_commit(), ["d/a changed"]);
        // The root itself goes.
        fs::remove_dir_all(&session.root).expect("it was there");
        assert_eq!(session.wait_and_commit(), ["d/a is gone"]);
        fs::create_dir_all(&directory).expect("it can be made");
        session.write("d/a", "newest\n");
        assert_eq!(session.wait_and_commit(), ["d/a is there"]);
        assert_eq!(session.wait(), NOTHING);
    }
}

/// A same-size edit whose old time was put back.
#[test]
fn an_old_time_hides_nothing() {
    for session in ways() {
        session.write("a", "one\n");
        session.read(["a"]);
        let before =
            fs::metadata(session.path("a")).and_then(|a| a.modified()).expect("it has one");
        session.write("a", "two\n");
        let file = File::options().write(true).open(session.path("a")).expect("it is there");
        file.set_times(FileTimes::new().set_modified(before)).expect("it is ours");
        session.files.hint(&session.path("a"));
        assert_eq!(session.wait(), ["a changed"]);
    }
}

/// Only regular files are opened, and nothing blocks.
#[test]
fn what_is_no_file_is_said_and_not_opened() {
    for session in ways() {
        let names = ["fifo", "directory", "socket", "loop"];
        for name in names {
            session.write(name, "one\n");
        }
        session.read(names);
        for name in names {
            fs::remove_file(session.path(name)).expect("it was there");
        }
        let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU);
        rustix::fs::mknodat(rustix::fs::CWD, session.path("fifo"), kind, mode, 0)
            .expect("it can be made");
        fs::create_dir(session.path("directory")).expect("it can be made");
        let _socket =
            std::os::unix::net::UnixListener::bind(session.path("socket")).expect("it is free");
        symlink("loop", session.path("loop")).expect("it can be linked");
        let told = session.wait_and_commit();
        assert_eq!(told[..2], ["directory is a directory", "fifo is a FIFO"]);
        assert!(told[2].starts_with("loop cannot be read: filesystem loop"), "{}", told[2]);
        assert_eq!(told[3..], ["socket is a socket"]);
        assert_eq!(session.wait(), NOTHING);
        let seen = session.desk.look(&ROOT, "/dev/null");
        assert_eq!(seen.state, FileState::Other("a device".to_owned()));
    }
}

/// Larger files are compared by their fingerprints; of secrets nothing else is kept either.
#[test]
fn some_contents_are_never_kept() {
    for session in ways() {
        let large = "a line of text\n".repeat(80_000);
        session.write("large", &large);
        session.write(".env", "KEY=canary\n");
        session.write("kept", "one\n");
        session.read(["large", ".env", "kept"]);
        assert_eq!(session.files.weight().contents, 1);
        assert_eq!(session.wait(), NOTHING);
        session.write("large", large.replace('\n', "\r\n"));
        assert_eq!(session.wait(), NOTHING);
        session.write("large", format!("{large}and one more\n"));
        session.write(".env", "KEY=other canary\n");
        assert_eq!(session.wait(), [".env changed", "large changed"]);
        for difference in session.differences() {
            assert!(difference.old.is_none() && difference.new.is_none());
        }
        assert_eq!(session.files.weight().contents, 1);
        // Text that the client gives is no exception.
        session.desk.given(&ROOT, &session.path(".env"), "KEY=given canary\n");
        assert_eq!(session.files.weight().contents, 1);
    }
}

#[test]
fn text_that_the_client_gives_is_what_is_known() {
    for session in ways() {
        session.write("a", "on disk\n");
        let seen = session.desk.given(&ROOT, &session.path("a"), "as given\n");
        session.desk.learn(&ROOT, &session.path("a"), Some(&seen.state));
        assert_eq!(session.wait(), ["a changed"]);
        let old = session.differences()[0].old.as_ref().expect("it is kept").read();
        assert_eq!(&*old, b"as given\n");
        session.write("a", "as given\r\n");
        assert_eq!(session.wait(), NOTHING);
    }
}

#[test]
fn what_is_kept_and_watched_is_bounded_and_counted() {
    let bounds = Bounds { file_bytes: 100, bytes: 1000, contents: 5, watched: 8 };
    let session = Session::new(Options::default(), bounds);
    let names: Vec<_> = (0..20).map(|number| format!("f{number:02}")).collect();
    for name in &names {
        session.write(name, format!("content of {name}\n"));
    }
    session.read(names.iter().map(String::as_str));
    let count = session.desk.count();
    assert_eq!((count.watched, count.contents, count.dropped), (8, 5, 12));
    for name in &names {
        session.write(name, "other\n");
    }
    let differences = session.differences();
    assert_eq!(differences.len(), 8);
    // The last five are those whose content is kept; all are named.
    let kept: Vec<_> = differences.iter().map(|difference| difference.old.is_some()).collect();
    assert_eq!(kept, [false, false, false, true, true, true, true, true]);
    drop(differences);
    // By bytes.
    session.desk.set_bounds(Bounds { bytes: 40, ..bounds });
    assert_eq!(session.desk.count().contents, 2);
    session.desk.learn(&ROOT, &session.path("f19"), None);
    assert_eq!(session.desk.count().watched, 7);
    session.desk.forget_scope(&ROOT);
    assert_eq!(session.desk.count().watched, 0);
    assert_eq!(session.files.weight().contents, 0);
    assert_eq!(session.files.health().map(|health| health.directories), Some(0));
}

/// The same bytes are held once for all sessions.
#[test]
fn sessions_share_contents() {
    let session = Session::new(Options::default(), Bounds::default());
    let other = open(&session.files, "t", &session.root, Bounds::default());
    for name in ["a", "b"] {
        session.write(name, "the same\n");
        session.read([name]);
        let seen = other.look(&ROOT, &session.path(name));
        other.learn(&ROOT, &session.path(name), Some(&seen.state));
    }
    assert_eq!(session.files.weight().contents, 1);
    drop(session.desk);
    assert_eq!(session.files.weight().contents, 1);
    drop(other);
    assert_eq!(session.files.weight().contents, 0);
}

#[test]
fn bookkeeping_is_never_watched() {
    let session = Session::new(Options::default(), Bounds::default());
    fs::create_dir(session.path("own")).expect("it can be made");
    symlink("own", session.path("alias")).expect("it can be linked");
    for (name, may) in [("own/log", false), ("alias/log", false), ("ownership", true)] {
        assert_eq!(session.desk.may_watch(&session.path(name)), may, "{name}");
    }
}

/// B145: a branch is switched and switched back.
#[test]
fn a_branch_is_switched_and_switched_back() {
    for session in ways() {
        let git = |arguments: &[&str]| session.git(arguments);
        let names: Vec<_> = (0..40).map(|number| format!("d{}/f{number:02}", number % 4)).collect();
        for directory in ["d0", "d1", "d2", "d3"] {
            fs::create_dir(session.path(directory)).expect("it can be made");
        }
        let write_all = |text: &str, count: usize| {
            names
                .iter()
                .take(count)
                .for_each(|name| session.write(name, format!("{text} {name}\n")));
        };
        write_all("main", 40);
        git(&["init", "-q"]);
        git(&["add", "."]);
        git(&["commit", "-qm", "main"]);
        git(&["switch", "-qc", "other"]);
        write_all("other", 28);
        git(&["rm", "-q", names[28].as_str(), names[29].as_str()]);
        git(&["add", "."]);
        git(&["commit", "-qm", "other"]);
        git(&["switch", "-q", "main"]);
        session.read(names.iter().map(String::as_str));
        assert_eq!(session.wait(), NOTHING);
        git(&["switch", "-q", "other"]);
        git(&["switch", "-q", "main"]);
        assert_eq!(session.wait(), NOTHING);
        git(&["switch", "-q", "other"]);
        assert_eq!(session.wait_and_commit().len(), 30);
        assert_eq!(session.wait(), NOTHING);
        git(&["switch", "-q", "main"]);
        let told = session.wait_and_commit();
        assert_eq!(told.iter().filter(|told| told.ends_with("is there")).count(), 2);
        assert_eq!(told.len(), 30);
    }
}

/// B136: what lies around a watched file costs nothing.
#[test]
fn no_tree_is_walked() {
    let session = Session::new(Options::default(), Bounds::default());
    for number in 0..300 {
        let directory = session.path(&format!("node_modules/p{number}/lib"));
        fs::create_dir_all(directory).expect("it can be made");
    }
    assert_eq!(session.files.health().map(|health| health.directories), Some(0));
    session.write("a", "one\n");
    session.read(["a"]);
    assert_eq!(session.files.health().map(|health| health.directories), Some(1));
}

/// B144: a flood of events for a few files.
#[test]
fn a_flood_of_events_is_coalesced() {
    let session = Session::new(Options { small: 0, ..Options::default() }, Bounds::default());
    let names = ["a", "b", "c", "d", "e"];
    for name in names {
        session.write(name, "one\n");
    }
    session.read(names);
    let changes = session.files.changes();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..20_000 {
                for name in names {
                    session.write(name, format!("{number}\n"));
                }
            }
            is_over.store(true, Ordering::Relaxed);
        });
        let mut waits = 0;
        while !is_over.load(Ordering::Relaxed) {
            let began = Instant::now();
            session.differences();
            waits += 1;
            assert!(began.elapsed() < Duration::from_secs(10), "a WAIT hangs in the flood");
        }
        assert!(waits > 0);
    });
    assert_eq!(session.wait().len(), 5);
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("it can be made");
    let heard = runtime.block_on(changes.next());
    assert_eq!(heard.len(), 5);
    assert_eq!(session.desk.spellings(&heard[0]), [session.path("a")]);
}

/// A comparison that nobody waits for any more ends.
#[test]
fn a_cancelled_comparison_finds_nothing_and_loses_nothing() {
    for session in ways() {
        session.write("a", "one\n");
        session.read(["a"]);
        session.write("a", "two\n");
        let deadline = Instant::now() + Duration::from_secs(30);
        assert!(session.desk.compare(&ROOT, deadline, &|| true).is_empty());
        assert!(session.desk.compare(&ROOT, Instant::now(), &|| false).is_empty());
        assert_eq!(session.wait(), ["a changed"]);
    }
}

/// B034, B035, B037: what is told of each kind of change.
#[test]
fn what_is_told_of_a_change_is_what_may_be_and_fits() {
    for session in ways() {
        let outside = session.root.with_file_name("outside");
        fs::write(&outside, "canary\n").expect("it can be written");
        symlink("inside", session.path("link")).expect("it can be linked");
        let lines = |count: u32| (0..count).map(|it| it.to_string() + "\n").collect::<String>();
        let contents: [(&str, &[u8]); 9] = [
            (".env", b"KEY=canary\n"),
            ("Cargo.lock", &lines(3000).into_bytes()),
            ("a", b"one\ntwo\nthree\n"),
            ("binary", b"a\0b"),
            ("gone", b"one\n"),
            ("ignored", b"canary\n"),
            ("inside", b"one\n"),
            ("latin", b"caf\xe9\n1\n2\n3\n4\n5\n6\n7\n8\n"),
            ("large", &lines(100_000).into_bytes()),
        ];
        session.git(&["init", "-q"]);
        session.write(".gitignore", "ignored\n");
        for (name, content) in contents {
            session.write(name, content);
        }
        session.read(contents.map(|(name, _)| name).into_iter().chain(["link"]));
        fs::remove_file(session.path("link")).expect("it was there");
        symlink(&outside, session.path("link")).expect("it can be linked");
        for (name, content) in contents {
            session.write(name, [content, b"other canary\n"].concat());
        }
        session.write("a", "one\n2\nthree\n");
        session.write("latin", b"caf\xe9\n1\n2\n3\n4\n5\n6\n7\nnine\n");
        session.write("binary", b"a\0c");
        fs::remove_file(session.path("gone")).expect("it was there");
        let deadline = Instant::now() + Duration::from_secs(30);
        let edited = session.desk.edited(session.differences(), &DiffLimits::default(), deadline);
        let told: Vec<_> = edited
            .iter()
            .map(|edited| {
                let name = Path::new(&edited.paths[0]).file_name().expect("it has one");
                let change = match &edited.change {
                    Change::Diff { text, omitted: 0 } => text.clone(),
                    Change::Diff { .. } => "cut".to_owned(),
                    Change::Withheld(reason) => reason.clone(),
                };
                (name.to_str().expect("it is text"), change)
            })
            .collect();
        let expected = [
            (".env", "it matches a secret pattern"),
            ("Cargo.lock", "it is generated, 13903 bytes"),
            ("a", "@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"),
            ("binary", "it is binary, 3 bytes"),
            ("gone", "it is gone"),
            ("ignored", "git ignores it"),
            ("inside", "@@ -1 +1,2 @@\n one\n+other canary\n"),
            ("large", "it is too large for a diff, 588903 bytes"),
            ("latin", "@@ -6,4 +6,4 @@\n 5\n 6\n 7\n-8\n+nine\n"),
            ("link", "it is a link that leaves the root"),
        ];
        let told: Vec<_> = told.iter().map(|(name, change)| (*name, change.as_str())).collect();
        assert_eq!(told, expected);
        // What is back is shown whole, as far as it fits.
        session.wait_and_commit();
        session.write("gone", lines(50));
        let edited = session.desk.edited(session.differences(), &DiffLimits::default(), deadline);
        assert!(matches!(edited[0].change, Change::Diff { omitted: 10, .. }), "{edited:?}");
    }
}

/// A hard link that is made later raises no event where the file is watched, nor does what is written
/// through it.
#[test]
fn what_is_written_without_an_event_is_found_in_turn() {
    let options = Options {
        small: 0,
        fresh: Duration::ZERO,
        quiet: Duration::ZERO,
        settle: Duration::ZERO,
        ..Options::default()
    };
    let session = Session::new(options, Bounds::default());
    let names: Vec<_> = (0..200).map(|number| format!("d/f{number:03}")).collect();
    fs::create_dir(session.path("d")).expect("it can be made");
    for name in &names {
        session.write(name, "one\n");
    }
    session.read(names.iter().map(String::as_str));
    session.wait();
    // Another name, in a directory that nobody watches, through which the file is written.
    let other = session.root.with_file_name("other");
    fs::hard_link(session.path("d/f100"), &other).expect("it can be linked");
    fs::write(&other, "two\n").expect("it can be written");
    let told = (0..10).map(|_| session.wait()).find(|told| !told.is_empty());
    assert_eq!(told, Some(vec!["d/f100 changed".to_owned()]));
}
