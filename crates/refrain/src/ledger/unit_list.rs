//! A list of units from a source, with each key once.
//!
//! Several units with one key are one unit that was sent several times; the newest counts, or the last, or the first, as the
//! job says. That is decided before anything is read or written: if batches decided it, a list that comes again would be
//! applied again, because each version is a change to the one before.

use refrain_core::state::{DedupeReason, Recorded, UnitDecision, UnitStatus};

use super::Result;
use super::judge::{Arrival, Judge};
use super::tally::Tally;
use crate::store::counts::Reason;

/// Units by their indices in a list.
#[derive(Debug, Clone, Default)]
pub(super) struct List {
    pub(super) arrivals: Vec<Arrival>,
    /// The units that count, in the order of their keys.
    pub(super) counting: Vec<usize>,
    /// The units that another one with the same key replaces, and why.
    twins: Vec<(usize, Reason)>,
    /// The units whose key had other content, without an order between the two.
    suspects: Vec<usize>,
}

impl List {
    pub(super) fn of(judge: &Judge, arrivals: Vec<Arrival>) -> Result<List> {
        let mut sorted: Vec<usize> = (0..arrivals.len()).collect();
        // A stable sort: of two units with one key, the later one stays later.
        sorted.sort_by(|one, other| key_of(&arrivals, *one).cmp(key_of(&arrivals, *other)));
        let mut list = List { counting: Vec::with_capacity(arrivals.len()), ..List::default() };
        for member in sorted {
            match list.counting.last().copied() {
                Some(known) if key_of(&arrivals, known) == key_of(&arrivals, member) => {
                    list.compare(judge, &arrivals, known, member)?;
                }
                _ => list.counting.push(member),
            }
        }
        list.arrivals = arrivals;
        Ok(list)
    }

    /// Decides between the last unit that counts and another one with its key.
    fn compare(&mut self, judge: &Judge, arrivals: &[Arrival], known: usize, member: usize) -> Result<()> {
        let (Some(before), Some(arrival)) = (arrivals.get(known), arrivals.get(member)) else {
            return Ok(());
        };
        let recorded = Recorded {
            version: judge.version,
            fingerprint: before.fingerprint,
            order: before.ordinal,
            status: UnitStatus::Applied,
            applied: None,
        };
        let (takes_over, reason) =
            match arrival.arriving(judge.version).decide(Some(&recorded), judge.on_change) {
                UnitDecision::Fresh | UnitDecision::Changed => (true, Reason::Stale),
                UnitDecision::Deduplicated(DedupeReason::AlreadyApplied) => {
                    (arrival.ordinal > before.ordinal, Reason::AlreadyApplied)
                }
                UnitDecision::Deduplicated(reason) => (false, reason.into()),
                UnitDecision::Refused(reason) => return Err(arrival.refused(reason)),
            };
        let is_ordered = arrival.ordinal.is_some() && !judge.is_of_the_run;
        if !is_ordered && arrival.fingerprint != before.fingerprint {
            self.suspects.push(member);
        }
        self.twins.push((if takes_over { known } else { member }, reason));
        if let (true, Some(last)) = (takes_over, self.counting.last_mut()) {
            *last = member;
        }
        Ok(())
    }

    /// The units that count.
    pub(super) fn distinct(&self) -> Vec<&Arrival> {
        self.counting.iter().filter_map(|member| self.arrivals.get(*member)).collect()
    }

    /// Counts all of the list as discovered, and tallies the replaced units.
    pub(super) fn tally(&self, tally: &Tally) {
        tally.discovered(self.counting.len());
        self.tally_twins(tally);
    }

    /// Tallies only the replaced units.
    pub(super) fn tally_twins(&self, tally: &Tally) {
        tally.discovered(self.twins.len());
        for (member, reason) in &self.twins {
            tally.repeated_by_source(*reason, key_of(&self.arrivals, *member));
        }
        for member in &self.suspects {
            tally.suspected(key_of(&self.arrivals, *member));
        }
    }
}

pub(super) fn key_of(arrivals: &[Arrival], member: usize) -> &str {
    arrivals.get(member).map_or("", |arrival| arrival.key.as_str())
}
