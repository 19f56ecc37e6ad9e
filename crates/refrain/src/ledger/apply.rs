//! Applies units: one transaction per batch, for the ledger's rows and the caller's together.
//!
//! A batch is judged by its entries, read without locks; units to apply are then written under the fence, in the order of
//! keys, and every entry must still be as it was read, or the batch begins again. The caller's rows follow in the same
//! transaction. A batch that fails is bisected until the bad unit is alone; that unit is recorded as failed, with its
//! input, and the others go on. A lost answer to a commit is resolved by reading the ledger.
//!
//! A unit may also kill the process. After a worker died while it held this run, the units of a batch are tried in parts,
//! each part parked before it is tried (`search.rs` of `refrain-core` decides how large they are). If the process dies
//! again, the units that were being applied are known, and the next attempt searches among them. A unit that was alone
//! when the process died stays parked.

mod trial;

use std::collections::{HashSet, VecDeque};

use serde::Serialize;

pub(super) use self::trial::PriorEntries;
use self::trial::TrialPart;
use super::batch::{Batch, OpenBatch, OpenOutcome};
use super::circuit_breaker::{CircuitBreaker, all_fail, halves};
use super::entry;
use super::judge::{Arrival, Entry, Judgement, UnitVerdict, covered, later};
use super::unit_list::{List, key_of};
use super::units::Units;
use super::{LedgerError, Result};
use crate::database::{DatabaseError, Repeats, Transaction, pause, place};
use crate::failpoint;
use crate::store::counts::Reason;
use crate::user_database::Backend;

/// The most units in one transaction.
pub(crate) const BATCH: usize = 1_000;

/// The batches of a list of units: take the next one, write its rows, report the result.
///
/// A dropped batch is rolled back, and its units stay unsettled: no checkpoint passes them, and the run is not done.
#[must_use = "nothing is applied until `next` is called"]
pub struct Batches<'u, DB: Backend, T> {
    pub(super) units: &'u Units<DB, T>,
    pub(super) ledger: i64,
    pub(super) items: &'u [T],
    pub(super) arrivals: Vec<Arrival>,
    /// The position that the source was read from, if a checkpoint has one.
    place: Option<String>,
    todo: VecDeque<Chunk>,
    /// Units that failed, each alone, since the last batch that was applied. The next batch that is applied shows that the
    /// fault was theirs.
    failing: Vec<(Chunk, String)>,
    breaker: CircuitBreaker,
}

impl<DB: Backend, T> std::fmt::Debug for Batches<'_, DB, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Batches").field("units", &self.arrivals.len()).finish_non_exhaustive()
    }
}

/// Units that are applied together, by their indices in the list.
#[derive(Debug, Clone)]
pub(super) struct Chunk {
    pub(super) members: Vec<usize>,
    again: u32,
    /// Whether the answer to its commit was lost.
    unknown: bool,
    /// Which part it is, if units are tried in parts after a worker died.
    part: Option<TrialPart>,
    /// The entries of its units before they were parked in advance, if they were.
    pub(super) before: Option<PriorEntries>,
    /// The entry that its only unit was judged by.
    judged: Option<Entry>,
}

impl Chunk {
    fn of(members: &[usize], unknown: bool) -> Chunk {
        Chunk { members: members.to_vec(), again: 0, unknown, part: None, before: None, judged: None }
    }

    /// A chunk of some of its members, otherwise equal.
    fn some(&self, members: &[usize]) -> Chunk {
        Chunk { part: self.part, before: self.before.clone(), ..Chunk::of(members, self.unknown) }
    }
}

impl<'u, DB: Backend, T: Serialize> Batches<'u, DB, T> {
    pub(super) fn new(
        units: &'u Units<DB, T>,
        ledger: i64,
        items: &'u [T],
        list: List,
        place: Option<String>,
    ) -> Self {
        list.tally(&units.fence.raised.tally);
        let todo = list.counting.chunks(BATCH).map(|members| Chunk::of(members, false));
        let todo = todo.collect();
        Batches {
            units,
            ledger,
            items,
            place,
            todo,
            arrivals: list.arrivals,
            failing: Vec::new(),
            breaker: CircuitBreaker::default(),
        }
    }

    /// The next batch with units to apply, in a transaction that holds the fence and has written the ledger. `None`: all units
    /// are settled.
    pub async fn next(&mut self) -> Result<Option<Batch<'_, 'u, DB, T>>> {
        let opened = loop {
            let Some(chunk) = self.todo.pop_front() else {
                self.record_failing().await?;
                if self.todo.is_empty() {
                    return Ok(None);
                }
                continue;
            };
            if let Some(opened) = self.open(chunk).await? {
                break opened;
            }
        };
        Ok(Some(Batch::new(self, opened)))
    }

    /// Opens a chunk, with as many tries as it takes; `None` if there is nothing to apply in it.
    async fn open(&mut self, mut chunk: Chunk) -> Result<Option<OpenBatch>> {
        let is_suspicious = self.units.fence.raised.is_careful() || self.units.has_suspects();
        if is_suspicious && chunk.part.is_none() {
            for part in self.parts(chunk).await?.into_iter().rev() {
                self.todo.push_front(part);
            }
            return Ok(None);
        }
        let is_careful = match chunk.part {
            Some(TrialPart::OfSuspects) => true,
            Some(TrialPart::OfOthers) => chunk.before.is_some() || self.units.fence.raised.is_careful(),
            None => false,
        };
        for again in chunk.again..=Repeats::MAX {
            let opened = if is_careful {
                self.blame(&mut chunk).await
            } else if self.units.expects_new() && !chunk.unknown {
                self.insert(&chunk).await
            } else {
                self.look(&mut chunk).await
            };
            match opened {
                Ok(OpenOutcome::Open(batch)) => return Ok(Some(*batch)),
                Ok(OpenOutcome::Nothing) => return Ok(None),
                Ok(OpenOutcome::Raced) => self.units.expect_new(false),
                Err(LedgerError::Database(error)) if error.is_worth_a_retry() && again < Repeats::MAX => {
                    tracing::debug!(%error, "beginning a batch again");
                    pause(again).await;
                }
                Err(error) => return Err(error),
            }
        }
        Err(LedgerError::Contended)
    }

    /// Writes a chunk that is probably new without reading first. If it is not new, that is a race.
    async fn insert(&self, chunk: &Chunk) -> Result<OpenOutcome> {
        let mut transaction = self.units.fence.raised.write().await?;
        let arrivals: Vec<&Arrival> = self.arrivals_of(chunk);
        let inserted = entry::insert(&mut transaction, self.ledger, &self.units.judge(), &arrivals).await?;
        if inserted < arrivals.len() as u64 {
            transaction.rollback().await?;
            return Ok(OpenOutcome::Raced);
        }
        let transaction = self.hand_over(transaction).await?;
        let verdicts = vec![UnitVerdict::Fresh; arrivals.len()];
        Ok(OpenOutcome::Open(Box::new(OpenBatch {
            transaction,
            chunk: chunk.clone(),
            verdicts,
            suspects: Vec::new(),
        })))
    }

    /// Judges a chunk by its entries, then writes it under the condition that they have not changed.
    async fn look(&self, chunk: &mut Chunk) -> Result<OpenOutcome> {
        let judge = self.units.judge();
        let mut reading = self.units.fence.raised.destination.database.read().await?;
        let mut arrivals: Vec<&Arrival> = self.arrivals_of(chunk);
        let seen = arrivals.len();
        let entries = if chunk.unknown || judge.redo.is_some() {
            // After a lost answer, the attempt's own entries are not dedupes; and for a redo, no unit is certainly done.
            entry::find(&mut reading, self.ledger, &arrivals).await?
        } else {
            let mut doubtful = entry::doubtful(&mut reading, self.ledger, &judge, &arrivals).await?;
            self.leave(chunk, &doubtful);
            arrivals = self.arrivals_of(chunk);
            doubtful.retain(|entry| entry.present().is_some());
            doubtful
        };
        reading.rollback().await?;
        let judgement = judge.judge(&arrivals, &entries, chunk.unknown)?;
        let is_all_new = judgement.verdicts.iter().all(|verdict| *verdict == UnitVerdict::Fresh);
        self.units.expect_new(is_all_new && entries.is_empty() && arrivals.len() == seen);
        let covered = covered(&arrivals, &entries, &judgement.verdicts);
        if !entry::restore(&self.units.fence.raised, self.ledger, &judge, &covered).await? {
            return Ok(OpenOutcome::Raced);
        }
        let later = later(&arrivals, &entries, &judgement.verdicts);
        if !later.is_empty() {
            entry::raise_order(&self.units.fence.raised, self.ledger, &later).await?;
        }
        self.keep_first(&arrivals, &entries, &judgement.verdicts).await?;
        if !judgement.verdicts.iter().any(|verdict| verdict.is_applied()) {
            self.suspect(chunk, &judgement.suspects);
            self.tally(chunk, &judgement.verdicts);
            return Ok(OpenOutcome::Nothing);
        }
        let mut transaction = self.units.fence.raised.write().await?;
        if !entry::record(&mut transaction, self.ledger, &judge, &arrivals, &entries, &judgement.verdicts)
            .await?
        {
            transaction.rollback().await?;
            return Ok(OpenOutcome::Raced);
        }
        let transaction = self.hand_over(transaction).await?;
        let mut chunk = chunk.clone();
        if let [_] = chunk.members.as_slice() {
            chunk.judged = entries.into_iter().next();
        }
        let Judgement { verdicts, suspects } = judgement;
        Ok(OpenOutcome::Open(Box::new(OpenBatch { transaction, chunk, verdicts, suspects })))
    }

    /// Prepares a transaction in which the ledger is written for the caller's statements.
    async fn hand_over(&self, mut transaction: Transaction) -> Result<Transaction> {
        if failpoint::is_weakened("unit.apart") {
            transaction.commit(place!("unit-weakened")).await?;
            transaction = self.units.fence.raised.write().await?;
        }
        transaction.hand_over().await?;
        Ok(transaction)
    }

    /// Settles failures of later content if the first content is kept.
    async fn keep_first(
        &self,
        arrivals: &[&Arrival],
        entries: &[Entry],
        verdicts: &[UnitVerdict],
    ) -> Result<()> {
        let kept = self.units.judge().kept_first(arrivals, entries, verdicts);
        if kept.is_empty() {
            return Ok(());
        }
        entry::keep_first(&self.units.fence.raised, self.ledger, &kept).await
    }

    fn arrivals_of(&self, chunk: &Chunk) -> Vec<&Arrival> {
        chunk.members.iter().filter_map(|member| self.arrivals.get(*member)).collect()
    }

    /// Removes units that are certainly done from the chunk, and counts them.
    fn leave(&self, chunk: &mut Chunk, doubtful: &[Entry]) {
        if doubtful.len() == chunk.members.len() {
            return;
        }
        let keys: HashSet<&str> = doubtful.iter().map(|entry| entry.key.as_str()).collect();
        let members = std::mem::take(&mut chunk.members).into_iter();
        let (staying, done): (Vec<usize>, Vec<usize>) =
            members.partition(|member| keys.contains(key_of(&self.arrivals, *member)));
        chunk.members = staying;
        let done = done.iter().map(|member| key_of(&self.arrivals, *member));
        self.units.fence.raised.tally.deduplicated(Reason::AlreadyApplied, done);
    }

    fn suspect(&self, chunk: &Chunk, suspects: &[usize]) {
        for index in suspects {
            if let Some(member) = chunk.members.get(*index) {
                self.units.fence.raised.tally.suspected_by_record(key_of(&self.arrivals, *member));
            }
        }
    }

    /// Counts units that are not applied, or were applied already.
    fn tally(&self, chunk: &Chunk, verdicts: &[UnitVerdict]) {
        let tally = &self.units.fence.raised.tally;
        for (member, verdict) in chunk.members.iter().zip(verdicts) {
            match verdict {
                UnitVerdict::Landed => tally.applied([key_of(&self.arrivals, *member)]),
                UnitVerdict::Parked => tally.skipped(key_of(&self.arrivals, *member)),
                UnitVerdict::Deduplicated(reason) => {
                    tally.deduplicated(*reason, [key_of(&self.arrivals, *member)]);
                }
                UnitVerdict::Fresh | UnitVerdict::Changed => {}
            }
        }
    }

    /// Records that a batch was committed.
    pub(super) async fn committed(
        &mut self,
        chunk: &Chunk,
        verdicts: &[UnitVerdict],
        suspects: &[usize],
    ) -> Result<()> {
        self.suspect(chunk, suspects);
        let applied = chunk.members.iter().zip(verdicts).filter(|(_, verdict)| verdict.is_applied());
        let applied = applied.map(|(member, _)| key_of(&self.arrivals, *member));
        self.units.fence.raised.tally.applied(applied);
        self.tally(chunk, verdicts);
        self.record_failing().await
    }

    /// Begins a batch again after a lock, a conflict or a lost connection, which no unit is to blame for.
    pub(super) async fn again(&mut self, mut chunk: Chunk, error: DatabaseError) -> Result<()> {
        chunk.again += 1;
        chunk.unknown |= matches!(error, DatabaseError::Unknown(_));
        if chunk.again > Repeats::MAX {
            return Err(error.into());
        }
        pause(chunk.again).await;
        self.todo.push_front(chunk);
        Ok(())
    }

    /// Replaces a chunk that failed by its two halves.
    pub(super) fn halve(&mut self, chunk: &Chunk) {
        for half in halves(&chunk.members).into_iter().rev() {
            self.todo.push_front(chunk.some(half));
        }
    }

    /// Records that a unit failed while it was alone.
    pub(super) fn failed(&mut self, chunk: Chunk, message: String) -> Result<()> {
        self.failing.push((chunk, message));
        self.breaker.count_failure();
        if !self.breaker.is_open() || self.todo.is_empty() {
            return Ok(());
        }
        self.breaker.reset();
        let failing = std::mem::take(&mut self.failing);
        let message = failing.into_iter().next_back().map(|(_, message)| message).unwrap_or_default();
        Err(all_fail(message))
    }

    /// Writes the failures, with the units' input, to the ledger.
    async fn record_failing(&mut self) -> Result<()> {
        self.breaker.reset();
        for (chunk, message) in std::mem::take(&mut self.failing) {
            let Some(member) = chunk.members.first() else { continue };
            let (Some(arrival), Some(item)) = (self.arrivals.get(*member), self.items.get(*member)) else {
                continue;
            };
            let raised = &self.units.fence.raised;
            let (before, judged) = (chunk.before.as_ref(), chunk.judged.as_ref());
            let input = serde_json::to_string(item)?;
            let (input, place) = (input.as_str(), self.place.as_deref());
            let failure = entry::UnitFailure { arrival, before, judged, input, message: &message, place };
            let key = arrival.key.as_str();
            match entry::fail(raised, self.ledger, &self.units.judge(), &failure).await? {
                entry::FailureOutcome::Recorded => {
                    tracing::warn!(job = %raised.facts.job, key, error = message, "a unit failed");
                    raised.tally.failed(key, &message);
                }
                // Another run changed the entry meanwhile: the unit is judged again.
                entry::FailureOutcome::Moved => self.todo.push_back(Chunk::of(&[*member], false)),
            }
        }
        Ok(())
    }
}
