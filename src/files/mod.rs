//! Files: whose paths are the same, and what stands in them. Everything here that touches a disk
//! runs on threads of its own, never on a connection's path.

pub mod diff;
mod git;
pub mod identity;
mod read;
pub mod secrecy;
pub mod text;

pub use read::{DEADLINE, look_at, secrecy_of};
pub use secrecy::Secrecy;
