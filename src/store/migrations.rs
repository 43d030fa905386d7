//! The shape of the file, which only grows: a step that was released is never changed, and a file
//! that went further than this build knows is refused.

use rusqlite::{Connection, TransactionBehavior};

/// Says that the file is ours: "rmdr".
pub const APPLICATION_ID: u64 = 0x726d_6472;

/// The steps; `PRAGMA user_version` counts those that were taken.
const STEPS: &[&str] = &[include_str!("migrations/1.sql")];

/// How many steps this build knows.
pub const VERSION: usize = STEPS.len();

/// Takes the steps that are left. Several processes may try at once.
pub fn migrate(connection: &mut Connection) -> rusqlite::Result<()> {
    let taken: usize = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if taken >= VERSION {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let taken: usize = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    for step in STEPS.iter().skip(taken) {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.commit()
}
