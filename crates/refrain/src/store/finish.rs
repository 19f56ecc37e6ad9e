//! Ends attempts, many in one transaction.
//!
//! A run's row is written first and its row in the queue removed after, under the lease and number that the attempt had. As many
//! rows must go as were written, or the transaction is rolled back. So the result of an attempt that was taken over is never
//! recorded, however late it comes, and its neighbours in the batch are ended without it. A result that is recorded twice, because
//! the first answer was lost, finds that it was recorded.

use std::borrow::Cow;
use std::time::Duration;

use refrain_core::state::{Attempts, FailureReason, RunEvent, RunOutcome, RunStanding};

use super::counts::UnitSummary;
use super::queue::{self, QueueRow};
use super::queue_line::{JobNumber, Line, Priority};
use super::run_row::RunLook;
use super::run_state::{self, EndedAttempt};
use super::{Result, Store, begun_commands, catalog, counts, lanes, with_retries};
use crate::database::statement::Rows;
use crate::database::{DatabaseError, Transaction, place, retried};
use crate::failpoint;

/// The longest delay, even if a called service asks for more.
const LONGEST_WAIT: Duration = Duration::from_hours(366 * 24);

/// What an attempt holds in the store: a row of the queue under a lease, and perhaps a lane and a slot.
#[derive(Debug, Clone)]
pub(crate) struct ClaimedAttempt {
    pub(crate) run: i64,
    pub(crate) job: JobNumber,
    pub(crate) line: Line,
    pub(crate) lease: i64,
    pub(crate) attempt: i32,
    /// The scope of the lane it holds, if it holds one.
    pub(crate) lane: Option<String>,
    /// Whether it has a slot.
    pub(crate) slot: bool,
}

/// How an attempt ends.
#[derive(Debug, Clone)]
pub(crate) enum End {
    /// The run is over. The table of states says with which outcome.
    Closed { event: RunEvent, version: Option<i32>, message: Option<String> },
    /// Another attempt follows, perhaps after a delay.
    Again { event: RunEvent, attempts: Attempts, wait: Option<Duration>, message: Option<String> },
    /// It had not begun, and goes back to the queue under the same number.
    GivenBack,
}

impl End {
    /// The outcome of the run, if this ends it.
    pub(crate) fn outcome(&self) -> Option<RunOutcome> {
        match self {
            End::Closed { event, .. } => RunStanding::RUNNING.apply(*event).ok()?.standing().outcome,
            End::Again { .. } | End::GivenBack => None,
        }
    }

    /// Whether the run gives up its lane. One that goes back to the queue at once keeps it.
    fn leaves_lane(&self) -> bool {
        match self {
            End::Closed { .. } => true,
            End::Again { wait, .. } => wait.is_some(),
            End::GivenBack => false,
        }
    }
}

/// An attempt that has ended.
#[derive(Debug, Clone)]
pub(crate) struct Ending {
    pub(crate) held: ClaimedAttempt,
    pub(crate) started_at: Option<i64>,
    pub(crate) end: End,
    /// The counts of its units, if it met any.
    pub(crate) units: Option<Box<UnitSummary>>,
    /// Whether the end of its command is known. Then the mark that the command began is removed, and a later
    /// attempt may execute the command again.
    pub(crate) clears_mark: bool,
    /// Why it did not do its work, if it did not.
    pub(crate) reason: Option<FailureReason>,
}

/// Who ends an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Author {
    /// The worker that held the attempt.
    Worker(i64),
    /// A rescuer that takes over from this worker.
    Rescuer(i64),
}

impl Author {
    fn worker(self) -> i64 {
        match self {
            Author::Worker(worker) | Author::Rescuer(worker) => worker,
        }
    }

    /// The worker that is recorded as having ended the run. A worker that comes back must not take a takeover for its own record.
    fn closer(self) -> Option<i64> {
        match self {
            Author::Worker(worker) => Some(worker),
            Author::Rescuer(_) => None,
        }
    }
}

/// Whether the result of an attempt was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Landed {
    Yes,
    /// The attempt had been taken over, or cancelled. Nothing of it was recorded.
    Lost,
}

/// Ends attempts of one worker, and removes leases that have no member left. Returns for each whether it was recorded.
pub(crate) async fn finish(
    store: &Store,
    worker: i64,
    endings: &[Ending],
    emptied: &[i64],
) -> Result<Vec<Landed>> {
    let together = with_retries(|| async {
        let mut transaction = store.database.write().await?;
        let whole = end(&mut transaction, Author::Worker(worker), endings).await?;
        if whole {
            remove_leases(&mut transaction, emptied).await?;
            transaction.commit(place!("finish")).await?;
        }
        Ok(whole)
    });
    if together.await? {
        return Ok(vec![Landed::Yes; endings.len()]);
    }
    let mut landed = Vec::with_capacity(endings.len());
    for ending in endings {
        landed.push(with_retries(|| alone(store, worker, ending)).await?);
    }
    retried(|| async {
        let mut transaction = store.database.write().await?;
        remove_leases(&mut transaction, emptied).await?;
        transaction.commit(place!("finish-leases")).await
    })
    .await?;
    Ok(landed)
}

async fn alone(store: &Store, worker: i64, ending: &Ending) -> Result<Landed> {
    let mut transaction = store.database.write().await?;
    if end(&mut transaction, Author::Worker(worker), std::slice::from_ref(ending)).await? {
        transaction.commit(place!("finish-alone")).await?;
        return Ok(Landed::Yes);
    }
    drop(transaction);
    let mut transaction = store.database.read().await?;
    let was_recorded = was_recorded(&mut transaction, worker, &ending.held).await?;
    Ok(if was_recorded { Landed::Yes } else { Landed::Lost })
}

async fn remove_leases(
    transaction: &mut Transaction,
    emptied: &[i64],
) -> std::result::Result<(), DatabaseError> {
    if !emptied.is_empty() {
        let rows = Rows::default().integers(emptied.iter().copied());
        transaction.execute(catalog::LEASE_REMOVE.bind(rows)).await?;
    }
    Ok(())
}

/// Whether this very attempt was ended by this worker before.
async fn was_recorded(transaction: &mut Transaction, worker: i64, held: &ClaimedAttempt) -> Result<bool> {
    let run: Option<RunLook> = transaction.fetch_optional(catalog::RUN_SHOW_END.bind(held.run)).await?;
    if run.is_some_and(|run| !run.open && run.attempt == held.attempt && run.worker == Some(worker)) {
        return Ok(true);
    }
    let mine = catalog::ATTEMPT_MINE.bind(held.run).bind(held.attempt).bind(worker);
    let history: Option<(i32,)> = transaction.fetch_optional(mine).await?;
    Ok(history.is_some())
}

/// Writes all endings inside a transaction. False if one of the attempts is not held any more: then nothing may be committed.
pub(crate) async fn end(transaction: &mut Transaction, author: Author, endings: &[Ending]) -> Result<bool> {
    let endings = with_cancellations(transaction, endings).await?;
    let mut endings: Vec<&Ending> = endings.iter().map(AsRef::as_ref).collect();
    endings.sort_by_key(|ending| ending.held.run);
    let leavers: Vec<(JobNumber, String, i64)> = endings
        .iter()
        .filter(|ending| ending.end.leaves_lane())
        .filter_map(|ending| Some((ending.held.job, ending.held.lane.clone()?, ending.held.run)))
        .collect();
    lanes::leave(transaction, &leavers).await?;
    let closed = close(transaction, author.closer(), &endings).await?;
    let follow = keep_history(transaction, author.worker(), &endings).await?;
    let (back, leaving): (Vec<&Ending>, Vec<&Ending>) =
        endings.iter().partition(|ending| matches!(ending.end, End::GivenBack));
    if !leaving.is_empty() {
        let left = transaction.execute(catalog::QUEUE_LEAVE.bind(keys(&leaving))).await?;
        let is_fenced = !failpoint::is_weakened("finish.no-fence");
        if is_fenced && (left != leaving.len() as u64 || closed + follow.len() as u64 != left) {
            return Ok(false);
        }
    }
    for ending in follow {
        queue_again(transaction, ending).await?;
    }
    counts::record(transaction, &endings).await?;
    begun_commands::remove(transaction, &endings).await?;
    let returned = give_back(transaction, &back).await?;
    let has_slot = |ending: &&&Ending| ending.held.slot;
    let mut slots: Vec<i64> = leaving.iter().filter(has_slot).map(|ending| ending.held.run).collect();
    slots.extend(
        back.iter().filter(has_slot).map(|ending| ending.held.run).filter(|run| returned.contains(run)),
    );
    if !slots.is_empty() {
        transaction.execute(catalog::SLOT_FREE.bind(Rows::default().integers(slots))).await?;
    }
    let is_cancelled = |end: &End| matches!(end, End::Closed { event: RunEvent::Cancelled, .. });
    let cancelled = endings.iter().filter(|ending| is_cancelled(&ending.end)).map(|ending| ending.held.run);
    let cancelled: Vec<i64> = cancelled.collect();
    if !cancelled.is_empty() {
        transaction.execute(catalog::CANCELLATION_DONE.bind(Rows::default().integers(cancelled))).await?;
    }
    Ok(true)
}

/// Makes an attempt the last one that another would follow, if the operator has cancelled its run. The lanes and the runs of all
/// endings are locked, each by one statement in their order, and lanes before runs, as everywhere.
async fn with_cancellations<'e>(
    transaction: &mut Transaction,
    endings: &'e [Ending],
) -> Result<Vec<Cow<'e, Ending>>> {
    let follow: Vec<&Ending> =
        endings.iter().filter(|ending| matches!(ending.end, End::Again { .. })).collect();
    if follow.is_empty() {
        return Ok(endings.iter().map(Cow::Borrowed).collect());
    }
    let lanes = endings.iter().filter_map(|ending| Some((ending.held.job, ending.held.lane.as_deref()?)));
    lanes::hold(transaction, &lanes.collect::<Vec<_>>()).await?;
    let all = Rows::default().integers(endings.iter().map(|ending| ending.held.run));
    let _: Vec<(i64,)> = transaction.fetch_all(catalog::RUN_LOCK_MANY.bind(all)).await?;
    let follow = Rows::default().integers(follow.iter().map(|ending| ending.held.run));
    let cancelled: Vec<(i64,)> = transaction.fetch_all(catalog::CANCELLATION_FIND.bind(follow)).await?;
    let is_cancelled =
        |ending: &Ending| matches!(ending.end, End::Again { .. }) && cancelled.contains(&(ending.held.run,));
    let closed = |ending: &Ending| {
        let message = Some("cancelled while it was running".to_owned());
        let end = End::Closed { event: RunEvent::Cancelled, version: None, message };
        Ending { end, reason: None, ..ending.clone() }
    };
    let ended = endings
        .iter()
        .map(|ending| if is_cancelled(ending) { Cow::Owned(closed(ending)) } else { Cow::Borrowed(ending) });
    Ok(ended.collect())
}

/// Gives back attempts that had not begun. Returns the runs of those that were still held.
async fn give_back(transaction: &mut Transaction, back: &[&Ending]) -> Result<Vec<i64>> {
    if back.is_empty() {
        return Ok(Vec::new());
    }
    let runs: Vec<(i64,)> = transaction.fetch_all(catalog::QUEUE_GIVE_BACK.bind(keys(back))).await?;
    Ok(runs.into_iter().map(|(run,)| run).collect())
}

/// What identifies each of them in the queue: its line, run, lease and number.
fn keys(endings: &[&Ending]) -> Rows<'static> {
    Rows::default()
        .integers(endings.iter().map(|ending| ending.held.line.0))
        .integers(endings.iter().map(|ending| ending.held.run))
        .integers(endings.iter().map(|ending| ending.held.lease))
        .integers(endings.iter().map(|ending| i64::from(ending.held.attempt)))
}

async fn close(transaction: &mut Transaction, worker: Option<i64>, endings: &[&Ending]) -> Result<u64> {
    let ends = endings.iter().filter_map(|ending| match &ending.end {
        End::Closed { event, version, message } => {
            Some(recorded(ending, *event, *version, message.as_deref()))
        }
        End::Again { .. } | End::GivenBack => None,
    });
    run_state::close(transaction, worker, &ends.collect::<Vec<_>>()).await
}

/// Attempts that are followed by another one go to the history of their run. Returns them, or none if one was there already.
async fn keep_history<'e>(
    transaction: &mut Transaction,
    worker: i64,
    endings: &[&'e Ending],
) -> Result<Vec<&'e Ending>> {
    let follow = endings.iter().filter_map(|ending| match &ending.end {
        End::Again { event, message, .. } => {
            Some((*ending, recorded(ending, *event, None, message.as_deref())))
        }
        End::Closed { .. } | End::GivenBack => None,
    });
    let (follow, ends): (Vec<&Ending>, Vec<EndedAttempt<'_>>) = follow.unzip();
    let kept = run_state::keep_history(transaction, Some(worker), &ends).await?;
    // An attempt that is history already was ended before. It is missing in the count, and the caller notices.
    Ok(if kept == ends.len() as u64 { follow } else { Vec::new() })
}

fn recorded<'e>(
    ending: &Ending,
    event: RunEvent,
    version: Option<i32>,
    message: Option<&'e str>,
) -> EndedAttempt<'e> {
    let Ending { held, started_at, reason, .. } = ending;
    let (run, attempt) = (held.run, held.attempt);
    EndedAttempt { run, attempt, event, started_at: *started_at, version, message, reason: *reason }
}

async fn queue_again(transaction: &mut Transaction, ending: &Ending) -> Result<()> {
    let End::Again { attempts, wait, .. } = &ending.end else { return Ok(()) };
    let held = &ending.held;
    let line = match (attempts.suspicion, held.line.priority()?) {
        (0, Priority::Suspect) => Line::of(Priority::Live, held.job),
        (0, _) => held.line,
        (_, _) => Line::of(Priority::Suspect, held.job),
    };
    let row = QueueRow { run: held.run, attempts: *attempts, lane: held.lane.is_some() };
    match wait.map(|wait| wait.min(LONGEST_WAIT)) {
        Some(wait) => queue::delay(transaction, line, row, wait).await,
        None => queue::insert(transaction, line, &[row]).await,
    }
}
