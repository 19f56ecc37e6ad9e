//! Decisions of the operator about effects: each recorded in the transaction that carries it out.
//!
//! The fact is locked, so of two operators who decide at once the second one meets the state that the first one left. A lower version
//! of a fact is never sent again, and nothing is sent again while the last message may still be on its way.

use refrain_core::state::{Edge, EffectEvent, EffectState, Machine as _};

use super::audit::{self, Decision};
use super::effect_reservation::{FactRow, fact};
use super::{Result, Store, StoreError, effect_state, instant, with_retries};
use crate::database::place;

/// A decision about one effect.
#[derive(Debug)]
pub(crate) struct EffectDecision<'d> {
    pub(crate) key: &'d str,
    /// The version; none for the highest one.
    pub(crate) version: Option<i32>,
    pub(crate) event: EffectEvent,
    pub(crate) decision: &'d Decision,
}

/// Carries it out. Returns the version and its state; none if there is no such effect.
pub(crate) async fn decide(
    store: &Store,
    request: &EffectDecision<'_>,
) -> Result<Option<(i32, EffectState)>> {
    let mut is_first = true;
    with_retries(|| {
        let again = !std::mem::replace(&mut is_first, false);
        async move { decided(store, request, again).await }
    })
    .await
}

async fn decided(
    store: &Store,
    request: &EffectDecision<'_>,
    again: bool,
) -> Result<Option<(i32, EffectState)>> {
    let mut transaction = store.database.write().await?;
    let fact = fact(&mut transaction, request.key).await?;
    let Some(highest) = fact.iter().map(|row| row.version).max() else { return Ok(None) };
    let version = request.version.unwrap_or(highest);
    let Some(row) = fact.iter().find(|row| row.version == version) else { return Ok(None) };
    let state = row.state()?;
    // After a lost answer the first try may have been committed.
    let is_target = |edge: &&Edge<EffectState, EffectEvent>| edge.event == request.event && edge.to == state;
    if again && EffectState::EDGES.iter().any(|edge| is_target(&edge)) {
        return Ok(Some((version, state)));
    }
    if state == EffectState::Reserved {
        return Err(StoreError::BeingSent { key: request.key.to_owned() });
    }
    let next = state.apply(request.event)?;
    if next == EffectState::Pending {
        may_be_sent_again(request.key, row, highest)?;
    }
    effect_state::move_by(&mut transaction, row.id, state, request.event, (None, row.message.as_deref()))
        .await?;
    let subject = format!("{}@{version}", request.key);
    let decision = Decision { subject, ..request.decision.clone() };
    audit::record(&mut transaction, &decision).await?;
    transaction.commit(place!("decide-effect")).await?;
    Ok(Some((version, next)))
}

fn may_be_sent_again(key: &str, row: &FactRow, highest: i32) -> Result<()> {
    if row.version < highest {
        return Err(StoreError::LowerVersion { key: key.to_owned(), version: row.version, highest });
    }
    match row.arrives_until() {
        Some(until) => Err(StoreError::TooEarly { key: key.to_owned(), until: instant(until)? }),
        None => Ok(()),
    }
}
