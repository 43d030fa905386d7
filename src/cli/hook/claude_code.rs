//! Claude Code. `UserPromptSubmit` and `PostToolBatch` are its WAITs, and `SubagentStart` an agent's
//! first; what is told stands in its transcript file, as an attachment, from the request on.

use std::path::{Path, PathBuf};

use reminderd_protocol::wait::{Delivery, Seam};
use serde_json::{Map, Value as Json, json};

use super::happening::{Happening, Host, Proof, Report, additional_context, text};
use super::settings::{Settings, group};

/// Claude Code.
pub struct ClaudeCode;

/// What is longer is put into a file by the host, and the model sees a preview of it.
const TEXT_MAX: u64 = 10_000;
/// The tools that write the file which they name.
const WRITERS: &[&str] = &["Edit", "MultiEdit", "Write", "NotebookEdit"];

impl Host for ClaudeCode {
    fn read(&self, input: &Json) -> Result<Option<Happening>, String> {
        let event = text(input, "hook_event_name")?;
        if !self.settings().events.iter().any(|(known, _)| *known == event) {
            return Ok(None);
        }
        let root = std::env::var("CLAUDE_PROJECT_DIR").ok();
        let root = root.as_deref().or(input["cwd"].as_str());
        let host = json!({
            "history": "native", "receipts": "late", "render": "plain", "maxUtf16": TEXT_MAX,
        });
        let mut it = Happening::new(text(input, "session_id")?, root, host);
        it.turn = input["prompt_id"].as_str().map(str::to_owned);
        let agent = input["agent_id"].as_str();
        it.agent = agent.map(|id| format!("/{id}"));
        let transcript = transcript(input, agent);
        let proof = |went_out, settles| match &transcript {
            Some(path) => Proof::Transcript { path: path.clone(), went_out, settles },
            None => Proof::None,
        };
        match event {
            "SessionStart" => match input["source"].as_str() {
                Some("compact") => {
                    it.report("history/compacted", json!({"retained": "none", "engine": "native"}));
                    it.wait = Some(Seam::Continuation);
                    // Between two turns a compaction is followed by no request.
                    it.turn = None;
                }
                // A conversation that begins, or goes on: the daemon is there before it is needed.
                _ => it.report("session/state", json!({})),
            },
            "UserPromptSubmit" => {
                it.proof = proof(false, true);
                let turn = it.turn.clone().ok_or("the prompt has no id (\"prompt_id\")")?;
                mode(&mut it, input, true);
                let prompt = input["prompt"].as_str();
                it.report("turn/begin", json!({ "turn": turn, "prompt": prompt }));
                it.wait = Some(Seam::Prompt);
            }
            "PreToolUse" => {
                let Some(path) = written(input) else { return Ok(None) };
                it.report("edit/begin", json!({ "uris": [path] }));
            }
            "PostToolUse" => used(&mut it, input, true)?,
            "PostToolUseFailure" => used(&mut it, input, false)?,
            "PostToolBatch" => {
                it.proof = proof(true, false);
                mode(&mut it, input, false);
                it.wait = Some(Seam::Tools);
            }
            "SubagentStart" => {
                let role = input["agent_type"].as_str();
                it.turn.clone_from(&input["agent_id"].as_str().map(str::to_owned));
                it.report("agent/spawn", json!({ "role": role }));
                it.report("turn/begin", json!({ "turn": it.turn }));
                it.wait = Some(Seam::Prompt);
            }
            "SubagentStop" => {
                it.proof = proof(true, true);
                it.report("turn/end", json!({ "turn": agent, "outcome": "completed" }));
                it.report("agent/settle", json!({ "outcome": "succeeded" }));
            }
            "Stop" | "StopFailure" => {
                it.proof = proof(true, true);
                let outcome = if event == "Stop" { "completed" } else { "failed" };
                let turn = it.turn.clone().ok_or("the turn has no id (\"prompt_id\")")?;
                it.report("turn/end", json!({ "turn": turn, "outcome": outcome }));
            }
            "PreCompact" => it.proof = proof(false, true),
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
        const WRITING: Option<&str> = Some("Edit|MultiEdit|Write|NotebookEdit");
        const SETTINGS: Settings = Settings {
            title: "Claude Code",
            program: "claude",
            remark: None,
            user: ".claude/settings.json",
            home_variable: Some("CLAUDE_CONFIG_DIR"),
            project: ".claude/settings.json",
            events: &[
                ("SessionStart", None),
                ("UserPromptSubmit", None),
                ("PreToolUse", WRITING),
                ("PostToolUse", None),
                ("PostToolUseFailure", None),
                ("PostToolBatch", None),
                ("SubagentStart", None),
                ("SubagentStop", None),
                ("Stop", None),
                ("StopFailure", None),
                ("PreCompact", None),
                ("SessionEnd", None),
            ],
            entry: |command, matcher| group(command, matcher, 15, []),
        };
        &SETTINGS
    }
}

/// The file in which the conversation stands: an agent's is beside that of its session.
fn transcript(input: &Json, agent: Option<&str>) -> Option<PathBuf> {
    let path = Path::new(input["transcript_path"].as_str()?);
    let Some(agent) = agent else { return Some(path.to_owned()) };
    Some(path.with_extension("").join("subagents").join(format!("agent-{agent}.jsonl")))
}

/// The permission mode, which every event but the first tells.
fn mode(it: &mut Happening, input: &Json, at_prompt: bool) {
    if let Some(mode) = input["permission_mode"].as_str() {
        it.permission_mode(mode);
        it.plans(mode == "plan", at_prompt);
    }
}

/// The file that a call writes.
fn written(input: &Json) -> Option<&str> {
    let tool = input["tool_name"].as_str().filter(|tool| WRITERS.contains(tool))?;
    let member = if tool == "NotebookEdit" { "notebook_path" } else { "file_path" };
    input["tool_input"][member].as_str()
}

/// A call that is over.
fn used(it: &mut Happening, input: &Json, ok: bool) -> Result<(), String> {
    let name = text(input, "tool_name")?;
    let arguments = &input["tool_input"];
    let output = if ok { output(&input["tool_response"]) } else { input["error"].clone() };
    let call = text(input, "tool_use_id")?;
    it.called(call, name, arguments, ok, &output);
    if let Some(path) = written(input) {
        if ok {
            it.report("file/wrote", json!({ "uri": path }));
        }
        it.report("edit/end", json!({ "uris": [{ "uri": path }], "ok": ok }));
    }
    if !ok {
        return Ok(());
    }
    match name {
        "Read" => {
            let partial = ["offset", "limit"].iter().any(|member| !arguments[member].is_null());
            let read = json!({
                "uri": text(arguments, "file_path")?,
                "partial": partial,
                "pages": arguments["pages"],
            });
            it.report("file/read", read);
        }
        "TodoWrite" => {
            let todos = arguments["todos"].as_array().map(Vec::as_slice).unwrap_or_default();
            let tasks = todos.iter().enumerate().map(|(index, todo)| {
                let id = todo["id"].as_str().map_or_else(|| (index + 1).to_string(), str::to_owned);
                json!({ "id": id, "subject": todo["content"], "status": todo["status"] })
            });
            it.report("task/replace", json!({ "tasks": tasks.collect::<Vec<_>>() }));
        }
        "TaskCreate" => {
            let task = &input["tool_response"]["task"];
            let put = json!({
                "id": task["id"],
                "subject": arguments["subject"],
                "description": arguments["description"],
                "status": "pending",
            });
            it.report("task/put", json!({ "task": put }));
        }
        "TaskUpdate" => {
            let id = text(arguments, "taskId")?;
            if arguments["status"] == "deleted" {
                it.report("task/remove", json!({ "id": id }));
            } else {
                it.reports
                    .push(Report::TaskChanged { id: id.to_owned(), changes: changes(arguments) });
            }
        }
        "ExitPlanMode" => {
            it.report("plan/set", json!({ "state": "accepted", "content": arguments["plan"] }));
        }
        _ => {}
    }
    Ok(())
}

/// What a call changes of a task.
fn changes(arguments: &Json) -> Map<String, Json> {
    let names = [
        ("subject", "subject"),
        ("description", "description"),
        ("status", "status"),
        ("addBlockedBy", "blockedBy"),
        ("addBlocks", "blocks"),
    ];
    let given = names.iter().filter(|(theirs, _)| !arguments[theirs].is_null());
    given.map(|(theirs, ours)| ((*ours).to_owned(), arguments[theirs].clone())).collect()
}

/// What a call gave, as text.
fn output(response: &Json) -> Json {
    let printed = ["stdout", "stderr"].map(|name| response[name].as_str().unwrap_or_default());
    match response {
        Json::String(_) => response.clone(),
        _ if printed.concat().is_empty() => json!(response.to_string()),
        _ => json!(printed.join("\n").trim_matches('\n')),
    }
}
