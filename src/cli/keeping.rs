//! Where what was told is kept, as the commands that need it ask for it.

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
        match SqliteStore::open(&directory, Options::default()) {
            Ok(store) => Arc::new(store),
            Err(error) => unusable(error.to_string()),
        }
    }
}

fn unusable(why: String) -> Arc<dyn Store> {
    tracing::error!("{why}");
    Arc::new(Unusable::new(why))
}
