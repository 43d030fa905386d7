//! Who wrote what last. A change that is found later is attributed by its content; a name never is.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::engine::{Author, FileState, ScopePath};

/// The most files whose writers are remembered.
const FILES_MAX: usize = 4096;
/// The most writes of one file that are.
const WRITES_MAX: usize = 4;

/// Somebody who writes files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Who {
    /// The scope of a session.
    Agent(Arc<str>, ScopePath),
    /// The person, in the editor.
    Person,
}

/// The last writers of files, by real path.
#[derive(Default)]
pub(super) struct Authors {
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    files: HashMap<PathBuf, Writes>,
    /// The files in the order of their last writes.
    order: BTreeMap<u64, PathBuf>,
    clock: u64,
}

#[derive(Default)]
struct Writes {
    at: u64,
    /// The latest first.
    last: VecDeque<(Who, FileState)>,
}

impl Authors {
    /// Somebody left a file in a state.
    pub fn wrote(&self, real: PathBuf, who: Who, state: &FileState) {
        let mut table = self.table.lock();
        let table = &mut *table;
        table.clock += 1;
        let writes = table.files.entry(real.clone()).or_default();
        table.order.remove(&std::mem::replace(&mut writes.at, table.clock));
        table.order.insert(table.clock, real);
        writes.last.push_front((who, state.clone()));
        writes.last.truncate(WRITES_MAX);
        if table.files.len() > FILES_MAX
            && let Some((_, oldest)) = table.order.pop_first()
        {
            table.files.remove(&oldest);
        }
    }

    /// Who left a file in a state, as a scope sees it. What the scope wrote itself and finds again
    /// was put back by somebody else.
    pub fn of(&self, real: &Path, state: &FileState, session: &str, scope: &ScopePath) -> Author {
        let table = self.table.lock();
        let writes = table.files.get(real).into_iter().flat_map(|writes| &writes.last);
        let mut authors = writes.filter(|(_, wrote)| wrote.is_as(state)).map(|(who, _)| who);
        let author = authors.find_map(|who| match who {
            Who::Agent(by, agent) if **by == *session && agent == scope => None,
            Who::Agent(by, agent) if **by == *session => Some(Author::Agent(agent.clone())),
            Who::Agent(..) => Some(Author::OtherSession),
            Who::Person => Some(Author::Person),
        });
        author.unwrap_or(Author::Outside)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_wrote_what_stands_there_is_seen_from_the_reader() {
        let authors = Authors::default();
        let agent = |session: &str, path: &str| Who::Agent(session.into(), path.to_owned().into());
        let state = |reason: &str| FileState::Unreadable(reason.to_owned());
        let file = Path::new("/w/a");
        for (who, wrote) in [
            (agent("s", ""), "one"),
            (agent("s", "/x"), "two"),
            (agent("t", ""), "three"),
            (Who::Person, "four"),
        ] {
            authors.wrote(file.to_owned(), who, &state(wrote));
        }
        for (wrote, author) in [
            ("one", Author::Outside),
            ("two", Author::Agent("/x".to_owned().into())),
            ("three", Author::OtherSession),
            ("four", Author::Person),
            ("five", Author::Outside),
        ] {
            assert_eq!(authors.of(file, &state(wrote), "s", &ScopePath::ROOT), author, "{wrote}");
        }
        let other = Path::new("/w/b");
        assert_eq!(authors.of(other, &state("four"), "s", &ScopePath::ROOT), Author::Outside);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let authors = Authors::default();
        let state = FileState::Missing;
        for number in 0..2 * FILES_MAX {
            for _ in 0..2 * WRITES_MAX {
                authors.wrote(format!("/{number}").into(), Who::Person, &state);
            }
        }
        let table = authors.table.lock();
        assert_eq!((table.files.len(), table.order.len()), (FILES_MAX, FILES_MAX));
        assert!(table.files.values().all(|writes| writes.last.len() == WRITES_MAX));
        assert!(table.files.contains_key(Path::new(&format!("/{}", 2 * FILES_MAX - 1))));
    }
}
