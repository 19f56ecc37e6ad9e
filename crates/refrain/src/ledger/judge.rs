//! What becomes of each unit of a batch, decided by what is recorded: values in, values out.
//!
//! Nearly all that a source shows again is done: applied in this content and version, with no other order than is recorded.
//! The database sees that in its own rows and keeps them to itself (`sql/unit/doubtful.sql`); only what is left comes here.
//! It never decides otherwise than this judge would, and what a lost answer may have left is judged here in any case.

use std::collections::HashMap;

use refrain_core::Key;
use refrain_core::state::{Arriving, OnChange, Recorded, RefusedUnit, UnitDecision, UnitStatus};

use super::tally::Reason;
use super::{LedgerError, Result};

/// A unit as it comes from the source.
#[derive(Debug, Clone)]
pub(crate) struct Arrival {
    pub(crate) key: Key,
    pub(crate) fingerprint: Option<i64>,
    pub(crate) ordinal: Option<i64>,
}

/// The ledger's row of a unit.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) fingerprint: Option<i64>,
    pub(crate) ordinal: Option<i64>,
    pub(crate) fence: Option<i64>,
    /// SQLite keeps what does not fit into a version, and a ledger that holds it must stay readable.
    pub(crate) version: i64,
    pub(crate) attempt: Option<i32>,
    pub(crate) failures: i32,
    /// Whether rows of some content are there.
    pub(crate) written: bool,
    pub(crate) status: String,
    /// Whether what it was given is kept.
    pub(crate) kept: bool,
    /// Whether something was begun with it outside, and its end is not recorded.
    pub(crate) sent: bool,
}

/// Whoever judges: by which rules, and who they are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Judge {
    pub(crate) version: u32,
    pub(crate) on_change: OnChange,
    pub(crate) fence: i64,
    pub(crate) attempt: i32,
    /// How often a worker died with this run in hand.
    pub(crate) suspicion: u32,
    /// Whether a unit that failed keeps a checkpoint from passing, although its input is kept.
    pub(crate) waits_for_failed: bool,
}

/// What becomes of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is applied; nothing was there, or what was there failed.
    Fresh,
    /// It is applied over what was applied.
    Changed,
    /// It was applied by this very attempt, whose answer was lost.
    Landed,
    Deduplicated(Reason),
    Parked,
}

impl Verdict {
    pub(crate) fn is_applied(self) -> bool {
        matches!(self, Verdict::Fresh | Verdict::Changed)
    }
}

/// What a batch comes to.
#[derive(Debug, Default)]
pub(crate) struct Judgement {
    /// One for each arrival.
    pub(crate) verdicts: Vec<Verdict>,
    /// Arrivals whose key stood for other content in this very attempt.
    pub(crate) suspects: Vec<usize>,
}

/// What is read in place of a status where there is no row.
pub(super) const ABSENT: &str = "absent";

/// A status as it is written down.
pub(super) fn status_of(word: &str, failures: i32) -> UnitStatus {
    match word {
        "applied" => UnitStatus::Applied,
        "parked" => UnitStatus::Parked,
        _ => UnitStatus::Failed(u32::try_from(failures).unwrap_or_default()),
    }
}

impl Entry {
    /// What is recorded, as whoever asks sees it: a unit that was parked in advance is parked only if a worker has died
    /// since, and one that is reserved is not, for whoever has reserved it.
    pub(crate) fn recorded(&self, judge: &Judge) -> Recorded<Option<i64>, i64> {
        let is_innocent = self.failures < 0 && !judge.is_guilty(self);
        let failures = u32::try_from(self.failures).unwrap_or_default();
        Recorded {
            // A job whose version is the highest that is allowed goes on from one that is not.
            version: u32::try_from(self.version.min(i64::from(i32::MAX))).unwrap_or_default(),
            fingerprint: self.fingerprint,
            order: self.ordinal,
            status: if is_innocent || (self.sent && self.is_by(judge)) {
                UnitStatus::Failed(failures)
            } else {
                status_of(&self.status, self.failures)
            },
        }
    }

    /// Itself, if there is such a row.
    pub(crate) fn present(&self) -> Option<&Entry> {
        (self.status != ABSENT).then_some(self)
    }

    fn is_by(&self, judge: &Judge) -> bool {
        self.fence == Some(judge.fence) && self.attempt == Some(judge.attempt)
    }
}

impl Arrival {
    pub(crate) fn arriving(&self, version: u32) -> Arriving<Option<i64>, i64> {
        Arriving { version, fingerprint: self.fingerprint, order: self.ordinal }
    }

    /// It must not be touched.
    pub(super) fn refused(&self, reason: RefusedUnit) -> LedgerError {
        LedgerError::Refused { key: self.key.to_string(), reason }
    }
}

impl Judge {
    /// Judges a batch in which each key is once. `after_a_lost_answer` says that what this attempt has recorded may be this
    /// very batch.
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
            // Nothing is done under a key that is in doubt, whatever it stands for since: what is known of it would be lost.
            let is_own = |entry: &Entry| after_a_lost_answer && self.has_reserved(entry, arrival);
            if entry.is_some_and(|entry| entry.sent && !is_own(entry)) {
                judgement.verdicts.push(Verdict::Parked);
                continue;
            }
            let recorded = entry.map(|entry| entry.recorded(self));
            let decision = arrival.arriving(self.version).decide(recorded.as_ref(), self.on_change);
            let mine = entry.is_some_and(|entry| entry.is_by(self));
            let is_other = entry.is_some_and(|entry| entry.fingerprint != arrival.fingerprint);
            if mine && is_other && arrival.ordinal.is_none() {
                judgement.suspects.push(index);
            }
            judgement.verdicts.push(match decision {
                // Other content failed, but rows of the one before are there.
                UnitDecision::Fresh if entry.is_some_and(|entry| entry.written) => Verdict::Changed,
                UnitDecision::Fresh => Verdict::Fresh,
                UnitDecision::Changed => Verdict::Changed,
                UnitDecision::Deduplicated(_) if after_a_lost_answer && mine && !is_other => Verdict::Landed,
                UnitDecision::Deduplicated(reason) => Verdict::Deduplicated(reason.into()),
                UnitDecision::Refused(RefusedUnit::Parked) => Verdict::Parked,
                UnitDecision::Refused(reason) => return Err(arrival.refused(reason)),
            });
        }
        Ok(judgement)
    }

    /// Whether this very attempt has recorded that this content failed.
    pub(crate) fn has_failed(&self, entry: &Entry, arrival: &Arrival) -> bool {
        entry.is_by(self)
            && entry.status != "applied"
            && entry.failures >= 0
            && entry.fingerprint == arrival.fingerprint
            && entry.version == i64::from(self.version)
    }

    /// Whether a unit was being applied by this run, alone, when a worker died. What it was parked with in advance says how
    /// many had died with the run in hand until then; it is to blame only if every attempt since has ended so, for one that
    /// was merely stopped leaves the same traces.
    pub(crate) fn is_guilty(&self, entry: &Entry) -> bool {
        let since = entry.attempt.map(|attempt| i64::from(self.attempt) - i64::from(attempt));
        let deaths = i64::from(self.suspicion) + i64::from(entry.failures);
        let is_blamed = entry.status == "parked" && entry.failures < 0 && entry.fence == Some(self.fence);
        is_blamed && deaths > 0 && since == Some(deaths)
    }

    /// Whether this very attempt has parked a unit in advance, and nothing has become of it since.
    pub(crate) fn is_on_trial(&self, entry: &Entry) -> bool {
        entry.status == "parked" && entry.failures < 0 && entry.is_by(self)
    }

    /// Whether this very attempt has reserved this content of a unit, and what became of it is not recorded.
    pub(crate) fn has_reserved(&self, entry: &Entry, arrival: &Arrival) -> bool {
        let is_same = entry.fingerprint == arrival.fingerprint && entry.version == i64::from(self.version);
        entry.sent && entry.is_by(self) && is_same
    }

    /// Whether a unit need not be read again: it is applied, or failed with its input kept.
    pub(crate) fn is_settled(&self, arrival: &Arrival, entry: Option<&Entry>) -> bool {
        let Some(entry) = entry else { return false };
        if self.waits_for_failed && entry.status != "applied" {
            return false;
        }
        match arrival.arriving(self.version).decide(Some(&entry.recorded(self)), self.on_change) {
            UnitDecision::Deduplicated(_) => entry.kept || entry.status == "applied",
            UnitDecision::Refused(RefusedUnit::Parked) | UnitDecision::Fresh => {
                entry.fingerprint == arrival.fingerprint && entry.kept
            }
            UnitDecision::Changed | UnitDecision::Refused(_) => false,
        }
    }
}

/// Units that are done, but were seen again with a higher order than is recorded.
pub(super) fn later<'a>(
    arrivals: &[&'a Arrival],
    entries: &[Entry],
    verdicts: &[Verdict],
) -> Vec<&'a Arrival> {
    let orders: HashMap<&str, Option<i64>> =
        entries.iter().map(|entry| (entry.key.as_str(), entry.ordinal)).collect();
    let is_later = |arrival: &Arrival| {
        orders.get(arrival.key.as_str()).is_some_and(|known| known.is_some() && *known < arrival.ordinal)
    };
    let done = arrivals.iter().zip(verdicts);
    let done = done.filter(|(_, verdict)| **verdict == Verdict::Deduplicated(Reason::AlreadyApplied));
    done.map(|(arrival, _)| *arrival).filter(|arrival| is_later(arrival)).collect()
}
