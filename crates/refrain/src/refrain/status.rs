//! Jobs and their runs, for readers: all jobs, and pages of runs with the newest first.
//!
//! Runs are counted by state over a page and not over all of them, because nothing indexes the state of a run: an index
//! would cost a write for every run that ends.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use refrain_core::Timetable;
use refrain_core::state::RunNode;
use serde::{Serialize as _, Serializer};

use super::{Refrain, RunRecord};
use crate::error::Error;
use crate::store::show::{self, Shown};
use crate::store::{instant, jobs, schedules};

/// The most runs in one page.
pub(super) const PAGE: i64 = 500;

/// A job that was ever registered in this store.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct JobRecord {
    /// Its name.
    pub name: String,
    /// Whether this process knows it.
    pub is_known: bool,
    /// Since when it is paused, if it is.
    pub paused_at: Option<Timestamp>,
    /// The timetable in force, if it has one: `0 2 * * *, Europe/Berlin, window = "day"`.
    #[serde(serialize_with = "in_words")]
    pub timetable: Option<Timetable>,
    /// When a scheduler next opens a window of it.
    pub next_at: Option<Timestamp>,
    /// How many timetables it has had.
    pub revisions: u64,
    /// The version of its logic, if this process knows it.
    pub version: Option<u32>,
    /// How long after its tick a window is late, if it has a grace.
    pub grace: Option<Duration>,
}

#[expect(clippy::ref_option, reason = "serde hands a reference")]
fn in_words<S: Serializer>(timetable: &Option<Timetable>, serializer: S) -> Result<S::Ok, S::Error> {
    timetable.as_ref().map(ToString::to_string).serialize(serializer)
}

impl Refrain {
    /// The jobs that were ever registered in this store, by name; or the one of this name, and an error if there is none.
    pub async fn job_records(&self, job: Option<&str>) -> Result<Vec<JobRecord>, Error> {
        if let Some(job) = job {
            self.recorded_job(job).await?;
        }
        let timetables = schedules::in_force(self.store()).await?;
        let known = self.engine.jobs.now();
        let rows = jobs::schedules(self.store()).await?.into_iter();
        let records = rows.filter(|row| job.is_none_or(|job| row.name == job)).map(|row| {
            let definition = known.get(row.id);
            Ok(JobRecord {
                is_known: definition.is_some(),
                paused_at: row.paused_at.map(instant).transpose()?,
                timetable: timetables.get(&row.id).cloned(),
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
        Ok(Self::records(show::latest(self.store(), number, before, page(limit)).await?))
    }

    /// Runs of all jobs, those that were opened last first, before the one with this
    /// [`number`](RunRecord::number); no more than a page of 500.
    pub async fn recent(&self, before: Option<i64>, limit: usize) -> Result<Vec<RunRecord>, Error> {
        Ok(Self::records(show::recent(self.store(), before, page(limit)).await?))
    }

    /// Rows as records. A row that cannot be read is logged and left out: it must not hide the others.
    pub(super) fn records(rows: Vec<Shown>) -> Vec<RunRecord> {
        let mut records = Vec::with_capacity(rows.len());
        for (row, open) in rows {
            let (id, fault) = (row.id, row.fault());
            let record = match fault {
                Some(fault) => Err(fault),
                None => RunRecord::of(row, open).map_err(|error| error.to_string()),
            };
            match record {
                Ok(record) => records.push(record),
                Err(fault) => {
                    tracing::error!("run {id} is not listed: {fault}; `refrain fsck` lists what is wrong");
                }
            }
        }
        records
    }
}

impl RunRecord {
    /// The number of the run in its store; it grows with each run that is opened.
    pub fn number(&self) -> i64 {
        self.id
    }

    /// How many of these runs are in each state.
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
