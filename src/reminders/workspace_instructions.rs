//! `workspace-instructions`: instruction files between the root and a file that was read
//! (`reminders.md` §3).
//!
//! A successful read below the root looks for them in each directory on the way, broad to narrow,
//! the main file before the local one. A file is told whole, when its content differs from what this
//! scope was last told of the same real path; one that vanished is withdrawn at the next read below
//! it. The root's own count as known from the start unless `rootKnown` is false.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::engine::{
    Definition, Found, Lane, Policy, Proposal, Reading, Refusal, Reminder, Speech, Trigger, View,
    Wanted, short_name,
};
use crate::files::identity;
use crate::rules::read_settings;

/// The kind's own keys.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Settings {
    /// The names of instruction files, those that come first in a directory first.
    #[schemars(extend("x-untrusted" = "never"))]
    names: Vec<String>,
    /// Whether the root's own files count as known from the start.
    root_known: bool,
    /// Over how many bytes a file is named, not told.
    #[schemars(range(max = 262_144), extend("x-untrusted" = "lower"))]
    bytes: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            names: vec!["AGENTS.md".to_owned(), "AGENTS.local.md".to_owned()],
            root_known: true,
            bytes: 256 << 10,
        }
    }
}

/// The state of a file that is not there any more.
const GONE: &str = "gone";

/// Tells instructions of directories.
#[derive(Debug)]
pub struct WorkspaceInstructions {
    settings: Settings,
}

impl WorkspaceInstructions {
    /// Makes it of `{names, rootKnown, bytes}`.
    pub fn new(definition: &Definition) -> Result<Self, Refusal> {
        let settings: Settings = read_settings(definition)?;
        let no_name = |name: &String| name.is_empty() || name.contains('/');
        if let Some(place) = settings.names.iter().position(no_name) {
            let refusal = Refusal::invalid(format!(
                "workspace-instructions: {:?} is no file name: names stand without a folder",
                settings.names[place]
            ));
            return Err(refusal.about(["names".to_owned(), place.to_string()]));
        }
        Ok(Self { settings })
    }

    /// The files to look for: those of every directory on the way to a read, sorted so that broad
    /// comes before narrow.
    fn candidates(&self, root: &str, view: &View<'_>) -> Vec<Wanted> {
        let mut directories = BTreeSet::new();
        for (directory, serial) in &view.scope.facts.reads {
            if *serial > view.moment.until {
                continue;
            }
            let Some(below) = directory.strip_prefix(root) else { continue };
            if !below.is_empty() && !below.starts_with('/') {
                continue;
            }
            if !self.settings.root_known {
                directories.insert(root.to_owned());
            }
            for (end, _) in below.match_indices('/').skip(1) {
                directories.insert(format!("{root}{}", &below[..end]));
            }
            if !below.is_empty() {
                directories.insert(directory.clone());
            }
        }
        let names = &self.settings.names;
        let mut others = Vec::new();
        // A host that compacted its own history is given back at once what it had learned.
        for path in learned(view) {
            match path.rsplit_once('/') {
                Some((directory, name)) if names.iter().any(|known| known == name) => {
                    directories.insert(directory.to_owned());
                }
                _ => others.push(path.to_owned()),
            }
        }
        let files = directories
            .iter()
            .flat_map(|directory| names.iter().map(move |name| format!("{directory}/{name}")));
        let files = files.chain(others);
        files.map(|path| Wanted { path, reading: Reading::Instructions }).collect()
    }

    /// What is to be told of one file, if anything is.
    fn speech(
        &self,
        wanted: &Wanted,
        real: &str,
        found: &Found,
        view: &View<'_>,
    ) -> Option<Speech> {
        let told = view.told(Some(real)).held;
        let (directory, _) = wanted.path.rsplit_once('/')?;
        let governed = short_name(&identity::shown(directory, view.root), 500);
        let name = short_name(&identity::shown(&wanted.path, view.root), 500);
        let unread = |reason: &str| {
            let body = format!(
                "{name} holds instructions for everything below {governed}/, but was not read: {}.",
                short_name(reason, 300)
            );
            (body, view.fingerprint(reason))
        };
        let bytes_max = self.settings.bytes;
        let (body, state) = match found {
            Found::Text { text, .. } if text.len() as u64 > bytes_max => {
                unread(&format!("it has {} bytes, over {bytes_max}", text.len()))
            }
            Found::Text { text, .. } if !text.trim().is_empty() => (
                format!(
                    "Instructions for everything below {governed}/, from {name}; those of a deeper \
                     directory override them:\n{}",
                    text.trim_end()
                ),
                view.fingerprint(text),
            ),
            Found::Unread { reason, .. } => unread(reason),
            // Nothing is there: only what was told has to be taken back.
            _ if told.is_some_and(|told| told != GONE) => (
                format!(
                    "The instructions of {name} are gone: they no longer hold below {governed}/."
                ),
                GONE.to_owned(),
            ),
            _ => return None,
        };
        let speech = Speech::new("instructions", body).about(real).telling(state);
        // Who read the file itself in full has it in the conversation already: as it was then.
        let mut read_whole = view.scope.facts.whole_reads.iter();
        let Some((serial, _)) = read_whole.find(|(_, path)| *path == wanted.path || path == real)
        else {
            return Some(speech);
        };
        let mut speech = speech.taking(*serial);
        speech.rides = true;
        Some(speech)
    }
}

/// The real paths of the instructions that were told before a native compaction; none without one.
fn learned<'a>(view: &View<'a>) -> BTreeSet<&'a str> {
    if !view.scope.native_compaction {
        return BTreeSet::new();
    }
    let records = view.scope.history.records().iter().map(|delivered| &delivered.record);
    let told = records.flat_map(|record| {
        let said = record.entries.iter().map(|entry| (&entry.entry_type, &entry.key));
        let silent = record.silent.iter().map(|entry| (&entry.entry_type, &entry.key));
        said.chain(silent)
    });
    told.filter(|(id, _)| *id == view.id).filter_map(|(_, key)| key.as_deref()).collect()
}

impl Reminder for WorkspaceInstructions {
    fn policy(&self) -> Policy {
        Policy::new(Trigger::OnChange)
    }

    fn lane(&self) -> Lane {
        Lane::Events
    }

    fn looks_at_reads(&self) -> bool {
        true
    }

    fn propose(&self, view: &View<'_>) -> Proposal {
        let Some(root) = view.root.map(|root| root.trim_end_matches('/')) else {
            return Proposal::silent("the session has no root", "in a session with one");
        };
        let candidates = self.candidates(root, view);
        if candidates.is_empty() {
            return Proposal::silent("nothing was read below the root", "after such a read");
        }
        if candidates.iter().any(|wanted| !view.findings.contains_key(wanted)) {
            return Proposal::Read(candidates);
        }
        let (mut seen, mut said) = (BTreeSet::new(), BTreeSet::new());
        let mut speeches = Vec::new();
        for wanted in &candidates {
            let found = &view.findings[wanted];
            let real = match found {
                Found::Text { real, .. } | Found::Unread { real, .. } => real,
                _ => &wanted.path,
            };
            // A link, or another case of the name, is the same file. A second name beside it that
            // says the same has nothing to add.
            let Some((directory, _)) = wanted.path.rsplit_once('/') else { continue };
            let adds = match found {
                Found::Text { text, .. } if !text.is_empty() => said.insert((directory, text)),
                _ => true,
            };
            if adds && seen.insert(real.clone()) {
                speeches.extend(self.speech(wanted, real, found, view));
            }
        }
        if speeches.is_empty() {
            return Proposal::silent(
                "the instructions on the way to what was read are known",
                "when they change or history loses them",
            );
        }
        Proposal::Speak(speeches)
    }
}
