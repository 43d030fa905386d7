//! Laws 1, 2, 3, 11 and 12: the engine and the model agree at every step of any sequence, and the
//! laws hold of whatever state it ends in.

use std::collections::BTreeSet;

use crate::law;
use crate::operation::{Choice, Operation, Script, script};
use crate::world::{Outcome, World, bodies_of, ensure};

/// Operations of one case.
const LENGTH: usize = 60;

fn silent() -> Vec<Option<u8>> {
    vec![None; 6]
}

/// Law 1: `wait; release; wait` gives the entries of one `wait`, plus what arrived between.
fn replays(world: &mut World, scope: u8) -> Outcome {
    let Some((token, first)) = world.wait(scope, None, 1, None, Some(&silent()))? else {
        return Err("a WAIT was refused".to_owned());
    };
    world.release(token)?;
    let Some((token, second)) = world.wait(scope, None, 1, None, Some(&silent()))? else {
        return Err("a WAIT was refused".to_owned());
    };
    world.release(token)?;
    ensure!(bodies_of(&first) == bodies_of(&second), "a released WAIT is not given again");
    world.step(&Operation::Observe { scope, key: 9 })?;
    let Some((token, third)) = world.wait(scope, None, 1, None, Some(&silent()))? else {
        return Err("a WAIT was refused".to_owned());
    };
    world.release(token)?;
    let mut bodies = bodies_of(&third);
    if third
        .record
        .as_ref()
        .is_some_and(|record| record.entries.iter().any(|e| e.key.as_deref() == Some("k9")))
    {
        bodies.pop();
    }
    ensure!(bodies_of(&second) == bodies, "what came between changes more than itself");
    Ok(())
}

/// Law 2: `wait; commit; wait` with nothing between gives nothing, except what counts requests.
fn falls_silent(world: &mut World, scope: u8) -> Outcome {
    // The return from a mode that held for one request only is told behind it.
    let ends_first = world.model.is_overridden() && scope == 0;
    let corrects = world.model.is_acknowledged(scope);
    for _ in 0..=u8::from(ends_first) + u8::from(corrects) {
        world.step(&Operation::Deliver { scope, answers: silent() })?;
    }
    let Some((token, again)) = world.wait(scope, None, 1, None, Some(&silent()))? else {
        return Err("a WAIT was refused".to_owned());
    };
    world.release(token)?;
    let may = world.model.speaks_every_request(scope);
    for entry in again.record.iter().flat_map(|record| &record.entries) {
        ensure!(may.contains(&entry.entry_type), "{entry:?} is told again at once");
    }
    Ok(())
}

/// Law 3, without the model: what was queued once is in history at most once, in all its turns.
fn told_once(world: &World) -> Outcome {
    let mut told = BTreeSet::new();
    let queued = ["pending-events", "staged", "turn-event"];
    for entry in world.told().flat_map(|record| &record.entries) {
        if queued.contains(&entry.kind.as_str()) {
            for body in entry.body.split("\n\n") {
                ensure!(told.insert(body.to_owned()), "{body:?} is told twice");
            }
        }
    }
    Ok(())
}

pub fn holds(script: &Script) -> Outcome {
    let mut world = World::run(script)?;
    for scope in 0..4 {
        if world.make_ready(scope)? {
            let at_end = |why| format!("at the end, scope {scope}: {why}");
            replays(&mut world, scope).map_err(at_end)?;
            falls_silent(&mut world, scope).map_err(at_end)?;
        }
    }
    told_once(&world)
}

#[test]
fn the_engine_does_what_the_model_does() {
    law("tests/laws/regressions/sequences.txt", crate::SEQUENCES, &script(LENGTH), holds);
}

/// Law 12: the same operations twice give the same bytes.
#[test]
fn the_same_operations_give_the_same_bytes() {
    law("tests/laws/regressions/determinism.txt", 32, &script(LENGTH), |script| {
        let run = || World::run(script).map(|world| (world.transcript, world.ledger));
        ensure!(run()? == run()?, "two runs differ");
        Ok(())
    });
}

/// A case by hand.
pub fn case(profile: reminderd::engine::Profile, operations: Vec<Operation>) -> Outcome {
    holds(&Script { profile, late_receipts: false, operations })
}

#[test]
fn a_partial_commit_tells_what_it_names() {
    let deliver = |token, entries| Operation::Commit { token, entries };
    case(
        reminderd::engine::Profile::Staged,
        vec![
            Operation::BeginTurn { scope: 0, used: false },
            Operation::Enqueue,
            Operation::Observe { scope: 0, key: 0 },
            Operation::Wait { scope: 0, waiter: 1, answers: silent() },
            deliver(0, Choice::Some(1)),
            deliver(0, Choice::All),
            Operation::Wait { scope: 0, waiter: 1, answers: silent() },
        ],
    )
    .expect("the law holds");
}
