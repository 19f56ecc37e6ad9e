//! Reserves an effect before it is sent, and records how the send ended.
//!
//! The reservation is committed before the first byte is sent: a sender that dies later leaves an effect in doubt, never one that looks
//! unsent. Its holder is a worker row. [`answer`] records the end under that worker and the number of the send, so the answer of a
//! sender that was taken over meanwhile is recognised: it may confirm, because evidence does not expire, and it changes nothing else.
//!
//! The decision is [`admit`]'s, under a lock on the fact: a lock on its rows alone would not stop a request for another version, whose
//! row is not committed yet. An index holds the rest: of one fact, one version at most is reserved or in doubt.
//!
//! After a lost answer the same request looks again. A nonce tells it whether the reservation that it finds is its own.

use std::time::Duration;

use refrain_core::Word as _;
use refrain_core::state::{
    Admission, Doubt, EffectEvent, EffectState, FactVersion, Hold, InDoubtPolicy, Machine as _, NextStep,
    SendAnswer, admit,
};

use super::effect_state::{self, EffectAnswer};
use super::effects::{self, NewEffect};
use super::identity::IdentityDoubt;
use super::message::shortened;
use super::workers::{self, WorkerTask};
use super::{Result, Store, StoreError, catalog, migrate, with_retries};
use crate::database::statement::Statement;
use crate::database::{DatabaseError, Transaction, place, random_id};
use crate::failpoint;

/// SQLite has no such statement, so it is in no catalogue.
static FACT_GUARD: Statement =
    Statement::new("sql/effect/guard.postgres.sql", include_str!("../../sql/effect/guard.postgres.sql"));

/// How long a sent message may be on its way. A second send under `provider-key` must arrive while the provider remembers the key.
/// An operator's `resend` is refused until the first message can no longer arrive.
const HORIZON: Duration = Duration::from_mins(1);

/// A request for a send.
#[derive(Debug, Clone)]
pub(crate) struct EffectRequest {
    pub(crate) effect: NewEffect,
    pub(crate) policy: InDoubtPolicy,
    /// How long the provider remembers a key.
    pub(crate) provider_ttl: Option<Duration>,
    /// The word for this kind of request in the record of dedupes.
    pub(crate) asked: &'static str,
}

/// The worker that is to hold a reservation.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Holder<'h> {
    /// A registered one.
    Known(i64),
    /// One that is registered in the same transaction, for a process that sends once: it is removed with the answer.
    New { process: &'h str, lease: Duration },
}

/// A reserved effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EffectReservation {
    pub(crate) effect: i64,
    pub(crate) key: String,
    pub(crate) worker: i64,
    /// The number of the send.
    pub(crate) send: i32,
    /// Whether an earlier send has had no answer.
    is_earlier_unanswered: bool,
    /// Whether the worker is removed with the answer.
    is_only: bool,
}

/// A version of a fact, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, sqlx_macros::FromRow)]
pub(crate) struct FactRow {
    pub(crate) id: i64,
    pub(crate) version: i32,
    pub(crate) state: String,
    pub(crate) holder: Option<i64>,
    nonce: Option<String>,
    pub(crate) sends: i32,
    first_sent_at: Option<i64>,
    last_sent_at: Option<i64>,
    pub(crate) unanswered_at: Option<i64>,
    pub(crate) receipt: Option<String>,
    pub(crate) message: Option<String>,
    pub(crate) changed_at: i64,
    now: i64,
}

impl FactRow {
    pub(crate) fn state(&self) -> Result<EffectState> {
        let broken = |error| StoreError::Broken(format!("effect {}: {error}", self.id));
        self.state.parse().map_err(broken)
    }

    /// Until when a message of it may be on its way; none if that time has passed.
    pub(crate) fn arrives_until(&self) -> Option<i64> {
        let horizon = i64::try_from(HORIZON.as_micros()).unwrap_or(i64::MAX);
        let until = self.unanswered_at.map(|_| self.changed_at)?.saturating_add(horizon);
        (until > self.now).then_some(until)
    }

    fn version(&self) -> Result<FactVersion> {
        let (version, state) = (u32::try_from(self.version).unwrap_or_default(), self.state()?);
        Ok(FactVersion { version, state, is_unanswered: self.unanswered_at.is_some() })
    }

    fn doubt(&self, provider_ttl: Option<Duration>) -> Doubt {
        let since = |at: Option<i64>| {
            let microseconds = at.map_or(0, |at| self.now.saturating_sub(at));
            Duration::from_micros(u64::try_from(microseconds).unwrap_or_default())
        };
        Doubt {
            since_first_send: since(self.first_sent_at),
            since_last_send: since(self.last_sent_at),
            horizon: HORIZON,
            provider_ttl,
            probe: None,
        }
    }
}

/// What became of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reserved {
    /// It is reserved: send it.
    Now(EffectReservation),
    /// It is not sent now.
    Not(NotReserved),
}

/// Why an effect is not sent now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NotReserved {
    /// This version, or a higher one, is settled.
    Settled(FactRow),
    /// A sender holds this version, or a lower one.
    Held(FactRow),
    /// This version, or a lower one, is in doubt.
    InDoubt(FactRow, Hold),
    /// The operator must approve it first.
    NeedsApproval(FactRow),
}

/// Reserves an effect, or reports why it is not sent now.
pub(crate) async fn reserve(store: &Store, request: &EffectRequest, holder: Holder<'_>) -> Result<Reserved> {
    store.is_sure()?;
    store.is_in_place()?;
    let nonce = random_id();
    with_retries(|| reserved(store, request, holder, &nonce)).await
}

async fn reserved(
    store: &Store,
    request: &EffectRequest,
    holder: Holder<'_>,
    nonce: &str,
) -> Result<Reserved> {
    let mut transaction = store.database.write().await?;
    // Before the fact, in the order of locks.
    match holder {
        Holder::Known(worker) => may_hold(store, &mut transaction, worker).await?,
        Holder::New { .. } => migrate::check_for_worker(&mut transaction).await?,
    }
    guard_fact(store, &mut transaction, &request.effect.key).await?;
    let is_new = effects::arrive(&mut transaction, &[&request.effect]).await?.contains(&true);
    let fact = fact(&mut transaction, &request.effect.key).await?;
    let versions: Vec<FactVersion> = fact.iter().map(FactRow::version).collect::<Result<_>>()?;
    let own = fact.iter().find(|row| row.version == request.effect.version);
    if let Some(own) = own.filter(|row| row.nonce.as_deref() == Some(nonce)) {
        // The answer to the commit of an earlier try was lost.
        let (worker, send) = (own.holder.unwrap_or_default(), own.sends);
        return Ok(Reserved::Now(reservation(request, own, worker, send, holder)));
    }
    let version = u32::try_from(request.effect.version).unwrap_or_default();
    let policy = || match own {
        Some(own) => request.policy.next(&own.doubt(request.provider_ttl)),
        None => NextStep::Hold(Hold::Policy),
    };
    let admission = admit(&versions, version, policy);
    failpoint::reach("reserve.decided");
    let row = |version: u32| {
        let found = fact.iter().find(|row| u32::try_from(row.version) == Ok(version)).cloned();
        found.ok_or_else(|| StoreError::Broken(format!("{} has no version {version}", request.effect.key)))
    };
    Ok(match admission {
        Admission::Send { events, superseded } => {
            let own = row(version)?;
            for lower in superseded {
                let lower = row(lower)?;
                move_by(&mut transaction, &lower, EffectEvent::Superseded, Some("a higher version arrived"))
                    .await?;
            }
            let payload = request.effect.payload.as_deref();
            let (worker, send) =
                hold(store, &mut transaction, (&own, &events, payload), (holder, nonce)).await?;
            transaction.commit(place!("reserve")).await?;
            Reserved::Now(reservation(request, &own, worker, send, holder))
        }
        Admission::GivenUp(event) => {
            let own = row(version)?;
            let message = Some("the policy prefers no send to two");
            let state = move_by(&mut transaction, &own, event, message).await?;
            transaction.commit(place!("give-up")).await?;
            Reserved::Not(NotReserved::Settled(FactRow { state: state.name().to_owned(), ..own }))
        }
        Admission::Settled(settled) => {
            if !is_new {
                effects::record_dedupes(&mut transaction, request.asked, &[&request.effect]).await?;
                transaction.commit(place!("effect-dedupe")).await?;
            }
            Reserved::Not(NotReserved::Settled(row(settled.version)?))
        }
        Admission::Held(version) => Reserved::Not(NotReserved::Held(row(version)?)),
        Admission::InDoubt(version, hold) => Reserved::Not(NotReserved::InDoubt(row(version)?, hold)),
        Admission::NeedsApproval => Reserved::Not(NotReserved::NeedsApproval(row(version)?)),
    })
}

/// Keeps other transactions from deciding about this fact, whatever is recorded of it.
async fn guard_fact(store: &Store, transaction: &mut Transaction, key: &str) -> Result<()> {
    if !store.database.is_sqlite() && !failpoint::is_weakened("reserve.unguarded") {
        let _: Option<(Option<String>,)> = transaction.fetch_optional(FACT_GUARD.bind(key)).await?;
    }
    Ok(())
}

/// Locks every version of a fact, and then reads them: their states may have changed while this waited for the locks.
pub(super) async fn fact(transaction: &mut Transaction, key: &str) -> Result<Vec<FactRow>> {
    let _: Vec<(i64,)> = transaction.fetch_all(catalog::EFFECT_FACT_LOCK.bind(key)).await?;
    Ok(transaction.fetch_all(catalog::EFFECT_FACT.bind(key)).await?)
}

/// Checks that a worker may take on something: it has not expired, and its store is the one that was opened.
async fn may_hold(store: &Store, transaction: &mut Transaction, worker: i64) -> Result<()> {
    let alive: Option<(i64, i64, Option<String>)> =
        transaction.fetch_optional(catalog::WORKER_CLAIMS.bind(worker)).await?;
    let Some((_, _, doubt)) = alive else {
        return Err(DatabaseError::Expired.into());
    };
    if let Some(doubt) = doubt {
        return Err(store.doubted(IdentityDoubt::named(&doubt)));
    }
    if !store.goes_on_in(transaction).await? {
        // Recorded over another connection: the caller rolls this transaction back.
        return Err(store.is_doubted(IdentityDoubt::Timeline).await?);
    }
    Ok(())
}

/// Gives an effect to its holder. Returns the worker and the number of the send.
async fn hold(
    store: &Store,
    transaction: &mut Transaction,
    (own, events, payload): (&FactRow, &[EffectEvent], Option<&str>),
    (holder, nonce): (Holder<'_>, &str),
) -> Result<(i64, i32)> {
    let worker = match holder {
        Holder::Known(worker) => worker,
        Holder::New { process, lease } => {
            let worker = workers::insert(transaction, process, lease, WorkerTask::Sends).await?;
            may_hold(store, transaction, worker).await?;
            worker
        }
    };
    let send =
        effect_state::reserve(transaction, own.id, own.state()?, events, (worker, nonce), payload).await?;
    Ok((worker, send))
}

fn reservation(
    request: &EffectRequest,
    own: &FactRow,
    worker: i64,
    send: i32,
    holder: Holder<'_>,
) -> EffectReservation {
    EffectReservation {
        effect: own.id,
        key: request.effect.key.clone(),
        worker,
        send,
        is_earlier_unanswered: own.unanswered_at.is_some(),
        is_only: matches!(holder, Holder::New { .. }),
    }
}

async fn move_by(
    transaction: &mut Transaction,
    row: &FactRow,
    event: EffectEvent,
    message: Option<&str>,
) -> Result<EffectState> {
    effect_state::move_by(transaction, row.id, row.state()?, event, (None, message)).await
}

/// How a send ended, with what the receiver answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SendEnd {
    answer: SendAnswer,
    receipt: Option<String>,
    message: Option<String>,
}

impl SendEnd {
    /// The message comes from a program or a receiver: it is cut to what can be stored.
    pub(crate) fn new(answer: SendAnswer, receipt: Option<String>, message: Option<String>) -> SendEnd {
        SendEnd { answer, receipt, message: message.map(shortened) }
    }

    #[cfg(test)]
    pub(crate) fn answer(&self) -> SendAnswer {
        self.answer
    }

    pub(crate) fn message(&self) -> Option<&str> {
        self.message.as_deref()
    }
}

/// Records how a send ended. Returns the state of the effect: of a sender that was taken over only a confirmation counts.
pub(crate) async fn answer(
    store: &Store,
    reservation: &EffectReservation,
    end: &SendEnd,
) -> Result<EffectState> {
    with_retries(|| answered(store, reservation, end)).await
}

async fn answered(store: &Store, reservation: &EffectReservation, end: &SendEnd) -> Result<EffectState> {
    let event = end.answer.event(reservation.is_earlier_unanswered);
    let EffectReservation { effect, worker, send, .. } = *reservation;
    let (receipt, message) = (end.receipt.as_deref(), end.message.as_deref());
    let mut transaction = store.database.write().await?;
    if reservation.is_only {
        // Before the effect, in the order of locks: a rescuer that takes over from this worker has locked it first.
        let _: Option<(i64,)> = transaction.fetch_optional(catalog::WORKER_WAIT.bind(worker)).await?;
    }
    let own = EffectAnswer { effect, worker, send, event, receipt, message };
    let state = if effect_state::answer(&mut transaction, &own).await? {
        EffectState::Reserved.apply(event)?
    } else {
        late(&mut transaction, reservation, end).await?
    };
    if reservation.is_only {
        transaction.execute(catalog::WORKER_REMOVE.bind(worker)).await?;
    }
    transaction.commit(place!("answer")).await?;
    Ok(state)
}

/// What an answer means for an effect that its sender does not hold any more. After a lost answer to the commit the effect is as this
/// sender has left it.
async fn late(
    transaction: &mut Transaction,
    reservation: &EffectReservation,
    end: &SendEnd,
) -> Result<EffectState> {
    let fact = fact(transaction, &reservation.key).await?;
    let row = fact.into_iter().find(|row| row.id == reservation.effect);
    let row = row.ok_or_else(|| StoreError::Broken(format!("effect {} is gone", reservation.effect)))?;
    let state = row.state()?;
    let confirmed = state.apply(EffectEvent::Confirmed);
    if end.answer != SendAnswer::Confirmed || confirmed.is_err() {
        return Ok(state);
    }
    let evidence = (end.receipt.as_deref(), end.message.as_deref());
    effect_state::move_by(transaction, row.id, state, EffectEvent::Confirmed, evidence).await
}

/// The versions of a fact, lowest first.
pub(crate) async fn versions(store: &Store, key: &str) -> Result<Vec<FactRow>> {
    let mut transaction = store.database.read().await?;
    Ok(transaction.fetch_all(catalog::EFFECT_FACT.bind(key)).await?)
}
