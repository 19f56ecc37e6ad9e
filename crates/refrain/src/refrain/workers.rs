//! Workers, for readers.

use jiff::Timestamp;

use super::Refrain;
use crate::error::Error;
use crate::store::{instant, workers};

/// The most workers that are listed.
const WORKERS_MAX: i64 = 1_000;

/// A worker: a process that claims runs.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct WorkerRecord {
    /// Its number in the store.
    pub id: i64,
    /// Which process it is: boot, namespace, number and start time.
    pub process: String,
    /// When it began.
    pub started_at: Timestamp,
    /// When it counts as dead unless its heartbeat comes before; that comes three times as often.
    pub expires_at: Timestamp,
    /// How many runs it holds.
    pub runs: u64,
}

impl WorkerRecord {
    /// Whether its heartbeat is in time, by the clock of the store.
    pub fn is_alive(&self, now: Timestamp) -> bool {
        self.expires_at > now
    }

    /// The number of the process on its machine.
    pub fn pid(&self) -> Option<u32> {
        self.process.split('/').nth(2)?.parse().ok()
    }
}

impl Refrain {
    /// The workers that are alive, and the dead ones whose runs were not taken over yet. A worker that has left is not among
    /// them.
    pub async fn workers(&self) -> Result<Vec<WorkerRecord>, Error> {
        let rows = workers::list(self.store(), WORKERS_MAX).await?;
        let records = rows.into_iter().map(|row| {
            Ok(WorkerRecord {
                id: row.id,
                process: row.process,
                started_at: instant(row.started_at)?,
                expires_at: instant(row.expires_at)?,
                runs: u64::try_from(row.runs).unwrap_or_default(),
            })
        });
        records.collect()
    }

    /// The time by the clock of the store, which all machines share.
    pub async fn now(&self) -> Result<Timestamp, Error> {
        Ok(self.store().now().await?)
    }
}
