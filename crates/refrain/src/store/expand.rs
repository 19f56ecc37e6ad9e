//! Freezes the scopes of a window: a run for each, and the count and hash of all, in a transaction of the attempt that evaluated the
//! query.
//!
//! The set is fixed when the window's own run evaluates it. Later attempts find it frozen: a scope that appears later gets this
//! window only by a backfill.

use jiff::Timestamp;
use refrain_core::{Fingerprint, RunKey, Scope, WhileRunning, Zone, window_name};

use super::finish::ClaimedAttempt;
use super::open::{NewRun, OpenCounts, insert};
use super::queue_line::Priority;
use super::{Result, Store, StoreError, catalog, with_retries};
use crate::database::place;

/// The most scopes of one window.
pub(crate) const SCOPES_MAX: usize = 50_000;

/// The result of an expansion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Expanded {
    /// The scopes were frozen now.
    Frozen(OpenCounts),
    /// The scopes had been frozen before.
    Already { scopes: i64 },
    /// The attempt had been taken over; nothing was written.
    Lost,
}

/// Opens a run for each scope of a window, once.
pub(crate) async fn expand(
    store: &Store,
    held: &ClaimedAttempt,
    window: (Timestamp, Timestamp),
    scopes: &[Scope],
    while_running: WhileRunning,
) -> Result<Expanded> {
    with_retries(|| expanded(store, held, window, scopes, while_running)).await
}

async fn expanded(
    store: &Store,
    held: &ClaimedAttempt,
    (start, end): (Timestamp, Timestamp),
    scopes: &[Scope],
    while_running: WhileRunning,
) -> Result<Expanded> {
    let name = window_name::parse(&start.to_string(), &Zone::utc())
        .map_err(|error| StoreError::Broken(error.to_string()))?;
    let mut new_runs: Vec<NewRun> = scopes
        .iter()
        .map(|scope| NewRun {
            key: RunKey::windowed(name, scope),
            start,
            end,
            priority: held.line.priority().unwrap_or(Priority::Live).for_followers(),
            skipped: None,
        })
        .collect();
    new_runs.sort_by(|one, other| one.key.cmp(&other.key));
    new_runs.dedup_by(|one, other| one.key == other.key);
    let keys: Vec<String> = new_runs.iter().map(|run| run.key.to_string()).collect();
    let list = serde_json::Value::from(keys).to_string();
    let hash = Fingerprint::of_json(&list).map_err(|error| StoreError::Broken(error.to_string()))?;
    let count = i64::try_from(new_runs.len()).unwrap_or(i64::MAX);
    let mut transaction = store.database.write().await?;
    // First of all, for this row is what an expansion whose answer was lost is waited for by: no other verb locks it.
    let freeze = catalog::EXPANSION_FREEZE.bind(held.run).bind(count).bind(hash.to_string());
    if transaction.execute(freeze).await? == 0 {
        let frozen: Option<(i64, String)> =
            transaction.fetch_optional(catalog::EXPANSION_FIND.bind(held.run)).await?;
        return Ok(Expanded::Already { scopes: frozen.map_or(0, |(scopes, _)| scopes) });
    }
    let mut ticked = OpenCounts::default();
    for chunk in new_runs.chunks(super::tick::WINDOWS_MAX) {
        ticked.add(insert(&mut transaction, held.job, while_running, chunk, Some("expansion")).await?);
    }
    // Last, for the queue comes after lanes and runs in the order of locks; held until the commit all the same.
    let place = catalog::QUEUE_HOLD.bind(held.line.0).bind(held.run).bind(held.lease).bind(held.attempt);
    let mine: Option<(i32,)> = transaction.fetch_optional(place).await?;
    if mine.is_none() {
        return Ok(Expanded::Lost);
    }
    transaction.commit(place!("expand")).await?;
    Ok(Expanded::Frozen(ticked))
}
