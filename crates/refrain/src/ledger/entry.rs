//! The ledger's rows: read, written, and written about a failure.

use std::collections::HashMap;

use super::fence::Raised;
use super::judge::{Arrival, Entry, Judge, Verdict};
use super::{LedgerError, Result, catalog};
use crate::database::statement::Rows;
use crate::database::{DatabaseError, Transaction, place, retried};
use refrain_core::content::CONTENT_BYTES_MAX;
use refrain_core::state::UnitStatus;

/// The longest text that is kept of an error.
const MESSAGE_BYTES_MAX: usize = 4_096;

type Answer<T> = std::result::Result<T, DatabaseError>;

pub(super) async fn find(
    transaction: &mut Transaction,
    ledger: i64,
    arrivals: &[&Arrival],
) -> Answer<Vec<Entry>> {
    let rows = Rows::default().texts(arrivals.iter().map(|arrival| arrival.key.to_string()));
    transaction.fetch_all(catalog::UNIT_FIND.bind(ledger).bind(rows)).await
}

/// Records units as applied of which nothing is recorded. Gives how many that was true for.
pub(super) async fn insert(
    transaction: &mut Transaction,
    ledger: i64,
    judge: &Judge,
    arrivals: &[&Arrival],
) -> Answer<u64> {
    let rows = Rows::default()
        .texts(arrivals.iter().map(|arrival| arrival.key.to_string()))
        .integers(arrivals.iter().map(|arrival| arrival.fingerprint))
        .integers(arrivals.iter().map(|arrival| arrival.ordinal));
    let insert = catalog::UNIT_INSERT.bind(ledger).bind(i64::from(judge.version)).bind(judge.fence);
    transaction.execute(insert.bind(judge.attempt).bind(rows)).await
}

/// Records as applied what was judged so, if everything is as it was read. False: it is not, and nothing may be
/// committed.
pub(super) async fn record(
    transaction: &mut Transaction,
    ledger: i64,
    judge: &Judge,
    arrivals: &[&Arrival],
    entries: &[Entry],
    verdicts: &[Verdict],
) -> Answer<bool> {
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
    Ok(present.is_empty() || update(transaction, ledger, judge, &present).await? == present.len() as u64)
}

async fn update(
    transaction: &mut Transaction,
    ledger: i64,
    judge: &Judge,
    present: &[(&Arrival, &Entry)],
) -> Answer<u64> {
    let rows = Rows::default()
        .texts(present.iter().map(|(arrival, _)| arrival.key.to_string()))
        .integers(present.iter().map(|(arrival, _)| arrival.fingerprint))
        .integers(present.iter().map(|(arrival, _)| arrival.ordinal))
        .integers(present.iter().map(|(_, entry)| i64::from(entry.version)))
        .integers(present.iter().map(|(_, entry)| entry.fingerprint))
        .texts(present.iter().map(|(_, entry)| entry.status.clone()))
        .integers(present.iter().map(|(_, entry)| i64::from(entry.failures)));
    let update = catalog::UNIT_UPDATE.bind(ledger).bind(i64::from(judge.version)).bind(judge.fence);
    transaction.execute(update.bind(judge.attempt).bind(rows)).await
}

/// What became of the record of a failure.
pub(super) enum Failed {
    Recorded,
    /// Somebody else has applied the same content, or newer, in the meantime.
    AppliedMeanwhile,
}

/// Records that a unit failed, with what it was given, in a transaction of its own under the fence.
pub(super) async fn fail(
    raised: &Raised,
    ledger: i64,
    judge: &Judge,
    arrival: &Arrival,
    input: &str,
    message: &str,
) -> Result<Failed> {
    let input = (input.len() <= CONTENT_BYTES_MAX && !input.contains('\0')).then(|| input.to_owned());
    let recorded = retried(|| async {
        let mut transaction = match raised.write().await {
            Ok(transaction) => transaction,
            Err(LedgerError::Database(error)) => return Err(error),
            Err(error) => return Ok(Err(error)),
        };
        let entry = find(&mut transaction, ledger, &[arrival]).await?.pop();
        let recorded = entry.as_ref().map(Entry::recorded);
        let (_, status) =
            arrival.arriving(judge.version).after_failure(recorded.as_ref(), raised.facts.tries);
        let (word, failures) = match status {
            UnitStatus::Parked => ("parked", raised.facts.tries),
            UnitStatus::Failed(failures) => ("failed", failures),
            UnitStatus::Applied => return Ok(Ok(0)),
        };
        let fail = catalog::UNIT_FAIL.bind(ledger).bind(arrival.key.as_str()).bind(i64::from(judge.version));
        let fail = fail.bind(judge.fence).bind(judge.attempt).bind(arrival.fingerprint).bind(arrival.ordinal);
        let fail = fail.bind(i64::from(failures)).bind(word).bind(input.clone()).bind(shortened(message));
        let rows = transaction.execute(fail).await?;
        transaction.commit(place!("unit-fail")).await?;
        Ok(Ok(rows))
    });
    match recorded.await?? {
        0 => Ok(Failed::AppliedMeanwhile),
        _ => Ok(Failed::Recorded),
    }
}

fn shortened(message: &str) -> String {
    // PostgreSQL keeps no NUL.
    message.chars().filter(|letter| *letter != '\0').take(MESSAGE_BYTES_MAX / 4).collect()
}
