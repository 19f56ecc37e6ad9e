//! What became of the units of an attempt: four counts, and dedupes by reason with the first of their keys.
//!
//! Written with the attempt's end, so an attempt that was taken over has none: what it did is in the ledger beside the
//! rows, and the next attempt counts it as deduplicated.

use super::finish::Ending;
use super::{Result, Store, catalog};
use crate::database::Transaction;
use crate::database::statement::Rows;

pub(crate) async fn record(transaction: &mut Transaction, endings: &[&Ending]) -> Result<()> {
    let told = endings.iter().filter_map(|ending| Some((&ending.held, ending.units.as_deref()?)));
    let told: Vec<_> = told.collect();
    if told.is_empty() {
        return Ok(());
    }
    let number = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    let rows = Rows::default()
        .integers(told.iter().map(|(held, _)| held.run))
        .integers(told.iter().map(|(held, _)| i64::from(held.attempt)))
        .integers(told.iter().map(|(_, units)| number(units.counts.processed)))
        .integers(told.iter().map(|(_, units)| number(units.counts.skipped)))
        .integers(told.iter().map(|(_, units)| number(units.counts.deduplicated)))
        .integers(told.iter().map(|(_, units)| number(units.counts.failed)));
    transaction.execute(catalog::COUNT_INSERT.bind(rows)).await?;
    let dedupes = told
        .iter()
        .flat_map(|(held, units)| units.dedupes.iter().map(move |(reason, dedupes)| (held, reason, dedupes)));
    let dedupes: Vec<_> = dedupes.collect();
    if !dedupes.is_empty() {
        let keys = |keys: &[String]| serde_json::to_string(keys).unwrap_or_else(|_| "[]".to_owned());
        let rows = Rows::default()
            .integers(dedupes.iter().map(|(held, ..)| held.run))
            .integers(dedupes.iter().map(|(held, ..)| i64::from(held.attempt)))
            .texts(dedupes.iter().map(|(_, reason, _)| reason.name().to_owned()))
            .integers(dedupes.iter().map(|(_, _, dedupes)| number(dedupes.count)))
            .texts(dedupes.iter().map(|(_, _, dedupes)| keys(&dedupes.keys)));
        transaction.execute(catalog::UNIT_DEDUPE_INSERT.bind(rows)).await?;
    }
    Ok(())
}

/// The counts of one attempt.
#[derive(Debug, sqlx_macros::FromRow)]
pub(crate) struct CountRow {
    pub(crate) attempt: i32,
    pub(crate) processed: i64,
    pub(crate) skipped: i64,
    pub(crate) deduplicated: i64,
    pub(crate) failed: i64,
}

/// Dedupes of one reason in one attempt.
#[derive(Debug, sqlx_macros::FromRow)]
pub(crate) struct UnitDedupeRow {
    pub(crate) attempt: i32,
    pub(crate) reason: String,
    pub(crate) count: i64,
    pub(crate) keys: String,
}

/// What all attempts of a run came to, oldest first.
pub(crate) async fn list(store: &Store, run: i64) -> Result<(Vec<CountRow>, Vec<UnitDedupeRow>)> {
    let mut transaction = store.database.read_at_once().await?;
    let counts = transaction.fetch_all(catalog::COUNT_LIST.bind(run)).await?;
    let dedupes = transaction.fetch_all(catalog::UNIT_DEDUPE_LIST.bind(run)).await?;
    Ok((counts, dedupes))
}
