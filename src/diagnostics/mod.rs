//! Diagnostics after edits: a bookkeeper of what checkers say, without I/O, clock or async
//! (`reminders.md` §6).
//!
//! Results are kept per file and checker for all sessions, since a checker names none. What a scope
//! edited in its turn, its baseline and what it was told are kept per scope and gone with the turn.
//! [`Bookkeeper`] is the whole interface, in four families:
//! - the text: [`Bookkeeper::open`], [`Bookkeeper::change`], [`Bookkeeper::close`],
//!   [`Bookkeeper::delete`];
//! - edits: [`Bookkeeper::begin`], [`Bookkeeper::end`], [`Bookkeeper::end_turn`];
//! - results: [`Bookkeeper::publish`], [`Bookkeeper::disconnect`];
//! - questions: [`Bookkeeper::settle`] and [`Bookkeeper::settled`], [`Bookkeeper::diagnosis`].
//!
//! Looks at the disk are made beside the messages. A question that comes while some are under way
//! is answered from an [`Bookkeeper::excerpt`] once they are done, so that it sees what came before it
//! and nothing newer.

mod comparison;
mod edited;
mod moves;
mod results;
mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::engine::{
    Checked, DiagnosedProblem, Diagnosis, Millis, Refusal, RefusalKind, ScopePath,
};

pub use edited::Place;
use edited::{Edited, FILE_PROBLEMS_MAX, Settlement};
use results::{File, List};

pub use moves::{LineEdit, line_edits};
pub use results::{Diagnostic, Report, Standing};
pub use text::{Position, TextChange};

/// The most problems that one WAIT tells (`reminders.md` §6).
const PROBLEMS_MAX: usize = 30;
/// The longest that all files together are waited for, in milliseconds (`reminders.md` §6).
pub const SETTLING_MAX: Millis = 30_000;
/// Files that a scope edits in one turn at most.
const EDITED_MAX: usize = 10_000;
/// Files whose results are kept at most; those that nobody edits and that nothing was heard of for
/// longest give way.
const FILES_MAX: usize = 20_000;
/// Checkers of one file at most.
const CHECKERS_MAX: usize = 100;
/// Diagnostics of one checker and file at most.
pub const LIST_MAX: usize = 100_000;
/// Diagnostics that are kept at most.
const DIAGNOSTICS_MAX: usize = 1_000_000;
/// The largest text whose changes are followed by content, in bytes.
pub const TEXT_BYTES_MAX: usize = 1 << 20;
/// Texts that are kept at most, in bytes.
const TEXTS_BYTES_MAX: usize = 64 << 20;
/// Looks at the disk that are under way at most.
const LOOKS_MAX: usize = 100_000;

/// Whose turn an edit belongs to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner {
    /// The session.
    pub session: String,
    /// The scope in it.
    pub scope: ScopePath,
}

/// A look at a file on disk that is under way from now on until [`Bookkeeper::looked`] ends it, and the
/// moment that the text is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Its path.
    pub path: String,
    /// Names the look: newer ones have higher numbers.
    pub number: u64,
    /// The state of the text that the reading is of; `None` where only its place is asked for.
    state: Option<u64>,
    /// Whether an edit was made, rather than announced.
    after: bool,
}

/// How waiting for a file's checkers ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// They reported on the edit.
    Ready,
    /// They did not in time.
    Timeout,
    /// The file was edited again, or the turn ended.
    Stale,
    /// No checker looks at it, or it was not edited.
    None,
}

/// An `edit/settle` under way.
#[derive(Debug)]
pub struct Settling {
    owner: Owner,
    files: Vec<Awaited>,
    limit: Millis,
}

#[derive(Debug)]
struct Awaited {
    path: String,
    /// The edit that is waited for.
    edit: Option<u64>,
    outcome: Option<Outcome>,
}

/// What is known of a file that a scope edited, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditedFile {
    /// Its path.
    pub path: String,
    /// Whether a checker has reported on the edit.
    pub is_fresh: bool,
    /// Problems that the edits brought and that were not told yet.
    pub new: u64,
    /// Problems that were there before.
    pub before: u64,
    /// Problems that are gone.
    pub resolved: u64,
}

/// Whom a look at the disk is for, and the spelling that is looked at.
#[derive(Debug)]
struct Look {
    /// `None` for all who edit the file.
    owner: Option<Owner>,
    path: String,
}

/// Everything that is known of diagnostics.
#[derive(Debug, Default)]
pub struct Bookkeeper {
    /// Shared with excerpts.
    files: BTreeMap<String, Arc<File>>,
    owners: BTreeMap<Owner, BTreeMap<String, Edited>>,
    /// Who edits a file.
    editors: BTreeMap<String, BTreeSet<Owner>>,
    /// The real paths of spellings that lead through links. Shared with excerpts.
    real: Arc<BTreeMap<String, String>>,
    /// Looks at the disk that are under way, by their numbers.
    looks: BTreeMap<u64, Look>,
    /// Rises with everything that is heard.
    order: u64,
    /// The number of the last state that a WAIT was given.
    state: u64,
    /// How many diagnostics are kept.
    held: usize,
    /// How many bytes of texts are kept.
    texts: usize,
    /// States of checkers that this build does not know.
    unknown: u64,
}

impl Bookkeeper {
    // The text

    /// An editor opened a file: its versions start over.
    pub fn open(&mut self, path: &str, version: Option<i64>, text: String) {
        let path = &self.real_path(path);
        self.with_text(path, |file, room| {
            file.open(version, Some(text).filter(|text| text.len() <= room));
        });
    }

    /// An editor changed a file.
    pub fn change(&mut self, path: &str, version: Option<i64>, changes: &[TextChange]) {
        let path = &self.real_path(path);
        let mut moved = Vec::new();
        self.with_text(path, |file, room| {
            file.change(version, changes, room);
            let state = file.changes.state();
            moved = version.map_or_else(Vec::new, |version| file.belongs(version, state));
        });
        self.belong(path, &moved);
    }

    /// Lists of a file turned out to belong to another state of its text.
    fn belong(&mut self, path: &str, moved: &[(Arc<List>, Arc<List>)]) {
        if moved.is_empty() {
            return;
        }
        for owner in self.editors.get(path).into_iter().flatten() {
            let edited = self.owners.get_mut(owner).and_then(|edited| edited.get_mut(path));
            edited.into_iter().for_each(|edited| edited.belongs(moved));
        }
    }

    /// An editor closed a file.
    pub fn close(&mut self, path: &str) {
        let path = &self.real_path(path);
        if self.files.contains_key(path) {
            self.with_text(path, |file, _| file.close());
        }
    }

    /// A file is gone, and with it its results and baselines.
    pub fn delete(&mut self, path: &str) {
        let path = &self.real_path(path);
        self.forget_file(path);
        for owner in self.editors.remove(path).unwrap_or_default() {
            if let Some(edited) = self.owners.get_mut(&owner) {
                edited.remove(path);
            }
        }
    }

    /// The text of a file as of its latest edit, where it is known.
    pub fn text_on_disk(&self, reading: &Reading) -> Option<Arc<str>> {
        self.files.get(&self.real_path(&reading.path))?.on_disk.clone().filter(|_| reading.after)
    }

    /// What was read from disk. `edits` is what changed since [`Self::text_on_disk`].
    pub fn read(
        &mut self,
        reading: &Reading,
        text: Option<Arc<str>>,
        edits: Option<Vec<LineEdit>>,
    ) {
        let path = self.real_path(&reading.path);
        let Some(state) = reading.state else { return };
        // What was read too late is of another moment.
        let is_of_now = |file: &Arc<File>| file.document.is_none() && file.changes.state() == state;
        if !self.files.get(&path).is_some_and(is_of_now) {
            return;
        }
        let after = reading.after;
        self.with_text(&path, |file, room| {
            file.on_disk = text.filter(|text| text.len() <= room);
            if let Some(edits) = edits.filter(|_| after) {
                file.changes.fill(state, edits);
            }
            file.revision += 1;
        });
    }

    /// What a look at the disk said of a file that the scope edits, and its real path. What a newer
    /// look said stands.
    pub fn place(&mut self, owner: &Owner, reading: &Reading, real: &str, place: Place) {
        self.is_really(&reading.path, real);
        let path = self.real_path(&reading.path);
        let edited = self.owners.get_mut(owner).and_then(|edited| edited.get_mut(&path));
        if let Some(edited) = edited.filter(|edited| edited.looked <= reading.number) {
            (edited.place, edited.looked) = (Some(place), reading.number);
        }
    }

    /// Files are said to be gone, and are to be looked for.
    pub fn look_for(&mut self, paths: Vec<String>) -> Result<Vec<Reading>, Refusal> {
        self.check_looks(paths.len())?;
        let looks = paths.into_iter().map(|path| {
            self.order += 1;
            self.looks.insert(self.order, Look { owner: None, path: path.clone() });
            Reading { path, number: self.order, state: None, after: false }
        });
        Ok(looks.collect())
    }

    /// A look at the disk is over, whatever came of it.
    pub fn looked(&mut self, reading: &Reading) {
        self.looks.remove(&reading.number);
    }

    fn check_looks(&self, more: usize) -> Result<(), Refusal> {
        if self.looks.len() + more > LOOKS_MAX {
            return Err(Refusal::new(
                RefusalKind::LimitExceeded,
                "too many edited files wait for the disk: send this again when earlier edits were \
                 answered",
            ));
        }
        Ok(())
    }

    /// A spelling of a path leads through links.
    fn is_really(&mut self, spelled: &str, real: &str) {
        let known = self.real_path(spelled);
        if known == real || self.real.len() >= FILES_MAX {
            return;
        }
        Arc::make_mut(&mut self.real).insert(spelled.to_owned(), real.to_owned());
        if let Some(other) = self.files.remove(&known) {
            let (held, text) = (other.len(), other.text().map_or(0, str::len));
            let file = Arc::make_mut(self.files.entry(real.to_owned()).or_default());
            let before = (file.len(), file.text().map_or(0, str::len));
            file.absorb(Arc::unwrap_or_clone(other));
            self.held = self.held - held - before.0 + file.len();
            self.texts = self.texts - text - before.1 + file.text().map_or(0, str::len);
        }
        let file = self.files.entry(real.to_owned()).or_default();
        for owner in self.editors.remove(&known).unwrap_or_default() {
            let Some(all) = self.owners.get_mut(&owner) else { continue };
            if let Some(mut edited) = all.remove(&known) {
                edited.is_same_as(file);
                all.entry(real.to_owned()).or_insert(edited);
                self.editors.entry(real.to_owned()).or_default().insert(owner);
            }
        }
    }

    /// The real path of a spelling, as far as it is known.
    fn real_path(&self, path: &str) -> String {
        self.real.get(path).map_or(path, String::as_str).to_owned()
    }

    /// Does something to a file that may change how many bytes of text are kept; it is given how
    /// many there is room for.
    fn with_text(&mut self, path: &str, change: impl FnOnce(&mut File, usize)) {
        self.make_room();
        self.order += 1;
        let file = Arc::make_mut(self.files.entry(path.to_owned()).or_default());
        let before = file.text().map_or(0, str::len);
        let room = TEXTS_BYTES_MAX.saturating_sub(self.texts - before).min(TEXT_BYTES_MAX);
        change(file, room);
        file.heard = self.order;
        self.texts = self.texts - before + file.text().map_or(0, str::len);
    }

    // Edits

    /// `edit/begin`: takes the baseline of each file, once a turn. Says what is to be
    /// looked at before the edit is made.
    pub fn begin(&mut self, owner: &Owner, paths: &[String]) -> Result<Vec<Reading>, Refusal> {
        self.check_room(owner, paths.iter())?;
        self.check_looks(paths.len())?;
        let mut readings = Vec::new();
        for spelled in paths {
            self.order += 1;
            let order = self.order;
            let path = &self.real_path(spelled);
            self.edited(owner, path, spelled);
            let file = Arc::make_mut(self.files.entry(path.clone()).or_default());
            file.heard = order;
            let edited = self.owners.get_mut(owner).and_then(|edited| edited.get_mut(path));
            edited.into_iter().for_each(|edited| edited.begin(file));
            let state = file.document.is_none().then(|| file.changes.state());
            self.looks.insert(order, Look { owner: Some(owner.clone()), path: spelled.clone() });
            readings.push(Reading { path: spelled.clone(), number: order, state, after: false });
        }
        Ok(readings)
    }

    /// `edit/end` of an edit that was made, with the versions that it made. Says what is to be
    /// looked at now.
    pub fn end(
        &mut self,
        owner: &Owner,
        edits: &[(String, Option<i64>)],
    ) -> Result<Vec<Reading>, Refusal> {
        self.check_room(owner, edits.iter().map(|(path, _)| path))?;
        self.check_looks(edits.len())?;
        let mut readings = Vec::new();
        for (spelled, version) in edits {
            self.order += 1;
            let order = self.order;
            let path = &self.real_path(spelled);
            self.edited(owner, path, spelled);
            let file = Arc::make_mut(self.files.entry(path.clone()).or_default());
            file.heard = order;
            if let Some(edited) = self.owners.get_mut(owner).and_then(|edited| edited.get_mut(path))
            {
                edited.end(file, order, *version);
            }
            // A document's changes are reported one by one; what else an edit did is read.
            let state = file.document.is_none().then(|| file.changes.push(*version, None));
            let moved = state.zip(*version).map(|(state, version)| file.belongs(version, state));
            self.belong(path, &moved.unwrap_or_default());
            self.looks.insert(order, Look { owner: Some(owner.clone()), path: spelled.clone() });
            readings.push(Reading { path: spelled.clone(), number: order, state, after: true });
        }
        Ok(readings)
    }

    /// A scope's turn is over: what it owned is gone. Says whether there was anything.
    pub fn end_turn(&mut self, owner: &Owner) -> bool {
        let Some(edited) = self.owners.remove(owner) else { return false };
        for path in edited.keys() {
            let Some(editors) = self.editors.get_mut(path) else { continue };
            editors.remove(owner);
            if editors.is_empty() {
                self.editors.remove(path);
                let file = self.files.get_mut(path).filter(|file| file.on_disk.is_some());
                if let Some(text) = file.and_then(|file| Arc::make_mut(file).on_disk.take()) {
                    self.texts -= text.len();
                }
            }
        }
        true
    }

    /// A session is closed. Says whether there was anything of it.
    pub fn end_session(&mut self, session: &str) -> bool {
        let of_it = self.owners.keys().filter(|owner| owner.session == session);
        let owners: Vec<_> = of_it.cloned().collect();
        owners.iter().filter(|owner| self.end_turn(owner)).count() > 0
    }

    fn check_room<'a>(
        &self,
        owner: &Owner,
        paths: impl Iterator<Item = &'a String>,
    ) -> Result<(), Refusal> {
        let edited = self.owners.get(owner);
        let known = edited.map_or(0, BTreeMap::len);
        let is_known = |path: &&String| {
            edited.is_some_and(|edited| edited.contains_key(&self.real_path(path)))
        };
        let others = paths.filter(|path| !is_known(path)).count();
        if known + others > EDITED_MAX {
            return Err(Refusal::new(
                RefusalKind::LimitExceeded,
                format!("a turn edits at most {EDITED_MAX} files: end the turn"),
            ));
        }
        Ok(())
    }

    fn edited(&mut self, owner: &Owner, path: &str, spelled: &str) {
        let edited = self.owners.entry(owner.clone()).or_default();
        if !edited.contains_key(path) {
            let file = self.files.get(path).map(Arc::as_ref);
            edited.insert(path.to_owned(), Edited::new(spelled, file, self.order));
            self.editors.entry(path.to_owned()).or_default().insert(owner.clone());
        }
    }

    // Results

    /// A checker spoke of a file. Says whether somebody edits the file.
    pub fn publish(&mut self, at: Millis, path: &str, report: Report) -> Result<bool, Refusal> {
        let full = |what: String, next: &str| {
            Err(Refusal::new(RefusalKind::LimitExceeded, format!("{what}: {next}")))
        };
        if report.found.len() > LIST_MAX {
            return full(
                format!("a checker's diagnostics of a file are at most {LIST_MAX}"),
                "publish the gravest ones",
            );
        }
        let path = &self.real_path(path);
        self.make_room();
        if self.held + report.found.len() > DIAGNOSTICS_MAX {
            return full(
                format!("{DIAGNOSTICS_MAX} diagnostics are kept at most, of files under edit"),
                "end turns, or publish fewer",
            );
        }
        if self.files.get(path).is_some_and(|file| {
            file.checkers.len() >= CHECKERS_MAX && !file.checkers.contains_key(&report.checker)
        }) {
            return full(format!("a file has at most {CHECKERS_MAX} checkers"), "use fewer names");
        }
        self.order += 1;
        let file = Arc::make_mut(self.files.entry(path.to_owned()).or_default());
        file.heard = self.order;
        let before = file.len();
        let changed = file.report(self.order, at, report);
        self.held = self.held - before + file.len();
        let Some(editors) = self.editors.get(path).filter(|_| changed) else { return Ok(false) };
        for owner in editors {
            let edited = self.owners.get_mut(owner).and_then(|edited| edited.get_mut(path));
            edited.into_iter().for_each(|edited| edited.notice(file));
        }
        Ok(true)
    }

    /// A checker is in a state that this build does not know.
    pub fn skip(&mut self) {
        self.unknown += 1;
    }

    /// How many states of checkers this build did not know.
    pub fn skipped(&self) -> u64 {
        self.unknown
    }

    /// A connection is gone: its checkers that were at work will not report, and nobody waits for
    /// the others until they speak again. Says whether there were any.
    pub fn disconnect(&mut self, connection: u64) -> bool {
        let mut any = false;
        for file in self.files.values_mut() {
            if file.checkers.values().all(|it| it.connection != connection) {
                continue;
            }
            let file = Arc::make_mut(file);
            for checker in file.checkers.values_mut().filter(|it| it.connection == connection) {
                let standing = match checker.standing {
                    Standing::Running => Standing::Failed,
                    Standing::Done => Standing::Gone,
                    standing => standing,
                };
                if standing != checker.standing {
                    self.order += 1;
                    (checker.standing, checker.spoke) = (standing, self.order);
                    file.revision += 1;
                    any = true;
                }
            }
        }
        any
    }

    /// Lets go of what was not heard of for longest, a quarter at a time.
    fn make_room(&mut self) {
        if self.files.len() < FILES_MAX && self.held < DIAGNOSTICS_MAX / 4 * 3 {
            return;
        }
        let idle = self.files.iter().filter(|(path, _)| !self.editors.contains_key(*path));
        let mut idle: Vec<_> = idle.map(|(path, file)| (file.heard, path.clone())).collect();
        idle.sort_unstable();
        idle.truncate(idle.len().div_ceil(4));
        for (_, path) in idle {
            self.forget_file(&path);
        }
    }

    fn forget_file(&mut self, path: &str) {
        if let Some(file) = self.files.remove(path) {
            self.held -= file.len();
            self.texts -= file.text().map_or(0, str::len);
        }
    }

    // Questions

    /// `edit/settle`: begins to wait for the checkers of these files, or of all that the scope
    /// edited in its turn. All together take `timeout` at most.
    pub fn settle(
        &self,
        at: Millis,
        owner: &Owner,
        paths: Option<Vec<String>>,
        timeout: Option<Millis>,
    ) -> Settling {
        let edited = self.owners.get(owner);
        let edit_of = |path: &str| {
            let edited = edited.and_then(|edited| edited.get(&self.real_path(path)));
            edited.and_then(Edited::edit).map(|edit| edit.order)
        };
        let paths = paths.unwrap_or_else(|| {
            let all = edited.into_iter().flatten().filter(|(_, edited)| edited.edit().is_some());
            all.map(|(_, edited)| edited.spelled.clone()).collect()
        });
        let files = paths.into_iter().map(|path| {
            let edit = edit_of(&path);
            Awaited { path, edit, outcome: None }
        });
        Settling {
            owner: owner.clone(),
            files: files.collect(),
            limit: at.saturating_add(timeout.unwrap_or(SETTLING_MAX).min(SETTLING_MAX)),
        }
    }

    /// How waiting ended for each file, or when to ask again without further word. A file is ready once
    /// it was looked at too, so that a WAIT can tell of it.
    pub fn settled(
        &mut self,
        now: Millis,
        settling: &mut Settling,
    ) -> Result<Vec<(String, Outcome)>, Millis> {
        let mut next = settling.limit;
        let looks = self.looks.values().filter(|look| look.owner.as_ref() == Some(&settling.owner));
        let looked_at: BTreeSet<_> = looks.map(|look| self.real_path(&look.path)).collect();
        for awaited in &mut settling.files {
            let path = self.real_path(&awaited.path);
            let edited = self.owners.get_mut(&settling.owner);
            let edited = edited.and_then(|edited| edited.get_mut(&path));
            let present = edited.as_ref().and_then(|edited| edited.edit());
            if awaited.edit.is_none() {
                awaited.outcome = Some(Outcome::None);
                continue;
            }
            if present.map(|edit| edit.order) != awaited.edit {
                awaited.outcome = Some(Outcome::Stale);
                continue;
            }
            let Some(edited) = edited else { continue };
            if awaited.outcome.is_some() {
                continue;
            }
            let file = self.files.get(&path).map(Arc::as_ref);
            let is_looked_at = looked_at.contains(&path);
            let settlement = match edited.settlement(file, now) {
                Settlement::Ready if is_looked_at => Settlement::Pending { until: None },
                settlement => settlement,
            };
            let is_over = now >= settling.limit;
            awaited.outcome = match settlement {
                Settlement::Ready => Some(Outcome::Ready),
                Settlement::None => Some(Outcome::None),
                // Somebody has reported, and nobody said that there is more to come.
                Settlement::Pending { until: Some(_) } if is_over && !is_looked_at => {
                    Some(Outcome::Ready)
                }
                Settlement::Pending { .. } if is_over => {
                    edited.time_out();
                    Some(Outcome::Timeout)
                }
                Settlement::Pending { until } => {
                    next = next.min(until.unwrap_or(next));
                    None
                }
            };
        }
        if settling.files.iter().any(|awaited| awaited.outcome.is_none()) {
            return Err(next);
        }
        let outcomes = settling.files.iter();
        Ok(outcomes
            .map(|awaited| (awaited.path.clone(), awaited.outcome.unwrap_or(Outcome::None)))
            .collect())
    }

    /// The files that a scope edited in its turn, with what would be told of each now.
    pub fn edited_files(&mut self, owner: &Owner, told: &Checked) -> Vec<EditedFile> {
        let Some(edited) = self.owners.get_mut(owner) else { return Vec::new() };
        let mut files = Vec::new();
        for (path, edited) in edited.iter_mut().filter(|(_, edited)| edited.edit().is_some()) {
            let file = self.files.get(path);
            let path = edited.spelled.clone();
            let told = told.states.get(&path).copied();
            let finding = file.and_then(|file| edited.finding(file, told, &mut self.state));
            let mut row = EditedFile { path, is_fresh: false, new: 0, before: 0, resolved: 0 };
            if let Some(finding) = finding {
                row.is_fresh = finding.is_fresh;
                row.new = finding.found.new_count;
                row.before = finding.found.before_count;
                row.resolved = finding.found.resolved_count;
            }
            files.push(row);
        }
        files
    }

    /// What is known of diagnostics now, as far as it concerns the scope, with the numbers of the looks
    /// at its files that are under way. Once their outcomes are told to the excerpt too, it answers as
    /// of this moment. `None` when no look is under way.
    pub fn excerpt(&self, owner: &Owner) -> Option<(Self, Vec<u64>)> {
        let edited = self.owners.get(owner).filter(|_| !self.looks.is_empty())?;
        let concerns = |look: &Look| {
            look.owner.as_ref() == Some(owner) || edited.contains_key(&self.real_path(&look.path))
        };
        let looks = self.looks.iter().filter(|(_, look)| concerns(look));
        let looks: Vec<_> = looks.map(|(number, _)| *number).collect();
        if looks.is_empty() {
            return None;
        }
        let editors = edited.keys().map(|path| (path.clone(), BTreeSet::from([owner.clone()])));
        let excerpt = Self {
            files: self.files.clone(),
            owners: BTreeMap::from([(owner.clone(), edited.clone())]),
            editors: editors.collect(),
            real: Arc::clone(&self.real),
            looks: BTreeMap::new(),
            ..*self
        };
        Some((excerpt, looks))
    }

    /// [`Self::diagnosis`] of a WAIT that came when the excerpt was taken. A commit finds here what the
    /// WAIT was given.
    pub fn diagnosis_of(
        &mut self,
        mut excerpt: Self,
        owner: &Owner,
        told: &Checked,
    ) -> Option<Diagnosis> {
        let before = self.state;
        excerpt.state = before;
        let diagnosis = excerpt.diagnosis(owner, told);
        self.state = excerpt.state;
        for (path, given) in excerpt.owners.remove(owner).into_iter().flatten() {
            let path = self.real_path(&path);
            // A turn that is over, or a file that is gone, has nothing to compare with any more.
            let edited = self.owners.get_mut(owner).and_then(|edited| edited.get_mut(&path));
            edited.into_iter().for_each(|edited| edited.adopt(&given, before));
        }
        diagnosis
    }

    /// What a WAIT of the scope has to say: of the files below the session's root, and without the
    /// text of those whose content is not to be shown. `None` when the turn edited nothing.
    pub fn diagnosis(&mut self, owner: &Owner, told: &Checked) -> Option<Diagnosis> {
        let edited = self.owners.get_mut(owner)?;
        let mut diagnosis = Diagnosis::default();
        let mut failed = BTreeSet::new();
        let mut withheld = BTreeSet::new();
        for (path, edited) in edited.iter_mut().filter(|(_, edited)| edited.edit().is_some()) {
            // Until it was looked at, nobody knows what may be told of it.
            let Some(place) = edited.place else {
                diagnosis.counts.unseen += 1;
                continue;
            };
            if !place.is_inside {
                continue;
            }
            diagnosis.counts.edited += 1;
            let Some(file) = self.files.get(path) else { continue };
            let path = edited.spelled.clone();
            if !place.shows {
                withheld.insert(path.clone());
            }
            failed.extend(edited.failed(file).map(str::to_owned));
            let told = told.states.get(&path).copied();
            let Some(finding) = edited.finding(file, told, &mut self.state) else { continue };
            let (found, counts) = (finding.found, &mut diagnosis.counts);
            counts.reported += u64::from(finding.is_fresh);
            counts.before += found.before_count;
            let Some(state) = finding.state else { continue };
            counts.new += found.new_count;
            counts.resolved += found.resolved_count;
            diagnosis.more_new += found.new_count;
            diagnosis.new.extend(found.new.iter().cloned());
            if finding.tells_before {
                diagnosis.more_before += found.before_count;
                diagnosis.before.extend(found.before.iter().cloned());
            }
            if finding.unchecked {
                diagnosis.unchecked.push(path.clone());
            }
            diagnosis.states.insert(path, state);
        }
        diagnosis.failed.extend(failed.into_iter().filter(|name| !told.failed.contains(name)));
        cap(&mut diagnosis);
        let shown = diagnosis.new.iter_mut().chain(&mut diagnosis.before);
        for problem in shown.filter(|problem| withheld.contains(&problem.path)) {
            problem.message = None;
        }
        Some(diagnosis)
    }
}

/// Puts the problems in order and leaves out what is beyond the caps.
fn cap(diagnosis: &mut Diagnosis) {
    let Diagnosis { new, before, more_new, more_before, .. } = diagnosis;
    let mut of_file: BTreeMap<String, usize> = BTreeMap::new();
    let mut all = 0;
    for (list, more) in [(new, more_new), (before, more_before)] {
        let order = |one: &DiagnosedProblem, other: &DiagnosedProblem| {
            (one.severity, &one.path, one.line, one.column, &one.message).cmp(&(
                other.severity,
                &other.path,
                other.line,
                other.column,
                &other.message,
            ))
        };
        list.sort_by(order);
        list.retain(|problem| {
            let count = of_file.entry(problem.path.clone()).or_default();
            let fits = *count < FILE_PROBLEMS_MAX && all < PROBLEMS_MAX;
            *count += usize::from(fits);
            all += usize::from(fits);
            fits
        });
        *more = more.saturating_sub(list.len() as u64);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PATH: &str = "/w/a";

    fn owner() -> Owner {
        Owner { session: "s".to_owned(), scope: ScopePath::ROOT }
    }

    fn report(list: &[(u8, u32)], version: i64) -> Report {
        let found = list.iter().map(|(message, line)| {
            let at = Position { line: *line, character: 0 };
            Diagnostic::new(Some((at, at)), Some(1), None, None, &message.to_string())
        });
        Report {
            checker: "c".to_owned(),
            connection: 0,
            version: Some(version),
            standing: Standing::Done,
            found: found.collect(),
        }
    }

    fn text(lines: &[u8]) -> String {
        lines.iter().flat_map(|line| [line.to_string(), "\n".to_owned()]).collect()
    }

    /// The counts after an edit from one text and list to others, the edit seen as `how` tells.
    fn counts(
        former: (&[u8], &[(u8, u32)]),
        present: (&[u8], &[(u8, u32)]),
        how: u8,
    ) -> (u64, u64, u64) {
        let mut books = Bookkeeper::default();
        let (before, after) = (text(former.0), text(present.0));
        if how == 0 {
            books.open(PATH, Some(1), before.clone());
        }
        books.publish(0, PATH, report(former.1, 1)).unwrap();
        let readings = books.begin(&owner(), &[PATH.to_owned()]).unwrap();
        let place = Place { is_inside: true, shows: true };
        for reading in &readings {
            books.place(&owner(), reading, PATH, place);
        }
        for reading in readings.iter().filter(|_| how == 1) {
            books.read(reading, Some(before.as_str().into()), None);
        }
        if how == 0 {
            books.change(PATH, Some(2), &[TextChange { range: None, text: after.clone() }]);
        }
        let readings = books.end(&owner(), &[(PATH.to_owned(), Some(2))]).unwrap();
        for reading in readings.iter().filter(|_| how == 1) {
            let old = books.text_on_disk(reading).unwrap();
            let edits = line_edits(&old, &after);
            books.read(reading, Some(after.as_str().into()), Some(edits));
        }
        books.publish(0, PATH, report(present.1, 2)).unwrap();
        let told = Checked::default();
        let diagnosis = books.diagnosis(&owner(), &told).unwrap();
        let counts = diagnosis.counts;
        let listed = diagnosis.new.len() as u64 + diagnosis.before.len() as u64;
        assert_eq!(listed + diagnosis.more_new + diagnosis.more_before, counts.new + counts.before);
        (counts.new, counts.before, counts.resolved)
    }

    fn lists() -> impl Strategy<Value = Vec<(u8, u32)>> {
        prop::collection::vec((0_u8..3, 0_u32..8), 0..14)
    }

    proptest! {
        /// For any two lists and any edit between, however it is seen: new and pre-existing are the
        /// present list, pre-existing and resolved the former one.
        #[test]
        fn new_and_pre_existing_are_the_present_list(
            before in prop::collection::vec(0_u8..4, 0..8),
            after in prop::collection::vec(0_u8..4, 0..8),
            former in lists(), present in lists(), how in 0_u8..3
        ) {
            let (new, old, resolved) = counts((&before, &former), (&after, &present), how);
            prop_assert_eq!(new + old, present.len() as u64);
            prop_assert_eq!(old + resolved, former.len() as u64);
        }

        /// Lines that are only shifted bring nothing new, however the edit is seen.
        #[test]
        fn shifting_brings_nothing_new(
            added in prop::collection::vec(0_u8..4, 0..5), list in lists(), how in 0_u8..3
        ) {
            let shift = u32::try_from(added.len()).unwrap();
            // Which of several equal lines were added could not be told.
            let lines: Vec<u8> = (100..108).collect();
            let after: Vec<_> = added.iter().chain(&lines).copied().collect();
            let shifted: Vec<_> = list.iter().map(|(one, line)| (*one, line + shift)).collect();
            let (new, old, resolved) = counts((&lines, &list), (&after, &shifted), how);
            prop_assert_eq!((new, old, resolved), (0, list.len() as u64, 0));
        }
    }

    /// Rooms have bounds: what nobody edits gives way, what somebody does stays.
    #[test]
    fn old_results_give_way() {
        let mut books = Bookkeeper::default();
        books.publish(0, PATH, report(&[(1, 1)], 1)).unwrap();
        books.begin(&owner(), &[PATH.to_owned()]).unwrap();
        for number in 0..FILES_MAX + 10 {
            books.publish(0, &format!("/w/{number}"), report(&[(1, 1)], 1)).unwrap();
        }
        assert!(books.files.len() <= FILES_MAX);
        assert!(books.files.contains_key(PATH));
        assert_eq!(books.held, books.files.values().map(|file| file.len()).sum::<usize>());
        let most: Vec<_> = (0..=LIST_MAX).map(|_| (1, 1)).collect();
        assert!(books.publish(0, PATH, report(&most, 2)).is_err());
        assert!(books.end_turn(&owner()));
        assert!(books.editors.is_empty() && books.owners.is_empty());
    }

    /// A checker whose connection is gone holds nobody up, and is heard again when it is back.
    #[test]
    fn who_is_gone_is_not_waited_for() {
        let mut books = Bookkeeper::default();
        books.publish(0, PATH, report(&[(1, 1)], 1)).unwrap();
        let readings = books.end(&owner(), &[(PATH.to_owned(), Some(2))]).unwrap();
        books.place(&owner(), &readings[0], PATH, Place { is_inside: true, shows: true });
        let outcome = |books: &mut Bookkeeper| {
            let mut settling = books.settle(0, &owner(), None, None);
            books.settled(0, &mut settling).map(|all| all[0].1)
        };
        assert_eq!(outcome(&mut books), Err(SETTLING_MAX));
        assert!(!books.disconnect(7), "another connection");
        assert!(books.disconnect(0));
        assert_eq!(outcome(&mut books), Ok(Outcome::None));

        let running = Report { standing: Standing::Running, ..report(&[], 2) };
        assert_eq!(books.publish(0, PATH, running), Ok(true));
        assert_eq!(outcome(&mut books), Err(SETTLING_MAX));
        assert!(books.disconnect(0));
        assert_eq!(outcome(&mut books), Ok(Outcome::None));
        let diagnosis = books.diagnosis(&owner(), &Checked::default()).unwrap();
        assert_eq!(diagnosis.failed, ["c"]);

        books.publish(0, PATH, report(&[(1, 1), (2, 2)], 2)).unwrap();
        assert_eq!(outcome(&mut books), Err(edited::FOLLOWING));
        let diagnosis = books.diagnosis(&owner(), &Checked::default()).unwrap();
        assert_eq!((diagnosis.new.len(), diagnosis.before.len()), (1, 1));
    }

    /// A spelling that leads through a link is learnt in the middle of an edit, and what was known
    /// under either name stays known.
    #[test]
    fn two_spellings_become_one_file() {
        let (link, real) = ("/w/link", "/w/real");
        let mut books = Bookkeeper::default();
        books.publish(0, real, report(&[(1, 1)], 1)).unwrap();
        let readings = books.end(&owner(), &[(link.to_owned(), Some(2))]).unwrap();
        let told = Checked::default();
        assert_eq!(books.diagnosis(&owner(), &told).unwrap().counts.edited, 0, "not looked at");
        books.place(&owner(), &readings[0], real, Place { is_inside: true, shows: false });
        books.publish(0, link, report(&[(1, 4), (2, 2)], 2)).unwrap();
        let diagnosis = books.diagnosis(&owner(), &told).unwrap();
        assert_eq!((diagnosis.new.len(), diagnosis.before.len()), (1, 1));
        assert_eq!((diagnosis.new[0].path.as_str(), &diagnosis.new[0].message), (link, &None));
        assert_eq!(books.files.len(), 1);
        assert_eq!(books.held, 2);
        assert!(books.end_turn(&owner()) && books.editors.is_empty());
    }

    #[test]
    fn texts_are_counted() {
        let mut books = Bookkeeper::default();
        books.open(PATH, Some(1), "a\nb\n".to_owned());
        let whole = TextChange { range: None, text: "longer\n".to_owned() };
        books.change(PATH, Some(2), &[whole]);
        assert_eq!(books.texts, 7);
        books.open("/w/large", Some(1), "x".repeat(TEXT_BYTES_MAX + 1));
        assert_eq!(books.texts, 7);
        books.close(PATH);
        assert_eq!(books.texts, 0);
        let readings = books.begin(&owner(), &[PATH.to_owned()]).unwrap();
        books.read(&readings[0], Some("abc".into()), None);
        assert_eq!(books.texts, 3);
        books.delete(PATH);
        assert_eq!(books.texts, 0);
    }
}
