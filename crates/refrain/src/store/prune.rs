//! Forgets bodies after their time: what runs were given, said and printed, old attempts, old dedupes and alarms. That a run was, and how
//! it ended, is never forgotten: the key must stay, or a replay would run again.

use std::time::Duration;

use super::audit::{self, Decision};
use super::{Result, Store, catalog, microseconds, now};
use crate::database::{place, retried};

/// The most rows that one step looks at.
pub(crate) const STRETCH: i64 = 1_000;

/// How long it is remembered that an intent has arrived. A relay that has read it is done with it, or dead, long before.
const ARRIVALS: Duration = Duration::from_hours(1);

/// How far pruning has come: the last run that was looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Pruned {
    pub(crate) through: i64,
    pub(crate) rows: u64,
    /// Whether this pass is through all of them.
    pub(crate) done: bool,
}

/// Prunes one stretch of runs after `after`, and the oldest dedupes, alarms and arrivals.
/// A person's decision to do so is recorded with the first stretch.
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
    let through = after.saturating_add(STRETCH).min(last);
    let rows = retried(|| async {
        let mut transaction = store.database.write().await?;
        let dedupes = transaction.execute(catalog::DEDUPE_PRUNE.bind(before).bind(STRETCH)).await?;
        let alarms = transaction.execute(catalog::ALARM_PRUNE.bind(before).bind(STRETCH)).await?;
        let effects = transaction.execute(catalog::EFFECT_DEDUPE_PRUNE.bind(before).bind(STRETCH)).await?;
        let arrivals = transaction.execute(catalog::ARRIVAL_PRUNE.bind(arrived_before).bind(STRETCH)).await?;
        let stretch = (after.saturating_add(1), through);
        let attempts = catalog::ATTEMPT_PRUNE.bind(before).bind(stretch.0).bind(stretch.1);
        let attempts = transaction.execute(attempts).await?;
        let late = catalog::CANCELLATION_PRUNE.bind(stretch.0).bind(stretch.1);
        let late = transaction.execute(late).await?;
        let outputs = catalog::OUTPUT_PRUNE.bind(before).bind(stretch.0).bind(stretch.1);
        let outputs = transaction.execute(outputs).await?;
        let begun = catalog::BEGUN_PRUNE.bind(before).bind(stretch.0).bind(stretch.1);
        let begun = transaction.execute(begun).await?;
        let runs =
            transaction.execute(catalog::RUN_FORGET.bind(before).bind(stretch.0).bind(stretch.1)).await?;
        if let Some(decision) = decision {
            audit::record(&mut transaction, decision).await?;
        }
        transaction.commit(place!("prune")).await?;
        Ok(([dedupes, alarms, effects, arrivals], attempts + late + outputs + begun + runs))
    });
    let (oldest, others) = rows.await?;
    let has_more = oldest.iter().any(|rows| i64::try_from(*rows).is_ok_and(|rows| rows >= STRETCH));
    Ok(Pruned { through, rows: oldest.iter().sum::<u64>() + others, done: through >= last && !has_more })
}
