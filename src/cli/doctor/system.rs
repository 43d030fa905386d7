//! The build, the store, the daemon, the watcher, and the configuration.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::super::asking::PlaceArguments;
use super::super::config::document;
use super::{Finding, State};
use crate::configuration::{FILE_NAME, Layer, Severity, Unreadable, users_file};
use crate::store::{self, Archive};

/// How long the daemon may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// Watches that a user should be allowed: editors take some too.
const WATCHES: u64 = 65_536;
/// Watchers that a user should be allowed.
const WATCHERS: u64 = 128;

/// All of it.
pub fn findings(place: &PlaceArguments) -> Vec<Finding> {
    let mut found = vec![build()];
    match place.directory() {
        Ok(directory) => {
            found.push(daemon(place));
            found.extend(stored(&directory));
        }
        Err(why) => found.push(Finding::new("store", "directory", State::Trouble, why)),
    }
    found.extend(limits());
    found.extend(configuration());
    found
}

fn build() -> Finding {
    let at = std::env::current_exe().map_or_else(|_| "?".to_owned(), |it| it.display().to_string());
    let what = format!("{} at {at}", env!("CARGO_PKG_VERSION"));
    Finding::new("reminderd", "build", State::Fine, what)
}

fn daemon(place: &PlaceArguments) -> Finding {
    let finding = |state, what: String| Finding::new("reminderd", "daemon", state, what);
    match place.daemon(PATIENCE) {
        Ok(None) => {
            finding(State::Fine, "none runs: a client starts it when it needs it".to_owned())
        }
        Ok(Some(client)) if client.version() == env!("CARGO_PKG_VERSION") => {
            finding(State::Fine, format!("{} runs", client.version()))
        }
        Ok(Some(client)) => {
            let what = format!("{} runs, which is another build", client.version());
            finding(State::Note, what)
                .advised("a newer build takes over at the next `reminderd connect`")
        }
        Err(why) => finding(State::Trouble, why)
            .advised("end it (`pkill -f 'reminderd serve'`): the next client starts another"),
    }
}

fn stored(directory: &Path) -> Vec<Finding> {
    let about = |name: &str, state, what: String| Finding::new("store", name, state, what);
    let shown = directory.display();
    let metadata = match fs::metadata(directory) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return vec![about("directory", State::Fine, format!("{shown} is not made yet"))];
        }
        Err(error) => {
            let what = format!("{shown} cannot be looked at: {error}");
            return vec![
                about("directory", State::Trouble, what)
                    .advised(format!("see who may enter it: ls -ld {shown}")),
            ];
        }
    };
    let mut found = Vec::new();
    let open = metadata.permissions().mode() & 0o077;
    found.push(match (open, rustix::process::geteuid().as_raw() == metadata.uid()) {
        (_, false) => {
            about("directory", State::Trouble, format!("{shown} belongs to another user"))
                .advised("name one of your own with --state, or in XDG_STATE_HOME")
        }
        (0, _) => about("directory", State::Fine, format!("{shown}, for you alone")),
        _ => about("directory", State::Trouble, format!("{shown} is open to other users"))
            .advised(format!("chmod 700 {shown}")),
    });
    let size = |name: &str| fs::metadata(directory.join(name)).map_or(0, |file| file.len());
    let bytes = size(store::FILE) + size(&format!("{}-wal", store::FILE));
    found.push(match Archive::open(directory) {
        Ok(None) => about("ledger", State::Fine, "nothing is stored yet".to_owned()),
        Err(error) => about("ledger", State::Trouble, error.to_string())
            .advised("keep a copy of the file if it matters: it cannot be read as it is"),
        Ok(Some(archive)) => match (archive.faults(), archive.sessions()) {
            (Ok(faults), Ok(sessions)) if faults.is_empty() => {
                let what = format!("{} sessions in {} KiB, whole", sessions.len(), bytes / 1024);
                about("ledger", State::Fine, what)
            }
            (Ok(faults), Ok(_)) => {
                let what = format!("{} faults, the first: {}", faults.len(), faults[0]);
                about("ledger", State::Trouble, what)
                    .advised("the next daemon sets it aside and begins a fresh one")
            }
            (Err(error), _) | (_, Err(error)) => about("ledger", State::Trouble, error.to_string())
                .advised("try again when no daemon is busy with it"),
        },
    });
    found
}

fn limits() -> Vec<Finding> {
    let limit = |name: &str, file: &str, enough: u64| {
        let path = format!("/proc/sys/fs/inotify/{file}");
        let allowed = fs::read_to_string(path).ok()?.trim().parse::<u64>().ok()?;
        let what = format!("{allowed} a user");
        Some(if allowed >= enough {
            Finding::new("watcher", name, State::Fine, what)
        } else {
            let why = "where it is reached, files are compared more often instead";
            Finding::new("watcher", name, State::Note, format!("{what}: {why}"))
                .advised(format!("sudo sysctl fs.inotify.{file}={enough}"))
        })
    };
    let watches = limit("watches", "max_user_watches", WATCHES);
    watches.into_iter().chain(limit("watchers", "max_user_instances", WATCHERS)).collect()
}

fn configuration() -> Vec<Finding> {
    let here = PathBuf::from(FILE_NAME);
    let files = [("user", users_file(), Layer::User), ("here", Some(here), Layer::Workspace)];
    let files = files.into_iter().filter_map(|(name, path, layer)| Some((name, path?, layer)));
    files
        .map(|(name, path, layer)| {
            let shown = path.display();
            let finding = |state, what| Finding::new("configuration", name, state, what);
            match document(&path, layer) {
                Err(Unreadable::Missing) => finding(State::Fine, format!("no {shown}")),
                Err(error) => finding(State::Trouble, format!("{shown}: {error}")),
                Ok(document) if document.mistakes.is_empty() => {
                    finding(State::Fine, shown.to_string())
                }
                Ok(document) => {
                    let grave = document.mistakes.iter().any(|it| it.severity == Severity::Mistake);
                    let state = if grave { State::Trouble } else { State::Note };
                    let count = document.mistakes.len();
                    finding(state, format!("{shown} has {count} mistakes"))
                        .advised(format!("reminderd config check {shown}"))
                }
            }
        })
        .collect()
}
