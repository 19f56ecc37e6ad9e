//! What tests need to see and nobody else: the texts of all statements, and what the planner is told before them.

use crate::database::postgres;
use crate::engine::settings::Settings;
use crate::{ledger, store};

/// Every statement of the store and of the ledger: its name, and its text for SQLite and for PostgreSQL.
pub fn statements() -> Vec<(&'static str, &'static str, &'static str)> {
    store::catalog::ALL
        .iter()
        .chain(ledger::catalog::ALL)
        .map(|one| (one.name, one.sqlite(), one.postgres()))
        .collect()
}

/// How every transaction of the store begins on PostgreSQL.
pub fn begin_on_postgres() -> String {
    postgres::begin("", Settings::default().idle()).to_string()
}
