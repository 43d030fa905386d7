//! `large-attachment`: a large PDF was read without a range of pages (`reminders.md` §3).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::engine::{
    Definition, Found, Lane, Policy, Proposal, Reading, Refusal, Reminder, Speech, Trigger, View,
    Wanted, short_name,
};
use crate::files::identity;
use crate::rules::read_settings;

/// The kind's own keys, which hold for mentioned documents too.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Settings {
    /// Over how many pages a document is large, and how many to read at once.
    #[schemars(range(min = 1))]
    pages: u64,
    /// Over how many bytes a document is large.
    bytes: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { pages: 20, bytes: 1 << 20 }
    }
}

impl Settings {
    /// Those of the scope's roster, for whoever else speaks of documents.
    pub fn of_roster(view: &View<'_>) -> Self {
        let member = view.scope.roster.iter().find(|member| member.id() == "large-attachment");
        let settings = member.map(|member| read_settings(&member.definition));
        settings.and_then(Result::ok).unwrap_or_default()
    }

    fn is_large(&self, bytes: u64, pages: Option<u64>) -> bool {
        bytes > self.bytes || pages.is_some_and(|pages| pages > self.pages)
    }

    /// What a document's size means for reading it.
    pub fn advice(&self, bytes: u64, pages: Option<u64>) -> String {
        let pages_known = pages.map(|pages| format!(" and {pages} pages")).unwrap_or_default();
        let size = format!("It has {bytes} bytes{pages_known}.");
        if !self.is_large(bytes, pages) {
            return size;
        }
        match self.pages {
            1 => format!("{size} Read it page by page, such as pages \"1\"."),
            most => {
                format!(
                    "{size} Read it in ranges of at most {most} pages, such as pages \"1-{most}\"."
                )
            }
        }
    }
}

/// Advises to read in ranges of pages, once for each file and content.
#[derive(Debug)]
pub struct LargeAttachment {
    settings: Settings,
}

impl LargeAttachment {
    /// Makes it of `{pages, bytes}`.
    pub fn new(definition: &Definition) -> Result<Self, Refusal> {
        Ok(Self { settings: read_settings(definition)? })
    }
}

impl Reminder for LargeAttachment {
    fn policy(&self) -> Policy {
        Policy::new(Trigger::OnChange)
    }

    fn lane(&self) -> Lane {
        Lane::Events
    }

    fn propose(&self, view: &View<'_>) -> Proposal {
        let reads = view.scope.facts.whole_reads.iter().filter(|(serial, path)| {
            *serial <= view.moment.until && is_pdf(path) && identity::is_path(path)
        });
        let reads: Vec<_> = reads
            .map(|(serial, path)| {
                (*serial, Wanted { path: path.clone(), reading: Reading::Attachment })
            })
            .collect();
        if reads.is_empty() {
            return Proposal::silent(
                "no document was read whole in this turn",
                "after such a read",
            );
        }
        if reads.iter().any(|(_, wanted)| !view.findings.contains_key(wanted)) {
            return Proposal::Read(reads.into_iter().map(|(_, wanted)| wanted).collect());
        }
        let mut speeches = Vec::new();
        for (serial, wanted) in reads {
            if let Found::Attachment { bytes, pages, fingerprint } = &view.findings[&wanted]
                && self.settings.is_large(*bytes, *pages)
            {
                let name = short_name(&identity::shown(&wanted.path, view.root), 500);
                let body =
                    format!("{name} was read whole. {}", self.settings.advice(*bytes, *pages));
                let speech = Speech::new("attachment", body).about(name);
                speeches.push(speech.telling(fingerprint.clone()).taking(serial));
            }
        }
        if speeches.is_empty() {
            return Proposal::silent("no large document was read whole", "after such a read");
        }
        Proposal::Speak(speeches)
    }
}

/// Whether a path is that of a document whose pages can be read one by one.
pub fn is_pdf(path: &str) -> bool {
    path.rsplit_once('.').is_some_and(|(_, extension)| extension.eq_ignore_ascii_case("pdf"))
}
