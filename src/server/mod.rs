//! The server: bytes in, bytes out. `framing` and `transport` move messages, `order` applies them
//! in the order of their bytes, `handlers` say what each does, and `convert` is the only place
//! that knows both the wire and the engine. `shared` serves many clients over the socket of an
//! `endpoint`; `handshake` and `bridge` are between that and `reminderd connect`.

pub mod bridge;
pub mod endpoint;
pub mod framing;
pub mod handshake;
pub mod lane;
pub mod lsp;
mod order;
pub mod peer;
pub mod shared;
pub mod transport;

mod checks;
mod configured;
mod convert;
mod daemon;
mod handlers;
mod kept;
mod looks;
mod session_files;
mod surroundings;
mod tape;

pub use configured::ConfigurationFiles;
pub use convert::record_content;
pub use daemon::{Daemon, Served, digest};
pub use lsp::InitializeRequest;
pub use order::{Answer, Application, Connection, Outcome, log_panics_without_payload};
pub use peer::{Peer, PeerError};
pub use surroundings::{EPOCH, Surroundings};
pub use tape::{Recorder, Recordings, recordings};
pub use transport::{End, Limits, serve, serve_stdio};
