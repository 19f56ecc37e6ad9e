//! Opens runs of callers' keys: each key once, for ever.
//!
//! The insert is the question and the answer: what it gives back is new, and what it does not was there already,
//! which is recorded as a dedupe with the one who was first. There is no look-up before it that could be out of date.

use std::collections::{HashMap, HashSet};

use refrain_core::RunKey;

use super::queue_line::{JobNumber, Line};
use super::{Result, Store, catalog};
use crate::database::statement::{Rows, Statement};
use crate::database::{DatabaseError, Transaction, place, retried};

/// The most offers that go into one transaction.
pub(crate) const OFFERS_MAX: usize = 5_000;

/// A server alone can do this, so it is in no catalogue.
static ENQUEUE_ALONE: Statement = Statement::new(
    "sql/run/enqueue_alone.postgres.sql",
    include_str!("../../sql/run/enqueue_alone.postgres.sql"),
);

/// A key that somebody wants done, with what the job is given.
#[derive(Debug, Clone)]
pub(crate) struct Offer {
    pub(crate) key: RunKey,
    pub(crate) payload: Option<String>,
}

/// Opens a run for each key that has none. Gives for each offer whether it was new.
pub(crate) async fn enqueue(
    store: &Store,
    job: JobNumber,
    line: Line,
    offers: &[Offer],
    asked: &str,
) -> Result<Vec<bool>> {
    let mut news = Vec::with_capacity(offers.len());
    for chunk in offers.chunks(OFFERS_MAX) {
        let mut is_first = true;
        let offered = retried(|| {
            let again = !std::mem::replace(&mut is_first, false);
            offered(store, job, line, chunk, asked, again)
        });
        news.extend(offered.await?);
    }
    Ok(news)
}

#[derive(sqlx_macros::FromRow)]
struct New {
    id: i64,
    key: String,
}

async fn offered(
    store: &Store,
    job: JobNumber,
    line: Line,
    offers: &[Offer],
    asked: &str,
    again: bool,
) -> std::result::Result<Vec<bool>, DatabaseError> {
    if let ([offer], false) = (offers, again)
        && opened_alone(store, job, line, offer).await?
    {
        return Ok(vec![true]);
    }
    let mut transaction = store.database.write().await?;
    let is_new = open(&mut transaction, job, line, offers).await?;
    // After a lost answer these may be our own, and nobody else asked.
    if !again {
        let duplicates = offers.iter().zip(&is_new).filter(|(_, is_new)| !**is_new);
        let duplicates: Vec<&Offer> = duplicates.map(|(offer, _)| offer).collect();
        record_dedupes(&mut transaction, job, asked, &duplicates).await?;
    }
    transaction.commit(place!("enqueue")).await?;
    Ok(is_new)
}

/// Opens and queues the run of one key in one message, where the database can do that. False if it is not known to be new: a
/// server that is not `read committed` by default refuses the key of another transaction that has just ended, and one on which
/// the tables are locked gives up; neither writes anything.
async fn opened_alone(
    store: &Store,
    job: JobNumber,
    line: Line,
    offer: &Offer,
) -> std::result::Result<bool, DatabaseError> {
    let bound = ENQUEUE_ALONE.bind(job).bind(line.0).bind(offer.key.to_string()).bind(offer.payload.clone());
    match store.database.alone::<(i64,)>(bound, place!("enqueue-alone")).await {
        Ok(opened) => Ok(opened.is_some_and(|opened| !opened.is_empty())),
        Err(DatabaseError::Busy(_)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Opens and queues a run for each key that has none. Gives for each offer whether it was new.
pub(crate) async fn open(
    transaction: &mut Transaction,
    job: JobNumber,
    line: Line,
    offers: &[Offer],
) -> std::result::Result<Vec<bool>, DatabaseError> {
    let rows = Rows::default()
        .texts(offers.iter().map(|offer| offer.key.to_string()))
        .texts(offers.iter().map(|offer| offer.payload.clone()));
    let opened: Vec<New> = transaction.fetch_all(catalog::RUN_ENQUEUE.bind(job).bind(rows)).await?;
    if !opened.is_empty() {
        let rows = Rows::default().integers(opened.iter().map(|new| new.id));
        transaction.execute(catalog::QUEUE_ENQUEUE.bind(line.0).bind(rows)).await?;
    }
    let mut news: HashSet<String> = opened.into_iter().map(|new| new.key).collect();
    Ok(offers.iter().map(|offer| news.remove(offer.key.as_key().as_str())).collect())
}

/// Records that somebody asked for runs that were there.
pub(crate) async fn record_dedupes(
    transaction: &mut Transaction,
    job: JobNumber,
    asked: &str,
    duplicates: &[&Offer],
) -> std::result::Result<(), DatabaseError> {
    if duplicates.is_empty() {
        return Ok(());
    }
    let rows = Rows::default()
        .integers(duplicates.iter().map(|_| i64::from(job)))
        .texts(duplicates.iter().map(|offer| offer.key.to_string()))
        .texts(duplicates.iter().map(|offer| offer.payload.clone()));
    transaction.execute(catalog::DEDUPE_RECORD.bind(asked).bind(rows)).await?;
    Ok(())
}

/// Where each of these keys is stored.
pub(crate) fn by_key(opened: Vec<(i64, String)>) -> HashMap<String, i64> {
    opened.into_iter().map(|(id, key)| (key, id)).collect()
}
