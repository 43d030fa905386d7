//! Reminders of the user's own (`reminders.md` §4, `configuration.md`): the forms in which they
//! are given, and the templates of their bodies.

mod announced_delta;
mod client_generator;
pub mod form;
pub mod keys;
mod names;
mod policy;
mod settings;
mod standing_text;
mod template;

pub use announced_delta::{AnnouncedDelta, Baseline, PoolChanges};
pub use client_generator::ClientGenerator;
pub use settings::{Tuning, read as read_settings};
pub use standing_text::StandingText;
