//! A session as the store knows it: what was told. The store has no line for what stayed silent, and
//! forgets when a turn began once it is over.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use super::page::{Outcome, Reminder, Report, Source, Wait};
use crate::cli::asking::Known;
use crate::engine::{Commit, Millis, Record};
use crate::store::Archive;

/// What was told in a session.
pub fn told(archive: &Archive, known: &Known, made: Millis) -> Result<Report, String> {
    let mut waits = Vec::new();
    let looked = archive.behind(i64::MIN, Some(&known.session), |told| {
        waits.push(wait(told.commit));
        ControlFlow::Continue(())
    });
    looked.map_err(|error| error.to_string())?;
    fill_turns(&mut waits);
    Ok(Report {
        version: env!("CARGO_PKG_VERSION"),
        made,
        session: known.session.clone(),
        root: known.root.clone(),
        source: Source::Store,
        waits,
        explanations: Vec::new(),
    })
}

fn wait(commit: Commit) -> Wait {
    let Commit { at, scope, record, placement, .. } = commit;
    let mut wait = Wait {
        at,
        agent: scope.as_str().to_owned(),
        turn: None,
        phase: None,
        outcome: Outcome::Committed,
        placement,
        record: None,
        entries: Vec::new(),
        held: Vec::new(),
        rows: None,
    };
    if let Some(Record { id, turn, phase, entries, .. }) = record {
        wait.turn = Some(turn);
        wait.phase = Some(phase.name().to_owned());
        wait.record = Some(id);
        wait.entries = entries.into_iter().map(Reminder::from).collect();
    }
    wait
}

/// A commit that told nothing does not name its turn: it is known where those before and behind it
/// on the same scope are of one turn.
fn fill_turns(waits: &mut [Wait]) {
    let mut last: BTreeMap<String, usize> = BTreeMap::new();
    for place in 0..waits.len() {
        if waits[place].turn.is_none() {
            continue;
        }
        let agent = waits[place].agent.clone();
        if let Some(before) = last.insert(agent.clone(), place)
            && waits[before].turn == waits[place].turn
        {
            let turn = waits[place].turn.clone();
            let between = &mut waits[before + 1..place];
            between
                .iter_mut()
                .filter(|wait| wait.agent == agent)
                .for_each(|wait| wait.turn.clone_from(&turn));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::ScopePath;

    #[test]
    fn a_turn_is_filled_in_where_both_sides_agree() {
        let make = |(agent, turn): (&str, Option<&str>)| {
            let scope = match agent {
                "" => ScopePath::default(),
                agent => ScopePath::agent(agent).expect("a path"),
            };
            let mut wait = wait(Commit {
                at: 0,
                scope,
                token: String::new(),
                record: None,
                held: Vec::new(),
                placement: None,
                effects: Vec::new(),
            });
            wait.turn = turn.map(str::to_owned);
            wait
        };
        let mut waits: Vec<_> = [
            ("", None),
            ("", Some("1")),
            ("", None),
            ("/a", None),
            ("", Some("1")),
            ("", None),
            ("", Some("2")),
            ("/a", Some("1")),
        ]
        .map(make)
        .into();
        fill_turns(&mut waits);
        let turns: Vec<_> = waits.iter().map(|wait| wait.turn.as_deref()).collect();
        assert_eq!(
            turns,
            [None, Some("1"), Some("1"), None, Some("1"), None, Some("2"), Some("1")]
        );
    }
}
