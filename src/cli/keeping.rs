//! Where what was told is kept, as the commands that need it ask for it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;

use crate::configuration::{Given, Layer, LimitEntries, Origin, StoreEntries, read, users_file};
use crate::server::{Recorder, recordings};
use crate::store::{self, MemoryStore, Options, SqliteStore, Store, Unusable, default_directory};

/// How long the end waits for the store: `exit` ends the process within a second.
pub const END_PATIENCE: Duration = Duration::from_millis(800);

/// Where what was told is kept.
#[derive(Clone, Debug, Args)]
pub struct KeepingArguments {
    /// Keep what was told in this directory instead of `$XDG_STATE_HOME/reminderd` or
    /// `~/.local/state/reminderd`
    #[arg(long, value_name = "DIR", conflicts_with = "ephemeral")]
    pub state: Option<PathBuf>,
    /// Keep everything in memory and leave nothing behind
    #[arg(long)]
    pub ephemeral: bool,
    /// Let sessions go that were quiet for so many days, 90 unless the configuration says otherwise
    #[arg(long, value_name = "DAYS", conflicts_with = "ephemeral")]
    pub keep_days: Option<u64>,
    /// Keep at most so many sessions, 100000 unless the configuration says otherwise; those that were
    /// quiet longest go first
    #[arg(long, value_name = "COUNT", conflicts_with = "ephemeral")]
    pub keep_sessions: Option<u64>,
    /// Keep at most so many bytes of them, 1 GiB unless the configuration says otherwise
    #[arg(long, value_name = "BYTES", conflicts_with = "ephemeral")]
    pub keep_bytes: Option<u64>,
}

impl KeepingArguments {
    /// The directory, spelled in the one way that all clients of a shared daemon arrive at; none
    /// where everything is in memory, or nothing says where else.
    pub fn directory(&self) -> Option<PathBuf> {
        if self.ephemeral {
            return None;
        }
        let directory = self.state.clone().or_else(default_directory)?;
        // One that cannot be made is still one place; its store says what is wrong.
        if let Err(error) = store::prepare(&directory) {
            tracing::debug!(%error, "the state directory could not be made");
        }
        let spelled = directory.canonicalize().or_else(|_| std::path::absolute(&directory));
        Some(spelled.unwrap_or(directory))
    }

    /// What records sessions; nothing where everything is in memory.
    pub fn recorder(&self) -> Option<Recorder> {
        Some(Recorder::new(recordings(&self.directory()?)))
    }

    /// What holds: the command line before the user's file, that before the defaults.
    fn options(&self, file: &StoreEntries) -> Options {
        let default = Options::default();
        let days = |days: u64| Duration::from_secs(days.saturating_mul(86_400));
        let given = |line: Option<u64>, file: &Option<Given<u64>>| {
            line.or(file.as_ref().map(|given| given.value))
        };
        Options {
            age: given(self.keep_days, &file.keep_days).map_or(default.age, days),
            sessions: given(self.keep_sessions, &file.keep_sessions).unwrap_or(default.sessions),
            bytes: given(self.keep_bytes, &file.keep_bytes).unwrap_or(default.bytes),
        }
    }

    /// The same for another process of this program.
    pub fn as_arguments(&self) -> Vec<OsString> {
        if self.ephemeral {
            return vec!["--ephemeral".into()];
        }
        let mut arguments: Vec<OsString> = Vec::new();
        if let Some(state) = self.directory() {
            arguments.extend(["--state".into(), state.into()]);
        }
        let limits = [
            ("--keep-days", self.keep_days),
            ("--keep-sessions", self.keep_sessions),
            ("--keep-bytes", self.keep_bytes),
        ];
        for (name, limit) in limits {
            let limit = limit.map(|limit| [name.into(), limit.to_string().into()]);
            arguments.extend(limit.into_iter().flatten());
        }
        arguments
    }

    /// The store, as the command line and the user's file say. One that cannot be used is said here,
    /// and again to every client that opens a session.
    pub fn store(&self, file: &StoreEntries) -> Arc<dyn Store> {
        if self.ephemeral {
            return Arc::new(MemoryStore::default());
        }
        let Some(directory) = self.state.clone().or_else(default_directory) else {
            return unusable(
                "neither XDG_STATE_HOME nor HOME says where to keep what is told: name a \
                 directory with --state, or go on without one with --ephemeral"
                    .to_owned(),
            );
        };
        match SqliteStore::open(&directory, self.options(file)) {
            Ok(store) => Arc::new(store),
            Err(error) => unusable(error.to_string()),
        }
    }
}

/// What the user's file says of the daemon itself. It holds from its start to its end.
pub fn users_entries() -> (LimitEntries, StoreEntries) {
    let document = users_file().and_then(|path| {
        // What is wrong with it is reported where sessions are opened.
        read(&path, Origin::new(Layer::User, path.display().to_string())).ok()
    });
    document.map(|document| (document.limits, document.store)).unwrap_or_default()
}

fn unusable(why: String) -> Arc<dyn Store> {
    tracing::error!("{why}");
    Arc::new(Unusable::new(why))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        keeping: KeepingArguments,
    }

    #[test]
    fn a_shared_daemon_keeps_as_whoever_starts_it_says() {
        let home = tempfile::tempdir().expect("there is room");
        let state = home.path().canonicalize().expect("it is there");
        let given =
            ["reminderd", "--keep-days", "7", "--keep-sessions", "3", "--keep-bytes", "4096"];
        let mut line = Line::parse_from(given);
        line.keeping.state = Some(state.clone());
        let again = line.keeping.as_arguments();
        let again = Line::parse_from([OsString::from("reminderd")].into_iter().chain(again));
        assert_eq!(again.keeping.state, Some(state));
        let week = Duration::from_secs(7 * 86_400);
        let nothing = StoreEntries::default();
        let given = Options { age: week, sessions: 3, bytes: 4096 };
        assert_eq!(again.keeping.options(&nothing), given);
        let plain = Line::parse_from(["reminderd"]).keeping;
        assert_eq!(plain.options(&nothing), Options::default());
        let file = crate::configuration::Document::read(
            "[store]\nkeepDays = 14\nkeepSessions = 5\nkeepBytes = 8192\n",
            Origin::new(Layer::User, "reminderd.toml"),
        );
        assert_eq!(again.keeping.options(&file.store), given, "the command line goes first");
        let fortnight = Duration::from_secs(14 * 86_400);
        let kept = Options { age: fortnight, sessions: 5, bytes: 8192 };
        assert_eq!(plain.options(&file.store), kept);
        assert!(plain.as_arguments().len() <= 2, "what the file says, the other process reads");
    }
}
