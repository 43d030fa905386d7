//! Who a scope is: its place in the tree of a session's conversations.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::refusal::{Refusal, RefusalKind};

/// The longest path of an agent, in bytes.
pub const PATH_BYTES_MAX: usize = 1024;

/// The path of a scope: empty for the root, `/reviewer/linter` for an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ScopePath(String);

impl ScopePath {
    /// The root conversation.
    pub const ROOT: Self = Self(String::new());

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
        Ok(Self(path.to_owned()))
    }

    /// The path as text; empty for the root.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this is the root conversation.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The scope that spawned this one; `None` for the root.
    pub fn parent(&self) -> Option<Self> {
        self.0.rfind('/').map(|end| Self(self.0[..end].to_owned()))
    }
}

impl fmt::Display for ScopePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_root() { "the root" } else { &self.0 })
    }
}
