//! Codex CLI. `UserPromptSubmit` is its WAIT: what a hook gives after a tool stands before that tool's own
//! result there, and no event comes after a whole batch. What is told stands in its rollout file.

use std::path::{Path, PathBuf};

use jsonc_parser::cst::CstInputValue;
use reminderd_protocol::wait::{Delivery, Seam};
use serde_json::{Value as Json, json};

use super::happening::{Happening, Host, Proof, additional_context, text};
use super::settings::{Settings, group};

/// Codex CLI.
pub struct Codex;

/// Verified to come through whole, in UTF-16 units, once the host's own limit is off.
const TEXT_MAX: u64 = 20_000;
/// What stands before a file's name in a patch.
const PATCHED: &[&str] =
    &["*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "];

impl Host for Codex {
    fn read(&self, input: &Json) -> Result<Option<Happening>, String> {
        let event = text(input, "hook_event_name")?;
        if !self.settings().events.iter().any(|(known, _)| *known == event) {
            return Ok(None);
        }
        let host = json!({
            "history": "native", "receipts": "late", "render": "plain", "maxUtf16": TEXT_MAX,
        });
        let root = input["cwd"].as_str();
        let mut it = Happening::new(text(input, "session_id")?, root, host);
        it.turn = input["turn_id"].as_str().map(str::to_owned);
        it.agent = input["agent_id"].as_str().map(|id| format!("/{id}"));
        // The end of an agent is told by its parent, which has a file of its own.
        let transcript = input["agent_transcript_path"].as_str();
        let transcript = transcript.or(input["transcript_path"].as_str());
        let proof = |went_out, settles| match transcript {
            Some(path) => Proof::Transcript { path: PathBuf::from(path), went_out, settles },
            None => Proof::None,
        };
        let turn = || it.turn.clone().ok_or("the turn has no id (\"turn_id\")");
        match event {
            // In a turn, what it gives stands behind the summary, and a request follows. Between two
            // turns there is none.
            "SessionStart" if input["source"] == "compact" => {
                it.proof = proof(false, false);
                it.wait = Some(Seam::Continuation);
            }
            "SessionStart" => it.report("session/state", json!({})),
            "UserPromptSubmit" => {
                let turn = turn()?;
                it.proof = proof(false, true);
                // An agent is begun by its parent with a prompt; it may get more once it has ended.
                if it.agent.is_some() {
                    it.report("agent/spawn", json!({ "role": input["agent_type"] }));
                } else if let Some(mode) = input["permission_mode"].as_str() {
                    it.permission_mode(mode);
                }
                it.report("turn/begin", json!({ "turn": turn, "prompt": input["prompt"] }));
                it.wait = Some(Seam::Prompt);
            }
            "PreToolUse" => {
                let paths = patched(input);
                if paths.is_empty() {
                    return Ok(None);
                }
                it.report("edit/begin", json!({ "uris": paths }));
            }
            "PostToolUse" => used(&mut it, input)?,
            // It says that a request was made; what was told in it stands in the file by then.
            "PostModelRequest" => it.proof = proof(true, false),
            "Stop" | "Interrupt" => {
                let turn = turn()?;
                it.proof = proof(true, true);
                let outcome = if event == "Stop" { "completed" } else { "cancelled" };
                it.report("turn/end", json!({ "turn": turn, "outcome": outcome }));
            }
            "SubagentStop" => {
                let turn = turn()?;
                it.proof = proof(true, true);
                it.report("turn/end", json!({ "turn": turn, "outcome": "completed" }));
                it.report("agent/settle", json!({ "outcome": "succeeded" }));
            }
            "PreCompact" => it.proof = proof(false, true),
            "PostCompact" => {
                it.report("history/compacted", json!({"retained": "none", "engine": "native"}));
            }
            "SessionEnd" => {
                it.proof = proof(false, true);
                it.report("session/close", json!({}));
            }
            _ => return Ok(None),
        }
        Ok(Some(it))
    }

    fn answer(&self, input: &Json, _: &Delivery, text: &str) -> Json {
        additional_context(input, text)
    }

    fn settings(&self) -> &'static Settings {
        const SETTINGS: Settings = Settings {
            title: "Codex CLI",
            program: "codex",
            user: ".codex/hooks.json",
            home_variable: Some("CODEX_HOME"),
            project: ".codex/hooks.json",
            remark: Some("Codex runs no hook that you did not trust: it asks when it starts next"),
            events: &[
                ("SessionStart", None),
                ("UserPromptSubmit", None),
                ("PreToolUse", Some("apply_patch")),
                ("PostToolUse", None),
                ("PostModelRequest", None),
                ("SubagentStop", None),
                ("Stop", None),
                ("Interrupt", None),
                ("PreCompact", None),
                ("PostCompact", None),
                ("SessionEnd", None),
            ],
            entry: |command, matcher| {
                // Without its own limit the host would show the model a part of a long text.
                let whole =
                    ("additionalContextLimit".to_owned(), CstInputValue::Number("0".into()));
                group(command, matcher, 15, [whole])
            },
        };
        &SETTINGS
    }
}

/// The files that a patch names.
fn patched(input: &Json) -> Vec<PathBuf> {
    let patch =
        input["tool_input"]["command"].as_str().filter(|_| input["tool_name"] == "apply_patch");
    let directory = Path::new(input["cwd"].as_str().unwrap_or_default());
    let lines = patch.unwrap_or_default().lines();
    let named = lines.filter_map(|line| PATCHED.iter().find_map(|mark| line.strip_prefix(mark)));
    named.map(|name| directory.join(name.trim())).collect()
}

/// A call that is over. Whether it went well stands in what it printed, where it says so.
fn used(it: &mut Happening, input: &Json) -> Result<(), String> {
    let output = &input["tool_response"];
    let code = output.as_str().and_then(|output| output.strip_prefix("Exit code: "));
    let ok = code.is_none_or(|code| code.lines().next() == Some("0"));
    let call = text(input, "tool_use_id")?;
    it.called(call, text(input, "tool_name")?, &input["tool_input"], ok, output);
    let paths = patched(input);
    for path in paths.iter().filter(|_| ok) {
        it.report("file/wrote", json!({ "uri": path }));
    }
    if !paths.is_empty() {
        let uris: Vec<_> = paths.iter().map(|path| json!({ "uri": path })).collect();
        it.report("edit/end", json!({ "uris": uris, "ok": ok }));
    }
    Ok(())
}
