//! Doing a step again that met a lock, a conflict or a lost answer.
//!
//! A step is a whole transaction that may be done twice. It is done again a few times and for a limited time: each try may
//! last as long as its deadline when a server does not answer, and whoever asked may be told to stop meanwhile.

use std::time::{Duration, Instant};

use refrain_core::random::{SystemRandom, duration_up_to};

use super::{DatabaseError, Result};

/// How often a step is done again before its caller hears of it.
const RETRIES: u32 = 8;
const LONGEST_PAUSE: Duration = Duration::from_millis(500);
/// After this time only the last try is left.
const LONGEST: Duration = Duration::from_secs(20);

/// Does a step again while it meets locks, conflicts and lost answers. The step is a whole transaction that may be
/// done twice.
pub(crate) async fn retried<T, F>(mut step: impl FnMut() -> F) -> Result<T>
where
    F: Future<Output = Result<T>>,
{
    let mut pause = Duration::from_millis(5);
    let mut unknown = None;
    let began = Instant::now();
    for _ in 0..RETRIES {
        if began.elapsed() > LONGEST {
            break;
        }
        // In a box: a transaction's future is large, and everything that waits for one would be as large.
        match Box::pin(step()).await {
            Err(error) if error.is_worth_a_retry() => {
                if let DatabaseError::Unknown(what) = &error {
                    unknown = Some(what.clone());
                }
                tracing::debug!(%error, "doing it again");
                let drawn = duration_up_to(pause, &mut SystemRandom::new());
                tokio::time::sleep(drawn).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            settled => return settled.map_err(|error| still_unknown(error, unknown)),
        }
    }
    Box::pin(step()).await.map_err(|error| still_unknown(error, unknown))
}

/// Waits a little before something is done again for the so-manieth time.
pub(crate) async fn pause(again: u32) {
    let longest = Duration::from_millis(10) * 2u32.saturating_pow(again.min(6));
    tokio::time::sleep(duration_up_to(longest, &mut SystemRandom::new())).await;
}

/// A step of which one answer was lost, and that could not be asked about since, may have been done.
pub(crate) fn still_unknown(error: DatabaseError, unknown: Option<String>) -> DatabaseError {
    match unknown {
        Some(what) if error.is_transient() => DatabaseError::Unknown(what),
        _ => error,
    }
}
