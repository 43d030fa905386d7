//! The file on the disk: where it is, and its bytes, however odd what lies in its place.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use super::FILE_BYTES_MAX;
use super::document::Document;
use super::place::Origin;
use crate::files;

/// The name of the file, at a workspace's root and in the user's place.
pub const FILE_NAME: &str = "reminderd.toml";

/// Why there is nothing to read.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// No file is there.
    #[error("no such file")]
    Missing,
    /// Something else is, or it cannot be opened.
    #[error("{0}")]
    Other(String),
}

/// The user's own file: `$XDG_CONFIG_HOME/reminderd/reminderd.toml`, else that below `~/.config`;
/// `None` where neither is known. A relative `XDG_CONFIG_HOME` is ignored, as its specification asks.
pub fn users_file() -> Option<PathBuf> {
    let absolute = |variable| {
        let path = PathBuf::from(std::env::var_os(variable)?);
        path.is_absolute().then_some(path)
    };
    let place = absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")))?;
    Some(place.join("reminderd").join(FILE_NAME))
}

/// Reads the document in a file. Only a regular file is read, and at most as much of it as is
/// allowed; nothing blocks. A document that is too long is a broken one.
pub fn read(path: &Path, origin: Origin) -> Result<Document, Unreadable> {
    let other = |error: io::Error| match error.kind() {
        // A link that leads nowhere, or through what is no directory, is no file.
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Unreadable::Missing,
        _ => Unreadable::Other(error.to_string()),
    };
    let real = path.canonicalize().map_err(other)?;
    let metadata = real.metadata().map_err(other)?;
    if !metadata.is_file() {
        // Even opening a device may do anything.
        let what = if metadata.is_dir() { "a directory" } else { "no regular file" };
        return Err(Unreadable::Other(format!("it is {what}")));
    }
    let file = files::open_regular(&real).map_err(other)?;
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map_err(other)?;
    if bytes.len() > FILE_BYTES_MAX {
        let why = format!(
            "the file is longer than {FILE_BYTES_MAX} bytes, which are the most that is read: make \
             it smaller"
        );
        return Ok(Document::unreadable(why, origin));
    }
    Ok(Document::of_bytes(&bytes, origin))
}
