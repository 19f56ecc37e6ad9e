//! Effects: one for each fact and version, however often it is requested.

use std::collections::{HashMap, HashSet};

use refrain_core::Word as _;
use refrain_core::state::{EffectEvent, EffectState};

use super::{Result, Store, catalog, effect_state};
use crate::database::statement::Rows;
use crate::database::{DatabaseError, Transaction};

/// An effect that an intent requests.
#[derive(Debug, Clone)]
pub(crate) struct NewEffect {
    pub(crate) key: String,
    pub(crate) version: i32,
    pub(crate) name: String,
    /// The run that requests it.
    pub(crate) job: Option<String>,
    pub(crate) run: Option<String>,
    pub(crate) payload: Option<String>,
}

/// Records effects to be sent. Returns for each whether it was new: it is not if its fact has an effect of the same version or of
/// a higher one.
pub(crate) async fn arrive(
    transaction: &mut Transaction,
    requested: &[&NewEffect],
) -> std::result::Result<Vec<bool>, DatabaseError> {
    let risen = rising(requested);
    let rows = Rows::default()
        .texts(risen.iter().map(|one| one.key.clone()))
        .integers(risen.iter().map(|one| i64::from(one.version)))
        .texts(risen.iter().map(|one| one.name.clone()))
        .texts(risen.iter().map(|one| one.job.clone()))
        .texts(risen.iter().map(|one| one.run.clone()))
        .texts(risen.iter().map(|one| one.payload.clone()));
    let arrived = effect_state::arrive(transaction, EffectEvent::Relayed, rows).await?;
    let mut new_keys: HashSet<(String, i32)> = arrived.into_iter().collect();
    Ok(requested.iter().map(|one| new_keys.remove(&(one.key.clone(), one.version))).collect())
}

/// Those with a higher version than every one of the same fact before them.
fn rising<'e>(requested: &[&'e NewEffect]) -> Vec<&'e NewEffect> {
    let mut highest: HashMap<&str, i32> = HashMap::new();
    let mut risen = Vec::with_capacity(requested.len());
    for one in requested {
        if highest.get(one.key.as_str()).is_none_or(|before| *before < one.version) {
            highest.insert(&one.key, one.version);
            risen.push(*one);
        }
    }
    risen
}

/// Records that effects which existed already were requested again.
pub(crate) async fn record_dedupes(
    transaction: &mut Transaction,
    requested_by: &str,
    duplicates: &[&NewEffect],
) -> std::result::Result<(), DatabaseError> {
    if duplicates.is_empty() {
        return Ok(());
    }
    let rows = Rows::default()
        .texts(duplicates.iter().map(|one| one.key.clone()))
        .integers(duplicates.iter().map(|one| i64::from(one.version)))
        .texts(duplicates.iter().map(|one| one.payload.clone()));
    transaction.execute(catalog::EFFECT_DEDUPE_RECORD.bind(requested_by).bind(rows)).await?;
    Ok(())
}

/// An effect as it is stored.
#[derive(Debug, Clone, sqlx_macros::FromRow)]
pub(crate) struct EffectRow {
    pub(crate) id: i64,
    pub(crate) key: String,
    pub(crate) version: i32,
    pub(crate) name: String,
    pub(crate) state: String,
    pub(crate) job: Option<String>,
    pub(crate) run: Option<String>,
    pub(crate) payload: Option<String>,
    pub(crate) arrived_at: i64,
    pub(crate) sends: i32,
    pub(crate) first_sent_at: Option<i64>,
    pub(crate) last_sent_at: Option<i64>,
    pub(crate) unanswered_at: Option<i64>,
    pub(crate) changed_at: Option<i64>,
    pub(crate) receipt: Option<String>,
    pub(crate) message: Option<String>,
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

/// Effects in one state, the oldest first, after one of them.
pub(crate) async fn in_state(
    store: &Store,
    state: EffectState,
    after: i64,
    limit: i64,
) -> Result<Vec<EffectRow>> {
    let mut transaction = store.database.read().await?;
    Ok(transaction.fetch_all(catalog::EFFECT_IN_STATE.bind(state.name()).bind(after).bind(limit)).await?)
}

/// A reserved effect, and what is known of its worker.
#[derive(Debug, Clone, sqlx_macros::FromRow)]
pub(crate) struct ReservedRow {
    #[sqlx(flatten)]
    pub(crate) effect: EffectRow,
    /// The process of its worker; none if the worker does not exist.
    pub(crate) process: Option<String>,
    pub(crate) is_silent: i32,
}

/// Reserved effects.
pub(crate) async fn reserved(store: &Store, limit: i64) -> Result<Vec<ReservedRow>> {
    let mut transaction = store.database.read().await?;
    Ok(transaction.fetch_all(catalog::EFFECT_RESERVED.bind(limit)).await?)
}
