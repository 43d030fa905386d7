//! The laws of the quality page as properties: an operation stream against a naive model, hostile
//! text, round trips, and samples of the real binary.
//!
//! A normal run is bounded; `REMINDERD_LAWS_CASES` says how many cases each property gets in a long
//! one (a case has up to 60 operations: 33,000 are a million). A case that fails is shrunk, printed
//! one operation a line, and kept in `regressions/`; give it a name in `named.rs` as well.

mod isolation;
mod model;
mod operation;
mod sequences;
mod world;

use std::fmt::Debug;

use proptest::prelude::Strategy;
use proptest::test_runner::{Config, FileFailurePersistence, TestCaseError, TestRunner};

/// Checks a law over cases of a strategy: `cases` of them, unless the environment says how many.
fn law<S: Strategy>(
    regressions: &'static str,
    cases: u32,
    strategy: &S,
    holds: impl Fn(&S::Value) -> Result<(), String>,
) where
    S::Value: Debug,
{
    let asked = std::env::var("REMINDERD_LAWS_CASES").ok();
    let cases = asked.map_or(cases, |asked| asked.parse().expect("a number of cases"));
    let mut runner = TestRunner::new(Config {
        cases,
        max_shrink_iters: 20_000,
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(regressions))),
        ..Config::default()
    });
    let outcome = runner.run(strategy, |case| holds(&case).map_err(TestCaseError::fail));
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}
