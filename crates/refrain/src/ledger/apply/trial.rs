//! Units on trial: after a worker died while it held a run, its units are tried in parts, and each part is parked first.
//!
//! If the process dies again, the units that were being applied are found parked with a mark that says which attempt tried
//! them, and whether one was alone. The next attempt tries those first, in smaller parts; a unit that was alone stays
//! parked. `search.rs` of `refrain-core` decides how large a part is, by how many more deaths the run can afford.

use std::collections::HashSet;

use serde::Serialize;

use super::{Batches, Chunk};
use crate::database::retried;
use crate::ledger::batch::{OpenBatch, OpenOutcome};
use crate::ledger::judge::{Arrival, Entry, Judgement, covered};
use crate::ledger::unit_list::key_of;
use crate::ledger::{Result, entry};
use crate::user_database::Backend;

/// The most bytes of units that are parked in one transaction before they are tried together.
const PART_BYTES_MAX: usize = 1 << 20;

/// A shorter list counts as one of this length: what killed a worker is in the first list that has something to apply, or
/// in one of the next, and not a thousand short lists later.
const LIST_MIN: usize = 64;

/// Units that are tried apart from others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TrialPart {
    /// They were being tried when the last worker died.
    OfSuspects,
    /// They were not; in the end they are trusted.
    OfOthers,
}

/// The entries of units before they were parked in advance.
#[derive(Debug, Clone)]
pub(in crate::ledger) struct PriorEntries(Vec<Entry>);

impl PriorEntries {
    pub(in crate::ledger) fn of(&self, arrival: &Arrival) -> Option<&Entry> {
        self.0.iter().find(|entry| entry.key == arrival.key.as_str())
    }
}

impl<DB: Backend, T: Serialize> Batches<'_, DB, T> {
    /// The parts in which units are tried after a worker died: first those that were being tried then, then the others. Units
    /// that are certainly done are left out.
    pub(super) async fn parts(&self, mut chunk: Chunk) -> Result<Vec<Chunk>> {
        let (raised, judge) = (&self.units.fence.raised, self.units.judge());
        let entries = retried(|| async {
            let mut reading = raised.destination.database.read().await?;
            let arrivals = self.arrivals_of(&chunk);
            // For a redo, no unit is certainly done.
            if chunk.unknown || judge.redo.is_some() {
                return entry::find(&mut reading, self.ledger, &arrivals).await;
            }
            entry::doubtful(&mut reading, self.ledger, &judge, &arrivals).await
        });
        let entries = entries.await?;
        if !chunk.unknown {
            self.leave(&mut chunk, &entries);
        }
        let suspects = entries.iter().filter(|entry| judge.is_suspect(entry));
        let suspects: HashSet<&str> = suspects.map(|entry| entry.key.as_str()).collect();
        let is_suspect = |member: &usize| suspects.contains(key_of(&self.arrivals, *member));
        let (suspects, others): (Vec<usize>, Vec<usize>) =
            chunk.members.iter().partition(|one| is_suspect(one));
        if !chunk.members.is_empty() {
            raised.trust_more(LIST_MIN.saturating_sub(chunk.members.len()));
        }
        let search = self.units.search();
        let others_together = search.others_together(others.len());
        let mut parts = Vec::new();
        for (part, members, together) in [
            (TrialPart::OfSuspects, suspects, search.suspects_together()),
            (TrialPart::OfOthers, others, others_together),
        ] {
            chunk.part = Some(part);
            parts.extend(self.cut(&members, together)?.iter().map(|members| chunk.some(members)));
        }
        Ok(parts)
    }

    /// Cuts units into parts of at most `together` units, and of a size that can be kept in one transaction.
    fn cut(&self, members: &[usize], together: usize) -> Result<Vec<Vec<usize>>> {
        let (mut parts, mut bytes): (Vec<Vec<usize>>, usize) = (Vec::new(), 0);
        for member in members {
            let input = self.items.get(*member).map(serde_json::to_string).transpose()?;
            let length = input.map_or(0, |input| input.len());
            bytes += length;
            match parts.last_mut() {
                Some(part) if part.len() < together && bytes <= PART_BYTES_MAX => part.push(*member),
                _ => {
                    bytes = length;
                    parts.push(vec![*member]);
                }
            }
        }
        Ok(parts)
    }

    /// Parks the units of a chunk before they are tried together, then opens it.
    pub(super) async fn blame(&self, chunk: &mut Chunk) -> Result<OpenOutcome> {
        let (raised, judge) = (&self.units.fence.raised, self.units.judge());
        let arrivals = self.arrivals_of(chunk);
        let before = if let Some(before) = chunk.before.clone() {
            before
        } else {
            let mut reading = raised.destination.database.read().await?;
            let recorded = entry::find(&mut reading, self.ledger, &arrivals).await?;
            reading.rollback().await?;
            PriorEntries(recorded)
        };
        for guilty in arrivals.iter().filter(|one| before.of(one).is_some_and(|entry| judge.is_guilty(entry)))
        {
            entry::convict(raised, self.ledger, guilty).await?;
        }
        let judgement = judge.judge(&arrivals, &before.0, chunk.unknown)?;
        let covered = covered(&arrivals, &before.0, &judgement.verdicts);
        if !entry::restore(raised, self.ledger, &judge, &covered).await? {
            return Ok(OpenOutcome::Raced);
        }
        self.keep_first(&arrivals, &before.0, &judgement.verdicts).await?;
        if !judgement.verdicts.iter().any(|verdict| verdict.is_applied()) {
            self.tally(chunk, &judgement.verdicts);
            return Ok(OpenOutcome::Nothing);
        }
        let due = chunk.members.iter().zip(&arrivals).zip(&judgement.verdicts);
        let due = due.filter(|(_, verdict)| verdict.is_applied()).map(|(one, _)| one);
        if chunk.before.is_none() {
            let mut suspects = Vec::new();
            for (member, arrival) in due.clone() {
                let Some(item) = self.items.get(*member) else { continue };
                suspects.push((*arrival, serde_json::to_string(item)?));
            }
            if !entry::blame(raised, self.ledger, &judge, &suspects, self.place.as_deref()).await? {
                return Ok(OpenOutcome::Raced);
            }
            raised.trust_more(suspects.len());
            chunk.before = Some(before);
        }
        let due = due.count();
        let mut transaction = raised.write().await?;
        let blamed = entry::find(&mut transaction, self.ledger, &arrivals).await?;
        // The judgement is based on the entries before the blame; it counts only while the blame is the only change since.
        let on_trial = blamed.iter().filter(|entry| judge.is_on_trial(entry)).count();
        if on_trial < due
            || !entry::record(&mut transaction, self.ledger, &judge, &arrivals, &blamed, &judgement.verdicts)
                .await?
        {
            transaction.rollback().await?;
            chunk.before = None;
            return Ok(OpenOutcome::Raced);
        }
        let transaction = self.hand_over(transaction).await?;
        let Judgement { verdicts, suspects } = judgement;
        Ok(OpenOutcome::Open(Box::new(OpenBatch { transaction, chunk: chunk.clone(), verdicts, suspects })))
    }
}
