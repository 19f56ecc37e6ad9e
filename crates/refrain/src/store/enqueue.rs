//! Opens runs of callers' keys: each key once, for ever.
//!
//! The insert decides: the rows that it returns are new, and a key that it does not return existed already, which is recorded as a
//! dedupe of that run. There is no look-up before it that could be out of date.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};

use refrain_core::RunKey;

use super::queue_line::{JobNumber, Line};
use super::{Result, Store, catalog, run_state};
use crate::database::statement::Rows;
use crate::database::{DatabaseError, Transaction, place, retried};

/// The most offers that go into one transaction.
pub(crate) const OFFERS_MAX: usize = 5_000;

/// A key to open a run for, with its payload.
#[derive(Debug, Clone)]
pub(crate) struct Offer {
    pub(crate) key: RunKey,
    pub(crate) payload: Option<String>,
}

/// Opens a run for each key that has none. Returns for each offer whether it was new.
pub(crate) async fn enqueue(
    store: &Store,
    job: JobNumber,
    line: Line,
    offers: &[Offer],
    requested_by: &str,
) -> Result<Vec<bool>> {
    let mut news = Vec::with_capacity(offers.len());
    for chunk in offers.chunks(OFFERS_MAX) {
        let mut is_first = true;
        let offered = retried(|| {
            let again = !std::mem::replace(&mut is_first, false);
            offered(store, job, line, chunk, requested_by, again)
        });
        news.extend(offered.await?);
    }
    Ok(news)
}

async fn offered(
    store: &Store,
    job: JobNumber,
    line: Line,
    offers: &[Offer],
    requested_by: &str,
    again: bool,
) -> std::result::Result<Vec<bool>, DatabaseError> {
    if let ([offer], false) = (offers, again)
        && opened_alone(store, job, line, offer).await?
    {
        return Ok(vec![true]);
    }
    let mut transaction = store.database.write().await?;
    let is_new = open(&mut transaction, job, line, offers).await?;
    // After a lost answer the runs may be our own, and must not count as asked for again.
    if !again {
        let duplicates = offers.iter().zip(&is_new).filter(|(_, is_new)| !**is_new);
        let duplicates: Vec<&Offer> = duplicates.map(|(offer, _)| offer).collect();
        record_dedupes(&mut transaction, job, requested_by, &duplicates).await?;
    }
    transaction.commit(place!("enqueue")).await?;
    Ok(is_new)
}

/// Opens and queues the run of one key in one message, where the database can do that. False if it may not be new: a server that
/// is not `read committed` by default refuses the key of another transaction that has just ended, and one whose tables are locked
/// gives up; neither writes anything.
async fn opened_alone(
    store: &Store,
    job: JobNumber,
    line: Line,
    offer: &Offer,
) -> std::result::Result<bool, DatabaseError> {
    let bound = run_state::enqueue_alone(job, line, offer.key.to_string(), offer.payload.clone());
    match store.database.alone::<(i64,)>(bound, place!("enqueue-alone")).await {
        Ok(opened) => Ok(opened.is_some_and(|opened| !opened.is_empty())),
        Err(DatabaseError::Busy(_)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Opens and queues a run for each key that has none. Returns for each offer whether it was new.
pub(crate) async fn open(
    transaction: &mut Transaction,
    job: JobNumber,
    line: Line,
    offers: &[Offer],
) -> std::result::Result<Vec<bool>, DatabaseError> {
    let rows = Rows::default()
        .texts(offers.iter().map(|offer| offer.key.to_string()))
        .texts(offers.iter().map(|offer| offer.payload.clone()));
    let opened = run_state::enqueue(transaction, job, rows).await?;
    if !opened.is_empty() {
        let rows = Rows::default().integers(opened.iter().map(|(id, _)| *id));
        transaction.execute(catalog::QUEUE_ENQUEUE.bind(line.0).bind(rows)).await?;
    }
    let mut new_keys: HashSet<String> = opened.into_iter().map(|(_, key)| key).collect();
    Ok(offers.iter().map(|offer| new_keys.remove(offer.key.as_key().as_str())).collect())
}

/// Records that runs which existed already were asked for again.
pub(crate) async fn record_dedupes(
    transaction: &mut Transaction,
    job: JobNumber,
    requested_by: &str,
    duplicates: &[&Offer],
) -> std::result::Result<(), DatabaseError> {
    if duplicates.is_empty() {
        return Ok(());
    }
    let rows = Rows::default()
        .integers(duplicates.iter().map(|_| i64::from(job)))
        .texts(duplicates.iter().map(|offer| offer.key.to_string()))
        .texts(duplicates.iter().map(|offer| offer.payload.clone()));
    transaction.execute(catalog::DEDUPE_RECORD.bind(requested_by).bind(rows)).await?;
    Ok(())
}

/// Records one more request for a run that exists. After a lost answer it may be recorded already, and is not counted twice.
pub(crate) async fn record_dedupe(
    store: &Store,
    job: JobNumber,
    key: &RunKey,
    requested_by: &str,
) -> Result<()> {
    let is_unknown = AtomicBool::new(false);
    let recorded = retried(|| async {
        if is_unknown.load(Ordering::Relaxed) {
            return Ok(());
        }
        let mut transaction = store.database.write().await?;
        let offer = Offer { key: key.clone(), payload: None };
        record_dedupes(&mut transaction, job, requested_by, &[&offer]).await?;
        let committed = transaction.commit(place!("dedupe")).await;
        is_unknown.store(matches!(committed, Err(DatabaseError::Unknown(_))), Ordering::Relaxed);
        committed
    });
    Ok(recorded.await?)
}
