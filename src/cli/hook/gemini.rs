//! Gemini CLI. `BeforeAgent` is its WAIT: what is given there stands behind the prompt, and in every later
//! request. `BeforeModel` shows the texts of the request that is about to go out, which is the receipt.
//!
//! Nothing is added by `BeforeModel` itself, though the host allows it: it forgets what is added there,
//! and puts changed texts back by counting the messages that have any, which goes wrong where it
//! counts one that it did not show.

use std::path::{Path, PathBuf};

use reminderd_protocol::wait::{Delivery, Seam};
use serde_json::{Value as Json, json};

use super::happening::{Happening, Host, Proof, Report, additional_context, text};
use super::settings::{Settings, group};

/// Gemini CLI.
pub struct Gemini;

/// Verified to come through whole, in UTF-16 units.
const TEXT_MAX: u64 = 20_000;
/// The tools that write the file which they name.
const WRITERS: &[&str] = &["write_file", "replace"];

impl Host for Gemini {
    fn read(&self, input: &Json) -> Result<Option<Happening>, String> {
        let event = text(input, "hook_event_name")?;
        let host = json!({
            "history": "native", "receipts": "late", "render": "plain", "maxUtf16": TEXT_MAX,
        });
        let root = std::env::var("GEMINI_PROJECT_DIR").ok();
        let root = root.as_deref().or(input["cwd"].as_str());
        let mut it = Happening::new(text(input, "session_id")?, root, host);
        it.kept = escaped;
        // What never came into a request stands, if anywhere, in the file of the conversation.
        let settled = || match input["transcript_path"].as_str() {
            Some(path) => {
                Proof::Transcript { path: PathBuf::from(path), went_out: false, settles: true }
            }
            None => Proof::None,
        };
        match event {
            "SessionStart" => it.report("session/state", json!({})),
            "BeforeAgent" => {
                it.proof = settled();
                // The host has no names for its turns.
                let turn = text(input, "timestamp")?.to_owned();
                it.report("turn/begin", json!({ "turn": turn, "prompt": input["prompt"] }));
                it.turn = Some(turn);
                it.wait = Some(Seam::Prompt);
            }
            "BeforeModel" => {
                let messages = input["llm_request"]["messages"].as_array();
                let texts = messages.into_iter().flatten();
                let texts = texts.filter_map(|message| message["content"].as_str());
                let texts = texts.map(str::to_owned).collect();
                it.proof = Proof::Request { texts, is_whole: true };
            }
            "BeforeTool" => {
                let Some(path) = written(input) else { return Ok(None) };
                it.report("edit/begin", json!({ "uris": [path] }));
            }
            "AfterTool" => used(&mut it, input)?,
            "AfterAgent" => it.reports.push(Report::TurnOver { outcome: "completed" }),
            "SessionEnd" => {
                it.proof = settled();
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
            title: "Gemini CLI",
            program: "gemini",
            user: ".gemini/settings.json",
            home_variable: None,
            project: ".gemini/settings.json",
            remark: None,
            events: &[
                ("SessionStart", None),
                ("BeforeAgent", None),
                ("BeforeModel", None),
                ("BeforeTool", Some("write_file|replace")),
                ("AfterTool", None),
                ("AfterAgent", None),
                ("SessionEnd", None),
            ],
            // In milliseconds.
            entry: |command, matcher| group(command, matcher, 15_000, []),
        };
        &SETTINGS
    }
}

/// A text as the host writes it into a request: nothing in it can end the tag around it.
fn escaped(text: &str) -> String {
    text.replace('<', "&lt;").replace('>', "&gt;")
}

/// The file that a call writes.
fn written(input: &Json) -> Option<PathBuf> {
    input["tool_name"].as_str().filter(|tool| WRITERS.contains(tool))?;
    file(input)
}

/// The file that a call names, which may be relative.
fn file(input: &Json) -> Option<PathBuf> {
    let path = input["tool_input"]["file_path"].as_str()?;
    Some(Path::new(input["cwd"].as_str().unwrap_or_default()).join(path))
}

/// A call that is over.
fn used(it: &mut Happening, input: &Json) -> Result<(), String> {
    let name = text(input, "tool_name")?;
    let arguments = &input["tool_input"];
    let response = &input["tool_response"];
    let ok = response["error"].is_null();
    // The host has no names for its calls.
    let call = format!("{name} {}", text(input, "timestamp")?);
    let output = match &response["llmContent"] {
        Json::String(_) => response["llmContent"].clone(),
        other => json!(other.to_string()),
    };
    it.called(&call, name, arguments, ok, &output);
    if let Some(path) = written(input) {
        if ok {
            it.report("file/wrote", json!({ "uri": path }));
        }
        it.report("edit/end", json!({ "uris": [{ "uri": path }], "ok": ok }));
    }
    match (name, ok) {
        ("read_file", true) => {
            let limits = ["start_line", "end_line", "offset", "limit"];
            let partial = limits.iter().any(|member| !arguments[member].is_null());
            it.report("file/read", json!({ "uri": file(input), "partial": partial }));
        }
        ("write_todos", true) => {
            let todos = arguments["todos"].as_array().map(Vec::as_slice).unwrap_or_default();
            let tasks = todos.iter().enumerate().map(|(index, todo)| {
                let status = todo["status"].as_str().unwrap_or_default();
                let status = if status == "blocked" { "pending" } else { status };
                json!({
                    "id": (index + 1).to_string(), "subject": todo["description"], "status": status,
                })
            });
            it.report("task/replace", json!({ "tasks": tasks.collect::<Vec<_>>() }));
        }
        _ => {}
    }
    Ok(())
}
