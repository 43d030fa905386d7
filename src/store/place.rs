//! Where the store is: a directory that nobody else may look into.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// `$XDG_STATE_HOME/reminderd`, else `~/.local/state/reminderd`; `None` where neither is known. A
/// relative `XDG_STATE_HOME` is ignored, as its specification asks.
pub fn default_directory() -> Option<PathBuf> {
    let absolute = |variable| {
        let path = PathBuf::from(std::env::var_os(variable)?);
        path.is_absolute().then_some(path)
    };
    let state = absolute("XDG_STATE_HOME")
        .or_else(|| Some(absolute("HOME")?.join(".local").join("state")))?;
    Some(state.join("reminderd"))
}

/// Makes the directory where it is not there, and closes it to others: 0700.
pub fn prepare(directory: &Path) -> io::Result<()> {
    if !directory.is_dir() {
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    }
    let mode = fs::metadata(directory)?.permissions().mode();
    if mode & 0o077 != 0 {
        fs::set_permissions(directory, Permissions::from_mode(mode & 0o7700))?;
    }
    Ok(())
}
