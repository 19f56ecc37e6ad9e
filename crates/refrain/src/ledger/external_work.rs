//! Units whose work happens outside of any transaction, for example in a program: judged, done, and recorded.
//!
//! Nothing is locked while the work is done. A worker that dies between the work and its record leaves no trace of it, and the
//! next attempt does the work again; that is why the program receives a key by which it can recognize the repetition. Work
//! that must not be repeated that easily is reserved first (`external_work/reservation.rs`).

mod reservation;

use std::collections::HashMap;
use std::time::Duration;

use refrain_core::state::UnitDecision;
use serde::Serialize;

use super::apply::BATCH;
use super::entry;
use super::judge::{Arrival, Entry, Judgement, UnitVerdict, covered, later};
use super::unit_list::{List, key_of};
use super::units::Units;
use super::{LedgerError, Result};
use crate::database::{DatabaseError, Repeats, pause, place, retried, still_unknown};
use crate::failpoint;
use crate::lease::Lease;
use crate::user_database::Backend;

/// Units whose work is due, by their indices in a list.
pub(crate) struct ExternalWork<'u, DB: Backend, T> {
    units: &'u Units<DB, T>,
    ledger: i64,
    items: &'u [T],
    arrivals: Vec<Arrival>,
    due: Vec<usize>,
    /// When the content that some of them replace was applied.
    over: HashMap<usize, i64>,
    about: Circumstances,
}

/// Why units are done, and from which position.
#[derive(Debug, Clone)]
pub(super) struct Circumstances {
    /// For units in doubt that are sent again: the longest time since they were first sent.
    pub(super) again: Option<Duration>,
    /// The position that the source was read from, if a checkpoint has one.
    pub(super) place: Option<String>,
}

impl<DB: Backend, T: Serialize> Units<DB, T> {
    /// Decides which of these units are due, by their present entries. `place` is the position that the source was read from,
    /// if a checkpoint has one.
    pub(crate) async fn outside_from<'u>(
        &'u self,
        place: Option<String>,
        units: &'u [T],
    ) -> Result<ExternalWork<'u, DB, T>> {
        let about = Circumstances { again: None, place };
        ExternalWork::of(self, self.ledger().await?, units, self.list(units)?, about).await
    }
}

impl<'u, DB: Backend, T: Serialize> ExternalWork<'u, DB, T> {
    pub(super) async fn of(
        units: &'u Units<DB, T>,
        ledger: i64,
        items: &'u [T],
        list: List,
        about: Circumstances,
    ) -> Result<ExternalWork<'u, DB, T>> {
        list.tally(&units.fence.raised.tally);
        let (arrivals, due, over) = (list.arrivals, Vec::new(), HashMap::new());
        let mut outside = ExternalWork { units, ledger, items, arrivals, due, over, about };
        for members in list.counting.chunks(BATCH) {
            outside.judge(members).await?;
        }
        Ok(outside)
    }

    /// Whether these are units in doubt that are sent again.
    pub(crate) fn is_again(&self) -> bool {
        self.about.again.is_some()
    }

    /// The units that are due, in the order of their keys.
    pub(crate) fn due(&self) -> impl Iterator<Item = (usize, &'u T)> {
        self.due.iter().filter_map(|member| self.items.get(*member).map(|item| (*member, item)))
    }

    /// When the content that this unit replaces was applied; `None` if nothing was.
    pub(crate) fn over(&self, member: usize) -> Option<i64> {
        self.over.get(&member).copied()
    }

    async fn judge(&mut self, members: &[usize]) -> Result<()> {
        let (raised, judge) = (&self.units.fence.raised, self.units.judge());
        let arrivals: Vec<&Arrival> =
            members.iter().filter_map(|member| self.arrivals.get(*member)).collect();
        let (entries, judgement) = self.settled(&arrivals).await?;
        let later = later(&arrivals, &entries, &judgement.verdicts);
        if !later.is_empty() {
            entry::raise_order(raised, self.ledger, &later).await?;
        }
        let over: HashMap<&str, i64> =
            entries.iter().filter_map(|entry| Some((entry.key.as_str(), entry.over()?))).collect();
        let over =
            members.iter().filter_map(|member| Some((*member, *over.get(key_of(&self.arrivals, *member))?)));
        let over: Vec<(usize, i64)> = over.collect();
        self.over.extend(over);
        for suspect in judgement.suspects.iter().filter_map(|index| members.get(*index)) {
            raised.tally.suspected_by_record(key_of(&self.arrivals, *suspect));
        }
        for ((member, arrival), verdict) in members.iter().zip(&arrivals).zip(&judgement.verdicts) {
            let has_failed = || {
                let mut entries = entries.iter().filter(|entry| entry.key == arrival.key.as_str());
                entries.any(|entry| judge.has_failed(entry, arrival))
            };
            match verdict {
                UnitVerdict::Fresh | UnitVerdict::Changed if has_failed() => {
                    raised.tally.failed(arrival.key.as_str(), "it has already failed in this attempt");
                }
                UnitVerdict::Fresh | UnitVerdict::Changed => self.due.push(*member),
                UnitVerdict::Landed => raised.tally.applied([arrival.key.as_str()]),
                UnitVerdict::Parked if self.about.again.is_some() && self.is_doubtful(arrival, &entries) => {
                    self.due.push(*member);
                }
                UnitVerdict::Parked => raised.tally.skipped(arrival.key.as_str()),
                UnitVerdict::Deduplicated(reason) => {
                    raised.tally.deduplicated(*reason, [arrival.key.as_str()]);
                }
            }
        }
        Ok(())
    }

    /// Reads entries and judges units; removes failed tries of other content from units that are done.
    async fn settled(&self, arrivals: &[&Arrival]) -> Result<(Vec<Entry>, Judgement)> {
        let (raised, judge) = (&self.units.fence.raised, self.units.judge());
        for _ in 0..=Repeats::MAX {
            let entries = retried(|| async {
                let mut reading = raised.destination.database.read().await?;
                let entries = entry::find(&mut reading, self.ledger, arrivals).await?;
                reading.rollback().await?;
                Ok::<_, DatabaseError>(entries)
            })
            .await?;
            let judgement = judge.judge(arrivals, &entries, false)?;
            let covered = covered(arrivals, &entries, &judgement.verdicts);
            if entry::restore(raised, self.ledger, &judge, &covered).await? {
                return Ok((entries, judgement));
            }
        }
        Err(LedgerError::Contended)
    }

    /// Records that the work of these units is done, under the fence, with retries while the lease is good. An attempt that was
    /// taken over may still record the outcome of its own reservations.
    pub(crate) async fn done(&self, members: &[usize]) -> Result<()> {
        let mut arrivals: Vec<&Arrival> =
            members.iter().filter_map(|member| self.arrivals.get(*member)).collect();
        arrivals.sort_by(|one, other| one.key.cmp(&other.key));
        for _ in 0..=Repeats::MAX {
            let recorded = persistently(&self.units.fence.raised.lease, || async {
                match self.recorded(&arrivals).await {
                    Err(LedgerError::Database(error)) => Err(error),
                    settled => Ok(settled),
                }
            });
            match recorded.await? {
                Ok(true) => {
                    let keys = arrivals.iter().map(|arrival| arrival.key.as_str());
                    self.units.fence.raised.tally.applied(keys);
                    return Ok(());
                }
                Ok(false) => {}
                Err(fenced @ (LedgerError::Fenced { .. } | LedgerError::Expired)) => {
                    self.answered_late(&arrivals).await?;
                    return Err(fenced);
                }
                Err(error) => return Err(error),
            }
        }
        Err(LedgerError::Contended)
    }

    /// Returns false if another run changed one of them at the same time.
    async fn recorded(&self, arrivals: &[&Arrival]) -> Result<bool> {
        if failpoint::is_lost("outside-done.away") {
            return Err(DatabaseError::Lost("a test lost it".to_owned()).into());
        }
        let judge = self.units.judge();
        let mut transaction = self.units.fence.raised.write().await?;
        let entries = entry::find(&mut transaction, self.ledger, arrivals).await?;
        // An entry of this very attempt may be that of a lost answer.
        let verdicts = judge.judge(arrivals, &entries, true)?.verdicts;
        if !entry::record(&mut transaction, self.ledger, &judge, arrivals, &entries, &verdicts).await? {
            transaction.rollback().await?;
            return Ok(false);
        }
        transaction.commit(place!("unit-apply")).await?;
        Ok(true)
    }

    /// Records that the work of this unit failed, with its input. If the unit is in doubt from an earlier time, it stays in
    /// doubt: that it was not done now says nothing about then.
    pub(crate) async fn failed(&self, member: usize, message: &str) -> Result<()> {
        if self.about.again.is_some() {
            return self.doubted(member, message, false).await;
        }
        let (Some(arrival), Some(item)) = (self.arrivals.get(member), self.items.get(member)) else {
            return Ok(());
        };
        let (raised, judge, input) =
            (&self.units.fence.raised, self.units.judge(), serde_json::to_string(item)?);
        for _ in 0..=Repeats::MAX {
            let mut reading = raised.destination.database.read().await?;
            let entry = entry::find(&mut reading, self.ledger, &[arrival]).await?.pop();
            reading.rollback().await?;
            if entry.as_ref().is_some_and(|entry| entry.sent && !judge.has_reserved(entry, arrival)) {
                // The unit of another run is in doubt under this key, and that record must stay.
                raised.tally.failed(arrival.key.as_str(), message);
                return Ok(());
            }
            if let UnitDecision::Deduplicated(reason) = judge.decide(arrival, entry.as_ref()) {
                // Another run has done it meanwhile.
                raised.tally.deduplicated(reason.into(), [arrival.key.as_str()]);
                return Ok(());
            }
            let judged = entry.as_ref();
            let (input, place) = (input.as_str(), self.about.place.as_deref());
            let failure = entry::UnitFailure { arrival, before: None, judged, input, message, place };
            if let entry::FailureOutcome::Recorded =
                entry::fail(raised, self.ledger, &judge, &failure).await?
            {
                tracing::warn!(job = %raised.facts.job, key = arrival.key.as_str(), error = message, "a unit failed");
                raised.tally.failed(arrival.key.as_str(), message);
                return Ok(());
            }
        }
        Err(LedgerError::Contended)
    }
}

/// Retries a step while the lease is good and the database cannot be reached: the known outcome of a call must not become a
/// doubt because a database was away for some seconds.
async fn persistently<T, F>(
    lease: &Lease,
    mut step: impl FnMut() -> F,
) -> std::result::Result<T, DatabaseError>
where
    F: Future<Output = std::result::Result<T, DatabaseError>>,
{
    let (mut unknown, mut again) = (None, 0);
    loop {
        match retried(&mut step).await {
            Err(error) if error.is_transient() && lease.is_good() => {
                tracing::warn!(%error, "the outcome of units cannot be recorded yet; retrying");
                if let DatabaseError::Unknown(what) = error {
                    unknown = Some(what);
                }
                again += 1;
                pause(again).await;
            }
            settled => return settled.map_err(|error| still_unknown(error, unknown)),
        }
    }
}
