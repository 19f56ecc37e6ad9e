//! Effects of a program: reserve, do, confirm; a second caller gets the receipt of the first.

use std::sync::Arc;
use std::time::Duration;

use refrain_core::state::{EffectState, Hold, InDoubtPolicy, SendAnswer};
use refrain_core::{IdempotencyKey, JobName, Key, Word as _};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Refrain;
use super::effect_error::{EffectError, NotPerformed};
use crate::database::DatabaseError;
use crate::effect::admission::admitted;
use crate::effect::answer::recorded;
use crate::effect::sending_worker::SendingWorker;
use crate::engine::heartbeat::Heartbeat;
use crate::error::Error;
use crate::failpoint;
use crate::store::effect_reservation::{
    EffectRequest, EffectReservation, Holder, NotReserved, Reserved, SendEnd,
};
use crate::store::effects::NewEffect;
use crate::store::{Reality, Store, StoreError, instant};

/// The longest receipt that is kept, in bytes.
pub const RECEIPT_BYTES_MAX: usize = 64 * 1_024;

/// What a program calls its effects, unless it says otherwise.
const NAME: &str = "program";

/// How much of a lease must be left before something is sent.
const SEND_MIN: Duration = Duration::from_secs(5);

/// An effect that a program is about to perform; see [`Refrain::effect`].
#[derive(Clone)]
#[must_use = "nothing is done before `perform` is called"]
pub struct EffectRequestBuilder<'r> {
    refrain: &'r Refrain,
    key: Key,
    version: u32,
    name: String,
    in_doubt: InDoubtPolicy,
    provider_ttl: Option<Duration>,
    wait: Duration,
}

/// The key under which an effect is performed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct EffectKey {
    /// The fact.
    pub key: Key,
    /// The version of the rule that says what is sent.
    pub version: u32,
    /// For the provider: the same for every send of this version.
    pub idempotency_key: IdempotencyKey,
}

/// An effect that happened, now or before.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Performed<R> {
    /// What the closure returned: that of this call, or of the one that performed the effect. None if an operator confirmed it, or the
    /// receipt was too large to be kept.
    pub receipt: Option<R>,
    /// Whether this call performed it.
    pub is_new: bool,
}

impl Refrain {
    /// An effect: something outside the database that happens at most once for a key, whichever process asks and however often. The
    /// key names the business fact.
    ///
    /// ```
    /// use refrain::{NotPerformed, Refrain, key};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let address = format!("sqlite:{}", directory.path().join("refrain.db").display());
    /// let refrain = Refrain::at(&address, "shop")?.open().await?;
    /// let key = key!("email", "welcome", 42)?;
    /// let welcome = || refrain.effect(key.clone());
    ///
    /// let first = welcome().perform(async |_| Ok::<_, NotPerformed>("message 7".to_owned())).await?;
    /// let second = welcome().perform(async |_| Ok::<_, NotPerformed>("never sent".to_owned())).await?;
    ///
    /// assert!(first.is_new && !second.is_new);
    /// assert_eq!(second.receipt.as_deref(), Some("message 7"));
    /// # refrain.close().await;
    /// # Ok(())
    /// # }
    /// ```
    pub fn effect(&self, key: Key) -> EffectRequestBuilder<'_> {
        EffectRequestBuilder {
            refrain: self,
            key,
            version: 1,
            name: NAME.to_owned(),
            in_doubt: InDoubtPolicy::Hold,
            provider_ttl: None,
            wait: Duration::from_mins(1),
        }
    }
}

impl EffectRequestBuilder<'_> {
    /// The version of the rule that says what is sent: a higher one is sent once more for the same fact.
    pub fn version(mut self, version: u32) -> Self {
        self.version = version;
        self
    }

    /// What lists call it, such as `mail`: letters, digits and `-`.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// What happens if an earlier send is in doubt; by default the operator decides. `Probe` needs a way to ask the provider, which
    /// there is not yet: the effect is held.
    pub fn in_doubt(mut self, policy: InDoubtPolicy) -> Self {
        self.in_doubt = policy;
        self
    }

    /// How long the provider remembers an idempotency key, for the policy `provider-key`.
    pub fn provider_ttl(mut self, ttl: Duration) -> Self {
        self.provider_ttl = Some(ttl);
        self
    }

    /// How long to wait for another caller that is sending it.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }

    /// Performs the effect, unless it happened before. The closure is called at most once. If its future is dropped or panics, the
    /// effect is in doubt.
    pub async fn perform<R, F>(self, action: impl FnOnce(EffectKey) -> F) -> Result<Performed<R>, EffectError>
    where
        R: Serialize + DeserializeOwned,
        F: Future<Output = Result<R, NotPerformed>>,
    {
        let engine = &self.refrain.engine;
        let store = &engine.store;
        if store.reality == Reality::Simulated {
            return Err(StoreError::SimulatedSend.into());
        }
        let request = self.request()?;
        let (worker, reserved) = self.reserved(&request).await?;
        let reservation = match reserved {
            Reserved::Now(reservation) => reservation,
            Reserved::Not(why) => return self.without_sending(why),
        };
        failpoint::reach("perform.reserved");
        let mut unanswered = Unanswered::new(self.refrain, Arc::clone(&worker), reservation);
        if !worker.lease.is_good_for(SEND_MIN).await {
            let late = NotPerformed::not_sent("the lease of its worker was about to expire");
            return unanswered.end(&self, Err(late)).await;
        }
        let idempotency_key = IdempotencyKey::of(&engine.project, &self.key, self.version);
        let key = EffectKey { key: self.key.clone(), version: self.version, idempotency_key };
        // After the lease another process may take over, so nothing may be sent any more: the closure's future is dropped.
        let performed = tokio::select! {
            biased;
            performed = action(key) => performed,
            () = worker.lease.expired() => Err(NotPerformed::unknown("the lease of its worker expired")),
        };
        failpoint::reach("perform.ended");
        unanswered.end(&self, performed).await
    }

    /// Asks for the effect, under the worker of this process. If it is not known whether it was reserved, this worker is forgotten: its
    /// row expires, and the effect is in doubt then.
    async fn reserved(&self, request: &EffectRequest) -> Result<(Arc<Heartbeat>, Reserved), EffectError> {
        let (engine, sending) = (&self.refrain.engine, &self.refrain.sending);
        let mut is_again = false;
        loop {
            let worker = sending.registered(&engine.store, engine.settings.lease).await?;
            let mut asking = Asking { sending, worker: Some(Arc::clone(&worker)) };
            let holder = Holder::Known(worker.worker);
            let admitted = admitted(engine, request, holder, self.wait, &self.refrain.stop).await;
            match admitted {
                Ok((reserved, _)) => {
                    asking.worker = None;
                    return Ok((worker, reserved));
                }
                // The worker was lost while this waited for another sender.
                Err(StoreError::Database(DatabaseError::Expired)) if !is_again => is_again = true,
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn request(&self) -> Result<EffectRequest, Error> {
        let version = i32::try_from(self.version).map_err(|_| Error::Version(self.version))?;
        let (key, name) =
            (self.key.to_string(), JobName::parse(&self.name).map_err(Error::from)?.to_string());
        let effect = NewEffect { key, version, name, job: None, run: None, payload: None };
        Ok(EffectRequest { effect, policy: self.in_doubt, provider_ttl: self.provider_ttl, asked: NAME })
    }

    /// The result for a caller that does not send.
    fn without_sending<R: DeserializeOwned>(&self, why: NotReserved) -> Result<Performed<R>, EffectError> {
        let key = self.key.to_string();
        match why {
            NotReserved::Settled(row) => match row.state()? {
                EffectState::Confirmed => {
                    let receipt = row.receipt.as_deref().and_then(|text| serde_json::from_str(text).ok());
                    Ok(Performed { receipt, is_new: false })
                }
                state => Err(EffectError::Withheld { key, state }),
            },
            NotReserved::InDoubt(row, hold) => {
                let message = row.message.unwrap_or_default();
                let message =
                    if hold == Hold::Policy { message } else { format!("{message}; {}", hold.meaning()) };
                Err(EffectError::InDoubt {
                    key,
                    version: u32::try_from(row.version).unwrap_or_default(),
                    message,
                })
            }
            NotReserved::NeedsApproval(_) => Err(EffectError::Withheld { key, state: EffectState::Waiting }),
            NotReserved::Held(row) => Err(EffectError::Busy { key, since: instant(row.changed_at)? }),
        }
    }
}

/// A request whose result is not known: if it fails or is dropped, the effect may be reserved all the same.
struct Asking<'s> {
    sending: &'s SendingWorker,
    worker: Option<Arc<Heartbeat>>,
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        if let Some(worker) = &self.worker {
            self.sending.forget(worker);
        }
    }
}

/// A reserved effect whose answer is not recorded yet. If it is dropped, what is known is recorded: without an answer, a doubt.
struct Unanswered {
    store: Store,
    sending: SendingWorker,
    /// The worker that has reserved it.
    worker: Arc<Heartbeat>,
    reservation: EffectReservation,
    /// How the send ended, as far as it is known.
    end: SendEnd,
    is_recorded: bool,
}

impl Unanswered {
    fn new(refrain: &Refrain, worker: Arc<Heartbeat>, reservation: EffectReservation) -> Unanswered {
        let (store, sending) = (refrain.store().clone(), refrain.sending.clone());
        let message = Some("its caller was dropped before there was an answer".to_owned());
        let end = SendEnd::new(SendAnswer::Unknown, None, message);
        Unanswered { store, sending, worker, reservation, end, is_recorded: false }
    }

    /// Records the answer, and returns it to the caller.
    async fn end<R: Serialize>(
        &mut self,
        request: &EffectRequestBuilder<'_>,
        performed: Result<R, NotPerformed>,
    ) -> Result<Performed<R>, EffectError> {
        let key = request.key.to_string();
        self.end = match &performed {
            Ok(receipt) => {
                let receipt = serde_json::to_string(receipt).ok();
                let receipt = receipt.filter(|text| text.len() <= RECEIPT_BYTES_MAX);
                SendEnd::new(SendAnswer::Confirmed, receipt, None)
            }
            Err(NotPerformed { answer, message }) => SendEnd::new(*answer, None, Some(message.clone())),
        };
        let state = recorded(&self.store, &self.reservation, &self.end, &self.worker.lease).await?;
        self.is_recorded = true;
        match performed {
            Ok(receipt) => Ok(Performed { receipt: Some(receipt), is_new: true }),
            Err(NotPerformed { message, .. }) => Err(match state {
                EffectState::Pending => EffectError::NotSent { key, message },
                EffectState::Refused => EffectError::Refused { key, message },
                _ => EffectError::InDoubt { key, version: request.version, message },
            }),
        }
    }
}

impl Drop for Unanswered {
    fn drop(&mut self) {
        if self.is_recorded {
            return;
        }
        // Whatever becomes of the record, this worker must not keep the effect reserved: once its last send has ended, its row expires.
        self.sending.forget(&self.worker);
        let (store, worker) = (self.store.clone(), Arc::clone(&self.worker));
        let (reservation, end) = (self.reservation.clone(), self.end.clone());
        // Without a runtime the doubt is recorded by the process that takes over.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                if let Err(error) = recorded(&store, &reservation, &end, &worker.lease).await {
                    tracing::warn!(key = reservation.key, %error, "the answer to an effect could not be recorded");
                }
            });
        }
    }
}
