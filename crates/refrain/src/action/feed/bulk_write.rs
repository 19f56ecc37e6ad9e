//! Writes pages of units as rows of a table: one transaction and one ledger entry per page.
//!
//! A page that cannot be written is bisected until the bad unit stands alone; that unit is recorded as failed, with its input,
//! before its page is recorded. After an interruption a page is written again: the table has a unique key, and existing rows
//! stay unchanged.

use std::collections::VecDeque;

use super::ingest::FAILED_TOGETHER;
use super::unit::Unit;
use super::unit_rows::UnitRows;
use crate::database::{DatabaseError, Repeats, place};
use crate::ledger::circuit_breaker::{CircuitBreaker, all_fail, halves};
use crate::ledger::{Arrival, BatchError, BulkPage, LedgerError, Units};
use crate::run::JobError;
use crate::store::counts::Reason;
use crate::user_database::Backend;

/// The most lines of a page.
pub(super) const PAGE_LINES_MAX: usize = 10_000;

/// Where a page comes from.
pub(super) struct PageOrigin {
    /// The place in the source; empty for a source that is always read whole.
    pub(super) place: String,
    pub(super) number: u64,
    /// The position that the source was read from, if there is a checkpoint.
    pub(super) position: Option<String>,
    /// Whether a page that is recorded is skipped.
    pub(super) skips: bool,
}

type Entries<'p> = Vec<&'p (&'p Unit, Arrival)>;

/// Writes a page. Returns the ledger entries that prove it.
pub(super) async fn write_page<DB: Backend>(
    rows: &UnitRows<DB>,
    units: &Units<DB, Unit>,
    list: &[Unit],
    origin: &PageOrigin,
) -> Result<Vec<Arrival>, JobError> {
    if list.is_empty() {
        return Ok(Vec::new());
    }
    let page = units.bulk_page(list, &origin.place, origin.number)?;
    let failed = units.unapplied(&page).await?;
    let (apart, due): (Entries<'_>, Entries<'_>) =
        page.items.iter().partition(|(_, arrival)| failed.contains(arrival.key.as_str()));
    let mut proof: Vec<Arrival> = with_entries(rows, units, &apart, origin).await?;
    let tally = &units.fence.raised.tally;
    if origin.skips && units.is_recorded(&page).await? {
        tally.discovered(due.len());
        tally.deduplicated(Reason::AlreadyApplied, due.iter().map(|(_, arrival)| arrival.key.as_str()));
        return Ok(proof);
    }
    let writer = PageWriter { rows, units, page: &page };
    let bad = writer.write_all(&due).await?;
    if !bad.is_empty() {
        proof.extend(with_entries(rows, units, &bad, origin).await?);
        writer.record().await?;
    }
    tally.discovered(due.len() - bad.len());
    tally.processed(due.len() - bad.len());
    proof.push(page.row.clone());
    Ok(proof)
}

/// Writes units that have ledger entries of their own.
async fn with_entries<DB: Backend>(
    rows: &UnitRows<DB>,
    units: &Units<DB, Unit>,
    entries: &Entries<'_>,
    origin: &PageOrigin,
) -> Result<Vec<Arrival>, JobError> {
    for some in entries.chunks(FAILED_TOGETHER) {
        let some: Vec<Unit> = some.iter().map(|(unit, _)| (*unit).clone()).collect();
        rows.apply(units.apply_from(origin.position.clone(), &some).await?).await?;
    }
    Ok(entries.iter().map(|(_, arrival)| arrival.clone()).collect())
}

/// A page that is being written.
struct PageWriter<'w, DB: Backend> {
    rows: &'w UnitRows<DB>,
    units: &'w Units<DB, Unit>,
    page: &'w BulkPage<'w, Unit>,
}

impl<'w, DB: Backend> PageWriter<'w, DB> {
    /// Writes all units and records the page; or gives the bad units, and then the page is not recorded.
    async fn write_all(&self, due: &Entries<'w>) -> Result<Entries<'w>, JobError> {
        let (mut todo, mut bad) = (VecDeque::from([due.clone()]), Vec::new());
        let (mut breaker, mut is_whole) = (CircuitBreaker::default(), true);
        while let Some(some) = todo.pop_front() {
            let Err(message) = self.write(&some, is_whole).await? else {
                breaker.reset();
                continue;
            };
            is_whole = false;
            if some.len() > 1 {
                let [first, second] = halves(&some);
                todo.push_front(second.to_vec());
                todo.push_front(first.to_vec());
                continue;
            }
            bad.extend(some);
            breaker.count_failure();
            if breaker.is_open() && !todo.is_empty() {
                return Err(all_fail(message).into());
            }
        }
        if !is_whole && bad.is_empty() {
            self.record().await?;
        }
        Ok(bad)
    }

    /// Records the page without writing anything.
    async fn record(&self) -> Result<(), JobError> {
        self.write(&Vec::new(), true).await?.map_err(JobError::new)
    }

    /// Writes units of the page in one transaction, with retries. The inner error says what is wrong with the units.
    async fn write(&self, some: &Entries<'_>, records: bool) -> Result<Result<(), String>, JobError> {
        let units: Vec<&Unit> = some.iter().map(|(unit, _)| *unit).collect();
        let mut repeats = Repeats::up_to(Repeats::MAX);
        loop {
            let fault = match self.write_once(&units, records).await {
                Ok(Ok(())) => return Ok(Ok(())),
                Ok(Err(error)) => match error.blamed() {
                    Ok(message) => return Ok(Err(message)),
                    Err(fault) => fault,
                },
                Err(LedgerError::Database(fault)) => fault,
                Err(error) => return Err(error.into()),
            };
            if !fault.is_worth_a_retry() {
                return Err(LedgerError::from(fault).into());
            }
            tracing::debug!(error = %fault, "writing a page again");
            if !repeats.again().await {
                return Err(LedgerError::from(fault).into());
            }
        }
    }

    async fn write_once(
        &self,
        units: &[&Unit],
        records: bool,
    ) -> Result<Result<(), BatchError>, LedgerError> {
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
                // The transaction is not committed, whatever the state of the connection.
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
