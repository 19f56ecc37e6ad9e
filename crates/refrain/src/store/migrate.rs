//! Brings the tables of a store, and of the ledger in it, to the schema that this release knows.
//!
//! A breaking migration waits until no worker of an older release is alive: such a worker checked the schema when it opened the
//! store, and does not check it again.

use refrain_core::terminal::harmless;

use super::{Result, StoreError, catalog, with_retries};
use crate::database::schema::{Compatibility, Schema};
use crate::database::{Database, Transaction};
use crate::process::{self, Process};
use crate::schemas::{LEDGER, MIGRATION_HOLD, MIGRATION_LATEST, MIGRATION_SHARE, STORE};

/// Since this schema, workers record the schema that they know.
const WORKERS_RECORD_THEIRS: i32 = 5;

/// Makes the tables, or brings them up to date. Returns the names of the migrations that were applied.
pub(crate) async fn migrate(database: &Database) -> Result<Vec<&'static str>> {
    let mut applied = Vec::new();
    // A store's own database is a destination like any other: units of jobs that write nowhere else are recorded here.
    for schema in [&STORE, &LEDGER] {
        if database.is_sqlite() && schema.compatibility(database).await? == Compatibility::Usable {
            continue;
        }
        applied.extend(with_retries(|| pending(schema, database)).await?);
    }
    Ok(applied)
}

async fn pending(schema: &'static Schema, database: &Database) -> Result<Vec<&'static str>> {
    let mut transaction = schema.begin(database).await?;
    let found = match schema.compared(&mut transaction).await? {
        Compatibility::Older { found } => found,
        Compatibility::Missing => 0,
        Compatibility::Usable => return Ok(Vec::new()),
        newer @ Compatibility::Newer { .. } => return refused(schema, newer).map(|()| Vec::new()),
    };
    if found > 0 {
        let _: Vec<(i32,)> = transaction.fetch_all(MIGRATION_HOLD.bound()).await?;
        no_older_worker(&mut transaction).await?;
    }
    Ok(schema.apply(transaction, found).await?)
}

/// Refuses if a worker is alive that cannot use the tables that this release leaves.
pub(crate) async fn no_older_worker(transaction: &mut Transaction) -> Result<()> {
    let latest: Option<(i32,)> = transaction.fetch_optional(MIGRATION_LATEST.bound()).await?;
    let older = match latest {
        Some((WORKERS_RECORD_THEIRS..,)) => catalog::WORKER_OLDER.bind(STORE.oldest()).bind(LEDGER.oldest()),
        _ => catalog::WORKER_ALL_ALIVE.bound(),
    };
    let older: Vec<(i64, String)> = transaction.fetch_all(older).await?;
    let may_live = |process: &str| {
        let process: Option<Process> = process.parse().ok();
        process.is_none_or(|process| process.state() != process::ProcessState::Gone)
    };
    match older.into_iter().find(|(_, process)| may_live(process)) {
        Some((worker, process)) => Err(StoreError::OlderWorker { worker, process: harmless(&process) }),
        None => Ok(()),
    }
}

/// What [`migrate`] would execute on PostgreSQL, for an operator who reads it or executes it as another user.
pub(crate) fn script_for_postgres() -> String {
    format!("{}\n{}", STORE.script(), LEDGER.script())
}

/// Whether this release may use the tables.
pub(crate) async fn check(database: &Database) -> Result<()> {
    for schema in [&STORE, &LEDGER] {
        refused(schema, schema.compatibility(database).await?)?;
    }
    Ok(())
}

/// Whether this release can read the tables, which may be older: a look does not upgrade them.
pub(super) async fn check_for_look(database: &Database) -> Result<()> {
    for schema in [&STORE, &LEDGER] {
        let compatibility = schema.compatibility(database).await?;
        match compatibility {
            _ if schema.can_read(compatibility) => {}
            Compatibility::Older { found } => {
                return Err(StoreError::Unreadable { found, oldest: schema.readable });
            }
            _ => refused(schema, compatibility)?,
        }
    }
    Ok(())
}

/// The same for a worker that registers: migrations wait until its transaction has ended.
pub(crate) async fn check_for_worker(transaction: &mut Transaction) -> Result<()> {
    let _: Vec<(i32,)> = transaction.fetch_all(MIGRATION_SHARE.bound()).await?;
    refused(&STORE, STORE.compared(transaction).await?)?;
    refused(&LEDGER, LEDGER.compared(transaction).await?)
}

fn refused(schema: &Schema, compatibility: Compatibility) -> Result<()> {
    match compatibility {
        Compatibility::Usable => Ok(()),
        Compatibility::Missing => Err(StoreError::Missing),
        Compatibility::Older { found } => Err(StoreError::TooOld { found, needed: schema.known() }),
        Compatibility::Newer { found } => Err(StoreError::TooNew { found, known: schema.known() }),
    }
}
