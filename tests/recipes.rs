//! The recipes of `protocol/RULES.md`: each is what a scenario of `tests/scenarios/recipes/` plays,
//! and all of them together are a file without a mistake.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The TOML blocks of the page.
fn blocks() -> Vec<String> {
    let page = fs::read_to_string(root().join("protocol/RULES.md")).expect("the page");
    let (_, recipes) = page.split_once("\n## Recipes\n").expect("the page has recipes");
    let blocks = recipes.split("```toml\n").skip(1);
    blocks.map(|rest| rest.split_once("```").expect("a block ends").0.to_owned()).collect()
}

/// The reminder that a scenario opens its session with.
fn played(scenario: &Path) -> Value {
    let text = fs::read_to_string(scenario)
        .unwrap_or_else(|error| panic!("{}: {error}", scenario.display()));
    let opens = text.lines().filter(|line| line.starts_with(r#"{"open""#));
    let mut opens = opens.map(|line| serde_json::from_str::<Value>(line).expect("a line is JSON"));
    let open = opens.next().expect("a scenario opens a session");
    open["open"]["reminders"][0].clone()
}

#[test]
fn every_recipe_is_played_as_it_stands_on_the_page() {
    let mut ids = BTreeSet::new();
    for block in blocks() {
        let file: Value = toml::from_str(&block).expect(&block);
        let reminder = &file["reminders"][0];
        let id = reminder["id"].as_str().expect("an id").to_owned();
        let scenario = root().join(format!("tests/scenarios/recipes/{id}.jsonl"));
        assert_eq!(*reminder, played(&scenario), "{}", scenario.display());
        assert!(ids.insert(format!("{id}.jsonl")), "two recipes are called {id}");
    }
    let there = fs::read_dir(root().join("tests/scenarios/recipes")).expect("the scenarios");
    let there = there.map(|entry| entry.expect("an entry").file_name().into_string());
    let there: BTreeSet<_> = there.map(|name| name.expect("a plain name")).collect();
    assert_eq!(ids, there, "the recipes of the page, and the scenarios");
    assert!(ids.len() >= 12, "a dozen recipes");
}

#[test]
fn all_recipes_are_a_file_without_a_mistake() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("reminderd.toml");
    fs::write(&file, blocks().join("\n")).expect("the file is written");
    let output = Command::new(env!("CARGO_BIN_EXE_reminderd"))
        .args(["config", "check"])
        .arg(&file)
        .output()
        .expect("reminderd starts");
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}
