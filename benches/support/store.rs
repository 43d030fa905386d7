//! What keeping costs: commits that are grouped, and a start beside many stored sessions.

use std::path::Path;
use std::slice;
use std::time::{Duration, Instant};

use reminderd::engine::{Commit, Line, ScopePath};
use reminderd::store::{Options, SqliteStore, Store as _, Ticket, When};

use super::client::Client;
use super::measure::{medians_in_turns, time};
use super::table::{self, Figure, Target};

/// Commits of 64 sessions at once, as the store groups them, against as many one after the other,
/// each a transaction of its own.
pub fn durable_commits(body: &str) {
    const SESSIONS: u32 = 64;
    const ROUNDS: usize = 21;
    let directory = tempfile::tempdir().expect("a directory");
    let store = SqliteStore::open(directory.path(), Options::default()).expect("it opens");
    let commit = Line::Committed(Commit {
        at: 0,
        scope: ScopePath::ROOT,
        token: "0".repeat(32),
        record: None,
        held: vec![body.to_owned()],
        placement: None,
        effects: Vec::new(),
    });
    let commit = slice::from_ref(&commit);
    let kept = |ticket: &Ticket| ticket.wait_here(Duration::from_secs(10)).expect("it is kept");
    let leases: Vec<_> = (0..SESSIONS)
        .map(|number| {
            let (lease, appended) = store.acquire(&number.to_string(), 0, None, commit);
            kept(&appended.ticket);
            lease
        })
        .collect();
    let (together, alone) = medians_in_turns(
        ROUNDS,
        || {
            time(|| {
                let append = |lease| store.append(lease, commit, When::Now).ticket;
                let tickets: Vec<_> = leases.iter().map(append).collect();
                tickets.iter().for_each(kept);
            })
        },
        || {
            time(|| {
                for lease in &leases {
                    kept(&store.append(lease, commit, When::Now).ticket);
                }
            })
        },
    );
    let rate = |time: Duration| Figure::Rate(f64::from(SESSIONS) / time.as_secs_f64());
    let against = ("one transaction a commit", rate(alone));
    let what = "durable commits a second, 64 sessions";
    table::row(what, rate(together), Some(against), &Target::AtLeast(4.0));
}

/// From the start of the process to the reply to `initialize`, with ten thousand stored sessions of
/// this state.
pub fn start(snapshot: &Line) {
    const STORED: usize = 10_000;
    const STARTS: usize = 31;
    let (none, many) = (tempfile::tempdir(), tempfile::tempdir());
    let (none, many) = (none.expect("a directory"), many.expect("a directory"));
    {
        let store = SqliteStore::open(many.path(), Options::default()).expect("it opens");
        for number in 0..STORED {
            store.acquire(&number.to_string(), 0, None, slice::from_ref(snapshot));
        }
        store.flush().wait_here(Duration::from_secs(60)).expect("they are kept");
    }
    let start = |state: &Path| {
        let begun = Instant::now();
        let daemon = Client::keeping(state);
        let started = begun.elapsed();
        daemon.end();
        started
    };
    let (figure, floor) = medians_in_turns(STARTS, || start(many.path()), || start(none.path()));
    let against = ("with none stored", Figure::Time(floor));
    let what = "start to initialize, 10,000 stored sessions";
    table::row(what, Figure::Time(figure), Some(against), &Target::AtMost(1.2));
}
