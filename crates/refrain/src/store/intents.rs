//! Intents arrive: what they wish for is opened or recorded, all of a page in one transaction.
//!
//! An intent may come any number of times: its relay died before it could forget it, its answer was lost, two relays read
//! it at once. What it wishes for is there once all the same, by the keys of runs and effects. That it has come before is
//! written down apart, and only tells a copy from somebody who asks again.

use std::collections::{BTreeMap, HashSet};

use super::effects::{self, Wanted};
use super::enqueue::{Offer, open, record_dedupes};
use super::queue_line::{JobNumber, Line, Priority};
use super::{Result, Store, catalog};
use crate::database::statement::Rows;
use crate::database::{DatabaseError, Transaction, place, retried};

/// By what way they come.
const ASKED: &str = "intent";

/// What an intent wishes for.
#[derive(Debug, Clone)]
pub(crate) enum Wish {
    Effect(Wanted),
    Run(JobNumber, Offer),
}

/// An intent that arrives, by its number at its database.
#[derive(Debug, Clone)]
pub(crate) struct Arriving {
    pub(crate) intent: i64,
    pub(crate) wish: Wish,
}

/// What came of a page of intents.
#[derive(Debug, Default)]
pub(crate) struct Arrived {
    /// How many had not come before.
    pub(crate) fresh: usize,
    /// How many effects are new.
    pub(crate) effects: usize,
    /// How many runs were opened.
    pub(crate) runs: usize,
    /// Where the new runs stand.
    pub(crate) lines: Vec<Line>,
}

/// Copies intents of a destination into the store.
pub(crate) async fn arrive(store: &Store, destination: &str, arriving: &[Arriving]) -> Result<Arrived> {
    if arriving.is_empty() {
        return Ok(Arrived::default());
    }
    Ok(retried(|| arrived(store, destination, arriving)).await?)
}

type Answer<T> = std::result::Result<T, DatabaseError>;

async fn arrived(store: &Store, destination: &str, arriving: &[Arriving]) -> Answer<Arrived> {
    let mut transaction = store.database.write().await?;
    let fresh = first_time(&mut transaction, destination, arriving).await?;
    let mut arrived = Arrived { fresh: fresh.len(), ..Arrived::default() };

    let mut wanted: Vec<(i64, &Wanted)> = Vec::new();
    let mut offers: BTreeMap<JobNumber, (Vec<i64>, Vec<Offer>)> = BTreeMap::new();
    for Arriving { intent, wish } in arriving {
        match wish {
            Wish::Effect(effect) => wanted.push((*intent, effect)),
            Wish::Run(job, offer) => {
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
    if !wanted.is_empty() {
        let (intents, effects): (Vec<i64>, Vec<&Wanted>) = wanted.into_iter().unzip();
        let news = effects::arrive(&mut transaction, &effects).await?;
        arrived.effects = news.iter().filter(|is_new| **is_new).count();
        let asked_again: Vec<&Wanted> = again(&fresh, &intents, &effects, &news).copied().collect();
        effects::record_dedupes(&mut transaction, ASKED, &asked_again).await?;
    }
    transaction.commit(place!("relay-copy")).await?;
    Ok(arrived)
}

/// Those that came for the first time, and found what they wished for.
fn again<'w, W>(
    fresh: &HashSet<i64>,
    intents: &[i64],
    wishes: &'w [W],
    news: &[bool],
) -> impl Iterator<Item = &'w W> {
    let told = intents.iter().zip(news).map(|(intent, is_new)| !is_new && fresh.contains(intent));
    let told: Vec<bool> = told.collect();
    wishes.iter().zip(told).filter(|(_, told)| *told).map(|(wish, _)| wish)
}

/// Which of them have never come before.
async fn first_time(
    transaction: &mut Transaction,
    destination: &str,
    arriving: &[Arriving],
) -> Answer<HashSet<i64>> {
    let rows = Rows::default().integers(arriving.iter().map(|one| one.intent));
    let fresh: Vec<(i64,)> =
        transaction.fetch_all(catalog::ARRIVAL_INSERT.bind(destination).bind(rows)).await?;
    Ok(fresh.into_iter().map(|(intent,)| intent).collect())
}
