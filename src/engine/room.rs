//! What fits into one message: the size that the client and its host allow, and the budgets in
//! tokens. Whole bodies fit or wait; none is ever cut. Where not everything fits, the higher
//! priority is kept first, then what stands earlier in the message.

use std::cmp::Reverse;
use std::fmt;

use super::configuration::Budget;
use super::delivery::Candidate;
use super::event::Limit;
use super::record::Entry;
use super::render::{self, Form, Size};
use super::token::Offered;

/// Why something waits for a later message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Full {
    /// It is larger than what the client or its host allows.
    Limit,
    /// It costs more than the budget of a WAIT leaves.
    PerWait(Cost),
    /// It costs more than the budget of a session leaves.
    PerSession(Cost),
}

/// A price and what is left for it, in estimated tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cost {
    tokens: u64,
    left: u64,
    budget: u64,
}

impl Full {
    /// The word for it on the wire.
    pub(super) const fn reason(self) -> &'static str {
        match self {
            Self::Limit => "limit",
            Self::PerWait(_) | Self::PerSession(_) => "budget",
        }
    }

    /// When it can be told, in a few words.
    pub(super) fn next(self) -> &'static str {
        match self {
            Self::Limit => "when a message has room for it",
            Self::PerWait(cost) if cost.tokens > cost.budget => {
                "when it is shorter, or budget.perWait is raised"
            }
            Self::PerWait(_) => "at a later WAIT",
            Self::PerSession(_) => "when budget.perSession is raised",
        }
    }
}

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Limit => f.write_str("it is larger than the host's messages may be"),
            Self::PerWait(Cost { tokens, budget, .. }) if tokens > budget => {
                write!(f, "it takes {tokens} tokens, more than the {budget} of budget.perWait")
            }
            Self::PerWait(Cost { tokens, left, budget }) => write!(
                f,
                "it takes {tokens} tokens, and what comes before it leaves {left} of the {budget} \
                 of budget.perWait"
            ),
            Self::PerSession(Cost { left: 0, budget, .. }) => {
                write!(f, "the {budget} tokens of budget.perSession are spent")
            }
            Self::PerSession(Cost { tokens, left, budget }) => write!(
                f,
                "it takes {tokens} tokens, and {left} of the {budget} of budget.perSession are left"
            ),
        }
    }
}

/// The room of one message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    form: Form,
    limit: Limit,
    budget: Budget,
    /// What the scope was told before, in estimated tokens.
    spent: u64,
    size: Size,
    /// What the entries cost that are in it.
    tokens: u64,
}

impl Room {
    /// An empty message of a scope that was told this much before.
    pub(super) fn new(form: Form, limit: Limit, budget: Budget, spent: u64) -> Self {
        Self { form, limit, budget, spent, size: Size::default(), tokens: 0 }
    }

    /// Finds out what of these, which are in the order of the message, fits: their entries, and why
    /// the rest of each waits. Answers in the same order.
    pub(super) fn fill(
        &mut self,
        candidates: Vec<Candidate>,
    ) -> Vec<(Option<Offered>, Option<Full>)> {
        let mut order: Vec<_> = (0..candidates.len()).collect();
        order.sort_by_key(|index| Reverse(candidates[*index].priority));
        let mut waiting: Vec<_> = candidates.into_iter().map(Some).collect();
        let mut filled: Vec<_> = waiting.iter().map(|_| (None, None)).collect();
        for index in order {
            if let Some(candidate) = waiting[index].take() {
                filled[index] = self.add(candidate);
            }
        }
        filled
    }

    /// What of a candidate fits beside what is in already, and why the rest waits: of several parts
    /// the leading ones may go alone.
    fn add(&mut self, candidate: Candidate) -> (Option<Offered>, Option<Full>) {
        let first = self.size == Size::default();
        let mut bodies: Vec<String> = Vec::with_capacity(candidate.parts.len());
        let mut effects = Vec::new();
        let mut tells = Vec::new();
        let mut full = None;
        let (mut grown, mut own) = (self.size, Size::default());
        for part in candidate.parts {
            let body = render::neutralise(&part.body).into_owned();
            let joint = if bodies.is_empty() { Size::default() } else { Size::of("\n\n") };
            let costs = own.plus(joint).plus(Size::of(&body));
            let added = if bodies.is_empty() {
                grown.plus(Size::of_body(self.form, &body, first))
            } else {
                grown.plus(joint).plus(Size::of(&body))
            };
            full = self.exceeded(added, costs.tokens());
            if full.is_some() {
                break;
            }
            (grown, own) = (added, costs);
            bodies.push(body);
            effects.extend(part.effects);
            tells.extend(part.tells);
        }
        if bodies.is_empty() {
            return (None, full);
        }
        self.size = grown;
        self.tokens += own.tokens();
        let entry = Entry {
            id: String::new(),
            entry_type: candidate.entry_type,
            key: candidate.key,
            kind: candidate.kind,
            label: render::one_line(&candidate.label).into_owned(),
            body: match <[String; 1]>::try_from(bodies) {
                Ok([only]) => only,
                // Two harmless parts can spell a tag across their joint.
                Err(bodies) => render::neutralise(&bodies.join("\n\n")).into_owned(),
            },
            fingerprint: candidate.fingerprint,
            marks: candidate.marks,
        };
        (Some(Offered { entry, effects, tells }), full)
    }

    /// What keeps a message of this size, with an entry of this price, from being sent.
    fn exceeded(&self, size: Size, tokens: u64) -> Option<Full> {
        let over = |size: u64, limit: Option<u64>| limit.is_some_and(|limit| size > limit);
        if over(size.bytes, self.limit.bytes)
            || over(size.chars, self.limit.chars)
            || over(size.utf16, self.limit.utf16)
            || over(size.tokens(), self.limit.tokens)
        {
            return Some(Full::Limit);
        }
        let cost = |budget: u64, gone: u64| {
            let left = budget.saturating_sub(gone);
            (tokens > left).then_some(Cost { tokens, left, budget })
        };
        let Budget { per_wait, per_session } = self.budget;
        let session = per_session.and_then(|budget| cost(budget, self.spent + self.tokens));
        let wait = per_wait.and_then(|budget| cost(budget, self.tokens));
        session.map(Full::PerSession).or_else(|| wait.map(Full::PerWait))
    }
}
