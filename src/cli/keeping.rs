//! Where what was told is kept, as the commands that need it ask for it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;

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
    /// Let sessions go that were quiet for so many days
    #[arg(long, value_name = "DAYS", default_value_t = 90, conflicts_with = "ephemeral")]
    pub keep_days: u32,
    /// Keep at most so many sessions, those that were quiet longest go first
    #[arg(long, value_name = "COUNT", default_value_t = 100_000, conflicts_with = "ephemeral")]
    pub keep_sessions: u64,
    /// Keep at most so many bytes of them
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 30, conflicts_with = "ephemeral")]
    pub keep_bytes: u64,
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

    fn options(&self) -> Options {
        Options {
            age: Duration::from_secs(u64::from(self.keep_days) * 86_400),
            sessions: self.keep_sessions,
            bytes: self.keep_bytes,
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
            ("--keep-days", self.keep_days.to_string()),
            ("--keep-sessions", self.keep_sessions.to_string()),
            ("--keep-bytes", self.keep_bytes.to_string()),
        ];
        arguments.extend(limits.into_iter().flat_map(|(name, limit)| [name.into(), limit.into()]));
        arguments
    }

    /// The store. One that cannot be used is said here, and again to every client that opens a
    /// session.
    pub fn store(&self) -> Arc<dyn Store> {
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
        match SqliteStore::open(&directory, self.options()) {
            Ok(store) => Arc::new(store),
            Err(error) => unusable(error.to_string()),
        }
    }
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
        assert_eq!(again.keeping.options(), Options { age: week, sessions: 3, bytes: 4096 });
        assert_eq!(Line::parse_from(["reminderd"]).keeping.options(), Options::default());
    }
}
