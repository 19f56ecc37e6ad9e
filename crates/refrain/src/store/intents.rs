//! Copies intents into the store: the runs and effects that they request, all of a page in one transaction.
//!
//! An intent may arrive any number of times: its relay died before it could delete it, an answer was lost, two relays read it at
//! once. Its run or effect exists once all the same, by its key. Arrivals are recorded separately; they only tell a repeated copy
//! from a second request.

use std::collections::{BTreeMap, HashSet};

use super::effects::{self, NewEffect};
use super::enqueue::{Offer, open, record_dedupes};
use super::queue_line::{JobNumber, Line, Priority};
use super::{Result, Store, catalog};
use crate::database::statement::Rows;
use crate::database::{DatabaseError, Transaction, place, retried};

/// How dedupes name the way in which they were requested.
const ASKED: &str = "intent";

/// What an intent requests.
#[derive(Debug, Clone)]
pub(crate) enum IntentRequest {
    Effect(NewEffect),
    Run(JobNumber, Offer),
}

/// An intent that arrives, by its number at its database.
#[derive(Debug, Clone)]
pub(crate) struct RelayedIntent {
    pub(crate) intent: i64,
    pub(crate) request: IntentRequest,
}

/// The result of copying a page of intents.
#[derive(Debug, Default)]
pub(crate) struct Arrived {
    /// How many arrived for the first time.
    pub(crate) fresh: usize,
    /// How many effects are new.
    pub(crate) effects: usize,
    /// How many runs were opened.
    pub(crate) runs: usize,
    /// The lines of the queue in which the new runs are.
    pub(crate) lines: Vec<Line>,
}

/// Copies intents of a destination into the store.
pub(crate) async fn arrive(store: &Store, destination: &str, arriving: &[RelayedIntent]) -> Result<Arrived> {
    if arriving.is_empty() {
        return Ok(Arrived::default());
    }
    Ok(retried(|| arrived(store, destination, arriving)).await?)
}

type Answer<T> = std::result::Result<T, DatabaseError>;

async fn arrived(store: &Store, destination: &str, arriving: &[RelayedIntent]) -> Answer<Arrived> {
    let mut transaction = store.database.write().await?;
    let fresh = first_time(&mut transaction, destination, arriving).await?;
    let mut arrived = Arrived { fresh: fresh.len(), ..Arrived::default() };

    let mut requested: Vec<(i64, &NewEffect)> = Vec::new();
    let mut offers: BTreeMap<JobNumber, (Vec<i64>, Vec<Offer>)> = BTreeMap::new();
    for RelayedIntent { intent, request } in arriving {
        match request {
            IntentRequest::Effect(effect) => requested.push((*intent, effect)),
            IntentRequest::Run(job, offer) => {
                let (intents, offers) = offers.entry(*job).or_default();
                intents.push(*intent);
                offers.push(offer.clone());
            }
        }
    }
    for (job, (intents, offers)) in &offers {
        let line = Line::of(Priority::Live, *job);
        let news = open(&mut transaction, *job, line, offers).await?;
        let opened = news.iter().filter(|is_new| **is_new).count();
        arrived.runs += opened;
        arrived.lines.extend((opened > 0).then_some(line));
        let asked_again: Vec<&Offer> = again(&fresh, intents, offers, &news).collect();
        record_dedupes(&mut transaction, *job, ASKED, &asked_again).await?;
    }
    if !requested.is_empty() {
        let (intents, effects): (Vec<i64>, Vec<&NewEffect>) = requested.into_iter().unzip();
        let news = effects::arrive(&mut transaction, &effects).await?;
        arrived.effects = news.iter().filter(|is_new| **is_new).count();
        let asked_again: Vec<&NewEffect> = again(&fresh, &intents, &effects, &news).copied().collect();
        effects::record_dedupes(&mut transaction, ASKED, &asked_again).await?;
    }
    transaction.commit(place!("relay-copy")).await?;
    Ok(arrived)
}

/// Those that arrived for the first time and whose run or effect existed already.
fn again<'r, R>(
    fresh: &HashSet<i64>,
    intents: &[i64],
    requests: &'r [R],
    news: &[bool],
) -> impl Iterator<Item = &'r R> {
    let is_dedupe = intents.iter().zip(news).map(|(intent, is_new)| !is_new && fresh.contains(intent));
    let is_dedupe: Vec<bool> = is_dedupe.collect();
    requests.iter().zip(is_dedupe).filter(|(_, is_dedupe)| *is_dedupe).map(|(request, _)| request)
}

/// Which of them arrive for the first time.
async fn first_time(
    transaction: &mut Transaction,
    destination: &str,
    arriving: &[RelayedIntent],
) -> Answer<HashSet<i64>> {
    let rows = Rows::default().integers(arriving.iter().map(|one| one.intent));
    let fresh: Vec<(i64,)> =
        transaction.fetch_all(catalog::ARRIVAL_INSERT.bind(destination).bind(rows)).await?;
    Ok(fresh.into_iter().map(|(intent,)| intent).collect())
}
