//! Repeats a step that met a lock, a conflict or a lost answer.
//!
//! A step is a whole transaction that may be executed twice. It is repeated a few times and for a limited
//! time: each try may last as long as its deadline if a server does not answer, and the caller may have to
//! stop meanwhile.

use std::time::{Duration, Instant};

use refrain_core::random::{SystemRandom, duration_up_to};

use super::{DatabaseError, Result};

const LONGEST_PAUSE: Duration = Duration::from_millis(500);
/// After this time there is only one more try.
const LONGEST: Duration = Duration::from_secs(20);

/// Counts the repetitions of a step, for loops that decide themselves what may be repeated.
#[derive(Debug)]
pub(crate) struct Repeats {
    max: u32,
    repeated: u32,
}

impl Repeats {
    /// How often a step is repeated by default.
    pub(crate) const MAX: u32 = 8;

    /// Repeats a step this often at most.
    pub(crate) const fn up_to(max: u32) -> Repeats {
        Repeats { max, repeated: 0 }
    }

    /// Waits before the next try. False, without waiting, if no try is left.
    pub(crate) async fn again(&mut self) -> bool {
        let is_left = self.repeated < self.max;
        if is_left {
            pause(self.repeated).await;
            self.repeated += 1;
        }
        is_left
    }
}

/// Repeats a step while it meets locks, conflicts and lost answers. The step is a whole transaction that may
/// be executed twice.
pub(crate) async fn retried<T, F>(mut step: impl FnMut() -> F) -> Result<T>
where
    F: Future<Output = Result<T>>,
{
    let mut pause = Duration::from_millis(5);
    let mut unknown = None;
    let began = Instant::now();
    for _ in 0..Repeats::MAX {
        if began.elapsed() > LONGEST {
            break;
        }
        // Boxed: the future of a transaction is large, and every future that awaits it would be as large.
        match Box::pin(step()).await {
            Err(error) if error.is_worth_a_retry() => {
                if let DatabaseError::Unknown(what) = &error {
                    unknown = Some(what.clone());
                }
                tracing::debug!(%error, "repeating a step");
                let drawn = duration_up_to(pause, &mut SystemRandom::new());
                tokio::time::sleep(drawn).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            settled => return settled.map_err(|error| still_unknown(error, unknown)),
        }
    }
    Box::pin(step()).await.map_err(|error| still_unknown(error, unknown))
}

/// Waits a little before the nth repetition.
pub(crate) async fn pause(again: u32) {
    let longest = Duration::from_millis(10) * 2u32.saturating_pow(again.min(6));
    tokio::time::sleep(duration_up_to(longest, &mut SystemRandom::new())).await;
}

/// The error of a step that may have been executed: the answer was lost, and its result could not be read
/// since.
pub(crate) fn still_unknown(error: DatabaseError, unknown: Option<String>) -> DatabaseError {
    match unknown {
        Some(what) if error.is_transient() => DatabaseError::Unknown(what),
        _ => error,
    }
}
