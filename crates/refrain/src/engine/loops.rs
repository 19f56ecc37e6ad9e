//! The loops of a process that serves, each in a task of its own.
//!
//! A loop runs until it is told to stop; an error does not end it (`service.rs`). A loop that ends all the same has met a bug of
//! Refrain. The rest of the process would look alive, and open no window, or take over from no worker. So the process begins
//! nothing new, and serving ends with an error: the service manager starts it again.

use std::sync::{Arc, OnceLock};

use tokio::task::JoinHandle;

use super::panics::unwound;
use super::service::{Phase, Stop};
use crate::store::{Result, StoreError};

/// Starts loops, and notices when one ends.
#[derive(Clone)]
pub(super) struct Loops {
    stop: Stop,
    ended: Arc<OnceLock<&'static str>>,
}

impl Loops {
    pub(super) fn new(stop: &Stop) -> Loops {
        Loops { stop: stop.clone(), ended: Arc::default() }
    }

    /// Starts a loop; returns its output, or none if it panicked.
    pub(super) fn spawn<T: Send + 'static>(
        &self,
        name: &'static str,
        work: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<Option<T>> {
        let loops = self.clone();
        tokio::spawn(async move { loops.watched(name, work).await })
    }

    /// Runs a loop in the task of the caller.
    pub(super) async fn watched<T>(&self, name: &'static str, work: impl Future<Output = T>) -> Option<T> {
        let output = unwound(work).await;
        if output.is_err() || self.stop.phase() < Phase::Draining {
            let panic = output.as_ref().err().map_or("", String::as_str);
            tracing::error!(service = name, panic, "a loop ended by itself; this process stops");
            let _ = self.ended.set(name);
            self.stop.drain();
        }
        output.ok()
    }

    /// An error if one of the loops has ended by itself.
    pub(super) fn outcome(&self) -> Result<()> {
        self.ended.get().map_or(Ok(()), |name| Err(StoreError::LoopEnded(name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_a_loop_that_ends_by_itself_stops_the_others() {
        for (name, is_told) in [("returns", false), ("panics", false), ("panics", true), ("returns", true)] {
            let stop = Stop::new();
            let loops = Loops::new(&stop);
            if is_told {
                stop.drain();
            }
            let output = loops.spawn(name, async move { assert_ne!(name, "panics", "a test") });
            assert_eq!(output.await.unwrap().is_some(), name == "returns");
            let is_fine = is_told && name == "returns";
            assert_eq!((stop.phase(), loops.outcome().is_ok()), (Phase::Draining, is_fine), "{name}");
        }
    }
}
