//! What the store and the engine promise, told once and tried on every way to a store: a SQLite file, a PostgreSQL, and
//! a PostgreSQL behind a pooler that gives each transaction another connection.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "in a test a panic is the failure report"
)]

use refrain_harness as support;

/// Writes each story once and runs it as `name::sqlite`, `name::postgres` and `name::pgbouncer`.
macro_rules! every_store {
    ($(async fn $name:ident($database:ident) $body:block)+) => {$(
        mod $name {
            use super::*;

            async fn story($database: TestDatabase) $body

            #[tokio::test]
            async fn sqlite() {
                story(TestDatabase::sqlite().await).await;
            }

            #[tokio::test]
            async fn postgres() {
                story(TestDatabase::postgres().await).await;
            }

            #[tokio::test]
            async fn pgbouncer() {
                story(TestDatabase::pgbouncer().await).await;
            }
        }
    )+};
}

mod again;
mod alarms;
mod cancelling;
mod catch_up;
mod clocks;
mod concurrency;
mod decisions;
mod edits;
mod endings;
mod fsck;
mod lanes;
mod late;
mod opening;
mod passing;
mod pausing;
mod refusals;
mod renaming;
mod retries;
mod scopes;
mod status;
mod upkeep;
mod why;
