//! A file that a scope edited in its turn: the baseline of its problems, what the scope was told
//! since, and how far its checkers are (`reminders.md` §6).

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::engine::{DiagnosedProblem, Millis};

use super::comparison::{Hold, Placed, compare};
use super::moves::Moved;
use super::results::{Checker, Diagnostic, Edit, File, List, Standing};
use super::text::{character_start, line};

/// How long checkers that only see meaning may follow the first result (`reminders.md` §6).
pub const FOLLOWING: Millis = 250;
/// The most problems of one file that are told (`reminders.md` §6).
pub const FILE_PROBLEMS_MAX: usize = 10;
/// States that are remembered for WAITs that are not committed yet: more than a scope has open.
const STATES_MAX: usize = 128;

/// Each checker's list.
pub type Lists = BTreeMap<String, Arc<List>>;

/// What a WAIT reflected of a file; the commit of that WAIT makes it the one to compare with.
#[derive(Clone, Debug)]
struct State {
    number: u64,
    /// What it was compared with; 0 for the baseline.
    since: u64,
    /// What was known of the file; `None` where that was never known here, but in an excerpt.
    revision: Option<u64>,
    /// The latest edit.
    edit: u64,
    lists: Lists,
    /// Whether the turn has reported the file, with this telling.
    reported: bool,
    /// Whether it says that the edit was not checked.
    unchecked: bool,
    found: Comparison,
}

/// What is new of a file, and what is not.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    /// The first new problems in the order of telling.
    pub new: Vec<DiagnosedProblem>,
    /// The first ones that were there before.
    pub before: Vec<DiagnosedProblem>,
    /// All that are new.
    pub new_count: u64,
    /// All that were there before.
    pub before_count: u64,
    /// All that are gone.
    pub resolved_count: u64,
}

/// What a WAIT of the scope has to say of a file.
#[derive(Debug)]
pub struct Finding<'a> {
    /// The state that is to be told, with its number; `None` when it was.
    pub state: Option<u64>,
    /// What is new and what is not.
    pub found: &'a Comparison,
    /// Whether what was there before is told too.
    pub tells_before: bool,
    /// Whether it is to be said that the file was not checked.
    pub unchecked: bool,
    /// Whether a checker has reported on the edit.
    pub is_fresh: bool,
}

/// What a look at the disk said of an edited file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Whether it lies below the session's root, links followed.
    pub is_inside: bool,
    /// Whether its content may be shown.
    pub shows: bool,
}

/// How waiting for a file's checkers stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settlement {
    /// They reported on the edit.
    Ready,
    /// No checker looks at it.
    None,
    /// Somebody is still at work, or the time for others to follow is not over.
    Pending {
        /// When that is over without further word.
        until: Option<Millis>,
    },
}

/// A file that a scope edits in its turn.
#[derive(Clone, Debug, Default)]
pub struct Edited {
    /// The scope's own spelling of the path.
    pub spelled: String,
    /// What was seen of it on disk; nothing is told of it before.
    pub place: Option<Place>,
    /// The look that said so; before it, what was heard last when the file was first edited.
    pub looked: u64,
    baseline: Lists,
    /// The state of the text when `edit/begin` announced the edit.
    begun: Option<u64>,
    /// The latest edit that was made.
    edit: Option<Edit>,
    /// When the first checker reported on it.
    first_result: Option<Millis>,
    /// Whether waiting for its checkers ran out of time.
    timed_out: bool,
    /// Oldest first.
    states: VecDeque<State>,
}

impl Edited {
    /// An edit is about to be made, or was: the baseline is what is known now, when `order` things were
    /// heard.
    pub fn new(spelled: &str, file: Option<&File>, order: u64) -> Self {
        let lists = file.into_iter().flat_map(|file| &file.checkers);
        let baseline = lists.filter_map(|(name, checker)| Some((name, checker.list.as_ref()?)));
        let baseline = baseline.map(|(name, list)| (name.clone(), Arc::clone(list))).collect();
        Self { spelled: spelled.to_owned(), looked: order, baseline, ..Self::default() }
    }

    /// It turned out to be the same file as another spelling, of which more was known.
    pub fn is_same_as(&mut self, file: &File) {
        for (name, checker) in &file.checkers {
            let list = checker
                .list
                .as_ref()
                .filter(|list| self.edit.as_ref().is_none_or(|edit| !list.is_fresh(edit)));
            if let Some(list) = list.or(checker.earlier.as_ref()) {
                self.baseline.entry(name.clone()).or_insert_with(|| Arc::clone(list));
            }
        }
        self.notice(file);
    }

    /// Lists turned out to belong to another state of the text.
    pub fn belongs(&mut self, moved: &[(Arc<List>, Arc<List>)]) {
        let states = self.states.iter_mut().map(|state| &mut state.lists);
        for list in states.chain([&mut self.baseline]).flat_map(BTreeMap::values_mut) {
            if let Some((_, now)) = moved.iter().find(|(former, _)| Arc::ptr_eq(former, list)) {
                *list = Arc::clone(now);
            }
        }
    }

    /// The latest edit that was made.
    pub fn edit(&self) -> Option<&Edit> {
        self.edit.as_ref()
    }

    /// `edit/begin`: the state of the text before the edit.
    pub fn begin(&mut self, file: &File) {
        self.begun = Some(file.changes.state());
    }

    /// The edit was made. Without a version of the client's it is that of the document, where the
    /// document changed with the edit.
    pub fn end(&mut self, file: &mut File, order: u64, version: Option<i64>) {
        let changed = self.begun.take().is_some_and(|begun| begun < file.changes.state());
        let document = file.document.as_ref().filter(|_| changed);
        let version = version.or_else(|| document.and_then(|document| document.version));
        let edit = file.edited(order, version);
        if self.edit.is_none() {
            // What belongs to the edit was no part of what there was before it.
            for (name, checker) in &file.checkers {
                if let Some(list) = &checker.list
                    && self.baseline.get(name).is_some_and(|base| Arc::ptr_eq(base, list))
                    && list.is_fresh(&edit)
                {
                    match &checker.earlier {
                        Some(earlier) if !earlier.is_fresh(&edit) => {
                            self.baseline.insert(name.clone(), Arc::clone(earlier));
                        }
                        // Nothing older is known, and this may be what the edit left alone.
                        _ => {}
                    }
                }
            }
        }
        self.edit = Some(edit);
        self.timed_out = false;
        self.first_result = None;
        self.notice(file);
    }

    /// A checker may have reported on the edit.
    pub fn notice(&mut self, file: &File) {
        if self.first_result.is_none()
            && let Some(edit) = &self.edit
        {
            self.first_result = fresh(file, edit).map(|(_, list)| list.at).min();
        }
    }

    /// Waiting for its checkers ran out of time.
    pub fn time_out(&mut self) {
        self.timed_out = true;
    }

    /// How waiting for its checkers stands now.
    pub fn settlement(&self, file: Option<&File>, now: Millis) -> Settlement {
        let (Some(file), Some(edit)) = (file, &self.edit) else { return Settlement::None };
        let standings = file.checkers.values();
        let mut is_at_work = false;
        let mut is_silent = false;
        for checker in standings {
            let reported = checker.list.as_ref().is_some_and(|list| list.is_fresh(edit));
            match checker.standing {
                Standing::Running => is_at_work = true,
                Standing::Done => is_silent |= !reported,
                Standing::Failed | Standing::Absent | Standing::Gone => {}
            }
        }
        if is_at_work {
            return Settlement::Pending { until: None };
        }
        match self.first_result {
            Some(first) if first.saturating_add(FOLLOWING) <= now => Settlement::Ready,
            Some(first) => Settlement::Pending { until: Some(first.saturating_add(FOLLOWING)) },
            None if is_silent => Settlement::Pending { until: None },
            None => Settlement::None,
        }
    }

    /// Checkers that failed since the edit.
    pub fn failed<'a>(&'a self, file: &'a File) -> impl Iterator<Item = &'a str> {
        let since = self.edit.as_ref().map_or(u64::MAX, |edit| edit.order);
        let failed = file.checkers.iter().filter(move |(_, checker)| {
            checker.standing == Standing::Failed && checker.spoke > since
        });
        failed.map(|(name, _)| name.as_str())
    }

    /// Takes over the states beyond this number that a WAIT was given from an excerpt.
    pub fn adopt(&mut self, excerpt: &Self, beyond: u64) {
        for state in excerpt.states.iter().filter(|state| state.number > beyond) {
            self.remember(State { revision: None, ..state.clone() });
        }
    }

    fn remember(&mut self, state: State) {
        if self.states.len() >= STATES_MAX {
            // The one to compare with stays.
            let compared_with = self.states.front().is_some_and(|it| it.number == state.since);
            self.states.remove(usize::from(compared_with));
        }
        self.states.push_back(state);
    }

    /// What a WAIT has to say of the file. `told` is the state that the last committed WAIT of the
    /// turn reflected, `number` makes numbers for states.
    pub fn finding(
        &mut self,
        file: &File,
        told: Option<u64>,
        number: &mut u64,
    ) -> Option<Finding<'_>> {
        let edit = self.edit?;
        let told = told.and_then(|told| {
            self.states.retain(|state| state.number >= told);
            self.states.iter().position(|state| state.number == told)
        });
        let is_fresh = fresh(file, &edit).next().is_some();
        let is_awaited = |checker: &Checker| {
            let reported = checker.list.as_ref().is_some_and(|list| list.is_fresh(&edit));
            checker.standing == Standing::Running && !reported
        };
        let unchecked = self.timed_out && (!is_fresh || file.checkers.values().any(is_awaited));
        if !is_fresh && !unchecked {
            return None;
        }
        let is_as = |state: &State| {
            state.revision == Some(file.revision)
                && state.edit == edit.order
                && state.unchecked == unchecked
        };
        // Nothing has happened since it was told.
        if let Some(told) = told.filter(|told| is_as(&self.states[*told])) {
            let state = &mut self.states[told];
            let found = &mut state.found;
            found.before_count += std::mem::take(&mut found.new_count);
            found.resolved_count = 0;
            let found = &state.found;
            return Some(Finding {
                state: None,
                found,
                tells_before: false,
                unchecked: false,
                is_fresh,
            });
        }
        let base = told.map(|told| &self.states[told]);
        let since = base.map_or(0, |base| base.number);
        let reported = base.is_some_and(|base| base.reported);
        let said_unchecked = base.is_some_and(|base| base.edit == edit.order && base.unchecked);
        let known = self.states.iter().position(|state| state.since == since && is_as(state));
        let lists = base.map_or(&self.baseline, |base| &base.lists);
        let compared =
            known.is_none().then(|| (compared(&self.spelled, file, &edit, lists), lists.clone()));
        let index = if let Some((found, mut lists)) = compared {
            *number += 1;
            let tells_before = !reported && found.before_count > 0;
            let news = fresh(file, &edit);
            lists.extend(news.map(|(name, list)| (name.to_owned(), Arc::clone(list))));
            self.remember(State {
                number: *number,
                since,
                revision: Some(file.revision),
                edit: edit.order,
                lists,
                reported: reported || found.new_count > 0 || tells_before,
                unchecked,
                found,
            });
            self.states.len() - 1
        } else {
            known.unwrap_or_default()
        };
        let state = &self.states[index];
        Some(Finding {
            state: Some(state.number),
            found: &state.found,
            tells_before: !reported,
            unchecked: unchecked && !said_unchecked,
            is_fresh,
        })
    }
}

/// The lists that are about the outcome of the edit, with their checkers.
fn fresh<'a>(file: &'a File, edit: &'a Edit) -> impl Iterator<Item = (&'a str, &'a Arc<List>)> {
    let lists = file.checkers.iter().filter_map(|(name, checker)| {
        let list = checker.list.as_ref()?;
        Some((name.as_str(), list))
    });
    lists.filter(|(_, list)| list.is_fresh(edit))
}

/// A problem with its place in the present text, and the checker that it is from.
struct Seen<'a> {
    problem: &'a Diagnostic,
    placed: Placed,
    checker: &'a str,
}

/// Every problem of these lists, those that several checkers report (push and pull, say) once.
fn union<'a>(
    file: &File,
    edit: &Edit,
    lists: impl Iterator<Item = (&'a str, &'a Arc<List>)>,
) -> Vec<Seen<'a>> {
    let mut all = Vec::new();
    for (checker, list) in lists {
        // Of the text that the edit made, or of one whose every change since is known.
        let is_sure = list.is_fresh(edit) || file.changes.is_known_since(list.state);
        all.extend(list.found.iter().map(|problem| {
            let (line, hold) = match file.changes.follow(list.state, problem.start.line) {
                Moved::To(line) if is_sure => (line, Hold::Fixed),
                Moved::To(line) => (line, Hold::Loose),
                Moved::Changed | Moved::Unknown => (problem.start.line, Hold::Loose),
            };
            let (identity, character) = (problem.identity, problem.start.character);
            let placed = Placed { identity, line, character, hold };
            Seen { problem, placed, checker }
        }));
    }
    let place = |one: &Seen<'_>| (one.placed.identity, one.placed.line, one.placed.character);
    all.sort_by(|one, other| place(one).cmp(&place(other)).then(one.checker.cmp(other.checker)));
    let mut once = Vec::with_capacity(all.len());
    let mut rest = all.into_iter().peekable();
    while let Some(first) = rest.next() {
        // Of one place: the checker that reports it most often counts.
        let at = place(&first);
        let mut best: Vec<Seen<'a>> = Vec::new();
        let mut group = vec![first];
        while let Some(next) = rest.next_if(|next| place(next) == at) {
            if next.checker != group[0].checker {
                if group.len() > best.len() {
                    best = std::mem::take(&mut group);
                }
                group.clear();
            }
            group.push(next);
        }
        once.extend(if group.len() > best.len() { group } else { best });
    }
    once
}

/// Compares what the checkers of the edit found with what was known.
fn compared(path: &str, file: &File, edit: &Edit, known: &Lists) -> Comparison {
    let former = union(file, edit, known.iter().map(|(name, list)| (name.as_str(), list)));
    let present = union(file, edit, fresh(file, edit));
    let placed = |list: &[Seen<'_>]| list.iter().map(|seen| seen.placed).collect::<Vec<_>>();
    let outcome = compare(&placed(&former), &placed(&present));
    let reports = |checker: &str| fresh(file, edit).any(|(name, _)| name == checker);
    let resolved =
        former.iter().zip(&outcome.gone).filter(|(seen, gone)| **gone && reports(seen.checker));
    let resolved_count = resolved.count() as u64;
    let told = |wanted: bool| {
        let both = present.iter().zip(&outcome.before);
        let mut some: Vec<_> =
            both.filter(|(_, before)| **before == wanted).map(|(seen, _)| seen).collect();
        let count = some.len() as u64;
        let order = |one: &&Seen<'_>, other: &&Seen<'_>| {
            let key =
                |seen: &&Seen<'_>| (seen.problem.severity, seen.placed.line, seen.placed.character);
            key(one).cmp(&key(other)).then_with(|| one.problem.message.cmp(&other.problem.message))
        };
        if some.len() > FILE_PROBLEMS_MAX {
            some.select_nth_unstable_by(FILE_PROBLEMS_MAX, order);
            some.truncate(FILE_PROBLEMS_MAX);
        }
        some.sort_by(order);
        (some.into_iter().map(|seen| problem(path, file, seen)).collect::<Vec<_>>(), count)
    };
    let (new, new_count) = told(false);
    let (before, before_count) = told(true);
    Comparison { new, before, new_count, before_count, resolved_count }
}

/// A problem with the place that people see: from 1, within the text, at the start of a character.
fn problem(path: &str, file: &File, seen: &Seen<'_>) -> DiagnosedProblem {
    let Seen { problem, placed, .. } = seen;
    let (line, character) = match file.text() {
        Some(text) => {
            let (number, line) = line(text, placed.line);
            (number, character_start(line, placed.character).0)
        }
        None => (placed.line, placed.character),
    };
    DiagnosedProblem {
        path: path.to_owned(),
        line: u64::from(line) + 1,
        column: u64::from(character) + 1,
        severity: problem.severity,
        code: problem.code.clone(),
        source: problem.source.clone(),
        message: Some(problem.message.clone()),
    }
}
