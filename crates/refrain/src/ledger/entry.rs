//! The ledger's entries: reads them, writes them, and records failures.

use std::collections::HashMap;

use super::apply::PriorEntries;
use super::fence::Raised;
use super::judge::{Arrival, Entry, Judge, UnitVerdict};
use super::unit_state::{self, FailedUnit, contents};
use super::{LedgerError, Result, catalog};
use crate::database::statement::Rows;
use crate::database::{DatabaseError, Transaction, place, retried};
use refrain_core::content::CONTENT_BYTES_MAX;
use refrain_core::state::{UnitEvent, UnitStatus};

/// The longest error message that is kept.
const MESSAGE_BYTES_MAX: usize = 4_096;

/// The message of a unit that a worker did not survive.
const DIED_ALONE: &str = "the worker died while it was being applied, alone";
/// The message of units that were tried together, until more is known.
const DIED: &str = "the worker died while it was being applied, among others";

type Answer<T> = std::result::Result<T, DatabaseError>;

pub(super) async fn find(
    transaction: &mut Transaction,
    ledger: i64,
    arrivals: &[&Arrival],
) -> Answer<Vec<Entry>> {
    let rows = Rows::default().texts(arrivals.iter().map(|arrival| arrival.key.as_str()));
    let mut entries: Vec<Entry> = transaction.fetch_all(catalog::UNIT_FIND.bind(ledger).bind(rows)).await?;
    entries.retain(|entry| entry.present().is_some());
    Ok(entries)
}

/// Reads the entries of units that are not certainly done; a unit without an entry is reported as absent.
pub(super) async fn doubtful(
    transaction: &mut Transaction,
    ledger: i64,
    judge: &Judge,
    arrivals: &[&Arrival],
) -> Answer<Vec<Entry>> {
    let doubtful = catalog::UNIT_DOUBTFUL.bind(ledger).bind(i64::from(judge.version));
    transaction.fetch_all(doubtful.bind(contents(arrivals))).await
}

/// Records units without an entry as applied. Returns how many there were.
pub(super) async fn insert(
    transaction: &mut Transaction,
    ledger: i64,
    judge: &Judge,
    arrivals: &[&Arrival],
) -> Result<u64> {
    let insert = unit_state::insert(UnitEvent::Applied, ledger, judge, arrivals)?;
    Ok(transaction.execute(insert).await?)
}

/// Records units as applied according to their verdicts, if their entries have not changed. False: they have, and the
/// transaction must not be committed.
pub(super) async fn record(
    transaction: &mut Transaction,
    ledger: i64,
    judge: &Judge,
    arrivals: &[&Arrival],
    entries: &[Entry],
    verdicts: &[UnitVerdict],
) -> Result<bool> {
    let entries: HashMap<&str, &Entry> = entries.iter().map(|entry| (entry.key.as_str(), entry)).collect();
    let applied = arrivals.iter().zip(verdicts).filter(|(_, verdict)| verdict.is_applied());
    let (mut absent, mut present) = (Vec::new(), Vec::new());
    for (arrival, _) in applied {
        match entries.get(arrival.key.as_str()) {
            None => absent.push(*arrival),
            Some(entry) => present.push((*arrival, *entry)),
        }
    }
    if !absent.is_empty() && insert(transaction, ledger, judge, &absent).await? < absent.len() as u64 {
        return Ok(false);
    }
    if present.is_empty() {
        return Ok(true);
    }
    let update = unit_state::update(UnitEvent::Applied, ledger, judge, &present)?;
    Ok(transaction.execute(update).await? == present.len() as u64)
}

/// Removes failed tries of other content from units whose applied content came again: the source confirms the applied
/// content, and nothing is left to do. False: the entries have changed, and the units must be judged again.
pub(super) async fn restore(
    raised: &Raised,
    ledger: i64,
    judge: &Judge,
    covered: &[(&Arrival, &Entry)],
) -> Result<bool> {
    if covered.is_empty() {
        return Ok(true);
    }
    let restore = unit_state::restore(UnitEvent::Applied, ledger, judge, covered)?;
    let restored = retried(|| async {
        let mut transaction = match fenced(raised).await? {
            Ok(transaction) => transaction,
            Err(error) => return Ok(Err(error)),
        };
        let restored = transaction.execute(restore.clone()).await?;
        transaction.commit(place!("unit-restore")).await?;
        Ok(Ok(restored == covered.len() as u64))
    });
    restored.await?
}

/// The outcome of recording a failure.
pub(super) enum FailureOutcome {
    Recorded,
    /// The entry is not the one that the unit was judged by.
    Moved,
}

/// A unit that failed.
pub(super) struct UnitFailure<'f> {
    pub(super) arrival: &'f Arrival,
    /// The entry before the unit was parked in advance, if it was.
    pub(super) before: Option<&'f PriorEntries>,
    /// The entry that the unit was judged by, if it was not parked in advance.
    pub(super) judged: Option<&'f Entry>,
    pub(super) input: &'f str,
    pub(super) message: &'f str,
    /// The position that the source was read from, if a checkpoint has one.
    pub(super) place: Option<&'f str>,
}

/// Records that a unit failed, with its input, in a transaction of its own under the fence.
pub(super) async fn fail(
    raised: &Raised,
    ledger: i64,
    judge: &Judge,
    failure: &UnitFailure<'_>,
) -> Result<FailureOutcome> {
    let UnitFailure { arrival, before, judged, input, message, place } = failure;
    let recorded = retried(|| async {
        let mut transaction = match fenced(raised).await? {
            Ok(transaction) => transaction,
            Err(error) => return Ok(Err(error)),
        };
        let found = find(&mut transaction, ledger, &[arrival]).await?.pop();
        // On a retry after a lost answer, the failure counts once.
        let has_failed =
            |found: &Entry| judge.has_failed(found, arrival) && !judge.has_reserved(found, arrival);
        if found.as_ref().is_some_and(has_failed) {
            return Ok(Ok(true));
        }
        let is_as_judged = match before {
            Some(_) => found.as_ref().is_some_and(|found| judge.is_on_trial(found)),
            None => found.as_ref() == *judged,
        };
        if !is_as_judged {
            return Ok(Ok(false));
        }
        let entry = before.map_or(found.as_ref(), |before| before.of(arrival));
        let recorded = entry.map(|entry| entry.recorded(judge));
        let (event, status) =
            arrival.arriving(judge.version).after_failure(recorded.as_ref(), raised.facts.failures_max());
        let failures = match status {
            UnitStatus::Failed(failures) => failures,
            UnitStatus::Parked | UnitStatus::Applied => raised.facts.failures_max(),
        };
        let (input, message, found) = (kept(input), shortened(message), found.as_ref());
        let failed = FailedUnit { arrival, found, failures, input, message, place: *place };
        let fail = match unit_state::fail(event, ledger, judge, failed, judge.redo) {
            Ok(fail) => fail,
            Err(error) => return Ok(Err(error)),
        };
        let rows = transaction.execute(fail).await?;
        transaction.commit(place!("unit-fail")).await?;
        Ok(Ok(rows == 1))
    });
    Ok(if recorded.await?? { FailureOutcome::Recorded } else { FailureOutcome::Moved })
}

/// Raises the order of units whose content is recorded with a lower one, so that a slower reader with other content in
/// between does not replace it.
pub(super) async fn raise_order(raised: &Raised, ledger: i64, later: &[&Arrival]) -> Result<()> {
    let done = retried(|| async {
        let mut transaction = match fenced(raised).await? {
            Ok(transaction) => transaction,
            Err(error) => return Ok(Err(error)),
        };
        let rows = Rows::default()
            .integers(later.iter().map(|_| ledger))
            .texts(later.iter().map(|arrival| arrival.key.as_str()))
            .integers(later.iter().map(|arrival| arrival.fingerprint))
            .integers(later.iter().map(|arrival| arrival.ordinal));
        transaction.execute(catalog::UNIT_RAISE_ORDER.bind(rows).planned_anew()).await?;
        transaction.commit(place!("unit-apply")).await?;
        Ok(Ok(()))
    });
    done.await?
}

/// Keeps the first row and deletes failures of later content.
pub(super) async fn keep_first(raised: &Raised, ledger: i64, kept: &[&Arrival]) -> Result<()> {
    let keep = unit_state::keep_first(UnitEvent::Applied, ledger, kept)?;
    let done = retried(|| async {
        let mut transaction = match fenced(raised).await? {
            Ok(transaction) => transaction,
            Err(error) => return Ok(Err(error)),
        };
        transaction.execute(keep.clone()).await?;
        transaction.commit(place!("unit-apply")).await?;
        Ok(Ok(()))
    });
    done.await?
}

/// Parks units before they are tried together, each with its input. False: one of them was applied meanwhile, and none is
/// parked.
pub(super) async fn blame(
    raised: &Raised,
    ledger: i64,
    judge: &Judge,
    suspects: &[(&Arrival, String)],
    place: Option<&str>,
) -> Result<bool> {
    let mark = judge.mark(suspects.len());
    let message = if mark.is_alone { DIED_ALONE } else { DIED };
    let arrivals: Vec<&Arrival> = suspects.iter().map(|(arrival, _)| *arrival).collect();
    let rows = contents(&arrivals).texts(suspects.iter().map(|(_, input)| kept(input))).named("input");
    let trial = (mark.stored(), message, place);
    let blame = unit_state::blame(UnitEvent::Suspected, ledger, judge, trial, rows)?;
    let blamed = retried(|| async {
        let mut transaction = match fenced(raised).await? {
            Ok(transaction) => transaction,
            Err(error) => return Ok(Err(error)),
        };
        if transaction.execute(blame.clone()).await? < suspects.len() as u64 {
            transaction.rollback().await?;
            return Ok(Ok(false));
        }
        transaction.commit(place!("unit-blame")).await?;
        Ok(Ok(true))
    });
    blamed.await?
}

/// Records that a unit that was parked in advance is to blame.
pub(super) async fn convict(raised: &Raised, ledger: i64, arrival: &Arrival) -> Result<()> {
    let convicted = retried(|| async {
        let mut transaction = match fenced(raised).await? {
            Ok(transaction) => transaction,
            Err(error) => return Ok(Err(error)),
        };
        let convict = catalog::UNIT_CONVICT.bind(ledger).bind(arrival.key.as_str());
        transaction.execute(convict.bind(i64::from(raised.facts.failures_max()))).await?;
        transaction.commit(place!("unit-convict")).await?;
        Ok(Ok(()))
    });
    convicted.await?
}

/// Begins a transaction under the fence, for a step that is retried while the database is busy.
pub(super) async fn fenced(raised: &Raised) -> Answer<Result<Transaction>> {
    match raised.write().await {
        Err(LedgerError::Database(error)) => Err(error),
        settled => Ok(settled),
    }
}

/// The input of a unit, if it is short enough to be kept.
pub(super) fn kept(input: &str) -> Option<String> {
    (input.len() <= CONTENT_BYTES_MAX && !input.contains('\0')).then(|| input.to_owned())
}

pub(super) fn shortened(message: &str) -> String {
    // PostgreSQL cannot store a NUL character.
    message.chars().filter(|letter| *letter != '\0').take(MESSAGE_BYTES_MAX / 4).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_that_is_too_long_or_contains_a_nul_is_not_kept() {
        for (input, is_kept) in [
            ("x".repeat(CONTENT_BYTES_MAX), true),
            ("x".repeat(CONTENT_BYTES_MAX + 1), false),
            ("a\0b".to_owned(), false),
        ] {
            assert_eq!(kept(&input).is_some(), is_kept, "{} bytes", input.len());
        }
    }
}
