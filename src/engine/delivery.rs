//! The WAIT: who would speak, in which order, what fits, and what is offered. Staging consumes
//! nothing.

use std::collections::BTreeMap;

use super::Session;
use super::event::{Limit, Profile};
use super::ledger::{Effect, Entry, Phase, Record, SilentEntry};
use super::queue::{Acknowledged, Serial};
use super::reminder::{Lane, Moment, Part, Proposal, Silence, Speech, View};
use super::render::{self, Form, Size};
use super::scope::{Member, Scope, ScopePath};
use super::token::{Offered, OpenWait, Waiter};

/// A client is about to call a model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WaitRequest {
    /// Whose request it is.
    pub scope: ScopePath,
    /// The turn that the client means; only checked.
    pub turn: Option<String>,
    /// The records that the payload holds, if the client says so.
    pub history: Option<Vec<String>>,
    /// What fits.
    pub limit: Limit,
    /// The connection that waits.
    pub waiter: Waiter,
}

/// Randomness for one WAIT, given by the caller so that the engine stays the same for the same
/// input. Both are unguessable and never used twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Material {
    /// The token.
    pub token: String,
    /// The id of the record, and the stem of the entries' ids.
    pub record: String,
}

/// A generator of the client's that must be asked before the WAIT can be answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// The generator's id.
    pub generator: String,
    /// Whether it is to speak even without news.
    pub force: bool,
}

/// A WAIT as it stands when it arrives.
#[derive(Clone, Debug, PartialEq)]
pub enum Staged {
    /// Nothing slow is needed.
    Ready(Box<Delivery>),
    /// Generators must be asked; `finish` takes their answers.
    Asking {
        /// Names this WAIT to `finish` and `abandon`.
        wait: Serial,
        /// Whom to ask, in order.
        asks: Vec<Ask>,
    },
}

/// An entry that was left out of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Its type.
    pub entry_type: String,
    /// Its member.
    pub key: Option<String>,
    /// Why: `limit`, `receipt`, `committed` elsewhere.
    pub reason: &'static str,
}

/// A reminder that could not be worked out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Its id.
    pub id: String,
    /// What went wrong.
    pub message: String,
}

/// The answer to a WAIT.
#[derive(Clone, Debug, PartialEq)]
pub struct Delivery {
    /// Commits or releases it.
    pub token: String,
    /// Where in its turn.
    pub phase: Phase,
    /// What is offered, as it would be told; `None` when nothing speaks.
    pub record: Option<Record>,
    /// The message's content.
    pub content: Option<String>,
    /// The price of each entry, in estimated tokens.
    pub prices: Vec<u64>,
    /// The price of the message, in estimated tokens.
    pub tokens: u64,
    /// What a view shows, collapsed.
    pub row: Option<String>,
    /// What was left out.
    pub held: Vec<Held>,
    /// Whether not even the first entry fits.
    pub oversize: bool,
    /// What could not be worked out.
    pub problems: Vec<Problem>,
}

/// A WAIT that waits for generators: what was captured when it arrived, with holes.
#[derive(Debug)]
pub struct Preparing {
    /// Names it.
    pub wait: Serial,
    /// The connection that waits.
    pub waiter: Waiter,
    material: Material,
    limit: Limit,
    chosen: Chosen,
    asks: Vec<(usize, Ask)>,
}

/// Something that may be told, before sizes are looked at.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    lane: Lane,
    serial: Serial,
    /// Its place in the roster; behind it for what a client staged.
    place: usize,
    entry_type: String,
    key: Option<String>,
    kind: String,
    label: String,
    parts: Vec<Part>,
    fingerprint: String,
    marks: Vec<String>,
}

/// What one member of the roster does at a WAIT.
#[derive(Debug)]
pub(super) enum Outcome {
    Silent(Silence),
    Speaks(Vec<Candidate>),
    Asks { force: bool },
    Fails(String),
}

/// Everything that a WAIT would tell.
#[derive(Debug, Default)]
pub(super) struct Chosen {
    candidates: Vec<Candidate>,
    silent: Vec<(SilentEntry, Vec<Effect>)>,
    problems: Vec<Problem>,
}

impl Session {
    /// The moment of a WAIT of this scope.
    pub(super) fn moment(&self, scope: &Scope, at: super::Millis) -> Moment<'_> {
        Moment {
            at,
            ordinals: scope.ordinals(),
            phase: scope.phase(),
            profile: self.profile,
            host: &self.host,
            digest: self.kit.digest,
        }
    }

    /// How bodies are put together for this session's host.
    pub(super) fn form(&self) -> Form {
        if self.host.plain == Some(true) {
            Form::Plain
        } else if self.profile == Profile::Prompt {
            Form::Block
        } else {
            Form::Blocks
        }
    }

    /// What one member would do at a WAIT of the scope now. The one place where policies, and
    /// the profile's way of collecting, are applied; WAIT and `explain` both ask it.
    pub(super) fn outcome(
        &self,
        scope: &Scope,
        member: &Member,
        place: usize,
        moment: Moment<'_>,
    ) -> Outcome {
        if !member.enabled {
            return Outcome::Silent(Silence::nothing("is switched off", "when switched on"));
        }
        if moment.profile == Profile::Prompt && moment.phase == Phase::MidTurn {
            return Outcome::Silent(Silence::nothing(
                "profile prompt collects at the start of a turn only",
                "in the next turn",
            ));
        }
        let policy = member.reminder.policy();
        let spoken = scope.history.spoken(member.id(), moment.ordinals.turn);
        if let Err(withheld) = policy.gate(moment.ordinals, spoken) {
            return Outcome::Silent(Silence::Withheld(withheld));
        }
        let view = View { facts: &self.facts, fifo: &self.fifo, scope, id: member.id(), moment };
        let speeches = match member.reminder.propose(&view) {
            Proposal::Silent(silence) => return Outcome::Silent(silence),
            Proposal::Ask { force } => return Outcome::Asks { force },
            Proposal::Fail(message) => return Outcome::Fails(message),
            Proposal::Speak(speeches) => speeches,
        };
        let mut withheld = None;
        let mut candidates = Vec::with_capacity(speeches.len());
        for speech in speeches {
            let candidate = Candidate::of(member, place, speech, moment);
            let told = scope.history.told(member.id(), candidate.key.as_deref());
            match policy.due(told, &candidate.fingerprint, &candidate.marks) {
                Ok(()) => candidates.push(candidate),
                Err(reason) => withheld = Some(reason),
            }
        }
        candidates.retain(|candidate| !candidate.parts.is_empty());
        match withheld {
            _ if !candidates.is_empty() => Outcome::Speaks(candidates),
            Some(withheld) => Outcome::Silent(Silence::Withheld(withheld)),
            None => Outcome::Silent(Silence::nothing("has nothing to say", "when it has")),
        }
    }

    /// Everything that a WAIT of the scope would tell now, and the generators to ask first.
    pub(super) fn choose(&self, scope: &Scope, moment: Moment<'_>) -> (Chosen, Vec<(usize, Ask)>) {
        let mut chosen = Chosen::default();
        let mut asks = Vec::new();
        for (place, member) in scope.roster.iter().enumerate() {
            match self.outcome(scope, member, place, moment) {
                Outcome::Silent(_) => {}
                Outcome::Speaks(candidates) => chosen.candidates.extend(candidates),
                Outcome::Asks { force } => {
                    asks.push((place, Ask { generator: member.id().to_owned(), force }));
                }
                Outcome::Fails(message) => {
                    chosen.problems.push(Problem { id: member.id().to_owned(), message });
                }
            }
        }
        chosen.candidates.extend(queued(scope, moment));
        (chosen, asks)
    }

    /// Keeps what was captured until the generators have answered.
    pub(super) fn prepare(
        wait: Serial,
        request: &WaitRequest,
        material: Material,
        chosen: Chosen,
        asks: Vec<(usize, Ask)>,
    ) -> Preparing {
        Preparing { wait, waiter: request.waiter, material, limit: request.limit, chosen, asks }
    }

    /// Fills the holes of a prepared WAIT with what the generators answered. What one answered
    /// earlier and was not told is still due (`configuration.md`, "First time").
    pub(super) fn fill(
        &mut self,
        path: &ScopePath,
        prepared: Preparing,
        answers: &BTreeMap<String, String>,
        at: super::Millis,
    ) -> Result<Delivery, super::Refusal> {
        let Preparing { waiter, material, limit, mut chosen, asks, .. } = prepared;
        let scope = self.scope_mut(path)?;
        for (_, ask) in &asks {
            if let Some(body) = answers.get(&ask.generator)
                && !body.trim().is_empty()
            {
                scope.queue.answer(&ask.generator, body.trim().to_owned());
            }
        }
        let scope = self.scope(path)?;
        let moment = self.moment(scope, at);
        for (place, ask) in asks {
            // The roster may have changed while the generator was thinking.
            let Some(member) = scope.roster.iter().find(|member| member.id() == ask.generator)
            else {
                continue;
            };
            let Some(body) = scope.queue.answered(&ask.generator) else { continue };
            let mut speech = Speech::new(ask.generator.clone(), body.to_owned());
            speech.parts[0].effects.push(Effect::ForgetAnswer(ask.generator.clone()));
            let candidate = Candidate::of(member, place, speech, moment);
            let told = scope.history.told(member.id(), None);
            let due = member.reminder.policy().due(told, &candidate.fingerprint, &[]);
            if member.enabled && due.is_ok() {
                chosen.candidates.push(candidate);
            }
        }
        Ok(self.offer(path, waiter, material, limit, chosen, at))
    }

    /// Sorts, measures and offers: the last step of a WAIT, which opens its token.
    pub(super) fn offer(
        &mut self,
        path: &ScopePath,
        waiter: Waiter,
        material: Material,
        limit: Limit,
        mut chosen: Chosen,
        at: super::Millis,
    ) -> Delivery {
        let form = self.form();
        let limit = limit.smaller(self.host.limit);
        let session = self.id.clone();
        let digest = self.kit.digest;
        let scope = self.scopes.get_mut(path).expect("a WAIT's scope is there until it is offered");
        chosen.leave_out(scope.queue.acknowledged());
        chosen.candidates.sort_by_key(|one| (one.lane, one.serial, one.place));

        let mut delivery = Delivery {
            token: material.token.clone(),
            phase: scope.phase(),
            record: None,
            content: None,
            prices: Vec::new(),
            tokens: 0,
            row: None,
            held: Vec::new(),
            oversize: false,
            problems: chosen.problems,
        };
        let mut offered = Vec::new();
        let mut size = Size::default();
        for (index, candidate) in chosen.candidates.into_iter().enumerate() {
            let (entry_type, key) = (candidate.entry_type.clone(), candidate.key.clone());
            let id = format!("{}.{}", material.record, offered.len() + 1);
            let (fitting, whole) = candidate.fit(id, form, &mut size, limit);
            if !whole {
                delivery.oversize |= index == 0 && fitting.is_none();
                delivery.held.push(Held { entry_type, key, reason: "limit" });
            }
            offered.extend(fitting);
        }
        delivery.prices = offered
            .iter()
            .map(|Offered { entry, .. }| render::estimate_tokens(&entry.body))
            .collect();

        let mut open = OpenWait {
            token: material.token,
            record: material.record,
            turn: scope.turn.as_ref().map(|turn| turn.id.clone()).unwrap_or_default(),
            waiter,
            at,
            phase: delivery.phase,
            ordinals: scope.ordinals(),
            form,
            offered,
            silent: chosen.silent,
            digest: String::new(),
        };
        if !open.offered.is_empty() {
            let all: Vec<usize> = (0..open.offered.len()).collect();
            let record = open.record_of(&session, path, &all).map(|record| record.sealed(digest));
            let labels = open.offered.iter().map(|Offered { entry, .. }| entry.label.as_str());
            delivery.row = render::row(form, labels);
            let content = record.as_ref().map(Record::content).unwrap_or_default();
            delivery.tokens = render::estimate_tokens(&content);
            delivery.content = Some(content);
            open.digest = record.as_ref().map(|record| record.digest.clone()).unwrap_or_default();
            delivery.record = record;
        }
        scope.tokens.open.push(open);
        delivery
    }
}

/// What clients staged and observed in the open turn, as candidates.
pub(super) fn queued<'a>(
    scope: &'a Scope,
    moment: Moment<'a>,
) -> impl Iterator<Item = Candidate> + 'a {
    // Behind the whole roster, so that a serial of 0 cannot put it before a member of its lane.
    let place = usize::MAX;
    let digest = moment.digest;
    let collects = moment.profile != Profile::Prompt;
    let staged = scope.queue.staged().iter().map(move |staged| Candidate {
        lane: staged.lane,
        serial: staged.serial,
        place,
        entry_type: staged.entry_type.clone(),
        key: staged.key.clone(),
        kind: "staged".to_owned(),
        label: staged.label.clone().unwrap_or_else(|| staged.entry_type.clone()),
        fingerprint: digest(staged.body.as_bytes()),
        parts: vec![Part { body: staged.body.clone(), effects: vec![Effect::Take(staged.serial)] }],
        marks: Vec::new(),
    });
    let events = scope.queue.events().iter().map(move |event| Candidate {
        lane: Lane::Events,
        serial: event.serial,
        place,
        entry_type: event.entry_type.clone(),
        key: Some(event.key.clone()),
        kind: "turn-event".to_owned(),
        label: event.entry_type.clone(),
        fingerprint: digest(event.body.as_bytes()),
        parts: vec![Part { body: event.body.clone(), effects: vec![Effect::Take(event.serial)] }],
        marks: Vec::new(),
    });
    staged.chain(events).filter(move |_| collects)
}

impl Candidate {
    fn of(member: &Member, place: usize, speech: Speech, moment: Moment<'_>) -> Self {
        let Speech { key, label, mut parts, fingerprint, marks, serial } = speech;
        parts.retain(|part| !part.body.trim().is_empty());
        let fingerprint = fingerprint.unwrap_or_else(|| match parts.as_slice() {
            [] => String::new(),
            [only] => (moment.digest)(only.body.as_bytes()),
            [first, ..] => (moment.digest)(first.body.as_bytes()),
        });
        Self {
            lane: member.reminder.lane(),
            serial,
            place,
            entry_type: member.id().to_owned(),
            key,
            kind: member.definition.kind.clone(),
            label: label.into_owned(),
            parts,
            fingerprint,
            marks,
        }
    }

    /// Whether it was observed during the turn, rather than staged.
    pub(super) fn is_turn_event(&self) -> bool {
        self.lane == Lane::Events
    }

    /// The price of telling it, in estimated tokens.
    pub(super) fn price(&self) -> u64 {
        self.parts.iter().map(|part| render::estimate_tokens(&part.body)).sum()
    }

    /// What of it fits beside what is chosen already, and whether that is all. Never cuts a body:
    /// of several parts the leading ones may go alone.
    fn fit(self, id: String, form: Form, size: &mut Size, limit: Limit) -> (Option<Offered>, bool) {
        let first = *size == Size::default();
        let count = self.parts.len();
        let mut bodies: Vec<String> = Vec::with_capacity(count);
        let mut effects = Vec::new();
        let mut grown = *size;
        for part in self.parts {
            let body = render::neutralise(&part.body).into_owned();
            let added = if bodies.is_empty() {
                Size::of_body(form, &body, first)
            } else {
                Size::of("\n\n").plus(Size::of(&body))
            };
            if exceeds(grown.plus(added), limit) {
                break;
            }
            grown = grown.plus(added);
            bodies.push(body);
            effects.extend(part.effects);
        }
        let whole = bodies.len() == count;
        if bodies.is_empty() {
            return (None, whole);
        }
        *size = grown;
        let entry = Entry {
            id,
            entry_type: self.entry_type,
            key: self.key,
            kind: self.kind,
            label: render::one_line(&self.label).into_owned(),
            body: match <[String; 1]>::try_from(bodies) {
                Ok([only]) => only,
                // Two harmless parts can spell a tag across their joint.
                Err(bodies) => render::neutralise(&bodies.join("\n\n")).into_owned(),
            },
            fingerprint: self.fingerprint,
            marks: self.marks,
        };
        (Some(Offered { entry, effects }), whole)
    }
}

fn exceeds(size: Size, limit: Limit) -> bool {
    [
        (size.bytes, limit.bytes),
        (size.chars, limit.chars),
        (size.utf16, limit.utf16),
        (size.tokens, limit.tokens),
    ]
    .into_iter()
    .any(|(size, limit)| limit.is_some_and(|limit| size > limit))
}

impl Chosen {
    /// Moves what rides in the prompt text out of the message; it is told by the same commit.
    fn leave_out(&mut self, acknowledged: &[Acknowledged]) {
        for context in acknowledged {
            let rides = |candidate: &Candidate| {
                (candidate.entry_type == context.reminder || candidate.kind == context.reminder)
                    && candidate.key == context.key
                    && context.fingerprint.as_ref().is_none_or(|f| *f == candidate.fingerprint)
            };
            let riding: Vec<_> = self.candidates.extract_if(.., |one| rides(one)).collect();
            if riding.is_empty() {
                let entry = SilentEntry {
                    entry_type: context.reminder.clone(),
                    key: context.key.clone(),
                    kind: context.reminder.clone(),
                    fingerprint: context.fingerprint.clone().unwrap_or_default(),
                    marks: Vec::new(),
                };
                self.silent.push((entry, Vec::new()));
            }
            for candidate in riding {
                let effects = candidate.parts.into_iter().flat_map(|part| part.effects).collect();
                let entry = SilentEntry {
                    entry_type: candidate.entry_type,
                    key: candidate.key,
                    kind: candidate.kind,
                    fingerprint: candidate.fingerprint,
                    marks: candidate.marks,
                };
                self.silent.push((entry, effects));
            }
        }
    }
}
