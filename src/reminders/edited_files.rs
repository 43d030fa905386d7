//! `edited-files`: a file that the scope read or wrote is not as it knows it (`reminders.md` §5).
//!
//! One entry names every such file. Those whose difference may be shown and fits come with it; the
//! others are listed, to be read again.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::engine::{
    Author, Change, Definition, DiffLimits, Edited, Effect, FileState, Found, Part, Policy,
    Proposal, Reading, Refusal, Reminder, Speech, Trigger, View, Wanted, short_name,
};
use crate::files::identity;
use crate::files::secrecy::{self, Secrecy};
use crate::rules::read_settings;

/// Characters of a path, and of a reason, that are shown.
const PATH_CHARS_MAX: usize = 500;
/// Listed files that are told, or wait, together.
const LISTED_TOGETHER: usize = 50;

/// Why it is silent where no file is watched.
const UNWATCHED: &str = "no file was read or written here";

/// The kind's own keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct EditedFilesSettings {
    /// How many lines of one file's difference are shown.
    #[schemars(extend("x-untrusted" = "lower"))]
    pub diff_lines: u64,
    /// Over how many bytes a file's difference is not worked out.
    #[schemars(extend("x-untrusted" = "lower"))]
    pub diff_file_bytes: u64,
    /// How many lines all differences of one WAIT have together.
    #[schemars(extend("x-untrusted" = "lower"))]
    pub total_lines: u64,
    /// How many bytes all differences of one WAIT have together.
    #[schemars(extend("x-untrusted" = "lower"))]
    pub total_bytes: u64,
    /// Of how many files of the session the content is kept, to show differences from.
    #[schemars(range(max = 50_000), extend("x-untrusted" = "lower"))]
    pub content_files: u64,
    /// How many bytes of content are kept.
    #[schemars(extend("x-untrusted" = "lower"))]
    pub content_bytes: u64,
    /// How many files the session watches.
    #[schemars(extend("x-untrusted" = "lower"))]
    pub watched_files: u64,
    /// Globs of further files whose content is never shown, as in `.gitignore`. One that begins with
    /// `!` shows what is secret otherwise.
    #[schemars(extend("x-untrusted" = "more"))]
    pub secret: Vec<String>,
    /// Globs of further files that are generated: named, never shown. One that begins with `!` shows
    /// what counts as generated otherwise.
    #[schemars(extend("x-untrusted" = "more"))]
    pub generated: Vec<String>,
}

impl Default for EditedFilesSettings {
    fn default() -> Self {
        let DiffLimits { file_lines, file_bytes, lines, bytes } = DiffLimits::default();
        Self {
            diff_lines: file_lines,
            diff_file_bytes: file_bytes,
            total_lines: lines,
            total_bytes: bytes,
            content_files: 100,
            content_bytes: 25 << 20,
            watched_files: 10_000,
            secret: Vec::new(),
            generated: Vec::new(),
        }
    }
}

impl EditedFilesSettings {
    /// Reads them of a definition.
    pub fn of(definition: &Definition) -> Result<Self, Refusal> {
        read_settings(definition)
    }
}

/// Tells what changed in the watched files.
#[derive(Debug)]
pub struct EditedFiles {
    limits: DiffLimits,
}

impl EditedFiles {
    /// Makes it of its settings; those that say what is kept and what is secret are for the files
    /// themselves.
    pub fn new(definition: &Definition) -> Result<Self, Refusal> {
        let settings = EditedFilesSettings::of(definition)?;
        let (secret, generated) = (settings.secret.clone(), settings.generated.clone());
        for (key, options) in [
            ("secret", secrecy::Options { secret, ..secrecy::Options::default() }),
            ("generated", secrecy::Options { generated, ..secrecy::Options::default() }),
        ] {
            if let Some(problem) = Secrecy::new(None, &options).problems().first() {
                let globs = options.secret.iter().chain(&options.generated);
                let place =
                    globs.enumerate().find(|(_, it)| problem.starts_with(&format!("{it:?}")));
                let place = place.map(|(place, _)| place.to_string());
                let at = [Some(key.to_owned()), place].into_iter().flatten();
                return Err(Refusal::invalid(problem.clone()).about(at).of(&definition.id));
            }
        }
        let limits = DiffLimits {
            file_lines: settings.diff_lines,
            file_bytes: settings.diff_file_bytes,
            lines: settings.total_lines,
            bytes: settings.total_bytes,
        };
        Ok(Self { limits })
    }
}

impl Reminder for EditedFiles {
    fn policy(&self) -> Policy {
        Policy::new(Trigger::OnChange)
    }

    fn propose(&self, view: &View<'_>) -> Proposal {
        let facts = &view.scope.facts;
        // What was touched just now may not be looked at yet: a WAIT does not overtake that.
        if facts.watched.is_empty() && facts.touched.is_empty() {
            return Proposal::silent(UNWATCHED, "after one is");
        }
        let wanted = Wanted { path: String::new(), reading: Reading::Edits(self.limits) };
        let edits = match view.findings.get(&wanted) {
            None => return Proposal::Read(vec![wanted]),
            Some(Found::Edits(edits)) => edits,
            Some(_) => &Vec::new(),
        };
        let watched = &facts.watched;
        if watched.is_empty() {
            return Proposal::silent(UNWATCHED, "after one is");
        }
        if edits.is_empty() {
            return Proposal::counting(
                [watched.len() as u64, 0, 0],
                |[files, ..]| match files {
                    1 => "the 1 watched file is as the model knows it".to_owned(),
                    files => format!("the {files} watched files are as the model knows them"),
                },
                |_| "when one changes on disk".to_owned(),
            );
        }
        let mut speech = Speech::new("edited files", String::new());
        speech.parts = parts(edits, view);
        // The same change may come again after it went, so that each telling is one of its own.
        let mut state = view.scope.history.spoken(view.id, 0).in_session.to_string();
        for edited in edits {
            state.push_str(&format!("\n{}\n{:?}", edited.paths[0], edited.now));
        }
        Proposal::Speak(vec![speech.telling(view.fingerprint(&state))])
    }
}

/// Differences first, then lists of what is only named.
fn parts(edits: &[Edited], view: &View<'_>) -> Vec<Part> {
    let root = view.root;
    let is_shown = |edited: &&Edited| matches!(edited.change, Change::Diff { .. });
    let mut parts: Vec<_> = edits
        .iter()
        .filter(is_shown)
        .map(|edited| part(difference(edited, root), [edited], view))
        .collect();
    let named: Vec<_> = edits.iter().filter(|edited| !is_shown(edited)).collect();
    for some in named.chunks(LISTED_TOGETHER) {
        let lines: Vec<_> = some.iter().map(|edited| listed(edited, root)).collect();
        let body =
            format!("Only named here; read again what you still rely on:\n{}", lines.join("\n"));
        parts.push(part(body, some.iter().copied(), view));
    }
    if let Some(first) = parts.first_mut() {
        first
            .body
            .insert_str(0, "These files have changed since this conversation last saw them.\n\n");
    }
    parts
}

fn part<'a>(body: String, edits: impl IntoIterator<Item = &'a Edited>, view: &View<'_>) -> Part {
    let at = view.moment.until;
    let know = |edited: &'a Edited| {
        let state = &edited.now;
        let paths = edited.paths.iter().cloned();
        paths.map(move |path| Effect::KnowFile { path, state: state.clone(), at })
    };
    Part { body, effects: edits.into_iter().flat_map(know).collect(), tells: None }
}

fn shown(edited: &Edited, root: Option<&str>) -> String {
    short_name(&identity::shown(&edited.paths[0], root), PATH_CHARS_MAX)
}

/// A file with its difference.
fn difference(edited: &Edited, root: Option<&str>) -> String {
    let Change::Diff { text, omitted } = &edited.change else { return listed(edited, root) };
    let mut body =
        format!("{}, {}:\n{}", shown(edited, root), what(edited), text.trim_end_matches('\n'));
    match omitted {
        0 => {}
        1 => body.push_str("\n… (1 more line of this difference is not shown)"),
        omitted => {
            body.push_str(&format!("\n… ({omitted} more lines of this difference are not shown)"));
        }
    }
    body
}

/// A file that is only named, and why.
fn listed(edited: &Edited, root: Option<&str>) -> String {
    let why = match (&edited.now, &edited.change) {
        (FileState::File { .. }, Change::Withheld(reason)) => {
            format!(" ({})", short_name(reason, PATH_CHARS_MAX))
        }
        _ => String::new(),
    };
    format!("- {}: {}{why}", shown(edited, root), what(edited))
}

/// What happened, and by whom.
fn what(edited: &Edited) -> String {
    let by = match &edited.author {
        Author::Agent(path) if path.is_root() => " by the root conversation".to_owned(),
        Author::Agent(path) => format!(" by agent {}", short_name(path.as_str(), 200)),
        Author::OtherSession => " by an agent of another session".to_owned(),
        Author::Person => " by the person in the editor".to_owned(),
        Author::Outside => " from outside".to_owned(),
    };
    match (&edited.was, &edited.now) {
        (_, FileState::Missing) => format!("deleted{by}"),
        (_, FileState::Other(what)) => format!("replaced{by}, it is {what} now"),
        (_, FileState::Unreadable(reason)) => {
            format!("cannot be read any more, {}", short_name(reason, PATH_CHARS_MAX))
        }
        (FileState::Missing, FileState::File { .. }) => format!("made again{by}"),
        (_, FileState::File { .. }) => format!("changed{by}"),
    }
}
