//! Retries: how long a run waits, when it gives up, and that a thousand do not return at once.

use std::time::Duration;

use proptest::prelude::*;
use refrain_core::retry::{Again, AttemptFailure, Backoff, GiveUp, Retry};

const SECOND: Duration = Duration::from_secs(1);

fn five_tries() -> Retry {
    Retry { attempts: 5, backoff: Backoff { min: 30 * SECOND, max: 120 * SECOND } }
}

#[test]
fn the_longest_wait_doubles_up_to_its_limit() {
    let backoff = five_tries().backoff;
    for (attempt, seconds) in [(0, 30), (1, 30), (2, 60), (3, 120), (4, 120), (u32::MAX, 120)] {
        assert_eq!(backoff.longest_wait(attempt), Duration::from_secs(seconds), "attempt {attempt}");
    }
    let upside_down = Backoff { min: 60 * SECOND, max: SECOND };
    assert_eq!(upside_down.longest_wait(1), SECOND);
    let tiny = Backoff { min: Duration::from_nanos(1), max: Duration::MAX };
    assert_eq!(tiny.longest_wait(41), Duration::from_nanos(1 << 40));
    assert_eq!(tiny.longest_wait(u32::MAX), Duration::MAX);
}

#[test]
fn a_failed_attempt_is_tried_again_or_given_up_for_a_reason() {
    let first = AttemptFailure::of_attempt(1);
    for (failure, expected) in [
        (first, None),
        (AttemptFailure::of_attempt(4), None),
        (AttemptFailure::of_attempt(5), Some(GiveUp::AttemptsUsed)),
        (AttemptFailure::of_attempt(u32::MAX), Some(GiveUp::AttemptsUsed)),
        (AttemptFailure { retryable: false, ..first }, Some(GiveUp::NotRetryable)),
        (AttemptFailure { deadline: Some(SECOND), ..first }, None),
        (AttemptFailure { deadline: Some(Duration::ZERO), ..first }, Some(GiveUp::Deadline)),
        (
            AttemptFailure { deadline: Some(SECOND), not_before: Some(2 * SECOND), ..first },
            Some(GiveUp::Deadline),
        ),
        (AttemptFailure { deadline: Some(3 * SECOND), not_before: Some(2 * SECOND), ..first }, None),
        (AttemptFailure { not_before: Some(Duration::MAX), ..first }, None),
    ] {
        match (five_tries().after(&failure, 1), expected) {
            (Again::After(_), None) => {}
            (Again::GiveUp(reason), Some(expected)) => assert_eq!(reason, expected, "{failure:?}"),
            (again, expected) => panic!("{failure:?}: {again:?}, not {expected:?}"),
        }
    }
}

#[test]
fn the_default_is_three_attempts_within_half_a_minute_to_an_hour() {
    let retry = Retry::default();
    assert_eq!(retry.attempts, 3);
    assert_eq!(retry.backoff, Backoff { min: 30 * SECOND, max: 3600 * SECOND });
}

#[test]
fn the_same_run_waits_equally_long_in_every_release() {
    let waits =
        [1, 2, 3, 4].map(|attempt| five_tries().after(&AttemptFailure::of_attempt(attempt), 42).to_string());
    assert_eq!(waits, ["again in 14.8s", "again in 7.0s", "again in 31.7s", "again in 66.7s"]);
}

#[test]
fn f49_a_thousand_runs_that_failed_at_once_do_not_come_back_at_once() {
    for not_before in [None, Some(600 * SECOND)] {
        let failure = AttemptFailure { not_before, ..AttemptFailure::of_attempt(3) };
        let mut per_second = [0_u32; 121];
        let mut total = Duration::ZERO;
        for run in 0..1000 {
            let Again::After(wait) = five_tries().after(&failure, run) else { panic!("tries are left") };
            let spread = wait.checked_sub(not_before.unwrap_or_default()).unwrap();
            per_second[usize::try_from(spread.as_secs()).unwrap()] += 1;
            total += spread;
        }
        let busiest = per_second.iter().max().unwrap();
        assert!(*busiest <= 30, "{busiest} of 1000 came back in the same second");
        let mean = (total / 1000).as_secs();
        assert!((56..=64).contains(&mean), "the mean is {mean} s, not half of two minutes");
    }
}

fn durations() -> impl Strategy<Value = Duration> {
    prop_oneof![
        (0..100_000_u64).prop_map(Duration::from_millis),
        any::<u64>().prop_map(Duration::from_secs),
        Just(Duration::MAX),
    ]
}

prop_compose! {
    fn retries()(attempts in any::<u32>(), min in durations(), max in durations()) -> Retry {
        Retry { attempts, backoff: Backoff { min, max } }
    }
}

prop_compose! {
    fn failures()(
        attempt in any::<u32>(),
        retryable in prop::bool::weighted(0.9),
        not_before in prop::option::of(durations()),
        deadline in prop::option::of(durations()),
    ) -> AttemptFailure {
        AttemptFailure { attempt, retryable, not_before, deadline }
    }
}

proptest! {
    #[test]
    fn a_wait_keeps_its_bounds_and_is_the_same_each_time(
        retry in retries(), failure in failures(), seed in any::<u64>()
    ) {
        let again = retry.after(&failure, seed);
        prop_assert_eq!(again, retry.after(&failure, seed));
        if let Again::After(wait) = again {
            prop_assert!(failure.retryable && failure.attempt < retry.attempts);
            let earliest = failure.not_before.unwrap_or_default();
            prop_assert!(wait >= earliest, "the other side asked for more patience");
            prop_assert!(wait <= earliest.saturating_add(retry.backoff.longest_wait(failure.attempt)));
            prop_assert!(failure.deadline.is_none_or(|deadline| wait <= deadline), "too late");
        }
    }

    #[test]
    fn the_longest_wait_never_shrinks_nor_passes_its_limit(retry in retries(), attempt in 1..200_u32) {
        let backoff = retry.backoff;
        prop_assert!(backoff.longest_wait(attempt) <= backoff.longest_wait(attempt + 1));
        prop_assert!(backoff.longest_wait(attempt) <= backoff.max);
    }
}
