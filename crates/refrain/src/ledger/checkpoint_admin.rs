//! Checkpoints as a person sees and moves them.
//!
//! A person holds no fence. What protects a move is what protects every one: it is from where the checkpoint was seen to
//! stand. An attempt that has read the place before finds it gone when it moves on, and is told so; one that moved first
//! is not overwritten.

use super::checkpoint::Standing;
use super::{Result, catalog};
use crate::database::{Database, DatabaseError, place, retried};

/// The most checkpoints of one job in one database that are listed.
const LISTED_MAX: i64 = 10_000;

/// A checkpoint as it is stored.
#[derive(Debug, Clone, sqlx_macros::FromRow)]
pub(crate) struct CheckpointRow {
    pub(crate) ledger: i64,
    pub(crate) scope: String,
    /// The start of the window to which it belongs; empty if it is for ever.
    pub(crate) window_start: String,
    pub(crate) name: String,
    pub(crate) position: String,
    pub(crate) at: i64,
    pub(crate) attempt: Option<i32>,
    pub(crate) run: Option<String>,
}

/// The checkpoints of a job, in every scope: those of a window, those for ever if it is empty, or all.
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

/// Moves a checkpoint from where it was seen, or begins one that was not there. False: it is not there any more.
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
            // Said twice, because the first answer was lost, it is there already.
            let find = catalog::CHECKPOINT_FIND.bind(ledger).bind(name);
            let standing: Option<Standing> = transaction.fetch_optional(find).await?;
            let is_there = |standing: Standing| standing.position == position && standing.fence.is_none();
            return Ok(standing.is_some_and(is_there));
        }
        transaction.commit(place!("set-checkpoint")).await?;
        Ok::<_, DatabaseError>(true)
    });
    Ok(set.await?)
}
