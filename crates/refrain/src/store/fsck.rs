//! Looks for what must not be: each check is one of the store's rules, asked of all rows.
//!
//! The rules are kept by constraints and transactions, so a finding means that something else has written here, that
//! a disk lied, or that we are wrong. Nothing is repaired by itself: a person decides.
//!
//! Jobs, runs and timetables are also read by the code that all other commands read them with: what that code cannot read is a
//! finding too. A list of forbidden values in SQL would forget some.

use std::collections::BTreeMap;

use refrain_core::Word;
use refrain_core::state::EffectState;

use super::jobs::{JobRow, JobStanding};
use super::run_row::RunRow;
use super::{Result, Store, StoreError, catalog, jobs, schedules};
use crate::database::Transaction;
use crate::database::connection::Numbered;
use crate::database::statement::{Rows, Statement};

/// The most rows that one check names.
pub(crate) const FINDINGS_MAX: i64 = 100;

/// How many runs are read at once.
const PAGE: i64 = 500;

/// A rule that does not hold for a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What is wrong, in a sentence.
    pub what: &'static str,
    /// The number of the row: a run's, a job's, or a lease's; 0 if it is the file itself.
    pub row: i64,
    /// More about it, if there is more to say.
    pub detail: Option<String>,
}

static CHECKS: [(&Statement, &str); 13] = [
    (&catalog::FSCK_TWINS, "a run exists twice"),
    (&catalog::FSCK_LOST, "a run is open and stands nowhere: it would never run"),
    (&catalog::FSCK_PLACES, "a run stands in two places, or in one although it is not open"),
    (&catalog::FSCK_LEASES, "a run is under a lease that does not exist"),
    (&catalog::FSCK_OWNERS, "a lease belongs to a worker that does not exist"),
    (&catalog::FSCK_LANES, "a lane is held by a run that is not open, or not queued"),
    (&catalog::FSCK_BESIDE, "a run is queued in a lane that another run holds"),
    (&catalog::FSCK_WAITS, "a run waits for a lane that is free"),
    (&catalog::FSCK_SLOTS, "a slot is taken by a run that is not under way"),
    (&catalog::FSCK_JOBS, "a run belongs to a job that does not exist"),
    (&catalog::FSCK_AUDIT, "a decision is about a run that does not exist"),
    (&catalog::FSCK_ATTEMPTS, "the attempt of a run has a number that cannot be read"),
    (&catalog::FSCK_LINES, "a run stands in the line of another job: it would never run"),
];

/// What SQLite itself thinks of its file, in a hundred lines at most; a server looks after its own.
static INTEGRITY_SQLITE: Statement =
    Statement::new("fsck/integrity", "select integrity_check from pragma_integrity_check");

/// All findings, at most a hundred a check. All checks see the same instant. A file that is damaged is looked at no
/// further: what its rows say cannot be trusted.
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
    let states = Rows::default().texts(EffectState::ALL.iter().map(|state| state.name()));
    let effects: Vec<(i64,)> =
        transaction.fetch_all(catalog::FSCK_EFFECTS.bind(FINDINGS_MAX).bind(states)).await?;
    let what = "an effect has a state that does not exist";
    findings.extend(effects.into_iter().map(|(row,)| Finding { what, row, detail: None }));
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

/// Reads every job as other commands do: what is registered of it, and how it stands.
async fn unreadable_jobs(transaction: &mut Transaction, findings: &mut Vec<Finding>) -> Result<()> {
    let mut faults = BTreeMap::new();
    let rows: Vec<Numbered<JobRow>> = transaction.fetch_all(catalog::JOB_LIST.bound()).await?;
    for Numbered { id, read } in rows {
        faults.extend(
            read.map_or_else(|error| Some(error.to_string()), |row| row.fault()).map(|fault| (id, fault)),
        );
    }
    let rows: Vec<Numbered<JobStanding>> = transaction.fetch_all(catalog::JOB_STANDING.bound()).await?;
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
