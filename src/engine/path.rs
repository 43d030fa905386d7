//! Who a scope is: its place in the tree of a session's conversations.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::refusal::{Refusal, RefusalKind};

/// The longest path of an agent, in bytes.
pub const PATH_BYTES_MAX: usize = 1024;

/// The path of a scope: empty for the root, `/reviewer/linter` for an agent.
///
/// The root is no empty text: to compare two of those can cost hundreds of nanoseconds, since they
/// point nowhere and a vectorised `memcmp` may look there all the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct ScopePath(Option<Arc<str>>);

impl From<String> for ScopePath {
    fn from(path: String) -> Self {
        Self((!path.is_empty()).then(|| path.into()))
    }
}

impl From<ScopePath> for String {
    fn from(path: ScopePath) -> Self {
        path.as_str().to_owned()
    }
}

impl ScopePath {
    /// The root conversation.
    pub const ROOT: Self = Self(None);

    /// Reads an agent's path: `/`, then names joined by `/`, none of them empty.
    pub fn agent(path: &str) -> Result<Self, Refusal> {
        let names = path.strip_prefix('/');
        let valid = names.is_some_and(|names| names.split('/').all(|name| !name.is_empty()));
        if !valid || path.len() > PATH_BYTES_MAX {
            return Err(Refusal::new(
                RefusalKind::UnknownAgent,
                format!(
                    "{path:?} is no agent's path: write \"/name\" or \"/parent/name\", at most \
                     {PATH_BYTES_MAX} bytes"
                ),
            ));
        }
        Ok(Self(Some(path.into())))
    }

    /// The path as text; empty for the root.
    pub fn as_str(&self) -> &str {
        self.0.as_deref().unwrap_or_default()
    }

    /// Whether this is the root conversation.
    pub fn is_root(&self) -> bool {
        self.0.is_none()
    }

    /// The scope that spawned this one; `None` for the root.
    pub fn parent(&self) -> Option<Self> {
        let path = self.0.as_deref()?;
        let (parent, _) = path.rsplit_once('/')?;
        Some(parent.to_owned().into())
    }
}

impl fmt::Display for ScopePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_deref().unwrap_or("the root"))
    }
}
