//! Law 8: however the same file is spelled, the same is found of it; at most the shown path differs.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use reminderd::engine::{Author, Change, DiffLimits, FileState, ScopePath};
use reminderd::files::secrecy::{self, Secrecy};
use reminderd::files::{Bounds, Desk, Files, Options, identity};
use tempfile::TempDir;

use crate::law;
use crate::world::{Outcome, ensure};

/// Names that are hard to spell, one of a secret, one that is denied, one that a program writes.
const FILES: [&str; 7] =
    ["a", "d/b c", "d/100%41", "d/é+#?", "deep/.env", "d/denied", "d/Cargo.lock"];

/// How many ways there are to spell a path.
const SPELLINGS: usize = 8;

#[derive(Clone, Copy, Debug)]
enum Operation {
    Write(usize, u8),
    Replace(usize, u8),
    Remove(usize),
    /// The conversation reads a file, spelled in some way.
    Read(usize, usize),
    /// It writes one.
    Wrote(usize, u8, usize),
    /// An agent does.
    ByAgent(usize, u8, usize),
    /// An event names it.
    Hint(usize, usize),
    /// A WAIT, whose differences are told or not.
    Wait(bool),
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let file = || 0..FILES.len();
    let way = || 0..SPELLINGS;
    let operation = prop_oneof![
        4 => (file(), 0..4_u8).prop_map(|(file, text)| Operation::Write(file, text)),
        2 => (file(), 0..4_u8).prop_map(|(file, text)| Operation::Replace(file, text)),
        1 => file().prop_map(Operation::Remove),
        5 => (file(), way()).prop_map(|(file, way)| Operation::Read(file, way)),
        2 => (file(), 0..4_u8, way())
            .prop_map(|(file, text, way)| Operation::Wrote(file, text, way)),
        2 => (file(), 0..4_u8, way())
            .prop_map(|(file, text, way)| Operation::ByAgent(file, text, way)),
        1 => (file(), way()).prop_map(|(file, way)| Operation::Hint(file, way)),
        5 => any::<bool>().prop_map(Operation::Wait),
    ];
    prop::collection::vec(operation, 1..40)
}

/// A directory, and a link that leads to it.
struct Place {
    _home: TempDir,
    root: PathBuf,
    linked: PathBuf,
}

impl Place {
    fn new() -> Self {
        let home = tempfile::tempdir().expect("there is room");
        let real = fs::canonicalize(home.path()).expect("it was made");
        let (root, linked) = (real.join("root"), real.join("linked"));
        for directory in ["d", "deep"] {
            fs::create_dir_all(root.join(directory)).expect("it can be made");
        }
        symlink(&root, &linked).expect("it can be linked");
        Self { _home: home, root, linked }
    }

    /// A file as a client may spell it.
    fn spelled(&self, file: usize, way: usize) -> String {
        let path = |root: &Path| root.join(FILES[file]).to_str().expect("it is text").to_owned();
        let plain = path(&self.root);
        match way {
            0 => plain,
            1 => identity::uri_of(&plain),
            2 => {
                let encoded = plain.bytes().map(|byte| match byte {
                    b'/' => "/".to_owned(),
                    byte => format!("%{byte:02X}"),
                });
                format!("file://{}", encoded.collect::<Vec<_>>().concat())
            }
            3 => plain.replacen("/root/", "//root/.//./", 1),
            4 => plain.replacen("/root/", "/root/d/../", 1),
            5 => path(&self.linked),
            6 => identity::uri_of(&path(&self.linked)).replacen("file://", "FILE://localhost", 1),
            _ => format!("file:{}", &identity::uri_of(&plain)["file://".len()..]),
        }
    }

    fn write(&self, file: usize, number: u8) {
        fs::write(self.root.join(FILES[file]), text(number)).expect("it can be written");
    }
}

fn text(number: u8) -> String {
    (0..number).fold("first\n".to_owned(), |text, line| text + &format!("line {line}\n"))
}

/// What is told of a file, its shown path aside.
type Told = (PathBuf, FileState, FileState, Author, Change);

/// A session whose client spells in its own way.
struct World {
    name: &'static str,
    /// What it makes of the way that an operation names.
    way: fn(usize) -> usize,
    files: Arc<Files>,
    desk: Arc<Desk>,
}

impl World {
    fn new(name: &'static str, root: &Path, way: fn(usize) -> usize) -> Self {
        let files = Files::new(Options {
            quiet: Duration::ZERO,
            settle: Duration::ZERO,
            ..Options::default()
        });
        let options =
            secrecy::Options { deny: vec!["d/denied".to_owned()], ..secrecy::Options::default() };
        let desk = files.open("s", Arc::new(Secrecy::new(Some(root), &options)), Bounds::default());
        Self { name, way, files, desk }
    }

    fn path(&self, place: &Place, file: usize, way: usize) -> String {
        identity::path_of(&place.spelled(file, (self.way)(way)))
    }

    fn learns(&self, scope: &ScopePath, path: &str, wrote: bool) {
        let seen = self.desk.look(scope, path);
        if wrote {
            self.desk.wrote(scope, path, &seen.state);
        }
        self.desk.learn(scope, path, Some(&seen.state));
    }

    fn wait(&self, is_told: bool) -> Vec<Told> {
        let deadline = Instant::now() + Duration::from_secs(60);
        let differences = self.desk.compare(&ScopePath::ROOT, deadline, &|| false);
        let mut reals: Vec<_> =
            differences.iter().map(|it| (it.paths.clone(), it.real.clone())).collect();
        let edited = self.desk.edited(differences, &DiffLimits::default(), deadline);
        if is_told {
            for edited in &edited {
                for path in &edited.paths {
                    self.desk.learn(&ScopePath::ROOT, path, Some(&edited.now));
                }
            }
        }
        let mut told: Vec<_> = edited
            .into_iter()
            .map(|edited| {
                let place = reals.iter().position(|(paths, _)| *paths == edited.paths);
                let (_, real) = reals.swap_remove(place.expect("it differs"));
                (real, edited.was, edited.now, edited.author, edited.change)
            })
            .collect();
        told.sort_by(|one, other| one.0.cmp(&other.0));
        told
    }
}

#[expect(clippy::ptr_arg, reason = "what proptest generates")]
fn holds(operations: &Vec<Operation>) -> Outcome {
    let place = Place::new();
    for file in 0..FILES.len() {
        place.write(file, 0);
    }
    let worlds = [
        World::new("plain paths", &place.root, |_| 0),
        World::new("any spelling", &place.root, |way| way),
        World::new("any other spelling", &place.root, |way| (way + 3) % SPELLINGS),
        World::new("a linked root", &place.linked, |way| way),
    ];
    let (root, agent) = (ScopePath::ROOT, ScopePath::agent("/x").expect("it is one"));
    let last = [Operation::Wait(true), Operation::Wait(true)];
    for (number, operation) in operations.iter().copied().chain(last).enumerate() {
        match operation {
            Operation::Write(file, number) => place.write(file, number),
            Operation::Replace(file, number) => {
                let new = place.root.join("new");
                fs::write(&new, text(number)).expect("it can be written");
                fs::rename(new, place.root.join(FILES[file])).expect("it can be renamed");
            }
            Operation::Remove(file) => drop(fs::remove_file(place.root.join(FILES[file]))),
            Operation::Read(file, way) => {
                for world in &worlds {
                    world.learns(&root, &world.path(&place, file, way), false);
                }
            }
            Operation::Wrote(file, number, way) => {
                place.write(file, number);
                for world in &worlds {
                    world.learns(&root, &world.path(&place, file, way), true);
                }
            }
            Operation::ByAgent(file, number, way) => {
                place.write(file, number);
                for world in &worlds {
                    world.learns(&agent, &world.path(&place, file, way), true);
                }
            }
            Operation::Hint(file, way) => {
                for world in &worlds {
                    world.files.hint(&world.path(&place, file, way));
                }
            }
            Operation::Wait(is_told) => {
                let expected = worlds[0].wait(is_told);
                for world in &worlds[1..] {
                    let told = world.wait(is_told);
                    ensure!(
                        told == expected,
                        "step {number}, {}: {told:#?} and not {expected:#?}",
                        world.name
                    );
                }
            }
        }
    }
    Ok(())
}

#[test]
fn spellings_change_at_most_the_shown_path() {
    law("tests/laws/regressions/spelling.txt", 150, &operations(), holds);
}
