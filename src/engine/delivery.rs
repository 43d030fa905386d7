//! The WAIT: who would speak, in which order, what fits, and what is offered. Staging consumes
//! nothing.

use std::collections::BTreeMap;

use super::Session;
use super::event::{Limit, Profile};
use super::ledger::{Delivered, History};
use super::path::ScopePath;
use super::policy::{Ordinals, Trigger};
use super::queue::Acknowledged;
use super::record::{Effect, Lane, Millis, Phase, Record, Serial, SilentEntry};
use super::refusal::Refusal;
use super::reminder::{Findings, Moment, Part, Proposal, Silence, Speech, View, Wanted, Workings};
use super::render::{self, Form};
use super::room::{Full, Room};
use super::scope::{Member, Scope};
use super::start;
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
    /// Where in the conversation it stands, if the client says so.
    pub seam: Seam,
    /// What fits.
    pub limit: Limit,
    /// The connection that waits.
    pub waiter: Waiter,
    /// What was found out beforehand, as it stood when the WAIT arrived.
    pub prepared: Findings,
}

/// Where in the conversation a request stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Seam {
    /// The client did not say: a turn's first request stands at the prompt.
    #[default]
    Unsaid,
    /// At the end of the person's message.
    Prompt,
    /// Behind the complete results of tool calls.
    Tools,
    /// In a message of its own that goes on with the last one.
    Continuation,
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
    /// Something slow is needed first; `finish` takes it.
    Asking {
        /// Names this WAIT to `finish` and `abandon`.
        wait: Serial,
        /// Generators to ask, in order.
        asks: Vec<Ask>,
        /// Files to look at.
        wanted: Vec<Wanted>,
    },
}

/// An entry that was left out of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Its type.
    pub entry_type: String,
    /// Its member.
    pub key: Option<String>,
    /// Why: `limit`, `budget`, `receipt`.
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
    /// What history holds and the host has lost, for a host that keeps nothing.
    pub replay: Option<Vec<Delivered>>,
}

/// What a member of the roster needs before it can say what it would say.
#[derive(Debug)]
pub(super) struct Need {
    /// Its place in the roster.
    place: usize,
    /// The member as it was when the WAIT arrived: later switches are the next WAIT's.
    member: Member,
    what: What,
}

#[derive(Debug)]
enum What {
    /// The client's answer.
    Answer {
        /// Whether it is to speak even without news.
        force: bool,
    },
    /// What stands in files.
    Files(Vec<Wanted>),
}

impl Need {
    /// The files that are needed.
    pub(super) fn into_wanted(self) -> Vec<Wanted> {
        match self.what {
            What::Answer { .. } => Vec::new(),
            What::Files(wanted) => wanted,
        }
    }
}

/// A WAIT as it stood when it arrived, with holes where something slow is needed. What happens
/// after it is the next one's.
#[derive(Debug)]
pub struct Preparing {
    /// Names it, and is the last queued item that it sees.
    pub wait: Serial,
    /// The connection that waits.
    pub waiter: Waiter,
    material: Material,
    seam: Seam,
    limit: Limit,
    form: Form,
    phase: Phase,
    ordinals: Ordinals,
    turn: String,
    acknowledged: Vec<Acknowledged>,
    ends: Vec<Effect>,
    chosen: Chosen,
    needs: Vec<Need>,
}

impl Preparing {
    /// Tells nothing of what rides in the prompt text.
    pub(super) fn leave_acknowledged(&mut self) {
        self.acknowledged.clear();
    }

    /// What is needed before it can be answered; `None` when nothing is.
    pub(super) fn staged(&self) -> Option<Staged> {
        let mut asks = Vec::new();
        let mut wanted = Vec::new();
        for need in &self.needs {
            match &need.what {
                What::Answer { force } => {
                    asks.push(Ask { generator: need.member.id().to_owned(), force: *force });
                }
                What::Files(files) => wanted.extend(files.iter().cloned()),
            }
        }
        let needed = !asks.is_empty() || !wanted.is_empty();
        needed.then_some(Staged::Asking { wait: self.wait, asks, wanted })
    }
}

/// Something that may be told, before sizes are looked at.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    lane: Lane,
    serial: Serial,
    /// Its place in the roster; behind it for what a client staged.
    place: usize,
    /// Whether it is kept before others where not everything fits: the higher first.
    pub priority: i64,
    pub entry_type: String,
    pub key: Option<String>,
    pub kind: String,
    pub label: String,
    pub parts: Vec<Part>,
    pub fingerprint: String,
    pub marks: Vec<String>,
    /// Whether the conversation holds it already.
    rides: bool,
}

/// What one member of the roster does at a WAIT.
#[derive(Debug)]
pub(super) enum Outcome {
    Silent(Silence),
    /// What it would say, and what it need not look at again: that is told already.
    Speaks(Vec<Candidate>, Vec<Effect>),
    /// It is silent, and need not look at this again once everything is told.
    Notes(Silence, Vec<Effect>),
    Asks {
        force: bool,
    },
    Reads(Vec<Wanted>),
    Fails(String),
}

/// Everything that a WAIT would tell.
#[derive(Debug, Default)]
pub(super) struct Chosen {
    candidates: Vec<Candidate>,
    silent: Vec<(SilentEntry, Vec<Effect>)>,
    problems: Vec<Problem>,
    /// What need not be looked at again once everything is told.
    looked_at: Vec<Effect>,
    /// Whether instructions on the way to what was read are still to be looked at.
    keeps_reads: bool,
}

impl Session {
    /// The moment of a WAIT of this scope.
    pub(super) fn moment(&self, scope: &Scope, seam: Seam, at: Millis) -> Moment<'_> {
        Moment {
            at,
            ordinals: scope.ordinals(),
            phase: scope.phase(),
            seam,
            profile: self.profile,
            host: &self.host,
            digest: self.kit.digest,
            until: self.serial,
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
        findings: &Findings,
        workings: &Workings,
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
        if self.host.native == Some(true)
            && !scope.native_compaction
            && !moment.is_prompt()
            && !member.reminder.rides_seams()
        {
            return Outcome::Silent(Silence::nothing(
                "a native host's roster is collected at the prompt only",
                "at the next prompt",
            ));
        }
        let policy = member.reminder.policy();
        let spoken = scope.history.spoken(member.id(), moment.ordinals.turn);
        if let Err(withheld) = policy.gate(moment.ordinals, spoken) {
            return Outcome::Silent(Silence::Withheld(withheld));
        }
        let view = View {
            facts: &self.facts,
            root: self.root.as_deref(),
            fifo: &self.fifo,
            hook_contexts: &self.hook_contexts,
            findings,
            workings,
            scope,
            id: member.id(),
            since: member.since,
            moment,
        };
        let speeches = match member.reminder.propose(&view) {
            Proposal::Silent(silence) => return Outcome::Silent(silence),
            Proposal::Note(silence, effects) => return Outcome::Notes(silence, effects),
            Proposal::Ask { force } => {
                // Whatever it would answer: it was told its once.
                let told = scope.history.told(member.id(), None);
                if policy.trigger == Trigger::Once
                    && let Err(withheld) = policy.due(told, "", &[])
                {
                    return Outcome::Silent(Silence::Withheld(withheld));
                }
                return Outcome::Asks { force };
            }
            Proposal::Read(wanted) => return Outcome::Reads(wanted),
            Proposal::Fail(message) => return Outcome::Fails(message),
            Proposal::Speak(speeches) => speeches,
        };
        let mut withheld = None;
        let mut told_already = Vec::new();
        let mut candidates = Vec::with_capacity(speeches.len());
        for speech in speeches {
            let candidate = Candidate::of(member, place, speech, moment);
            let told = scope.history.told(member.id(), candidate.key.as_deref());
            match policy.due(told, &candidate.fingerprint, &candidate.marks) {
                Ok(()) => candidates.push(candidate),
                Err(reason) => {
                    withheld = Some(reason);
                    told_already.extend(candidate.into_silent().1);
                }
            }
        }
        candidates.retain(|candidate| !candidate.parts.is_empty());
        match withheld {
            _ if !candidates.is_empty() || !told_already.is_empty() => {
                Outcome::Speaks(candidates, told_already)
            }
            Some(withheld) => Outcome::Silent(Silence::Withheld(withheld)),
            None => Outcome::Silent(Silence::nothing("has nothing to say", "when it has")),
        }
    }

    /// Everything that a WAIT of the scope would tell now, and what is needed first.
    pub(super) fn choose(
        &self,
        scope: &Scope,
        moment: Moment<'_>,
        prepared: &Findings,
    ) -> (Chosen, Vec<Need>) {
        let workings = Workings::default();
        let mut chosen = Chosen::default();
        let mut needs = Vec::new();
        for (place, member) in scope.roster.iter().enumerate() {
            let need = |what| Need { place, member: member.clone(), what };
            match self.outcome(scope, member, place, moment, prepared, &workings) {
                Outcome::Silent(silence) => {
                    // Not asked is not looked at: what was read stays to be looked at.
                    let asked = member.enabled && !matches!(silence, Silence::Withheld(_));
                    chosen.keeps_reads |= member.reminder.looks_at_reads() && !asked;
                }
                Outcome::Speaks(candidates, told) => {
                    chosen.candidates.extend(candidates);
                    chosen.looked_at.extend(told);
                }
                Outcome::Notes(_, effects) => chosen.looked_at.extend(effects),
                Outcome::Asks { force } => needs.push(need(What::Answer { force })),
                Outcome::Reads(wanted) => needs.push(need(What::Files(wanted))),
                Outcome::Fails(message) => {
                    chosen.problems.push(Problem { id: member.id().to_owned(), message });
                }
            }
        }
        chosen.candidates.extend(queued(scope, moment));
        let unnoted = start::unnoted(&self.facts, scope, moment.digest);
        chosen.silent.extend(unnoted.into_iter().map(|entry| (entry, Vec::new())));
        (chosen, needs)
    }

    /// Fills the holes of a prepared WAIT with what the generators answered and what stands in
    /// files. What a generator answered earlier and was not told is still due
    /// (`configuration.md`, "First time").
    pub(super) fn fill(
        &mut self,
        path: &ScopePath,
        mut prepared: Preparing,
        answers: &BTreeMap<String, String>,
        findings: &Findings,
        at: Millis,
    ) -> Result<Delivery, Refusal> {
        let needs = std::mem::take(&mut prepared.needs);
        let queue = &mut self.scope_mut(path)?.queue;
        for need in &needs {
            if let What::Answer { .. } = need.what
                && let Some(body) = answers.get(need.member.id())
                && !body.trim().is_empty()
            {
                queue.answer(need.member.id(), body.trim().to_owned());
            }
        }
        let scope = self.scope(path)?;
        let mut moment = self.moment(scope, prepared.seam, at);
        (moment.until, moment.phase, moment.ordinals) =
            (prepared.wait, prepared.phase, prepared.ordinals);
        let workings = Workings::default();
        for Need { place, member, what } in &needs {
            let outcome = match what {
                What::Answer { .. } => answered(scope, member, *place, moment),
                What::Files(_) => self.outcome(scope, member, *place, moment, findings, &workings),
            };
            match outcome {
                Outcome::Speaks(candidates, told) => {
                    prepared.chosen.candidates.extend(candidates);
                    prepared.chosen.looked_at.extend(told);
                }
                Outcome::Fails(message) => {
                    prepared.chosen.problems.push(Problem { id: member.id().to_owned(), message });
                }
                Outcome::Notes(_, effects) => prepared.chosen.looked_at.extend(effects),
                // What could not be read in time stays to be looked at.
                Outcome::Reads(_) => prepared.chosen.keeps_reads = true,
                Outcome::Silent(_) | Outcome::Asks { .. } => {}
            }
        }
        Ok(self.offer(path, prepared, at))
    }

    /// Captures a WAIT: everything that its answer may depend on besides what is slow.
    pub(super) fn capture(
        &mut self,
        request: &WaitRequest,
        material: Material,
        chosen: Chosen,
        needs: Vec<Need>,
    ) -> Result<Preparing, Refusal> {
        let wait = self.next_serial();
        let scope = self.scope(&request.scope)?;
        // What is too large for a native host's message goes whole as a continuation of the prompt.
        let limit = match (self.host.native, request.seam) {
            (Some(true), Seam::Continuation) => request.limit,
            _ => request.limit.smaller(self.host.limit),
        };
        let once = self.facts.mode_override.iter().filter(|_| request.scope.is_root());
        Ok(Preparing {
            wait,
            waiter: request.waiter,
            material,
            seam: request.seam,
            limit,
            form: self.form(),
            phase: scope.phase(),
            ordinals: scope.ordinals(),
            turn: scope.turn.as_ref().map(|turn| turn.id.clone()).unwrap_or_default(),
            acknowledged: scope.queue.acknowledged().to_vec(),
            ends: once.map(|(set, _)| Effect::EndOverride(*set)).collect(),
            chosen,
            needs,
        })
    }

    /// Sorts, measures and offers: the last step of a WAIT, which opens its token.
    pub(super) fn offer(&mut self, path: &ScopePath, prepared: Preparing, at: Millis) -> Delivery {
        let Preparing { material, limit, form, mut chosen, .. } = prepared;
        if let Some(scope) = self.scopes.get(path) {
            chosen.leave_out(&prepared.acknowledged, &scope.history);
        }
        if !chosen.keeps_reads {
            chosen.looked_at.push(Effect::TakeReads(prepared.wait));
        }
        chosen.candidates.sort_by_key(Candidate::order);

        let mut delivery = Delivery {
            token: material.token.clone(),
            phase: prepared.phase,
            record: None,
            content: None,
            prices: Vec::new(),
            tokens: 0,
            row: None,
            held: Vec::new(),
            oversize: false,
            problems: chosen.problems,
            replay: None,
        };
        let names = chosen.candidates.iter();
        let names: Vec<_> = names.map(|one| (one.entry_type.clone(), one.key.clone())).collect();
        let highest = chosen.candidates.iter().map(|one| one.priority).max();
        let first = chosen.candidates.iter().position(|one| Some(one.priority) == highest);
        let spent = self.scopes.get(path).map_or(0, |scope| scope.history.tokens());
        let mut room = Room::new(form, limit, self.configuration.budget, spent);
        let filled = room.fill(chosen.candidates);
        let mut offered: Vec<Offered> = Vec::new();
        for (index, ((fitting, full), (entry_type, key))) in
            filled.into_iter().zip(names).enumerate()
        {
            if let Some(full) = full {
                let is_first = Some(index) == first;
                delivery.oversize |= is_first && fitting.is_none() && full == Full::Limit;
                delivery.held.push(Held { entry_type, key, reason: full.reason() });
            }
            offered.extend(fitting);
        }
        for (index, Offered { entry, .. }) in offered.iter_mut().enumerate() {
            entry.id = format!("{}.{}", material.record, index + 1);
        }
        delivery.prices = offered
            .iter()
            .map(|Offered { entry, .. }| render::estimate_tokens(&entry.body))
            .collect();

        let mut open = OpenWait {
            token: material.token,
            record: material.record,
            turn: prepared.turn,
            waiter: prepared.waiter,
            at,
            phase: prepared.phase,
            ordinals: prepared.ordinals,
            form,
            offered,
            silent: chosen.silent,
            ends: prepared.ends,
            looked_at: chosen.looked_at,
            whole: delivery.held.is_empty(),
            digest: String::new(),
        };
        if !open.offered.is_empty() {
            let all: Vec<usize> = (0..open.offered.len()).collect();
            let record = open.record_of(&self.id, path, &all, &[]);
            let record = record.map(|record| record.sealed(self.kit.digest));
            let labels = open.offered.iter().map(|Offered { entry, .. }| entry.label.as_str());
            delivery.row = render::row(form, labels);
            let content = record.as_ref().map(Record::content).unwrap_or_default();
            delivery.tokens = render::estimate_tokens(&content);
            delivery.content = Some(content);
            open.digest = record.as_ref().map(|record| record.digest.clone()).unwrap_or_default();
            delivery.record = record;
        }
        if let Some(scope) = self.scopes.get_mut(path) {
            if self.host.replays == Some(true) {
                let held = scope.history.records().iter();
                delivery.replay =
                    Some(held.filter(|delivered| delivered.lost.is_none()).cloned().collect());
            }
            scope.tokens.open.push(open);
        }
        delivery
    }

    /// What rides in the prompt text since the WAIT that is being committed: it is told with it.
    pub(super) fn acknowledged_since(
        &self,
        path: &ScopePath,
        at: Millis,
    ) -> Result<Vec<(SilentEntry, Vec<Effect>)>, Refusal> {
        let scope = self.scope(path)?;
        let open = scope.tokens.open.iter().flat_map(|open| &open.silent);
        let captured: Vec<&Effect> = open.flat_map(|(_, effects)| effects).collect();
        let is_since = |context: &&Acknowledged| !captured.contains(&&Effect::Take(context.serial));
        let acknowledged = scope.queue.acknowledged();
        let since: Vec<_> = acknowledged.iter().filter(is_since).cloned().collect();
        if since.is_empty() {
            return Ok(Vec::new());
        }
        let moment = self.moment(scope, Seam::Unsaid, at);
        let (mut chosen, _) = self.choose(scope, moment, &Findings::new());
        chosen.leave_out(&since, &scope.history);
        Ok(chosen.silent)
    }
}

/// What a client's generator answered and is not told yet, as a candidate.
fn answered(scope: &Scope, member: &Member, place: usize, moment: Moment<'_>) -> Outcome {
    let id = member.id();
    let Some(body) = scope.queue.answered(id).filter(|_| member.enabled) else {
        return Outcome::Silent(Silence::nothing("the client had nothing to say", "when it has"));
    };
    let label = member.reminder.label().unwrap_or(id);
    let mut speech = Speech::new(label.to_owned(), body.to_owned());
    speech.parts[0].effects.push(Effect::ForgetAnswer(id.to_owned()));
    let candidate = Candidate::of(member, place, speech, moment);
    match member.reminder.policy().due(scope.history.told(id, None), &candidate.fingerprint, &[]) {
        Ok(()) => Outcome::Speaks(vec![candidate], Vec::new()),
        Err(withheld) => Outcome::Silent(Silence::Withheld(withheld)),
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
        priority: 0,
        entry_type: staged.entry_type.clone(),
        key: staged.key.clone(),
        kind: "staged".to_owned(),
        label: staged.label.clone().unwrap_or_else(|| staged.entry_type.clone()),
        fingerprint: digest(staged.body.as_bytes()),
        parts: vec![Part::taking(staged.body.clone(), staged.serial)],
        marks: Vec::new(),
        rides: false,
    });
    let events = scope.queue.events().iter().map(move |event| Candidate {
        lane: Lane::Events,
        serial: event.serial,
        place,
        priority: 0,
        entry_type: event.entry_type.clone(),
        key: Some(event.key.clone()),
        kind: "turn-event".to_owned(),
        label: event.entry_type.clone(),
        fingerprint: digest(event.body.as_bytes()),
        parts: vec![Part::taking(event.body.clone(), event.serial)],
        marks: Vec::new(),
        rides: false,
    });
    staged.chain(events).filter(move |_| collects)
}

impl Candidate {
    fn of(member: &Member, place: usize, speech: Speech, moment: Moment<'_>) -> Self {
        let Speech { key, label, mut parts, fingerprint, marks, serial, rides } = speech;
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
            priority: member.reminder.priority(),
            entry_type: member.id().to_owned(),
            key,
            kind: member.definition.kind.clone(),
            label: label.into_owned(),
            parts,
            fingerprint,
            marks,
            rides,
        }
    }

    /// Whether it is told without being said: the conversation holds it, or it rides in the prompt
    /// text.
    pub(super) fn rides(&self, acknowledged: &[Acknowledged]) -> bool {
        self.rides || acknowledged.iter().any(|context| self.is_meant_by(context))
    }

    /// Whether an acknowledgement stands for it.
    fn is_meant_by(&self, context: &Acknowledged) -> bool {
        (self.entry_type == context.reminder || self.kind == context.reminder)
            && self.key == context.key
            && context.fingerprint.as_ref().is_none_or(|f| *f == self.fingerprint)
    }

    /// Its place in the message: by lane, then by arrival, then by the roster.
    pub(super) fn order(&self) -> (Lane, Serial, usize) {
        (self.lane, self.serial, self.place)
    }

    /// Whether it was observed during the turn, rather than staged.
    pub(super) fn is_turn_event(&self) -> bool {
        self.lane == Lane::Events
    }

    /// The price of telling it, in estimated tokens.
    pub(super) fn price(&self) -> u64 {
        self.parts.iter().map(|part| render::estimate_tokens(&part.body)).sum()
    }

    /// The body and what it tells, for a kind that speaks through the FIFO.
    pub(super) fn into_pending(self) -> (String, SilentEntry) {
        let bodies: Vec<&str> = self.parts.iter().map(|part| part.body.as_str()).collect();
        let body = bodies.join("\n\n");
        (body, self.into_silent().0)
    }

    /// What is told without being said, and what that consumes.
    fn into_silent(self) -> (SilentEntry, Vec<Effect>) {
        let entry = SilentEntry {
            entry_type: self.entry_type,
            key: self.key,
            kind: self.kind,
            fingerprint: self.fingerprint,
            marks: self.marks,
        };
        (entry, self.parts.into_iter().flat_map(|part| part.effects).collect())
    }
}

impl Chosen {
    /// Moves what the conversation holds already, or what rides in the prompt text, out of the
    /// message; it is told by the same commit.
    fn leave_out(&mut self, acknowledged: &[Acknowledged], history: &History) {
        let held = self.candidates.extract_if(.., |candidate| candidate.rides);
        self.silent.extend(held.map(Candidate::into_silent));
        for context in acknowledged {
            let before = self.silent.len();
            let riding = self.candidates.extract_if(.., |one| one.is_meant_by(context));
            self.silent.extend(riding.map(Candidate::into_silent));
            for (_, effects) in &mut self.silent[before..] {
                effects.push(Effect::Take(context.serial));
            }
            if self.silent.len() == before {
                let entry = SilentEntry {
                    entry_type: context.reminder.clone(),
                    key: context.key.clone(),
                    kind: context.reminder.clone(),
                    // What is silent because it is told already stays told as it was.
                    fingerprint: context.fingerprint.clone().unwrap_or_else(|| {
                        let told = history.told(&context.reminder, context.key.as_deref());
                        told.held.unwrap_or_default().to_owned()
                    }),
                    marks: Vec::new(),
                };
                self.silent.push((entry, vec![Effect::Take(context.serial)]));
            }
        }
    }
}
