//! What checkers said of one file: a list each, replaced only by the same checker, and the states of
//! the text that the lists belong to.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::engine::{Millis, Severity};

use super::moves::{Changes, LineEdit};
use super::text::{Position, TextChange};

/// Characters of a message that are kept.
const MESSAGE_CHARS_MAX: usize = 2_000;

/// One problem as a checker reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Where it begins.
    pub start: Position,
    /// How grave it is.
    pub severity: Severity,
    /// The code, as printed.
    pub code: Option<String>,
    /// Who says so.
    pub source: Option<String>,
    /// The beginning of what it says.
    pub message: String,
    /// Severity, code, source and message in one.
    pub identity: u128,
}

impl Diagnostic {
    /// A problem. Without a range it is about the file, which begins at its first line; a range
    /// whose ends are in the wrong order is taken the other way round.
    pub fn new(
        range: Option<(Position, Position)>,
        severity: Option<i64>,
        code: Option<String>,
        source: Option<String>,
        message: &str,
    ) -> Self {
        let mut hasher = blake3::Hasher::new();
        for part in [code.as_deref(), source.as_deref(), Some(message)] {
            // Lengths keep the parts apart; an absent one is like none of any length.
            let length = part.map_or(u64::MAX, |part| part.len() as u64);
            hasher.update(&length.to_le_bytes());
            hasher.update(part.unwrap_or_default().as_bytes());
        }
        hasher.update(&severity.map_or([0; 9], |number| {
            let mut bytes = [1; 9];
            bytes[1..].copy_from_slice(&number.to_le_bytes());
            bytes
        }));
        let hash = hasher.finalize();
        let first = hash.as_bytes().first_chunk().expect("a hash has 32 bytes");
        Self {
            start: range.map_or_else(Position::default, |(start, end)| start.min(end)),
            severity: Severity::of(severity),
            code,
            source,
            message: message.chars().take(MESSAGE_CHARS_MAX).collect(),
            identity: u128::from_le_bytes(*first),
        }
    }
}

/// How a checker stands with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It has reported.
    Done,
    /// It is at work.
    Running,
    /// It could not check.
    Failed,
    /// It does not handle the file.
    Absent,
    /// Its connection is gone: nobody waits for it until it speaks again.
    Gone,
}

/// What a checker says of a file.
#[derive(Clone, Debug)]
pub struct Report {
    /// The checker's name.
    pub checker: String,
    /// The connection that it came over.
    pub connection: u64,
    /// The version that was checked.
    pub version: Option<i64>,
    /// How the checker stands.
    pub standing: Standing,
    /// What it found; looked at when it is done.
    pub found: Vec<Diagnostic>,
}

/// The problems that a checker found in one state of a file.
#[derive(Clone, Debug)]
pub struct List {
    /// In the checker's order.
    pub found: Vec<Diagnostic>,
    /// The version that was checked.
    pub version: Option<i64>,
    /// Which opening of the file the version belongs to.
    pub opening: u64,
    /// When it came, among all that was heard.
    pub order: u64,
    /// When it came.
    pub at: Millis,
    /// The state of the text that it is about.
    pub state: u64,
}

/// One checker of a file.
#[derive(Clone, Debug)]
pub struct Checker {
    /// What it found last.
    pub list: Option<Arc<List>>,
    /// What it found before that, of an older version.
    pub earlier: Option<Arc<List>>,
    /// How it stands.
    pub standing: Standing,
    /// When it last spoke, among all that was heard.
    pub spoke: u64,
    /// The connection that it last spoke over.
    pub connection: u64,
}

/// An edit that a scope made of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The version that it made, where that is known.
    pub version: Option<i64>,
    /// Which opening of the file the version belongs to.
    pub opening: u64,
    /// When it ended, among all that was heard: names it too.
    pub order: u64,
}

impl List {
    /// Whether it is about the outcome of an edit: it belongs to the edited version or a newer one;
    /// where versions do not say, it came after the edit.
    pub fn is_fresh(&self, edit: &Edit) -> bool {
        match (self.version, edit.version) {
            (Some(checked), Some(edited)) if self.opening == edit.opening => checked >= edited,
            _ => self.order > edit.order,
        }
    }
}

/// A document that is open in an editor.
#[derive(Clone, Debug)]
pub struct Document {
    /// Its version.
    pub version: Option<i64>,
    /// Its text, while that is known.
    pub text: Option<String>,
}

/// Everything that is known of one file.
#[derive(Clone, Debug, Default)]
pub struct File {
    /// Its checkers by name.
    pub checkers: BTreeMap<String, Checker>,
    /// The states of its text.
    pub changes: Changes,
    /// Rises with everything that is learnt.
    pub revision: u64,
    /// How often it was opened anew, which starts versions over.
    pub opening: u64,
    /// The document, while it is open.
    pub document: Option<Document>,
    /// The text on disk as of the present state, where it is known and no document is open.
    pub on_disk: Option<Arc<str>>,
    /// The highest version of this opening.
    highest: Option<i64>,
    /// The highest version of the opening before it.
    former_highest: Option<i64>,
    /// Whether an edit of this opening said which version it made.
    edits_are_versioned: bool,
    /// When anything was last heard of it.
    pub heard: u64,
}

impl File {
    /// The text as of the present state.
    pub fn text(&self) -> Option<&str> {
        match &self.document {
            Some(document) => document.text.as_deref(),
            None => self.on_disk.as_deref(),
        }
    }

    /// How many diagnostics it holds.
    pub fn len(&self) -> usize {
        let lists = self.checkers.values().filter_map(|checker| checker.list.as_ref());
        lists.map(|list| list.found.len()).sum()
    }

    /// Takes in what was known under another spelling of its path. How the two texts belong together
    /// nobody knows.
    pub fn absorb(&mut self, other: Self) {
        self.changes.push(None, None);
        if self.document.is_none() {
            self.document = other.document;
            self.on_disk = None;
        }
        for (name, mut checker) in other.checkers {
            let known = self.checkers.get(&name);
            if known.is_none_or(|known| known.spoke < checker.spoke) {
                // What it found before that under this name was there before.
                let former = known.and_then(|known| known.list.clone());
                checker.earlier = checker.earlier.or(former);
                self.checkers.insert(name, checker);
            }
        }
        self.saw_version(other.highest);
        self.edits_are_versioned |= other.edits_are_versioned;
        self.heard = self.heard.max(other.heard);
        self.revision += other.revision + 1;
    }

    fn start_over(&mut self) {
        self.opening += 1;
        self.former_highest = self.highest.take();
        self.edits_are_versioned = false;
        self.changes.forget_versions();
    }

    fn saw_version(&mut self, version: Option<i64>) {
        self.highest = self.highest.max(version);
    }

    /// An editor opened it: versions start over.
    pub fn open(&mut self, version: Option<i64>, text: Option<String>) {
        let known = self.text().zip(text.as_deref());
        if let Some(edits) = known.map(|(old, new)| super::moves::line_edits(old, new))
            && !edits.is_empty()
        {
            self.changes.push(None, Some(edits));
        }
        self.start_over();
        self.saw_version(version);
        self.on_disk = None;
        self.document = Some(Document { version, text });
        self.revision += 1;
    }

    /// An editor changed it.
    pub fn change(&mut self, version: Option<i64>, changes: &[TextChange], text_bytes_max: usize) {
        self.saw_version(version);
        self.on_disk = None;
        let document = self.document.get_or_insert(Document { version: None, text: None });
        document.version = version.or(document.version);
        let mut edits = Some(Vec::new());
        for change in changes {
            let made = LineEdit::of(change, document.text.as_deref());
            edits = edits.zip(made).map(|(mut all, made)| {
                all.extend(made);
                all
            });
            match &mut document.text {
                Some(text) => change.apply(text),
                None if change.range.is_none() => document.text = Some(change.text.clone()),
                None => {}
            }
            document.text.take_if(|text| text.len() > text_bytes_max);
        }
        self.changes.push(version, edits);
        self.revision += 1;
    }

    /// A change made this version, and this state: what checkers said of it sooner than the change was
    /// reported belongs to that state, and not to the one in which it came. Returns the lists that do,
    /// each as it was and as it is now.
    pub fn belongs(&mut self, version: i64, state: u64) -> Vec<(Arc<List>, Arc<List>)> {
        let opening = self.opening;
        let mut moved = Vec::new();
        for checker in self.checkers.values_mut() {
            for list in [&mut checker.list, &mut checker.earlier].into_iter().flatten() {
                let is_of_it = list.version.is_some_and(|checked| checked >= version);
                if is_of_it && list.opening == opening && list.state < state {
                    let former = Arc::clone(list);
                    *list = Arc::new(List { state, ..List::clone(list) });
                    moved.push((former, Arc::clone(list)));
                }
            }
        }
        moved
    }

    /// An editor closed it.
    pub fn close(&mut self) {
        self.document = None;
        self.revision += 1;
    }

    /// An edit of a scope ended, and made this version.
    pub fn edited(&mut self, order: u64, version: Option<i64>) -> Edit {
        if self.document.is_none()
            && self.edits_are_versioned
            && version.zip(self.highest).is_some_and(|(version, highest)| version < highest)
        {
            self.start_over();
        }
        self.edits_are_versioned |= version.is_some();
        self.saw_version(version);
        self.revision += 1;
        Edit { version, opening: self.opening, order }
    }

    /// A checker spoke. Says whether that changed anything: a late result of an old version does
    /// not.
    pub fn report(&mut self, order: u64, at: Millis, report: Report) -> bool {
        let Report { checker: name, connection, version, standing, found } = report;
        let is_of_former_opening = version.is_some_and(|version| {
            self.document.is_some()
                && self.highest.is_some_and(|highest| version > highest)
                && self.former_highest.is_some_and(|former| version <= former)
        });
        if is_of_former_opening {
            return false;
        }
        let counts = self.document.is_some() || self.edits_are_versioned;
        let checker = self.checkers.entry(name).or_insert(Checker {
            list: None,
            earlier: None,
            standing,
            spoke: order,
            connection,
        });
        let newest = checker.list.as_ref().filter(|list| list.opening == self.opening);
        let newest = newest.and_then(|list| list.version);
        if counts && version.zip(newest).is_some_and(|(version, newest)| version < newest) {
            return false;
        }
        (checker.standing, checker.spoke, checker.connection) = (standing, order, connection);
        match standing {
            Standing::Done => {
                let state = version
                    .map_or_else(|| self.changes.state(), |version| self.changes.state_of(version));
                let opening = self.opening;
                let list = List { found, version, opening, order, at, state };
                let former = checker.list.replace(Arc::new(list));
                if let Some(former) = former
                    && (former.opening != opening || former.version < version)
                {
                    checker.earlier = Some(former);
                }
                self.highest = self.highest.max(version);
            }
            Standing::Absent => (checker.list, checker.earlier) = (None, None),
            Standing::Running | Standing::Failed | Standing::Gone => {}
        }
        self.revision += 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(version: Option<i64>, found: usize) -> Report {
        let problem = Diagnostic::new(None, Some(1), None, None, "wrong");
        Report {
            checker: "c".to_owned(),
            connection: 0,
            version,
            standing: Standing::Done,
            found: vec![problem; found],
        }
    }

    #[test]
    fn a_late_result_of_an_old_version_changes_nothing() {
        let mut file = File::default();
        file.open(Some(1), None);
        assert!(file.report(1, 0, report(Some(3), 1)));
        assert!(!file.report(2, 0, report(Some(2), 0)));
        assert_eq!(file.len(), 1);
    }

    #[test]
    fn versions_start_over_when_a_file_is_opened_anew() {
        let mut file = File::default();
        file.open(Some(1), None);
        file.change(Some(9), &[], 0);
        file.report(1, 0, report(Some(9), 1));
        let edit = file.edited(2, Some(9));
        file.close();
        file.open(Some(1), None);
        assert!(!file.report(3, 0, report(Some(8), 2)), "of the opening before");
        assert!(file.report(4, 0, report(Some(1), 0)));
        assert!(file.checkers["c"].list.as_ref().unwrap().is_fresh(&edit));
        assert_eq!(file.len(), 0);
    }

    #[test]
    fn identity_tells_every_part_apart() {
        let text = |text: &str| Some(text.to_owned());
        let all = [
            Diagnostic::new(None, Some(1), text("a"), text("b"), "c"),
            Diagnostic::new(None, Some(2), text("a"), text("b"), "c"),
            Diagnostic::new(None, None, text("a"), text("b"), "c"),
            Diagnostic::new(None, Some(1), None, text("ab"), "c"),
            Diagnostic::new(None, Some(1), text(""), text("ab"), "c"),
            Diagnostic::new(None, Some(1), text("a"), text("bc"), ""),
        ];
        for (index, one) in all.iter().enumerate() {
            assert!(all[..index].iter().all(|other| other.identity != one.identity), "{index}");
        }
    }
}
