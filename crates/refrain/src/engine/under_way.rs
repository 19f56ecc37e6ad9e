//! The runs that a worker has in hand: how many, how to end each, and who must be kept apart.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::executor::Interruption;
use super::heartbeat::{Heartbeat, Pulse};
use super::isolation::{Isolation, isolation};
use super::service::Wake;

/// The runs in hand, shared between a worker and its tasks.
#[derive(Clone, Default)]
pub(crate) struct UnderWay {
    state: Arc<Mutex<State>>,
    count: Arc<watch::Sender<usize>>,
}

#[derive(Default)]
struct State {
    attempts: HashMap<Attempt, watch::Sender<Option<Interruption>>>,
    apart: HashMap<Attempt, (Isolation, Instant)>,
}

/// A run and the number of its attempt: one that went back to the queue may be claimed again before its old task is gone.
pub(crate) type Attempt = (i64, i32);

/// An attempt in hand; dropped, it is let go, however its task ended.
pub(crate) struct InHand {
    under_way: UnderWay,
    attempt: Attempt,
    pub(crate) interruption: watch::Receiver<Option<Interruption>>,
}

impl Drop for InHand {
    fn drop(&mut self) {
        self.under_way.end(self.attempt);
    }
}

impl UnderWay {
    /// Takes an attempt in hand.
    pub(crate) fn begin(&self, run: i64, number: i32, suspicion: u32) -> InHand {
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
        InHand { under_way: self.clone(), attempt, interruption }
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

    /// The attempts in hand.
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

    /// Ends all runs, or those that are named.
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

    /// Waits until nothing is in hand.
    pub(crate) async fn nothing(&self) {
        let mut count = self.count.subscribe();
        // The sender lives as long as we do, so there is always an answer.
        let _ = count.wait_for(|count| *count == 0).await;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Passes on what the heartbeat says: runs to end, or all of them. A thread that is gone says nothing more, and nothing renews
/// the lease: that is the end of all of them too.
pub(super) fn listen(heartbeat: &Heartbeat, under_way: &UnderWay, wake: &Wake) -> JoinHandle<()> {
    let (mut pulse, under_way, wake) = (heartbeat.pulse.clone(), under_way.clone(), wake.clone());
    tokio::spawn(async move {
        loop {
            let is_gone = pulse.changed().await.is_err();
            let Pulse { is_lost, cancelled } = pulse.borrow_and_update().clone();
            let is_lost = is_lost || is_gone;
            if is_lost {
                under_way.interrupt(Interruption::Lost, None);
            }
            under_way.interrupt(Interruption::Cancelled, Some(&cancelled));
            wake.wake();
            if is_lost {
                return;
            }
        }
    })
}
