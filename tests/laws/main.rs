//! The laws of the quality page as properties: an operation stream against a naive model, hostile
//! text, round trips, and samples of the real binary.
//!
//! A normal run is bounded and seeded, so that it says the same every time. `REMINDERD_LAWS_CASES` says how many operation streams a long one looks
//! at (one has up to 60 operations, 30 in the middle: 33,000 are a million), the other properties
//! grow in proportion, and every run is another. A case that fails is shrunk, printed
//! one operation a line, and kept in `regressions/`; give it a name in `named.rs` as well.

mod binary;
mod configuration;
mod disk;
mod escape;
mod isolation;
mod kinds;
mod model;
mod named;
mod operation;
mod round_trip;
mod sequences;
mod spelling;
mod world;

use std::fmt::Debug;

use proptest::prelude::Strategy;
use proptest::test_runner::{Config, FileFailurePersistence, RngSeed, TestCaseError, TestRunner};

/// Cases of the operation stream in a normal run.
const SEQUENCES: u32 = 1000;

/// Checks a law over so many cases of a strategy; in a long run more, in proportion.
fn law<S: Strategy>(
    regressions: &'static str,
    cases: u32,
    strategy: &S,
    holds: impl Fn(&S::Value) -> Result<(), String>,
) where
    S::Value: Debug,
{
    let asked = std::env::var("REMINDERD_LAWS_CASES").ok();
    let rng_seed = if asked.is_some() { RngSeed::Random } else { RngSeed::Fixed(2026) };
    let asked = asked.map_or(SEQUENCES, |asked| asked.parse().expect("a number of cases"));
    let cases = u64::from(cases) * u64::from(asked) / u64::from(SEQUENCES);
    let cases = u32::try_from(cases).unwrap_or(u32::MAX).max(1);
    let mut runner = TestRunner::new(Config {
        cases,
        rng_seed,
        max_shrink_iters: 20_000,
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(regressions))),
        ..Config::default()
    });
    let outcome = runner.run(strategy, |case| holds(&case).map_err(TestCaseError::fail));
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}
