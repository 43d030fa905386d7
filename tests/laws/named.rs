//! Cases that a law found, shrunk and named: each one tells what went wrong.

use reminderd::engine::{
    Audience, Definition, Event, Form, Kit, Material, Opening, Profile, RefusalKind, ScopePath,
    Session, SettleOutcome, Staged, Switches, Value, WaitRequest, content, neutralise,
};
use reminderd::reminders::Catalogue;
use reminderd::server::digest;

use crate::operation::{
    Choice, Form as Registered, Name, Operation, Script, Setting, StageLane, Text, TextLane,
};
use crate::sequences::{case, holds};

const BEGIN: Operation = Operation::BeginTurn { scope: 0, used: false };

fn deliver(scope: u8) -> Operation {
    Operation::Deliver { scope, answers: vec![None; 6] }
}

fn wait(scope: u8) -> Operation {
    Operation::Wait { scope, waiter: 1, answers: vec![None; 6] }
}

fn text(root: bool, agents: bool) -> Operation {
    let form = Registered::Text { body: Text::Plain(0), policy: None, lane: TextLane::Roster };
    Operation::Register { scope: 0, id: 0, form, root, agents }
}

fn agrees(operations: Vec<Operation>) {
    case(Profile::Staged, operations).unwrap_or_else(|why| panic!("{why}"));
}

/// `explain` said of everything with the name of an acknowledgement that it rides in the prompt
/// text, also where key or fingerprint meant something else and the WAIT told it.
#[test]
fn an_acknowledgement_of_another_state_does_not_silence_an_explanation() {
    agrees(vec![
        Operation::Enqueue,
        BEGIN,
        Operation::Acknowledge { scope: 0, name: Name::Pending, key: None, text: Some(0) },
        deliver(0),
    ]);
}

/// And of a staged entry that rode in the prompt text it said that it would be told.
#[test]
fn an_acknowledged_staged_entry_is_explained_as_riding() {
    agrees(vec![
        BEGIN,
        Operation::Stage { scope: 0, lane: StageLane::Skill, entry_type: 0, key: None },
        Operation::AcknowledgeStaged { scope: 0, entry_type: 0, key: None },
        deliver(0),
    ]);
}

/// What was acknowledged between a WAIT and its commit was neither told by that commit nor left out
/// of the next WAIT: the commit forgot it.
#[test]
fn an_acknowledgement_behind_a_wait_is_told_by_its_commit() {
    agrees(vec![
        BEGIN,
        text(true, false),
        wait(0),
        Operation::Acknowledge { scope: 0, name: Name::Registered(0), key: None, text: None },
        Operation::Commit { token: 0, entries: Choice::None },
        deliver(0),
    ]);
}

/// While a receipt was awaited, the empty WAIT told an acknowledgement that the awaited one was
/// about to tell: it was told twice.
#[test]
fn an_acknowledgement_is_told_once_where_receipts_are_late() {
    let operations = vec![
        BEGIN,
        Operation::Acknowledge { scope: 0, name: Name::Pending, key: None, text: None },
        Operation::Observe { scope: 0, key: 0 },
        wait(0),
        deliver(0),
        Operation::Commit { token: 1, entries: Choice::All },
    ];
    holds(&Script { profile: Profile::Staged, late_receipts: true, operations })
        .unwrap_or_else(|why| panic!("{why}"));
}

/// A session of profile `prompt` has no default roster, and was taken for one that was never opened.
#[test]
fn a_profile_counts_at_the_first_opening_only() {
    let operations = vec![Operation::Reopen { profile: Some(Profile::Staged) }];
    case(Profile::Prompt, operations).unwrap_or_else(|why| panic!("{why}"));
}

/// The record of an agent's former life was gone when its commit came again.
#[test]
fn a_commit_of_an_agents_former_life_answers_the_same_again() {
    agrees(vec![
        Operation::Spawn { agent: 1, cap: Some(1), switch: None },
        Operation::BeginTurn { scope: 1, used: false },
        deliver(1),
        Operation::Settle { agent: 1, succeeded: false },
        Operation::Spawn { agent: 1, cap: None, switch: None },
        Operation::Commit { token: 0, entries: Choice::All },
    ]);
}

/// The records of agents' former lives were kept without bound. Beyond it the oldest go, and the
/// tokens that told them with them: a commit that comes again is never answered as if it had told
/// nothing.
#[test]
fn records_of_former_lives_are_bounded() {
    /// Commits of a life; the bound is 1,024.
    const COMMITS: usize = 600;
    let agent = ScopePath::agent("/a").expect("a path");
    let mut session = Session::new(Kit { registry: &Catalogue, digest }, "s");
    let body = [("body", "text"), ("policy", "always")];
    let reminder = Definition {
        id: "note".to_owned(),
        kind: "standing-text".to_owned(),
        settings: Value::Map(body.map(|(name, text)| (name.to_owned(), text.into())).into()),
        audience: Audience::AGENTS,
    };
    let opening = Opening { reminders: vec![reminder], ..Opening::default() };
    session.open(0, opening).expect("the opening is sound");
    let mut tokens = Vec::new();
    for _ in 0..3 {
        let spawned =
            Event::AgentSpawned { kinds: Switches::default(), max_requests: None, role: None };
        session.apply(0, &agent, spawned).expect("it is not running");
        let begun = Event::TurnBegan { turn: "t".to_owned() };
        session.apply(0, &agent, begun).expect("no turn is open");
        for _ in 0..COMMITS {
            let number = tokens.len();
            let token = format!("{number:032x}.{:016x}", 0);
            let material = Material { token: token.clone(), record: format!("{number:016x}") };
            let request = WaitRequest { scope: agent.clone(), ..WaitRequest::default() };
            let staged = session.stage(0, &request, material).expect("a turn is open");
            assert!(matches!(staged, Staged::Ready(_)));
            session.commit(0, &token, None, None).expect("the token is open");
            session.confirm(&token);
            tokens.push(token);
        }
        let settled = Event::AgentSettled { outcome: SettleOutcome::Succeeded };
        session.apply(0, &agent, settled).expect("it is running");
    }
    let spawned =
        Event::AgentSpawned { kinds: Switches::default(), max_requests: None, role: None };
    session.apply(0, &agent, spawned).expect("it is not running");
    let forgotten = tokens.len() - 1024;
    let again = |session: &mut Session, number: usize| {
        let receipt = session.commit(0, &tokens[number], None, None)?;
        assert!(receipt.already && receipt.record.is_some(), "{receipt:?}");
        Ok(())
    };
    let lines = [session.snapshot()];
    let restored = Session::restore(Kit { registry: &Catalogue, digest }, "s", lines);
    for session in [&mut session, &mut restored.expect("it can be read")] {
        let refused = again(session, forgotten - 1)
            .map_err(|refusal: reminderd::engine::Refusal| refusal.kind);
        assert_eq!(refused, Err(RefusalKind::UnknownToken));
        again(session, forgotten).expect("it is known");
        again(session, tokens.len() - 1).expect("it is known");
    }
}

/// A reminder that was switched off and then registered anew was on for the root and off for every
/// agent spawned since: the old switch was applied again at the spawn.
#[test]
fn a_reminder_registered_anew_is_on_for_agents_too() {
    agrees(vec![
        text(true, true),
        Operation::Configure { scope: 0, name: Name::Registered(0), setting: Setting::Off },
        text(true, true),
        Operation::Spawn { agent: 1, cap: None, switch: None },
        Operation::BeginTurn { scope: 1, used: false },
        deliver(1),
    ]);
}

/// A name that was told, then left by a list that the client declared told, then came back, was
/// taken for the telling before.
#[test]
fn a_name_that_comes_back_behind_a_declared_list_is_told_again() {
    let form = Registered::Pool { pool: 0, baseline: None, cooldown: None, per_session: None };
    let pool =
        |names, baseline| Operation::Pool { scope: 0, pool: 0, names: Some(names), baseline };
    agrees(vec![
        Operation::Register { scope: 0, id: 0, form, root: true, agents: false },
        pool(1, false),
        BEGIN,
        deliver(0),
        pool(0, true),
        pool(1, false),
        deliver(0),
    ]);
}

/// A reminder that had moved to the agents' roster was removed, and the root did not forget what it
/// was told by it.
#[test]
fn a_removed_reminder_is_forgotten_wherever_it_stood() {
    agrees(vec![
        text(true, false),
        BEGIN,
        deliver(0),
        text(false, true),
        Operation::Remove { scope: 0, id: 0 },
        text(true, false),
        deliver(0),
    ]);
}

/// What a session's switch set for agents was lost when it was switched off and on between.
#[test]
fn switching_off_and_on_keeps_what_was_set() {
    let limit = |setting| Operation::Configure { scope: 0, name: Name::Limit, setting };
    agrees(vec![
        limit(Setting::PerTurn(1)),
        limit(Setting::Off),
        limit(Setting::On),
        Operation::Spawn { agent: 1, cap: Some(1), switch: None },
        Operation::BeginTurn { scope: 1, used: false },
        deliver(1),
        deliver(1),
    ]);
}

/// An agent's own switch took the place of what the session had set, instead of going over it.
#[test]
fn an_agents_own_switch_goes_over_the_sessions() {
    agrees(vec![
        Operation::Configure { scope: 0, name: Name::Limit, setting: Setting::PerTurn(1) },
        Operation::Spawn { agent: 1, cap: Some(1), switch: Some((Name::Limit, Setting::On)) },
        Operation::BeginTurn { scope: 1, used: false },
        deliver(1),
        deliver(1),
    ]);
}

/// Of two brackets in a row the first was made harmless, and the second, a look-alike, was left.
#[test]
fn a_look_alike_bracket_behind_another_is_made_harmless() {
    for text in ["<＜system-reminder>", "%3C‹/system-reminder>", "‹〈 system-reminder"] {
        let once = neutralise(text).into_owned();
        assert_eq!(neutralise(&once), once, "{text}");
        assert_eq!(content(Form::Plain, [text]), once);
    }
}

/// The ledger did not say that a stop had ended a turn: a second restart took the turn for open, so
/// that the second stop's recovery was taken for the first one's.
#[test]
fn a_second_stop_makes_another_recovery_due() {
    agrees(vec![BEGIN, Operation::Restart, BEGIN, deliver(0), Operation::Restart]);
}

/// And a session that had used the id of that turn again could not be restored any more.
#[test]
fn an_id_used_again_after_a_stop_can_be_restored() {
    agrees(vec![
        BEGIN,
        Operation::Restart,
        Operation::BeginTurn { scope: 0, used: true },
        Operation::Restart,
    ]);
}

/// A task of another owner with the same id lent its blockers.
#[test]
fn blockers_are_those_of_the_owners_task() {
    let put = |scope, blocked_by| Operation::TaskPut {
        scope,
        task: 0,
        status: 0,
        owner: None,
        blocked_by,
    };
    let stale = Setting::Stale { requests: true, after: 1, cooldown: 1 };
    agrees(vec![
        Operation::Configure { scope: 0, name: Name::Nudge, setting: stale },
        Operation::Spawn { agent: 1, cap: None, switch: None },
        put(0, None),
        put(1, Some(0)),
        BEGIN,
        deliver(0),
        deliver(0),
    ]);
}

/// An acknowledgement, without a state, of what was told already made it tell itself again.
#[test]
fn an_acknowledgement_of_what_is_told_changes_nothing() {
    agrees(vec![
        Operation::Mode { planning: false, overrides: false },
        BEGIN,
        deliver(0),
        Operation::Acknowledge { scope: 0, name: Name::Modes, key: None, text: None },
    ]);
}

/// A look-alike bracket inside a look-alike tag opened another, which was left.
#[test]
fn a_tag_inside_a_tag_is_made_harmless() {
    let once = neutralise("%3Csystem-reminder&#60;system-reminder›").into_owned();
    assert_eq!(neutralise(&once), once);
}
