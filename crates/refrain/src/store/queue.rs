//! Rows of the queue, and of attempts that are delayed.
//!
//! The statements take one list of integers per column. This file alone puts them in order, and names them, so that two that are
//! swapped are found; callers name each value.

use std::time::Duration;

use refrain_core::state::Attempts;

use super::queue_line::Line;
use super::{Result, catalog, microseconds};
use crate::database::Transaction;
use crate::database::statement::Rows;

/// An attempt that is queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct QueueRow {
    pub(crate) run: i64,
    /// Its number, and what the run has spent before it.
    pub(crate) attempts: Attempts,
    /// Whether it holds its lane, or enters one when its time comes.
    pub(crate) lane: bool,
}

/// The columns of an attempt, as every table of open attempts has them.
#[derive(Debug, Clone, Copy, sqlx_macros::FromRow)]
pub(crate) struct AttemptColumns {
    attempt: i32,
    spent: i32,
    suspicion: i32,
}

impl From<AttemptColumns> for Attempts {
    fn from(columns: AttemptColumns) -> Attempts {
        attempts(columns.attempt, columns.spent, columns.suspicion)
    }
}

/// The attempts of a run as its columns have them.
pub(crate) fn attempts(number: i32, spent: i32, suspicion: i32) -> Attempts {
    Attempts {
        number: u64::try_from(number).unwrap_or(0),
        spent: u32::try_from(spent).unwrap_or(0),
        suspicion: u32::try_from(suspicion).unwrap_or(0),
    }
}

/// The number of an attempt as it is stored.
pub(crate) fn number(attempts: Attempts) -> i64 {
    i64::try_from(attempts.number).unwrap_or(i64::MAX)
}

/// Queues attempts in one line.
pub(crate) async fn insert(transaction: &mut Transaction, line: Line, queued: &[QueueRow]) -> Result<()> {
    if queued.is_empty() {
        return Ok(());
    }
    let rows = Rows::default()
        .integers(queued.iter().map(|row| row.run))
        .named("run")
        .integers(queued.iter().map(|row| number(row.attempts)))
        .named("attempt")
        .integers(queued.iter().map(|row| i64::from(row.attempts.spent)))
        .named("spent")
        .integers(queued.iter().map(|row| i64::from(row.attempts.suspicion)))
        .named("suspicion")
        .booleans(queued.iter().map(|row| row.lane))
        .named("lane");
    transaction.execute(catalog::QUEUE_INSERT.bind(line.0).bind(rows)).await?;
    Ok(())
}

/// Queues an attempt in this line after a wait, by the clock of the database.
pub(crate) async fn delay(
    transaction: &mut Transaction,
    line: Line,
    row: QueueRow,
    wait: Duration,
) -> Result<()> {
    let Attempts { spent, suspicion, .. } = row.attempts;
    let delayed = catalog::DELAYED_INSERT.bind(microseconds(wait)).bind(row.run).bind(line.0);
    let delayed = delayed.bind(number(row.attempts)).bind(i64::from(spent)).bind(i64::from(suspicion));
    transaction.execute(delayed.bind(row.lane)).await?;
    Ok(())
}
