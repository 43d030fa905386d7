//! Contents that stood in files which must not be shown. Where one of them turns up under another
//! name, as after a rename, it is not shown there either (`reminders.md` §5).

use std::collections::{HashSet, VecDeque};

use crate::engine::{FileState, Fingerprint};

/// The most contents that are remembered, the latest.
const CONTENTS_MAX: usize = 10_000;

/// What must not be shown under any name.
#[derive(Default)]
pub(super) struct Withheld {
    fingerprints: HashSet<Fingerprint>,
    order: VecDeque<Fingerprint>,
}

impl Withheld {
    /// This stood in a file that must not be shown. An empty file has nothing to hide.
    pub fn add(&mut self, state: &FileState) {
        let FileState::File { fingerprint, bytes: 1.. } = state else { return };
        if !self.fingerprints.insert(*fingerprint) {
            return;
        }
        self.order.push_back(*fingerprint);
        if self.order.len() > CONTENTS_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.fingerprints.remove(&oldest);
        }
    }

    /// Whether it did.
    pub fn has(&self, state: &FileState) -> bool {
        matches!(state, FileState::File { fingerprint, .. }
            if self.fingerprints.contains(fingerprint))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_are_remembered() {
        let state = |number: usize, bytes| {
            let mut fingerprint = [0; 32];
            fingerprint[..8].copy_from_slice(&number.to_be_bytes());
            FileState::File { fingerprint: Fingerprint(fingerprint), bytes }
        };
        let mut withheld = Withheld::default();
        (0..=CONTENTS_MAX).for_each(|number| withheld.add(&state(number, 1)));
        withheld.add(&state(CONTENTS_MAX, 1));
        withheld.add(&state(CONTENTS_MAX + 1, 0));
        let kept = [0, 1, CONTENTS_MAX, CONTENTS_MAX + 1].map(|it| withheld.has(&state(it, 1)));
        assert_eq!(kept, [false, true, true, false]);
        assert_eq!(withheld.order.len(), CONTENTS_MAX);
    }
}
