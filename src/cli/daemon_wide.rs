//! What the user's file says of the whole daemon: read when it starts.

use crate::configuration::{Layer, Origin, StoreEntries, read, users_file};
use crate::server::Limits;

/// `[limits]` and `[store]` of the user's file, as far as they can be read; the sessions' part of the
/// daemon reports what is wrong with it.
pub fn users_settings() -> (Limits, StoreEntries) {
    let document = users_file().and_then(|path| {
        let origin = Origin::new(Layer::User, path.display().to_string());
        read(&path, origin).ok()
    });
    let Some(document) = document else { return Default::default() };
    let default = Limits::default();
    let message_bytes = document.limits.message_bytes.map(|given| given.value);
    let message_bytes = message_bytes.and_then(|bytes| usize::try_from(bytes).ok());
    let message_bytes = message_bytes.unwrap_or(default.message_bytes);
    (Limits { message_bytes, ..default }, document.store)
}
