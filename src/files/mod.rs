//! Files: whose paths are the same, what stands in them, and what changed in them since a scope knew
//! them. Everything here that touches a disk runs on threads of its own, never on a connection's
//! path.

mod authors;
mod compare;
mod contents;
mod desk;
pub mod diff;
mod disk;
mod edited;
mod git;
mod hints;
pub mod identity;
mod looked;
mod read;
pub mod secrecy;
pub mod text;
mod watch;
mod withheld;

pub use compare::Difference;
pub use contents::{Content, Weight};
pub use desk::{Bounds, CONTENTS_MAX, Count, Desk, Files, Options, Seen};
pub use disk::Stamp;
pub use hints::Changes;
pub use looked::{Looked, is_gone, look_at_edited};
pub use read::{DEADLINE, look_at, open as open_regular};
pub use secrecy::Secrecy;
pub use watch::Health;
