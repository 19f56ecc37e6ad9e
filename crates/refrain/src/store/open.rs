//! The insert of every run that belongs to a window: of a tick, of an expansion into scopes, of an operator's request.
//!
//! One statement inserts the rows and returns those that are new; a row that exists is a dedupe. New runs go into the queue, or
//! behind the run that holds their lane. Runs of callers' keys have no window and no lane, and are inserted by `enqueue.rs`.

use std::collections::HashMap;

use jiff::Timestamp;
use refrain_core::{RunKey, WhileRunning};

use super::enqueue::by_key;
use super::lanes::{self, Entrant};
use super::queue_line::{JobNumber, Line, Priority};
use super::{Result, Store, catalog, with_retries};
use crate::database::statement::Rows;
use crate::database::{Transaction, place};

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
    /// Why it is passed over, if it is.
    pub(crate) skipped: Option<String>,
}

/// Inserts the runs of windows, puts those that may begin into the queue and the others behind them, and records
/// dedupes if it is known who asked.
pub(crate) async fn insert(
    transaction: &mut Transaction,
    job: JobNumber,
    while_running: WhileRunning,
    new_runs: &[NewRun],
    asked: Option<&str>,
) -> Result<OpenCounts> {
    if new_runs.is_empty() {
        return Ok(OpenCounts::default());
    }
    let rows = Rows::default()
        .texts(new_runs.iter().map(|opening| opening.key.to_string()))
        .integers(new_runs.iter().map(|opening| opening.start.as_microsecond()))
        .integers(new_runs.iter().map(|opening| opening.end.as_microsecond()))
        .texts(new_runs.iter().map(|opening| opening.skipped.as_ref().map(|_| "skipped".to_owned())))
        .texts(new_runs.iter().map(|opening| opening.skipped.clone()));
    let news = by_key(transaction.fetch_all(catalog::RUN_OPEN.bind(job).bind(rows)).await?);
    let mut ticked = OpenCounts::default();
    let (mut runs, mut duplicates) = (Vec::new(), Vec::new());
    for opening in new_runs {
        match news.get(opening.key.as_key().as_str()) {
            None => duplicates.push(opening.key.to_string()),
            Some(_) if opening.skipped.is_some() => ticked.skipped += 1,
            Some(run) => runs.push((opening.priority, entrant(opening, *run))),
        }
    }
    ticked.deduplicated = duplicates.len();
    if let Some(asked) = asked.filter(|_| !duplicates.is_empty()) {
        let rows = Rows::default()
            .integers(duplicates.iter().map(|_| i64::from(job)))
            .texts(duplicates.iter().cloned())
            .texts(duplicates.iter().map(|_| None::<String>));
        transaction.execute(catalog::DEDUPE_RECORD.bind(asked).bind(rows)).await?;
    }
    let opened = runs.len();
    let skipped = line_up(transaction, job, while_running, runs).await?;
    ticked.skipped += skipped;
    ticked.opened = opened - skipped;
    Ok(ticked)
}

fn entrant(opening: &NewRun, run: i64) -> Entrant {
    Entrant::fresh(opening.key.to_string(), run, 1)
}

/// Puts new runs into the queue, or behind the run that holds their lane. Gives how many were skipped for it. The
/// oldest window enters a lane first, whatever its priority.
async fn line_up(
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
        let line = Line::of(priority, job).0;
        let of_priority = |one: &&Entrant| priorities.get(&one.run) == Some(&priority);
        let free: Vec<&Entrant> = free.iter().filter(of_priority).collect();
        if !free.is_empty() {
            let rows = lanes::queued(&free, has_lane);
            transaction.execute(catalog::QUEUE_INSERT.bind(line).bind(rows)).await?;
        }
        if while_running == WhileRunning::Queue {
            let held: Vec<Entrant> = held.iter().filter(of_priority).cloned().collect();
            lanes::wait(transaction, job, line, &held).await?;
        }
    }
    if while_running != WhileRunning::Skip || held.is_empty() {
        return Ok(0);
    }
    let rows = Rows::default().integers(held.iter().map(|entrant| entrant.run));
    let message = "another run of this job was under way; while-running = \"skip\"";
    transaction.execute(catalog::RUN_SKIP.bind(message).bind(rows)).await?;
    Ok(held.len())
}

/// Opens the run of one window that a person asked for. Gives whether it was new.
pub(crate) async fn open_one(
    store: &Store,
    job: JobNumber,
    while_running: WhileRunning,
    opening: &NewRun,
    asked: &str,
) -> Result<bool> {
    // A person who asks waits for the lane; skipping is for windows that nobody waits for.
    let lane = if while_running == WhileRunning::Skip { WhileRunning::Queue } else { while_running };
    let mut is_first = true;
    with_retries(|| {
        // After a lost answer it may be our own, and it would look as if somebody had asked again.
        let asked = std::mem::replace(&mut is_first, false).then_some(asked);
        async move {
            let mut transaction = store.database.write().await?;
            let ticked = insert(&mut transaction, job, lane, std::slice::from_ref(opening), asked).await?;
            transaction.commit(place!("open")).await?;
            Ok(ticked.opened > 0)
        }
    })
    .await
}
