//! What the ledger promises beside somebody's rows, told once and tried in a SQLite file and in a PostgreSQL database that
//! is not the store's.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "in a test a panic is the failure report"
)]

use refrain_harness as support;

mod shop;

/// Writes each story once and runs it as `name::sqlite` and `name::postgres`, with the shop's database typed.
macro_rules! both_shops {
    ($(async fn $name:ident($shop:ident) $body:block)+) => {$(
        mod $name {
            use super::*;

            async fn story<DB: $crate::shop::Backend>($shop: $crate::shop::Shop<DB>) $body

            #[tokio::test]
            async fn sqlite() {
                story($crate::shop::Shop::in_a_file().await).await;
            }

            #[tokio::test]
            async fn postgres() {
                story($crate::shop::Shop::on_a_server().await).await;
            }
        }
    )+};
}

mod applied;
mod behind;
mod changes;
mod checkpoints;
mod claims;
mod company;
mod conflicts;
mod cursors;
mod destinations;
mod failures;
mod fences;
mod given_twice;
mod horizon;
mod in_flight;
mod intents;
mod lanes;
mod left_under_way;
mod lost;
mod many;
mod races;
mod surrogate;
mod traces;
mod units;
mod verdicts;
mod watermarks;
