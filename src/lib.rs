//! `reminderd` owns the system reminders of LLM coding agents.

pub mod cli;
pub mod engine;
pub mod reminders;
pub mod server;
