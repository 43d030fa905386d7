//! Files: whose paths are the same, and what stands in them. Everything here that touches a disk
//! runs on threads of its own, never on a connection's path.

pub mod identity;
mod read;
mod texts;

pub use read::{DEADLINE, look_at};
pub use texts::{is_gone, texts};
