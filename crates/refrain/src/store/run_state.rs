//! Every write of a run's state.
//!
//! The statements that write `open` or `outcome` of a run, or the end of an attempt, are private to this file. Its functions take
//! an event, ask the table in `refrain_core::state` what follows from it, and write that. What the table does not allow is an
//! error, and is not written.
//!
//! Claiming a run and moving it between the queue, the delayed attempts and its lane write no state: the table in which an open run
//! is found says whether it is queued or running.

use std::collections::HashMap;

use refrain_core::Word as _;
use refrain_core::person::Verb;
use refrain_core::state::{FailureReason, RunEvent, RunOutcome, RunStanding};

use super::open::NewRun;
use super::queue_line::{JobNumber, Line};
use super::run_row::RunLook;
use super::{Result, StoreError};
use crate::database::statement::{Bound, Rows, Statement};
use crate::database::{DatabaseError, Transaction};
use crate::failpoint;

mod statements {
    use crate::database::statement::catalog;

    catalog! {
        ATTEMPT_INSERT = "sql/attempt/insert.sql",
        ATTEMPT_KEEP = "sql/attempt/keep.sql",
        RUN_CANCEL = "sql/run/cancel.sql",
        RUN_CLOSE = "sql/run/close.sql",
        RUN_ENQUEUE = "sql/run/enqueue.sql",
        RUN_OPEN = "sql/run/open.sql",
        RUN_REOPEN = "sql/run/reopen.sql",
        RUN_SKIP = "sql/run/skip.sql",
        RUN_VOUCH = "sql/run/vouch.sql",
    }
}

#[cfg(feature = "failpoints")]
pub(crate) use statements::ALL;

/// SQLite has no such statement, so it is in no catalogue.
static ENQUEUE_ALONE: Statement = Statement::new(
    "sql/run/enqueue_alone.postgres.sql",
    include_str!("../../sql/run/enqueue_alone.postgres.sql"),
);

/// How an event ends a running attempt: the outcome of its run.
fn closed_by(event: RunEvent) -> Result<RunOutcome> {
    let standing = RunStanding::RUNNING.apply(event)?.standing();
    let outcome = standing.outcome.filter(|_| !standing.is_open());
    outcome.ok_or_else(|| StoreError::Broken(format!("`{event}` does not end a run")))
}

/// Checks that an event of a running attempt queues the run again.
fn queued_by(event: RunEvent) -> Result<RunEvent> {
    let standing = RunStanding::RUNNING.apply(event)?.standing();
    if standing.is_open() { Ok(event) } else { Err(StoreError::Broken(format!("`{event}` ends the run"))) }
}

/// Inserts the runs of windows, queued or skipped. Returns the ids of the new ones by key.
pub(crate) async fn open(
    transaction: &mut Transaction,
    job: JobNumber,
    new_runs: &[NewRun],
) -> Result<HashMap<String, i64>> {
    RunStanding::ABSENT.apply(RunEvent::Opened)?;
    let skipped = RunStanding::ABSENT.apply(RunEvent::Skipped)?.standing().outcome.map(RunOutcome::name);
    let rows = Rows::default()
        .texts(new_runs.iter().map(|run| run.key.to_string()))
        .named("key")
        .integers(new_runs.iter().map(|run| run.start.as_microsecond()))
        .named("window_start")
        .integers(new_runs.iter().map(|run| run.end.as_microsecond()))
        .named("window_end")
        .texts(new_runs.iter().map(|run| skipped.filter(|_| run.skipped.is_some())))
        .named("outcome")
        .texts(new_runs.iter().map(|run| run.skipped.clone()))
        .named("message");
    let opened: Vec<(i64, String)> = transaction.fetch_all(statements::RUN_OPEN.bind(job).bind(rows)).await?;
    Ok(opened.into_iter().map(|(id, key)| (key, id)).collect())
}

/// Records that runs which this transaction has inserted are skipped after all.
pub(crate) async fn skip(transaction: &mut Transaction, runs: &[i64], message: &str) -> Result<()> {
    let skipped = RunStanding::ABSENT.apply(RunEvent::Skipped)?.standing().outcome.map(RunOutcome::name);
    let rows = Rows::default().integers(runs.iter().copied());
    transaction.execute(statements::RUN_SKIP.bind(message).bind(skipped).bind(rows)).await?;
    Ok(())
}

/// Inserts runs of callers' keys, open. Returns the id and the key of each new one.
pub(crate) async fn enqueue(
    transaction: &mut Transaction,
    job: JobNumber,
    rows: Rows<'_>,
) -> std::result::Result<Vec<(i64, String)>, DatabaseError> {
    transaction.fetch_all(statements::RUN_ENQUEUE.bind(job).bind(rows)).await
}

/// The statement that inserts and queues one run of a caller's key by itself.
pub(crate) fn enqueue_alone<'a>(
    job: JobNumber,
    line: Line,
    key: String,
    payload: Option<String>,
) -> Bound<'a> {
    ENQUEUE_ALONE.bind(job).bind(line.0).bind(key).bind(payload)
}

/// The end of an attempt, as it is recorded.
pub(crate) struct EndedAttempt<'e> {
    pub(crate) run: i64,
    pub(crate) attempt: i32,
    pub(crate) event: RunEvent,
    pub(crate) started_at: Option<i64>,
    pub(crate) version: Option<i32>,
    pub(crate) message: Option<&'e str>,
    pub(crate) reason: Option<FailureReason>,
}

/// Ends runs with their running attempts. Returns how many were open.
pub(crate) async fn close(
    transaction: &mut Transaction,
    worker: Option<i64>,
    ends: &[EndedAttempt<'_>],
) -> Result<u64> {
    if ends.is_empty() {
        return Ok(0);
    }
    let outcomes: Vec<RunOutcome> = ends.iter().map(|end| closed_by(end.event)).collect::<Result<_>>()?;
    let rows = Rows::default()
        .integers(ends.iter().map(|end| end.run))
        .named("run")
        .integers(ends.iter().map(|end| i64::from(end.attempt)))
        .named("attempt")
        .integers(ends.iter().map(|end| end.version.map(i64::from)))
        .named("version")
        .texts(outcomes.iter().map(|outcome| outcome.name()))
        .named("outcome")
        .integers(ends.iter().map(|end| end.started_at))
        .named("started_at")
        .texts(ends.iter().map(|end| end.message))
        .named("message")
        .texts(ends.iter().map(|end| known_before(end.reason)))
        .named("reason")
        .texts(ends.iter().map(|end| end.reason.map(FailureReason::name)))
        .named("failure");
    Ok(transaction.execute(statements::RUN_CLOSE.bind(worker).bind(rows)).await?)
}

/// Records attempts that are followed by another one. Returns how many were not recorded before.
pub(crate) async fn keep_history(
    transaction: &mut Transaction,
    worker: Option<i64>,
    ends: &[EndedAttempt<'_>],
) -> Result<u64> {
    if ends.is_empty() {
        return Ok(0);
    }
    let events: Vec<RunEvent> = ends.iter().map(|end| queued_by(end.event)).collect::<Result<_>>()?;
    insert_history(transaction, worker, ends, &events).await
}

async fn insert_history(
    transaction: &mut Transaction,
    worker: Option<i64>,
    ends: &[EndedAttempt<'_>],
    events: &[RunEvent],
) -> Result<u64> {
    let rows = Rows::default()
        .integers(ends.iter().map(|end| end.run))
        .named("run")
        .integers(ends.iter().map(|end| i64::from(end.attempt)))
        .named("number")
        .texts(events.iter().map(|event| event.name()))
        .named("ended")
        .integers(ends.iter().map(|end| end.started_at))
        .named("started_at")
        .texts(ends.iter().map(|end| end.message))
        .named("message")
        .texts(ends.iter().map(|end| known_before(end.reason)))
        .named("reason")
        .texts(ends.iter().map(|end| end.reason.map(FailureReason::name)))
        .named("failure");
    Ok(transaction.execute(statements::ATTEMPT_INSERT.bind(worker).bind(rows)).await?)
}

/// What the column `reason` holds: the reasons that releases before schema 6 can read. They know nothing of `failure`.
fn known_before(reason: Option<FailureReason>) -> Option<&'static str> {
    let known = [FailureReason::TimedOut, FailureReason::Held, FailureReason::InDoubt];
    reason.filter(|reason| known.contains(reason)).map(FailureReason::name)
}

/// Cancels a run whose open attempt is queued. A run that had an outcome keeps it; its attempt goes to the history.
pub(crate) async fn cancel(
    transaction: &mut Transaction,
    run: &RunLook,
    attempt: i32,
    message: &str,
) -> Result<()> {
    let cancelled = run.standing()?.apply(RunEvent::Cancelled)?;
    if run.outcome.is_some() {
        let end = EndedAttempt {
            run: run.id,
            attempt,
            event: cancelled.event(),
            started_at: None,
            version: None,
            message: Some(message),
            reason: None,
        };
        insert_history(transaction, None, &[end], &[cancelled.event()]).await?;
    }
    let outcome = cancelled.standing().outcome.map(RunOutcome::name);
    let cancel = statements::RUN_CANCEL.bind(run.id).bind(attempt).bind(message).bind(outcome);
    transaction.execute(cancel).await?;
    Ok(())
}

/// Opens a run again that has ended; the ended attempt goes to the history. False if the run is not as it was read, or is open.
pub(crate) async fn reopen(transaction: &mut Transaction, run: &RunLook, verb: Verb) -> Result<bool> {
    let is_refused = run.standing()?.apply(RunEvent::Reopened).is_err();
    if is_refused && !failpoint::is_weakened("reopen.no-look-up") {
        return Ok(false);
    }
    let reopen = statements::RUN_REOPEN.bind(run.id).bind(run.attempt).bind(verb.name());
    if transaction.execute(reopen).await? == 0 {
        return Ok(false);
    }
    transaction.execute(statements::ATTEMPT_KEEP.bind(run.id)).await?;
    Ok(true)
}

/// Records that an interrupted run is done, as an attempt that no worker has made. False if the run is not as it was read.
pub(crate) async fn vouch(
    transaction: &mut Transaction,
    run: &RunLook,
    version: Option<i32>,
    message: &str,
) -> Result<bool> {
    let outcome = run.standing()?.apply(RunEvent::Vouched)?.standing().outcome.map(RunOutcome::name);
    transaction.execute(statements::ATTEMPT_KEEP.bind(run.id)).await?;
    let vouch = statements::RUN_VOUCH.bind(run.id).bind(run.attempt).bind(version.map(i64::from));
    Ok(transaction.execute(vouch.bind(message).bind(outcome)).await? > 0)
}

#[cfg(test)]
mod tests {
    use refrain_core::state::RunTransition;

    use super::*;

    #[test]
    fn i20_an_event_that_the_table_does_not_allow_ends_no_attempt() {
        for event in RunEvent::ALL {
            let allowed = RunStanding::RUNNING.apply(*event).map(RunTransition::standing);
            assert_eq!(
                closed_by(*event).ok(),
                allowed.as_ref().ok().and_then(|after| after.outcome),
                "{event}"
            );
            assert_eq!(queued_by(*event).is_ok(), allowed.is_ok_and(RunStanding::is_open), "{event}");
        }
    }

    #[cfg(feature = "failpoints")]
    #[test]
    fn i20_only_this_file_writes_the_state_of_a_run() {
        let writes_state = |text: &str| {
            let set = text.split_once("update refrain_runs").and_then(|(_, rest)| rest.split_once("set "));
            let set = set.map_or("", |(_, rest)| rest.split("\nwhere").next().unwrap_or_default());
            let is_set = set.split(',').any(|one| {
                one.trim_start().starts_with("open =") || one.trim_start().starts_with("outcome =")
            });
            is_set
                || text.contains("insert into refrain_runs")
                || text.contains("insert into refrain_attempts")
        };
        let stray: Vec<&str> = crate::store::catalog::ALL
            .iter()
            .filter(|one| writes_state(one.sqlite()))
            .map(|one| one.name)
            .collect();
        assert_eq!(stray, Vec::<&str>::new(), "move these statements to store/run_state.rs");
        let blind: Vec<&str> =
            ALL.iter().filter(|one| !writes_state(one.sqlite())).map(|one| one.name).collect();
        assert_eq!(blind, Vec::<&str>::new(), "these write no state");
    }
}
