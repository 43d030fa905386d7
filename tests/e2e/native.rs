//! A host that owns the conversation, with files that only a test can make (`reminders.md` §3,
//! native hosts). What needs no files is held by `tests/scenarios/native/`.

use std::fs;

use serde_json::{Value, json};

use crate::support::{Daemon, Framing};

/// The types of the entries of a WAIT at a seam, which is committed.
fn told(daemon: &mut Daemon, seam: &str) -> Vec<String> {
    let delivery = answer(daemon, "reminder/wait", json!({"session": "s", "seam": seam}));
    let entries = delivery["entries"].as_array().expect("entries");
    let types = entries.iter().map(|entry| entry["type"].as_str().expect("a type").to_owned());
    let types = types.collect();
    answer(daemon, "reminder/commit", json!({"token": delivery["token"]}));
    types
}

fn answer(daemon: &mut Daemon, method: &str, params: Value) -> Value {
    let reply = daemon.request(method, params);
    assert!(reply["error"].is_null(), "{method}: {reply}");
    reply["result"].clone()
}

/// Instructions that were learned once are due at once after a native compaction, without another
/// read below their directory.
#[test]
fn a_native_compaction_makes_every_learned_instruction_due() {
    let root = tempfile::tempdir().expect("a directory");
    let file = root.path().join("lib/x.rs");
    fs::create_dir(root.path().join("lib")).expect("a directory");
    fs::write(root.path().join("lib/AGENTS.md"), "Keep functions short.\n").expect("a file");
    fs::write(&file, "x").expect("a file");

    let mut daemon = Daemon::initialized(Framing::Lines);
    let open = json!({"session": "s", "root": root.path(), "host": {"history": "native"}});
    answer(&mut daemon, "session/open", open);
    answer(&mut daemon, "turn/begin", json!({"session": "s", "turn": "1"}));
    assert!(told(&mut daemon, "prompt").is_empty());
    answer(&mut daemon, "file/read", json!({"session": "s", "uri": file, "text": "x"}));
    assert_eq!(told(&mut daemon, "tools"), ["workspace-instructions"]);
    assert!(told(&mut daemon, "tools").is_empty());

    let compacted = json!({"session": "s", "retained": "none", "engine": "native"});
    answer(&mut daemon, "history/compacted", compacted);
    let after = told(&mut daemon, "tools");
    assert!(after.iter().any(|entry| entry == "workspace-instructions"), "{after:?}");
}
