//! The user's file, `reminderd.toml` (`configuration.md`): read, checked, and laid over others.
//!
//! A [`Document`] is one file, whatever it says: reading never fails, and what is wrong is listed
//! with its place, while the good parts stand. [`Layers`] are the user's, the workspace's and the
//! client's, one over the other; what comes of them is [`Effective`]. An untrusted workspace's own
//! text has no part in it.

mod document;
mod file;
mod layers;
mod mistake;
mod place;
mod schema;
mod text;
mod tree;
mod walk;

pub use document::{BudgetEntries, Document, KindEntry, LimitEntries, ReminderEntry, StoreEntries};
pub use file::{FILE_NAME, Unreadable, read, users_file};
pub use layers::{Effective, Layers, LeftOut, Source};
pub use mistake::{Mistake, Severity, nearest};
pub use place::{Given, Layer, Origin, Place};
pub use schema::document as schema;

/// The longest file that is read, in bytes.
pub const FILE_BYTES_MAX: usize = 1 << 20;
/// Reminders, and entries of `[kinds]`, that a file has at most.
pub const REMINDERS_MAX: usize = 1_000;
