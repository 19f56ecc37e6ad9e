//! The attempts that a worker is running: how many, how to interrupt each, and which must be isolated.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::executor::Interruption;
use super::heartbeat::{Heartbeat, Pulse};
use super::isolation::{Isolation, isolation};
use super::service::Wake;

/// The running attempts, shared between a worker and its tasks.
#[derive(Clone, Default)]
pub(crate) struct RunningAttempts {
    state: Arc<Mutex<State>>,
    count: Arc<watch::Sender<usize>>,
}

#[derive(Default)]
struct State {
    attempts: HashMap<Attempt, watch::Sender<Option<Interruption>>>,
    apart: HashMap<Attempt, (Isolation, Instant)>,
}

/// A run and the number of its attempt: a run that went back to the queue may be claimed again before its old task is gone.
pub(crate) type Attempt = (i64, i32);

/// A running attempt. It counts as running until this is dropped, however its task ends.
pub(crate) struct RunningAttempt {
    running: RunningAttempts,
    attempt: Attempt,
    pub(crate) interruption: watch::Receiver<Option<Interruption>>,
}

impl Drop for RunningAttempt {
    fn drop(&mut self) {
        self.running.end(self.attempt);
    }
}

impl RunningAttempts {
    /// Records that an attempt runs.
    pub(crate) fn begin(&self, run: i64, number: i32, suspicion: u32) -> RunningAttempt {
        let (sender, interruption) = watch::channel(None);
        let attempt = (run, number);
        let mut state = self.state();
        state.attempts.insert(attempt, sender);
        match isolation(suspicion) {
            Isolation::None => {}
            apart => {
                state.apart.insert(attempt, (apart, Instant::now()));
            }
        }
        self.count.send_replace(state.attempts.len());
        RunningAttempt { running: self.clone(), attempt, interruption }
    }

    fn end(&self, attempt: Attempt) {
        let mut state = self.state();
        state.attempts.remove(&attempt);
        state.apart.remove(&attempt);
        self.count.send_replace(state.attempts.len());
    }

    pub(crate) fn len(&self) -> usize {
        self.state().attempts.len()
    }

    /// The running attempts.
    pub(crate) fn attempts(&self) -> HashSet<Attempt> {
        self.state().attempts.keys().copied().collect()
    }

    /// How many more may begin, of `slots` in all.
    pub(crate) fn room(&self, slots: usize) -> usize {
        let state = self.state();
        let is_quiet = state.apart.values().any(|(apart, since)| match apart {
            Isolation::None => false,
            Isolation::Quiet(period) => since.elapsed() < *period,
            Isolation::Alone => true,
        });
        if is_quiet { 0 } else { slots.saturating_sub(state.attempts.len()) }
    }

    /// Interrupts all attempts, or those of the given runs.
    pub(crate) fn interrupt(&self, why: Interruption, only: Option<&[i64]>) {
        let state = self.state();
        let meant = |run: i64| only.is_none_or(|only| only.contains(&run));
        for (_, sender) in state.attempts.iter().filter(|((run, _), _)| meant(*run)) {
            // The first reason counts.
            sender.send_if_modified(|now| {
                let is_first = now.is_none();
                now.get_or_insert(why);
                is_first
            });
        }
    }

    /// Waits until no attempt is running.
    pub(crate) async fn nothing(&self) {
        let mut count = self.count.subscribe();
        // The sender lives as long as `self`, so this cannot fail.
        let _ = count.wait_for(|count| *count == 0).await;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Interrupts attempts as the heartbeat reports: those of cancelled runs, or all if the lease is lost. If the thread of the heartbeat
/// is gone, no lease is renewed any more, and all attempts are interrupted, too.
pub(super) fn listen(heartbeat: &Heartbeat, running: &RunningAttempts, wake: &Wake) -> JoinHandle<()> {
    let (mut pulse, running, wake) = (heartbeat.pulse.clone(), running.clone(), wake.clone());
    tokio::spawn(async move {
        loop {
            let is_gone = pulse.changed().await.is_err();
            let Pulse { is_lost, cancelled } = pulse.borrow_and_update().clone();
            let is_lost = is_lost || is_gone;
            if is_lost {
                running.interrupt(Interruption::Lost, None);
            }
            running.interrupt(Interruption::Cancelled, Some(&cancelled));
            wake.wake();
            if is_lost {
                return;
            }
        }
    })
}
