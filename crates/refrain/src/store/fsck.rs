//! Checks the store for inconsistencies: each check is one of the store's rules, applied to all rows.
//!
//! Constraints and transactions keep the rules, so a finding means that another program wrote to the store, that a disk failed, or
//! that Refrain has a bug. Nothing is repaired automatically: the operator decides.
//!
//! Jobs, runs and timetables are also read with the code of all other commands: a row that this code cannot read is a finding, too.
//! A list of forbidden values in SQL would forget some.

use std::collections::BTreeMap;

use refrain_core::Word;
use refrain_core::state::EffectState;

use super::jobs::{JobRow, JobSchedule};
use super::queue_line::JOBS_PER_PRIORITY;
use super::run_row::RunRow;
use super::{Result, Store, StoreError, catalog, jobs, schedules};
use crate::database::Transaction;
use crate::database::connection::Numbered;
use crate::database::statement::{Rows, Statement};

/// The most findings of one check.
pub(crate) const FINDINGS_MAX: i64 = 100;

/// How many runs are read at once.
const PAGE: i64 = 500;

/// A rule that does not hold for a row.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Finding {
    /// What is wrong, as a sentence.
    pub what: &'static str,
    /// The number of the row: a run's, a job's, or a lease's; 0 if it is the file itself.
    pub row: i64,
    /// Details, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

static CHECKS: [(&Statement, &str); 12] = [
    (&catalog::FSCK_TWINS, "a run exists twice"),
    (&catalog::FSCK_LOST, "an open run is in no queue (queue, delayed, lane_waits); it would never run"),
    (&catalog::FSCK_PLACES, "a run is in two queues, or in one although it is not open"),
    (&catalog::FSCK_LEASES, "a run is under a lease that does not exist"),
    (&catalog::FSCK_OWNERS, "a lease belongs to a worker that does not exist"),
    (&catalog::FSCK_LANES, "a lane is held by a run that is not open, or not queued"),
    (&catalog::FSCK_BESIDE, "a run is queued in a lane that another run holds"),
    (&catalog::FSCK_WAITS, "a run waits for a lane that is free"),
    (&catalog::FSCK_SLOTS, "a slot is taken by a run that is not running"),
    (&catalog::FSCK_JOBS, "a run belongs to a job that does not exist"),
    (&catalog::FSCK_AUDIT, "a decision is about a run that does not exist"),
    (&catalog::FSCK_ATTEMPTS, "the attempt of a run has a number that cannot be read"),
];

/// SQLite's own check of its file, in a hundred lines at most. A server checks its own files.
static INTEGRITY_SQLITE: Statement =
    Statement::new("fsck/integrity", "select integrity_check from pragma_integrity_check");

/// All findings, at most a hundred per check. All checks read one snapshot. A damaged file is not checked further: its rows cannot be
/// trusted.
pub(crate) async fn fsck(store: &Store) -> Result<Vec<Finding>> {
    let mut transaction = store.database.snapshot().await?;
    let mut findings = Vec::new();
    if store.database.is_sqlite() {
        let rows: Vec<(String,)> = transaction.fetch_all(INTEGRITY_SQLITE.bound()).await?;
        let damages = rows.into_iter().map(|(damage,)| damage).filter(|damage| damage != "ok");
        let what = "the file is damaged";
        findings.extend(damages.map(|damage| Finding { what, row: 0, detail: Some(damage) }));
        if !findings.is_empty() {
            return Ok(findings);
        }
    }
    for (statement, what) in CHECKS {
        let rows: Vec<(i64,)> = transaction.fetch_all(statement.bind(FINDINGS_MAX)).await?;
        findings.extend(rows.into_iter().map(|(row,)| Finding { what, row, detail: None }));
    }
    let lines = catalog::FSCK_LINES.bind(FINDINGS_MAX).bind(JOBS_PER_PRIORITY);
    let lines: Vec<(i64,)> = transaction.fetch_all(lines).await?;
    let what = "an open run is in the queue line of another job; it would never run";
    findings.extend(lines.into_iter().map(|(row,)| Finding { what, row, detail: None }));
    let states = Rows::default().texts(EffectState::ALL.iter().map(|state| state.name()));
    let effects: Vec<(i64,)> =
        transaction.fetch_all(catalog::FSCK_EFFECTS.bind(FINDINGS_MAX).bind(states)).await?;
    let what = "an effect has a state that does not exist";
    findings.extend(effects.into_iter().map(|(row,)| Finding { what, row, detail: None }));
    let senders = catalog::FSCK_SENDERS.bind(FINDINGS_MAX).bind(EffectState::Reserved.name());
    let senders: Vec<(i64,)> = transaction.fetch_all(senders).await?;
    let what = "an effect is reserved by no worker, or has a worker although it is not reserved";
    findings.extend(senders.into_iter().map(|(row,)| Finding { what, row, detail: None }));
    unreadable_jobs(&mut transaction, &mut findings).await?;
    unreadable_runs(&mut transaction, &mut findings).await?;
    drop(transaction);
    unreadable_timetables(store, &mut findings).await?;
    Ok(findings)
}

/// Reads every run as other commands do.
async fn unreadable_runs(transaction: &mut Transaction, findings: &mut Vec<Finding>) -> Result<()> {
    let mut found: i64 = 0;
    let mut before = i64::MAX;
    loop {
        let rows: Vec<Numbered<RunRow>> =
            transaction.fetch_all(catalog::RUN_RECENT.bind(before).bind(PAGE)).await?;
        let Some(last) = rows.last() else { return Ok(()) };
        before = last.id;
        for Numbered { id, read } in rows {
            let fault = read.map_or_else(|error| Some(error.to_string()), |row| row.fault());
            let Some(fault) = fault else { continue };
            let detail = Some(format!("run {id} cannot be read: {fault}"));
            findings.push(Finding { what: "a run cannot be read", row: id, detail });
            found += 1;
            if found >= FINDINGS_MAX {
                return Ok(());
            }
        }
    }
}

/// Reads every job as other commands do: its registration and its schedule.
async fn unreadable_jobs(transaction: &mut Transaction, findings: &mut Vec<Finding>) -> Result<()> {
    let mut faults = BTreeMap::new();
    let rows: Vec<Numbered<JobRow>> = transaction.fetch_all(catalog::JOB_LIST.bound()).await?;
    for Numbered { id, read } in rows {
        faults.extend(
            read.map_or_else(|error| Some(error.to_string()), |row| row.fault()).map(|fault| (id, fault)),
        );
    }
    let rows: Vec<Numbered<JobSchedule>> = transaction.fetch_all(catalog::JOB_SCHEDULES.bound()).await?;
    for Numbered { id, read } in rows {
        let fault = read.map_or_else(|error| Some(error.to_string()), |row| row.fault());
        if let Some(fault) = fault {
            faults.entry(id).or_insert(fault);
        }
    }
    let limit = usize::try_from(FINDINGS_MAX).unwrap_or(usize::MAX);
    findings.extend(faults.into_iter().take(limit).map(|(row, fault)| {
        let detail = Some(format!("job {row} cannot be read: {fault}"));
        Finding { what: "a job cannot be read", row, detail }
    }));
    Ok(())
}

async fn unreadable_timetables(store: &Store, findings: &mut Vec<Finding>) -> Result<()> {
    for (name, job) in jobs::all(store).await? {
        match schedules::read(store, job.id).await {
            Err(StoreError::Broken(fault)) => {
                let detail = Some(format!("the timetable of {name} cannot be read: {fault}"));
                let what = "a timetable cannot be read";
                findings.push(Finding { what, row: i64::from(job.id), detail });
            }
            read => drop(read?),
        }
    }
    Ok(())
}
