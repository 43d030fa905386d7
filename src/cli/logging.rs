//! Logs, to stderr or to a file that does not grow beyond its bound. No level shows a body or the
//! content of a file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, IsTerminal as _, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

/// The variable that says what is logged.
const LEVEL: &str = "REMINDERD_LOG";
/// The file in the state directory.
const FILE: &str = "daemon.log";
/// How large it gets before it is moved to `daemon.log.old`, in bytes.
const BYTES_MAX: u64 = 1024 * 1024;

/// Logs to stderr at the level of `REMINDERD_LOG` (warnings when unset).
pub fn to_stderr() {
    start(io::stderr, io::stderr().is_terminal());
}

/// Logs to stderr where `REMINDERD_LOG` asks for it. For a command that says in other ways whatever
/// matters, and is over sooner than a log is set up.
pub fn to_stderr_if_asked() {
    if std::env::var_os(LEVEL).is_some() {
        to_stderr();
    }
}

/// Logs to stderr like [`to_stderr`], and from the time on when it is told so to a file.
pub fn to_stderr_then_file() -> &'static LateFile {
    static LOG: LateFile = LateFile(Mutex::new(None));
    start(&LOG, false);
    &LOG
}

/// Logs to a file in this directory, readable by nobody else.
pub fn to_file(directory: &Path, file: &str) -> io::Result<()> {
    let log = Bounded::open(directory.join(file), BYTES_MAX)?;
    start(&*Box::leak(Box::new(LateFile(Mutex::new(Some(log))))), false);
    Ok(())
}

fn start(writer: impl for<'a> MakeWriter<'a> + Send + Sync + 'static, colours: bool) {
    let filter = EnvFilter::try_from_env(LEVEL).unwrap_or_else(|_| EnvFilter::new("warn"));
    let subscriber =
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(writer).with_ansi(colours);
    // Another subscriber can only be there in a program that embeds this one: its choice stands.
    drop(subscriber.try_init());
}

/// A log that goes to stderr until it is given a directory.
#[derive(Debug)]
pub struct LateFile(Mutex<Option<Bounded>>);

impl LateFile {
    /// From now on everything goes to the file in this directory, readable by nobody else, and with
    /// it what the runtime itself writes to stderr.
    pub fn move_to(&self, directory: &Path) -> io::Result<()> {
        let log = Bounded::open(directory.join(FILE), BYTES_MAX)?;
        rustix::stdio::dup2_stderr(&log.file)?;
        *self.0.lock() = Some(log);
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for &'static LateFile {
    type Writer = Self;

    fn make_writer(&'a self) -> Self::Writer {
        self
    }
}

impl Write for &LateFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut *self.0.lock() {
            Some(log) => log.write(bytes),
            None => io::stderr().write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A file that is emptied when it is full, and its last content beside it.
#[derive(Debug)]
struct Bounded {
    file: File,
    path: PathBuf,
    bytes: u64,
    bytes_max: u64,
}

impl Bounded {
    fn open(path: PathBuf, bytes_max: u64) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(&path)?;
        let bytes = file.metadata()?.len();
        Ok(Self { file, path, bytes, bytes_max })
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes >= self.bytes_max {
            // The same file is emptied, since stderr goes there too.
            fs::copy(&self.path, self.path.with_extension("log.old"))?;
            self.file.set_len(0)?;
            self.bytes = 0;
        }
        self.file.write_all(bytes)?;
        self.bytes += bytes.len() as u64;
        Ok(bytes.len())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_log_is_bounded_and_private() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(FILE);
        let mut log = Bounded::open(path.clone(), 10).unwrap();
        for line in ["one 56789\n", "two 56789\n", "three\n"] {
            log.write(line.as_bytes()).unwrap();
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), "three\n");
        let old = directory.path().join("daemon.log.old");
        assert_eq!(fs::read_to_string(&old).unwrap(), "two 56789\n");
        for path in [&path, &old] {
            assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
        }
        let again = Bounded::open(path, 10).unwrap();
        assert_eq!(again.bytes, 6, "it goes on behind what is there");
    }
}
