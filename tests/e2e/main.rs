//! The real daemon on real pipes, one file a subject.

#[path = "../support/mod.rs"]
mod support;

mod canary;
mod checkers;
mod configuration;
mod edited;
mod files;
mod json_rpc;
mod native;
mod order;
mod people;
mod recordings;
mod report;
mod secrecy;
mod shared;
mod store;
mod trouble;
