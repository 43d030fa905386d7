//! When a reminder may speak again: policies are data, and this is the one place that enforces
//! them (`reminders.md` §1, `configuration.md` "Policies").

use std::fmt;

use serde::{Deserialize, Serialize};

/// What spacing is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// Ended turns.
    Turns,
    /// Committed WAITs, tool loops included.
    Requests,
    /// Turns whose first WAIT was committed.
    Prompts,
}

impl Unit {
    const fn name(self) -> &'static str {
        match self {
            Self::Turns => "turn",
            Self::Requests => "request",
            Self::Prompts => "prompt",
        }
    }
}

/// A number of turns, requests or prompts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// Counted in.
    pub unit: Unit,
    /// How many; at least 1.
    pub count: u64,
}

impl Span {
    /// `count` turns.
    pub const fn turns(count: u64) -> Self {
        Self { unit: Unit::Turns, count }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.count == 1 { "" } else { "s" };
        write!(f, "{} {}{plural}", self.count, self.unit.name())
    }
}

/// Where a scope stands, or stood when something was told: ordinals from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Ordinals {
    /// The turn: ended turns + 1.
    pub turn: u64,
    /// The request: committed WAITs + 1 while one is being prepared.
    pub request: u64,
    /// The prompt: turns whose first WAIT was committed, this one counted in.
    pub prompt: u64,
}

impl Ordinals {
    /// The ordinal in one unit.
    pub const fn of(&self, unit: Unit) -> u64 {
        match unit {
            Unit::Turns => self.turn,
            Unit::Requests => self.request,
            Unit::Prompts => self.prompt,
        }
    }
}

/// What makes a reminder due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Trigger {
    /// Whenever it has something to say.
    Always,
    /// Once for each key.
    Once,
    /// When the fingerprint differs from the last told one of its key.
    OnChange,
    /// When this much has passed since it was last told, whatever history still holds.
    Every(Span),
    /// When one of the speech's marks was never told; each mark once.
    Threshold,
}

/// Whether a telling that history has lost counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rearm {
    /// It does not: what was dropped is told again.
    #[default]
    Dropped,
    /// It does: told once is told for good.
    Never,
}

/// When a reminder may speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// What makes it due.
    pub trigger: Trigger,
    /// Whether a telling that history has lost counts.
    pub rearm: Rearm,
    /// The least distance between two tellings, whatever history still holds.
    pub cooldown: Option<Span>,
    /// The most tellings in one turn.
    pub max_per_turn: Option<u64>,
    /// The most tellings in the scope's life.
    pub max_per_session: Option<u64>,
}

impl Policy {
    /// A policy with nothing beside its trigger.
    pub const fn new(trigger: Trigger) -> Self {
        Self {
            trigger,
            rearm: Rearm::Dropped,
            cooldown: None,
            max_per_turn: None,
            max_per_session: None,
        }
    }

    /// The same policy, told once for good.
    #[must_use]
    pub const fn never_again(mut self) -> Self {
        self.rearm = Rearm::Never;
        self
    }

    /// The same policy with a least distance between tellings.
    #[must_use]
    pub const fn cooling(mut self, span: Span) -> Self {
        self.cooldown = Some(span);
        self
    }

    /// Whether the reminder may speak at all now, before anything is asked of it: spacing and
    /// caps, which look at its last telling only.
    pub fn gate(&self, now: Ordinals, spoken: Spoken) -> Result<(), Withheld> {
        let spacings = [self.cooldown, self.spacing()];
        for span in spacings.into_iter().flatten() {
            let Some(last) = spoken.last else { continue };
            let passed = now.of(span.unit).saturating_sub(last.of(span.unit));
            if passed < span.count {
                return Err(Withheld::Spaced { span, passed });
            }
        }
        if let Some(most) = self.max_per_turn
            && spoken.in_turn >= most
        {
            return Err(Withheld::TurnCap { most });
        }
        if let Some(most) = self.max_per_session
            && spoken.in_session >= most
        {
            return Err(Withheld::SessionCap { most });
        }
        Ok(())
    }

    /// Whether this speech of the reminder is due, given what its key was told before.
    pub fn due(&self, told: Told<'_>, fingerprint: &str, marks: &[String]) -> Result<(), Withheld> {
        let counted = match self.rearm {
            Rearm::Dropped => told.held,
            Rearm::Never => told.newest,
        };
        match self.trigger {
            Trigger::Always | Trigger::Every(_) => Ok(()),
            Trigger::Once if counted.is_some() => Err(Withheld::Told),
            Trigger::OnChange if counted == Some(fingerprint) => Err(Withheld::Unchanged),
            Trigger::Once | Trigger::OnChange => Ok(()),
            Trigger::Threshold => {
                if marks.iter().any(|mark| !told.has_mark(mark)) {
                    Ok(())
                } else {
                    Err(Withheld::Told)
                }
            }
        }
    }

    fn spacing(&self) -> Option<Span> {
        match self.trigger {
            Trigger::Every(span) => Some(span),
            _ => None,
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.trigger {
            Trigger::Always => f.write_str("always")?,
            Trigger::Once => f.write_str("once")?,
            Trigger::OnChange => f.write_str("onChange")?,
            Trigger::Every(span) => write!(f, "every {span}")?,
            Trigger::Threshold => f.write_str("threshold")?,
        }
        if self.rearm == Rearm::Never {
            f.write_str(", rearm never")?;
        }
        if let Some(span) = self.cooldown {
            write!(f, ", cooldown {span}")?;
        }
        if let Some(most) = self.max_per_turn {
            write!(f, ", at most {most} a turn")?;
        }
        if let Some(most) = self.max_per_session {
            write!(f, ", at most {most} a session")?;
        }
        Ok(())
    }
}

/// How often and when a reminder spoke, all keys together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spoken {
    /// Where the scope stood at its last telling.
    pub last: Option<Ordinals>,
    /// Tellings in the open turn.
    pub in_turn: u64,
    /// Tellings in the scope's life.
    pub in_session: u64,
}

/// What one key of a reminder was told before.
#[derive(Clone, Copy, Debug, Default)]
pub struct Told<'a> {
    /// The fingerprint of the newest telling that history still holds.
    pub held: Option<&'a str>,
    /// The fingerprint of the newest telling, held or not.
    pub newest: Option<&'a str>,
    /// Every mark that was told.
    pub marks: Option<&'a std::collections::BTreeSet<String>>,
}

impl Told<'_> {
    fn has_mark(&self, mark: &str) -> bool {
        self.marks.is_some_and(|marks| marks.contains(mark))
    }
}

/// Why a policy keeps a reminder silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Withheld {
    /// Told not long enough ago.
    Spaced {
        /// What must lie between.
        span: Span,
        /// What has passed.
        passed: u64,
    },
    /// Spoke as often in this turn as it may.
    TurnCap {
        /// The cap.
        most: u64,
    },
    /// Spoke as often in this session as it may.
    SessionCap {
        /// The cap.
        most: u64,
    },
    /// Told, and once is enough.
    Told,
    /// Told, and nothing has changed since.
    Unchanged,
}

impl Withheld {
    /// When it can next speak, in a few words.
    pub fn next(self) -> String {
        match self {
            Self::Spaced { span, passed } => {
                format!("in {}", Span { count: span.count - passed, ..span })
            }
            Self::TurnCap { .. } => "in the next turn".to_owned(),
            Self::SessionCap { .. } => "never again in this session".to_owned(),
            Self::Told => "when history has lost it".to_owned(),
            Self::Unchanged => "when it changes".to_owned(),
        }
    }
}

impl fmt::Display for Withheld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Spaced { span, passed } => {
                let passed = Span { count: *passed, ..*span };
                write!(f, "told {passed} ago, and {span} must lie between")
            }
            Self::TurnCap { most } => write!(f, "spoke {most} times in this turn, its cap"),
            Self::SessionCap { most } => write!(f, "spoke {most} times in this session, its cap"),
            Self::Told => f.write_str("was told already"),
            Self::Unchanged => f.write_str("is unchanged since it was told"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(turn: u64, request: u64) -> Ordinals {
        Ordinals { turn, request, prompt: turn }
    }

    #[test]
    fn every_four_turns_told_in_turn_one_is_told_again_in_turn_five() {
        let policy = Policy::new(Trigger::Every(Span::turns(4)));
        let spoken = Spoken { last: Some(at(1, 1)), in_turn: 1, in_session: 1 };
        assert!(policy.gate(at(4, 9), spoken).is_err());
        assert!(policy.gate(at(5, 10), spoken).is_ok());
        assert!(policy.gate(at(1, 1), Spoken::default()).is_ok(), "never told is elapsed");
    }

    #[test]
    fn a_lost_telling_counts_only_when_it_is_never_rearmed() {
        let told = Told { held: None, newest: Some("f"), marks: None };
        let once = Policy::new(Trigger::Once);
        assert!(once.due(told, "f", &[]).is_ok());
        assert_eq!(once.never_again().due(told, "f", &[]), Err(Withheld::Told));
        let on_change = Policy::new(Trigger::OnChange);
        assert!(on_change.due(told, "f", &[]).is_ok());
        assert_eq!(on_change.never_again().due(told, "f", &[]), Err(Withheld::Unchanged));
        assert!(on_change.never_again().due(told, "g", &[]).is_ok());
    }

    #[test]
    fn reasons_carry_their_numbers() {
        let withheld = Withheld::Spaced { span: Span::turns(8), passed: 5 };
        assert_eq!(withheld.to_string(), "told 5 turns ago, and 8 turns must lie between");
        assert_eq!(withheld.next(), "in 3 turns");
    }
}
