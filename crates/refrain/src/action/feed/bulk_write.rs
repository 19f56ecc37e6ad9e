//! Pages of units as rows of a table, each in one transaction with one row of the ledger.
//!
//! A page that cannot be written is written in halves, until the bad unit stands alone; that one is recorded as failed, with
//! what it was given, before its page is recorded. Whatever is cut off is written again: the table has a unique key, and a row
//! that is there already stays as it is.

use std::collections::VecDeque;

use super::ingest::FAILED_TOGETHER;
use super::unit::Unit;
use super::unit_rows::Rows;
use crate::database::{DatabaseError, pause, place};
use crate::job::JobError;
use crate::ledger::tally::Reason;
use crate::ledger::{Arrival, BatchError, BulkPage, LedgerError, Units};
use crate::publish::table::Publishes;

/// The most lines of a page.
pub(super) const PAGE_LINES_MAX: usize = 10_000;
/// How often a page is written anew because of locks, conflicts and lost connections.
const AGAIN_MAX: u32 = 8;
/// So many units that fail one after another are not to blame: something else is wrong.
const IN_A_ROW_MAX: usize = 20;

/// Where a page stands in its source.
pub(super) struct PagePlace {
    /// Empty for a source that is always read whole.
    pub(super) place: String,
    pub(super) number: u64,
    /// Where the source was read from, if a checkpoint says so.
    pub(super) position: Option<String>,
    /// Whether one that is recorded need not be written.
    pub(super) skips: bool,
}

type Entries<'p> = Vec<&'p (&'p Unit, Arrival)>;

/// Writes a page. Gives what stands for its units in the ledger.
pub(super) async fn settle<DB: Publishes>(
    rows: &Rows<DB>,
    units: &Units<DB, Unit>,
    list: &[Unit],
    at: &PagePlace,
) -> Result<Vec<Arrival>, JobError> {
    if list.is_empty() {
        return Ok(Vec::new());
    }
    let page = units.bulk_page(list, &at.place, at.number)?;
    let failed = units.unapplied(&page).await?;
    let (apart, due): (Entries<'_>, Entries<'_>) =
        page.items.iter().partition(|(_, arrival)| failed.contains(arrival.key.as_str()));
    let mut proof: Vec<Arrival> = one_by_one(rows, units, &apart, at).await?;
    let tally = &units.fence.raised.tally;
    if at.skips && units.is_recorded(&page).await? {
        tally.discovered(due.len());
        tally.deduplicated(Reason::AlreadyApplied, due.iter().map(|(_, arrival)| arrival.key.as_str()));
        return Ok(proof);
    }
    let writing = Writing { rows, units, page: &page };
    let bad = writing.all(&due).await?;
    if !bad.is_empty() {
        proof.extend(one_by_one(rows, units, &bad, at).await?);
        writing.recorded().await?;
    }
    tally.discovered(due.len() - bad.len());
    tally.processed(due.len() - bad.len());
    proof.push(page.row.clone());
    Ok(proof)
}

/// Units that have rows of their own in the ledger.
async fn one_by_one<DB: Publishes>(
    rows: &Rows<DB>,
    units: &Units<DB, Unit>,
    entries: &Entries<'_>,
    at: &PagePlace,
) -> Result<Vec<Arrival>, JobError> {
    for some in entries.chunks(FAILED_TOGETHER) {
        let some: Vec<Unit> = some.iter().map(|(unit, _)| (*unit).clone()).collect();
        rows.apply(units.apply_from(at.position.clone(), &some).await?).await?;
    }
    Ok(entries.iter().map(|(_, arrival)| arrival.clone()).collect())
}

/// A page that is being written.
struct Writing<'w, DB: Publishes> {
    rows: &'w Rows<DB>,
    units: &'w Units<DB, Unit>,
    page: &'w BulkPage<'w, Unit>,
}

impl<'w, DB: Publishes> Writing<'w, DB> {
    /// Writes all of them and records the page; or all but some, which are given, and then it is not recorded.
    async fn all(&self, due: &Entries<'w>) -> Result<Entries<'w>, JobError> {
        let (mut todo, mut bad, mut in_a_row) = (VecDeque::from([due.clone()]), Vec::new(), 0);
        let mut is_whole = true;
        while let Some(some) = todo.pop_front() {
            let Err(message) = self.write(&some, is_whole).await? else {
                in_a_row = 0;
                continue;
            };
            is_whole = false;
            if some.len() > 1 {
                let (first, second) = some.split_at(some.len() / 2);
                todo.push_front(second.to_vec());
                todo.push_front(first.to_vec());
                continue;
            }
            bad.extend(some);
            in_a_row += 1;
            if in_a_row >= IN_A_ROW_MAX && !todo.is_empty() {
                return Err(LedgerError::AllFail { count: IN_A_ROW_MAX, message }.into());
            }
        }
        if !is_whole && bad.is_empty() {
            self.recorded().await?;
        }
        Ok(bad)
    }

    /// Records the page, of which everything is settled.
    async fn recorded(&self) -> Result<(), JobError> {
        self.write(&Vec::new(), true).await?.map_err(JobError::new)
    }

    /// Writes some of the page in one transaction, however often it takes; or says what is wrong with them.
    async fn write(&self, some: &Entries<'_>, records: bool) -> Result<Result<(), String>, JobError> {
        let units: Vec<&Unit> = some.iter().map(|(unit, _)| *unit).collect();
        for again in 0.. {
            let fault = match self.once(&units, records).await {
                Ok(Ok(())) => return Ok(Ok(())),
                Ok(Err(error)) => match error.blamed() {
                    Ok(message) => return Ok(Err(message)),
                    Err(fault) => fault,
                },
                Err(LedgerError::Database(fault)) => fault,
                Err(error) => return Err(error.into()),
            };
            if !fault.is_worth_a_retry() || again >= AGAIN_MAX {
                return Err(LedgerError::from(fault).into());
            }
            tracing::debug!(error = %fault, "beginning a page again");
            pause(again).await;
        }
        Err(LedgerError::Contended.into())
    }

    async fn once(&self, units: &[&Unit], records: bool) -> Result<Result<(), BatchError>, LedgerError> {
        let mut transaction = self.units.begin_page(self.page).await?;
        if records {
            self.units.record_page(&mut transaction, self.page).await?;
        }
        if !units.is_empty() {
            transaction.hand_over().await?;
            let went = match DB::narrowed(&mut transaction) {
                Some(connection) => self.rows.write(connection, units).await,
                None => Err(BatchError::new("the transaction is not one of this database")),
            };
            if let Err(error) = went {
                // Whatever became of the connection, the transaction is not going to be committed.
                drop(transaction.rollback().await);
                return Ok(Err(error));
            }
        }
        transaction.is_sound().await?;
        match transaction.commit(place!("page-apply")).await {
            Ok(()) => Ok(Ok(())),
            Err(error) if error.is_transient() || matches!(error, DatabaseError::Expired) => {
                Err(error.into())
            }
            Err(error) => Ok(Err(BatchError::new(error.to_string()))),
        }
    }
}
