//! The hand-written baseline: the same rows in the same tables, by plain statements over one connection, in batches.
//!
//! It is a yardstick, not a queue: no other worker may run beside it, and nothing is fenced, taken over, retried or deduplicated.
//! But each run keeps its own outcome and its own times, so endings are a list of rows, as they must be.

mod postgres;
mod sqlite;

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::Result;
use crate::scratch::{Plain, Scratch, Server};
use crate::subject::Drained;

/// The hand-written loop.
pub(crate) struct Raw {
    plain: Plain,
    job: i64,
    lease: i64,
}

/// A claimed run.
#[derive(sqlx_macros::FromRow)]
pub(crate) struct Taken {
    run: i64,
    #[expect(dead_code, reason = "read, because a job would need it")]
    key: String,
    #[expect(dead_code, reason = "read, because a job would need it")]
    payload: Option<String>,
}

/// A run that has ended.
pub(crate) struct Ended {
    run: i64,
    outcome: &'static str,
    started_at: i64,
}

impl Raw {
    pub(crate) async fn open(server: &Server, scratch: &Scratch) -> Result<Raw> {
        let mut plain = server.connect(scratch).await?;
        let job = plain.job("noop").await?;
        Ok(Raw { plain, job, lease: 0 })
    }

    pub(crate) async fn enqueue(&mut self, keys: &[String], batch: usize) -> Result<Duration> {
        let begun = Instant::now();
        for chunk in keys.chunks(batch) {
            match &mut self.plain {
                Plain::Sqlite(connection) => sqlite::enqueue(connection, self.job, chunk).await?,
                Plain::Postgres(connection) => postgres::enqueue(connection, self.job, chunk).await?,
            }
        }
        Ok(begun.elapsed())
    }

    /// Claims, does nothing, and records, until nothing is left.
    pub(crate) async fn drain(&mut self, batch: usize) -> Result<Drained> {
        let begun = Instant::now();
        let mut runs = 0;
        loop {
            self.lease += 1;
            let (job, lease, limit) = (self.job, self.lease, i64::try_from(batch)?);
            let taken = match &mut self.plain {
                Plain::Sqlite(connection) => sqlite::claim(connection, job, lease, limit).await?,
                Plain::Postgres(connection) => postgres::claim(connection, job, lease, limit).await?,
            };
            if taken.is_empty() {
                return Ok(Drained { runs, took: begun.elapsed() });
            }
            runs += u32::try_from(taken.len())?;
            let ended: Vec<Ended> = taken.iter().map(|taken| Ended::now(taken.run)).collect();
            match &mut self.plain {
                Plain::Sqlite(connection) => sqlite::finish(connection, job, lease, &ended).await?,
                Plain::Postgres(connection) => postgres::finish(connection, job, lease, &ended).await?,
            }
        }
    }

    pub(crate) async fn close(self) -> Result<()> {
        self.plain.close().await
    }
}

impl Ended {
    fn now(run: i64) -> Ended {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Ended { run, outcome: "done", started_at: i64::try_from(since.as_micros()).unwrap_or(i64::MAX) }
    }
}
