//! `diagnostics`: what checkers found after the turn's edits (`reminders.md` §6).

use std::fmt::Write as _;

use crate::engine::{
    DiagnosedProblem, Diagnosis, DiagnosisCounts, Effect, Found, Lane, Policy, Proposal, Reminder,
    Severity, Silence, Speech, Trigger, View, Wanted, short_name,
};
use crate::files::identity;

/// Files and checkers that are named at most in one line.
const NAMES_MAX: usize = 10;
/// Characters of a message that are told.
const MESSAGE_CHARS_MAX: usize = 500;

/// Tells new problems first, then those that were there before, and what was not checked.
#[derive(Debug)]
pub struct Diagnostics;

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
        let body = body(diagnosis, view.root);
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

fn body(diagnosis: &Diagnosis, root: Option<&str>) -> String {
    let mut body = String::new();
    let mut section = |heading: &str, problems: &[DiagnosedProblem]| {
        if !problems.is_empty() {
            body.push_str(heading);
            problems.iter().for_each(|problem| body.push_str(&line(problem, root)));
        }
    };
    section("Problems that are new after your edits, to be finished:\n", &diagnosis.new);
    section(
        "Problems of the edited files that were there before, for context:\n",
        &diagnosis.before,
    );
    let more = diagnosis.more_new + diagnosis.more_before;
    if more > 0 {
        let _ = writeln!(body, "{more} more are not listed, {} of them new.", diagnosis.more_new);
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
