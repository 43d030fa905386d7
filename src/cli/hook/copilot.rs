//! Copilot CLI. `userPromptSubmitted` is its WAIT, and `userPromptTransformed` shows the prompt with what was
//! given, as it stands from then on in every request. What a hook gives at a tool stands within that
//! tool's own result, or is gone in a resumed session.

use std::path::{Path, PathBuf};

use jsonc_parser::cst::CstInputValue;
use jsonc_parser::json as cst;
use reminderd_protocol::wait::{Delivery, Seam};
use serde_json::{Value as Json, json};

use super::happening::{Happening, Host, Proof, Report, text};
use super::settings::Settings;

/// Copilot CLI.
pub struct Copilot;

/// Verified to come through whole, in UTF-16 units.
const TEXT_MAX: u64 = 20_000;
/// The tools that write the file which they name.
const WRITERS: &[&str] = &["create", "edit"];

/// An event. The host does not say which: each is known by a member that no other has.
enum Event<'a> {
    SessionStart,
    PromptSubmitted,
    PromptTransformed(&'a str),
    BeforeTool,
    AfterTool,
    Stop,
    BeforeCompaction,
    SessionEnd,
}

impl<'a> Event<'a> {
    fn of(input: &'a Json) -> Option<Self> {
        let has = |member: &str| !input[member].is_null();
        Some(match input {
            _ if has("transformedPrompt") => {
                Self::PromptTransformed(input["transformedPrompt"].as_str()?)
            }
            _ if has("toolResult") => Self::AfterTool,
            _ if has("toolName") => Self::BeforeTool,
            _ if has("prompt") => Self::PromptSubmitted,
            _ if has("source") => Self::SessionStart,
            _ if has("stopReason") => Self::Stop,
            _ if has("trigger") => Self::BeforeCompaction,
            _ if has("reason") => Self::SessionEnd,
            _ => return None,
        })
    }
}

impl Host for Copilot {
    fn read(&self, input: &Json) -> Result<Option<Happening>, String> {
        let host = json!({
            "history": "native", "receipts": "late", "render": "plain", "maxUtf16": TEXT_MAX,
        });
        let session = text(input, "sessionId")?;
        let Some(event) = Event::of(input) else { return Ok(None) };
        let mut it = Happening::new(session, input["cwd"].as_str(), host);
        let transcript = |went_out| match conversation(session) {
            Some(path) => Proof::Transcript { path, went_out, settles: true },
            None => Proof::None,
        };
        match event {
            Event::SessionStart => it.report("session/state", json!({})),
            Event::PromptSubmitted => {
                it.proof = transcript(false);
                // The host has no names for its turns.
                let turn = moment(input)?;
                it.report("turn/begin", json!({ "turn": turn, "prompt": input["prompt"] }));
                it.turn = Some(turn);
                it.wait = Some(Seam::Prompt);
            }
            Event::PromptTransformed(prompt) => {
                it.proof = Proof::Request { texts: vec![prompt.to_owned()], is_whole: false };
            }
            Event::BeforeTool => {
                let Some(path) = written(input) else { return Ok(None) };
                it.report("edit/begin", json!({ "uris": [path] }));
            }
            Event::AfterTool => used(&mut it, input)?,
            Event::Stop => {
                it.proof = transcript(true);
                it.reports.push(Report::TurnOver { outcome: "completed" });
            }
            Event::BeforeCompaction => {
                it.report("history/compacted", json!({"retained": "none", "engine": "native"}));
            }
            Event::SessionEnd => {
                it.proof = transcript(false);
                it.report("session/close", json!({}));
            }
        }
        Ok(Some(it))
    }

    fn answer(&self, _: &Json, _: &Delivery, text: &str) -> Json {
        json!({ "additionalContext": text })
    }

    fn settings(&self) -> &'static Settings {
        const SETTINGS: Settings = Settings {
            title: "Copilot CLI",
            program: "copilot",
            user: ".copilot/settings.json",
            home_variable: Some("COPILOT_HOME"),
            project: ".github/copilot/settings.json",
            remark: None,
            events: &[
                ("sessionStart", None),
                ("userPromptSubmitted", None),
                ("userPromptTransformed", None),
                ("preToolUse", None),
                ("postToolUse", None),
                ("agentStop", None),
                ("preCompact", None),
                ("sessionEnd", None),
            ],
            entry: |command, _| {
                let hook =
                    [("type", cst!("command")), ("bash", cst!(command)), ("timeoutSec", cst!(15))];
                let hook = hook.map(|(name, value)| (name.to_owned(), value));
                CstInputValue::Object(hook.into_iter().collect())
            },
        };
        &SETTINGS
    }
}

/// The file in which a conversation stands.
fn conversation(session: &str) -> Option<PathBuf> {
    let own = std::env::var_os("COPILOT_HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
    let home = own.or_else(|| Some(std::env::home_dir()?.join(".copilot")))?;
    // A name that is a path would lead elsewhere.
    let is_name = Path::new(session).file_name().is_some_and(|name| name == session);
    is_name.then(|| home.join("session-state").join(session).join("events.jsonl"))
}

/// When the event happened, which no other of its sort shares.
fn moment(input: &Json) -> Result<String, String> {
    match &input["timestamp"] {
        Json::String(at) => Ok(at.clone()),
        Json::Number(at) => Ok(at.to_string()),
        _ => Err("the event has no \"timestamp\"".to_owned()),
    }
}

/// The file that a call writes.
fn written(input: &Json) -> Option<PathBuf> {
    input["toolName"].as_str().filter(|tool| WRITERS.contains(tool))?;
    file(input)
}

/// The file that a call names, which may be relative.
fn file(input: &Json) -> Option<PathBuf> {
    let path = input["toolArgs"]["path"].as_str()?;
    Some(Path::new(input["cwd"].as_str().unwrap_or_default()).join(path))
}

/// A call that is over.
fn used(it: &mut Happening, input: &Json) -> Result<(), String> {
    let name = text(input, "toolName")?;
    let result = &input["toolResult"];
    let ok = result["resultType"] == "success";
    // The host has no names for its calls here.
    let call = format!("{name} {}", moment(input)?);
    it.called(&call, name, &input["toolArgs"], ok, &result["textResultForLlm"]);
    if let Some(path) = written(input) {
        if ok {
            it.report("file/wrote", json!({ "uri": path }));
        }
        it.report("edit/end", json!({ "uris": [{ "uri": path }], "ok": ok }));
    }
    if let ("view", true, Some(path)) = (name, ok, file(input)) {
        let partial = !input["toolArgs"]["view_range"].is_null();
        it.report("file/read", json!({ "uri": path, "partial": partial }));
    }
    Ok(())
}
