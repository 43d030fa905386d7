//! `reminderd doctor`: what is there, what is wrong with it, and what to do.

mod integrations;
mod system;

use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use clap::Args;
use serde_json::{Value as Json, json};

use super::asking::PlaceArguments;
use super::paint::{self, Failure, LIVELY, STRONG};

/// How a trouble is shown on a terminal.
const GRAVE: Style = AnsiColor::Yellow.on_default().bold();

/// Look at everything that reminderd needs, and say what to do where something is wrong.
///
/// The build and the daemon that runs, the store and who may read it, the watcher's limits, the
/// configuration of the user and of the directory here, and which editors and agents of this machine have
/// reminderd. Nothing is changed. With `--json` each line is an object: `about`, `name`, `state` (`ok`,
/// `note`, `trouble`), `what`, `advice`. Exit status: 1 when anything is in trouble.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  $ reminderd doctor")]
pub struct DoctorArguments {
    #[command(flatten)]
    place: PlaceArguments,
    /// One JSON object a line
    #[arg(long)]
    json: bool,
}

/// How something stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// As it should be.
    Fine,
    /// Worth knowing; nothing need be done.
    Note,
    /// Something is wrong.
    Trouble,
}

impl State {
    const fn word(self) -> &'static str {
        match self {
            Self::Fine => "ok",
            Self::Note => "note",
            Self::Trouble => "trouble",
        }
    }

    const fn style(self) -> Style {
        match self {
            Self::Fine => LIVELY,
            Self::Note => STRONG,
            Self::Trouble => GRAVE,
        }
    }
}

/// One thing that was looked at.
#[derive(Clone, Debug)]
pub struct Finding {
    /// What it belongs to.
    pub about: &'static str,
    /// Its name.
    pub name: String,
    /// How it stands.
    pub state: State,
    /// What was found.
    pub what: String,
    /// What to do, where there is something.
    pub advice: Option<String>,
}

impl Finding {
    fn new(about: &'static str, name: &str, state: State, what: String) -> Self {
        Self { about, name: name.to_owned(), state, what, advice: None }
    }

    fn advised(self, advice: impl Into<String>) -> Self {
        Self { advice: Some(advice.into()), ..self }
    }

    /// As an object.
    pub fn as_json(&self) -> Json {
        json!({
            "about": self.about,
            "name": self.name,
            "state": self.state.word(),
            "what": self.what,
            "advice": self.advice,
        })
    }
}

/// Everything that can be looked at.
pub fn findings(place: &PlaceArguments) -> Vec<Finding> {
    let mut found = system::findings(place);
    found.extend(integrations::findings());
    found
}

/// Runs the command.
pub fn run(arguments: &DoctorArguments) -> ExitCode {
    let found = findings(&arguments.place);
    let in_trouble = found.iter().filter(|finding| finding.state == State::Trouble).count();
    match paint::print(&shown(&found, in_trouble, arguments.json)) {
        Ok(()) if in_trouble > 0 => ExitCode::FAILURE,
        printed => paint::ended("doctor", printed.map_err(Failure::from)),
    }
}

fn shown(found: &[Finding], in_trouble: usize, as_json: bool) -> String {
    if as_json {
        return found.iter().map(|finding| paint::json_line(&finding.as_json())).collect();
    }
    let mut text = String::new();
    let mut about = "";
    for finding in found {
        if finding.about != about {
            about = finding.about;
            let gap = if text.is_empty() { "" } else { "\n" };
            text.push_str(&format!("{gap}{STRONG}{about}{STRONG:#}\n"));
        }
        let (style, word) = (finding.state.style(), finding.state.word());
        text.push_str(&format!(
            "  {style}{word:<7}{style:#} {:<14} {}\n",
            finding.name,
            crate::engine::one_line(&finding.what)
        ));
        if let Some(advice) = &finding.advice {
            text.push_str(&format!("{:25}→ {}\n", "", crate::engine::one_line(advice)));
        }
    }
    text.push_str(&match in_trouble {
        0 => "\nNothing is wrong.\n".to_owned(),
        count => format!("\n{} to look at.\n", paint::count(count as u64, "trouble")),
    });
    text
}
