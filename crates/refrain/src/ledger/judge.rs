//! Decides what happens to each unit of a batch, from the recorded entries: values in, values out.
//!
//! Nearly every unit that a source shows again is done: it is applied in this content and version, and its order is the recorded
//! one. The statement `sql/unit/doubtful.sql` recognises those by the same rule; only the others come here. After a lost answer
//! every unit is judged here.

#[cfg(test)]
pub(super) mod tests;
mod trial_mark;

use std::collections::HashMap;

use refrain_core::Key;
use refrain_core::state::{
    Applied, Arriving, DedupeReason, OnChange, Recorded, RefusedUnit, UnitDecision, UnitStatus,
};

pub(crate) use self::trial_mark::Trial;
pub(in crate::ledger) use self::trial_mark::TrialMark;
use super::{LedgerError, Result};
use crate::store::counts::Reason;

/// A unit as it arrives from the source.
#[derive(Debug, Clone)]
pub(crate) struct Arrival {
    pub(crate) key: Key,
    pub(crate) fingerprint: Option<i64>,
    pub(crate) ordinal: Option<i64>,
}

/// The entry of a unit in the ledger.
#[expect(clippy::struct_excessive_bools, reason = "each is a column of the row")]
#[derive(Debug, Clone, PartialEq, Eq, sqlx_macros::FromRow)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) fingerprint: Option<i64>,
    pub(crate) ordinal: Option<i64>,
    pub(crate) fence: Option<i64>,
    /// SQLite stores values that do not fit into a version, and a ledger with one must stay readable.
    pub(crate) version: i64,
    pub(crate) attempt: Option<i32>,
    pub(crate) nonce: Option<i64>,
    pub(crate) failures: i32,
    /// Whether rows of some content exist.
    pub(crate) written: bool,
    pub(crate) status: String,
    /// Whether its input is kept.
    pub(crate) kept: bool,
    /// Whether external work was begun for it and its outcome is not recorded.
    pub(crate) sent: bool,
    /// Whether a request for it has had no answer, even if an operator has had it sent again since.
    pub(crate) unanswered: bool,
    /// The time of its last try.
    pub(crate) at: Option<i64>,
    /// The applied version, if the last try is not applied.
    pub(crate) applied_version: Option<i32>,
    pub(crate) applied_fingerprint: Option<i64>,
    /// The time at which something was applied before the last try; what is in effect since may be unknown.
    pub(crate) applied_at: Option<i64>,
    /// The run and attempt that applied it.
    pub(crate) applied_fence: Option<i64>,
    pub(crate) applied_attempt: Option<i32>,
}

/// The rules of a judgement, and the attempt that it is for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Judge {
    pub(crate) version: u32,
    pub(crate) on_change: OnChange,
    pub(crate) fence: i64,
    pub(crate) attempt: i32,
    /// The nonce of that attempt's claim.
    pub(crate) nonce: i64,
    /// How often a worker died while it held this run.
    pub(crate) suspicion: u32,
    /// The units that were being tried when the last worker died, if known.
    pub(crate) trial: Option<Trial>,
    /// Whether a unit that failed stops a checkpoint even if its input is kept.
    pub(crate) waits_for_failed: bool,
    /// Whether rows are only ever added: the row of a key stays, and never gets a second one next to it.
    pub(crate) adds: bool,
    /// Whether a key belongs to the run alone, so that only one unit can have it, whatever their order.
    pub(crate) is_of_the_run: bool,
    /// The attempt with which an operator began a redo of this run: what was applied before it is applied once more.
    pub(crate) redo: Option<i32>,
}

/// What happens to a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnitVerdict {
    /// It is applied; nothing was applied before, or an earlier try failed.
    Fresh,
    /// It is applied over content that was applied before.
    Changed,
    /// It was applied by this very attempt, whose answer was lost.
    Landed,
    Deduplicated(Reason),
    Parked,
}

impl UnitVerdict {
    pub(crate) fn is_applied(self) -> bool {
        matches!(self, UnitVerdict::Fresh | UnitVerdict::Changed)
    }
}

/// The judgement of a batch.
#[derive(Debug, Default)]
pub(crate) struct Judgement {
    /// One verdict for each arrival.
    pub(crate) verdicts: Vec<UnitVerdict>,
    /// Arrivals whose key stood for other content in this very attempt.
    pub(crate) suspects: Vec<usize>,
}

/// The stored status of a unit whose last try is applied.
const APPLIED: &str = "applied";

/// The status that is read if there is no entry.
pub(super) const ABSENT: &str = "absent";

/// Reads a stored status.
pub(super) fn status_of(word: &str, failures: i32) -> UnitStatus {
    match word {
        APPLIED => UnitStatus::Applied,
        "parked" => UnitStatus::Parked,
        _ => UnitStatus::Failed(u32::try_from(failures).unwrap_or_default()),
    }
}

impl Entry {
    /// The recorded state as this attempt sees it. A unit that was parked in advance counts as parked only if a worker has died
    /// at it alone. A reserved unit is parked for every attempt except the one that reserved it.
    pub(crate) fn recorded(&self, judge: &Judge) -> Recorded<Option<i64>, i64> {
        let is_innocent = self.failures < 0 && !judge.is_guilty(self);
        let failures = u32::try_from(self.failures).unwrap_or_default();
        Recorded {
            // A job at the highest allowed version continues from an entry with a higher one.
            version: u32::try_from(self.version.min(i64::from(i32::MAX))).unwrap_or_default(),
            fingerprint: self.fingerprint,
            order: self.ordinal,
            status: if is_innocent || (self.sent && self.is_by(judge)) {
                UnitStatus::Failed(failures)
            } else {
                status_of(&self.status, self.failures)
            },
            applied: self.applied(),
        }
    }

    /// The content that is applied beneath a try that is not. A request without an answer may have replaced it.
    fn applied(&self) -> Option<Applied<Option<i64>>> {
        let version = self.applied_version.filter(|_| !self.unanswered)?;
        let version = u32::try_from(version).unwrap_or_default();
        Some(Applied { version, fingerprint: self.applied_fingerprint })
    }

    /// When the content that the next try replaces was applied. It tells that try from an earlier one of the same content, and
    /// stays the same however often the try is repeated.
    pub(crate) fn over(&self) -> Option<i64> {
        if self.status == APPLIED { self.at } else { self.applied_at }
    }

    /// The entry, unless it stands for a missing row.
    pub(crate) fn present(&self) -> Option<&Entry> {
        (self.status != ABSENT).then_some(self)
    }

    /// Whether this very attempt has written it. An attempt number may have been given out twice, and one claim of it must not
    /// take the reservations of the other for its own.
    pub(crate) fn is_by(&self, judge: &Judge) -> bool {
        self.fence == Some(judge.fence)
            && self.attempt == Some(judge.attempt)
            && self.nonce == Some(judge.nonce)
    }
}

impl Arrival {
    pub(crate) fn arriving(&self, version: u32) -> Arriving<Option<i64>, i64> {
        Arriving { version, fingerprint: self.fingerprint, order: self.ordinal }
    }

    /// The error for a unit that must not be applied.
    pub(super) fn refused(&self, reason: RefusedUnit) -> LedgerError {
        LedgerError::Refused { key: self.key.to_string(), reason }
    }
}

impl Judge {
    /// Judges a batch in which each key occurs once. `after_a_lost_answer`: entries of this attempt may be those of this very
    /// batch.
    pub(crate) fn judge(
        &self,
        arrivals: &[&Arrival],
        entries: &[Entry],
        after_a_lost_answer: bool,
    ) -> Result<Judgement> {
        let entries: HashMap<&str, &Entry> =
            entries.iter().map(|entry| (entry.key.as_str(), entry)).collect();
        let mut judgement = Judgement::default();
        for (index, arrival) in arrivals.iter().enumerate() {
            let entry = entries.get(arrival.key.as_str()).copied();
            // A key in doubt is not touched, whatever content it has now: the record of the doubt would be lost.
            let is_own = |entry: &Entry| after_a_lost_answer && self.has_reserved(entry, arrival);
            if entry.is_some_and(|entry| entry.sent && !is_own(entry)) {
                judgement.verdicts.push(UnitVerdict::Parked);
                continue;
            }
            let decision = self.decide(arrival, entry);
            let mine = entry.is_some_and(|entry| entry.is_by(self));
            let is_other = entry.is_some_and(|entry| entry.fingerprint != arrival.fingerprint);
            if mine && is_other && (arrival.ordinal.is_none() || self.is_of_the_run) {
                judgement.suspects.push(index);
            }
            judgement.verdicts.push(match decision {
                // Rows of some content exist, and it is unknown of which.
                UnitDecision::Fresh if entry.is_some_and(|entry| entry.written) => UnitVerdict::Changed,
                UnitDecision::Fresh => UnitVerdict::Fresh,
                UnitDecision::Changed => UnitVerdict::Changed,
                UnitDecision::Deduplicated(_) if after_a_lost_answer && mine && !is_other => {
                    UnitVerdict::Landed
                }
                UnitDecision::Deduplicated(reason) => UnitVerdict::Deduplicated(reason.into()),
                UnitDecision::Refused(RefusedUnit::Parked) => UnitVerdict::Parked,
                UnitDecision::Refused(reason) => return Err(arrival.refused(reason)),
            });
        }
        Ok(judgement)
    }

    /// Decides about a unit by its entry. A redo does again what was done before it began; what the redo itself has done, in this
    /// attempt or an earlier one, is done.
    pub(super) fn decide(&self, arrival: &Arrival, entry: Option<&Entry>) -> UnitDecision {
        match self.decide_once(arrival, entry) {
            UnitDecision::Deduplicated(DedupeReason::AlreadyApplied)
                if entry.is_some_and(|entry| self.redoes(entry)) =>
            {
                UnitDecision::Changed
            }
            decision => decision,
        }
    }

    /// Whether the applied content of a key was applied before the present redo began. Rows that are only ever added are not
    /// added again.
    pub(super) fn redoes(&self, entry: &Entry) -> bool {
        let Some(redo) = self.redo.filter(|_| !self.adds) else { return false };
        let (fence, attempt) = match entry.status.as_str() {
            APPLIED => (entry.fence, entry.attempt),
            _ => (entry.applied_fence, entry.applied_attempt),
        };
        fence != Some(self.fence) || attempt.is_none_or(|attempt| attempt < redo)
    }

    /// Decides about a unit by its entry, without regard to a redo. If rows are only ever added, an existing row decides: a key
    /// without a row accepts any content, and a key with a row gets no other one, whatever version or later content arrived
    /// since.
    fn decide_once(&self, arrival: &Arrival, entry: Option<&Entry>) -> UnitDecision {
        let recorded = entry.map(|entry| entry.recorded(self));
        let arriving = arrival.arriving(self.version);
        let Some(entry) = entry.filter(|_| self.adds) else {
            return arriving.decide(recorded.as_ref(), self.on_change);
        };
        if !entry.written {
            return arriving.decide(recorded.as_ref(), OnChange::Update);
        }
        let added = recorded.as_ref().and_then(Recorded::in_force);
        let is_added = added.is_some_and(|added| added.fingerprint == arrival.fingerprint);
        match arriving.decide(recorded.as_ref(), self.on_change) {
            UnitDecision::Changed if is_added => UnitDecision::Deduplicated(DedupeReason::AlreadyApplied),
            UnitDecision::Changed | UnitDecision::Fresh | UnitDecision::Refused(RefusedUnit::Parked) => {
                match self.on_change {
                    OnChange::First => UnitDecision::Deduplicated(DedupeReason::FirstWins),
                    OnChange::Update | OnChange::Reject => UnitDecision::Refused(RefusedUnit::OtherContent),
                }
            }
            decision => decision,
        }
    }

    /// Units whose row stays although later content failed under their key: that settles the failure.
    pub(crate) fn kept_first<'a>(
        &self,
        arrivals: &[&'a Arrival],
        entries: &[Entry],
        verdicts: &[UnitVerdict],
    ) -> Vec<&'a Arrival> {
        let has_failed = |arrival: &Arrival| {
            let mut entries = entries.iter().filter(|entry| entry.key == arrival.key.as_str());
            entries.any(|entry| self.adds && entry.written && entry.status != APPLIED)
        };
        let first = arrivals.iter().zip(verdicts);
        let first = first.filter(|(_, verdict)| **verdict == UnitVerdict::Deduplicated(Reason::FirstWins));
        first.map(|(arrival, _)| *arrival).filter(|arrival| has_failed(arrival)).collect()
    }

    /// Whether this very attempt has recorded that this content failed.
    pub(crate) fn has_failed(&self, entry: &Entry, arrival: &Arrival) -> bool {
        entry.is_by(self)
            && entry.status != APPLIED
            && entry.failures >= 0
            && entry.fingerprint == arrival.fingerprint
            && entry.version == i64::from(self.version)
    }

    /// Whether a unit was being applied by this run, alone, when a worker died. Its mark says how many workers had died with the
    /// run until then; it is to blame only if every attempt since has ended in a death, because one that was merely stopped
    /// leaves the same traces.
    pub(crate) fn is_guilty(&self, entry: &Entry) -> bool {
        self.died_with(entry).is_some_and(|mark| mark.is_alone)
    }

    /// Whether a unit was among those that were being applied when the last worker died.
    pub(crate) fn is_suspect(&self, entry: &Entry) -> bool {
        let is_latest = self.trial.is_some_and(|trial| entry.attempt == Some(trial.attempt));
        is_latest && self.died_with(entry).is_some()
    }

    /// The mark of a unit of this run, if every attempt since has ended in a death.
    fn died_with(&self, entry: &Entry) -> Option<TrialMark> {
        let mark = TrialMark::of(entry.failures)
            .filter(|_| entry.status == "parked" && entry.fence == Some(self.fence))?;
        let since = i64::from(self.attempt) - i64::from(entry.attempt?);
        let deaths = i64::from(self.suspicion) - i64::from(mark.suspicion);
        (deaths > 0 && since == deaths).then_some(mark)
    }

    /// The mark with which this attempt parks units before it tries them.
    pub(super) fn mark(&self, units: usize) -> TrialMark {
        TrialMark { suspicion: self.suspicion, is_alone: units == 1 }
    }

    /// Whether this very attempt has parked a unit in advance, with no outcome since.
    pub(crate) fn is_on_trial(&self, entry: &Entry) -> bool {
        entry.status == "parked" && entry.failures < 0 && entry.is_by(self)
    }

    /// Whether this very attempt has reserved this content of a unit, with no outcome recorded.
    pub(crate) fn has_reserved(&self, entry: &Entry, arrival: &Arrival) -> bool {
        let is_same = entry.fingerprint == arrival.fingerprint && entry.version == i64::from(self.version);
        entry.sent && entry.is_by(self) && is_same
    }

    /// Whether a unit need not be read again: it is applied, or failed with its input kept.
    pub(crate) fn is_settled(&self, arrival: &Arrival, entry: Option<&Entry>) -> bool {
        let Some(entry) = entry else { return false };
        if self.waits_for_failed && entry.status != APPLIED {
            return false;
        }
        match self.decide(arrival, Some(entry)) {
            UnitDecision::Deduplicated(DedupeReason::AlreadyApplied) => true,
            UnitDecision::Deduplicated(_) => entry.kept || entry.status == APPLIED,
            UnitDecision::Refused(RefusedUnit::Parked) | UnitDecision::Fresh => {
                entry.fingerprint == arrival.fingerprint && entry.kept
            }
            UnitDecision::Changed => {
                // A try over applied content failed, and its input is kept.
                entry.status != APPLIED && entry.fingerprint == arrival.fingerprint && entry.kept
            }
            UnitDecision::Refused(_) => false,
        }
    }
}

/// Units that are done, but whose entries contain a later failed try of other content.
pub(super) fn covered<'a, 'e>(
    arrivals: &[&'a Arrival],
    entries: &'e [Entry],
    verdicts: &[UnitVerdict],
) -> Vec<(&'a Arrival, &'e Entry)> {
    let failed = entries.iter().filter(|entry| entry.status != APPLIED);
    let failed: HashMap<&str, &Entry> = failed.map(|entry| (entry.key.as_str(), entry)).collect();
    let done = arrivals.iter().zip(verdicts);
    let done = done.filter(|(_, verdict)| **verdict == UnitVerdict::Deduplicated(Reason::AlreadyApplied));
    done.filter_map(|(arrival, _)| Some((*arrival, *failed.get(arrival.key.as_str())?))).collect()
}

/// Units that are done, but arrived again with a higher order than the recorded one.
pub(super) fn later<'a>(
    arrivals: &[&'a Arrival],
    entries: &[Entry],
    verdicts: &[UnitVerdict],
) -> Vec<&'a Arrival> {
    let applied = entries.iter().filter(|entry| entry.status == APPLIED);
    let orders: HashMap<&str, Option<i64>> =
        applied.map(|entry| (entry.key.as_str(), entry.ordinal)).collect();
    let is_later = |arrival: &Arrival| {
        orders.get(arrival.key.as_str()).is_some_and(|known| known.is_some() && *known < arrival.ordinal)
    };
    let done = arrivals.iter().zip(verdicts);
    let done = done.filter(|(_, verdict)| **verdict == UnitVerdict::Deduplicated(Reason::AlreadyApplied));
    done.map(|(arrival, _)| *arrival).filter(|arrival| is_later(arrival)).collect()
}
