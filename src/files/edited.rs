//! What of the differences may be told, and fits (`reminders.md` §5).

use std::sync::Arc;
use std::time::Instant;

use crate::engine::{Change, DiffLimits, Edited, FileState};

use super::compare::Difference;
use super::contents::Content;
use super::desk::Desk;
use super::diff::{self, Side, Sides};
use super::identity;
use super::secrecy::{Reason, Secrecy};

/// The two contents of a difference that may be shown.
type Contents = (Known, Known);

/// The bytes of a content, and whether they are its text as they stand.
type Known = (Arc<Vec<u8>>, bool);

/// Why content is not told under a name that would allow it.
const RENAMED: &str = "it holds, or held, the content of a file that is not shown";

/// Why no content is told, as a clause.
enum Kept {
    /// It must not be shown.
    Secret(String),
    /// It cannot be.
    Unfit(String),
}

impl Desk {
    /// Makes of differences what a reminder tells, in the order of the paths. After the deadline
    /// files are named without a diff. May take long: to be called where [`Desk::compare`] is.
    pub fn edited(
        &self,
        mut differences: Vec<Difference>,
        limits: &DiffLimits,
        deadline: Instant,
    ) -> Vec<Edited> {
        differences.sort_by(|one, other| one.paths.cmp(&other.paths));
        let told: Vec<Result<Contents, Kept>> = {
            let secrecy = self.secrecy();
            let mut looking = None;
            let reasons: Vec<_> = differences
                .iter()
                .map(|Difference { paths, real, judged, .. }| {
                    paths.iter().zip(judged).find_map(|(path, judged)| {
                        let judged = judged.as_ref().and_then(|it| it.verdict(&secrecy));
                        let verdict = judged.unwrap_or_else(|| {
                            let looking = looking.get_or_insert_with(|| secrecy.looking());
                            looking.judge(&identity::on_disk(path), real)
                        });
                        verdict.reason()
                    })
                })
                .collect();
            let mut withheld = self.withheld.lock();
            // What is gone may stand under another name by now.
            for (difference, reason) in differences.iter().zip(&reasons) {
                if reason.is_some() && difference.now == FileState::Missing {
                    withheld.add(&difference.was);
                }
            }
            let contents = |(difference, reason): (&Difference, Option<Reason>)| match reason {
                Some(reason) => Err(Kept::Secret(reason.to_string())),
                None if withheld.has(&difference.was) || withheld.has(&difference.now) => {
                    Err(Kept::Secret(RENAMED.to_owned()))
                }
                None => contents(difference, &secrecy),
            };
            differences.iter().zip(reasons).map(contents).collect()
        };
        let sides =
            told.iter().flatten().map(|(old, new)| Sides { old: side(old), new: side(new) });
        let sides: Vec<_> = sides.collect();
        let mut changes = diff::changes(&sides, limits, deadline).into_iter();
        let changes: Vec<_> = told
            .iter()
            .map(|told| match told {
                // One for each of the sides.
                Ok(_) => changes.next().unwrap_or(Change::Withheld("it was left out".to_owned())),
                Err(Kept::Secret(reason) | Kept::Unfit(reason)) => Change::Withheld(reason.clone()),
            })
            .zip(&differences)
            .zip(&told)
            // Of what must not be shown not even the size is told.
            .map(|((change, difference), told)| match (change, &difference.now) {
                (Change::Withheld(reason), FileState::File { bytes, .. })
                    if !matches!(told, Err(Kept::Secret(_))) =>
                {
                    let plural = if *bytes == 1 { "" } else { "s" };
                    Change::Withheld(format!("{reason}, {bytes} byte{plural}"))
                }
                (change, _) => change,
            })
            .collect();
        let edited = differences.into_iter().zip(changes).map(|(difference, change)| {
            let Difference { paths, was, now, author, .. } = difference;
            Edited { paths, was, now, author, change }
        });
        edited.collect()
    }
}

/// The contents of a file that may be shown, or why they are not told, as a clause.
fn contents(difference: &Difference, secrecy: &Secrecy) -> Result<Contents, Kept> {
    let Difference { paths, was, now, old, new, .. } = difference;
    let unfit = |reason: &str| Err(Kept::Unfit(reason.to_owned()));
    match now {
        FileState::File { .. } => {}
        FileState::Missing => return unfit("it is gone"),
        FileState::Other(kind) => return unfit(&format!("it is {kind}")),
        FileState::Unreadable(reason) => return unfit(&format!("it cannot be read: {reason}")),
    }
    if paths.iter().any(|path| secrecy.is_generated(&identity::on_disk(path))) {
        return unfit("it is generated");
    }
    let Some(new) = new else {
        return unfit("it is too large for a diff");
    };
    match (was, old) {
        (FileState::Missing, _) => Ok((Known::default(), known(new))),
        (FileState::File { .. }, Some(old)) => Ok((known(old), known(new))),
        (FileState::File { .. }, None) => unfit("its earlier content is not kept"),
        (FileState::Other(_) | FileState::Unreadable(_), _) => {
            unfit("its earlier content is not known")
        }
    }
}

fn known(content: &Content) -> Known {
    (content.read(), content.is_plain())
}

fn side((bytes, is_plain): &Known) -> Side<'_> {
    Side { bytes, is_plain: *is_plain }
}
