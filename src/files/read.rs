//! Looking at what reminders asked for: text, directories, sizes. Only regular files are opened,
//! without blocking, and never more of them than is wanted.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use percent_encoding::percent_decode_str;
use rustix::fs::OFlags;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

use crate::engine::{Findings, Found, Reading, Wanted};

use super::identity;
use super::secrecy::Secrecy;
use super::text::{Decoded, decode, decode_start, escaped, is_utf_16};

/// How long looking may take unless the client says otherwise.
pub const DEADLINE: Duration = Duration::from_secs(2);
/// The largest instruction file that is read, in bytes (`reminders.md`, `workspace-instructions`).
const INSTRUCTIONS_BYTES_MAX: u64 = 256 << 10;
/// The most text of a mention, in bytes (`reminders.md`, `mention`).
const MENTION_BYTES_MAX: u64 = 512 << 10;
/// How far into a text lines are looked for, in bytes.
const LINES_BYTES_MAX: u64 = 16 << 20;
/// Looks that may be under way at once, those that were given up included: a disk that hangs must
/// not gather threads.
pub(super) static LOOKS: Semaphore = Semaphore::const_new(8);
/// The most names of a directory.
const LISTING_NAMES_MAX: usize = 1000;
/// The largest attachment whose pages are counted, in bytes.
const ATTACHMENT_BYTES_MAX: u64 = 64 << 20;
/// The most that a compressed part of an attachment may hold, in bytes, for its pages to be counted:
/// a small file can unpack to more than there is memory.
const UNPACKED_BYTES_MAX: usize = 16 << 20;

/// Looks at files on threads of their own. What is not there when the time is up is left out, and so
/// is the content of what may not be shown: it is named, with the reason.
pub fn look_at(
    wanted: Vec<Wanted>,
    secrecy: &Arc<Secrecy>,
    deadline: Duration,
) -> impl Future<Output = Findings> + Send + use<> {
    let until = Instant::now() + deadline;
    let secrecy = Arc::clone(secrecy);
    let looks = wanted.into_iter().map(move |wanted| {
        let secrecy = Arc::clone(&secrecy);
        async move {
            let place = timeout_at(until, LOOKS.acquire()).await.ok()?.ok()?;
            let look = tokio::task::spawn_blocking(move || {
                let found = look(&wanted, &secrecy);
                drop(place);
                (wanted, found)
            });
            timeout_at(until, look).await.ok()?.ok()
        }
    });
    let looks = join_all(looks);
    async move { looks.await.into_iter().flatten().collect() }
}

fn look(wanted: &Wanted, secrecy: &Secrecy) -> Found {
    if wanted.reading == Reading::Given {
        return given(&wanted.path, secrecy);
    }
    if !identity::is_path(&wanted.path) {
        return Found::Missing;
    }
    let path = &*identity::on_disk(&wanted.path);
    let real = match fs::canonicalize(path) {
        Ok(real) => real,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return missing(path, wanted),
        Err(error) => return unread(path, error.to_string()),
    };
    let found = fs::metadata(&real).and_then(|metadata| {
        let verdict = secrecy.judge(path, &real);
        // Names in a directory, sizes and numbers of pages are no content.
        let verdict = match wanted.reading {
            Reading::Mention | Reading::Lines(..) if metadata.is_file() => verdict,
            _ => verdict.though_ignored(),
        };
        if let Some(reason) = verdict.reason() {
            return Ok(unread(&real, reason.to_string()));
        }
        if metadata.is_dir() {
            return match wanted.reading {
                Reading::Mention | Reading::Lines(..) => listing(&real),
                _ => Ok(unread(&real, "it is a directory")),
            };
        }
        if !metadata.is_file() {
            return Ok(unread(&real, "it is no regular file"));
        }
        match wanted.reading {
            Reading::Instructions if metadata.len() > INSTRUCTIONS_BYTES_MAX => {
                let bytes = metadata.len();
                let reason = format!("it has {bytes} bytes, over {INSTRUCTIONS_BYTES_MAX}");
                Ok(unread(&real, reason))
            }
            Reading::Instructions => text(&real, INSTRUCTIONS_BYTES_MAX),
            Reading::Mention => text(&real, MENTION_BYTES_MAX),
            Reading::Lines(start, end) => lines(&real, start, end),
            Reading::Attachment => attachment(&real, metadata.len()),
            Reading::Given => Ok(Found::Showable),
            // What is not one file is worked out elsewhere, and never looked for.
            Reading::Edits(_) | Reading::Diagnostics => Ok(Found::Missing),
        }
    });
    found.unwrap_or_else(|error| unread(&real, error.to_string()))
}

/// Whether what the client gave of a file, or of another address, may be shown.
fn given(target: &str, secrecy: &Secrecy) -> Found {
    let shown: PathBuf = if identity::is_path(target) {
        identity::on_disk(target).into_owned()
    } else {
        // Of an address without a path here, its name counts all the same.
        let (_, rest) = target.split_once(':').unwrap_or(("", target));
        Path::new("/").join(&*percent_decode_str(rest).decode_utf8_lossy())
    };
    let real = fs::canonicalize(&shown).unwrap_or_else(|_| shown.clone());
    match secrecy.judge(&shown, &real).on_given().reason() {
        Some(reason) => unread(&real, reason.to_string()),
        None => Found::Showable,
    }
}

/// Nothing is there. What is gone from a linked directory is gone from the real one: instructions
/// that are not there are an empty text.
fn missing(path: &Path, wanted: &Wanted) -> Found {
    let directory = path.parent().and_then(|directory| fs::canonicalize(directory).ok());
    match (wanted.reading, directory, path.file_name()) {
        (Reading::Instructions, Some(directory), Some(name)) => {
            let real = directory.join(name).to_string_lossy().into_owned();
            Found::Text { real, text: String::new(), cut_from: None }
        }
        _ => Found::Missing,
    }
}

fn unread(real: &Path, reason: impl Into<String>) -> Found {
    Found::Unread { real: real.to_string_lossy().into_owned(), reason: reason.into() }
}

/// Opens a file by its real path without waiting, whatever stands in its place by now: a link that was
/// put there since was not judged.
pub fn open(real: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOFOLLOW;
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(real)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::other("it is no regular file"))
    }
}

/// The beginning of a text file. Never cut within a character.
fn text(real: &Path, most: u64) -> io::Result<Found> {
    let mut bytes = Vec::new();
    let file = open(real)?;
    let size = file.metadata()?.len();
    file.take(most).read_to_end(&mut bytes)?;
    let is_cut = size > most;
    let decoded = if is_cut { decode_start(&bytes) } else { decode(&bytes) };
    let Decoded::Text(text) = decoded else {
        return Ok(unread(real, format!("it is binary, {size} bytes")));
    };
    let real = real.to_string_lossy().into_owned();
    Ok(Found::Text { real, text: text.into_owned(), cut_from: is_cut.then_some(size) })
}

/// Lines of a text file, and no more of it than is shown at most.
fn lines(real: &Path, start: u64, end: u64) -> io::Result<Found> {
    let mut reader = BufReader::new(open(real)?.take(LINES_BYTES_MAX));
    if is_utf_16(reader.fill_buf()?) {
        // Its lines are found in its characters only.
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes)?;
        return match decode_start(&bytes) {
            Decoded::Text(text) => lines_of(real, text.as_bytes(), start, end),
            Decoded::Binary => Ok(unread(real, "it is binary")),
        };
    }
    lines_of(real, reader, start, end)
}

fn lines_of(real: &Path, mut reader: impl BufRead, start: u64, end: u64) -> io::Result<Found> {
    let (mut text, mut line) = (Vec::new(), Vec::new());
    let mut number = 0;
    let mut size = 0;
    while number < end && reader.read_until(b'\n', &mut line)? > 0 {
        number += 1;
        if line.contains(&0) {
            return Ok(unread(real, "it is binary"));
        }
        if number >= start {
            size += line.len() as u64;
            if size <= MENTION_BYTES_MAX {
                text.append(&mut line);
            }
        }
        line.clear();
    }
    let is_cut = size > text.len() as u64;
    match decode(&text) {
        Decoded::Text(text) => Ok(Found::Text {
            real: real.to_string_lossy().into_owned(),
            text: text.strip_suffix('\n').unwrap_or(&text).to_owned(),
            cut_from: is_cut.then_some(size),
        }),
        Decoded::Binary => Ok(unread(real, "it is binary")),
    }
}

/// The names in a directory, sorted; directories end in a slash.
fn listing(real: &Path) -> io::Result<Found> {
    let mut names = Vec::new();
    for entry in fs::read_dir(real)? {
        let entry = entry?;
        let mut name = escaped(entry.file_name().as_bytes()).into_owned();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            name.push('/');
        }
        names.push(name);
    }
    names.sort();
    let more = names.len().saturating_sub(LISTING_NAMES_MAX) as u64;
    names.truncate(LISTING_NAMES_MAX);
    Ok(Found::Listing { real: real.to_string_lossy().into_owned(), names, more })
}

/// The size and, of a PDF, the pages.
fn attachment(real: &Path, bytes: u64) -> io::Result<Found> {
    let mut content = Vec::new();
    open(real)?.take(ATTACHMENT_BYTES_MAX).read_to_end(&mut content)?;
    let options = lopdf::LoadOptions {
        max_decompressed_size: Some(UNPACKED_BYTES_MAX),
        ..lopdf::LoadOptions::default()
    };
    let pages = lopdf::Document::load_mem_with_options(&content, options)
        .ok()
        .map(|document| document.get_pages().len() as u64);
    let fingerprint = blake3::hash(&content).to_hex().to_string();
    Ok(Found::Attachment { bytes, pages, fingerprint })
}
