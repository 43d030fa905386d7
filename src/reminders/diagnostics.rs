//! `diagnostics`: what checkers found after the turn's edits (`reminders.md` §6).

use std::collections::BTreeMap;
use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::engine::{
    Definition, DiagnosedProblem, Diagnosis, DiagnosisCounts, Effect, Found, Lane, Policy,
    Proposal, Refusal, Reminder, Severity, Silence, Speech, Trigger, View, Wanted, short_name,
};
use crate::files::identity;
use crate::rules::read_settings;

/// Files and checkers that are named at most in one line.
const NAMES_MAX: usize = 10;
/// Characters of a message that are told.
const MESSAGE_CHARS_MAX: usize = 500;

/// The kind's own keys. What is compared bounds them.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Settings {
    /// How many problems of one file are told.
    #[schemars(range(min = 1, max = 10), extend("x-untrusted" = "lower"))]
    per_file: u64,
    /// How many problems are told in all.
    #[schemars(range(min = 1, max = 30), extend("x-untrusted" = "lower"))]
    total: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { per_file: 10, total: 30 }
    }
}

/// Tells new problems first, then those that were there before, and what was not checked.
#[derive(Debug)]
pub struct Diagnostics {
    settings: Settings,
}

impl Diagnostics {
    /// Makes it of `{perFile, total}`.
    pub fn new(definition: &Definition) -> Result<Self, Refusal> {
        Ok(Self { settings: read_settings(definition)? })
    }
}

impl Reminder for Diagnostics {
    fn policy(&self) -> Policy {
        Policy::new(Trigger::Always)
    }

    fn lane(&self) -> Lane {
        Lane::Events
    }

    fn propose(&self, view: &View<'_>) -> Proposal {
        let diagnosis = match view.findings.get(&Wanted::DIAGNOSTICS) {
            Some(Found::Diagnosis(diagnosis)) => diagnosis,
            Some(Found::Pending) => return Proposal::Read(vec![Wanted::DIAGNOSTICS]),
            _ => return Proposal::silent("no file was edited in this turn", "after an edit"),
        };
        let told = Effect::TellDiagnostics {
            states: diagnosis.states.clone(),
            failed: diagnosis.failed.clone(),
        };
        let body = body(diagnosis, view.root, &self.settings);
        if body.is_empty() {
            let silence = Silence::nothing(
                reason(diagnosis.counts),
                "when a checker reports something that is new",
            );
            let effects = if diagnosis.states.is_empty() { Vec::new() } else { vec![told] };
            return Proposal::Note(silence, effects);
        }
        let mut speech = Speech::new("diagnostics", body);
        speech.parts[0].effects.push(told);
        Proposal::Speak(vec![speech])
    }
}

fn reason(counts: DiagnosisCounts) -> String {
    let DiagnosisCounts { edited, unseen, reported, before, resolved, .. } = counts;
    let mut reason = format!(
        "{edited} files were edited in this turn, checkers have reported on {reported}, and \
         nothing is new ({before} problems known, {resolved} gone)"
    );
    if unseen > 0 {
        let _ = write!(reason, "; {unseen} more could not be looked at yet");
    }
    reason
}

fn body(diagnosis: &Diagnosis, root: Option<&str>, settings: &Settings) -> String {
    let mut body = String::new();
    let mut places = Room { settings, all: 0, of_file: BTreeMap::new() };
    let mut section = |heading: &str, problems| {
        let (told, untold) = places.take(problems);
        if !told.is_empty() {
            body.push_str(heading);
            told.into_iter().for_each(|problem| body.push_str(&line(problem, root)));
        }
        untold
    };
    let heading = "Problems that are new after your edits, to be finished:\n";
    let more_new = diagnosis.more_new + section(heading, &diagnosis.new);
    let heading = "Problems of the edited files that were there before, for context:\n";
    let more = more_new + diagnosis.more_before + section(heading, &diagnosis.before);
    if more > 0 {
        let _ = writeln!(body, "{more} more are not listed, {more_new} of them new.");
    }
    if !diagnosis.unchecked.is_empty() {
        let paths = diagnosis.unchecked.iter().map(|path| shown(path, root));
        let _ = writeln!(
            body,
            "Not checked in full, since checkers did not report in time, so problems may be there: {}.",
            names(paths)
        );
    }
    if !diagnosis.failed.is_empty() {
        let failed = diagnosis.failed.iter().map(|name| short_name(name, 100));
        let _ = writeln!(
            body,
            "Failed, so that nothing is known of what they look for: {}.",
            names(failed)
        );
    }
    body.truncate(body.trim_end().len());
    body
}

/// How many problems were told, against the caps.
struct Room<'a> {
    settings: &'a Settings,
    all: u64,
    of_file: BTreeMap<&'a str, u64>,
}

impl<'a> Room<'a> {
    /// The problems that there is room for, and how many there are besides.
    fn take(&mut self, problems: &'a [DiagnosedProblem]) -> (Vec<&'a DiagnosedProblem>, u64) {
        let fits = |problem: &&'a DiagnosedProblem| {
            let of_file = self.of_file.entry(&problem.path).or_default();
            let fits = self.all < self.settings.total && *of_file < self.settings.per_file;
            self.all += u64::from(fits);
            *of_file += u64::from(fits);
            fits
        };
        let told: Vec<_> = problems.iter().filter(fits).collect();
        let untold = (problems.len() - told.len()) as u64;
        (told, untold)
    }
}

/// One problem on one line, as compilers print them.
fn line(problem: &DiagnosedProblem, root: Option<&str>) -> String {
    let DiagnosedProblem { path, line, column, severity, code, source, message } = problem;
    let severity = match severity {
        Severity::Error => "error".to_owned(),
        Severity::Warning => "warning".to_owned(),
        Severity::Information => "information".to_owned(),
        Severity::Hint => "hint".to_owned(),
        Severity::Other(number) => format!("severity {number}"),
        Severity::Unsaid => "problem".to_owned(),
    };
    let mut text = format!("- {}:{line}:{column}: {severity}", shown(path, root));
    if let Some(code) = code {
        let _ = write!(text, " [{}]", short_name(code, 100));
    }
    if let Some(source) = source {
        let _ = write!(text, " ({})", short_name(source, 100));
    }
    match message {
        Some(message) => {
            let words: Vec<_> = message.split_whitespace().collect();
            let _ = writeln!(text, ": {}", short_name(&words.join(" "), MESSAGE_CHARS_MAX));
        }
        None => text.push_str(": the text is withheld, the file's content is not to be shown\n"),
    }
    text
}

fn shown(path: &str, root: Option<&str>) -> String {
    short_name(&identity::shown(path, root), 500)
}

fn names(all: impl ExactSizeIterator<Item = String>) -> String {
    let more = all.len().saturating_sub(NAMES_MAX);
    let mut names: Vec<_> = all.take(NAMES_MAX).collect();
    if more > 0 {
        names.push(format!("{more} more"));
    }
    names.join(", ")
}
