//! Attempts that are delayed until some time. They are kept out of the queue, so that a thousand of them do not stand before one
//! that may begin.
//!
//! A delayed attempt holds no lane. When its time comes it enters its lane again, or waits behind the run that holds it. The lane
//! is locked before the attempt, as everywhere. So the attempt is read without a lock, and if it is gone once the lane is locked,
//! the transaction is rolled back: the lane was entered for a run that does not need it. A row of an older release may still hold
//! its lane, and finds it its own.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use refrain_core::state::Attempts;

use super::lanes::{self, Entrant};
use super::queue::{self, AttemptColumns, QueueRow};
use super::queue_line::{JobNumber, Line};
use super::{Result, Store, catalog, with_retries};
use crate::database::statement::Rows;
use crate::database::{DatabaseError, Transaction, place};

#[derive(sqlx_macros::FromRow)]
struct Delayed {
    run: i64,
    line: i64,
    #[sqlx(flatten)]
    attempts: AttemptColumns,
}

#[derive(sqlx_macros::FromRow)]
struct DelayedInLane {
    #[sqlx(flatten)]
    delayed: Delayed,
    key: String,
}

impl Delayed {
    fn entrant(&self, key: String) -> Entrant {
        Entrant::new(key, self.run, self.attempts.into())
    }
}

/// Moves attempts whose time has come into the queue, or behind the run that holds their lane; at most `limit` of those with a
/// lane, and as many without. Returns how many.
pub(crate) async fn wake(store: &Store, limit: usize) -> Result<usize> {
    // Usually there is nothing to move, and a look is cheaper than a transaction that writes.
    if next(store).await? != Some(Duration::ZERO) {
        return Ok(0);
    }
    let free = with_retries(|| woken(store, limit)).await?;
    Ok(free + with_retries(|| lined_up(store, limit)).await?)
}

async fn woken(store: &Store, limit: usize) -> Result<usize> {
    let mut transaction = store.database.write().await?;
    let due = catalog::DELAYED_DUE.bind(i64::try_from(limit).unwrap_or(i64::MAX));
    let due: Vec<Delayed> = transaction.fetch_all(due).await?;
    if due.is_empty() {
        return Ok(0);
    }
    leave(&mut transaction, &due).await?;
    let free = due.iter().map(|one| (Line(one.line), one.entrant(String::new()))).collect();
    queue(&mut transaction, free, false).await?;
    transaction.commit(place!("wake")).await?;
    Ok(due.len())
}

async fn lined_up(store: &Store, limit: usize) -> Result<usize> {
    let mut transaction = store.database.write().await?;
    let due = catalog::DELAYED_LANED.bind(i64::try_from(limit).unwrap_or(i64::MAX));
    let due: Vec<DelayedInLane> = transaction.fetch_all(due).await?;
    if due.is_empty() {
        return Ok(0);
    }
    let mut jobs: BTreeMap<JobNumber, Vec<&DelayedInLane>> = BTreeMap::new();
    for one in &due {
        jobs.entry(Line(one.delayed.line).job()?).or_default().push(one);
    }
    let lines: HashMap<i64, Line> = due.iter().map(|one| (one.delayed.run, Line(one.delayed.line))).collect();
    let line = |one: &Entrant| lines.get(&one.run).copied().unwrap_or(Line(0));
    let (mut queued, mut waiting) = (Vec::new(), Vec::new());
    for (job, due) in jobs {
        let entrants = due.iter().map(|one| one.delayed.entrant(one.key.clone())).collect();
        let (free, held) = lanes::take(&mut transaction, job, entrants).await?;
        queued.extend(free.into_iter().map(|one| (line(&one), one)));
        waiting.extend(held.into_iter().map(|one| (job, line(&one), one)));
    }
    let due: Vec<Delayed> = due.into_iter().map(|one| one.delayed).collect();
    if leave(&mut transaction, &due).await? != due.len() as u64 {
        return Err(DatabaseError::Busy("a delayed attempt is being moved".to_owned()).into());
    }
    queue(&mut transaction, queued, true).await?;
    for (job, line, one) in waiting {
        lanes::wait(&mut transaction, job, line, &[one]).await?;
    }
    transaction.commit(place!("line-up")).await?;
    Ok(due.len())
}

async fn leave(transaction: &mut Transaction, due: &[Delayed]) -> Result<u64> {
    let rows = Rows::default().integers(due.iter().map(|one| one.run));
    Ok(transaction.execute(catalog::DELAYED_LEAVE.bind(rows)).await?)
}

/// Puts attempts into their lines of the queue.
async fn queue(
    transaction: &mut Transaction,
    mut entrants: Vec<(Line, Entrant)>,
    has_lane: bool,
) -> Result<()> {
    entrants.sort_by_key(|(line, one)| (*line, one.run));
    for of_line in entrants.chunk_by(|(one, _), (next, _)| one == next) {
        let Some((line, _)) = of_line.first() else { continue };
        let rows: Vec<QueueRow> = of_line.iter().map(|(_, one)| one.queued(has_lane)).collect();
        queue::insert(transaction, *line, &rows).await?;
    }
    Ok(())
}

/// How long until the first of them may begin; none if no attempt is delayed.
pub(crate) async fn next(store: &Store) -> Result<Option<Duration>> {
    let mut transaction = store.database.read().await?;
    let row: Option<(Option<i64>,)> = transaction.fetch_optional(catalog::DELAYED_NEXT.bound()).await?;
    let left = row.and_then(|(at,)| at);
    Ok(left.map(|left| Duration::from_micros(u64::try_from(left).unwrap_or(0))))
}

/// Lets an attempt begin before its time, because a caller waits for it. It must enter its lane as any other.
pub(crate) async fn pull(store: &Store, run: i64) -> Result<bool> {
    with_retries(|| pulled(store, run)).await
}

async fn pulled(store: &Store, run: i64) -> Result<bool> {
    let mut transaction = store.database.write().await?;
    let lane: Option<(i64, String)> = transaction.fetch_optional(catalog::DELAYED_LANE.bind(run)).await?;
    let mut may_begin = true;
    if let Some((line, key)) = &lane {
        let job = Line(*line).job()?;
        let entrant = Entrant::new(key.clone(), run, Attempts::default());
        let (free, _) = lanes::take(&mut transaction, job, vec![entrant]).await?;
        may_begin = !free.is_empty();
    }
    let found: Option<Delayed> = transaction.fetch_optional(catalog::DELAYED_PULL.bind(run)).await?;
    // Another process has moved it. Nothing is committed, so a lane that was entered for it is free again.
    let Some(delayed) = found else { return Ok(false) };
    let key = lane.as_ref().map(|(_, key)| key.clone()).unwrap_or_default();
    let entrant = delayed.entrant(key);
    if may_begin {
        queue(&mut transaction, vec![(Line(delayed.line), entrant)], lane.is_some()).await?;
    } else {
        lanes::wait(&mut transaction, Line(delayed.line).job()?, Line(delayed.line), &[entrant]).await?;
    }
    transaction.commit(place!("pull")).await?;
    Ok(true)
}
