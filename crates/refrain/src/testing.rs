//! What tests need to see and nobody else: the texts of all statements, and what the planner is told before them.

use crate::database::postgres;
use crate::engine::settings::Settings;
use crate::store::catalog;

/// Every statement of the store: its name, and its text for SQLite and for PostgreSQL.
pub fn statements() -> Vec<(&'static str, &'static str, &'static str)> {
    catalog::ALL.iter().map(|one| (one.name, one.sqlite(), one.postgres())).collect()
}

/// How every transaction of the store begins on PostgreSQL.
pub fn begin_on_postgres() -> String {
    postgres::begin("", Settings::default().idle()).to_string()
}
