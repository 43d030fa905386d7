//! Medians of what takes nanoseconds to milliseconds, on a machine that does other things as well.

use std::time::{Duration, Instant};

/// How long something takes.
pub fn time(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

/// The median of `rounds` measurements of each of two things, taken in turns so that whatever the
/// machine does meanwhile happens to both. A tenth of the rounds goes ahead unmeasured.
pub fn medians_in_turns(
    rounds: usize,
    mut one: impl FnMut() -> Duration,
    mut other: impl FnMut() -> Duration,
) -> (Duration, Duration) {
    for _ in 0..rounds / 10 {
        one();
        other();
    }
    let (ones, others) = (0..rounds).map(|_| (one(), other())).unzip();
    (median(ones), median(others))
}

/// The median of `rounds` measurements, of which a tenth goes ahead unmeasured.
pub fn median_of(rounds: usize, mut work: impl FnMut() -> Duration) -> Duration {
    for _ in 0..rounds / 10 {
        work();
    }
    median((0..rounds).map(|_| work()).collect())
}

/// The duration that so many in a hundred do not exceed.
pub fn percentile(mut durations: Vec<Duration>, percent: usize) -> Duration {
    let place = durations.len() * percent / 100;
    *durations.select_nth_unstable(place).1
}

fn median(mut durations: Vec<Duration>) -> Duration {
    let middle = durations.len() / 2;
    *durations.select_nth_unstable(middle).1
}
