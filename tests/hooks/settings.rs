//! What `reminderd hook install` and `uninstall` make of settings that are there.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::World;

/// The agents, with their settings: the user's and a project's.
const AGENTS: &[(&str, &str, &str)] = &[
    ("claude-code", ".claude/settings.json", ".claude/settings.json"),
    ("codex", ".codex/hooks.json", ".codex/hooks.json"),
    ("copilot", ".copilot/settings.json", ".github/copilot/settings.json"),
    ("gemini", ".gemini/settings.json", ".gemini/settings.json"),
];
const THEIRS: &str = r#"{
  // what is mine
  "model": "m",
  "hooks": {
    "Stop": [
      {"hooks": [{"type": "command", "command": "notify"}]}
    ],
    "PostToolUse": [
      {"matcher": "Edit", "hooks": [{"type": "command", "command": "fmt"}]}
    ]
  },
}
"#;

#[test]
fn what_is_put_in_can_be_taken_out_and_nothing_else_is_touched() {
    for (agent, file, _) in AGENTS {
        let world = World::new(agent);
        let path = world.home.path().join(file);
        fs::create_dir_all(path.parent().expect("a directory")).expect("it is made");
        fs::write(&path, THEIRS).expect("it is written");
        let say = |arguments: &[&str]| {
            let output = world.run(&[&["hook"], arguments].concat(), "");
            assert!(output.status.success(), "{output:?}");
            String::from_utf8(output.stdout).expect("UTF-8")
        };
        let diff = say(&["install", agent, "--dry-run"]);
        assert!(diff.contains("+++"), "{diff}");
        assert_eq!(fs::read_to_string(&path).expect("it is there"), THEIRS, "only said");
        say(&["install", agent]);
        let installed = fs::read_to_string(&path).expect("it is there");
        assert!(installed.contains("// what is mine") && installed.contains("notify"));
        assert!(say(&["install", agent]).contains("already"));
        assert_eq!(fs::read_to_string(&path).expect("it is there"), installed, "a second time");
        say(&["uninstall", agent]);
        assert_eq!(fs::read_to_string(&path).expect("it is there"), THEIRS);
        assert!(say(&["uninstall", agent]).contains("does not have it"));
    }
}

#[test]
fn settings_of_a_project_are_made_where_there_are_none() {
    for (agent, _, file) in AGENTS {
        let world = World::new(agent);
        assert!(world.run(&["hook", "install", agent, "--project"], "").status.success());
        let path = world.project().join(file);
        let text = fs::read_to_string(path).expect("it is there");
        let settings: Value = serde_json::from_str(&text).expect("JSON");
        assert!(settings["hooks"].as_object().is_some_and(|hooks| hooks.len() > 2), "{settings}");
    }
}

#[test]
fn settings_that_are_not_understood_are_left_as_they_are() {
    for text in ["[1]", "{\"hooks\": 3}", "{\"hooks\": {\"Stop\": {}}}", "{\"hooks\": "] {
        let world = World::new("claude-code");
        let path = world.home.path().join(".claude/settings.json");
        fs::create_dir_all(path.parent().expect("a directory")).expect("it is made");
        fs::write(&path, text).expect("it is written");
        for change in ["install", "uninstall"] {
            let output = world.run(&["hook", change, "claude-code"], "");
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(!output.status.success(), "{text}: {output:?}");
            assert!(said.contains("settings.json is left as it is: "), "{said}");
        }
        assert_eq!(fs::read_to_string(&path).expect("it is there"), text);
    }
}

#[test]
fn the_plugin_has_the_hooks_that_are_put_in() {
    let world = World::new("claude-code");
    assert!(world.run(&["hook", "install", "claude-code", "--project"], "").status.success());
    let read = |path: &Path| -> Value {
        let text = fs::read_to_string(path).expect("it is there");
        let mut settings: Value = serde_json::from_str(&text).expect("JSON");
        let events = settings["hooks"].as_object_mut().expect("events");
        for hook in events.values_mut().flat_map(|groups| groups.as_array_mut().expect("groups")) {
            // Where the program is stands in one of them alone.
            let command = hook["hooks"][0]["command"].as_str().expect("a command");
            let (_, arguments) = command.split_once("reminderd ").expect("the program's name");
            hook["hooks"][0]["command"] = arguments.into();
        }
        settings["hooks"].take()
    };
    let plugin = Path::new(env!("CARGO_MANIFEST_DIR")).join("editors/claude-code/hooks/hooks.json");
    assert_eq!(read(&plugin), read(&world.project().join(".claude/settings.json")));
}
