//! The loops of a process that serves, each in a task of its own.
//!
//! A loop goes on until it is told to stop; an error does not end it (`service.rs`). One that ends all the same has met a fault of
//! ours. What is left would look alive, and open no window, or take over from no worker. So it is told to begin nothing new, and
//! serving ends with an error: what has started the process starts it again.

use std::sync::{Arc, OnceLock};

use tokio::task::JoinHandle;

use super::panics::unwound;
use super::service::{Phase, Stop};
use crate::store::{Result, StoreError};

/// Starts loops, and hears of their ends.
#[derive(Clone)]
pub(super) struct Loops {
    stop: Stop,
    ended: Arc<OnceLock<&'static str>>,
}

impl Loops {
    pub(super) fn new(stop: &Stop) -> Loops {
        Loops { stop: stop.clone(), ended: Arc::default() }
    }

    /// Starts a loop; gives what it came to, unless that is a panic.
    pub(super) fn spawn<T: Send + 'static>(
        &self,
        name: &'static str,
        work: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<Option<T>> {
        let loops = self.clone();
        tokio::spawn(async move { loops.watched(name, work).await })
    }

    /// The same for one that goes on here.
    pub(super) async fn watched<T>(&self, name: &'static str, work: impl Future<Output = T>) -> Option<T> {
        let came_to = unwound(work).await;
        if came_to.is_err() || self.stop.phase() < Phase::Draining {
            let panic = came_to.as_ref().err().map_or("", String::as_str);
            tracing::error!(service = name, panic, "a loop has ended by itself; this process ends");
            let _ = self.ended.set(name);
            self.stop.drain();
        }
        came_to.ok()
    }

    /// An error if one of them has ended by itself.
    pub(super) fn outcome(&self) -> Result<()> {
        self.ended.get().map_or(Ok(()), |name| Err(StoreError::LoopEnded(name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_loop_that_ends_before_it_is_told_to_stops_the_others_and_one_that_is_told_does_not() {
        for (name, is_told) in [("returns", false), ("panics", false), ("panics", true), ("returns", true)] {
            let stop = Stop::new();
            let loops = Loops::new(&stop);
            if is_told {
                stop.drain();
            }
            let came_to = loops.spawn(name, async move { assert_ne!(name, "panics", "a test") });
            assert_eq!(came_to.await.unwrap().is_some(), name == "returns");
            let is_fine = is_told && name == "returns";
            assert_eq!((stop.phase(), loops.outcome().is_ok()), (Phase::Draining, is_fine), "{name}");
        }
    }
}
