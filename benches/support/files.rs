//! The rows of watched files: a comparison against `stat` of the same files, and a comparison with
//! its diff against spooling both texts and forking `diff`.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use reminderd::engine::{Change, DiffLimits, ScopePath};
use reminderd::files::secrecy::{self, Secrecy};
use reminderd::files::{Bounds, Desk, Files, Options};
use tempfile::TempDir;

use super::measure::{medians_in_turns, time};
use super::table::{self, Figure, Target};

/// Watched files in one directory.
const FILES_A_DIRECTORY: usize = 100;

/// None of so many watched files has changed.
pub fn unchanged(count: usize, rounds: usize, target: &Target) {
    let home = tempfile::tempdir().expect("there is room");
    let paths: Vec<PathBuf> = (0..count)
        .map(|number| home.path().join(format!("d{}/f{number}", number / FILES_A_DIRECTORY)))
        .collect();
    for (number, path) in paths.iter().enumerate() {
        fs::create_dir_all(path.parent().expect("it has one")).expect("it can be made");
        fs::write(path, format!("{number}\n")).expect("it can be written");
    }
    let desk = desk(&home);
    // Times that are two seconds old are trusted.
    thread::sleep(Duration::from_secs(3));
    for path in &paths {
        read(&desk, path);
    }
    let compare = || assert!(differences(&desk).is_empty());
    // The watches are set meanwhile.
    (0..20).for_each(|_| compare());
    let (figure, floor) = medians_in_turns(
        rounds,
        || time(compare),
        || time(|| paths.iter().for_each(|path| assert!(fs::metadata(path).is_ok()))),
    );
    let what = format!("none of {count} watched files changed");
    table::row(&what, Figure::Time(figure), Some(("stat of them", Figure::Time(floor))), target);
}

/// Of a file with 5,000 lines, so many have changed, evenly spread.
pub fn changed(what: &str, lines: usize, target: &Target) {
    const LINES: usize = 5_000;
    let home = tempfile::tempdir().expect("there is room");
    let text = |round: usize| {
        let line = |number: usize| match number % (LINES / lines) {
            0 => format!("    let changed = call({number}, {round});\n"),
            _ => format!("    let value_{number} = call({number});\n"),
        };
        (0..LINES).map(line).collect::<String>()
    };
    let texts = [text(0), text(1)];
    let path = home.path().join("a.rs");
    fs::write(&path, &texts[0]).expect("it can be written");
    let desk = desk(&home);
    read(&desk, &path);
    let mut round = 0;
    let (figure, floor) = medians_in_turns(
        200,
        || {
            round += 1;
            fs::write(&path, &texts[round % 2]).expect("it can be written");
            time(|| {
                let found = differences(&desk);
                let deadline = Instant::now() + Duration::from_secs(5);
                let edited = desk.edited(found, &DiffLimits::default(), deadline);
                assert!(matches!(edited[0].change, Change::Diff { .. }));
                let path = &edited[0].paths[0];
                desk.learn(&ScopePath::ROOT, path, Some(&edited[0].now));
            })
        },
        || time(|| fork(&home, &texts)),
    );
    table::row(what, Figure::Time(figure), Some(("spool, fork diff", Figure::Time(floor))), target);
}

fn fork(home: &TempDir, texts: &[String; 2]) {
    let spools = ["old", "new"].map(|name| home.path().join(name));
    for (spool, text) in spools.iter().zip(texts) {
        fs::write(spool, text).expect("it can be written");
    }
    let output = Command::new("diff").arg("-u").args(&spools).stderr(Stdio::null()).output();
    assert!(!output.expect("diff is there").stdout.is_empty());
}

fn desk(home: &TempDir) -> Arc<Desk> {
    let secrecy = Secrecy::new(Some(home.path()), &secrecy::Options::default());
    let bounds = Bounds { contents: 50_000, watched: 50_000, ..Bounds::default() };
    Files::new(Options::default()).open("s", Arc::new(secrecy), bounds)
}

fn read(desk: &Desk, path: &std::path::Path) {
    let path = path.to_str().expect("it is text");
    let seen = desk.look(&ScopePath::ROOT, path);
    desk.learn(&ScopePath::ROOT, path, Some(&seen.state));
}

fn differences(desk: &Desk) -> Vec<reminderd::files::Difference> {
    let deadline = Instant::now() + Duration::from_secs(5);
    desk.compare(&ScopePath::ROOT, deadline, &|| false)
}
