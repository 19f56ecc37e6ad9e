//! Serve: schedulers, workers and rescuers, until stopped.

use std::future::IntoFuture;
use std::pin::Pin;

use super::Refrain;
use crate::engine::Engine;
use crate::engine::finisher::Counts;
use crate::engine::service::Stop;
use crate::engine::vitals::Unwell;
use crate::error::Error;
use crate::store::{Reality, StoreError};

/// An engine that serves while it is awaited, until it is stopped.
pub struct Serving {
    engine: Engine,
    stop: Stop,
}

/// Stops the engine.
#[derive(Debug, Clone)]
pub struct StopHandle(Stop);

impl Serving {
    /// A handle that stops it.
    pub fn stop_handle(&self) -> StopHandle {
        StopHandle::of(&self.stop)
    }
}

impl StopHandle {
    pub(super) fn of(stop: &Stop) -> StopHandle {
        StopHandle(stop.clone())
    }

    /// Begins nothing new, and lets running attempts end for as long as the grace allows.
    pub fn drain(&self) {
        self.0.drain();
    }

    /// Returns running attempts to the queue, and ends.
    pub fn stop_now(&self) {
        self.0.now();
    }
}

impl IntoFuture for Serving {
    type Output = Result<Counts, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            match self.engine.store.reality {
                Reality::Real => {
                    tracing::info!(store = self.engine.store.address(), "serving");
                    Ok(Box::pin(self.engine.serve(self.stop)).await?)
                }
                Reality::Simulated => Err(StoreError::Simulated.into()),
            }
        })
    }
}

impl Refrain {
    /// Opens windows when they are due and does the runs that may begin, until it is stopped. Any number of processes may do
    /// this on one store, unless it is simulated.
    ///
    /// ```no_run
    /// # async fn serve(refrain: refrain::Refrain) -> Result<(), refrain::Error> {
    /// let serving = refrain.serve();
    /// let stop = serving.stop_handle();
    /// tokio::spawn(async move {
    ///     // … wait for a signal, then:
    ///     stop.drain();
    /// });
    /// let counts = serving.await?;
    /// println!("{} runs ended here", counts.ended);
    /// # Ok(())
    /// # }
    /// ```
    pub fn serve(&self) -> Serving {
        Serving { engine: self.engine.clone(), stop: Stop::new() }
    }

    /// Whether this process is ready to work: its heartbeat was written to the store within the last lease, and every
    /// loop (scheduler, worker, rescuer, relay) has ticked when it was due, within two leases. Answers without a
    /// query.
    pub fn is_ready(&self) -> Result<(), Unwell> {
        self.engine.vitals.ready()
    }

    /// The databases of the project from which no intents are relayed at present, by their names: they did not answer
    /// when the files were read, and have not since.
    pub fn databases_away(&self) -> Vec<String> {
        self.engine.unattached.names()
    }

    /// Whether the loops of this process are alive: none has ended by itself, and each has completed a round within
    /// ten leases. An unreachable store does not change that.
    pub fn is_alive(&self) -> Result<(), Unwell> {
        self.engine.vitals.alive()
    }
}
