//! For tests only: the texts of all statements, the planner settings before them, all timetables of a job,
//! and how staged rows get their ids.

use refrain_core::{JobName, Revisions};
use sqlx::SqliteConnection;

use crate::database::postgres;
use crate::engine::settings::Settings;
use crate::{Error, Refrain, ledger, schemas, store, user_database};

/// Every statement of the store and of the ledger: its name, and its text for SQLite and for PostgreSQL.
pub fn statements() -> Vec<(&'static str, &'static str, &'static str)> {
    store::catalog::ALL
        .iter()
        .chain(store::run_state::ALL)
        .chain(store::effect_state::ALL)
        .chain(ledger::catalog::ALL)
        .chain(ledger::unit_state::ALL)
        .chain(schemas::ALL)
        .map(|one| (one.name, one.sqlite(), one.postgres()))
        .collect()
}

/// How every transaction of the store begins on PostgreSQL.
pub fn begin_on_postgres() -> String {
    postgres::begin("", Settings::default().idle(), postgres::SHORTEST_DEADLINE).to_string()
}

/// All timetables that a job has had; none if there is no such job, or it never had one.
pub async fn revisions(refrain: &Refrain, job: &str) -> Result<Option<Revisions>, Error> {
    let Some(row) = store::jobs::find(refrain.store(), &JobName::parse(job)?).await? else { return Ok(None) };
    Ok(store::schedules::read(refrain.store(), row.id).await?)
}

/// Writes into a column of a table the surrogate key of each row. All names are quoted already.
pub async fn fill_surrogate(
    connection: &mut SqliteConnection,
    stage: &str,
    column: &str,
    parts: &[String],
) -> Result<(), sqlx::Error> {
    user_database::surrogate::fill(connection, stage, "_rowid_", column, parts).await
}
