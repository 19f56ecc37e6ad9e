//! The runs that a worker has in hand: how many, how to end each, and who must be kept apart.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::watch;

use super::executor::Interruption;
use super::isolation::{Isolation, isolation};

/// The runs in hand, shared between a worker and its tasks.
#[derive(Clone, Default)]
pub(crate) struct UnderWay {
    state: Arc<Mutex<State>>,
    count: Arc<watch::Sender<usize>>,
}

#[derive(Default)]
struct State {
    runs: HashMap<i64, watch::Sender<Option<Interruption>>>,
    apart: HashMap<i64, (Isolation, Instant)>,
}

impl UnderWay {
    /// Takes a run in hand. Gives where its task hears that it is to end.
    pub(crate) fn begin(&self, run: i64, suspicion: u32) -> watch::Receiver<Option<Interruption>> {
        let (sender, receiver) = watch::channel(None);
        let mut state = self.state();
        state.runs.insert(run, sender);
        match isolation(suspicion) {
            Isolation::None => {}
            apart => {
                state.apart.insert(run, (apart, Instant::now()));
            }
        }
        self.count.send_replace(state.runs.len());
        receiver
    }

    /// Lets a run go.
    pub(crate) fn end(&self, run: i64) {
        let mut state = self.state();
        state.runs.remove(&run);
        state.apart.remove(&run);
        self.count.send_replace(state.runs.len());
    }

    pub(crate) fn len(&self) -> usize {
        self.state().runs.len()
    }

    /// How many more may begin, of `slots` in all.
    pub(crate) fn room(&self, slots: usize) -> usize {
        let state = self.state();
        let is_quiet = state.apart.values().any(|(apart, since)| match apart {
            Isolation::None => false,
            Isolation::Quiet(period) => since.elapsed() < *period,
            Isolation::Alone => true,
        });
        if is_quiet { 0 } else { slots.saturating_sub(state.runs.len()) }
    }

    /// Ends all runs, or those that are named.
    pub(crate) fn interrupt(&self, why: Interruption, only: Option<&[i64]>) {
        let state = self.state();
        for (_, sender) in state.runs.iter().filter(|(run, _)| only.is_none_or(|only| only.contains(run))) {
            sender.send_if_modified(|now| now.replace(why).is_none());
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
