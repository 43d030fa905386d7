//! Waiting for a condition, within a limit.

use std::thread;
use std::time::{Duration, Instant};

/// How long anything may take before the test gives up on it.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Waits for a condition, and says whether it came true in time.
pub fn wait_until(limit: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + limit;
    loop {
        if condition() {
            return true;
        }
        if Instant::now() > deadline {
            return false;
        }
        thread::sleep(Duration::from_millis(5));
    }
}
