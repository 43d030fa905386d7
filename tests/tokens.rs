//! The estimate of tokens against two real tokenizers. What they count stands in
//! `tests/tokens/counts.json`, made by `tests/tokens/count.py`, since their vocabularies weigh more
//! than the daemon. SPEC.md states the errors that are held here.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use reminderd::engine::estimate_tokens;
use serde::de::DeserializeOwned;

fn read<T: DeserializeOwned>(name: &str) -> T {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tokens").join(name);
    let text = fs::read_to_string(path).expect("it is checked in");
    serde_json::from_str(&text).expect("it is JSON")
}

/// The estimate as a percentage of what each tokenizer counts, by sample and tokenizer.
fn percentages() -> BTreeMap<(String, String), u64> {
    let samples: BTreeMap<String, String> = read("samples.json");
    let counts: BTreeMap<String, BTreeMap<String, u64>> = read("counts.json");
    assert!(samples.keys().eq(counts.keys()), "run tests/tokens/count.py: the samples changed");
    let of = |(sample, counts): (String, BTreeMap<String, u64>)| {
        let estimate = estimate_tokens(&samples[&sample]);
        counts.into_iter().map(move |(tokenizer, count)| {
            ((sample.clone(), tokenizer), (100 * estimate + count / 2) / count)
        })
    };
    counts.into_iter().flat_map(of).collect()
}

/// The least and the most that the estimate may be, in percent of a count.
fn hold(kinds: &[&str], tokenizer: &str, least: u64, most: u64) {
    let all = percentages();
    let meant: Vec<_> = all
        .iter()
        .filter(|((sample, by), _)| by == tokenizer && kinds.iter().any(|it| sample.contains(it)))
        .map(|((sample, _), percentage)| (sample.as_str(), *percentage))
        .collect();
    assert!(meant.len() >= kinds.len(), "{kinds:?} names what is there");
    let outside = meant.iter().any(|(_, it)| !(least..=most).contains(it));
    assert!(!outside, "not all of {meant:?} are {least} to {most} % of {tokenizer}");
}

const TOKENIZERS: [&str; 2] = ["cl100k_base", "o200k_base"];

#[test]
fn english_and_code_are_within_a_fifth() {
    for tokenizer in TOKENIZERS {
        let kinds = ["English", "code", "difference", "reminder", "paths", "table", "JSON"];
        hold(&kinds, tokenizer, 80, 120);
    }
}

#[test]
fn other_scripts_are_between_a_half_and_twice() {
    hold(&["German", "Chinese", "Japanese", "Korean", "emoji"], "cl100k_base", 80, 120);
    hold(&["German", "Chinese", "Japanese", "Korean", "emoji"], "o200k_base", 100, 160);
    hold(&["Russian", "Arabic", "Hebrew", "Hindi"], "cl100k_base", 44, 120);
    hold(&["Russian", "Arabic", "Hebrew", "Hindi"], "o200k_base", 100, 260);
}

#[test]
fn numbers_are_estimated_too_low_by_half_at_most() {
    for tokenizer in TOKENIZERS {
        hold(&["hexadecimal"], tokenizer, 60, 100);
    }
}
