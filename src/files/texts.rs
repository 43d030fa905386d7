//! Whole texts of files, and whether files are there: what edits are compared by.

use std::io::{self, Read};
use std::path::Path;

use futures_util::future::join_all;

use super::read::{LOOKS, open};

/// Reads texts on threads of their own. What is not there, is no UTF-8 text, or is larger than `most`
/// bytes, is an error.
pub async fn texts(paths: Vec<String>, most: u64) -> Vec<io::Result<String>> {
    let reads = paths.into_iter().map(|path| async move {
        let place = LOOKS.acquire().await.map_err(io::Error::other)?;
        let read = tokio::task::spawn_blocking(move || {
            let text = text(Path::new(&path), most);
            drop(place);
            text
        });
        read.await.map_err(io::Error::other)?
    });
    join_all(reads).await
}

fn text(path: &Path, most: u64) -> io::Result<String> {
    let mut text = String::new();
    // One byte more tells a file that is too large from one that just fits.
    open(path)?.take(most + 1).read_to_string(&mut text)?;
    if text.len() as u64 > most {
        return Err(io::Error::other("it is too large"));
    }
    Ok(text)
}

/// Whether nothing stands at a path any more, looked at on a thread of its own.
pub async fn is_gone(path: &str) -> bool {
    let path = path.to_owned();
    let look = tokio::task::spawn_blocking(move || {
        std::fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    });
    look.await.unwrap_or(false)
}
