//! Law 4: what is sent to one agent changes nothing that another, or the root, is told; and what is
//! sent to the root changes nothing that its agents are told, but for what crosses by design:
//! rosters that agents are given a clone of, and the one list of tasks.

use crate::law;
use crate::operation::{Operation, Script, script};
use crate::world::{Outcome, World, ensure};

/// What crosses by design, and what names tokens by their number.
fn crosses(operation: &Operation) -> bool {
    match operation {
        Operation::TaskPut { .. }
        | Operation::TaskRemove { .. }
        | Operation::TasksReplace { .. }
        | Operation::Commit { .. }
        | Operation::Release { .. } => true,
        Operation::Settle { succeeded, .. } => *succeeded,
        _ => false,
    }
}

fn feeds_agents(operation: &Operation) -> bool {
    matches!(
        operation,
        Operation::Register { .. } | Operation::Remove { .. } | Operation::Configure { .. }
    )
}

/// What these scopes are told when the operations of those others are left out, or not.
fn told(script: &Script, to: &[u8], without: impl Fn(&Operation) -> bool) -> Outcome<Vec<String>> {
    let mut world = World::new(script.profile, script.late_receipts);
    for operation in script.operations.iter().filter(|operation| !crosses(operation)) {
        if without(operation) {
            world.skip(operation);
        } else {
            world.step(operation)?;
        }
    }
    let told = world.deliveries.into_iter().filter(|(scope, _)| to.contains(scope));
    Ok(told.map(|(scope, delivery)| format!("{scope} {delivery}")).collect())
}

fn compare(script: &Script, to: &[u8], without: impl Fn(&Operation) -> bool) -> Outcome {
    let with = told(script, to, |_| false)?;
    let without = told(script, to, without)?;
    ensure!(with == without, "told {with:#?}, and without the others' {without:#?}");
    Ok(())
}

fn holds(script: &Script) -> Outcome {
    let of = |scopes: &'static [u8]| {
        move |operation: &Operation| operation.scope().is_some_and(|scope| scopes.contains(&scope))
    };
    compare(script, &[0, 2], of(&[1, 3])).map_err(|why| format!("without /a and /a/c: {why}"))?;
    compare(script, &[0, 1, 3], of(&[2])).map_err(|why| format!("without /b: {why}"))?;
    compare(script, &[1, 2, 3], |operation| {
        operation.scope() == Some(0) && !feeds_agents(operation)
    })
    .map_err(|why| format!("without the root: {why}"))
}

#[test]
fn scopes_do_not_hear_of_each_other() {
    law("tests/laws/regressions/isolation.txt", 64, &script(60), holds);
}
