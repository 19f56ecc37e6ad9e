//! Units of one kind in one run: how each gets its key, what counts as a change, and how long the key is remembered.

use std::sync::atomic::{AtomicBool, Ordering};

use refrain_core::search::Search;
use refrain_core::state::OnChange;
use refrain_core::{Fingerprint, Key, KeyError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::OnceCell;

use super::apply::Batches;
use super::fence::Fence;
use super::judge::{Arrival, Judge, Trial};
use super::unit_list::List;
use super::{Result, catalog};
use crate::database::retried;
use crate::failpoint;
use crate::user_database::Backend;

/// How many failed units are read at once. Units that fail again are parked in the end, and make room for the rest.
pub(crate) const FAILED_MAX: i64 = 1_000;

pub use refrain_core::Per;

pub(crate) type KeyOf<T> = Box<dyn Fn(&T) -> std::result::Result<Key, KeyError> + Send + Sync>;
type OrderOf<T> = Box<dyn Fn(&T) -> i64 + Send + Sync>;
type ContentOf<T> = Box<dyn Fn(&T) -> Option<Fingerprint> + Send + Sync>;

/// Units of one kind in one run. It comes from [`Fence::units`].
///
/// The content of a unit is its serialization; equal content under the same key is a dedupe, and
/// [`on_change`](Self::on_change) decides about different content.
pub struct Units<DB: Backend, T> {
    pub(crate) fence: Fence<DB>,
    per: Per,
    on_change: OnChange,
    key: KeyOf<T>,
    order: Option<OrderOf<T>>,
    content: Option<ContentOf<T>>,
    fields: Option<Vec<String>>,
    waits_for_failed: bool,
    adds: bool,
    is_of_the_run: bool,
    ledger: OnceCell<i64>,
    /// The units that an earlier attempt was trying when its worker died.
    trial: OnceCell<Option<Trial>>,
    /// Whether the whole last batch was new, so that the next one is expected to be.
    pub(crate) is_all_new: AtomicBool,
}

impl<DB: Backend, T> std::fmt::Debug for Units<DB, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Units")
            .field("per", &self.per)
            .field("on_change", &self.on_change)
            .finish_non_exhaustive()
    }
}

impl<DB: Backend, T> Units<DB, T> {
    pub(crate) fn new(fence: Fence<DB>, per: Per, key: KeyOf<T>) -> Units<DB, T> {
        Units {
            fence,
            per,
            on_change: OnChange::Update,
            key,
            order: None,
            content: None,
            fields: None,
            waits_for_failed: false,
            adds: false,
            is_of_the_run: false,
            ledger: OnceCell::new(),
            trial: OnceCell::new(),
            is_all_new: AtomicBool::new(false),
        }
    }

    /// What to do with different content under a known key; by default it is applied again.
    #[must_use]
    pub fn on_change(self, on_change: OnChange) -> Self {
        Units { on_change, ..self }
    }

    /// A number that grows from older to newer content: content with a lower one than the recorded is stale, and never
    /// overwrites.
    #[must_use]
    pub fn order(self, order: impl Fn(&T) -> i64 + Send + Sync + 'static) -> Self {
        Units { order: Some(Box::new(order)), ..self }
    }

    /// Limits the content to these fields: a difference in other fields is not a change.
    #[must_use]
    pub fn fields<F: Into<String>>(self, fields: impl IntoIterator<Item = F>) -> Self {
        Units { fields: Some(fields.into_iter().map(Into::into).collect()), ..self }
    }

    /// Supplies the fingerprint of units that were fingerprinted when they were read.
    pub(crate) fn content(self, content: impl Fn(&T) -> Option<Fingerprint> + Send + Sync + 'static) -> Self {
        Units { content: Some(Box::new(content)), ..self }
    }

    /// Rows of units are only ever added: a key with a row gets no other one.
    pub(crate) fn only_added(self, adds: bool) -> Self {
        Units { adds, ..self }
    }

    /// Keys belong to the run alone: several units under one key are a mistake, whatever their order.
    pub(crate) fn keyed_by_the_run(self, is_of_the_run: bool) -> Self {
        Units { is_of_the_run, ..self }
    }

    /// A checkpoint does not pass a unit that failed, although its input is kept: for work in which a missing unit is worse than
    /// a late batch.
    #[must_use]
    pub fn waits_for_failed(self) -> Self {
        Units { waits_for_failed: true, ..self }
    }

    pub(crate) async fn ledger(&self) -> Result<i64> {
        let ledger = *self.ledger.get_or_try_init(|| self.fence.raised.ledger(self.per)).await?;
        if self.fence.raised.facts.suspicion > 0 {
            self.trial.get_or_try_init(|| self.last_trial(ledger)).await?;
        }
        Ok(ledger)
    }

    async fn last_trial(&self, ledger: i64) -> Result<Option<Trial>> {
        let raised = &self.fence.raised;
        let trial = retried(|| async {
            let mut reading = raised.destination.database.read().await?;
            let trial = catalog::UNIT_TRIAL.bind(ledger).bind(raised.id).bind(raised.facts.attempt);
            reading.fetch_optional(trial).await
        });
        Ok(trial.await?)
    }

    /// How units are tried after a worker died while it held this run.
    pub(crate) fn search(&self) -> Search {
        let facts = &self.fence.raised.facts;
        let suspects = self.trial.get().copied().flatten().map_or(0, |trial| trial.units);
        Search::new(facts.failures_max(), facts.spent, usize::try_from(suspects).unwrap_or_default())
    }

    /// Whether an earlier attempt left units that were being tried when its worker died.
    pub(crate) fn has_suspects(&self) -> bool {
        self.trial.get().is_some_and(Option::is_some)
    }

    pub(crate) fn judge(&self) -> Judge {
        let raised = &self.fence.raised;
        Judge {
            version: raised.facts.version,
            on_change: self.on_change,
            fence: raised.id,
            attempt: raised.facts.attempt,
            nonce: raised.facts.nonce,
            suspicion: raised.facts.suspicion,
            trial: self.trial.get().copied().flatten(),
            waits_for_failed: self.waits_for_failed,
            adds: self.adds,
            is_of_the_run: self.is_of_the_run,
            redo: raised.facts.redo.map(|redo| {
                let is_weak = failpoint::is_weakened("redo.each-attempt");
                if is_weak { raised.facts.attempt } else { redo }
            }),
        }
    }

    pub(crate) fn expects_new(&self) -> bool {
        self.is_all_new.load(Ordering::Relaxed)
    }

    pub(crate) fn expect_new(&self, is_all_new: bool) {
        self.is_all_new.store(is_all_new, Ordering::Relaxed);
    }
}

impl<DB: Backend, T: Serialize> Units<DB, T> {
    /// Applies units in batches: each is one transaction with the units in it that are to be applied.
    pub async fn apply<'u>(&'u self, units: &'u [T]) -> Result<Batches<'u, DB, T>> {
        self.apply_from(None, units).await
    }

    /// Applies units that were read from a position of a checkpoint.
    pub(crate) async fn apply_from<'u>(
        &'u self,
        place: Option<String>,
        units: &'u [T],
    ) -> Result<Batches<'u, DB, T>> {
        let ledger = self.ledger().await?;
        Ok(Batches::new(self, ledger, units, self.list(units)?, place))
    }

    pub(super) fn list(&self, units: &[T]) -> Result<List> {
        let mut arrivals = Vec::with_capacity(units.len());
        for unit in units {
            arrivals.push(self.arrival(unit)?);
        }
        List::of(&self.judge(), arrivals)
    }

    fn arrival(&self, unit: &T) -> Result<Arrival> {
        let fingerprint = match self.content.as_ref().and_then(|content| content(unit)) {
            Some(fingerprint) => fingerprint,
            None => self.fingerprint(&serde_json::to_string(unit)?)?,
        };
        Ok(Arrival {
            key: (self.key)(unit)?,
            fingerprint: Some(fingerprint.to_number()),
            ordinal: self.order.as_ref().map(|order| order(unit)),
        })
    }

    fn fingerprint(&self, text: &str) -> Result<Fingerprint> {
        Ok(match &self.fields {
            None => Fingerprint::of_json(text)?,
            Some(fields) => {
                let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
                Fingerprint::of_fields(text, &fields)?
            }
        })
    }
}

impl<DB: Backend, T: DeserializeOwned> Units<DB, T> {
    /// Units that failed before, from their kept input, at most a thousand: they are applied first, because a checkpoint may have
    /// passed them and the source need not show them again. Parked ones are not among them.
    pub async fn failed(&self) -> Result<Vec<T>> {
        Ok(self.failed_after("", FAILED_MAX).await?.0)
    }

    /// Some of those units, by key, after this one, and the key of the last; `None` if there are no more.
    pub(crate) async fn failed_after(&self, key: &str, most: i64) -> Result<(Vec<T>, Option<String>)> {
        let ledger = self.ledger().await?;
        let rows: Vec<(String, String)> = retried(|| async {
            let mut transaction = self.fence.raised.destination.database.read().await?;
            transaction.fetch_all(catalog::UNIT_FAILED.bind(ledger).bind(most).bind(key)).await
        })
        .await?;
        let last = rows.last().map(|(key, _)| key.clone());
        let units = rows.iter().filter_map(|(key, input)| {
            let unit: T = match serde_json::from_str(input) {
                Ok(unit) => unit,
                Err(error) => {
                    tracing::warn!(job = %self.fence.raised.facts.job, key, %error, "a failed unit cannot be read back");
                    return None;
                }
            };
            // A job may have units of several kinds; those of another kind have other keys.
            let is_own = (self.key)(&unit).is_ok_and(|own| own.as_str() == key);
            if is_own {
                self.fence.raised.tally.kept([key.as_str()]);
            }
            is_own.then_some(unit)
        });
        Ok((units.collect(), last))
    }
}
