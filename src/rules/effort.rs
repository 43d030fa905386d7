//! What the rules of one WAIT may cost together: each is bounded by itself, and a thousand that take
//! as long as they may are not to hold up a request. It is counted, not timed, so that the same input
//! is always answered in the same way.

use std::rc::Rc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use crate::engine::View;

/// How many conditions and bodies may take long in a WAIT. The others are as quick as most are.
const LONG_MAX: u32 = 16;
/// How much patterns may look through in a WAIT, in bytes.
const BYTES_MAX: usize = 8 << 20;

/// Why a rule is left out that comes behind those that took it all.
pub const SPENT: &str = "the rules of this request take too long together, so that this one is left \
                         out of it: make them quicker";

/// Others took all that there was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spent;

/// What is left for the rules of a WAIT.
#[derive(Debug)]
pub struct Effort {
    // Shared with the thread that a long source is worked out on.
    long: AtomicU32,
    bytes: AtomicUsize,
}

impl Default for Effort {
    fn default() -> Self {
        Self { long: LONG_MAX.into(), bytes: BYTES_MAX.into() }
    }
}

impl Effort {
    /// That of the WAIT that is looked at.
    pub fn of(view: &View<'_>) -> Rc<Self> {
        view.workings.of()
    }

    /// Whether one more may take long.
    pub fn takes_long(&self) -> bool {
        let one_less = |left: u32| left.checked_sub(1);
        self.long.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_ok()
    }

    /// Whether a pattern may look through so many bytes.
    pub fn looks_through(&self, bytes: usize) -> bool {
        let fewer = |left: usize| left.checked_sub(bytes);
        let looks = self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fewer).is_ok();
        if !looks {
            self.bytes.store(0, Ordering::Relaxed);
        }
        looks
    }
}
