//! The mark that tells the next attempt which units a worker was trying when it died: they are parked before they are tried, and
//! the mark is stored in place of their number of failures.

/// Units that an earlier attempt parked before it tried them together, without an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, sqlx_macros::FromRow)]
pub(crate) struct Trial {
    pub(crate) attempt: i32,
    pub(crate) units: i64,
}

/// The mark of a unit that is parked in advance: how often a worker had died with the run until then, and whether the unit was
/// tried alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ledger) struct TrialMark {
    pub(in crate::ledger) suspicion: u32,
    pub(in crate::ledger) is_alone: bool,
}

impl TrialMark {
    /// As it is stored: below zero, and odd for one that is alone.
    pub(in crate::ledger) fn stored(self) -> i64 {
        -(2 * i64::from(self.suspicion) + i64::from(self.is_alone))
    }

    pub(super) fn of(failures: i32) -> Option<TrialMark> {
        let stored = failures.checked_neg().filter(|stored| *stored > 0)?;
        Some(TrialMark { suspicion: u32::try_from(stored / 2).ok()?, is_alone: stored % 2 == 1 })
    }
}
