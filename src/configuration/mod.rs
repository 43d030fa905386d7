//! The user's file, `reminderd.toml` (`configuration.md`): read, checked, and laid over others.
//!
//! A [`Document`] is one file, whatever it says: reading never fails, and what is wrong is listed
//! with its place, while the good parts stand. [`Layers`] are the user's, the workspace's and the
//! client's, one over the other; what comes of them is [`Effective`]. An untrusted workspace's own
//! text has no part in it.

mod document;
mod layers;
mod mistake;
mod place;
mod tree;

pub use document::{BudgetEntries, Document, KindEntry, LimitEntries, ReminderEntry, StoreEntries};
pub use layers::{Effective, Layers, LeftOut};
pub use mistake::{Mistake, Severity};
pub use place::{Given, Layer, Origin, Place};
