//! The insert of every run that belongs to a window: of a tick, of an expansion into scopes, of an operator's request.
//!
//! One statement (`run_state.rs`) inserts the rows and returns those that are new; a row that exists is a dedupe. New runs go into
//! the queue, or behind the run that holds their lane. Runs of callers' keys have no window and no lane, and are inserted by
//! `enqueue.rs`.

use std::collections::HashMap;

use jiff::Timestamp;
use refrain_core::state::{AttemptChange, Attempts};
use refrain_core::{RunKey, WhileRunning};

use super::lanes::{self, Entrant};
use super::queue::{self, QueueRow};
use super::queue_line::{JobNumber, Line, Priority};
use super::{Result, Store, catalog, run_state, with_retries};
use crate::database::statement::Rows;
use crate::database::{Transaction, place};

/// Why `while-running = "skip"` skips a run.
const ANOTHER_RUN: &str = "another run of this job was running; while-running = \"skip\"";

/// How many runs were opened, skipped or found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct OpenCounts {
    pub(crate) opened: usize,
    pub(crate) skipped: usize,
    pub(crate) deduplicated: usize,
    /// Whether more is due.
    pub(crate) more: bool,
}

impl OpenCounts {
    pub(crate) fn add(&mut self, other: OpenCounts) {
        self.opened += other.opened;
        self.skipped += other.skipped;
        self.deduplicated += other.deduplicated;
    }
}

/// A run to insert.
#[derive(Debug, Clone)]
pub(crate) struct NewRun {
    pub(crate) key: RunKey,
    pub(crate) start: Timestamp,
    pub(crate) end: Timestamp,
    pub(crate) priority: Priority,
    /// Why it is skipped, if it is.
    pub(crate) skipped: Option<String>,
}

/// Inserts the runs of windows, puts those that may begin into the queue and the others behind them, and records dedupes for
/// the asker, if there is one.
pub(crate) async fn insert(
    transaction: &mut Transaction,
    job: JobNumber,
    while_running: WhileRunning,
    new_runs: &[NewRun],
    requested_by: Option<&str>,
) -> Result<OpenCounts> {
    if new_runs.is_empty() {
        return Ok(OpenCounts::default());
    }
    let ids = run_state::open(transaction, job, new_runs).await?;
    let first = Attempts::default().then(AttemptChange::Fresh);
    let mut counts = OpenCounts::default();
    let (mut runs, mut duplicates) = (Vec::new(), Vec::new());
    for new_run in new_runs {
        match ids.get(new_run.key.as_key().as_str()) {
            None => duplicates.push(new_run.key.to_string()),
            Some(_) if new_run.skipped.is_some() => counts.skipped += 1,
            Some(run) => runs.push((new_run.priority, Entrant::new(new_run.key.to_string(), *run, first))),
        }
    }
    counts.deduplicated = duplicates.len();
    if let Some(requested_by) = requested_by.filter(|_| !duplicates.is_empty()) {
        let rows = Rows::default()
            .integers(duplicates.iter().map(|_| i64::from(job)))
            .texts(duplicates.iter().cloned())
            .texts(duplicates.iter().map(|_| None::<String>));
        transaction.execute(catalog::DEDUPE_RECORD.bind(requested_by).bind(rows)).await?;
    }
    let opened = runs.len();
    let skipped = queue_up(transaction, job, while_running, runs).await?;
    counts.skipped += skipped;
    counts.opened = opened - skipped;
    Ok(counts)
}

/// Puts new runs into the queue, or behind the run that holds their lane. Returns how many were skipped because of it. The oldest
/// window enters a lane first, whatever its priority.
async fn queue_up(
    transaction: &mut Transaction,
    job: JobNumber,
    while_running: WhileRunning,
    runs: Vec<(Priority, Entrant)>,
) -> Result<usize> {
    if runs.is_empty() {
        return Ok(0);
    }
    let has_lane = while_running != WhileRunning::Allow;
    let priorities: HashMap<i64, Priority> =
        runs.iter().map(|(priority, one)| (one.run, *priority)).collect();
    let entrants: Vec<Entrant> = runs.into_iter().map(|(_, entrant)| entrant).collect();
    let (free, held) =
        if has_lane { lanes::take(transaction, job, entrants).await? } else { (entrants, Vec::new()) };
    for priority in Priority::ALL {
        let line = Line::of(priority, job);
        let of_priority = |one: &&Entrant| priorities.get(&one.run) == Some(&priority);
        let free: Vec<QueueRow> =
            free.iter().filter(of_priority).map(|entrant| entrant.queued(has_lane)).collect();
        queue::insert(transaction, line, &free).await?;
        if while_running == WhileRunning::Queue {
            let held: Vec<Entrant> = held.iter().filter(of_priority).cloned().collect();
            lanes::wait(transaction, job, line, &held).await?;
        }
    }
    if while_running != WhileRunning::Skip || held.is_empty() {
        return Ok(0);
    }
    let held_runs: Vec<i64> = held.iter().map(|entrant| entrant.run).collect();
    run_state::skip(transaction, &held_runs, ANOTHER_RUN).await?;
    Ok(held.len())
}

/// Opens the run of one window on request. Returns whether it was new.
pub(crate) async fn open_one(
    store: &Store,
    job: JobNumber,
    while_running: WhileRunning,
    new_run: &NewRun,
    requested_by: &str,
) -> Result<bool> {
    // A caller who asks for a run waits for the lane. Skipping is for windows that no caller waits for.
    let lane = if while_running == WhileRunning::Skip { WhileRunning::Queue } else { while_running };
    let mut is_first = true;
    with_retries(|| {
        // After a lost answer the run may be our own, and must not count as asked for again.
        let requested_by = std::mem::replace(&mut is_first, false).then_some(requested_by);
        async move {
            let mut transaction = store.database.write().await?;
            let counts =
                insert(&mut transaction, job, lane, std::slice::from_ref(new_run), requested_by).await?;
            transaction.commit(place!("open")).await?;
            Ok(counts.opened > 0)
        }
    })
    .await
}
