//! What tests need to see and nobody else: the texts of all statements.

use crate::store::catalog;

/// Every statement of the store: its name, and its text for SQLite and for PostgreSQL.
pub fn statements() -> Vec<(&'static str, &'static str, &'static str)> {
    catalog::ALL.iter().map(|one| (one.name, one.sqlite(), one.postgres())).collect()
}
