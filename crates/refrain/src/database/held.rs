//! A transaction together with its connection: decides which connections go back to their pool, and which are
//! closed.
//!
//! A pool assumes that every returned connection can be used again. That is wrong in three cases, and each of
//! them blocks a process for good:
//!
//! - **The server does not answer.** Its host died without closing the connection, or its IP address moved:
//!   the client receives nothing, and a caller that waits for an answer waits for ever. So every message has a
//!   deadline, and a connection that missed one is closed. The idle connections in the pool most likely lead to
//!   the same server, so they are closed too.
//! - **A future was dropped half-way.** The state of the connection is unknown; the transaction may be open.
//! - **SQLite ended the transaction by itself** (a full disk, an I/O error): the driver still counts it as
//!   open, and begins no other on that connection.
//!
//! The driver's own `Transaction` cannot be used for this: it hides its connection and returns it without a
//! deadline. Nothing outside of this file begins a transaction (tidy checks that).

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::{Pool, Postgres, SqlSafeStr as _, SqlStr, Sqlite};
use sqlx_core::transaction::TransactionManager as _;
use tokio::runtime::Handle;
use tokio::time::timeout;

use super::error::{self, DatabaseError};
use super::last_used::{LastUsed, Taken};
use crate::lease::Lease;

/// How long a server may take to answer if no lease sets a limit.
pub(crate) const DEADLINE: Duration = Duration::from_secs(15);

/// A database whose connections can be held.
pub trait Holds: sqlx::Database {
    /// Whether there is a network in between, which can lose messages silently.
    const IS_REMOTE: bool;
    /// Begins a transaction that must not write. A file is opened so.
    const BEGIN_TO_LOOK: &'static str;
}

impl Holds for Sqlite {
    const IS_REMOTE: bool = false;
    const BEGIN_TO_LOOK: &'static str = "BEGIN";
}

impl Holds for Postgres {
    const IS_REMOTE: bool = true;
    const BEGIN_TO_LOOK: &'static str = "BEGIN READ ONLY";
}

/// Begins a transaction in a pool of any kind, for statements of a job.
pub(crate) async fn begun_in<DB: Holds>(pool: &Pool<DB>) -> Result<PooledTransaction<DB>, sqlx::Error> {
    begun_with(pool, "BEGIN").await
}

/// The same for statements that must not write.
pub(crate) async fn begun_to_look_in<DB: Holds>(
    pool: &Pool<DB>,
) -> Result<PooledTransaction<DB>, sqlx::Error> {
    begun_with(pool, DB::BEGIN_TO_LOOK).await
}

async fn begun_with<DB: Holds>(
    pool: &Pool<DB>,
    how: &'static str,
) -> Result<PooledTransaction<DB>, sqlx::Error> {
    let mut begun = PooledTransaction::begin(pool, None, how.into_sql_str(), Some(DEADLINE)).await?;
    begun.lift_deadline();
    Ok(begun)
}

/// The state of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// A transaction is open, and no statement is running.
    Open,
    /// A statement was sent, and its answer has not arrived.
    Busy,
    /// It cannot be used again.
    Broken,
    /// The transaction is over.
    Over,
}

/// A transaction on a connection of a pool. Dropped, it is rolled back.
pub struct PooledTransaction<DB: Holds> {
    taken: Option<Taken<DB>>,
    pool: Pool<DB>,
    /// Where the connection is kept afterwards. None if a caller's statement may still be running on it.
    last_used: Option<LastUsed<DB>>,
    state: State,
    /// How long each answer may take; none while a user's statements are executed, which have a limit of
    /// their own.
    deadline: Option<Duration>,
    /// If it is set, the transaction is committed only while this lease is valid.
    lease: Option<Lease>,
}

impl<DB: Holds> PooledTransaction<DB> {
    /// Begins a transaction on the connection that was used last, or on one of the pool.
    pub(crate) async fn begin(
        pool: &Pool<DB>,
        last_used: Option<&LastUsed<DB>>,
        how: SqlStr,
        deadline: Option<Duration>,
    ) -> Result<PooledTransaction<DB>, sqlx::Error> {
        // All idle connections may be broken; the last try opens a new one.
        for _ in 0..pool.size() {
            match PooledTransaction::on(pool, last_used, deadline).await?.begun(how.clone()).await {
                Err(sqlx::Error::InvalidSavePointStatement | sqlx::Error::BeginFailed) => {
                    tracing::debug!("a connection could not begin a transaction; taking another one");
                }
                begun => return begun,
            }
        }
        PooledTransaction::of(pool, last_used, Taken::from(pool).await?, deadline).begun(how).await
    }

    /// Begins a transaction on a connection that was taken from the pool before.
    pub(crate) async fn begin_on(
        pool: &Pool<DB>,
        connection: PoolConnection<DB>,
        how: SqlStr,
    ) -> Result<PooledTransaction<DB>, sqlx::Error> {
        PooledTransaction::of(pool, None, Taken::just_now(connection), None).begun(how).await
    }

    /// A connection without an open transaction: each statement is its own transaction.
    pub(crate) async fn bare(
        pool: &Pool<DB>,
        last_used: Option<&LastUsed<DB>>,
        deadline: Duration,
    ) -> Result<PooledTransaction<DB>, sqlx::Error> {
        loop {
            let mut held = PooledTransaction::on(pool, last_used, Some(deadline)).await?;
            if DB::TransactionManager::get_transaction_depth(&held) == 0 {
                return Ok(held);
            }
            held.state = State::Broken;
        }
    }

    async fn on(
        pool: &Pool<DB>,
        last_used: Option<&LastUsed<DB>>,
        deadline: Option<Duration>,
    ) -> Result<PooledTransaction<DB>, sqlx::Error> {
        let taken = match last_used.and_then(LastUsed::take) {
            Some(taken) => taken,
            None => Taken::from(pool).await?,
        };
        Ok(PooledTransaction::of(pool, last_used, taken, deadline))
    }

    fn of(
        pool: &Pool<DB>,
        last_used: Option<&LastUsed<DB>>,
        taken: Taken<DB>,
        deadline: Option<Duration>,
    ) -> PooledTransaction<DB> {
        let deadline = deadline.filter(|_| DB::IS_REMOTE);
        let (taken, pool, last_used) = (Some(taken), pool.clone(), last_used.cloned());
        PooledTransaction { taken, pool, last_used, state: State::Open, deadline, lease: None }
    }

    async fn begun(mut self, how: SqlStr) -> Result<PooledTransaction<DB>, sqlx::Error> {
        self.state = State::Busy;
        let deadline = self.deadline;
        let begun = answered(deadline, DB::TransactionManager::begin(&mut self, Some(how))).await;
        // A connection on which `BEGIN` failed is in an unknown state.
        self.state = if begun.is_ok() { State::Open } else { State::Broken };
        self.distrusts_its_pool(begun.as_ref().err());
        begun.map(|()| self)
    }

    /// Lifts the deadline: a user's statements follow, which have a limit of their own.
    pub(crate) fn lift_deadline(&mut self) {
        self.deadline = None;
    }

    /// Sets how long each following answer may take.
    pub(super) fn within(mut self, deadline: Duration) -> PooledTransaction<DB> {
        self.deadline = Some(deadline);
        self
    }

    /// From here on the transaction is committed only while this lease is valid.
    pub(crate) fn only_under(&mut self, lease: Lease) {
        self.lease = Some(lease);
    }

    /// Whether the lease is valid, if there is one.
    pub(crate) fn is_leased(&self) -> bool {
        self.lease.as_ref().is_none_or(Lease::is_good)
    }

    /// Called before a statement is sent. Returns how long the answer may take.
    pub(crate) fn speak(&mut self) -> Result<Option<Duration>, DatabaseError> {
        if self.state != State::Open {
            return Err(DatabaseError::Lost("the connection is closed".to_owned()));
        }
        self.state = State::Busy;
        Ok(self.deadline)
    }

    /// Called when an answer has arrived, or its time ran out.
    pub(crate) fn heard<T>(&mut self, answer: Result<T, DatabaseError>) -> Result<T, DatabaseError> {
        self.state = match &answer {
            Err(error) if error.spoils_its_connection() => State::Broken,
            _ => State::Open,
        };
        if let Err(DatabaseError::Lost(_) | DatabaseError::Unknown(_)) = &answer {
            self.clear_the_pool();
        }
        answer
    }

    pub(crate) async fn commit(mut self) -> Result<(), sqlx::Error> {
        self.state = State::Busy;
        let deadline = self.deadline;
        let made = answered(deadline, DB::TransactionManager::commit(&mut self)).await;
        self.state = match &made {
            Ok(()) => State::Over,
            Err(error) if error::spoils(error) => State::Broken,
            Err(_) => State::Open,
        };
        self.distrusts_its_pool(made.as_ref().err());
        made
    }

    pub(crate) async fn rollback(mut self) -> Result<(), sqlx::Error> {
        self.state = State::Busy;
        let deadline = self.deadline.or(DB::IS_REMOTE.then_some(DEADLINE));
        let undone = answered(deadline, DB::TransactionManager::rollback(&mut self)).await;
        self.state = if undone.is_ok() { State::Over } else { State::Broken };
        self.distrusts_its_pool(undone.as_ref().err());
        undone
    }

    /// After a network error the idle connections are closed as well.
    fn distrusts_its_pool(&self, error: Option<&sqlx::Error>) {
        if let Some(sqlx::Error::Io(_)) = error {
            self.clear_the_pool();
        }
    }

    fn clear_the_pool(&self) {
        if let Some(kept) = self.last_used.as_ref().and_then(LastUsed::take) {
            cut(kept.connection);
        }
        while let Some(idle) = self.pool.try_acquire().filter(|_| DB::IS_REMOTE) {
            cut(idle);
        }
    }
}

/// Waits for an answer, but not longer than the deadline.
pub(crate) async fn answered<T, E: From<sqlx::Error>>(
    deadline: Option<Duration>,
    answer: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    let Some(deadline) = deadline else { return answer.await };
    timeout(deadline, answer).await.unwrap_or_else(|_| Err(silence(deadline).into()))
}

fn silence(deadline: Duration) -> sqlx::Error {
    let said = format!("the server did not answer within {deadline:?}");
    sqlx::Error::Io(std::io::Error::new(std::io::ErrorKind::TimedOut, said))
}

/// Closes a pool without waiting for connections that do not answer.
pub(crate) async fn close<DB: Holds>(pool: &Pool<DB>, last_used: Option<&LastUsed<DB>>) {
    // From this call on the pool is closed, also to a transaction that would keep its connection.
    let closing = pool.close();
    if let Some(kept) = last_used.and_then(LastUsed::take) {
        kept.give_back(&Handle::current());
    }
    if timeout(DEADLINE, closing).await.is_err() {
        tracing::debug!("left without some connections: the server did not answer");
    }
}

/// Closes a connection without a message to the server: the caller would have to wait until it is delivered.
pub(crate) fn cut<DB: Holds>(connection: PoolConnection<DB>) {
    drop(connection.detach());
}

impl<DB: Holds> Drop for PooledTransaction<DB> {
    fn drop(&mut self) {
        let Some(mut taken) = self.taken.take() else { return };
        let is_unknown = self.state == State::Busy && DB::IS_REMOTE;
        let runtime = match Handle::try_current() {
            Ok(runtime) if self.state != State::Broken && !is_unknown => runtime,
            _ => return cut(taken.connection),
        };
        let is_open = self.state != State::Over
            && (self.state == State::Busy
                || DB::TransactionManager::get_transaction_depth(&taken.connection) > 0);
        if is_open {
            DB::TransactionManager::start_rollback(&mut taken.connection);
        }
        let left = match &self.last_used {
            Some(last_used) if !is_open || taken.is_sent() => last_used.keep(&self.pool, taken, &runtime),
            _ => Some(taken),
        };
        if let Some(left) = left {
            left.give_back(&runtime);
        }
    }
}

impl<DB: Holds> Deref for PooledTransaction<DB> {
    type Target = DB::Connection;

    #[expect(clippy::expect_used, reason = "it is taken out only when this is dropped")]
    fn deref(&self) -> &DB::Connection {
        &self.taken.as_ref().expect("a connection").connection
    }
}

impl<DB: Holds> DerefMut for PooledTransaction<DB> {
    #[expect(clippy::expect_used, reason = "it is taken out only when this is dropped")]
    fn deref_mut(&mut self) -> &mut DB::Connection {
        &mut self.taken.as_mut().expect("a connection").connection
    }
}

impl<DB: Holds> fmt::Debug for PooledTransaction<DB> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PooledTransaction").field("state", &self.state).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
