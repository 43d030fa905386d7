//! What a client and `reminderd` say to each other: the method table, the wire
//! types by subject, and the errors. `SPEC.md` beside this crate is normative.

pub mod error;
pub mod methods;
