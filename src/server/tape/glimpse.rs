//! What was seen of files, as a recording holds it.

use std::io;

use serde::{Deserialize, Serialize};

use crate::engine::{FileState, Found, Reading, ScopePath, Wanted};
use crate::files::Looked;

/// Something that was seen of files. It stays true until another glimpse of the same says otherwise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Glimpse {
    /// What stood at a path when a scope read or wrote it; `None` where no snapshot was taken.
    Standing(String, Option<FileState>),
    /// What a WAIT of a scope found; `None` of what it could not find in time.
    Found(ScopePath, Wanted, Option<Found>),
    /// An edited file.
    Edited(String, Option<Sight>),
    /// Whether a file that was said to be gone was.
    Gone(String, bool),
}

impl Glimpse {
    /// What it is a glimpse of: a later one of the same takes its place.
    pub fn subject(&self) -> String {
        match self {
            Self::Standing(path, _) => format!("standing {path}"),
            // Another configuration may set other limits to what was found.
            Self::Found(scope, Wanted { reading: Reading::Edits(_), .. }, _) => {
                format!("edits of {scope}")
            }
            Self::Found(scope, wanted, _) => format!("found {scope} {wanted:?}"),
            Self::Edited(path, _) => format!("edited {path}"),
            Self::Gone(path, _) => format!("gone {path}"),
        }
    }
}

/// A look at an edited file. Of a file that may not be shown there is no text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sight {
    real: String,
    is_inside: bool,
    shows: bool,
    text: Text,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Text {
    /// The file's.
    Is(String),
    /// There is no file.
    Missing,
    /// It could not be read, or is not to be.
    Withheld,
}

impl From<&Looked> for Sight {
    fn from(looked: &Looked) -> Self {
        let text = match &looked.text {
            Ok(text) if looked.shows => Text::Is(text.to_string()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Text::Missing,
            _ => Text::Withheld,
        };
        Self { real: looked.real.clone(), is_inside: looked.is_inside, shows: looked.shows, text }
    }
}

impl From<Sight> for Looked {
    fn from(sight: Sight) -> Self {
        let text = match sight.text {
            Text::Is(text) => Ok(text.into()),
            Text::Missing => Err(io::ErrorKind::NotFound.into()),
            Text::Withheld => Err(io::Error::other("a recording does not hold it")),
        };
        Self { real: sight.real, is_inside: sight.is_inside, shows: sight.shows, text }
    }
}
