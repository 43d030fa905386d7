//! Law 10: a record survives its text, and a session that was rebuilt, from its ledger or from the
//! client's records alone, goes on like the one that never stopped.

use std::collections::BTreeMap;

use reminderd::engine::{
    Delivery, Event, Findings, Material, Opening, Profile, Record, ScopePath, Session, Staged,
    WaitRequest,
};

use proptest::prelude::Strategy as _;
use serde_json::Value;

use crate::law;
use crate::operation::{Form, Operation, Policy, Script, Text, Trigger, path, script};
use crate::world::{Outcome, World, ensure, kit, restore};

/// The next WAIT of a scope, its generators answering the same whoever asks.
fn next_wait(session: &mut Session, scope: &ScopePath) -> Outcome<Delivery> {
    let request = WaitRequest { scope: scope.clone(), ..WaitRequest::default() };
    let material = Material { token: "next".to_owned(), record: "next".to_owned() };
    let staged = session.stage(1, &request, material).map_err(|refusal| refusal.to_string())?;
    match staged {
        Staged::Ready(delivery) => Ok(*delivery),
        Staged::Asking { wait, asks, .. } => {
            let answers: BTreeMap<_, _> = asks
                .into_iter()
                .map(|ask| (ask.generator, format!("force {}", ask.force)))
                .collect();
            session
                .finish(1, scope, wait, &answers, &Findings::new())
                .map_err(|refusal| refusal.to_string())
        }
    }
}

/// What a delivery tells, without what a stop makes due, and what does not outlive a process: the
/// FIFO.
fn durable(delivery: &Delivery) -> Vec<(String, Option<String>, String, Vec<String>)> {
    let entries = delivery.record.iter().flat_map(|record| &record.entries);
    entries
        .filter(|entry| !matches!(entry.kind.as_str(), "pending-events" | "recovery"))
        .map(|entry| {
            (entry.entry_type.clone(), entry.key.clone(), entry.body.clone(), entry.marks.clone())
        })
        .collect()
}

fn survives(record: &Record) -> Outcome {
    let text = serde_json::to_string(record).expect("a record is plain data");
    let read: Record = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    ensure!(read == *record, "{record:?} is read as {read:?}");
    ensure!(read.is_whole(kit().digest), "its digest does not fit any more");
    ensure!(read.content() == record.content(), "its message changed");
    let mut bent = read;
    if let Some(entry) = bent.entries.first_mut() {
        entry.body.push('.');
        ensure!(!bent.is_whole(kit().digest), "a changed body goes unnoticed: {bent:?}");
    }
    Ok(())
}

/// Rebuilt from its ledger.
fn goes_on(script: &Script) -> Outcome {
    let mut world = World::run(script)?;
    world.told().try_for_each(survives)?;
    for scope in 0..4 {
        for call in world.model.open_calls(scope) {
            world.step(&Operation::EndCall { scope, call })?;
        }
    }
    let mut restored = world.restored()?;
    for scope in (0..4).filter(|scope| world.model.exists(*scope)) {
        if world.model.is_settled(scope) {
            continue;
        }
        let scope = path(scope);
        // A new turn leaves behind what is a turn's own.
        for session in [&mut world.session, &mut restored] {
            let begun = Event::TurnBegan { turn: "the next".to_owned() };
            session.apply(1, &scope, begun).map_err(|refusal| refusal.to_string())?;
        }
        let known = |session: &Session| {
            let scope = session.scope(&scope).expect("it is there");
            let records = scope.history.records().iter();
            let records: Vec<_> = records.map(|it| (it.record.clone(), it.lost, it.at)).collect();
            (records, scope.requests, scope.prompts, scope.turns_ended)
        };
        ensure!(known(&restored) == known(&world.session), "another history of {scope}");
        let expected = durable(&next_wait(&mut world.session, &scope)?);
        let given = durable(&next_wait(&mut restored, &scope)?);
        ensure!(given == expected, "{scope} is told {given:?}, and without a stop {expected:?}");
    }
    Ok(())
}

#[test]
fn a_session_rebuilt_from_its_ledger_goes_on() {
    law("tests/laws/regressions/ledger.txt", 96, &script(50), goes_on);
}

/// A session's durable state as text, without the number of its last queued item: what does not
/// outlive the process is counted by the live one alone.
fn state_of(session: &Session) -> Value {
    let mut state = serde_json::to_value(session.snapshot()).expect("it is plain data");
    state["snapshot"]["serial"].take();
    state
}

/// Law 3 of the architecture: a replay that begins at a snapshot yields what all lines yield.
fn begins_at_a_snapshot(script: &Script) -> Outcome {
    let world = World::run(script)?;
    let expected = state_of(&world.restored()?);
    for (lines, snapshot) in &world.snapshots {
        let later = &world.ledger[*lines..];
        let given = state_of(&restore(std::iter::once(snapshot).chain(later))?);
        ensure!(given == expected, "from the snapshot after {lines} lines {given}, and {expected}");
    }
    Ok(())
}

#[test]
fn a_replay_may_begin_at_any_snapshot() {
    law("tests/laws/regressions/snapshots.txt", 96, &script(50), begins_at_a_snapshot);
}

/// A commit that the store could not keep leaves nothing behind, and the same commit sent again
/// tells what it would have told.
#[test]
fn a_lost_commit_may_come_again() {
    law("tests/laws/regressions/lost_commits.txt", 96, &script(50), |script| {
        let lost = World::run_stumbling(script)?;
        let kept = World::run(script)?;
        ensure!(lost.ledger == kept.ledger, "other lines: {:?} and {:?}", lost.ledger, kept.ledger);
        Ok(())
    });
}

/// What asks nothing but history: no caps, no spacing, nothing that counts what was lost.
fn asks_history_alone(form: &Form) -> bool {
    let plain = |policy: &Policy| {
        matches!(policy.trigger, Trigger::Once | Trigger::OnChange | Trigger::Always)
            && *policy == Policy::plain(policy.trigger)
    };
    match form {
        Form::Text { policy, body, .. } => {
            policy.as_ref().is_none_or(plain) && matches!(body, Text::Plain(_) | Text::IfFact(_))
        }
        Form::Pool { cooldown, per_session, .. } => cooldown.is_none() && per_session.is_none(),
        Form::Generator { policy } => policy.as_ref().is_none_or(plain),
        Form::Rule(rule) => rule.policy.as_ref().is_none_or(plain) && !rule.touched && !rule.failed,
    }
}

/// What a client says again after it lost the daemon: what it registers and reports.
fn is_said_again(operation: &Operation) -> bool {
    matches!(
        operation,
        Operation::Register { .. } | Operation::Pool { .. } | Operation::Fact { .. }
    )
}

fn is_part_of_it(operation: &Operation) -> bool {
    match operation {
        Operation::Register { form, .. } => asks_history_alone(form),
        Operation::Pool { .. }
        | Operation::Fact { .. }
        | Operation::BeginTurn { .. }
        | Operation::EndTurn { .. }
        | Operation::Wait { .. }
        | Operation::Commit { .. }
        | Operation::Deliver { .. }
        | Operation::Compact { .. }
        | Operation::Rewind { .. }
        | Operation::Report { .. } => true,
        _ => false,
    }
}

/// Rebuilt from what the client's history holds.
fn goes_on_from_records(script: &Script) -> Outcome {
    let mut operations = script.operations.clone();
    operations.retain(|operation| operation.scope().is_none_or(|scope| scope == 0));
    operations.retain(is_part_of_it);
    let declares =
        |operation: &Operation| matches!(operation, Operation::Pool { baseline: true, .. });
    if operations.iter().any(declares) {
        // Registering again gives its own baseline again, and the latest that is given holds.
        operations.retain(|operation| {
            !matches!(
                operation,
                Operation::Register { form: Form::Pool { baseline: Some(_), .. }, .. }
            )
        });
    }
    let script = Script { operations, profile: Profile::Staged, late_receipts: false };
    let mut world = World::run(&script)?;
    // What was declared told is noted by the next request.
    world.make_ready(0)?;
    world.step(&Operation::Deliver { scope: 0, answers: vec![] })?;
    world.step(&Operation::EndTurn { scope: 0, right: true })?;
    let root = world.session.scope(&ScopePath::ROOT).expect("the root is there");
    let held = root.history.records().iter().filter(|delivered| delivered.lost.is_none());
    let held: Vec<_> = held.map(|delivered| delivered.record.clone()).collect();

    let mut again = World::new(Profile::Staged, false);
    let opening = Opening { records: Some(held.clone()), ..Opening::default() };
    let opened = again.session.open(1, opening).map_err(|refusal| refusal.to_string())?;
    ensure!(opened.accepted.len() == held.len(), "not all are accepted: {opened:?}");
    for operation in script.operations.iter().filter(|operation| is_said_again(operation)) {
        let mut operation = operation.clone();
        if let Operation::Pool { baseline, .. } = &mut operation {
            // What was declared told is noted in the records; the client just lists again.
            *baseline = false;
        }
        again.step(&operation)?;
    }
    for world in [&mut world, &mut again] {
        world.step(&Operation::BeginTurn { scope: 0, used: false })?;
    }
    let expected = durable(&next_wait(&mut world.session, &ScopePath::ROOT)?);
    let given = durable(&next_wait(&mut again.session, &ScopePath::ROOT)?);
    ensure!(given == expected, "tells {given:?}, and without a stop {expected:?}");
    Ok(())
}

#[test]
fn a_session_rebuilt_from_the_clients_records_goes_on() {
    let rooted = script(90).prop_map(|script| script);
    law("tests/laws/regressions/records.txt", 96, &rooted, goes_on_from_records);
}
