//! A list of units as a source shows it, with each key once.
//!
//! Several units with one key are one unit that was told several times; the newest counts, or the last, or the first, as
//! the job says. That is settled before anything is read or written: were it left to the batches, a list that comes again
//! would be applied again, for each telling is a change to the one before.

use refrain_core::state::{DedupeReason, Recorded, UnitDecision, UnitStatus};

use super::Result;
use super::judge::{Arrival, Judge};
use super::tally::{Reason, Tally};

/// Units by their places in a list.
#[derive(Debug, Clone, Default)]
pub(super) struct List {
    pub(super) arrivals: Vec<Arrival>,
    /// Those that count, in the order of their keys.
    pub(super) counting: Vec<usize>,
    /// Those that stand behind another one with the same key, and why.
    twins: Vec<(usize, Reason)>,
    /// Those whose key stood for other content, with no order between the two.
    suspects: Vec<usize>,
}

impl List {
    pub(super) fn of(judge: &Judge, arrivals: Vec<Arrival>) -> Result<List> {
        let mut sorted: Vec<usize> = (0..arrivals.len()).collect();
        // Stable: of two units with one key, the later stays the later.
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

    /// Decides between the last one that counts and another one with its key.
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

    /// Those that count.
    pub(super) fn distinct(&self) -> Vec<&Arrival> {
        self.counting.iter().filter_map(|member| self.arrivals.get(*member)).collect()
    }

    /// Counts all of it as discovered, and at once what is known of it.
    pub(super) fn tally(&self, tally: &Tally) {
        tally.discovered(self.counting.len());
        self.tally_twins(tally);
    }

    /// The same for those alone that do not count.
    pub(super) fn tally_twins(&self, tally: &Tally) {
        tally.discovered(self.twins.len());
        for (member, reason) in &self.twins {
            tally.told_twice(*reason, key_of(&self.arrivals, *member));
        }
        for member in &self.suspects {
            tally.suspected(key_of(&self.arrivals, *member));
        }
    }
}

pub(super) fn key_of(arrivals: &[Arrival], member: usize) -> &str {
    arrivals.get(member).map_or("", |arrival| arrival.key.as_str())
}
