//! `mention`: what the person pointed at, or why it is not there (`reminders.md` §3).
//!
//! A mention is told by (kind, target, range); the same content that history still holds is not told
//! again. Text of others is named as theirs, so that nothing in it passes for the daemon's.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::engine::{
    Definition, Found, Lane, Mention, MentionKind, Policy, Proposal, Reading, Refusal, Reminder,
    Serial, Speech, Trigger, View, Wanted, one_line, short_name,
};
use crate::files::identity;
use crate::rules::read_settings;

use super::large_attachment::{Settings as Large, is_pdf};

/// The kind's own keys. What is read of a file bounds them.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Settings {
    /// How much text of one mention is shown, in bytes.
    #[schemars(range(max = 524_288), extend("x-untrusted" = "lower"))]
    text_bytes: usize,
    /// How many names of a directory are listed.
    #[schemars(range(max = 1_000), extend("x-untrusted" = "lower"))]
    listing_names: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { text_bytes: 512 << 10, listing_names: 1_000 }
    }
}

/// Tells mentions.
#[derive(Debug)]
pub struct Mentions {
    settings: Settings,
}

impl Mentions {
    /// Makes it of `{textBytes, listingNames}`.
    pub fn new(definition: &Definition) -> Result<Self, Refusal> {
        Ok(Self { settings: read_settings(definition)? })
    }
}

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
            mentions
                .into_iter()
                .map(|(serial, mention)| speech(*serial, mention, view, &self.settings))
                .collect(),
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

fn speech(serial: Serial, mention: &Mention, view: &View<'_>, settings: &Settings) -> Speech {
    let shown = match mention.kind {
        MentionKind::File => identity::shown(&mention.target, view.root),
        _ => mention.target.as_str().into(),
    };
    let mut name = short_name(&shown, 500);
    if let Some((start, end)) = mention.range {
        name.push_str(&format!(", lines {start}-{end}"));
    }
    let (body, state) = said(mention, &name, view, settings);
    let key = format!("{}:{name}", mention.kind.name());
    Speech::new("mention", body).about(key).telling(state).taking(serial)
}

/// The body, and the fingerprint of what stands in it.
fn said(mention: &Mention, name: &str, view: &View<'_>, settings: &Settings) -> (String, String) {
    let kind = mention.kind.name();
    let content_of = |content: &str, cut_from: Option<u64>| {
        content_of(&format!("{kind} {name}"), content, cut_from, view, settings.text_bytes)
    };
    if let Some(reason) = &mention.rejected {
        let body = format!(
            "The person mentioned {kind} {name}, which could not be included: {}.",
            short_name(reason, 500)
        );
        return (body, view.fingerprint(&format!("rejected\n{reason}")));
    }
    let found = wanted(mention).map(|wanted| &view.findings[&wanted]);
    if let (Some(content), None | Some(Found::Showable)) = (&mention.content, found) {
        return content_of(content, None);
    }
    let Some(found) = found else {
        let body = format!("The person mentioned {kind} {name}.");
        return (body, view.fingerprint("named"));
    };
    match found {
        Found::Text { text, cut_from, .. } => content_of(text, *cut_from),
        Found::Listing { names, more, .. } => {
            let listed = &names[..names.len().min(settings.listing_names)];
            let more = more + (names.len() - listed.len()) as u64;
            let mut listing: Vec<_> = listed.iter().map(|name| one_line(name)).collect();
            if more > 0 {
                listing.push(format!("… and {more} more").into());
            }
            content_of(&listing.join("\n"), None)
        }
        Found::Attachment { bytes, pages, fingerprint } => {
            let body = format!(
                "The person mentioned {kind} {name}. {}",
                Large::of_roster(view).advice(*bytes, *pages)
            );
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
    what: &str,
    content: &str,
    cut_from: Option<u64>,
    view: &View<'_>,
    bytes_max: usize,
) -> (String, String) {
    let mut end = content.len().min(bytes_max);
    while !content.is_char_boundary(end) {
        end -= 1;
    }
    let size = cut_from.unwrap_or(content.len() as u64);
    let mut body = format!("Content of {what}, mentioned by the person:\n{}", &content[..end]);
    if (end as u64) < size {
        body.push_str(&format!("\n… (cut: {end} of {size} bytes are shown)"));
    }
    (body, view.fingerprint(content))
}
