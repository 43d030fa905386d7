//! Where lines go when a text changes, so that a problem whose line was only shifted is known
//! again (`reminders.md` §6).

use std::collections::VecDeque;

use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::text::{Position, TextChange, line, line_ends};

/// Lines beyond which two texts are not compared: what lies between their common beginning and end
/// counts as changed.
const COMPARED_LINES_MAX: usize = 4_000;
/// Changes of a text that are remembered; what is older cannot be mapped any more.
const CHANGES_MAX: usize = 256;

/// Some lines gave way to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineEdit {
    /// The first line, from 0.
    pub start: u32,
    /// How many lines there were.
    pub removed: u32,
    /// How many there are instead.
    pub inserted: u32,
}

/// Where a line is after changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moved {
    /// Here, unchanged.
    To(u32),
    /// It was changed itself, or removed.
    Changed,
    /// Nobody knows: a change was not seen.
    Unknown,
}

/// What changed from one text to another, in order, each edit relative to the outcome of the one
/// before it.
pub fn line_edits(old: &str, new: &str) -> Vec<LineEdit> {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let same = |(one, other): &(&&str, &&str)| one == other;
    let head = old.iter().zip(&new).take_while(same).count();
    let tail = old[head..].iter().rev().zip(new[head..].iter().rev()).take_while(same).count();
    let (old, new) = (&old[head..old.len() - tail], &new[head..new.len() - tail]);
    let edit = |start: usize, removed: usize, inserted: usize| {
        let count = |number| u32::try_from(number).unwrap_or(u32::MAX);
        LineEdit { start: count(head + start), removed: count(removed), inserted: count(inserted) }
    };
    if old.is_empty() && new.is_empty() {
        return Vec::new();
    }
    if old.len() + new.len() > COMPARED_LINES_MAX {
        return vec![edit(0, old.len(), new.len())];
    }
    let steps = capture_diff_slices(Algorithm::Myers, old, new).into_iter();
    let edits = steps.filter_map(|step| match step {
        DiffOp::Equal { .. } => None,
        DiffOp::Delete { old_len, new_index, .. } => Some(edit(new_index, old_len, 0)),
        DiffOp::Insert { new_index, new_len, .. } => Some(edit(new_index, 0, new_len)),
        DiffOp::Replace { old_len, new_index, new_len, .. } => {
            Some(edit(new_index, old_len, new_len))
        }
    });
    edits.collect()
}

impl LineEdit {
    /// The edit of a change of a document; `before` is the text that it changes, where it is known.
    /// `None` for a change of the whole document whose former text is unknown.
    pub fn of(change: &TextChange, before: Option<&str>) -> Option<Vec<Self>> {
        let Some((one, other)) = change.range else {
            return before.map(|before| line_edits(before, &change.text));
        };
        let (start, end) = (one.min(other), one.max(other));
        let inserted = u32::try_from(line_ends(&change.text)).unwrap_or(u32::MAX);
        let removed = end.line - start.line;
        let ends_line = change.text.is_empty() || change.text.ends_with(['\n', '\r']);
        let begins_line = change.text.is_empty() || change.text.starts_with(['\n', '\r']);
        let at_end = |position: Position| {
            before.is_some_and(|before| {
                let (number, line) = line(before, position.line);
                let units = u32::try_from(line.encode_utf16().count()).unwrap_or(u32::MAX);
                number < position.line || units <= position.character
            })
        };
        let edit = if start.character == 0 && end.character == 0 && ends_line {
            Self { start: start.line, removed, inserted }
        } else if begins_line && at_end(start) && at_end(end) {
            Self { start: start.line.saturating_add(1), removed, inserted }
        } else {
            let (removed, inserted) = (removed.saturating_add(1), inserted.saturating_add(1));
            Self { start: start.line, removed, inserted }
        };
        Some(vec![edit])
    }

    fn follow(self, line: u32) -> Option<u32> {
        if line < self.start {
            return Some(line);
        }
        let behind = (line - self.start).checked_sub(self.removed)?;
        Some(self.start.saturating_add(self.inserted).saturating_add(behind))
    }
}

/// A change from one state of a text to the next.
#[derive(Clone, Debug)]
struct Change {
    /// The version of the document that it made.
    version: Option<i64>,
    /// What it did; `None` when nobody knows.
    edits: Option<Vec<LineEdit>>,
}

/// The states of a text, numbered from 0, and the changes between them.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// The state before the first change that is remembered.
    first: u64,
    changes: VecDeque<Change>,
}

impl Changes {
    /// The number of the present state.
    pub fn state(&self) -> u64 {
        self.first + self.changes.len() as u64
    }

    /// Adds a change, and gives the number of the state that it made.
    pub fn push(&mut self, version: Option<i64>, edits: Option<Vec<LineEdit>>) -> u64 {
        // Typing within one line, again and again, is one change.
        if let Some(last) = self.changes.back_mut()
            && let Some([edit]) = edits.as_deref()
            && edit.removed == edit.inserted
            && last.edits.as_deref() == Some(&[*edit])
        {
            last.version = version;
            return self.state();
        }
        if self.changes.len() >= CHANGES_MAX {
            self.changes.pop_front();
            self.first += 1;
        }
        self.changes.push_back(Change { version, edits });
        self.state()
    }

    /// Fills in what the change did that made this state.
    pub fn fill(&mut self, state: u64, edits: Vec<LineEdit>) {
        let index = state.checked_sub(self.first + 1).and_then(|index| usize::try_from(index).ok());
        if let Some(change) = index.and_then(|index| self.changes.get_mut(index)) {
            change.edits = Some(edits);
        }
    }

    /// The state at this version of the document: the present one when it was not seen.
    pub fn state_of(&self, version: i64) -> u64 {
        let later = |change: &Change| change.version.is_some_and(|made| made > version);
        let seen = self.changes.iter().any(|change| change.version.is_some());
        let end = self.changes.iter().position(later).filter(|_| seen);
        end.map_or_else(|| self.state(), |end| self.first + end as u64)
    }

    /// Nothing of what was known of versions holds any more.
    pub fn forget_versions(&mut self) {
        self.changes.iter_mut().for_each(|change| change.version = None);
    }

    /// Whether every change since a state was seen, and there was one.
    pub fn is_known_since(&self, state: u64) -> bool {
        state >= self.first
            && state < self.state()
            && self.since(state).all(|change| change.edits.is_some())
    }

    /// Where a line of the text in this state is now.
    pub fn follow(&self, state: u64, line: u32) -> Moved {
        if state < self.first {
            return Moved::Unknown;
        }
        let mut line = line;
        for change in self.since(state) {
            let Some(edits) = &change.edits else { return Moved::Unknown };
            for edit in edits {
                match edit.follow(line) {
                    Some(moved) => line = moved,
                    None => return Moved::Changed,
                }
            }
        }
        Moved::To(line)
    }

    fn since(&self, state: u64) -> impl Iterator<Item = &Change> {
        let known = usize::try_from(state.saturating_sub(self.first)).unwrap_or(usize::MAX);
        self.changes.iter().skip(known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(start: (u32, u32), end: (u32, u32), text: &str) -> TextChange {
        let position = |(line, character)| Position { line, character };
        TextChange { range: Some((position(start), position(end))), text: text.to_owned() }
    }

    fn follow(edits: Vec<LineEdit>, lines: u32) -> Vec<Option<u32>> {
        let mut changes = Changes::default();
        changes.push(None, Some(edits));
        let moved = (0..lines).map(|line| match changes.follow(0, line) {
            Moved::To(line) => Some(line),
            Moved::Changed | Moved::Unknown => None,
        });
        moved.collect()
    }

    #[test]
    fn whole_lines_shift_what_is_behind_them() {
        let edits = LineEdit::of(&change((1, 0), (1, 0), "x\ny\n"), None).unwrap();
        assert_eq!(follow(edits, 3), [Some(0), Some(3), Some(4)]);
        let edits = LineEdit::of(&change((0, 1), (0, 1), "\nx"), Some("a\nb")).unwrap();
        assert_eq!(follow(edits, 2), [Some(0), Some(2)]);
        let edits = LineEdit::of(&change((0, 0), (1, 0), ""), None).unwrap();
        assert_eq!(follow(edits, 3), [None, Some(0), Some(1)]);
        let edits = LineEdit::of(&change((0, 2), (1, 1), "z"), None).unwrap();
        assert_eq!(follow(edits, 3), [None, None, Some(1)]);
    }

    #[test]
    fn two_texts_are_compared_by_line() {
        let edits = line_edits("a\nb\nc\nd\n", "new\na\nB\nc\nd\n");
        assert_eq!(follow(edits, 4), [Some(1), None, Some(3), Some(4)]);
        assert_eq!(line_edits("a\r\nb", "a\nb\n"), []);
    }

    #[test]
    fn what_was_not_seen_is_unknown() {
        let mut changes = Changes::default();
        changes.push(Some(2), None);
        assert_eq!(changes.follow(0, 7), Moved::Unknown);
        assert_eq!(changes.follow(1, 7), Moved::To(7));
        changes.fill(1, vec![LineEdit { start: 0, removed: 0, inserted: 5 }]);
        assert_eq!(changes.follow(0, 7), Moved::To(12));
        assert_eq!((changes.state_of(1), changes.state_of(2), changes.state_of(9)), (0, 1, 1));
        for line in 0..=CHANGES_MAX {
            let start = u32::try_from(line * 2).unwrap();
            changes.push(None, Some(vec![LineEdit { start, removed: 1, inserted: 1 }]));
        }
        assert_eq!(changes.follow(0, 7), Moved::Unknown);
    }

    #[test]
    fn typing_in_a_line_is_one_change() {
        let mut changes = Changes::default();
        for version in 2..900 {
            let edits = LineEdit::of(&change((3, 1), (3, 1), "x"), None);
            changes.push(Some(version), edits);
        }
        assert_eq!(changes.state(), 1);
        assert_eq!(changes.follow(0, 9), Moved::To(9));
    }
}
