//! Which problems are new. Two lists are compared as multisets of severity, code, source and
//! message; where the lines of a text went decides which of several equal ones are meant
//! (`reminders.md` §6).

use std::cmp::Ordering;

/// Where a problem is to be looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// On this line and no other: the text between is known, and the line is unchanged.
    Fixed,
    /// Rather on this line, but anywhere else too: the line was changed, or nobody knows.
    Loose,
}

/// A problem as far as it is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// Severity, code, source and message in one.
    pub identity: u128,
    /// The line, from 0, in the text as it is now.
    pub line: u32,
    /// The UTF-16 code unit in the line, from 0.
    pub character: u32,
    /// How surely it is there. Of no meaning in the present list.
    pub hold: Hold,
}

impl Placed {
    fn place(&self) -> (u128, u32, u32) {
        (self.identity, self.line, self.character)
    }

    fn same_line(&self) -> (u128, u32) {
        (self.identity, self.line)
    }
}

/// What became of the members of two lists, by their indices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compared {
    /// Whether each problem of the present list was there before.
    pub before: Vec<bool>,
    /// Whether each problem of the former list is gone.
    pub gone: Vec<bool>,
}

/// Compares the list that was with the one that is.
pub fn compare(former: &[Placed], present: &[Placed]) -> Compared {
    let mut left_former = sorted(former);
    let mut left_present = sorted(present);
    let mut found = Compared { before: vec![false; present.len()], gone: vec![true; former.len()] };
    let pairs = [
        pair(&mut left_former, &mut left_present, |one, other| {
            former[one].place().cmp(&present[other].place())
        }),
        pair(&mut left_former, &mut left_present, |one, other| {
            former[one].same_line().cmp(&present[other].same_line())
        }),
        {
            left_former.retain(|index| former[*index].hold == Hold::Loose);
            pair(&mut left_former, &mut left_present, |one, other| {
                former[one].identity.cmp(&present[other].identity)
            })
        },
    ];
    for (one, other) in pairs.into_iter().flatten() {
        found.gone[one] = false;
        found.before[other] = true;
    }
    found
}

fn sorted(list: &[Placed]) -> Vec<usize> {
    let mut indices: Vec<_> = (0..list.len()).collect();
    indices.sort_by_key(|index| list[*index].place());
    indices
}

/// Pairs equal members of two sorted lists, each once, and takes them out.
fn pair(
    former: &mut Vec<usize>,
    present: &mut Vec<usize>,
    order: impl Fn(usize, usize) -> Ordering,
) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    let (mut left_former, mut left_present) = (Vec::new(), Vec::new());
    let (mut ones, mut others) = (former.iter().peekable(), present.iter().peekable());
    while let (Some(one), Some(other)) = (ones.peek(), others.peek()) {
        match order(**one, **other) {
            Ordering::Less => left_former.extend(ones.next()),
            Ordering::Greater => left_present.extend(others.next()),
            Ordering::Equal => {
                pairs.push((**one, **other));
                ones.next();
                others.next();
            }
        }
    }
    left_former.extend(ones);
    left_present.extend(others);
    (*former, *present) = (left_former, left_present);
    pairs
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::diagnostics::moves::{Changes, LineEdit, Moved};

    fn placed(list: &[(u8, u8)], hold: Hold) -> Vec<Placed> {
        let place = |(identity, line): &(u8, u8)| Placed {
            identity: u128::from(*identity),
            line: u32::from(*line),
            character: 0,
            hold,
        };
        list.iter().map(place).collect()
    }

    fn before(former: &[(u8, u8)], hold: Hold, present: &[(u8, u8)]) -> Vec<bool> {
        compare(&placed(former, hold), &placed(present, Hold::Loose)).before
    }

    #[test]
    fn positions_say_which_of_several_equal_ones_is_new() {
        for hold in [Hold::Fixed, Hold::Loose] {
            assert_eq!(
                before(&[(1, 3), (1, 9)], hold, &[(1, 3), (1, 5), (1, 9)]),
                [true, false, true]
            );
        }
    }

    #[test]
    fn a_problem_that_left_its_line_is_another_one_when_the_text_is_known() {
        assert_eq!(before(&[(1, 3)], Hold::Fixed, &[(1, 7)]), [false]);
        assert_eq!(before(&[(1, 3)], Hold::Loose, &[(1, 7)]), [true]);
    }

    #[test]
    fn another_message_is_another_problem() {
        assert_eq!(before(&[(1, 3)], Hold::Loose, &[(2, 3)]), [false]);
    }

    fn lists() -> impl Strategy<Value = Vec<(u8, u8)>> {
        prop::collection::vec((0_u8..4, 0_u8..12), 0..12)
    }

    fn edits() -> impl Strategy<Value = Vec<LineEdit>> {
        let edit = (0_u32..12, 0_u32..4, 0_u32..4)
            .prop_map(|(start, removed, inserted)| LineEdit { start, removed, inserted });
        prop::collection::vec(edit, 0..4)
    }

    /// A former list in the text as it is after the edits.
    fn followed(list: &[(u8, u8)], edits: Vec<LineEdit>) -> Vec<Placed> {
        let mut changes = Changes::default();
        changes.push(None, Some(edits));
        let mut placed = placed(list, Hold::Fixed);
        for problem in &mut placed {
            match changes.follow(0, problem.line) {
                Moved::To(line) => problem.line = line,
                Moved::Changed | Moved::Unknown => problem.hold = Hold::Loose,
            }
        }
        placed
    }

    proptest! {
        /// New and pre-existing are the present list, and nothing is both: each member of it is one
        /// or the other, and as many are pre-existing as former ones are not gone.
        #[test]
        fn every_problem_is_either_new_or_was_there_before(
            former in lists(), present in lists(), edits in edits()
        ) {
            let (former, present) = (followed(&former, edits), placed(&present, Hold::Loose));
            let compared = compare(&former, &present);
            prop_assert_eq!(compared.before.len(), present.len());
            let kept = compared.gone.iter().filter(|gone| !**gone).count();
            let old = compared.before.iter().filter(|before| **before).count();
            prop_assert_eq!(kept, old);
            for identity in 0..4 {
                let of = |list: &[Placed], flags: &[bool], flag| {
                    let both = list.iter().zip(flags);
                    both.filter(|(one, is)| one.identity == identity && **is == flag).count()
                };
                // Kept and pre-existing ones are paired one to one within what is the same.
                prop_assert_eq!(
                    of(&former, &compared.gone, false),
                    of(&present, &compared.before, true)
                );
            }
        }

        /// Shifting lines alone makes nothing new, and nothing is gone.
        #[test]
        fn shifted_lines_are_not_new(list in lists(), at in 0_u32..12, by in 0_u32..9) {
            let edit = LineEdit { start: at, removed: 0, inserted: by };
            let former = followed(&list, vec![edit]);
            let shifted: Vec<_> = list
                .iter()
                .map(|(identity, line)| {
                    let line = u32::from(*line);
                    let line = if line < at { line } else { line + by };
                    (*identity, u8::try_from(line).unwrap())
                })
                .collect();
            let compared = compare(&former, &placed(&shifted, Hold::Loose));
            prop_assert!(compared.before.iter().all(|before| *before));
            prop_assert!(compared.gone.iter().all(|gone| !gone));
        }

        /// A list compared with itself has nothing new.
        #[test]
        fn the_same_list_has_nothing_new(list in lists()) {
            for hold in [Hold::Fixed, Hold::Loose] {
                let same = placed(&list, hold);
                prop_assert!(compare(&same, &same).before.iter().all(|before| *before));
            }
        }
    }
}
