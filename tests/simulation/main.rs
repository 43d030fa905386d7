//! A seeded simulation: several clients of one daemon, its real store, real files, checkers, agents,
//! cancels, lost connections, crashes and restarts, against an oracle that knows only what went over
//! the wire and what the contract says must follow from it.
//!
//! The clock is virtual and the randomness counted. A seed that fails is printed with its last steps,
//! and `REMINDERD_SIMULATION_SEED=N` plays it again. `REMINDERD_SIMULATION_STEPS=1000000` is the long
//! run: so many steps, over seeds that nobody has seen.
//!
//! Whether the oracle would notice is a test of its own: `faults.rs` plants one lie after the other
//! into what the daemon says, or takes a line out of what it stored, and each has to be caught.

mod client;
mod faults;
mod life;
mod oracle;
mod world;

use faults::Fault;
use world::World;

/// Seeds of a normal run, and steps of each.
const SEEDS: u64 = 40;
const STEPS: u64 = 120;
/// Seeds within which every planted fault has to be caught.
const FAULT_SEEDS: u64 = 25;

fn number(variable: &str) -> Option<u64> {
    let value = std::env::var(variable).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{variable} is no number: {value:?}")))
}

/// Laws 1 to 7 and 9 to 11 hold over whatever happens.
#[test]
fn the_daemon_keeps_the_laws() {
    if let Some(seed) = number("REMINDERD_SIMULATION_SEED") {
        return World::run(seed, STEPS, None).unwrap_or_else(|failure| panic!("{failure}"));
    }
    let (first, seeds) = match number("REMINDERD_SIMULATION_STEPS") {
        None => (0, SEEDS),
        Some(steps) => (fastrand::u64(1 << 32..1 << 52), steps.div_ceil(STEPS)),
    };
    for seed in first..first + seeds {
        if let Err(failure) = World::run(seed, STEPS, None) {
            panic!("{failure}");
        }
    }
}

/// The oracle is worth what it catches.
#[test]
fn every_planted_fault_is_caught() {
    let missed: Vec<_> = Fault::ALL
        .into_iter()
        .filter(|fault| (0..FAULT_SEEDS).all(|seed| World::run(seed, STEPS, Some(*fault)).is_ok()))
        .collect();
    assert!(missed.is_empty(), "nobody noticed: {missed:?}");
}
