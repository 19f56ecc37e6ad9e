//! Deletes payloads, messages and output of old runs, old attempts, old dedupes and alarms. A run itself, with its key and its outcome,
//! is never deleted: without the key a replay would run again.

use std::time::Duration;

use super::audit::{self, Decision};
use super::{Result, Store, catalog, microseconds, now};
use crate::database::{place, retried};

/// The most runs that one call looks at.
pub(crate) const PAGE: i64 = 1_000;

/// How long the arrival of an intent is remembered. A relay that has read it is done, or dead, long before.
const ARRIVALS: Duration = Duration::from_hours(1);

/// How far a pass has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Pruned {
    pub(crate) through: i64,
    pub(crate) rows: u64,
    /// Whether the pass has looked at all runs.
    pub(crate) done: bool,
}

/// Prunes a page of runs after `after`, and the oldest dedupes, alarms and arrivals. A decision of the operator is recorded with the
/// first page.
pub(crate) async fn prune(
    store: &Store,
    after: i64,
    keep: Duration,
    decision: Option<&Decision>,
) -> Result<Pruned> {
    let mut reading = store.database.read().await?;
    let now = now(&mut reading).await?.as_microsecond();
    let before = now.saturating_sub(microseconds(keep));
    let arrived_before = now.saturating_sub(microseconds(ARRIVALS));
    let last: Option<(i64,)> = reading.fetch_optional(catalog::RUN_LAST.bound()).await?;
    drop(reading);
    let last = last.map_or(0, |(last,)| last);
    let through = after.saturating_add(PAGE).min(last);
    let rows = retried(|| async {
        let mut transaction = store.database.write().await?;
        let dedupes = transaction.execute(catalog::DEDUPE_PRUNE.bind(before).bind(PAGE)).await?;
        let alarms = transaction.execute(catalog::ALARM_PRUNE.bind(before).bind(PAGE)).await?;
        let effects = transaction.execute(catalog::EFFECT_DEDUPE_PRUNE.bind(before).bind(PAGE)).await?;
        let arrivals = transaction.execute(catalog::ARRIVAL_PRUNE.bind(arrived_before).bind(PAGE)).await?;
        let page = (after.saturating_add(1), through);
        let attempts = catalog::ATTEMPT_PRUNE.bind(before).bind(page.0).bind(page.1);
        let attempts = transaction.execute(attempts).await?;
        let late = catalog::CANCELLATION_PRUNE.bind(page.0).bind(page.1);
        let late = transaction.execute(late).await?;
        let outputs = catalog::OUTPUT_PRUNE.bind(before).bind(page.0).bind(page.1);
        let outputs = transaction.execute(outputs).await?;
        let begun = catalog::BEGUN_PRUNE.bind(before).bind(page.0).bind(page.1);
        let begun = transaction.execute(begun).await?;
        let runs = transaction.execute(catalog::RUN_FORGET.bind(before).bind(page.0).bind(page.1)).await?;
        if let Some(decision) = decision {
            audit::record(&mut transaction, decision).await?;
        }
        transaction.commit(place!("prune")).await?;
        Ok(([dedupes, alarms, effects, arrivals], attempts + late + outputs + begun + runs))
    });
    let (oldest, others) = rows.await?;
    let has_more = oldest.iter().any(|rows| i64::try_from(*rows).is_ok_and(|rows| rows >= PAGE));
    Ok(Pruned { through, rows: oldest.iter().sum::<u64>() + others, done: through >= last && !has_more })
}
