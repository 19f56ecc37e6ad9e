//! One tick of one schedule: the rows of every window that is due, then how far windows are opened, in one
//! transaction.
//!
//! What is due is decided by the core ([`refrain_core::Revision::pass`]); this writes it down. Rows first, then the
//! advance: the other way round, a crash in between would lose windows in silence. A schedule that another scheduler
//! holds is left to it; two that tick the same windows all the same insert each once, and the second finds a dedupe.

use std::collections::HashMap;

use jiff::Timestamp;
use refrain_core::{CatchUp, Pass, RunKey, Scope, Verdict, WhileRunning};

use super::enqueue::by_key;
use super::lanes::{self, Entrant};
use super::line::{JobNumber, Line, Priority};
use super::{Result, Store, catalog, instant, revisions, settled};
use crate::database::statement::Rows;
use crate::database::{Transaction, place};
use crate::failpoint;

/// The most windows that one tick opens; the rest is opened by the next one.
pub(crate) const WINDOWS_MAX: usize = 1_000;

/// A job whose schedule is to be looked at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scheduled {
    pub(crate) job: JobNumber,
    pub(crate) catch_up: CatchUp,
    pub(crate) while_running: WhileRunning,
}

/// What a tick did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Ticked {
    pub(crate) opened: usize,
    pub(crate) skipped: usize,
    pub(crate) deduplicated: usize,
    /// Whether more is due.
    pub(crate) more: bool,
}

impl Ticked {
    pub(crate) fn add(&mut self, other: Ticked) {
        self.opened += other.opened;
        self.skipped += other.skipped;
        self.deduplicated += other.deduplicated;
    }
}

#[derive(sqlx_macros::FromRow)]
pub(super) struct Schedule {
    pub(super) covered: Option<i64>,
    pub(super) paused_at: Option<i64>,
}

/// Opens what is due at `now`. None if somebody else is at this schedule, or there is none.
pub(crate) async fn tick(store: &Store, scheduled: Scheduled, now: Timestamp) -> Result<Option<Ticked>> {
    settled(|| ticked(store, scheduled, now)).await
}

async fn ticked(store: &Store, scheduled: Scheduled, now: Timestamp) -> Result<Option<Ticked>> {
    let mut transaction = store.database.write().await?;
    let lock = catalog::SCHEDULE_LOCK.bind(scheduled.job);
    let Some(schedule) = transaction.fetch_optional::<Schedule>(lock).await? else { return Ok(None) };
    let revisions = revisions::read(&mut transaction, scheduled.job).await?;
    let Some(revisions) = revisions.filter(|revisions| !revisions.is_retired()) else { return Ok(None) };
    let covered = schedule.covered.map(instant).transpose()?;
    let pass = revisions.current().pass(covered, scheduled.catch_up, now, WINDOWS_MAX);
    if failpoint::is_weakened("tick.advance-first") {
        advance(&mut transaction, scheduled.job, &pass).await?;
        transaction.commit(place!("tick-weakened")).await?;
        transaction = store.database.write().await?;
    }
    let mut ticked = open(&mut transaction, scheduled, &pass, schedule.paused_at.is_some()).await?;
    advance(&mut transaction, scheduled.job, &pass).await?;
    transaction.commit(place!("tick")).await?;
    ticked.more = pass.next.is_some_and(|next| next <= now);
    Ok(Some(ticked))
}

async fn advance(transaction: &mut Transaction, job: JobNumber, pass: &Pass) -> Result<()> {
    let at = |instant: Option<Timestamp>| instant.map(Timestamp::as_microsecond);
    let advance = catalog::SCHEDULE_ADVANCE.bind(job).bind(at(pass.covered)).bind(at(pass.next));
    transaction.execute(advance).await?;
    Ok(())
}

/// A window that gets a row.
#[derive(Debug, Clone)]
pub(crate) struct Opening {
    pub(crate) key: RunKey,
    pub(crate) start: Timestamp,
    pub(crate) end: Timestamp,
    pub(crate) priority: Priority,
    /// Why it is passed over, if it is.
    pub(crate) skipped: Option<String>,
}

async fn open(
    transaction: &mut Transaction,
    scheduled: Scheduled,
    pass: &Pass,
    is_paused: bool,
) -> Result<Ticked> {
    let openings: Vec<Opening> = pass
        .rows
        .iter()
        .map(|(opening, verdict)| {
            let skipped = match verdict {
                Verdict::Skipped(reason) => Some(reason.to_string()),
                _ if is_paused => Some("the job is paused".to_owned()),
                _ => None,
            };
            let priority = if *verdict == Verdict::OnTime { Priority::Live } else { Priority::CatchUp };
            Opening {
                key: RunKey::windowed(opening.window.start(), &Scope::default()),
                start: opening.window.start().timestamp(),
                end: opening.window.end().timestamp(),
                priority,
                skipped,
            }
        })
        .collect();
    insert(transaction, scheduled.job, scheduled.while_running, &openings, Some("tick")).await
}

/// Inserts the runs of windows, puts those that may begin into the queue and the others behind them, and records
/// dedupes if it is known who asked.
pub(crate) async fn insert(
    transaction: &mut Transaction,
    job: JobNumber,
    while_running: WhileRunning,
    openings: &[Opening],
    asked: Option<&str>,
) -> Result<Ticked> {
    if openings.is_empty() {
        return Ok(Ticked::default());
    }
    let rows = Rows::default()
        .texts(openings.iter().map(|opening| opening.key.to_string()))
        .integers(openings.iter().map(|opening| opening.start.as_microsecond()))
        .integers(openings.iter().map(|opening| opening.end.as_microsecond()))
        .texts(openings.iter().map(|opening| opening.skipped.as_ref().map(|_| "skipped".to_owned())))
        .texts(openings.iter().map(|opening| opening.skipped.clone()));
    let news = by_key(transaction.fetch_all(catalog::RUN_OPEN.bind(job).bind(rows)).await?);
    let mut ticked = Ticked::default();
    let (mut runs, mut duplicates) = (Vec::new(), Vec::new());
    for opening in openings {
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

fn entrant(opening: &Opening, run: i64) -> Entrant {
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
    opening: &Opening,
    asked: &str,
) -> Result<bool> {
    // A person who asks waits for the lane; skipping is for windows that nobody waits for.
    let lane = if while_running == WhileRunning::Skip { WhileRunning::Queue } else { while_running };
    let mut is_first = true;
    settled(|| {
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
