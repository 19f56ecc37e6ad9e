//! Lanes: `while-running` as a constraint. The one run of (job, scope) that is queued or running holds the lane's primary key;
//! others wait, the oldest window first.
//!
//! A run that is retried after a delay gives up its lane and enters it again when its time comes: a window that backs off for an
//! hour must not hold up every later window. It keeps its counts of tries, so waiting costs no try and adds none.
//!
//! Entering locks the lane even when another run holds it. A transaction that leaves the lane at the same time waits, and then
//! sees the new entrant. Without that lock, a run could begin to wait just after the last look at the waiting runs, and wait for
//! ever.

use refrain_core::state::Attempts;

use super::claim::scope_of;
use super::queue::{self, AttemptColumns, QueueRow};
use super::queue_line::{JobNumber, Line};
use super::{Result, catalog};
use crate::database::Transaction;
use crate::database::statement::Rows;

/// A run that needs a lane, and the attempt that it needs it for.
#[derive(Debug, Clone)]
pub(crate) struct Entrant {
    pub(crate) scope: String,
    pub(crate) key: String,
    pub(crate) run: i64,
    pub(crate) attempts: Attempts,
}

impl Entrant {
    /// The run of a window with this key.
    pub(crate) fn new(key: String, run: i64, attempts: Attempts) -> Entrant {
        Entrant { scope: scope_of(&key).to_owned(), key, run, attempts }
    }

    /// Its row in the queue.
    pub(crate) fn queued(&self, lane: bool) -> QueueRow {
        QueueRow { run: self.run, attempts: self.attempts, lane }
    }
}

/// Takes the lanes that are free. Returns the entrants that hold theirs now, and those that do not.
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

/// Records runs that wait for their lane.
pub(crate) async fn wait(
    transaction: &mut Transaction,
    job: JobNumber,
    line: Line,
    waiting: &[Entrant],
) -> Result<()> {
    if waiting.is_empty() {
        return Ok(());
    }
    let rows = Rows::default()
        .texts(waiting.iter().map(|entrant| entrant.scope.clone()))
        .texts(waiting.iter().map(|entrant| entrant.key.clone()))
        .integers(waiting.iter().map(|entrant| entrant.run))
        .integers(waiting.iter().map(|entrant| queue::number(entrant.attempts)))
        .integers(waiting.iter().map(|entrant| i64::from(entrant.attempts.spent)))
        .integers(waiting.iter().map(|entrant| i64::from(entrant.attempts.suspicion)));
    transaction.execute(catalog::LANE_WAIT.bind(job).bind(line.0).bind(rows)).await?;
    Ok(())
}

#[derive(sqlx_macros::FromRow)]
pub(crate) struct Waiting {
    pub(crate) run: i64,
    pub(crate) key: String,
    pub(crate) line: i64,
    #[sqlx(flatten)]
    pub(crate) attempts: AttemptColumns,
}

#[derive(sqlx_macros::FromRow)]
pub(crate) struct Lane {
    job: JobNumber,
    scope: String,
    run: i64,
}

/// Locks lanes until the transaction ends. A transaction that also locks runs locks them after their lanes.
pub(crate) async fn hold(transaction: &mut Transaction, lanes: &[(JobNumber, &str)]) -> Result<Vec<Lane>> {
    if lanes.is_empty() {
        return Ok(Vec::new());
    }
    let rows = Rows::default()
        .integers(lanes.iter().map(|(job, _)| i64::from(*job)))
        .texts(lanes.iter().map(|(_, scope)| (*scope).to_owned()));
    Ok(transaction.fetch_all(catalog::LANE_HOLD.bind(rows)).await?)
}

/// Leaves lanes: each goes to the first run that waits for it, which is queued.
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
        let row = QueueRow { run: next.run, attempts: next.attempts.into(), lane: true };
        queue::insert(transaction, Line(next.line), &[row]).await?;
    }
    Ok(())
}
