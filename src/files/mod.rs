//! Files: whose paths are the same, and what stands in them. Everything here that touches a disk
//! runs on threads of its own, never on a connection's path.

pub mod diff;
pub mod identity;
mod read;
pub mod text;

pub use read::{DEADLINE, look_at};
