//! Why a reminder would or would not speak at a WAIT now. Asks the same questions as the WAIT
//! itself, and changes nothing (law 11 of the quality page).

use std::collections::{BTreeMap, BTreeSet};

use super::configuration::LeftOut;
use super::delivery::{Candidate, Outcome, Seam, queued};
use super::ledger::Spent;
use super::path::ScopePath;
use super::policy::Withheld;
use super::record::Millis;
use super::reminder::{Findings, Silence, Workings};
use super::render::short_name;
use super::room::{Full, Room};
use super::scope::Scope;
use super::{Refusal, Session};

const RIDES: &str = "the conversation or the prompt text holds it, and the next commit tells it";

/// One line of an explanation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The reminder's id, or the queue's name.
    pub id: String,
    /// Its kind.
    pub kind: String,
    /// Whether it would speak at a WAIT now.
    pub speaks: bool,
    /// Why, in one sentence with the numbers.
    pub reason: String,
    /// What it would cost, in estimated tokens.
    pub tokens: u64,
    /// What it has cost so far.
    pub spent: Spent,
    /// When it can next speak; `None` when it would now.
    pub next: Option<String>,
}

impl Session {
    /// Explains every member of the scope's roster, every queue, and what is configured and not used.
    /// `findings` are those that [`Session::wanted`] asks for.
    pub fn explain(
        &self,
        at: Millis,
        path: &ScopePath,
        findings: &Findings,
    ) -> Result<Vec<Explanation>, Refusal> {
        let scope = self.scope(path)?;
        let moment = self.moment(scope, Seam::Unsaid, at);
        let closed = self.closed(scope);
        let workings = Workings::default();
        let mut rows = Vec::with_capacity(scope.roster.len() + 2);
        let mut due = Vec::new();
        for (place, member) in scope.roster.iter().enumerate() {
            let outcome = self.outcome(scope, member, place, moment, findings, &workings);
            let mut rides = false;
            if let Outcome::Speaks(candidates, _) = &outcome {
                rides = add_due(scope, candidates, rows.len(), &mut due);
            }
            let id = member.id();
            let mut row = Explanation::of(id, &member.definition.kind, outcome);
            row.spent = scope.history.spent_on(&row.kind, Some(id));
            if row.speaks && row.kind == "pending-events" {
                row.reason = format!("{}: {}", row.reason, self.waiting_names());
            }
            if rides {
                row.ride();
            }
            rows.push(row);
        }
        let (events, staged): (Vec<_>, Vec<_>) =
            queued(scope, moment).partition(Candidate::is_turn_event);
        for (name, kind, waiting, next) in [
            ("staged", "staged", staged, "when a client stages an entry"),
            ("turn-events", "turn-event", events, "when something is observed"),
        ] {
            let rides = add_due(scope, &waiting, rows.len(), &mut due);
            let mut row = Explanation::queue(name, &waiting, next);
            row.spent = scope.history.spent_on(kind, None);
            if rides {
                row.ride();
            }
            rows.push(row);
        }
        self.hold_what_does_not_fit(scope, due, &mut rows);
        for row in &mut rows {
            if let Some((reason, next)) = &closed {
                row.hold(reason, next);
            }
        }
        if path.is_root() {
            rows.extend(self.left_out().iter().map(Explanation::left_out));
        }
        Ok(rows)
    }

    /// Fills a message as the next WAIT would, where its client sets no limit of its own, and says
    /// of what is left over why it waits.
    fn hold_what_does_not_fit(
        &self,
        scope: &Scope,
        mut due: Vec<(usize, Candidate)>,
        rows: &mut [Explanation],
    ) {
        due.sort_by_key(|(_, candidate)| candidate.order());
        let (places, candidates): (Vec<_>, Vec<_>) = due.into_iter().unzip();
        let budget = self.configuration().budget;
        let mut room = Room::new(self.form(), self.host.limit, budget, scope.history.tokens());
        let filled = room.fill(candidates);
        let mut speaking = BTreeSet::new();
        let mut waiting: BTreeMap<usize, (usize, Full)> = BTreeMap::new();
        for (row, (fitting, full)) in places.into_iter().zip(filled) {
            if fitting.is_some() {
                speaking.insert(row);
            }
            if let Some(full) = full {
                waiting.entry(row).or_insert((0, full)).0 += 1;
            }
        }
        for (place, (count, full)) in waiting {
            let row = &mut rows[place];
            if speaking.contains(&place) {
                row.reason = format!("{}, {count} of them not in full now: {full}", row.reason);
            } else {
                row.hold(&full.to_string(), full.next());
            }
        }
    }

    /// What waits in the FIFO, by the names that its senders gave.
    fn waiting_names(&self) -> String {
        const NAMES_MAX: usize = 10;
        let names = self.fifo.iter().map(|pending| pending.name.as_deref().unwrap_or("event"));
        let mut shown: Vec<_> = names.take(NAMES_MAX).map(|name| short_name(name, 100)).collect();
        if self.fifo.len() > NAMES_MAX {
            shown.push(format!("{} more", self.fifo.len() - NAMES_MAX));
        }
        shown.join(", ")
    }

    /// Why no WAIT of the scope can be answered with anything now.
    fn closed(&self, scope: &Scope) -> Option<(String, String)> {
        let told = |reason: &str, next: &str| Some((reason.to_owned(), next.to_owned()));
        if scope.settled {
            return told("the agent has settled", "when it is spawned again");
        }
        if scope.turn.is_none() {
            return told("no turn is open", "when a turn begins");
        }
        if scope.calls.open().len() > 0 {
            return told("a tool call is open", "when its result is complete");
        }
        if self.awaits_receipt(scope) {
            return told(
                "the receipt of an earlier message is awaited",
                "when it is committed or released",
            );
        }
        None
    }
}

/// Notes what a message would have to hold for a row. Says whether all of it is told without being
/// said.
fn add_due(
    scope: &Scope,
    candidates: &[Candidate],
    row: usize,
    due: &mut Vec<(usize, Candidate)>,
) -> bool {
    let acknowledged = scope.queue.acknowledged();
    let before = due.len();
    let said = candidates.iter().filter(|candidate| !candidate.rides(acknowledged));
    due.extend(said.map(|candidate| (row, candidate.clone())));
    due.len() == before
}

impl Explanation {
    fn of(id: &str, kind: &str, outcome: Outcome) -> Self {
        let row = |speaks, reason: String, tokens, next| Self {
            id: id.to_owned(),
            kind: kind.to_owned(),
            speaks,
            reason,
            tokens,
            spent: Spent::default(),
            next,
        };
        match outcome {
            Outcome::Silent(silence) | Outcome::Notes(silence, _) => {
                row(false, silence.to_string(), 0, Some(silence.next()))
            }
            Outcome::Speaks(candidates, _) if candidates.is_empty() => {
                let silence = Silence::Withheld(Withheld::Unchanged);
                row(false, silence.to_string(), 0, Some(silence.next()))
            }
            Outcome::Speaks(candidates, _) => {
                let tokens = candidates.iter().map(Candidate::price).sum();
                let count = candidates.len();
                let plural = if count == 1 { "entry is" } else { "entries are" };
                row(true, format!("{count} {plural} due"), tokens, None)
            }
            Outcome::Asks { force } => {
                let how = if force { "must answer" } else { "may answer" };
                let reason = format!("the client computes it and {how} at the next WAIT");
                row(false, reason, 0, Some("at the next WAIT, if it answers".to_owned()))
            }
            Outcome::Reads(wanted) => {
                let count = wanted.len();
                let reason = format!("{count} files could not be looked at in time");
                row(false, reason, 0, Some("when they can be".to_owned()))
            }
            Outcome::Fails(message) => row(
                false,
                format!("could not be worked out: {message}"),
                0,
                Some("when mended".to_owned()),
            ),
        }
    }

    fn queue(name: &str, waiting: &[Candidate], next: &str) -> Self {
        let count = waiting.len();
        let plural = if count == 1 { "entry waits" } else { "entries wait" };
        Self {
            id: name.to_owned(),
            kind: name.to_owned(),
            speaks: count > 0,
            reason: if count == 0 { "is empty".to_owned() } else { format!("{count} {plural}") },
            tokens: waiting.iter().map(Candidate::price).sum(),
            spent: Spent::default(),
            next: (count == 0).then(|| next.to_owned()),
        }
    }

    fn left_out(left_out: &LeftOut) -> Self {
        let LeftOut { id, reason, next } = left_out.clone();
        Self {
            id,
            kind: "configuration".to_owned(),
            speaks: false,
            reason,
            tokens: 0,
            spent: Spent::default(),
            next: Some(next),
        }
    }

    /// It costs nothing: its text is there without it.
    fn ride(&mut self) {
        self.hold(RIDES, "when it changes");
        self.tokens = 0;
    }

    /// It would speak, but is kept from it.
    fn hold(&mut self, reason: &str, next: &str) {
        if self.speaks {
            self.speaks = false;
            self.reason = format!("{}, but {reason}", self.reason);
            self.next = Some(next.to_owned());
        }
    }
}
