//! Recordings. What happened to a session is written down as a script of `reminderd run` that plays
//! anywhere, years later, without the machine that it was recorded on: its messages in the order in which
//! they took effect, when, from which client, with the answers as expectations; and in front of each
//! message, as a `surroundings` step, what the daemon was given with it: randomness, configuration,
//! what stood in files.
//!
//! [`recorder`] knows which sessions are recorded and puts itself between connections and handlers;
//! a [`reel`] keeps the order of one session and writes its script; [`played`] is the other side, what a
//! daemon that plays a recording has in place of its machine. Both speak of what was seen of files as
//! [`Glimpse`].

mod backlog;
mod glimpse;
mod played;
mod recorder;
mod reel;

pub use glimpse::{Glimpse, Sight};
pub use played::{Client, Ledger, Played, read};
pub use recorder::{Recorder, Recordings, recordings};
pub use reel::{Computed, Notes};
