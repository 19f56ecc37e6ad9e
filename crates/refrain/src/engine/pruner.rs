//! Deletes payloads, messages and output after the retention time, a few runs at a time so that other writers never wait long.

use std::time::Duration;

use super::service::{Next, Service};
use crate::store::prune::prune;
use crate::store::{Result, Store, StoreError};

/// How long to pause after a pass over all runs.
const REST: Duration = Duration::from_hours(1);
/// How long to pause between two steps of a pass.
const PAUSE: Duration = Duration::from_millis(100);

pub(crate) struct Pruner {
    store: Store,
    keep: Duration,
    after: i64,
}

impl Pruner {
    pub(crate) fn new(store: Store, keep: Duration) -> Pruner {
        Pruner { store, keep, after: 0 }
    }
}

impl Service for Pruner {
    const NAME: &'static str = "pruner";
    type Error = StoreError;

    async fn tick(&mut self) -> Result<Next> {
        let pruned = prune(&self.store, self.after, self.keep, None).await?;
        self.after = if pruned.done { 0 } else { pruned.through };
        Ok(Next::After(if pruned.done { REST } else { PAUSE }))
    }
}
