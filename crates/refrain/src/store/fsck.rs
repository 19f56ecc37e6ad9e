//! Looks for what must not be: each check is one of the store's rules, asked of all rows.
//!
//! The rules are kept by constraints and transactions, so a finding means that something else has written here, that
//! a disk lied, or that we are wrong. Nothing is repaired by itself: a person decides.

use super::{Result, Store, catalog};
use crate::database::statement::Statement;

/// The most rows that one check names.
pub(crate) const FINDINGS_MAX: i64 = 100;

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

static CHECKS: [(&Statement, &str); 9] = [
    (&catalog::FSCK_TWINS, "a run exists twice"),
    (&catalog::FSCK_LOST, "a run is open and stands nowhere: it would never run"),
    (&catalog::FSCK_PLACES, "a run stands in two places, or in one although it is not open"),
    (&catalog::FSCK_LEASES, "a run is under a lease that does not exist"),
    (&catalog::FSCK_OWNERS, "a lease belongs to a worker that does not exist"),
    (&catalog::FSCK_LANES, "a lane is held by a run that is not open, or not queued"),
    (&catalog::FSCK_BESIDE, "a run is queued in a lane that another run holds"),
    (&catalog::FSCK_WAITS, "a run waits for a lane that is free"),
    (&catalog::FSCK_SLOTS, "a slot is taken by a run that is not under way"),
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
    Ok(findings)
}
