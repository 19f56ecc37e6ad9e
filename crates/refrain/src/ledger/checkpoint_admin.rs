//! Checkpoints as an operator sees and moves them.
//!
//! An operator holds no fence. A move is protected like every other: it names the position that was seen. An attempt that
//! read the position before finds it changed when it moves on, and fails; one that moved first is not overwritten.

use super::checkpoint::StoredCheckpoint;
use super::{Result, catalog};
use crate::database::{Database, DatabaseError, place, retried};

/// The most checkpoints of one job in one database that are listed.
const LISTED_MAX: i64 = 10_000;

/// A checkpoint as it is stored.
#[derive(Debug, Clone, sqlx_macros::FromRow)]
pub(crate) struct CheckpointRow {
    pub(crate) ledger: i64,
    pub(crate) scope: String,
    /// The start of its window; empty for a permanent checkpoint.
    pub(crate) window_start: String,
    pub(crate) name: String,
    pub(crate) position: String,
    pub(crate) at: i64,
    pub(crate) attempt: Option<i32>,
    pub(crate) run: Option<String>,
}

/// The checkpoints of a job, in every scope: those of a window, the permanent ones if it is empty, or all.
pub(crate) async fn list(
    database: &Database,
    project: &str,
    job: &str,
    window: Option<&str>,
) -> Result<Vec<CheckpointRow>> {
    let mut transaction = database.read().await?;
    let list = catalog::CHECKPOINT_LIST.bind(project).bind(job).bind(window);
    Ok(transaction.fetch_all(list.bind(LISTED_MAX)).await?)
}

/// Moves a checkpoint from the position that was seen, or creates one. False: the position has changed.
pub(crate) async fn set(
    database: &Database,
    ledger: i64,
    name: &str,
    position: &str,
    seen: Option<&str>,
) -> Result<bool> {
    let set = retried(|| async {
        let mut transaction = database.write().await?;
        let nobody = None::<i64>;
        let moved = match seen {
            None => {
                let begin = catalog::CHECKPOINT_BEGIN.bind(ledger).bind(name).bind(position);
                transaction.execute(begin.bind(nobody).bind(nobody).bind(nobody)).await?
            }
            Some(seen) => {
                let advance = catalog::CHECKPOINT_ADVANCE.bind(ledger).bind(name).bind(position);
                transaction.execute(advance.bind(nobody).bind(nobody).bind(seen).bind(nobody)).await?
            }
        };
        if moved == 0 {
            // On a retry after a lost answer, the position is there already.
            let find = catalog::CHECKPOINT_FIND.bind(ledger).bind(name);
            let stored: Option<StoredCheckpoint> = transaction.fetch_optional(find).await?;
            let is_there = |stored: StoredCheckpoint| stored.position == position && stored.fence.is_none();
            return Ok(stored.is_some_and(is_there));
        }
        transaction.commit(place!("set-checkpoint")).await?;
        Ok::<_, DatabaseError>(true)
    });
    Ok(set.await?)
}
