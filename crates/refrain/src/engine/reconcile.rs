//! What a worker does about runs that it holds in the store and does not know.
//!
//! There should be none. A task that panicked outside its job, an ending that the store refused for good, a claim that was
//! forgotten: each leaves a run leased to a worker that is alive. No rescuer takes it over, and its lane and its slot stay taken.
//! This file decides what becomes of such a run; the worker compares once per heartbeat.

use std::collections::HashSet;

use refrain_core::retry::{Again, AttemptFailure, Retry};
use refrain_core::state::{FailureReason, RunEvent};

use super::running::Attempt;
use crate::store::claim::HeldRun;
use crate::store::finish::{ClaimedAttempt, End, Ending};
use crate::store::queue_line::{JobNumber, Line};

const VANISHED: &str = "its task ended without a result";
const FORGOTTEN: &str = "its worker did not know of it";

/// The runs of `held` that are not `known`, and whether members of their lease were begun here.
pub(super) fn unknown(
    held: Vec<HeldRun>,
    known: &HashSet<Attempt>,
    is_begun: impl Fn(i64) -> bool,
) -> Vec<(HeldRun, bool)> {
    let unknown = held.into_iter().filter(|one| !known.contains(&(one.claimed.run, one.claimed.attempt)));
    unknown.map(|one| (is_begun(one.lease), one)).map(|(is_begun, one)| (one, is_begun)).collect()
}

/// How such an attempt ends. Its number is not used again in any case: what it began may still write. An attempt whose task is
/// gone has failed, or it would be begun and lost again without end; one that never began costs no try.
pub(super) fn ending(one: &HeldRun, job: JobNumber, was_begun: bool, retry: Retry) -> Ending {
    let claimed = &one.claimed;
    let (event, message) =
        if was_begun { (RunEvent::Errored, VANISHED) } else { (RunEvent::Stopped, FORGOTTEN) };
    let attempts = claimed.attempts().then(event.attempt());
    let again = if was_begun {
        retry.after(&AttemptFailure::of_attempt(attempts.spent), claimed.run.unsigned_abs())
    } else {
        Again::After(std::time::Duration::ZERO)
    };
    let message = Some(message.to_owned());
    let end = match again {
        Again::After(wait) => End::Again { event, attempts, wait: was_begun.then_some(wait), message },
        Again::GiveUp(_) => End::Closed { event: RunEvent::Failed, version: claimed.version, message },
    };
    let lane = claimed.lane.then(|| claimed.scope().to_owned());
    // For a run without a slot, none is freed.
    let held = ClaimedAttempt {
        run: claimed.run,
        job,
        line: Line(one.line),
        lease: one.lease,
        attempt: claimed.attempt,
        lane,
        slot: true,
    };
    Ending { held, started_at: None, end, units: None, clears_mark: false, reason: Some(FailureReason::Lost) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::claim::Claimed;
    use crate::store::queue_line::Priority;

    fn held(lease: i64, run: i64, attempt: i32, spent: i32) -> HeldRun {
        let claimed = Claimed {
            run,
            attempt,
            nonce: 0,
            spent,
            suspicion: 0,
            lane: false,
            key: run.to_string(),
            window_start: None,
            window_end: None,
            payload: None,
            version: None,
            redo: None,
        };
        HeldRun { lease, line: Line::of(Priority::Live, 1).0, claimed }
    }

    #[test]
    fn an_attempt_is_identified_by_its_run_and_number() {
        let all = vec![held(5, 1, 1, 0), held(5, 2, 1, 0), held(6, 3, 2, 0)];
        let known = HashSet::from([(1, 1), (2, 2)]);
        let found = unknown(all, &known, |lease| lease == 5);
        assert_eq!(found, [(held(5, 2, 1, 0), true), (held(6, 3, 2, 0), false)]);
    }

    #[test]
    fn a_task_that_is_gone_costs_a_try_and_a_claim_that_was_forgotten_does_not() {
        let retry = Retry { attempts: 2, ..Retry::default() };
        let table = [
            (0, true, "errored 4 spent 1 waits"),
            (1, true, "failed"),
            (0, false, "stopped 4 spent 0"),
            (1, false, "stopped 4 spent 1"),
        ];
        for (spent, was_begun, expected) in table {
            let decided = match ending(&held(5, 7, 3, spent), 1, was_begun, retry).end {
                End::Again { event, attempts, wait, .. } => {
                    let waits = if wait.is_some() { " waits" } else { "" };
                    format!("{event} {} spent {}{waits}", attempts.number, attempts.spent)
                }
                End::Closed { event, .. } => event.to_string(),
                End::GivenBack => "given back".to_owned(),
            };
            assert_eq!(decided, expected, "spent {spent}, begun: {was_begun}");
        }
    }
}
