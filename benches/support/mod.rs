//! What the benchmarks share: clocks, a client over pipes, and the floor to compare with.

pub mod client;
pub mod echo;
pub mod files;
pub mod measure;
pub mod report;
pub mod shared;
pub mod store;
pub mod table;
