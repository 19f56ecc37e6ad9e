//! Wakes workers: those of this process at once, those of other processes by `NOTIFY` on PostgreSQL.
//!
//! A wake-up is a best effort; workers also poll. `NOTIFY` locks the whole database when it commits, so it is sent after the
//! transaction of an enqueue, for all that came in meanwhile, and never inside it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sqlx::postgres::{PgListener, PgPoolOptions};

use super::service::{Phase, Stop, Wake};
use crate::store::Store;
use crate::store::queue_line::Line;

const CHANNEL: &str = "refrain";
const NOTIFY: &str = "select pg_notify('refrain', '')";
/// Runs that are queued within this time share one notification.
const TOGETHER: Duration = Duration::from_millis(2);
/// After so long without a notification the server is asked whether it is still there, and has as long to answer.
const SILENCE: Duration = Duration::from_secs(30);
/// How long to wait before listening again after the connection is lost.
const AGAIN: Duration = Duration::from_secs(5);

/// The most lines that are remembered between two ticks; with more, reading all lines is cheaper.
const HINTS_MAX: usize = 16;

/// Lines in which this process has just queued a run: its own workers look there first.
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

/// Wakes workers of this and of other processes.
#[derive(Clone)]
pub(crate) struct Notifier {
    store: Store,
    here: Wake,
    hints: Hints,
    is_pending: Arc<AtomicBool>,
}

impl Notifier {
    pub(crate) fn new(store: Store, here: Wake, hints: Hints) -> Notifier {
        Notifier { store, here, hints, is_pending: Arc::default() }
    }

    /// A run was queued in this line.
    pub(crate) fn notify_line(&self, line: Line) {
        self.hints.add(line);
        self.notify();
    }

    pub(crate) fn notify(&self) {
        self.here.wake();
        if self.store.database.is_sqlite() {
            return;
        }
        if self.is_pending.swap(true, Ordering::AcqRel) {
            return;
        }
        let (is_pending, database) = (Arc::clone(&self.is_pending), self.store.database.clone());
        tokio::spawn(async move {
            tokio::time::sleep(TOGETHER).await;
            is_pending.store(false, Ordering::Release);
            if let Err(error) = database.tell(NOTIFY).await {
                tracing::debug!(%error, "no notification sent; workers poll");
            }
        });
    }
}

/// Listens for notifications of other processes until the engine stops. SQLite has none.
pub(crate) async fn listen(store: Store, here: Wake, stop: Stop) {
    let Some(pool) = store.database.postgres().cloned() else { return stop.draining().await };
    while stop.phase() < Phase::Draining {
        let heard = async {
            // A pool of its own: a listener keeps its connection, and gives it back only when the server answers.
            let own = PgPoolOptions::new().max_connections(1).acquire_timeout(SILENCE);
            let own = own.connect_lazy_with((*pool.connect_options()).clone());
            let mut listener = PgListener::connect_with(&own).await?;
            listener.ignore_pool_close_event(true);
            listener.listen(CHANNEL).await?;
            loop {
                // A lost server is not noticed while no message is expected from it; it has to be asked.
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
        tracing::debug!(%error, "cannot listen for notifications; polling");
        tokio::select! {
            () = tokio::time::sleep(AGAIN) => {}
            () = stop.draining() => return,
        }
    }
}
