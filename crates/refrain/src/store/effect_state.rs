//! Every write of an effect's state.
//!
//! The statements that write it are private to this file. Its functions take an event, ask the table in `refrain_core::state` what
//! follows from it, and write that. What the table does not allow is an error, and is not written.

use refrain_core::Word as _;
use refrain_core::state::{EffectEvent, EffectState, Machine as _};

use super::{Result, StoreError};
use crate::database::statement::Rows;
use crate::database::{DatabaseError, Transaction};

mod statements {
    use crate::database::statement::catalog;

    catalog! {
        EFFECT_ANSWER = "sql/effect/answer.sql",
        EFFECT_ARRIVE = "sql/effect/arrive.sql",
        EFFECT_DOUBT_HELD = "sql/effect/doubt_held.sql",
        EFFECT_MOVE = "sql/effect/move.sql",
        EFFECT_RESERVE = "sql/effect/reserve.sql",
    }
}

#[cfg(feature = "failpoints")]
pub(crate) use statements::ALL;

/// The state after several events.
fn after(state: EffectState, events: &[EffectEvent]) -> Result<EffectState> {
    Ok(events.iter().try_fold(state, |state, event| state.apply(*event))?)
}

/// Inserts effects. Returns key and version of each new one.
pub(crate) async fn arrive(
    transaction: &mut Transaction,
    event: EffectEvent,
    rows: Rows<'_>,
) -> std::result::Result<Vec<(String, i32)>, DatabaseError> {
    // Each of its callers asks for an event that leads from `absent`; a test holds them to it.
    let state = EffectState::START.apply(event).unwrap_or(EffectState::Waiting);
    transaction.fetch_all(statements::EFFECT_ARRIVE.bind(state.name()).bind(rows)).await
}

/// Reserves an effect for a worker under a nonce, by events of which the last is `reserved`. Returns the number of the send.
pub(crate) async fn reserve(
    transaction: &mut Transaction,
    effect: i64,
    state: EffectState,
    events: &[EffectEvent],
    holder: (i64, &str),
    payload: Option<&str>,
) -> Result<i32> {
    let state = after(state, events)?;
    if state != EffectState::Reserved {
        return Err(StoreError::Broken(format!("an effect that is {state} is not reserved")));
    }
    let reserve = statements::EFFECT_RESERVE
        .bind(effect)
        .bind(state.name())
        .bind(holder.0)
        .bind(holder.1)
        .bind(payload);
    // The index holds even without the lock on the fact: another version was reserved meanwhile, and the next look sees it.
    let other = |error: DatabaseError| {
        let busy = || DatabaseError::Busy("another version of this fact is being sent".to_owned());
        if error.is_unique_violation() { busy() } else { error }
    };
    let row: Option<(i32,)> = transaction.fetch_optional(reserve).await.map_err(other)?;
    let (send,) = row.ok_or_else(|| StoreError::Broken(format!("effect {effect} does not exist")))?;
    Ok(send)
}

/// How a send ended.
pub(crate) struct EffectAnswer<'a> {
    pub(crate) effect: i64,
    /// The worker that has reserved it.
    pub(crate) worker: i64,
    /// The number of the send.
    pub(crate) send: i32,
    pub(crate) event: EffectEvent,
    pub(crate) receipt: Option<&'a str>,
    pub(crate) message: Option<&'a str>,
}

/// Records how a send ended. False if the worker does not hold the effect any more.
pub(crate) async fn answer(transaction: &mut Transaction, answer: &EffectAnswer<'_>) -> Result<bool> {
    let state = EffectState::Reserved.apply(answer.event)?;
    let is_unanswered = answer.event == EffectEvent::Unanswered;
    let recorded = statements::EFFECT_ANSWER
        .bind(answer.effect)
        .bind(answer.worker)
        .bind(answer.send)
        .bind(state.name())
        .bind(is_unanswered)
        .bind(answer.receipt)
        .bind(answer.message);
    Ok(transaction.execute(recorded).await? > 0)
}

/// Moves an effect to another state; a worker that holds it loses it. The caller holds the lock on its fact.
pub(crate) async fn move_by(
    transaction: &mut Transaction,
    effect: i64,
    state: EffectState,
    event: EffectEvent,
    (receipt, message): (Option<&str>, Option<&str>),
) -> Result<EffectState> {
    let state = state.apply(event)?;
    let moved = statements::EFFECT_MOVE.bind(effect).bind(state.name()).bind(receipt).bind(message);
    transaction.execute(moved).await?;
    Ok(state)
}

/// Puts the effects that a worker has reserved into doubt. They are locked before.
pub(crate) async fn doubt_held(transaction: &mut Transaction, worker: i64, message: &str) -> Result<u64> {
    let state = EffectState::Reserved.apply(EffectEvent::Unanswered)?;
    let doubt = statements::EFFECT_DOUBT_HELD.bind(worker).bind(state.name()).bind(message);
    Ok(transaction.execute(doubt).await?)
}
