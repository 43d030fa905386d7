//! `reminderd` owns the system reminders of LLM coding agents.
//!
//! The modules in reading order: the [`engine`] decides what is told and remembers what was;
//! [`reminders`] are the kinds it knows, [`rules`] those that users write themselves, and
//! [`configuration`] the file that they write them in; [`files`] looks at the disk, [`diagnostics`]
//! keeps what checkers say; the [`store`] keeps what was told; the [`server`] speaks the protocol; the
//! [`cli`] is for people.

pub mod configuration;
pub mod diagnostics;
pub mod engine;
pub mod files;
pub mod reminders;
pub mod rules;
pub mod server;
pub mod store;

pub mod cli;
