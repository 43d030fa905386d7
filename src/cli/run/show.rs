//! `--show`: the script as a story for people: what a model would have been told, and when.

use std::io::{self, IsTerminal, Write};

use serde_json::Value;

use super::client::Answer;
use super::reference::Text;
use super::script::{Action, Step};

/// Tells the steps of a script as they happen.
#[derive(Debug)]
pub struct Show {
    colour: bool,
    told_anything: bool,
}

const BOLD: &str = "\u{1b}[1m";
const DIM: &str = "\u{1b}[2m";
const CYAN: &str = "\u{1b}[36m";
const PLAIN: &str = "\u{1b}[0m";

impl Show {
    /// With colour on a terminal that wants it (<https://no-color.org>).
    pub fn for_stdout() -> Self {
        let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|terminal| terminal == "dumb");
        Self { colour: io::stdout().is_terminal() && !unwanted && !dumb, told_anything: false }
    }

    /// Tells one step and what it was answered; steps without a story are silent.
    pub fn step(
        &mut self,
        step: &Step,
        params: &Value,
        answer: Option<&Answer>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        match &step.action {
            Action::Say { text } => {
                if self.told_anything {
                    writeln!(out)?;
                }
                writeln!(out, "{}", self.paint(BOLD, &one_line(text)))?;
            }
            Action::Wait { .. } => self.wait(step, params, answer, out)?,
            Action::Request { verb: verb @ ("commit" | "release"), params: template, .. } => {
                let outcome = match answer {
                    Some(Ok(result)) if *verb == "commit" => committed(result),
                    Some(Ok(result)) if result["released"] == Value::Bool(false) => {
                        "was not open".to_owned()
                    }
                    Some(Ok(_)) => "nothing was told, all of it stays eligible".to_owned(),
                    Some(Err(error)) => refused(error),
                    None => return Ok(()),
                };
                self.line(out, verb, &token_name(template), &outcome)?;
            }
            Action::Clock { text, .. } => self.line(out, "clock", "", text)?,
            Action::Restart { kill: false } => {
                self.line(out, "restart", "", "the daemon, in order")?;
            }
            Action::Restart { kill: true } => {
                self.line(out, "restart", "", "the daemon, killed")?;
            }
            _ => return Ok(()),
        }
        self.told_anything = true;
        out.flush()
    }

    /// Sets the story apart from what follows it.
    pub fn finish(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.told_anything { writeln!(out) } else { Ok(()) }
    }

    fn wait(
        &self,
        step: &Step,
        params: &Value,
        answer: Option<&Answer>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let name = step.name.clone().unwrap_or_else(|| format!("line {}", step.line));
        let scope = params["agent"].as_str().unwrap_or("root");
        let delivery = match answer {
            Some(Ok(delivery)) => delivery,
            Some(Err(error)) => {
                let outcome = format!("{scope} · {}", refused(error));
                return self.line(out, "wait", &name, &outcome);
            }
            None => return Ok(()),
        };
        let mut facts = Vec::new();
        facts.extend(delivery["phase"].as_str().map(str::to_owned));
        facts.push(scope.to_owned());
        match delivery["entries"].as_array().map_or(0, Vec::len) {
            0 => facts.push("nothing to say".to_owned()),
            1 => facts.push("1 reminder".to_owned()),
            number => facts.push(format!("{number} reminders")),
        }
        if let Some(tokens) = delivery["tokens"].as_u64().filter(|tokens| *tokens > 0) {
            facts.push(format!("~{tokens} tokens"));
        }
        if let Some(held) = delivery["held"].as_array().filter(|held| !held.is_empty()) {
            facts.push(format!("{} held back", held.len()));
        }
        self.line(out, "wait", &name, &facts.join(" · "))?;
        if let Some(content) = delivery["message"]["content"].as_str() {
            for line in content.lines() {
                let line = visible(line);
                writeln!(out, "{}", format!("  {} {line}", self.paint(DIM, "│")).trim_end())?;
            }
        }
        Ok(())
    }

    fn line(&self, out: &mut dyn Write, verb: &str, name: &str, outcome: &str) -> io::Result<()> {
        let verb = self.paint(CYAN, &verb.to_uppercase());
        let name = if name.is_empty() { String::new() } else { format!(" {name}") };
        writeln!(out, "{verb}{name} · {}", one_line(outcome))
    }

    fn paint(&self, style: &str, text: &str) -> String {
        if self.colour { format!("{style}{text}{PLAIN}") } else { text.to_owned() }
    }
}

fn committed(result: &Value) -> String {
    let told = result["committed"].as_array().map_or(0, Vec::len);
    let held = result["held"].as_array().map_or(0, Vec::len);
    let outcome = match told {
        _ if result["already"] == Value::Bool(true) => "already done".to_owned(),
        0 => "nothing to tell, the request is counted".to_owned(),
        1 => "told, 1 reminder is in history".to_owned(),
        told => format!("told, {told} reminders are in history"),
    };
    if held > 0 { format!("{outcome}; {held} stay eligible") } else { outcome }
}

/// The name of the wait whose token a commit or release speaks of, empty for any other token.
fn token_name(template: &Value) -> String {
    match template["token"].as_str().map(Text::parse) {
        Some(Ok(Text::Reference(reference))) => reference.name,
        _ => String::new(),
    }
}

fn refused(error: &Value) -> String {
    let message = error["message"].as_str().unwrap_or("refused");
    format!("{message} ({})", error["code"])
}

fn one_line(text: &str) -> String {
    visible(&text.replace(['\n', '\r'], " "))
}

/// A line that cannot move the cursor or change colours, whatever a body holds.
fn visible(line: &str) -> String {
    let printable = |character: char| !character.is_control() || character == '\t';
    line.chars().map(|each| if printable(each) { each } else { '\u{fffd}' }).collect()
}
