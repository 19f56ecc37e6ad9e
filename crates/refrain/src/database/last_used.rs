//! The connection to a server that was used last, kept for a moment for the next transaction.
//!
//! A pool pings a connection before it takes it back. A transaction that begins meanwhile finds none and
//! opens another one, so a process that runs one transaction after another has three connections where one is
//! enough, and each costs the server a process and a few milliseconds. So the last one stays beside the pool,
//! and is returned when no transaction has begun on it for a moment.
//!
//! It is kept only while the pool may open another one, and not for long: a transaction that has to wait for
//! a connection all the same waits for two moments at most. Only our own pools do this: a caller's pool may
//! test or reset its connections.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use sqlx::pool::PoolConnection;
use sqlx::{Connection as _, Pool};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use super::held::{DEADLINE, Holds, cut};

/// How long an unused connection is kept.
const MOMENT: Duration = Duration::from_millis(100);

/// How long a connection stays away from its pool, which closes old connections.
const LONGEST: Duration = Duration::from_mins(1);

/// The slot in which the connection is kept; clones share it.
pub(crate) struct LastUsed<DB: Holds>(Arc<Mutex<Slot<DB>>>);

struct Slot<DB: Holds> {
    kept: Option<Kept<DB>>,
    /// Returns it to its pool after a moment.
    watch: Option<JoinHandle<()>>,
}

/// A connection, and since when it is away from its pool.
pub(super) struct Taken<DB: Holds> {
    pub(super) connection: PoolConnection<DB>,
    pub(super) since: Instant,
}

struct Kept<DB: Holds> {
    /// Taken only when this is dropped.
    taken: Option<Taken<DB>>,
    at: Instant,
}

impl<DB: Holds> Taken<DB> {
    pub(super) async fn from(pool: &Pool<DB>) -> Result<Taken<DB>, sqlx::Error> {
        Ok(Taken::just_now(pool.acquire().await?))
    }

    pub(super) fn just_now(connection: PoolConnection<DB>) -> Taken<DB> {
        Taken { connection, since: Instant::now() }
    }

    /// Sends the unsent bytes as far as possible without waiting; the next statement reads the answer. True
    /// if all were sent.
    pub(super) fn is_sent(&mut self) -> bool {
        !matches!(self.connection.flush().now_or_never(), Some(Err(_))) && !self.connection.should_flush()
    }

    /// Returns it to its pool, which pings it; without a deadline that ping would wait for ever.
    pub(super) fn give_back(mut self, runtime: &Handle) {
        let back = self.connection.return_to_pool();
        runtime.spawn(async move {
            if !DB::IS_REMOTE {
                back.await;
            } else if timeout(DEADLINE, back).await.is_err() {
                tracing::debug!("a connection was closed: the server did not answer");
            }
        });
    }
}

impl<DB: Holds> LastUsed<DB> {
    fn slot(&self) -> MutexGuard<'_, Slot<DB>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn take(&self) -> Option<Taken<DB>> {
        self.slot().kept.take()?.taken.take()
    }

    /// Keeps a connection without an open transaction; returns it to the caller if it cannot be kept.
    pub(super) fn keep(&self, pool: &Pool<DB>, taken: Taken<DB>, runtime: &Handle) -> Option<Taken<DB>> {
        let mut slot = self.slot();
        // A pool that is being closed is marked first, and the kept connection is looked for afterwards.
        let is_wanted = !pool.is_closed() && pool.size() < pool.options().get_max_connections();
        if slot.kept.is_some() || !is_wanted || taken.since.elapsed() > LONGEST {
            return Some(taken);
        }
        slot.kept = Some(Kept { taken: Some(taken), at: Instant::now() });
        // The task that returns connections ended with its runtime.
        if slot.watch.as_ref().is_none_or(JoinHandle::is_finished) {
            slot.watch = Some(runtime.spawn(watch(self.clone())));
        }
        None
    }
}

async fn watch<DB: Holds>(last_used: LastUsed<DB>) {
    loop {
        sleep(MOMENT).await;
        let mut slot = last_used.slot();
        if slot.kept.as_ref().is_some_and(|kept| kept.at.elapsed() < MOMENT) {
            continue;
        }
        slot.watch = None;
        let left = slot.kept.take().and_then(|mut kept| kept.taken.take());
        drop(slot);
        if let Some(left) = left {
            left.give_back(&Handle::current());
        }
        return;
    }
}

/// A pool takes a connection back only in a runtime; without one the connection is closed.
impl<DB: Holds> Drop for Kept<DB> {
    fn drop(&mut self) {
        if let Some(taken) = self.taken.take() {
            cut(taken.connection);
        }
    }
}

impl<DB: Holds> Clone for LastUsed<DB> {
    fn clone(&self) -> LastUsed<DB> {
        LastUsed(self.0.clone())
    }
}

impl<DB: Holds> Default for LastUsed<DB> {
    fn default() -> LastUsed<DB> {
        LastUsed(Arc::new(Mutex::new(Slot { kept: None, watch: None })))
    }
}

impl<DB: Holds> fmt::Debug for LastUsed<DB> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LastUsed")
    }
}

#[cfg(test)]
mod tests {
    use sqlx::Sqlite;
    use sqlx::sqlite::{SqlitePool, SqlitePoolOptions};

    use super::*;

    /// A pool with this limit, one connection of it, and the slot in which that is kept.
    async fn one_of(connections: u32) -> (SqlitePool, Taken<Sqlite>, LastUsed<Sqlite>) {
        let pool =
            SqlitePoolOptions::new().max_connections(connections).connect("sqlite::memory:").await.unwrap();
        let taken = Taken::from(&pool).await.unwrap();
        (pool, taken, LastUsed::default())
    }

    #[tokio::test]
    async fn the_next_transaction_gets_the_kept_connection_and_opens_no_other() {
        let (pool, taken, last_used) = one_of(2).await;
        assert!(last_used.keep(&pool, taken, &Handle::current()).is_none());
        assert!(last_used.take().is_some());
        assert!(last_used.take().is_none());
        assert_eq!(pool.size(), 1);
    }

    #[tokio::test]
    async fn an_unused_connection_is_returned_to_its_pool() {
        let (pool, taken, last_used) = one_of(2).await;
        assert!(last_used.keep(&pool, taken, &Handle::current()).is_none());
        while pool.num_idle() == 0 {
            tokio::task::yield_now().await;
        }
        assert!(last_used.take().is_none());
        assert!(last_used.slot().watch.is_none());
    }

    #[tokio::test]
    async fn a_connection_that_a_transaction_may_wait_for_is_not_kept() {
        let (pool, taken, last_used) = one_of(1).await;
        assert!(last_used.keep(&pool, taken, &Handle::current()).is_some());
    }

    #[tokio::test]
    async fn one_connection_is_kept_and_a_second_is_not() {
        let (pool, taken, last_used) = one_of(3).await;
        let second = Taken::from(&pool).await.unwrap();
        assert!(last_used.keep(&pool, taken, &Handle::current()).is_none());
        assert!(last_used.keep(&pool, second, &Handle::current()).is_some());
    }

    #[tokio::test]
    async fn a_connection_is_kept_neither_by_a_closing_pool_nor_too_long() {
        let (pool, mut taken, last_used) = one_of(2).await;
        taken.since -= LONGEST * 2;
        let mut old = last_used.keep(&pool, taken, &Handle::current()).unwrap();
        old.since = Instant::now();
        let closing = pool.close();
        old = last_used.keep(&pool, old, &Handle::current()).unwrap();
        old.give_back(&Handle::current());
        closing.await;
    }

    #[tokio::test]
    async fn a_connection_that_is_used_now_and_then_stays_kept() {
        let (pool, taken, last_used) = one_of(2).await;
        tokio::time::pause();
        assert!(last_used.keep(&pool, taken, &Handle::current()).is_none());
        for _ in 0..5 {
            tokio::task::yield_now().await;
            tokio::time::advance(MOMENT * 3 / 5).await;
            let again = last_used.take().unwrap();
            assert!(last_used.keep(&pool, again, &Handle::current()).is_none());
        }
    }

    #[test]
    fn a_watch_that_has_ended_with_its_runtime_is_followed_by_another_one() {
        let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let first = runtime();
        let (pool, taken, last_used) = first.block_on(one_of(2));
        assert!(last_used.keep(&pool, taken, first.handle()).is_none());
        drop(first);
        runtime().block_on(async {
            let taken = last_used.take().unwrap();
            assert!(last_used.keep(&pool, taken, &Handle::current()).is_none());
            assert!(!last_used.slot().watch.as_ref().unwrap().is_finished(), "no watch would give it back");
        });
    }

    #[test]
    fn a_kept_connection_is_closed_when_its_runtime_has_ended() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let last_used = runtime.block_on(async {
            let (pool, taken, last_used) = one_of(2).await;
            assert!(last_used.keep(&pool, taken, &Handle::current()).is_none());
            last_used
        });
        drop(runtime);
        drop(last_used);
    }
}
