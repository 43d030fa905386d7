//! `large-attachment`: a large PDF was read without a range of pages (`reminders.md` §3).

use crate::engine::{
    Found, Lane, Policy, Proposal, Reading, Reminder, Speech, Trigger, View, Wanted, short_name,
};
use crate::files::identity;

/// Pages from which on a document is large.
const PAGES_MAX: u64 = 20;
/// Bytes from which on a document is large.
const BYTES_MAX: u64 = 1 << 20;

/// Advises to read in ranges of pages, once for each file and content.
#[derive(Debug)]
pub struct LargeAttachment;

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
                && is_large(*bytes, *pages)
            {
                let name = short_name(&identity::shown(&wanted.path, view.root), 500);
                let body = format!("{name} was read whole. {}", advice(*bytes, *pages));
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

fn is_large(bytes: u64, pages: Option<u64>) -> bool {
    bytes > BYTES_MAX || pages.is_some_and(|pages| pages > PAGES_MAX)
}

/// What a document's size means for reading it.
pub fn advice(bytes: u64, pages: Option<u64>) -> String {
    let pages_known = pages.map(|pages| format!(" and {pages} pages")).unwrap_or_default();
    let size = format!("It has {bytes} bytes{pages_known}.");
    if is_large(bytes, pages) {
        format!(
            "{size} Read it in ranges of at most {PAGES_MAX} pages, such as pages \"1-{PAGES_MAX}\"."
        )
    } else {
        size
    }
}
