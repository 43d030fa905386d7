//! Every command of the README works: those that are fast are run here, the others are what CI
//! runs.

use std::path::Path;
use std::process::Command;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The lines of the README's `sh` blocks.
fn commands() -> Vec<String> {
    let readme = std::fs::read_to_string(root().join("README.md")).expect("README.md");
    let mut commands = Vec::new();
    for block in readme.split("```sh\n").skip(1) {
        let (lines, _) = block.split_once("```").expect("a block ends");
        commands.extend(lines.lines().map(str::to_owned));
    }
    commands
}

#[test]
fn every_command_is_run() {
    let commands = commands();
    assert!(!commands.is_empty(), "the README has no commands");
    // Shared daemons meet here, and not where the person who runs the tests has theirs.
    let place = tempfile::tempdir().expect("a directory");
    for command in commands {
        match command.as_str() {
            // This very test is part of it; CI calls it by that name.
            "tests/run" => {
                let ci = std::fs::read_to_string(root().join(".ci/run")).expect(".ci/run");
                assert!(ci.contains("exec tests/run"), ".ci/run runs something else");
            }
            command => {
                let output = Command::new("sh")
                    .args(["-c", command])
                    .current_dir(root())
                    .env("XDG_RUNTIME_DIR", place.path())
                    .output()
                    .expect("sh runs");
                let printed = String::from_utf8_lossy(&output.stdout);
                assert!(output.status.success(), "{command}\n{output:?}");
                assert!(printed.contains("passed, 0 failed"), "{command}\n{printed}");
                assert!(printed.contains("WAIT"), "nothing was shown: {command}\n{printed}");
            }
        }
    }
}

#[test]
fn every_link_into_the_tree_leads_somewhere() {
    let readme = std::fs::read_to_string(root().join("README.md")).expect("README.md");
    for link in readme.split("](").skip(1) {
        let (target, _) = link.split_once(')').expect("a link ends");
        if !target.contains("://") {
            assert!(
                root().join(target).exists(),
                "README.md links to {target}, which is not there"
            );
        }
    }
}
