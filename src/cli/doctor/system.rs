//! The build, the store, the daemon, the watcher, and the configuration.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::super::asking::PlaceArguments;
use super::super::config::document;
use super::super::paint;
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
        Err(why) => {
            let daemons = place.directory().map(|state| daemons(&state)).unwrap_or_default();
            let end = if daemons.is_empty() {
                "look for it with `ps`, and end it".to_owned()
            } else {
                format!("end it: kill {}", daemons.join(" "))
            };
            finding(State::Trouble, why).advised(format!("{end} (the next client starts another)"))
        }
    }
}

/// The shared daemons of a state directory, by their process ids, where the system shows them.
fn daemons(state: &Path) -> Vec<String> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_it = |id: &u32| {
        let command = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        let words: Vec<_> = command.split(|byte| *byte == 0).collect();
        let state = state.as_os_str().as_encoded_bytes();
        words.get(1) == Some(&&b"serve"[..]) && words.contains(&state)
    };
    ids.filter(is_it).map(|id| id.to_string()).collect()
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
    found.extend(exposed(directory));
    found.extend(set_aside(directory));
    let size = |name: &str| fs::metadata(directory.join(name)).map_or(0, |file| file.len());
    let bytes = size(store::FILE) + size(&format!("{}-wal", store::FILE));
    found.push(match Archive::open(directory) {
        Ok(None) => about("ledger", State::Fine, "nothing is stored yet".to_owned()),
        Err(error) => about("ledger", State::Trouble, error.to_string())
            .advised(format!("keep a copy of {shown}/{} if it matters", store::FILE)),
        Ok(Some(archive)) => match (archive.faults(), archive.sessions()) {
            (Ok(faults), _) if !faults.is_empty() => {
                let count = paint::count(faults.len() as u64, "fault");
                let what = format!("it is damaged, {count}, the first: {}", faults[0]);
                about("ledger", State::Trouble, what).advised(damaged(directory))
            }
            (Ok(_), Ok(sessions)) => {
                let sessions = paint::count(sessions.len() as u64, "session");
                let what = format!("{sessions} in {} KiB, whole", bytes / 1024);
                about("ledger", State::Fine, what)
            }
            (Err(error), _) | (_, Err(error)) => about("ledger", State::Trouble, error.to_string())
                .advised("try again when no daemon is busy with it"),
        },
    });
    found
}

/// What to do about damage within the file, which a daemon that starts does not look for.
fn damaged(directory: &Path) -> String {
    let marker = directory.join(store::DAMAGED);
    if marker.exists() {
        return "end the daemon: the next one sets the file aside, whole, and begins a fresh one"
            .to_owned();
    }
    let marker = marker.display();
    format!(
        "touch {marker}, then end the daemon: the next one sets the file aside, whole, and begins a \
         fresh one"
    )
}

/// Files of the state directory that other users may read.
fn exposed(directory: &Path) -> Option<Finding> {
    let mut open = Vec::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            // A link is nobody's content.
            let Ok(metadata) = entry.path().symlink_metadata() else { continue };
            if metadata.is_dir() {
                directories.push(entry.path());
            }
            if !metadata.is_symlink() && metadata.permissions().mode() & 0o077 != 0 {
                open.push(entry.path().display().to_string());
            }
        }
    }
    open.sort();
    let first = open.first()?;
    let what = format!(
        "{} could be read by others if the directory let them in, the first: {first}",
        paint::count(open.len() as u64, "file")
    );
    let advice = format!("chmod -R go= {}", directory.display());
    Some(Finding::new("store", "files", State::Trouble, what).advised(advice))
}

/// Ledgers that were damaged once.
fn set_aside(directory: &Path) -> Option<Finding> {
    let prefix = format!("{}.damaged-", store::FILE);
    let names = fs::read_dir(directory).into_iter().flatten().flatten();
    let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut aside: Vec<_> = names.filter(|name| name.starts_with(&prefix)).collect();
    aside.retain(|name| !name.ends_with("-wal") && !name.ends_with("-shm"));
    aside.sort();
    let last = aside.last()?;
    let what = format!(
        "{} was damaged and set aside, the last: {last}",
        paint::count(aside.len() as u64, "ledger")
    );
    let advice = "remove what you need no more: nothing else uses it";
    Some(Finding::new("store", "set aside", State::Note, what).advised(advice))
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
                    let count = paint::count(document.mistakes.len() as u64, "mistake");
                    finding(state, format!("{shown} has {count}"))
                        .advised(format!("reminderd config check {shown}"))
                }
            }
        })
        .collect()
}
