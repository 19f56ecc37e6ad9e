//! How jobs and their runs stand, for readers: all jobs, and pages of runs with the newest first.
//!
//! How many runs of a job stand where is counted over a page and not over all of them, for nothing indexes the state
//! of a run: an index would be paid for with every run that ends.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use refrain_core::state::RunNode;

use super::{Refrain, RunRecord};
use crate::error::Error;
use crate::store::run_row::RunRow;
use crate::store::{instant, jobs, schedules, show};

/// The most runs in one page.
pub(super) const PAGE: i64 = 500;

/// A job that was ever registered in this store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobRecord {
    /// What it is called.
    pub name: String,
    /// Whether it is among the jobs of this process.
    pub is_known: bool,
    /// Since when it is paused, if it is.
    pub paused_at: Option<Timestamp>,
    /// The timetable in force, if it has one: `0 2 * * *, Europe/Berlin, window = "day"`.
    pub timetable: Option<String>,
    /// When a scheduler next opens something for it.
    pub next_at: Option<Timestamp>,
    /// How many timetables it has had.
    pub revisions: u64,
    /// The version of its logic, if it is known here.
    pub version: Option<u32>,
    /// How long after its tick a window is late, if that is said.
    pub grace: Option<Duration>,
}

impl Refrain {
    /// Every job that was ever registered in this store, by name.
    pub async fn job_records(&self) -> Result<Vec<JobRecord>, Error> {
        let timetables = schedules::in_force(self.store()).await?;
        let known = self.engine.jobs.now();
        let records = jobs::standing(self.store()).await?.into_iter().map(|row| {
            let definition = known.get(row.id);
            Ok(JobRecord {
                is_known: definition.is_some(),
                paused_at: row.paused_at.map(instant).transpose()?,
                timetable: timetables.get(&row.id).map(ToString::to_string),
                next_at: row.next_at.map(instant).transpose()?,
                revisions: u64::try_from(row.revisions).unwrap_or_default(),
                version: definition.map(|definition| definition.version),
                grace: definition.and_then(|definition| definition.grace),
                name: row.name,
            })
        });
        records.collect()
    }

    /// Runs of a job, the newest window first (or the highest key), before the key `before`; no more than a page of 500.
    pub async fn latest(
        &self,
        job: &str,
        before: Option<&str>,
        limit: usize,
    ) -> Result<Vec<RunRecord>, Error> {
        let (number, _) = self.recorded_job(job).await?;
        self.records(show::latest(self.store(), number, before, page(limit)).await?).await
    }

    /// Runs of all jobs, those that were opened last first, before the one with this
    /// [`number`](RunRecord::number); no more than a page of 500.
    pub async fn recent(&self, before: Option<i64>, limit: usize) -> Result<Vec<RunRecord>, Error> {
        self.records(show::recent(self.store(), before, page(limit)).await?).await
    }

    /// Rows as records: where the open ones stand is looked up. A row that cannot be read is said and left out: it must not
    /// hide the others.
    pub(super) async fn records(&self, rows: Vec<RunRow>) -> Result<Vec<RunRecord>, Error> {
        let mut records = Vec::with_capacity(rows.len());
        for row in rows {
            if let Some(fault) = row.fault() {
                tracing::error!("a run is not listed: {fault}; `refrain fsck` lists what is wrong");
                continue;
            }
            let id = row.id;
            let record = if row.open { self.record(id).await } else { RunRecord::of(row, None).map(Some) };
            match record {
                Err(error) if error.is_unreadable() => {
                    tracing::error!("run {id} is not listed: {error}; `refrain fsck` lists what is wrong");
                }
                record => records.extend(record?),
            }
        }
        Ok(records)
    }
}

impl RunRecord {
    /// The number of the run in its store; it grows with each run that is opened.
    pub fn number(&self) -> i64 {
        self.id
    }

    /// How many of these runs stand where.
    pub fn counted(runs: &[RunRecord]) -> BTreeMap<RunNode, usize> {
        let mut counts = BTreeMap::new();
        for run in runs {
            *counts.entry(run.standing.node()).or_default() += 1;
        }
        counts
    }
}

fn page(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(PAGE).clamp(0, PAGE)
}
