//! The thin shell between bytes and the daemon: framing, order, life, and the client's end.

pub mod framing;
pub mod lsp;
pub mod order;
pub mod peer;
pub mod transport;

pub use lsp::InitializeRequest;
pub use order::{Answer, Application, Connection, Outcome};
pub use peer::{Peer, PeerError};
pub use transport::{End, Limits, serve, serve_stdio};
