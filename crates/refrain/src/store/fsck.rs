//! Looks for what must not be: each check is one of the store's rules, asked of all rows.
//!
//! The rules are kept by constraints and transactions, so a finding means that something else has written here, that
//! a disk lied, or that we are wrong. Nothing is repaired by itself: a person decides.
//!
//! Runs and timetables are also read by the code that all other commands read them with: what that code cannot read is a
//! finding too. A list of forbidden values in SQL would forget some.

use refrain_core::Word;
use refrain_core::state::EffectState;

use super::show::RunRow;
use super::{Result, Store, StoreError, catalog, jobs, schedules};
use crate::database::Transaction;
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
    /// The number of the row: a run's, or a lease's; 0 if it is the file itself.
    pub row: i64,
    /// More about it, if there is more to say.
    pub detail: Option<String>,
}

static CHECKS: [(&Statement, &str); 12] = [
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
    unreadable_runs(&mut transaction, &mut findings).await?;
    drop(transaction);
    unreadable_timetables(store, &mut findings).await?;
    Ok(findings)
}

/// Reads every run as other commands do. A page that cannot be decoded is halved until the bad row stands alone.
async fn unreadable_runs(transaction: &mut Transaction, findings: &mut Vec<Finding>) -> Result<()> {
    const WHAT: &str = "a run cannot be read";
    let mut found: i64 = 0;
    let mut before = i64::MAX;
    loop {
        let numbers: Vec<(i64,)> =
            transaction.fetch_all(catalog::RUN_NUMBERS.bind(before).bind(PAGE)).await?;
        let Some((last,)) = numbers.last() else { return Ok(()) };
        before = *last;
        let mut parts = vec![numbers.as_slice()];
        while let Some(part) = parts.pop() {
            let Some((first,)) = part.first() else { continue };
            let limit = i64::try_from(part.len()).unwrap_or(PAGE);
            let rows =
                transaction.fetch_all(catalog::RUN_RECENT.bind(first.saturating_add(1)).bind(limit)).await;
            let faults = match rows {
                Err(error) if error.is_undecodable() && part.len() > 1 => {
                    let (front, back) = part.split_at(part.len() / 2);
                    parts.extend([back, front]);
                    continue;
                }
                Err(error) if error.is_undecodable() => vec![(*first, error.to_string())],
                rows => faults(rows?),
            };
            for (row, fault) in faults {
                findings.push(Finding {
                    what: WHAT,
                    row,
                    detail: Some(format!("run {row} cannot be read: {fault}")),
                });
                found += 1;
                if found >= FINDINGS_MAX {
                    return Ok(());
                }
            }
        }
    }
}

/// The runs whose columns do not make a record, and why.
fn faults(rows: Vec<RunRow>) -> Vec<(i64, String)> {
    let faults = rows.into_iter().filter_map(|row| row.fault().map(|fault| (row.id, fault)));
    faults.collect()
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
