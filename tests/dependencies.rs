//! Dependencies stay within what `deny.toml` allows, also where `cargo deny` is not installed.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

#[test]
fn licences_are_allowed_and_sources_are_registries() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let deny = std::fs::read_to_string(root.join("deny.toml")).expect("deny.toml");
    let (_, list) = deny.split_once("allow = [").expect("deny.toml allows licences");
    let (list, _) = list.split_once(']').expect("the list ends");
    let allowed: BTreeSet<&str> = list
        .split(',')
        .map(|name| name.trim().trim_matches('"'))
        .filter(|n| !n.is_empty())
        .collect();

    // Only what is built here: the rest need not have been downloaded.
    let rustc = Command::new("rustc").arg("-vV").output().expect("rustc runs");
    let version = String::from_utf8_lossy(&rustc.stdout).into_owned();
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).expect("a host");
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--offline"])
        .args(["--filter-platform", host])
        .current_dir(root)
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("metadata is JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    assert!(packages.len() > 10, "that is not our tree");
    for package in packages {
        let name = &package["name"];
        let licence = package["license"].as_str().unwrap_or_default();
        // An expression is allowed when one of its alternatives is, whole.
        let allowed = licence
            .replace('/', " OR ")
            .split(" OR ")
            .map(|one| one.trim().trim_matches(['(', ')']).to_owned())
            .any(|one| {
                one.split(" AND ").all(|part| allowed.contains(part.trim_matches(['(', ')'])))
            });
        assert!(allowed, "{name}: licence {licence:?} is not in deny.toml");
        let source = package["source"].as_str().unwrap_or("registry+ (a crate of ours)");
        assert!(source.starts_with("registry+"), "{name} comes from {source}");
    }
}
