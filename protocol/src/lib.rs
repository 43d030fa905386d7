//! What a client and `reminderd` say to each other: the method table, the wire
//! types by subject, and the errors. `SPEC.md` beside this crate is normative.

pub mod methods;

pub mod agent;
pub mod diagnostics;
pub mod error;
pub mod files;
pub mod history;
pub mod initialize;
pub mod problem;
pub mod queue;
pub mod record;
pub mod roster;
pub mod schema;
pub mod scope;
pub mod session;
pub mod state;
pub mod turn;
pub mod wait;

mod wire;

pub use wire::NoParams;
