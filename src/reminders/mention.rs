//! `mention`: what the person pointed at, or why it is not there (`reminders.md` §3).
//!
//! A mention is told by (kind, target, range); the same content that history still holds is not told
//! again. Text of others is named as theirs, so that nothing in it passes for the daemon's.

use crate::engine::{
    Found, Lane, Mention, MentionKind, Policy, Proposal, Reading, Reminder, Serial, Speech,
    Trigger, View, Wanted, one_line, short_name,
};
use crate::files::identity;

use super::large_attachment::{advice, is_pdf};

/// The most text of one mention, in bytes.
const TEXT_BYTES_MAX: usize = 512 << 10;

/// Tells mentions.
#[derive(Debug)]
pub struct Mentions;

impl Reminder for Mentions {
    fn policy(&self) -> Policy {
        Policy::new(Trigger::OnChange)
    }

    fn lane(&self) -> Lane {
        Lane::Mention
    }

    fn propose(&self, view: &View<'_>) -> Proposal {
        let mentions = view.scope.facts.mentions.iter();
        let mentions: Vec<_> =
            mentions.filter(|(serial, _)| *serial <= view.moment.until).collect();
        if mentions.is_empty() {
            return Proposal::silent("nothing was mentioned in this turn", "after a mention");
        }
        let wanted: Vec<_> = mentions.iter().filter_map(|(_, mention)| wanted(mention)).collect();
        if wanted.iter().any(|wanted| !view.findings.contains_key(wanted)) {
            return Proposal::Read(wanted);
        }
        Proposal::Speak(
            mentions.into_iter().map(|(serial, mention)| speech(*serial, mention, view)).collect(),
        )
    }
}

/// The file that has to be looked at: what the client gave of one is not read, but may be a secret.
fn wanted(mention: &Mention) -> Option<Wanted> {
    let is_given = mention.content.is_some();
    let path = identity::path_of(&mention.target);
    let looks = match mention.kind {
        MentionKind::File => is_given || identity::is_path(&path),
        // What a reference leads to may be a file all the same.
        MentionKind::Ref => is_given && identity::is_path(&path),
        MentionKind::Mcp | MentionKind::Agent => false,
    };
    (looks && mention.rejected.is_none()).then(|| Wanted {
        path,
        reading: match mention.range {
            _ if is_given => Reading::Given,
            Some((start, end)) => Reading::Lines(start, end),
            None if is_pdf(&mention.target) => Reading::Attachment,
            None => Reading::Mention,
        },
    })
}

fn speech(serial: Serial, mention: &Mention, view: &View<'_>) -> Speech {
    let shown = match mention.kind {
        MentionKind::File => identity::shown(&mention.target, view.root),
        _ => mention.target.as_str().into(),
    };
    let mut name = short_name(&shown, 500);
    if let Some((start, end)) = mention.range {
        name.push_str(&format!(", lines {start}-{end}"));
    }
    let (body, state) = said(mention, &name, view);
    let key = format!("{}:{name}", mention.kind.name());
    Speech::new("mention", body).about(key).telling(state).taking(serial)
}

/// The body, and the fingerprint of what stands in it.
fn said(mention: &Mention, name: &str, view: &View<'_>) -> (String, String) {
    let kind = mention.kind.name();
    if let Some(reason) = &mention.rejected {
        let body = format!(
            "The person mentioned {kind} {name}, which could not be included: {}.",
            short_name(reason, 500)
        );
        return (body, view.fingerprint(&format!("rejected\n{reason}")));
    }
    let found = wanted(mention).map(|wanted| &view.findings[&wanted]);
    if let (Some(content), None | Some(Found::Showable)) = (&mention.content, found) {
        return content_of(kind, name, content, None, view);
    }
    let Some(found) = found else {
        let body = format!("The person mentioned {kind} {name}.");
        return (body, view.fingerprint("named"));
    };
    match found {
        Found::Text { text, cut_from, .. } => content_of(kind, name, text, *cut_from, view),
        Found::Listing { names, more, .. } => {
            let mut listing: Vec<_> = names.iter().map(|name| one_line(name)).collect();
            if *more > 0 {
                listing.push(format!("… and {more} more").into());
            }
            content_of(kind, name, &listing.join("\n"), None, view)
        }
        Found::Attachment { bytes, pages, fingerprint } => {
            let body = format!("The person mentioned {kind} {name}. {}", advice(*bytes, *pages));
            (body, fingerprint.clone())
        }
        // Nothing is there, or nothing that a mention asks for.
        Found::Showable
        | Found::Missing
        | Found::Pending
        | Found::Edits(_)
        | Found::Diagnosis(_) => {
            let body = format!("The person mentioned {kind} {name}, which is not there.");
            (body, view.fingerprint("missing"))
        }
        Found::Unread { reason, .. } => {
            let what = if mention.content.is_some() { "is not shown" } else { "was not read" };
            let body = format!(
                "The person mentioned {kind} {name}, which {what}: {}.",
                short_name(reason, 300)
            );
            (body, view.fingerprint(&format!("unread\n{reason}")))
        }
    }
}

/// Content, named as that of somebody else, and at most as much as fits. A cut says how much.
fn content_of(
    kind: &str,
    name: &str,
    content: &str,
    cut_from: Option<u64>,
    view: &View<'_>,
) -> (String, String) {
    let mut end = content.len().min(TEXT_BYTES_MAX);
    while !content.is_char_boundary(end) {
        end -= 1;
    }
    let size = cut_from.unwrap_or(content.len() as u64);
    let mut body =
        format!("Content of {kind} {name}, mentioned by the person:\n{}", &content[..end]);
    if (end as u64) < size {
        body.push_str(&format!("\n… (cut: {end} of {size} bytes are shown)"));
    }
    (body, view.fingerprint(content))
}
