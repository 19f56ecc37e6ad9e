//! Wakes whoever waits for work: in this process at once, in others by `NOTIFY` where there is such a thing.
//!
//! A bell is never the reason that work is found; everybody looks by themselves now and then. `NOTIFY` takes a
//! lock on all of the database when it commits, so it is rung after the fact, for all that came in meanwhile, and never
//! inside the transaction of an enqueue.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sqlx::postgres::{PgListener, PgPoolOptions};

use super::service::{Phase, Stop, Wake};
use crate::store::Store;
use crate::store::queue_line::Line;

const CHANNEL: &str = "refrain";
const RING: &str = "select pg_notify('refrain', '')";
/// What comes in within this time is rung for together.
const TOGETHER: Duration = Duration::from_millis(2);
/// After so long a silence the server is asked whether it is still there, and has as long to answer.
const SILENCE: Duration = Duration::from_secs(30);
/// How long to wait before listening again after the connection was lost.
const AGAIN: Duration = Duration::from_secs(5);

/// The most lines that are remembered between two looks; with more, looking at all of them is cheaper.
const HINTS_MAX: usize = 16;

/// Lines in which this process has just put something: its own workers look there first.
#[derive(Clone, Default)]
pub(crate) struct Hints(Arc<Mutex<Vec<Line>>>);

impl Hints {
    pub(crate) fn take(&self) -> Vec<Line> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn add(&self, line: Line) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() < HINTS_MAX && !lines.contains(&line) {
            lines.push(line);
        }
    }
}

/// Wakes workers, here and elsewhere.
#[derive(Clone)]
pub(crate) struct Bell {
    store: Store,
    here: Wake,
    hints: Hints,
    is_ringing: Arc<AtomicBool>,
}

impl Bell {
    pub(crate) fn new(store: Store, here: Wake, hints: Hints) -> Bell {
        Bell { store, here, hints, is_ringing: Arc::default() }
    }

    /// Something was put into a line.
    pub(crate) fn ring_for(&self, line: Line) {
        self.hints.add(line);
        self.ring();
    }

    pub(crate) fn ring(&self) {
        self.here.wake();
        if self.store.database.is_sqlite() {
            return;
        }
        if self.is_ringing.swap(true, Ordering::AcqRel) {
            return;
        }
        let (is_ringing, database) = (Arc::clone(&self.is_ringing), self.store.database.clone());
        tokio::spawn(async move {
            tokio::time::sleep(TOGETHER).await;
            is_ringing.store(false, Ordering::Release);
            if let Err(error) = database.tell(RING).await {
                tracing::debug!(%error, "nobody was woken; they look by themselves");
            }
        });
    }
}

/// Hears the bell of other processes until the engine stops. A file cannot be listened to.
pub(crate) async fn listen(store: Store, here: Wake, stop: Stop) {
    let Some(pool) = store.database.postgres().cloned() else { return stop.draining().await };
    while stop.phase() < Phase::Draining {
        let heard = async {
            // A pool of its own: who listens keeps a connection, and gives it back only when the server answers.
            let own = PgPoolOptions::new().max_connections(1).acquire_timeout(SILENCE);
            let own = own.connect_lazy_with((*pool.connect_options()).clone());
            let mut listener = PgListener::connect_with(&own).await?;
            listener.ignore_pool_close_event(true);
            listener.listen(CHANNEL).await?;
            loop {
                // Nothing says that a server is gone from which nothing is expected; it has to be asked.
                if let Ok(heard) = tokio::time::timeout(SILENCE, listener.recv()).await {
                    heard?;
                } else {
                    let answer = tokio::time::timeout(SILENCE, listener.listen(CHANNEL)).await;
                    answer.map_err(|_| sqlx::Error::PoolTimedOut)??;
                }
                here.wake();
            }
        };
        let lost: Result<std::convert::Infallible, sqlx::Error> = tokio::select! {
            lost = heard => lost,
            () = stop.draining() => return,
        };
        let Err(error) = lost;
        tracing::debug!(%error, "cannot listen for work; looking for it by ourselves");
        tokio::select! {
            () = tokio::time::sleep(AGAIN) => {}
            () = stop.draining() => return,
        }
    }
}
