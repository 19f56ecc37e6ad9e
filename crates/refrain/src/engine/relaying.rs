//! Starts a relay for each database, also for one that answers only later.
//!
//! Each has a loop of its own: a database that does not answer delays no other. A database that cannot be attached is an error of
//! this loop, which is logged and waits longer each time; success is logged, too.

use std::collections::HashSet;
use std::sync::Arc;

use tokio::task::JoinSet;

use super::loops::Loops;
use super::relay::Relay;
use super::service::{Next, Service, Stop, Wake};
use super::unattached::attached;
use super::{Engine, run_watched};
use crate::error::Error;

/// The relays of a process that serves. They end when this is dropped.
pub(super) struct Relaying {
    engine: Engine,
    loops: Loops,
    stop: Stop,
    started: HashSet<Arc<str>>,
    relays: JoinSet<()>,
}

impl Relaying {
    pub(super) fn new(engine: &Engine, loops: &Loops, stop: &Stop) -> Relaying {
        let (loops, stop) = (loops.clone(), stop.clone());
        let mut relaying =
            Relaying { engine: engine.clone(), loops, stop, started: HashSet::new(), relays: JoinSet::new() };
        relaying.start();
        relaying
    }

    fn start(&mut self) {
        for destination in self.engine.destinations.relayed().iter() {
            if self.started.insert(Arc::clone(&destination.id)) {
                let relay = Relay::new(&self.engine, std::slice::from_ref(destination));
                let relay = self.engine.watched(relay).counting_errors();
                let (loops, stop) = (self.loops.clone(), self.stop.clone());
                let poll = self.engine.settings.poll;
                let relaying = run_watched(relay, stop, Wake::default(), poll);
                self.relays.spawn(async move { drop(loops.watched(Relay::NAME, relaying).await) });
            }
        }
    }
}

impl Service for Relaying {
    const NAME: &'static str = "relaying";
    type Error = Error;

    async fn tick(&mut self) -> Result<Next, Error> {
        let mut left = Ok(Next::Idle);
        for database in self.engine.unattached.all() {
            // In a box: this future is rarely awaited, and would make that of the loop larger.
            match Box::pin(attached(&self.engine.store, &self.engine.project, &database)).await {
                Ok(destination) => {
                    self.engine.destinations.relay_too(destination);
                    self.engine.unattached.is_attached(&database);
                    let database = database.name.as_str();
                    tracing::info!(database, "database attached: its intents are relayed");
                }
                Err(error) => left = Err(error),
            }
        }
        self.start();
        left
    }
}
