//! Applies units: one transaction per batch, the ledger's rows and the caller's together.
//!
//! A batch is judged by what is recorded, read without locks; what is to be applied is then written under the fence, in
//! the order of keys, and every row must still be as it was read, or the batch begins again. The caller's rows follow in
//! the same transaction. One that fails is halved until the bad unit stands alone; that one is recorded as failed, with
//! what it was given, and its neighbours go on. A lost answer to a commit is resolved by reading the ledger.
//!
//! A unit may also kill the process. After a worker died with this run in hand, as many units as a batch has are tried in parts,
//! each part parked before it is tried (`refrain-core`'s `search.rs` says how large they are): should the process die again, the
//! units that were being applied are known, and the next attempt looks for the culprit among them. One that was alone when
//! it happened stays parked.

mod trial;

use std::collections::{HashSet, VecDeque};

use serde::Serialize;

pub(super) use self::trial::Before;
use self::trial::Part;
use super::backend::Backend;
use super::batch::{Batch, Opened};
use super::entry;
use super::judge::{Arrival, Entry, Judgement, Verdict, covered, later};
use super::tally::Reason;
use super::unit_list::{List, key_of};
use super::units::Units;
use super::{LedgerError, Result};
use crate::database::{DatabaseError, Transaction, pause, place};
use crate::failpoint;

/// The most units in one transaction.
pub(crate) const BATCH: usize = 1_000;
/// How often a batch is begun again because of locks, conflicts and lost connections.
const AGAIN_MAX: u32 = 8;
/// So many units that fail one after another are not to blame: something else is wrong.
const IN_A_ROW_MAX: usize = 20;

/// A work list of units: give me the next batch, say how it went.
///
/// A batch that is dropped is rolled back, and its units stay unsettled: no checkpoint passes them, and the run is not done.
#[must_use = "nothing is applied until `next` is called"]
pub struct Applying<'u, DB: Backend, T> {
    pub(super) units: &'u Units<DB, T>,
    pub(super) ledger: i64,
    pub(super) items: &'u [T],
    pub(super) arrivals: Vec<Arrival>,
    /// Where the source was read from, if a checkpoint says so.
    place: Option<String>,
    todo: VecDeque<Chunk>,
    /// Units that failed since the last batch that went well, each alone. Whether it was theirs or everybody's fault
    /// is known when another one goes well.
    failing: Vec<(Chunk, String)>,
}

impl<DB: Backend, T> std::fmt::Debug for Applying<'_, DB, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Applying").field("units", &self.arrivals.len()).finish_non_exhaustive()
    }
}

/// Units that go together, by their places in the list.
#[derive(Debug, Clone)]
pub(super) struct Chunk {
    pub(super) members: Vec<usize>,
    again: u32,
    /// Whether the answer to its commit was lost.
    unknown: bool,
    /// If it is a part in which units are tried after a worker died: which.
    part: Option<Part>,
    /// What was recorded of its units before they were parked in advance, if they were.
    pub(super) before: Option<Before>,
    /// What its only unit was judged by.
    judged: Option<Entry>,
}

impl Chunk {
    fn of(members: &[usize], unknown: bool) -> Chunk {
        Chunk { members: members.to_vec(), again: 0, unknown, part: None, before: None, judged: None }
    }

    /// Some of them, otherwise the same.
    fn some(&self, members: &[usize]) -> Chunk {
        Chunk { part: self.part, before: self.before.clone(), ..Chunk::of(members, self.unknown) }
    }
}

impl<'u, DB: Backend, T: Serialize> Applying<'u, DB, T> {
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
        Applying { units, ledger, items, place, todo, arrivals: list.arrivals, failing: Vec::new() }
    }

    /// The next batch that has something to apply, in a transaction that holds the fence and has written the ledger.
    /// None: all units are settled.
    pub async fn next(&mut self) -> Result<Option<Batch<'_, 'u, DB, T>>> {
        let opened = loop {
            let Some(chunk) = self.todo.pop_front() else {
                self.record_failing().await?;
                if self.todo.is_empty() {
                    return Ok(None);
                }
                continue;
            };
            if let Some(opened) = self.opened(chunk).await? {
                break opened;
            }
        };
        Ok(Some(Batch::new(self, opened)))
    }

    /// Opens a chunk, however often it takes. None: there is nothing to apply in it.
    async fn opened(&mut self, mut chunk: Chunk) -> Result<Option<Opened>> {
        let is_suspicious = self.units.fence.raised.is_careful() || self.units.has_suspects();
        if is_suspicious && chunk.part.is_none() {
            for part in self.parts(chunk).await?.into_iter().rev() {
                self.todo.push_front(part);
            }
            return Ok(None);
        }
        let is_careful = match chunk.part {
            Some(Part::OfSuspects) => true,
            Some(Part::OfOthers) => chunk.before.is_some() || self.units.fence.raised.is_careful(),
            None => false,
        };
        for again in chunk.again..=AGAIN_MAX {
            let opened = if is_careful {
                self.blame(&mut chunk).await
            } else if self.units.expects_new() && !chunk.unknown {
                self.insert(&chunk).await
            } else {
                self.look(&mut chunk).await
            };
            match opened {
                Ok(Some(opened)) => return Ok(opened),
                Ok(None) => self.units.expect_new(false),
                Err(LedgerError::Database(error)) if error.is_worth_a_retry() && again < AGAIN_MAX => {
                    tracing::debug!(%error, "beginning a batch again");
                    pause(again).await;
                }
                Err(error) => return Err(error),
            }
        }
        Err(LedgerError::Contended)
    }

    /// All of it is new, most likely: written without a look. None: it is not.
    async fn insert(&self, chunk: &Chunk) -> Result<Option<Option<Opened>>> {
        let mut transaction = self.units.fence.raised.write().await?;
        let arrivals: Vec<&Arrival> = self.arrivals_of(chunk);
        let inserted = entry::insert(&mut transaction, self.ledger, &self.units.judge(), &arrivals).await?;
        if inserted < arrivals.len() as u64 {
            transaction.rollback().await?;
            return Ok(None);
        }
        let transaction = self.handed_over(transaction).await?;
        let verdicts = vec![Verdict::Fresh; arrivals.len()];
        Ok(Some(Some(Opened { transaction, chunk: chunk.clone(), verdicts, suspects: Vec::new() })))
    }

    /// Judged by what is recorded, then written as it was judged. None: somebody was faster; again.
    async fn look(&self, chunk: &mut Chunk) -> Result<Option<Option<Opened>>> {
        let judge = self.units.judge();
        let mut reading = self.units.fence.raised.destination.database.read().await?;
        let mut arrivals: Vec<&Arrival> = self.arrivals_of(chunk);
        let seen = arrivals.len();
        let entries = if chunk.unknown || judge.redo.is_some() {
            // What this very attempt has recorded is no dedupe then; and of what is to be done again, nothing is certainly done.
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
        let is_all_new = judgement.verdicts.iter().all(|verdict| *verdict == Verdict::Fresh);
        self.units.expect_new(is_all_new && entries.is_empty() && arrivals.len() == seen);
        let covered = covered(&arrivals, &entries, &judgement.verdicts);
        if !entry::restore(&self.units.fence.raised, self.ledger, &judge, &covered).await? {
            return Ok(None);
        }
        let later = later(&arrivals, &entries, &judgement.verdicts);
        if !later.is_empty() {
            entry::raise_order(&self.units.fence.raised, self.ledger, &later).await?;
        }
        self.keep_first(&arrivals, &entries, &judgement.verdicts).await?;
        if !judgement.verdicts.iter().any(|verdict| verdict.is_applied()) {
            self.suspect(chunk, &judgement.suspects);
            self.tally(chunk, &judgement.verdicts);
            return Ok(Some(None));
        }
        let mut transaction = self.units.fence.raised.write().await?;
        if !entry::record(&mut transaction, self.ledger, &judge, &arrivals, &entries, &judgement.verdicts)
            .await?
        {
            transaction.rollback().await?;
            return Ok(None);
        }
        let transaction = self.handed_over(transaction).await?;
        let mut chunk = chunk.clone();
        if let [_] = chunk.members.as_slice() {
            chunk.judged = entries.into_iter().next();
        }
        let Judgement { verdicts, suspects } = judgement;
        Ok(Some(Some(Opened { transaction, chunk, verdicts, suspects })))
    }

    /// A transaction in which the ledger is written, for whatever the caller writes.
    async fn handed_over(&self, mut transaction: Transaction) -> Result<Transaction> {
        if failpoint::is_weakened("unit.apart") {
            transaction.commit(place!("unit-weakened")).await?;
            transaction = self.units.fence.raised.write().await?;
        }
        transaction.hand_over().await?;
        Ok(transaction)
    }

    /// Where the first content stays, what failed after it is settled.
    async fn keep_first(&self, arrivals: &[&Arrival], entries: &[Entry], verdicts: &[Verdict]) -> Result<()> {
        let kept = self.units.judge().kept_first(arrivals, entries, verdicts);
        if kept.is_empty() {
            return Ok(());
        }
        entry::keep_first(&self.units.fence.raised, self.ledger, &kept).await
    }

    fn arrivals_of(&self, chunk: &Chunk) -> Vec<&Arrival> {
        chunk.members.iter().filter_map(|member| self.arrivals.get(*member)).collect()
    }

    /// Those that are certainly done leave the chunk, and are counted.
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

    /// Counts what was not to be applied, or was applied already.
    fn tally(&self, chunk: &Chunk, verdicts: &[Verdict]) {
        let tally = &self.units.fence.raised.tally;
        for (member, verdict) in chunk.members.iter().zip(verdicts) {
            match verdict {
                Verdict::Landed => tally.applied([key_of(&self.arrivals, *member)]),
                Verdict::Parked => tally.skipped(key_of(&self.arrivals, *member)),
                Verdict::Deduplicated(reason) => {
                    tally.deduplicated(*reason, [key_of(&self.arrivals, *member)]);
                }
                Verdict::Fresh | Verdict::Changed => {}
            }
        }
    }

    /// A batch is committed.
    pub(super) async fn committed(
        &mut self,
        chunk: &Chunk,
        verdicts: &[Verdict],
        suspects: &[usize],
    ) -> Result<()> {
        self.suspect(chunk, suspects);
        let applied = chunk.members.iter().zip(verdicts).filter(|(_, verdict)| verdict.is_applied());
        let applied = applied.map(|(member, _)| key_of(&self.arrivals, *member));
        self.units.fence.raised.tally.applied(applied);
        self.tally(chunk, verdicts);
        self.record_failing().await
    }

    /// A batch has to begin again: something came between that is nobody's fault.
    pub(super) async fn again(&mut self, mut chunk: Chunk, error: DatabaseError) -> Result<()> {
        chunk.again += 1;
        chunk.unknown |= matches!(error, DatabaseError::Unknown(_));
        if chunk.again > AGAIN_MAX {
            return Err(error.into());
        }
        pause(chunk.again).await;
        self.todo.push_front(chunk);
        Ok(())
    }

    /// Two halves instead of a whole that failed.
    pub(super) fn halve(&mut self, chunk: &Chunk) {
        let (first, second) = chunk.members.split_at(chunk.members.len() / 2);
        for half in [second, first] {
            self.todo.push_front(chunk.some(half));
        }
    }

    /// A unit failed, alone.
    pub(super) fn failed(&mut self, chunk: Chunk, message: String) -> Result<()> {
        self.failing.push((chunk, message));
        if self.failing.len() < IN_A_ROW_MAX || self.todo.is_empty() {
            return Ok(());
        }
        let failing = std::mem::take(&mut self.failing);
        let message = failing.into_iter().next_back().map(|(_, message)| message).unwrap_or_default();
        Err(LedgerError::AllFail { count: IN_A_ROW_MAX, message })
    }

    /// Those that failed are recorded, with what they were given.
    async fn record_failing(&mut self) -> Result<()> {
        for (chunk, message) in std::mem::take(&mut self.failing) {
            let Some(member) = chunk.members.first() else { continue };
            let (Some(arrival), Some(item)) = (self.arrivals.get(*member), self.items.get(*member)) else {
                continue;
            };
            let raised = &self.units.fence.raised;
            let (before, judged) = (chunk.before.as_ref(), chunk.judged.as_ref());
            let input = serde_json::to_string(item)?;
            let (input, place) = (input.as_str(), self.place.as_deref());
            let failure = entry::Failure { arrival, before, judged, input, message: &message, place };
            let key = arrival.key.as_str();
            match entry::fail(raised, self.ledger, &self.units.judge(), &failure).await? {
                entry::Failed::Recorded => {
                    tracing::warn!(job = %raised.facts.job, key, error = message, "a unit failed");
                    raised.tally.failed(key, &message);
                }
                // Somebody else was there meanwhile: it is judged anew.
                entry::Failed::Moved => self.todo.push_back(Chunk::of(&[*member], false)),
            }
        }
        Ok(())
    }
}
