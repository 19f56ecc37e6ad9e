//! Attempts that wait for their time: they are kept out of the queue, so that a thousand of them do not stand before
//! the one that may begin.
//!
//! An attempt of a lane holds nothing while it waits. When its time comes it enters the lane anew, or lines up behind
//! the run that holds it. The lane is locked before the attempt, as everywhere; so the attempt is read without a lock,
//! and if it is gone once the lane is held, the transaction is undone: the lane was entered for a run that does not
//! need it. A row that still holds its lane, written by an older release, finds that lane its own.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use super::claim::scope_of;
use super::lanes::{self, Entrant};
use super::queue_line::{JobNumber, Line};
use super::{Result, Store, catalog, with_retries};
use crate::database::statement::Rows;
use crate::database::{DatabaseError, Transaction, place};

#[derive(sqlx_macros::FromRow)]
struct Delayed {
    run: i64,
    line: i64,
    attempt: i32,
    spent: i32,
    suspicion: i32,
}

#[derive(sqlx_macros::FromRow)]
struct Laned {
    #[sqlx(flatten)]
    delayed: Delayed,
    key: String,
}

impl Delayed {
    fn entrant(&self, key: String) -> Entrant {
        let Delayed { run, attempt, spent, suspicion, .. } = *self;
        Entrant { scope: scope_of(&key).to_owned(), key, run, attempt, spent, suspicion }
    }
}

/// Moves attempts whose time has come: into the queue, or behind the run that holds their lane; at most `limit` of
/// those with a lane, and as many without. Gives how many.
pub(crate) async fn wake(store: &Store, limit: usize) -> Result<usize> {
    // Mostly there is nothing to move, and looking is cheaper than a transaction that writes.
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
    let free = due.iter().map(|one| (one.line, one.entrant(String::new()))).collect();
    queue(&mut transaction, free, false).await?;
    transaction.commit(place!("wake")).await?;
    Ok(due.len())
}

async fn lined_up(store: &Store, limit: usize) -> Result<usize> {
    let mut transaction = store.database.write().await?;
    let due = catalog::DELAYED_LANED.bind(i64::try_from(limit).unwrap_or(i64::MAX));
    let due: Vec<Laned> = transaction.fetch_all(due).await?;
    if due.is_empty() {
        return Ok(0);
    }
    let mut jobs: BTreeMap<JobNumber, Vec<&Laned>> = BTreeMap::new();
    for one in &due {
        jobs.entry(Line(one.delayed.line).job()?).or_default().push(one);
    }
    let lines: HashMap<i64, i64> = due.iter().map(|one| (one.delayed.run, one.delayed.line)).collect();
    let line = |one: &Entrant| lines.get(&one.run).copied().unwrap_or_default();
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
    mut entrants: Vec<(i64, Entrant)>,
    has_lane: bool,
) -> Result<()> {
    entrants.sort_by_key(|(line, one)| (*line, one.run));
    for of_line in entrants.chunk_by(|(one, _), (next, _)| one == next) {
        let Some((line, _)) = of_line.first() else { continue };
        let attempts: Vec<&Entrant> = of_line.iter().map(|(_, one)| one).collect();
        let rows = lanes::queued(&attempts, has_lane);
        transaction.execute(catalog::QUEUE_INSERT.bind(*line).bind(rows)).await?;
    }
    Ok(())
}

/// How long until the first of them may begin; none if none waits.
pub(crate) async fn next(store: &Store) -> Result<Option<Duration>> {
    let mut transaction = store.database.read().await?;
    let row: Option<(Option<i64>,)> = transaction.fetch_optional(catalog::DELAYED_NEXT.bound()).await?;
    let left = row.and_then(|(at,)| at);
    Ok(left.map(|left| Duration::from_micros(u64::try_from(left).unwrap_or(0))))
}

/// Lets an attempt begin before its time, because a person waits for it; its lane it must enter as any other.
pub(crate) async fn pull(store: &Store, run: i64) -> Result<bool> {
    with_retries(|| pulled(store, run)).await
}

async fn pulled(store: &Store, run: i64) -> Result<bool> {
    let mut transaction = store.database.write().await?;
    let lane: Option<(i64, String)> = transaction.fetch_optional(catalog::DELAYED_LANE.bind(run)).await?;
    let mut may_begin = true;
    if let Some((line, key)) = &lane {
        let job = Line(*line).job()?;
        let (free, _) = lanes::take(&mut transaction, job, vec![Entrant::fresh(key.clone(), run, 0)]).await?;
        may_begin = !free.is_empty();
    }
    let found: Option<Delayed> = transaction.fetch_optional(catalog::DELAYED_PULL.bind(run)).await?;
    // Another process has moved it: nothing is committed, so a lane that was entered for it is left again.
    let Some(delayed) = found else { return Ok(false) };
    let key = lane.as_ref().map(|(_, key)| key.clone()).unwrap_or_default();
    let entrant = delayed.entrant(key);
    if may_begin {
        queue(&mut transaction, vec![(delayed.line, entrant)], lane.is_some()).await?;
    } else {
        lanes::wait(&mut transaction, Line(delayed.line).job()?, delayed.line, &[entrant]).await?;
    }
    transaction.commit(place!("pull")).await?;
    Ok(true)
}
