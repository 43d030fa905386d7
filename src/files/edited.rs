//! What of the differences may be told, and fits (`reminders.md` §5).

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use crate::engine::{Change, Edited, FileState};

use super::compare::Difference;
use super::desk::Desk;
use super::diff::{self, Limits, Sides};
use super::secrecy::Looking;

/// The two contents of a difference that may be shown.
type Contents = (Arc<[u8]>, Arc<[u8]>);

impl Desk {
    /// Makes of differences what a reminder tells, in the order of the paths. After the deadline
    /// files are named without a diff. May take long: to be called where [`Desk::compare`] is.
    pub fn edited(
        &self,
        mut differences: Vec<Difference>,
        limits: &Limits,
        deadline: Instant,
    ) -> Vec<Edited> {
        differences.sort_by(|one, other| one.paths.cmp(&other.paths));
        let told: Vec<Result<Contents, String>> = {
            let mut looking = self.secrecy().looking();
            differences.iter().map(|difference| self.contents(difference, &mut looking)).collect()
        };
        let sides: Vec<_> = told.iter().flatten().map(|(old, new)| Sides { old, new }).collect();
        let mut changes = diff::changes(&sides, limits, deadline).into_iter();
        let changes: Vec<_> = told
            .iter()
            .map(|told| match told {
                // One for each of the sides.
                Ok(_) => changes.next().unwrap_or(Change::Withheld("it was left out".to_owned())),
                Err(reason) => Change::Withheld(reason.clone()),
            })
            .collect();
        let edited = differences.into_iter().zip(changes).map(|(difference, change)| {
            let Difference { paths, was, now, author, .. } = difference;
            Edited { paths, was, now, author, change }
        });
        edited.collect()
    }

    /// The contents, or why they are not told, as a clause.
    fn contents(
        &self,
        difference: &Difference,
        looking: &mut Looking<'_>,
    ) -> Result<Contents, String> {
        let Difference { paths, real, was, now, old, new, .. } = difference;
        let reason = paths.iter().find_map(|path| looking.judge(path.as_ref(), real).reason());
        if let Some(reason) = reason {
            return Err(reason.to_string());
        }
        match now {
            FileState::File { .. } => {}
            FileState::Missing => return Err("it is gone".to_owned()),
            FileState::Other(kind) => return Err(format!("it is {kind}")),
            FileState::Unreadable(reason) => return Err(format!("it cannot be read: {reason}")),
        }
        let spellings = || paths.iter().map(|path| Path::new(path.as_str()));
        if spellings().any(|path| self.secrecy().is_generated(path)) {
            return Err("it is generated".to_owned());
        }
        let Some(new) = new else {
            return Err("it is too large for a diff".to_owned());
        };
        match (was, old) {
            (FileState::Missing, _) => Ok((Arc::default(), new.read())),
            (FileState::File { .. }, Some(old)) => Ok((old.read(), new.read())),
            (FileState::File { .. }, None) => Err("its earlier content is not kept".to_owned()),
            (FileState::Other(_) | FileState::Unreadable(_), _) => {
                Err("its earlier content is not known".to_owned())
            }
        }
    }
}
