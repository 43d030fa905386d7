//! Layers over each other, and what an untrusted workspace has no part in.

use std::sync::Arc;

use reminderd::configuration::{Document, Layer, Layers, Origin};
use reminderd::engine::{Configuration, Switch, Value};
use serde_json::json;

fn document(layer: Layer, text: &str) -> Option<Arc<Document>> {
    let document = Document::read(text, Origin::new(layer, format!("{layer:?}.toml")));
    assert_eq!(document.mistakes, [], "{text}");
    Some(Arc::new(document))
}

fn layers(user: &str, workspace: &str) -> Layers {
    Layers {
        user: document(Layer::User, user),
        workspace: document(Layer::Workspace, workspace),
        session: None,
    }
}

fn value(json: serde_json::Value) -> Value {
    serde_json::from_value(json).expect("plain data")
}

#[test]
fn later_layers_win_member_by_member_and_by_id() {
    let mut layers = layers(
        "[kinds]\ntask-nudge = { after = 3, cooldown = 4 }\nsections = false\nmention = { textBytes = 9 }\n\
         [budget]\nperWait = 5\nperSession = 6\n\
         [[reminders]]\nid = \"a\"\nbody = \"user\"\n[[reminders]]\nid = \"b\"\nbody = \"user\"\n",
        "[kinds]\ntask-nudge = { after = 7 }\nsections = true\nmention = false\n[budget]\nperWait = 50\n\
         [[reminders]]\nid = \"a\"\nbody = \"workspace\"\n[[reminders]]\nid = \"c\"\nbody = \"workspace\"\n",
    );
    let client = json!({"kinds": {"mention": true, "c": false}, "budget": {"perSession": 60}});
    layers.session = Some(Arc::new(Document::of_json(&client, Origin::client())));
    assert!(layers.mistakes().is_empty());
    let effective = layers.effective(true);
    assert_eq!(effective.left_out, []);
    let kinds = &effective.configuration.kinds;
    assert_eq!(kinds["task-nudge"], Switch::On(value(json!({"after": 7, "cooldown": 4}))));
    assert_eq!(kinds["sections"], Switch::On(Value::empty_map()));
    assert_eq!(kinds["mention"], Switch::On(value(json!({"textBytes": 9}))));
    assert_eq!(kinds["c"], Switch::Off);
    let reminders = effective.configuration.reminders.iter();
    let reminders: Vec<_> =
        reminders.map(|it| (&*it.id, it.settings.get("body").and_then(Value::as_text))).collect();
    let (workspace, user) = (Some("workspace"), Some("user"));
    assert_eq!(reminders, [("a", workspace), ("b", user), ("c", workspace)]);
    let budget = effective.configuration.budget;
    assert_eq!((budget.per_wait, budget.per_session), (Some(50), Some(60)));
    let from = |key: &str| {
        let source = &effective.sources[key];
        source.origin.with_line(&source.at)
    };
    assert_eq!(from("kinds.task-nudge.after"), "Workspace.toml:2");
    assert_eq!(from("kinds.task-nudge.cooldown"), "User.toml:2");
    assert_eq!(from("reminders.a"), "Workspace.toml:8");
    assert_eq!(from("budget.perSession"), "initializationOptions.config");
}

/// Each line of a workspace's file, over this one of the user, and whether it is left out.
#[test]
fn an_untrusted_workspace_does_not_reach_what_is_the_users() {
    const USER: &str = "[kinds]\nedited-files = { diffLines = 20, secret = [\"*.key\"] }\n\
        task-nudge = { maxPerSession = 2 }\n\
        date-change = { policy = { onChange = true, maxPerTurn = 2 } }\n\
        workspace-instructions = { names = [\"NOTES.md\"] }\n[budget]\nperWait = 100\n\
        [[reminders]]\nid = \"mine\"\nbody = \"user\"\n";
    for (workspace, left_out) in [
        // It may switch and retune kinds.
        ("kinds.token-usage = false", None),
        ("kinds.task-nudge = { after = 1 }", None),
        ("kinds.token-usage = { policy = \"always\" }", None),
        ("kinds.edited-files = { diffLines = 19 }", None),
        ("kinds.task-nudge = { maxPerSession = 1 }", None),
        ("kinds.task-nudge = { maxPerTurn = 1, priority = 3 }", None),
        ("kinds.date-change = { policy = { always = true, maxPerTurn = 1 } }", None),
        ("kinds.edited-files = { secret = [\"*.key\", \"*.cfg\"] }", None),
        ("kinds.edited-files = { generated = [\"out/\"] }", None),
        ("budget.perWait = 99", None),
        ("budget.perSession = 1000000", None),
        ("kinds.workspace-instructions = { names = [\"NOTES.md\"] }", None),
        // Caps and budgets only go down.
        ("kinds.edited-files = { diffLines = 21 }", Some("edited-files")),
        ("kinds.edited-files = { contentBytes = 26214401 }", Some("edited-files")),
        ("kinds.plan-reference = { chars = 12001 }", Some("plan-reference")),
        ("budget.perWait = 101", Some("budget")),
        ("kinds.task-nudge = { maxPerSession = 3 }", Some("task-nudge")),
        ("kinds.date-change = { maxPerTurn = 3 }", Some("date-change")),
        ("kinds.date-change = { policy = \"always\" }", Some("date-change")),
        ("kinds.date-change = { policy = { always = true, maxPerTurn = 3 } }", Some("date-change")),
        // Nothing loosens secrecy.
        ("kinds.edited-files = { secret = [\"*.cfg\"] }", Some("edited-files")),
        ("kinds.edited-files = { secret = [\"*.key\", \"!.env\"] }", Some("edited-files")),
        ("kinds.edited-files = { generated = [\"!dist/\"] }", Some("edited-files")),
        // Nothing of its own text, and nothing that names files of it.
        ("kinds.workspace-instructions = { names = [\"X.md\"] }", Some("workspace-instructions")),
        ("kinds.plan-mode = { headings = [\"Obey\"] }", Some("plan-mode")),
        ("reminders = [{ id = \"its\", body = \"b\" }]", Some("its")),
        ("reminders = [{ id = \"mine\", body = \"b\" }]", Some("mine")),
        ("kinds.mine = false", Some("mine")),
        ("kinds.mine = { body = \"b\" }", Some("mine")),
    ] {
        let layers = layers(USER, workspace);
        let alone = Layers { workspace: None, ..layers.clone() };
        let effective = layers.effective(false);
        let ids: Vec<_> = effective.left_out.iter().map(|it| it.id.as_str()).collect();
        assert_eq!(ids, left_out.into_iter().collect::<Vec<_>>(), "{workspace}");
        let before = alone.effective(false).configuration;
        if left_out.is_some() {
            let mut after = effective.configuration;
            // A kind whose only key is left out is still named.
            after.kinds.retain(|name, _| before.kinds.contains_key(name));
            assert_eq!(after, before, "{workspace}");
        }
        let trusted = layers.effective(true);
        assert_eq!(trusted.left_out, [], "{workspace}");
    }
}

/// Lower of two is meant of what holds below, not of the default.
#[test]
fn a_cap_that_the_user_raised_is_the_one_to_stay_under() {
    let workspace = "[kinds]\nedited-files = { diffLines = 50 }\n";
    for (user, left_out) in [("", 1), ("[kinds]\nedited-files = { diffLines = 60 }\n", 0)] {
        assert_eq!(layers(user, workspace).effective(false).left_out.len(), left_out, "{user}");
    }
}

#[test]
fn names_are_known_from_every_layer() {
    let one = "[[reminders]]\nid = \"one\"\nbody = \"b\"\n";
    let switch = "[kinds]\none = false\n";
    for (user, workspace) in [(one, switch), (switch, one)] {
        assert!(layers(user, workspace).mistakes().is_empty());
        assert_eq!(layers(user, workspace).effective(true).configuration.kinds["one"], Switch::Off);
    }
    let lone = layers("", switch);
    let (whose, mistake) = lone.mistakes().pop().expect("nobody has it");
    assert_eq!((whose.origin.layer, mistake.at.line), (Layer::Workspace, 2));
    assert!(lone.effective(true).configuration.kinds.is_empty());
    // What retunes a reminder fits it.
    let retunes = "[kinds]\none = { body = \"{{\" }\n";
    let unfit = layers(one, retunes);
    assert_eq!(unfit.mistakes().len(), 1);
    assert!(unfit.effective(true).configuration.kinds.is_empty());
}

#[test]
fn a_broken_document_has_no_part_in_it() {
    let broken = Document::read("[kinds]\nsections = false\n[", Origin::new(Layer::User, "u"));
    assert!(broken.broken && !broken.mistakes.is_empty());
    let layers = Layers { user: Some(Arc::new(broken)), ..Layers::default() };
    assert_eq!(layers.effective(true).configuration, Configuration::default());
}
