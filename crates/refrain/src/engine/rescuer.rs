//! Takes over from workers that have not been heard of.
//!
//! A worker is looked at twice before it is taken over from, a heartbeat apart by our own clock: a machine that
//! wakes from sleep finds everybody expired, and everybody deserves the chance to say so themselves. On SQLite the
//! holder is ended first if it is a process of this machine: stopped in the middle of a transaction it would keep
//! the file locked for all.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::service::{Next, Service, Wake};
use crate::job::Jobs;
use crate::process::{Process, Standing};
use crate::store::take_over::{TakenOver, take_over};
use crate::store::workers::{Silent, is_heard_of, silent};
use crate::store::{Result, Store, StoreError};

/// The most silent workers that are looked at in one go.
const WORKERS: i64 = 100;

pub(crate) struct Rescuer {
    store: Store,
    jobs: Jobs,
    beat: Duration,
    seen: HashMap<i64, Instant>,
    workers: Wake,
}

impl Rescuer {
    pub(crate) fn new(store: Store, jobs: Jobs, beat: Duration, workers: Wake) -> Rescuer {
        Rescuer { store, jobs, beat, seen: HashMap::new(), workers }
    }

    /// Takes over from everybody who is silent now, and returns.
    pub(crate) async fn rescue_all(mut self) -> Result<()> {
        loop {
            let next = self.tick().await?;
            match next {
                Next::After(pause) if !self.seen.is_empty() => tokio::time::sleep(pause).await,
                _ => return Ok(()),
            }
        }
    }

    async fn rescue(&mut self, worker: &Silent) -> Result<Option<TakenOver>> {
        if self.store.database.is_sqlite() && !self.end_holder(worker).await? {
            return Ok(None);
        }
        take_over(&self.store, worker.id, &|job| self.jobs.now().retry_of(job)).await
    }

    /// Whoever still runs under a lease that has expired must not go on. A process that is heard of under another
    /// number has noticed by itself. False if it could not be ended.
    async fn end_holder(&mut self, worker: &Silent) -> Result<bool> {
        let Ok(process) = worker.process.parse::<Process>() else { return Ok(true) };
        let is_this = Process::this().is_ok_and(|this| this == process);
        if is_this
            || process.standing() != Standing::Alive
            || is_heard_of(&self.store, &worker.process).await?
        {
            return Ok(true);
        }
        let named = process.to_string();
        let ended = tokio::task::spawn_blocking(move || process.end()).await;
        match ended {
            Ok(Ok(_)) => {
                tracing::warn!(
                    worker = worker.id,
                    process = named,
                    "a process that was silent for too long was ended"
                );
                // It may have kept the file from all others, who are silent for no fault of theirs: they get their time.
                self.seen.clear();
                Ok(true)
            }
            Ok(Err(error)) => {
                tracing::error!(worker = worker.id, process = named, %error, "a silent process could not be ended");
                Ok(false)
            }
            Err(_) => Ok(false),
        }
    }

    /// A worker is given another heartbeat's time, unless its process is known to be gone.
    fn is_due(&mut self, worker: &Silent) -> bool {
        let since = *self.seen.entry(worker.id).or_insert_with(Instant::now);
        let process = worker.process.parse::<Process>();
        since.elapsed() >= self.beat || process.is_ok_and(|process| process.standing() == Standing::Gone)
    }
}

impl Service for Rescuer {
    const NAME: &'static str = "rescuer";
    type Error = StoreError;

    async fn tick(&mut self) -> Result<Next> {
        let silent = silent(&self.store, WORKERS).await?;
        self.seen.retain(|worker, _| silent.iter().any(|one| one.id == *worker));
        for worker in &silent {
            if !self.is_due(worker) {
                continue;
            }
            // One that cannot be rescued must not stand before the others.
            match self.rescue(worker).await {
                Ok(Some(TakenOver { runs, failed })) => {
                    tracing::warn!(worker = worker.id, runs, failed, "took over from a silent worker");
                    self.workers.wake();
                }
                Ok(None) => {}
                Err(error) => {
                    tracing::error!(worker = worker.id, %error, "a worker could not be taken over from");
                }
            }
        }
        Ok(Next::After(if self.seen.is_empty() { self.beat } else { self.beat / 4 }))
    }
}
