//! Ends attempts, many in one transaction.
//!
//! A run's row is written first and its place in the queue removed after, under the lease and number that the attempt
//! had; as many must go as were written, or the transaction is undone. So the word of an attempt that was taken
//! over counts for nothing, however late it comes, and its neighbours in the batch are ended without it. The same
//! word said twice, because the first answer was lost, finds that it was heard.

use std::borrow::Cow;
use std::time::Duration;

use refrain_core::Word;
use refrain_core::state::{Attempts, FailureReason, RunEvent, RunOutcome};

use super::queue_line::{JobNumber, Line, Priority};
use super::run_row::RunLook;
use super::{Result, Store, begun_commands, catalog, counts, lanes, microseconds, with_retries};
use crate::database::statement::Rows;
use crate::database::{DatabaseError, Transaction, place, retried};
use crate::failpoint;
use crate::ledger::tally::Told;

/// No wait is longer, whatever the other side asks for.
const LONGEST_WAIT: Duration = Duration::from_hours(366 * 24);

/// What an attempt holds, and by what right.
#[derive(Debug, Clone)]
pub(crate) struct Held {
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
    /// The run is over.
    Closed { outcome: RunOutcome, version: Option<i32>, message: Option<String> },
    /// Another attempt follows, perhaps not before some time.
    Again { event: RunEvent, attempts: Attempts, wait: Option<Duration>, message: Option<String> },
    /// It goes back whole.
    GivenBack,
}

impl End {
    /// Whether the run gives its lane up: one that goes straight back to the queue keeps it.
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
    pub(crate) held: Held,
    pub(crate) started_at: Option<i64>,
    pub(crate) end: End,
    /// What became of its units, if it met any.
    pub(crate) units: Option<Box<Told>>,
    /// Whether the end of what it began is known, so that a later attempt need not be afraid of doing it twice.
    pub(crate) settles: bool,
    /// Why it did not do its work, where that decides what comes next.
    pub(crate) reason: Option<FailureReason>,
}

/// Whose word an ending is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Author {
    /// The worker that held the attempt.
    Worker(i64),
    /// Somebody who takes over from this worker.
    Rescuer(i64),
}

impl Author {
    fn worker(self) -> i64 {
        match self {
            Author::Worker(worker) | Author::Rescuer(worker) => worker,
        }
    }

    /// Who is written down as having ended the run: a worker that comes back must not take that word for its own.
    fn closer(self) -> Option<i64> {
        match self {
            Author::Worker(worker) => Some(worker),
            Author::Rescuer(_) => None,
        }
    }
}

/// Whether an attempt's word counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Landed {
    Yes,
    /// The attempt had been taken over, or cancelled. Nothing of it was recorded.
    Lost,
}

/// Ends attempts of one worker, and removes leases that have no member left. Gives what became of each.
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
    let heard = was_heard(&mut transaction, worker, &ending.held).await?;
    Ok(if heard { Landed::Yes } else { Landed::Lost })
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
async fn was_heard(transaction: &mut Transaction, worker: i64, held: &Held) -> Result<bool> {
    let run: Option<RunLook> = transaction.fetch_optional(catalog::RUN_SHOW_END.bind(held.run)).await?;
    if run.is_some_and(|run| !run.open && run.attempt == held.attempt && run.worker == Some(worker)) {
        return Ok(true);
    }
    let mine = catalog::ATTEMPT_MINE.bind(held.run).bind(held.attempt).bind(worker);
    let history: Option<(i32,)> = transaction.fetch_optional(mine).await?;
    Ok(history.is_some())
}

/// Writes all endings inside a transaction. False if one of them has no right to: then nothing may be committed.
pub(crate) async fn end(transaction: &mut Transaction, author: Author, endings: &[Ending]) -> Result<bool> {
    let endings = called_off(transaction, endings).await?;
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
        let left = transaction.execute(catalog::QUEUE_LEAVE.bind(rights(&leaving))).await?;
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
    let is_cancelled = |end: &End| matches!(end, End::Closed { outcome: RunOutcome::Cancelled, .. });
    let cancelled = endings.iter().filter(|ending| is_cancelled(&ending.end)).map(|ending| ending.held.run);
    let cancelled: Vec<i64> = cancelled.collect();
    if !cancelled.is_empty() {
        transaction.execute(catalog::CANCELLATION_DONE.bind(Rows::default().integers(cancelled))).await?;
    }
    Ok(true)
}

/// An attempt that would be followed by another one, and that an operator has cancelled, is the last one. The lanes and the runs
/// of all endings are held, each by one statement in their order, and lanes before runs, as everywhere.
async fn called_off<'e>(
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
    let wishes: Vec<(i64,)> = transaction.fetch_all(catalog::CANCELLATION_FIND.bind(follow)).await?;
    let is_wished =
        |ending: &Ending| matches!(ending.end, End::Again { .. }) && wishes.contains(&(ending.held.run,));
    let closed = |ending: &Ending| {
        let message = Some("cancelled while it was under way".to_owned());
        let end = End::Closed { outcome: RunOutcome::Cancelled, version: None, message };
        Ending { end, reason: None, ..ending.clone() }
    };
    let ended = endings
        .iter()
        .map(|ending| if is_wished(ending) { Cow::Owned(closed(ending)) } else { Cow::Borrowed(ending) });
    Ok(ended.collect())
}

/// Gives attempts back that had not begun. Gives those that were still held.
async fn give_back(transaction: &mut Transaction, back: &[&Ending]) -> Result<Vec<i64>> {
    if back.is_empty() {
        return Ok(Vec::new());
    }
    let runs: Vec<(i64,)> = transaction.fetch_all(catalog::QUEUE_GIVE_BACK.bind(rights(back))).await?;
    Ok(runs.into_iter().map(|(run,)| run).collect())
}

/// By what right each of them ends: its place, lease and number.
fn rights(endings: &[&Ending]) -> Rows<'static> {
    Rows::default()
        .integers(endings.iter().map(|ending| ending.held.line.0))
        .integers(endings.iter().map(|ending| ending.held.run))
        .integers(endings.iter().map(|ending| ending.held.lease))
        .integers(endings.iter().map(|ending| i64::from(ending.held.attempt)))
}

async fn close(transaction: &mut Transaction, worker: Option<i64>, endings: &[&Ending]) -> Result<u64> {
    let closed: Vec<_> = endings
        .iter()
        .filter_map(|ending| match &ending.end {
            End::Closed { outcome, version, message } => Some((ending, outcome, version, message)),
            _ => None,
        })
        .collect();
    if closed.is_empty() {
        return Ok(0);
    }
    let rows = Rows::default()
        .integers(closed.iter().map(|(ending, ..)| ending.held.run))
        .integers(closed.iter().map(|(ending, ..)| i64::from(ending.held.attempt)))
        .integers(closed.iter().map(|(_, _, version, _)| version.map(i64::from)))
        .texts(closed.iter().map(|(_, outcome, ..)| outcome.name().to_owned()))
        .integers(closed.iter().map(|(ending, ..)| ending.started_at))
        .texts(closed.iter().map(|(.., message)| (*message).clone()))
        .texts(closed.iter().map(|(ending, ..)| ending.reason.map(|reason| reason.name().to_owned())));
    Ok(transaction.execute(catalog::RUN_CLOSE.bind(worker).bind(rows)).await?)
}

/// Attempts that are followed by another go to the history of their run.
async fn keep_history<'e>(
    transaction: &mut Transaction,
    worker: i64,
    endings: &[&'e Ending],
) -> Result<Vec<&'e Ending>> {
    let follow: Vec<(&'e Ending, RunEvent, &Option<String>)> = endings
        .iter()
        .filter_map(|ending| match &ending.end {
            End::Again { event, message, .. } => Some((*ending, *event, message)),
            _ => None,
        })
        .collect();
    if follow.is_empty() {
        return Ok(Vec::new());
    }
    let rows = Rows::default()
        .integers(follow.iter().map(|(ending, ..)| ending.held.run))
        .integers(follow.iter().map(|(ending, ..)| i64::from(ending.held.attempt)))
        .texts(follow.iter().map(|(_, event, _)| event.name().to_owned()))
        .integers(follow.iter().map(|(ending, ..)| ending.started_at))
        .texts(follow.iter().map(|(.., message)| (*message).clone()))
        .texts(follow.iter().map(|(ending, ..)| ending.reason.map(|reason| reason.name().to_owned())));
    let kept = transaction.execute(catalog::ATTEMPT_INSERT.bind(worker).bind(rows)).await?;
    let follow: Vec<&Ending> = follow.into_iter().map(|(ending, ..)| ending).collect();
    // One that is history already was ended before: it is left out of the count, and the caller finds that out.
    Ok(if kept == follow.len() as u64 { follow } else { Vec::new() })
}

async fn queue_again(transaction: &mut Transaction, ending: &Ending) -> Result<()> {
    let End::Again { attempts, wait, .. } = &ending.end else { return Ok(()) };
    let held = &ending.held;
    let line = match (attempts.suspicion, held.line.priority()?) {
        (0, Priority::Suspect) => Line::of(Priority::Live, held.job),
        (0, _) => held.line,
        (_, _) => Line::of(Priority::Suspect, held.job),
    };
    let attempt = i64::try_from(attempts.number).unwrap_or(i64::MAX);
    let (spent, suspicion) = (i64::from(attempts.spent), i64::from(attempts.suspicion));
    if let Some(wait) = wait.map(|wait| wait.min(LONGEST_WAIT)) {
        let delayed = catalog::DELAYED_INSERT.bind(microseconds(wait)).bind(held.run).bind(line.0);
        let delayed = delayed.bind(attempt).bind(spent).bind(suspicion).bind(held.lane.is_some());
        transaction.execute(delayed).await?;
    } else {
        let rows = Rows::default()
            .integers([held.run])
            .integers([attempt])
            .integers([spent])
            .integers([suspicion])
            .booleans([held.lane.is_some()]);
        transaction.execute(catalog::QUEUE_INSERT.bind(line.0).bind(rows)).await?;
    }
    Ok(())
}
