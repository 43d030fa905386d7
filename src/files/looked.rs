//! Looking at files that are edited: which file a path means, whether its content may be shown, and its
//! whole text.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::disk::real_path;
use super::identity;
use super::read::{LOOKS, open};
use super::secrecy::Secrecy;

/// What a look at an edited file found.
#[derive(Debug)]
pub struct Looked {
    /// Its real path.
    pub real: String,
    /// Whether it lies below the session's root, links followed.
    pub is_inside: bool,
    /// Whether its content may be shown.
    pub shows: bool,
    /// Its text; an error when it is not there, is no UTF-8 text, or is too large.
    pub text: io::Result<Arc<str>>,
}

/// Looks at a file on a thread of its own. Of a text larger than `most` bytes nothing is read. `None`
/// when the look failed.
pub async fn look_at_edited(
    path: String,
    root: Option<PathBuf>,
    secrecy: Arc<Secrecy>,
    most: u64,
) -> Option<Looked> {
    let place = LOOKS.acquire().await.ok()?;
    let look = tokio::task::spawn_blocking(move || {
        let looked = look(&identity::on_disk(&path), root.as_deref(), &secrecy, most);
        drop(place);
        looked
    });
    look.await.ok()
}

fn look(path: &Path, root: Option<&Path>, secrecy: &Secrecy, most: u64) -> Looked {
    let real = real_path(path);
    let is_inside = root.is_none_or(|root| real.starts_with(real_path(root)));
    let shows = secrecy.judge(path, &real).reason().is_none();
    let text = text(&real, most);
    // A name that is no UTF-8 keeps its spelling.
    let real = real.to_str().map_or_else(|| path.to_string_lossy().into_owned(), str::to_owned);
    Looked { real, is_inside, shows, text }
}

fn text(path: &Path, most: u64) -> io::Result<Arc<str>> {
    let mut text = String::new();
    // One byte more tells a file that is too large from one that just fits.
    open(path)?.take(most + 1).read_to_string(&mut text)?;
    if text.len() as u64 > most {
        return Err(io::Error::other("it is too large"));
    }
    Ok(text.into())
}

/// Whether nothing stands at a path any more, looked at on a thread of its own.
pub async fn is_gone(path: &str) -> bool {
    let path = identity::on_disk(path).into_owned();
    let look = tokio::task::spawn_blocking(move || {
        fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    });
    look.await.unwrap_or(false)
}
