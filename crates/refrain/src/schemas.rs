//! The two sets of tables: the store's, and the ledger's.
//!
//! They stand below both modules because a store's own database has both: units that write nothing elsewhere are recorded
//! there.

use crate::database::place;
use crate::database::schema::{Schema, migration, migrations};
use crate::database::statement::catalog;

catalog! {
    LEDGER_MIGRATION_LATEST = "sql/ledger_migration/latest.sql",
    LEDGER_MIGRATION_OLDEST = "sql/ledger_migration/oldest.sql",
    LEDGER_MIGRATION_RECORD = "sql/ledger_migration/record.sql",
    MIGRATION_HOLD = "sql/migration/hold.sql",
    MIGRATION_LATEST = "sql/migration/latest.sql",
    MIGRATION_OLDEST = "sql/migration/oldest.sql",
    MIGRATION_RECORD = "sql/migration/record.sql",
    MIGRATION_SHARE = "sql/migration/share.sql",
}

/// The tables of a store.
pub(crate) static STORE: Schema = Schema {
    table: "migrations",
    first: migration!("store", Breaking, "0000_migrations"),
    migrations: migrations!(
        "store",
        [
            Breaking "0001_initial",
            Breaking "0002_lanes",
            Breaking "0003_claims",
            Breaking "0004_audit",
            Breaking "0005_releases",
            Additive "0006_failure",
            Additive "0007_effects",
        ]
    ),
    // Effects are listed with what became of them.
    readable: 7,
    place: place!("migrate"),
    latest: &MIGRATION_LATEST,
    oldest: &MIGRATION_OLDEST,
    record: &MIGRATION_RECORD,
    // The store asks for the workers of older releases instead, and none registers meanwhile (`store/migrate.rs`).
    hold: None,
};

/// The tables of a ledger.
pub(crate) static LEDGER: Schema = Schema {
    table: "ledger_migrations",
    first: migration!("ledger", Breaking, "0000_ledger_migrations"),
    migrations: migrations!(
        "ledger",
        [
            Breaking "0001_ledger",
            Breaking "0002_applied",
            Breaking "0003_claims",
            Breaking "0004_place",
            Breaking "0005_releases",
        ]
    ),
    readable: 4,
    place: place!("migrate-ledger"),
    latest: &LEDGER_MIGRATION_LATEST,
    oldest: &LEDGER_MIGRATION_OLDEST,
    record: &LEDGER_MIGRATION_RECORD,
    hold: Some(include_str!("../sql/ledger_migration/hold.postgres.sql")),
};
