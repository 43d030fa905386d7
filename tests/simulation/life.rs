//! One life of the daemon: from its start on a store's directory until it is stopped, or until the
//! machine takes its process away.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use reminderd::server::{Daemon, Limits, Served, Surroundings, serve};
use reminderd::store::{Options, SqliteStore, Store as _};
use tokio::io::{duplex, split};
use tokio::runtime::Runtime;

use crate::client::Client;

/// Bytes on their way between a client and the daemon.
const PIPE_BYTES: usize = 64 * 1024;
/// How long a daemon may take to write what is left.
const CLOSING: Duration = Duration::from_secs(10);

/// A running daemon.
pub struct Life {
    runtime: Runtime,
    served: Arc<Served>,
    store: Arc<SqliteStore>,
    directory: PathBuf,
}

impl Life {
    /// Starts a daemon on what a directory holds.
    pub fn begin(directory: PathBuf) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let store = Arc::new(SqliteStore::open(&directory, Options::default()).expect("a store"));
        let daemon = Daemon::new(Surroundings::deterministic(), Arc::clone(&store) as _);
        Self {
            runtime: runtime.expect("a runtime"),
            served: Arc::new(Served(Arc::new(daemon))),
            store,
            directory,
        }
    }

    /// A client that the daemon serves.
    pub fn connect(&self) -> Client {
        let (ours, theirs) = duplex(PIPE_BYTES);
        let (input, output) = split(theirs);
        let served = Arc::clone(&self.served);
        self.runtime.spawn(async move { serve(served, input, output, Limits::default()).await });
        Client::new(ours)
    }

    /// Does something that waits for the daemon.
    pub fn block_on<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }

    /// The daemon stops in good order.
    pub fn stop(self) -> PathBuf {
        let Self { runtime, served, store, directory } = self;
        runtime.shutdown_timeout(CLOSING);
        drop(served);
        store.close(CLOSING);
        directory
    }

    /// The process is gone in the middle of whatever it does. What it had written is found by the next
    /// one in a directory of its own, as it stood at that moment.
    pub fn crash(self, into: &Path) -> PathBuf {
        fs::create_dir(into).expect("a directory");
        for entry in fs::read_dir(&self.directory).expect("it is there") {
            let entry = entry.expect("it can be read");
            // The log's index is only valid within a life.
            let is_index = entry.file_name().to_string_lossy().ends_with("-shm");
            if entry.file_type().is_ok_and(|it| it.is_file()) && !is_index {
                fs::copy(entry.path(), into.join(entry.file_name())).expect("it can be copied");
            }
        }
        self.stop();
        into.to_owned()
    }
}
