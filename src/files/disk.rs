//! Looking at one path: which file it means, what stands there, and the stamp by which a later look
//! knows that nothing was written since.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::engine::FileState;

use super::text::{self, Fingerprinter};

/// How often a file is read that somebody writes to meanwhile.
const ATTEMPTS: u32 = 3;
/// Links that are followed to something that is not there, as many as the kernel follows.
const LINKS_MAX: u32 = 40;
/// How much of a large file is read at once, in bytes.
const PIECE_BYTES: usize = 256 << 10;

/// How long something may take.
#[derive(Clone, Copy)]
pub(super) struct Patience<'a> {
    /// When it ends at the latest; never without one.
    pub deadline: Option<Instant>,
    /// Whether nobody wants the result any more.
    pub is_cancelled: &'a (dyn Fn() -> bool + 'a),
}

impl Patience<'_> {
    /// As long as it takes.
    pub const ENDLESS: Patience<'static> = Patience { deadline: None, is_cancelled: &|| false };

    /// Whether it is over.
    pub fn is_over(&self) -> bool {
        (self.is_cancelled)() || self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }
}

/// What the file system says of a file without its content. As long as it stays the same and was
/// not too fresh, so did the content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    links: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    /// The size of the file.
    pub fn bytes(&self) -> u64 {
        self.size
    }

    fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            links: metadata.nlink(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// What stands at a path now; `None` when nothing does or it cannot be known.
    pub fn at(path: &Path) -> Option<Self> {
        fs::metadata(path).ok().map(|metadata| Self::of(&metadata))
    }

    /// Whether it has another name, through which it can be written without an event here.
    pub fn has_other_names(&self) -> bool {
        self.links > 1
    }

    /// Which file it is, whatever its path.
    pub fn identity(&self) -> (u64, u64) {
        (self.device, self.inode)
    }

    /// How long ago it last changed in any way; nothing for a time that is still to come.
    pub fn age(&self) -> Duration {
        now().saturating_sub(since_epoch(self.changed))
    }

    /// Whether a write right after `now` could leave the stamp as it is.
    fn is_fresh(&self, now: Duration, fresh: Duration) -> bool {
        [self.modified, self.changed].iter().any(|time| now.abs_diff(since_epoch(*time)) < fresh)
    }
}

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

fn since_epoch((seconds, nanoseconds): (i64, i64)) -> Duration {
    let seconds = u64::try_from(seconds).unwrap_or_default();
    Duration::new(seconds, u32::try_from(nanoseconds).unwrap_or_default())
}

/// What stood at a path when it was looked at.
#[derive(Debug)]
pub(super) struct Snapshot {
    pub state: FileState,
    /// Of the file that was read; `None` where there is nothing to compare later.
    pub stamp: Option<Stamp>,
    /// Whether the stamp vouches for the content: it was old enough, and nobody wrote meanwhile.
    pub is_trusted: bool,
    /// The content, where it is not larger than was asked for.
    pub bytes: Option<Vec<u8>>,
}

impl Snapshot {
    fn without_content(state: FileState, stamp: Option<Stamp>) -> Self {
        Self { state, stamp, is_trusted: false, bytes: None }
    }
}

/// How files are read.
#[derive(Clone, Copy)]
pub(super) struct Reading {
    /// The most bytes that are kept; of a larger file only the fingerprint is taken.
    pub bytes_max: u64,
    /// How old a file's times must be before they vouch for its content.
    pub fresh: Duration,
}

/// Looks at what stands at a path. `None` when the patience ended first.
pub(super) fn snapshot(path: &Path, reading: &Reading, patience: Patience<'_>) -> Option<Snapshot> {
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) => return Some(Snapshot::without_content(failed(&error), None)),
    };
    if let Some(kind) = other_kind(&metadata) {
        let state = FileState::Other(kind.to_owned());
        return Some(Snapshot::without_content(state, Some(Stamp::of(&metadata))));
    }
    let mut last = None;
    for _ in 0..ATTEMPTS {
        let began = now();
        match read(path, reading.bytes_max, patience) {
            Ok(Some((before, after, state, bytes))) => {
                let is_whole = before == after;
                let is_trusted = is_whole && !after.is_fresh(began, reading.fresh);
                last = Some(Snapshot { state, stamp: Some(after), is_trusted, bytes });
                if is_whole {
                    break;
                }
            }
            Ok(None) => return None,
            Err(error) => return Some(Snapshot::without_content(failed(&error), None)),
        }
    }
    last
}

/// The stamps before and after, what was read, and the content unless it is too large.
type Pieces = (Stamp, Stamp, FileState, Option<Vec<u8>>);

/// Reads a file, between two looks at its stamp.
fn read(path: &Path, bytes_max: u64, patience: Patience<'_>) -> io::Result<Option<Pieces>> {
    let nonblocking = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or_default();
    let mut file = OpenOptions::new().read(true).custom_flags(nonblocking).open(path)?;
    let metadata = file.metadata()?;
    let before = Stamp::of(&metadata);
    // Something else may have taken its place by now.
    if let Some(kind) = other_kind(&metadata) {
        return Ok(Some((before, before, FileState::Other(kind.to_owned()), None)));
    }
    let mut bytes = Vec::new();
    let room = usize::try_from(before.size.min(bytes_max)).unwrap_or_default();
    bytes.try_reserve_exact(room.saturating_add(1))?;
    let read = (&mut file).take(bytes_max + 1).read_to_end(&mut bytes)? as u64;
    if read <= bytes_max {
        let state = FileState::File { fingerprint: text::fingerprint(&bytes), bytes: read };
        return Ok(Some((before, Stamp::of(&file.metadata()?), state, Some(bytes))));
    }
    fingerprint_rest(&mut file, &mut bytes, patience)?
        .map(|state| Ok((before, Stamp::of(&file.metadata()?), state, None)))
        .transpose()
}

/// The fingerprint of a file that is too large to be kept, whose beginning was read.
fn fingerprint_rest(
    file: &mut File,
    bytes: &mut Vec<u8>,
    patience: Patience<'_>,
) -> io::Result<Option<FileState>> {
    let mut fingerprinter = Fingerprinter::new();
    let mut size = bytes.len() as u64;
    fingerprinter.update(bytes);
    bytes.resize(PIECE_BYTES, 0);
    loop {
        if patience.is_over() {
            return Ok(None);
        }
        let read = file.read(bytes)?;
        if read == 0 {
            break;
        }
        size += read as u64;
        fingerprinter.update(&bytes[..read]);
    }
    Ok(Some(FileState::File { fingerprint: fingerprinter.finish(), bytes: size }))
}

/// What is never opened, by name; `None` of a regular file.
fn other_kind(metadata: &Metadata) -> Option<&'static str> {
    let kind = metadata.file_type();
    if kind.is_file() {
        None
    } else if kind.is_dir() {
        Some("a directory")
    } else if kind.is_fifo() {
        Some("a FIFO")
    } else if kind.is_socket() {
        Some("a socket")
    } else {
        Some("a device")
    }
}

fn failed(error: &io::Error) -> FileState {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => FileState::Missing,
        kind => FileState::Unreadable(kind.to_string()),
    }
}

/// The real path of what a path means, through every link, whether anything stands there or not.
pub(super) fn real_path(path: &Path) -> PathBuf {
    follow(path, LINKS_MAX)
}

fn follow(path: &Path, links: u32) -> PathBuf {
    if let Ok(real) = fs::canonicalize(path) {
        return real;
    }
    let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
        return path.to_owned();
    };
    let directory = follow(directory, links);
    let path = directory.join(name);
    match fs::read_link(&path) {
        Ok(target) if links > 0 => follow(&directory.join(target), links - 1),
        _ => path,
    }
}

/// Whether the file system at a path is one on which other machines or programs write without an
/// event on this one.
pub(super) fn is_remote(path: &Path) -> bool {
    /// NFS, SMB, SMB2, CIFS, 9P, FUSE, AFS, Coda, NCP, Ceph, OCFS2, GFS2, Lustre, vboxsf: the magic
    /// numbers of `statfs(2)`.
    const MAGIC_NUMBERS: [u32; 15] = [
        0x6969,
        0x517b,
        0xfe53_4d42,
        0xff53_4d42,
        0x0102_1997,
        0x6573_5546,
        0x5346_414f,
        0x6b41_4653,
        0x7375_7245,
        0x564c,
        0x00c3_6400,
        0x7461_636f,
        0x0116_1970,
        0x0bd0_0bd0,
        0x786f_4256,
    ];
    #[cfg(target_os = "linux")]
    {
        // The type is a signed word on some machines and unsigned on others; 32 bits count.
        rustix::fs::statfs(path).is_ok_and(|stat| {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let magic = stat.f_type as u32;
            MAGIC_NUMBERS.contains(&magic)
        })
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (path, MAGIC_NUMBERS);
        false
    }
}

/// A path as text on one line: what is not UTF-8 or would not print is escaped.
pub(super) fn shown(path: &Path) -> String {
    text::escaped(<OsStr as std::os::unix::ffi::OsStrExt>::as_bytes(path.as_os_str())).into_owned()
}
