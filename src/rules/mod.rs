//! Reminders of the user's own (`reminders.md` §4, `configuration.md`): the forms in which they
//! are given, the rules among them, and the language of conditions and bodies.

mod announced_delta;
mod client_generator;
mod common;
mod effort;
mod expression;
pub mod form;
pub mod keys;
mod language;
mod matching;
mod names;
mod policy;
mod rule;
mod settings;
mod soundness;
mod standing_text;
mod template;

pub use announced_delta::{AnnouncedDelta, Baseline, PoolChanges};
pub use client_generator::ClientGenerator;
pub use rule::Rule;
pub use settings::{Tuning, read as read_settings};
pub use standing_text::StandingText;
