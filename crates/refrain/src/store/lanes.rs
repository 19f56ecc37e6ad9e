//! Lanes: `while-running` as a constraint. The one run of (job, scope) that is queued or running holds the
//! lane's primary key; others wait, the oldest window first.
//!
//! A run that is tried again later gives its lane up and enters it anew when its time comes: a window that backs off
//! for an hour must not hold up every window after it. It brings along what it has spent, so waiting costs it no try
//! and gives it none.
//!
//! Entering locks the lane even when somebody holds it, so whoever leaves it meanwhile waits, and then sees who
//! came. Without that lock, a run could begin to wait just after the last look at the waiters, and wait for ever.

use super::claim::scope_of;
use super::queue_line::JobNumber;
use super::{Result, catalog};
use crate::database::Transaction;
use crate::database::statement::Rows;

/// A run that wants a lane, and the attempt that it wants it for.
#[derive(Debug, Clone)]
pub(crate) struct Entrant {
    pub(crate) scope: String,
    pub(crate) key: String,
    pub(crate) run: i64,
    pub(crate) attempt: i32,
    pub(crate) spent: i32,
    pub(crate) suspicion: i32,
}

impl Entrant {
    /// The run of a window with this key, for an attempt that follows no failure.
    pub(crate) fn fresh(key: String, run: i64, attempt: i32) -> Entrant {
        Entrant { scope: scope_of(&key).to_owned(), key, run, attempt, spent: 0, suspicion: 0 }
    }
}

/// Takes the lanes that are free. Gives the entrants that hold theirs now, and those that do not.
pub(crate) async fn take(
    transaction: &mut Transaction,
    job: JobNumber,
    mut entrants: Vec<Entrant>,
) -> Result<(Vec<Entrant>, Vec<Entrant>)> {
    entrants.sort_by(|one, other| (&one.scope, &one.key).cmp(&(&other.scope, &other.key)));
    let mut firsts: Vec<&Entrant> = entrants.iter().collect();
    firsts.dedup_by(|later, first| later.scope == first.scope);
    let rows = Rows::default()
        .texts(firsts.iter().map(|entrant| entrant.scope.clone()))
        .integers(firsts.iter().map(|entrant| entrant.run));
    let lanes: Vec<(String, i64)> = transaction.fetch_all(catalog::LANE_ENTER.bind(job).bind(rows)).await?;
    Ok(entrants.into_iter().partition(|entrant| lanes.iter().any(|(_, run)| *run == entrant.run)))
}

/// Runs that wait for their lane.
pub(crate) async fn wait(
    transaction: &mut Transaction,
    job: JobNumber,
    line: i64,
    waiting: &[Entrant],
) -> Result<()> {
    if waiting.is_empty() {
        return Ok(());
    }
    let rows = Rows::default()
        .texts(waiting.iter().map(|entrant| entrant.scope.clone()))
        .texts(waiting.iter().map(|entrant| entrant.key.clone()))
        .integers(waiting.iter().map(|entrant| entrant.run))
        .integers(waiting.iter().map(|entrant| i64::from(entrant.attempt)))
        .integers(waiting.iter().map(|entrant| i64::from(entrant.spent)))
        .integers(waiting.iter().map(|entrant| i64::from(entrant.suspicion)));
    transaction.execute(catalog::LANE_WAIT.bind(job).bind(line).bind(rows)).await?;
    Ok(())
}

#[derive(sqlx_macros::FromRow)]
pub(crate) struct Waiting {
    pub(crate) run: i64,
    pub(crate) key: String,
    pub(crate) line: i64,
    pub(crate) attempt: i32,
    pub(crate) spent: i32,
    pub(crate) suspicion: i32,
}

#[derive(sqlx_macros::FromRow)]
pub(crate) struct Lane {
    job: JobNumber,
    scope: String,
    run: i64,
}

/// Holds lanes until the transaction ends. A transaction that also holds runs takes them after their lanes.
pub(crate) async fn hold(transaction: &mut Transaction, lanes: &[(JobNumber, &str)]) -> Result<Vec<Lane>> {
    if lanes.is_empty() {
        return Ok(Vec::new());
    }
    let rows = Rows::default()
        .integers(lanes.iter().map(|(job, _)| i64::from(*job)))
        .texts(lanes.iter().map(|(_, scope)| (*scope).to_owned()));
    Ok(transaction.fetch_all(catalog::LANE_HOLD.bind(rows)).await?)
}

/// Leaves lanes: each goes to the one who waits first, who may begin now.
pub(crate) async fn leave(transaction: &mut Transaction, leavers: &[(JobNumber, String, i64)]) -> Result<()> {
    let lanes: Vec<(JobNumber, &str)> =
        leavers.iter().map(|(job, scope, _)| (*job, scope.as_str())).collect();
    for Lane { job, scope, run } in hold(transaction, &lanes).await? {
        if !leavers.iter().any(|(.., leaver)| *leaver == run) {
            continue;
        }
        let next: Option<Waiting> =
            transaction.fetch_optional(catalog::LANE_NEXT.bind(job).bind(scope.as_str())).await?;
        let Some(next) = next else {
            transaction.execute(catalog::LANE_FREE.bind(job).bind(scope)).await?;
            continue;
        };
        transaction.execute(catalog::LANE_PASS.bind(job).bind(scope.as_str()).bind(next.run)).await?;
        transaction
            .execute(catalog::LANE_STOP_WAITING.bind(job).bind(scope.as_str()).bind(next.key.as_str()))
            .await?;
        let Waiting { run, key, line, attempt, spent, suspicion } = next;
        let next = Entrant { scope, key, run, attempt, spent, suspicion };
        transaction.execute(catalog::QUEUE_INSERT.bind(line).bind(queued(&[&next], true))).await?;
    }
    Ok(())
}

/// Attempts for the queue, that hold their lanes or have none.
pub(crate) fn queued(entrants: &[&Entrant], lane: bool) -> Rows<'static> {
    Rows::default()
        .integers(entrants.iter().map(|one| one.run))
        .integers(entrants.iter().map(|one| i64::from(one.attempt)))
        .integers(entrants.iter().map(|one| i64::from(one.spent)))
        .integers(entrants.iter().map(|one| i64::from(one.suspicion)))
        .booleans(entrants.iter().map(|_| lane))
}
