//! What the engine is given instead of reaching for it: the time, and randomness. A deterministic
//! daemon has a clock that only scripts move and randomness that can be counted, so that the same
//! messages yield the same bytes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::sleep;

use crate::engine::{Material, Millis};

/// Where a deterministic daemon's clock starts: 2026-01-01T00:00:00Z.
pub const EPOCH: Millis = 1_767_225_600_000;
/// How long a deterministic clock has to stand still at least before who waits for a later time takes
/// it to be there: a script that waits does not move it meanwhile.
const STANDSTILL: Duration = Duration::from_secs(1);
/// Bytes of randomness in a token.
const TOKEN_BYTES: usize = 16;

/// The time and the randomness of a daemon.
#[derive(Debug)]
pub enum Surroundings {
    /// Those of the system.
    System,
    /// A clock that scripts move, and a count.
    Deterministic {
        /// The time.
        now: AtomicU64,
        /// Rung when the time was moved.
        moved: Notify,
        /// How much randomness was given.
        given: AtomicU64,
        /// The randomness of the next WAIT, where a recording says so.
        next: Mutex<Option<Material>>,
    },
}

impl Surroundings {
    /// A clock at its start and a count at nothing.
    pub fn deterministic() -> Self {
        Self::Deterministic {
            now: AtomicU64::new(EPOCH),
            moved: Notify::new(),
            given: AtomicU64::new(0),
            next: Mutex::default(),
        }
    }

    /// The time.
    pub fn now(&self) -> Millis {
        match self {
            Self::System => {
                let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                Millis::try_from(since.as_millis()).unwrap_or(Millis::MAX)
            }
            Self::Deterministic { now, .. } => now.load(Ordering::Relaxed),
        }
    }

    /// Moves a deterministic clock; `None` when the clock is the system's.
    pub fn advance(&self, by: Millis) -> Option<Millis> {
        match self {
            Self::System => None,
            Self::Deterministic { now, moved, .. } => {
                let before = now.fetch_add(by, Ordering::Relaxed);
                moved.notify_waiters();
                Some(before.saturating_add(by))
            }
        }
    }

    /// Settles the randomness of the next WAIT; of no effect where it is the system's.
    pub fn give(&self, material: Material) {
        if let Self::Deterministic { next, .. } = self {
            *next.lock() = Some(material);
        }
    }

    /// Waits for a time. A deterministic clock that nobody moves is taken to reach it after as long
    /// as the system's would, so that a script can simply wait.
    pub async fn reach(&self, time: Millis) {
        loop {
            let left = Duration::from_millis(time.saturating_sub(self.now()));
            let Self::Deterministic { moved, .. } = self else { return sleep(left).await };
            let mut rings = std::pin::pin!(moved.notified());
            rings.as_mut().enable();
            if self.now() >= time {
                return;
            }
            tokio::select! {
                () = rings => {}
                () = sleep(left.max(STANDSTILL)) => return,
            }
        }
    }

    /// Randomness for one WAIT. The token ends in the session's tag, so that a commit, which names
    /// no session, finds it. What is countable differs from one life of a session, as its fencing
    /// number counts them, to the next.
    pub fn material(&self, tag: u64, fence: u64) -> std::io::Result<Material> {
        let mut bytes = [0_u8; 24];
        match self {
            Self::System => getrandom::fill(&mut bytes).map_err(std::io::Error::other)?,
            Self::Deterministic { given, next, .. } => {
                if let Some(material) = next.lock().take() {
                    return Ok(material);
                }
                let count = given.fetch_add(1, Ordering::Relaxed);
                let count = count.wrapping_add(fence.wrapping_sub(1) << 32);
                let hash = blake3::hash(&count.to_le_bytes());
                bytes.copy_from_slice(&hash.as_bytes()[..24]);
            }
        }
        let (token, record) = bytes.split_at(TOKEN_BYTES);
        Ok(Material { token: format!("{}.{tag:016x}", hex(token)), record: hex(record) })
    }

    /// Whether a text has the form of a token that a daemon gave.
    pub fn is_token(text: &str) -> bool {
        let is_hex = |part: &str, length| {
            part.len() == length && part.bytes().all(|byte| byte.is_ascii_hexdigit())
        };
        text.split_once('.')
            .is_some_and(|(token, tag)| is_hex(token, TOKEN_BYTES * 2) && is_hex(tag, 16))
    }
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
