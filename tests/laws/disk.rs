//! Law 6: the same differences are found with the watcher off, on, and with hints that are late,
//! doubled, shuffled or about nothing, on a real directory; and they are those that a model finds
//! that reads every file every time.

use std::collections::BTreeMap;
use std::fs::{self, File, FileTimes};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use proptest::prelude::*;
use reminderd::engine::{FileState, ScopePath};
use reminderd::files::secrecy::{self, Secrecy};
use reminderd::files::{Bounds, Desk, Files, Options};
use tempfile::TempDir;

use crate::law;
use crate::world::{Outcome, ensure};

/// Longer than a tick of the file system's clock.
const FRESH: Duration = Duration::from_millis(12);

/// Files by number: two directories with three each.
const FILES: [&str; 6] = ["d0/a", "d0/b", "d0/c", "d1/a", "d1/b", "d1/c"];
/// What is watched besides: a link to a file, a file in a linked directory, a second name whose
/// file has another name outside, and a file that is not there at first.
const MORE: [&str; 4] = ["link", "linked/a", "hard", "d0/later"];

#[derive(Clone, Copy, Debug)]
enum Operation {
    Write(usize, u8),
    /// The same size, with its old time put back.
    Sneak(usize, u8),
    /// As many editors save: another file takes its name.
    Replace(usize, u8),
    Remove(usize),
    Touch(usize),
    Mode(usize),
    LineEndings(usize),
    Mark(usize),
    Directory(usize),
    Fifo(usize),
    Retarget(usize),
    HardLink(u8),
    /// A directory is removed and made again, with other files.
    Remake(usize, u8),
    /// The two directories swap names.
    Swap,
    /// All of it moves away and comes back.
    Move,
    /// Time passes, until stamps vouch for what was written.
    Age,
    Hint(usize),
    /// A WAIT, whose differences are told or not.
    Wait(bool),
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let file = || 0..FILES.len() + MORE.len();
    let operation = prop_oneof![
        4 => (file(), 0..4_u8).prop_map(|(file, text)| Operation::Write(file, text)),
        2 => (file(), 0..4_u8).prop_map(|(file, text)| Operation::Sneak(file, text)),
        3 => (file(), 0..4_u8).prop_map(|(file, text)| Operation::Replace(file, text)),
        2 => file().prop_map(Operation::Remove),
        1 => file().prop_map(Operation::Touch),
        1 => file().prop_map(Operation::Mode),
        1 => file().prop_map(Operation::LineEndings),
        1 => file().prop_map(Operation::Mark),
        1 => file().prop_map(Operation::Directory),
        1 => file().prop_map(Operation::Fifo),
        1 => (0..FILES.len()).prop_map(Operation::Retarget),
        1 => (0..4_u8).prop_map(Operation::HardLink),
        1 => (0..2_usize, 0..4_u8).prop_map(|(directory, text)| Operation::Remake(directory, text)),
        1 => Just(Operation::Swap),
        1 => Just(Operation::Move),
        2 => Just(Operation::Age),
        3 => file().prop_map(Operation::Hint),
        6 => any::<bool>().prop_map(Operation::Wait),
    ];
    prop::collection::vec(operation, 1..60)
}

/// The directory that everybody looks at.
struct Place {
    home: TempDir,
    root: PathBuf,
}

impl Place {
    fn new() -> Self {
        let home = tempfile::tempdir().expect("there is room");
        let root = fs::canonicalize(home.path()).expect("it was made").join("root");
        for directory in ["d0", "d1", "outside"] {
            fs::create_dir_all(root.join(directory)).expect("it can be made");
        }
        for file in FILES.iter().chain(["outside/hard"].iter()) {
            fs::write(root.join(file), text(0)).expect("it can be written");
        }
        symlink("d0/a", root.join("link")).expect("it can be linked");
        symlink("d1", root.join("linked")).expect("it can be linked");
        fs::hard_link(root.join("outside/hard"), root.join("hard")).expect("it can be linked");
        Self { home, root }
    }

    fn path(&self, file: usize) -> PathBuf {
        self.root.join(FILES.iter().chain(&MORE).nth(file).expect("it is one of them"))
    }

    /// What cannot be done, because something else stands there, is left.
    fn step(&self, operation: Operation) -> Option<()> {
        match operation {
            Operation::Write(file, number) => fs::write(self.regular(file)?, text(number)).ok(),
            Operation::Sneak(file, number) => {
                let path = self.regular(file)?;
                let before = fs::metadata(&path).and_then(|metadata| metadata.modified()).ok()?;
                fs::write(&path, text(number)).ok()?;
                let times = FileTimes::new().set_modified(before);
                File::options().write(true).open(path).ok()?.set_times(times).ok()
            }
            Operation::Replace(file, number) => {
                let path = self.path(file);
                let new = path.with_extension("new");
                fs::write(&new, text(number)).ok()?;
                fs::rename(new, path).ok()
            }
            Operation::Remove(file) => {
                let path = self.path(file);
                fs::remove_file(&path).or_else(|_| fs::remove_dir(path)).ok()
            }
            Operation::Touch(file) => {
                let file = File::options().write(true).open(self.regular(file)?).ok()?;
                file.set_times(FileTimes::new().set_modified(SystemTime::now())).ok()
            }
            Operation::Mode(file) => {
                let path = self.regular(file)?;
                let mode = fs::metadata(&path).ok()?.permissions().mode() ^ 0o100;
                fs::set_permissions(path, fs::Permissions::from_mode(mode)).ok()
            }
            Operation::LineEndings(file) => {
                let text = fs::read_to_string(self.regular(file)?).ok()?;
                let other = if text.contains('\r') {
                    text.replace("\r\n", "\n")
                } else {
                    text.replace('\n', "\r\n")
                };
                fs::write(self.path(file), other).ok()
            }
            Operation::Mark(file) => {
                let text = fs::read_to_string(self.regular(file)?).ok()?;
                let other = text.strip_prefix('\u{feff}').map(str::to_owned);
                let other = other.unwrap_or_else(|| format!("\u{feff}{text}"));
                fs::write(self.path(file), other).ok()
            }
            Operation::Directory(file) => {
                self.step(Operation::Remove(file));
                fs::create_dir(self.path(file)).ok()
            }
            Operation::Fifo(file) => {
                self.step(Operation::Remove(file));
                let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU);
                rustix::fs::mknodat(rustix::fs::CWD, self.path(file), kind, mode, 0).ok()
            }
            Operation::Retarget(file) => {
                let link = self.root.join("link");
                fs::remove_file(&link).or_else(|_| fs::remove_dir(&link)).ok();
                symlink(FILES[file], link).ok()
            }
            Operation::HardLink(number) => {
                fs::write(self.root.join("outside/hard"), text(number)).ok()
            }
            Operation::Remake(directory, number) => {
                let directory = self.root.join(format!("d{directory}"));
                fs::remove_dir_all(&directory).ok()?;
                fs::create_dir(&directory).ok()?;
                fs::write(directory.join("a"), text(number)).ok()
            }
            Operation::Swap => {
                let name = |name: &str| self.root.join(name);
                fs::rename(name("d0"), name("aside")).ok()?;
                fs::rename(name("d1"), name("d0")).ok()?;
                fs::rename(name("aside"), name("d1")).ok()
            }
            Operation::Move => {
                let aside = self.home.path().join("aside");
                fs::rename(&self.root, &aside).ok()?;
                fs::rename(aside, &self.root).ok()
            }
            Operation::Age => {
                let (probe, began) = (self.home.path().join("probe"), SystemTime::now());
                let deadline = Instant::now() + Duration::from_secs(10);
                while Instant::now() < deadline {
                    fs::write(&probe, "").ok()?;
                    let written = fs::metadata(&probe).and_then(|probe| probe.modified()).ok()?;
                    if written.duration_since(began).is_ok_and(|age| age > FRESH) {
                        return Some(());
                    }
                }
                panic!("the clock of the file system stands still");
            }
            Operation::Hint(_) | Operation::Wait(_) => None,
        }
    }

    /// The path of a file that may be opened.
    fn regular(&self, file: usize) -> Option<PathBuf> {
        let path = self.path(file);
        fs::metadata(&path).ok().filter(fs::Metadata::is_file).map(|_| path)
    }
}

/// Texts of one size.
fn text(number: u8) -> String {
    if number == 3 { String::new() } else { format!("text {number}\nand a line\n") }
}

/// What the model says of a path: the text without marks and carriage returns, or what else it is.
fn really(path: &Path) -> String {
    match fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => "Missing".to_owned(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => "Missing".to_owned(),
        Err(error) => format!("Unreadable({:?})", error.kind().to_string()),
        Ok(metadata) if metadata.is_dir() => "Other(\"a directory\")".to_owned(),
        Ok(metadata) if !metadata.is_file() => "Other(\"a FIFO\")".to_owned(),
        Ok(_) => {
            let text = fs::read_to_string(path).expect("it is a regular file");
            let text = text.replace("\r\n", "\n");
            blake3::hash(text.trim_start_matches('\u{feff}').as_bytes()).to_string()
        }
    }
}

fn said(state: &FileState) -> String {
    match state {
        FileState::File { fingerprint, .. } => fingerprint.to_string(),
        other => format!("{other:?}"),
    }
}

/// A session that looks at the place in its own way.
struct World {
    name: &'static str,
    files: Arc<Files>,
    desk: Arc<Desk>,
    is_hinted: bool,
}

impl World {
    fn new(name: &'static str, watches: bool, small: usize, is_hinted: bool) -> Self {
        let files = Files::new(Options {
            watches,
            small,
            fresh: FRESH,
            quiet: Duration::ZERO,
            settle: Duration::ZERO,
            ..Options::default()
        });
        let secrecy = Secrecy::new(None, &secrecy::Options::default());
        let desk = files.open("s", Arc::new(secrecy), Bounds::default());
        Self { name, files, desk, is_hinted }
    }

    fn differences(&self) -> Differences {
        let deadline = Instant::now() + Duration::from_secs(60);
        let found = self.desk.compare(&ScopePath::ROOT, deadline, &|| false);
        let differences = found.into_iter().flat_map(|difference| {
            let (was, now) = (difference.was, difference.now);
            difference.paths.into_iter().map(move |path| (path, (was.clone(), now.clone())))
        });
        differences.collect()
    }
}

type Differences = BTreeMap<String, (FileState, FileState)>;

#[expect(clippy::ptr_arg, reason = "what proptest generates")]
fn holds(operations: &Vec<Operation>) -> Outcome {
    let place = Place::new();
    let worlds = [
        World::new("off", false, usize::MAX, false),
        World::new("on, one by one", true, usize::MAX, false),
        World::new("on, after a barrier", true, 0, false),
        World::new("on, late and doubled", true, 0, true),
        World::new("off, hinted", false, 0, true),
    ];
    let scope = ScopePath::ROOT;
    let paths: Vec<_> = (0..FILES.len() + MORE.len()).map(|file| place.path(file)).collect();
    let mut known: BTreeMap<String, String> = BTreeMap::new();
    for path in &paths {
        let path = path.to_str().expect("it is text");
        known.insert(path.to_owned(), really(Path::new(path)));
        for world in &worlds {
            let seen = world.desk.look(&scope, path);
            world.desk.learn(&scope, path, Some(&seen.state));
        }
    }
    let mut late: Vec<usize> = Vec::new();
    let last = [Operation::Wait(true), Operation::Wait(true)];
    for (number, operation) in operations.iter().copied().chain(last).enumerate() {
        place.step(operation);
        match operation {
            Operation::Hint(file) => late.push(file),
            Operation::Wait(is_told) => {
                let expected: BTreeMap<_, _> = known
                    .iter()
                    .map(|(path, was)| (path.clone(), (was.clone(), really(Path::new(path)))))
                    .filter(|(_, (was, now))| was != now)
                    .collect();
                for world in &worlds {
                    if world.is_hinted {
                        for file in late.iter().rev().chain(&late) {
                            world.files.hint(paths[*file].to_str().expect("it is text"));
                        }
                    }
                    let found = world.differences();
                    let spoken: BTreeMap<_, _> = found
                        .iter()
                        .map(|(path, (was, now))| (path.clone(), (said(was), said(now))))
                        .collect();
                    ensure!(
                        spoken == expected,
                        "step {number}, {}: {spoken:#?} and not {expected:#?}",
                        world.name
                    );
                    for (path, (_, now)) in found.iter().filter(|_| is_told) {
                        world.desk.learn(&scope, path, Some(now));
                    }
                }
                if is_told {
                    known.extend(expected.into_iter().map(|(path, (_, now))| (path, now)));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

#[test]
fn the_watcher_changes_nothing_that_is_found() {
    law("tests/laws/regressions/disk.txt", 200, &operations(), holds);
}

/// The link leads to another path, where by now its old file stands: nothing tells it from before
/// but the path, and what is learnt of the old path is not for it.
#[test]
fn a_link_that_follows_its_file_leaves_its_path() {
    use Operation::{Age, Fifo, Remove, Retarget, Swap, Wait};
    let operations =
        [Fifo(3), Age, Wait(false), Retarget(3), Swap, Wait(true), Remove(3), Wait(true)];
    holds(&operations.to_vec()).expect("the law holds");
}
