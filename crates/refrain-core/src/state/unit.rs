//! A unit is judged by its key, its version and its content; nothing else decides whether it is applied.
//!
//! The machine is about *one* version and content of a key, and there `applied` is final. Other content, a higher version,
//! or a redo starts at the beginning: [`UnitDecision::Changed`] says when that may happen. A failed try does not undo what was applied before
//! it: [`Recorded::applied`] is kept apart, and an arriving unit is compared with it first. A unit that keeps failing is parked with
//! its input, so that its neighbours go on and the operator can have it tried again. A unit for which a call was begun is parked,
//! too, until the result is known: it is in doubt.

use super::Machine;

words! {
    /// The state of a unit, in one version and content.
    UnitState, "unit state" {
        /// Nothing is recorded.
        Absent = "absent",
        /// Its rows and its ledger entry are committed, together.
        Applied = "applied",
        /// It failed, its input is kept, and the next attempt tries it again.
        Failed = "failed",
        /// It failed too often, or it is in doubt; only the operator, or a policy for doubts, has it tried again.
        Parked = "parked",
    }
}

words! {
    /// What happens to a unit.
    UnitEvent, "unit event" {
        /// Its transaction was committed.
        Applied = "applied",
        /// Something irreversible is about to be done with it: from now on it is in doubt.
        Reserved = "reserved",
        /// It failed, alone in its batch, and may be tried again.
        Failed = "failed",
        /// It failed, and its tries are used up.
        GaveUp = "gave-up",
        /// It is about to be tried after a crash: it is parked in advance, in case the worker dies again.
        Suspected = "suspected",
        /// The operator gives it all its tries again.
        Retried = "retried",
    }
}

impl Machine for UnitState {
    type Event = UnitEvent;
    const NOUN: &'static str = "unit";
    const START: Self = Self::Absent;
    const EDGES: &'static [super::Edge<Self, UnitEvent>] = edges! {
        Absent, Applied  => Applied: "rows and ledger entry in one transaction";
        Absent, Reserved => Parked:  "committed before the first byte is sent";
        Absent, Failed   => Failed:  "counted, and its input is kept";
        Absent, GaveUp   => Parked:  "the first try was the only one";
        Absent, Suspected => Parked: "parked in advance, with its input";
        Failed, Applied  => Applied: "tried again, by an attempt or the operator";
        Failed, Reserved => Parked:  "committed before the first byte is sent again";
        Failed, Failed   => Failed:  "counted once more";
        Failed, GaveUp   => Parked:  "its tries are used up; its neighbours go on";
        Failed, Suspected => Parked: "parked in advance, with its input";
        Failed, Retried  => Failed:  "with all its tries";
        Parked, Applied  => Applied: "the answer is recorded, or the operator had it tried again";
        Parked, Reserved => Parked:  "the policy for doubts has it sent again, under the same key";
        Parked, Failed   => Failed:  "it was reserved, and the answer says that nothing was done";
        Parked, GaveUp   => Parked:  "nothing was done, and its tries are used up";
        Parked, Suspected => Parked: "parked in advance once more";
        Parked, Retried  => Failed:  "with all its tries; if it was in doubt, it is sent again";
    };

    fn why_not(self, event: UnitEvent) -> &'static str {
        match (self, event) {
            (Self::Applied, UnitEvent::Applied) => "it is applied in this version and content: a dedupe",
            (Self::Applied, _) => "it stays applied; only other content or a higher version can fail",
            (Self::Absent, UnitEvent::Retried) => "no try of this unit is recorded that could be repeated",
            (Self::Absent | Self::Failed | Self::Parked, _) => super::NOT_LISTED,
        }
    }
}

words! {
    /// What happens when other content arrives under a recorded key (`on-change = "…"`).
    OnChange, "on-change policy" {
        /// It is applied again.
        Update = "update",
        /// It is an error, and no unit of the batch is applied.
        Reject = "reject",
        /// The first content wins.
        First = "first",
    }
}

/// What the ledger records about a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnitStatus {
    /// It is applied.
    Applied,
    /// It failed this many times.
    Failed(u32),
    /// It is parked.
    Parked,
}

impl UnitStatus {
    /// The state of the machine.
    pub fn state(self) -> UnitState {
        match self {
            Self::Applied => UnitState::Applied,
            Self::Failed(_) => UnitState::Failed,
            Self::Parked => UnitState::Parked,
        }
    }
}

/// The ledger's row of a unit: `F` is its fingerprint, `O` what its `order` field holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recorded<F, O> {
    /// The version of the job when the unit was last tried.
    pub version: u32,
    /// The content that was last tried.
    pub fingerprint: F,
    /// Its position in the order of changes, if the job has an order.
    pub order: Option<O>,
    /// What became of it.
    pub status: UnitStatus,
    /// What is applied, if the last try was of something else and did not succeed. None if nothing is applied, if it is not known,
    /// or if the last try itself is applied.
    pub applied: Option<Applied<F>>,
}

/// A version and content of a unit that is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Applied<F> {
    /// The version of the job when the content was applied.
    pub version: u32,
    /// The content that was applied.
    pub fingerprint: F,
}

impl<F: Clone, O> Recorded<F, O> {
    /// What is applied: the last try, or the one that was applied before it.
    pub fn in_force(&self) -> Option<Applied<F>> {
        match self.status {
            UnitStatus::Applied => {
                Some(Applied { version: self.version, fingerprint: self.fingerprint.clone() })
            }
            UnitStatus::Failed(_) | UnitStatus::Parked => self.applied.clone(),
        }
    }
}

/// A unit as it comes from the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arriving<F, O> {
    /// The version of the job in this worker.
    pub version: u32,
    /// The content.
    pub fingerprint: F,
    /// Its position in the order of changes, if the job has an order.
    pub order: Option<O>,
}

/// What to do with a unit that arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnitDecision {
    /// Apply it: nothing is recorded, or the recorded try failed.
    Fresh,
    /// Apply it over what was applied: other content, or a higher version.
    Changed,
    /// Do not apply it: it is done already.
    Deduplicated(DedupeReason),
    /// Do not apply it, and report that: the operator must look at it.
    Refused(RefusedUnit),
}

/// Why a unit is done already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DedupeReason {
    /// Applied, in this version and content.
    AlreadyApplied,
    /// Newer content is recorded; this is older content from a slow reader.
    Stale,
    /// Other content came first, and the job says that the first wins.
    FirstWins,
}

/// Why a unit is not touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RefusedUnit {
    /// Other content came first, and the job treats that as an error, whatever became of the first.
    #[error("other content is recorded under this key, and on-change is \"reject\"")]
    OtherContent,
    /// A worker with an older job file must not undo the work of a newer one.
    #[error("version {recorded} was recorded; this worker has version {ours} and must be updated")]
    OlderWorker {
        /// The version in the ledger.
        recorded: u32,
        /// The version of the worker that asks.
        ours: u32,
    },
    /// The same content failed too often. The operator can still have it tried again.
    #[error("it failed too often and is parked; see why, then use `refrain retry` with --unit")]
    Parked,
}

impl<F: PartialEq + Clone, O: Ord> Arriving<F, O> {
    /// What to do with this unit, given what the ledger records under its key.
    ///
    /// ```
    /// use refrain_core::state::{Arriving, DedupeReason, OnChange, Recorded, UnitDecision, UnitStatus};
    ///
    /// let status = UnitStatus::Applied;
    /// let applied = Recorded { version: 1, fingerprint: "red", order: Some(5), status, applied: None };
    /// let late = Arriving { version: 1, fingerprint: "blue", order: Some(4) };
    /// assert_eq!(
    ///     late.decide(Some(&applied), OnChange::Update),
    ///     UnitDecision::Deduplicated(DedupeReason::Stale)
    /// );
    /// ```
    pub fn decide(&self, recorded: Option<&Recorded<F, O>>, on_change: OnChange) -> UnitDecision {
        let Some(recorded) = recorded else { return UnitDecision::Fresh };
        if self.version < recorded.version {
            let refused = RefusedUnit::OlderWorker { recorded: recorded.version, ours: self.version };
            return UnitDecision::Refused(refused);
        }
        // Also when the newer content failed: its input is kept, and older content must not replace it.
        if let (Some(ours), Some(known)) = (&self.order, &recorded.order)
            && ours < known
        {
            return UnitDecision::Deduplicated(DedupeReason::Stale);
        }
        let applied = recorded.in_force();
        let known = applied.as_ref().map_or(&recorded.fingerprint, |applied| &applied.fingerprint);
        if self.fingerprint != *known {
            match on_change {
                OnChange::Reject => return UnitDecision::Refused(RefusedUnit::OtherContent),
                OnChange::First => return UnitDecision::Deduplicated(DedupeReason::FirstWins),
                OnChange::Update => {}
            }
        } else if applied.as_ref().is_some_and(|applied| applied.version == self.version) {
            return UnitDecision::Deduplicated(DedupeReason::AlreadyApplied);
        }
        let is_parked = recorded.status == UnitStatus::Parked;
        if is_parked && self.version == recorded.version && self.fingerprint == recorded.fingerprint {
            return UnitDecision::Refused(RefusedUnit::Parked);
        }
        if applied.is_some() { UnitDecision::Changed } else { UnitDecision::Fresh }
    }

    /// What happens to this unit, and what is recorded of it, when it fails and may be tried `limit` times.
    ///
    /// Only failures of the same version and content are counted together: corrected content has all its tries.
    pub fn after_failure(&self, recorded: Option<&Recorded<F, O>>, limit: u32) -> (UnitEvent, UnitStatus) {
        let before = recorded
            .filter(|row| row.version == self.version && row.fingerprint == self.fingerprint)
            .map(|row| row.status);
        let failures = match before {
            None | Some(UnitStatus::Applied) => 1,
            Some(UnitStatus::Failed(failures)) => failures.saturating_add(1),
            Some(UnitStatus::Parked) => limit,
        };
        if failures < limit {
            (UnitEvent::Failed, UnitStatus::Failed(failures))
        } else {
            (UnitEvent::GaveUp, UnitStatus::Parked)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use UnitDecision::{Changed, Deduplicated, Fresh, Refused};

    const APPLIED: Recorded<&str, u8> = Recorded {
        version: 2,
        fingerprint: "red",
        order: Some(5),
        status: UnitStatus::Applied,
        applied: None,
    };
    const FAILED: Recorded<&str, u8> = Recorded { status: UnitStatus::Failed(1), ..APPLIED };
    const PARKED: Recorded<&str, u8> = Recorded { status: UnitStatus::Parked, ..APPLIED };

    fn arriving(version: u32, fingerprint: &str, order: Option<u8>) -> Arriving<&str, u8> {
        Arriving { version, fingerprint, order }
    }

    #[test]
    fn a_unit_is_judged_by_its_version_its_content_and_its_order() {
        let already = Deduplicated(DedupeReason::AlreadyApplied);
        let stale = Deduplicated(DedupeReason::Stale);
        let first = Deduplicated(DedupeReason::FirstWins);
        let other = Refused(RefusedUnit::OtherContent);
        let parked = Refused(RefusedUnit::Parked);
        let same = arriving(2, "red", Some(5));
        let newer = arriving(2, "blue", Some(6));
        for (recorded, unit, [update, reject, keep_first]) in [
            (None, same, [Fresh; 3]),
            (Some(APPLIED), same, [already; 3]),
            (Some(APPLIED), newer, [Changed, other, first]),
            (Some(APPLIED), arriving(2, "blue", Some(5)), [Changed, other, first]),
            (Some(APPLIED), arriving(2, "blue", None), [Changed, other, first]),
            (Some(APPLIED), arriving(2, "blue", Some(4)), [stale; 3]),
            (Some(APPLIED), arriving(3, "red", Some(5)), [Changed; 3]),
            (Some(APPLIED), arriving(3, "blue", Some(6)), [Changed, other, first]),
            (Some(APPLIED), arriving(3, "blue", Some(4)), [stale; 3]),
            (Some(FAILED), same, [Fresh; 3]),
            (Some(FAILED), newer, [Fresh, other, first]),
            (Some(FAILED), arriving(2, "blue", Some(4)), [stale; 3]),
            (Some(PARKED), same, [parked; 3]),
            (Some(PARKED), newer, [Fresh, other, first]),
            (Some(PARKED), arriving(3, "red", Some(5)), [Fresh; 3]),
        ] {
            for (policy, expected) in
                [(OnChange::Update, update), (OnChange::Reject, reject), (OnChange::First, keep_first)]
            {
                let decision = unit.decide(recorded.as_ref(), policy);
                assert_eq!(decision, expected, "{recorded:?} {unit:?} {policy}");
            }
        }
    }

    #[test]
    fn a_failed_try_does_not_undo_applied_content() {
        let already = Deduplicated(DedupeReason::AlreadyApplied);
        let stale = Deduplicated(DedupeReason::Stale);
        let first = Deduplicated(DedupeReason::FirstWins);
        let other = Refused(RefusedUnit::OtherContent);
        let parked = Refused(RefusedUnit::Parked);
        let over = |version, status| Recorded {
            fingerprint: "blue",
            status,
            applied: Some(Applied { version, fingerprint: "red" }),
            ..APPLIED
        };
        let [failed, gave_up] = [UnitStatus::Failed(1), UnitStatus::Parked].map(|status| over(2, status));
        let [older, older_gave_up] =
            [UnitStatus::Failed(1), UnitStatus::Parked].map(|status| over(1, status));
        for (recorded, unit, [update, reject, keep_first]) in [
            (failed, arriving(2, "red", Some(5)), [already; 3]),
            (failed, arriving(2, "red", None), [already; 3]),
            (failed, arriving(2, "red", Some(4)), [stale; 3]),
            (failed, arriving(2, "blue", Some(5)), [Changed, other, first]),
            (failed, arriving(2, "green", Some(6)), [Changed, other, first]),
            (failed, arriving(3, "red", Some(5)), [Changed; 3]),
            (gave_up, arriving(2, "red", Some(5)), [already; 3]),
            (gave_up, arriving(2, "blue", Some(5)), [parked, other, first]),
            (gave_up, arriving(3, "blue", Some(5)), [Changed, other, first]),
            (gave_up, arriving(2, "green", Some(5)), [Changed, other, first]),
            // A higher version failed with other content: what an older version applied is done again.
            (older, arriving(2, "red", Some(5)), [Changed; 3]),
            (older_gave_up, arriving(2, "red", Some(5)), [Changed; 3]),
        ] {
            for (policy, expected) in
                [(OnChange::Update, update), (OnChange::Reject, reject), (OnChange::First, keep_first)]
            {
                let decision = unit.decide(Some(&recorded), policy);
                assert_eq!(decision, expected, "{recorded:?} {unit:?} {policy}");
            }
        }
    }

    #[test]
    fn f40_a_worker_with_an_older_version_changes_nothing() {
        let older = arriving(1, "red", Some(9));
        for recorded in [APPLIED, FAILED, PARKED] {
            let refused = RefusedUnit::OlderWorker { recorded: 2, ours: 1 };
            assert_eq!(older.decide(Some(&recorded), OnChange::Update), Refused(refused));
        }
    }

    #[test]
    fn f38_a_poisoned_unit_is_tried_three_times_then_parked_for_the_operator() {
        let unit = arriving(2, "red", Some(5));
        let (mut state, mut row) = (UnitState::START, None);
        let mut story = Vec::new();
        for _ in 0..4 {
            let (event, status) = unit.after_failure(row.as_ref(), 3);
            state = state.apply(event).unwrap();
            assert_eq!(state, status.state());
            row = Some(Recorded { status, ..APPLIED });
            story.push(status);
        }
        let parked = UnitStatus::Parked;
        assert_eq!(story, [UnitStatus::Failed(1), UnitStatus::Failed(2), parked, parked]);
        assert_eq!(state.apply(UnitEvent::Applied), Ok(UnitState::Applied));
    }

    #[test]
    fn f38_corrected_content_has_all_its_tries() {
        let row = Recorded { status: UnitStatus::Failed(2), ..APPLIED };
        for (unit, expected) in [
            (arriving(2, "red", None), UnitStatus::Parked),
            (arriving(2, "mended", None), UnitStatus::Failed(1)),
            (arriving(3, "red", None), UnitStatus::Failed(1)),
        ] {
            assert_eq!(unit.after_failure(Some(&row), 3).1, expected, "{unit:?}");
        }
        let endless = Recorded { status: UnitStatus::Failed(u32::MAX), ..APPLIED };
        assert_eq!(arriving(2, "red", None).after_failure(Some(&endless), 0).1, UnitStatus::Parked);
    }
}
