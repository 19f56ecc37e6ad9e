//! Effects: one for each fact and version, however often it is wished for.

use std::collections::{HashMap, HashSet};

use super::{Result, Store, catalog};
use crate::database::statement::Rows;
use crate::database::{DatabaseError, Transaction};

/// An effect that somebody wishes for.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    pub(crate) key: String,
    pub(crate) version: i32,
    pub(crate) name: String,
    /// The run that wishes for it.
    pub(crate) job: Option<String>,
    pub(crate) run: Option<String>,
    pub(crate) payload: Option<String>,
}

/// Records effects to be sent. Gives for each whether it was new: it is not if its fact has one of the same version or of
/// a higher one.
pub(crate) async fn arrive(
    transaction: &mut Transaction,
    wanted: &[&Wanted],
) -> std::result::Result<Vec<bool>, DatabaseError> {
    let risen = risen(wanted);
    let rows = Rows::default()
        .texts(risen.iter().map(|one| one.key.clone()))
        .integers(risen.iter().map(|one| i64::from(one.version)))
        .texts(risen.iter().map(|one| one.name.clone()))
        .texts(risen.iter().map(|one| one.job.clone()))
        .texts(risen.iter().map(|one| one.run.clone()))
        .texts(risen.iter().map(|one| one.payload.clone()));
    let arrived: Vec<(String, i32)> = transaction.fetch_all(catalog::EFFECT_ARRIVE.bind(rows)).await?;
    let mut news: HashSet<(String, i32)> = arrived.into_iter().collect();
    Ok(wanted.iter().map(|one| news.remove(&(one.key.clone(), one.version))).collect())
}

/// Those that are not below one of the same fact that comes before them, and not the same again.
fn risen<'w>(wanted: &[&'w Wanted]) -> Vec<&'w Wanted> {
    let mut highest: HashMap<&str, i32> = HashMap::new();
    let mut risen = Vec::with_capacity(wanted.len());
    for one in wanted {
        if highest.get(one.key.as_str()).is_none_or(|before| *before < one.version) {
            highest.insert(&one.key, one.version);
            risen.push(*one);
        }
    }
    risen
}

/// Records that somebody wished for effects that were there.
pub(crate) async fn record_dedupes(
    transaction: &mut Transaction,
    asked: &str,
    duplicates: &[&Wanted],
) -> std::result::Result<(), DatabaseError> {
    if duplicates.is_empty() {
        return Ok(());
    }
    let rows = Rows::default()
        .texts(duplicates.iter().map(|one| one.key.clone()))
        .integers(duplicates.iter().map(|one| i64::from(one.version)))
        .texts(duplicates.iter().map(|one| one.payload.clone()));
    transaction.execute(catalog::EFFECT_DEDUPE_RECORD.bind(asked).bind(rows)).await?;
    Ok(())
}

/// An effect as it is stored.
#[derive(Debug, Clone, sqlx_macros::FromRow)]
pub(crate) struct EffectRow {
    pub(crate) key: String,
    pub(crate) version: i32,
    pub(crate) name: String,
    pub(crate) state: String,
    pub(crate) job: Option<String>,
    pub(crate) run: Option<String>,
    pub(crate) payload: Option<String>,
    pub(crate) arrived_at: i64,
    pub(crate) dedupes: i64,
}

/// The effects of a fact, the newest version first.
pub(crate) async fn of_key(store: &Store, key: &str, limit: i64) -> Result<Vec<EffectRow>> {
    let mut transaction = store.database.read().await?;
    Ok(transaction.fetch_all(catalog::EFFECT_OF_KEY.bind(key).bind(limit)).await?)
}

/// Effects, the newest first.
pub(crate) async fn list(store: &Store, limit: i64) -> Result<Vec<EffectRow>> {
    let mut transaction = store.database.read().await?;
    Ok(transaction.fetch_all(catalog::EFFECT_LIST.bind(limit)).await?)
}
