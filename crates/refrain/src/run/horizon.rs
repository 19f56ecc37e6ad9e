//! The horizon of a PostgreSQL source: the transaction id below which no further row can appear.
//!
//! Rows become visible in the order of commits, not of their ids or timestamps: a reader that continues after the highest id
//! it has seen never sees a lower one that is committed later. Transaction ids in the rows are reliable: below
//! [`Horizon::below`] every transaction has ended. So the source needs an indexed column
//! `changed_in xid8 not null default pg_current_xact_id()`, which every update sets again; a reader takes the rows below the
//! horizon in the order of (transaction id, id), and its cursor is that pair.
//!
//! Rejected: waiting until all open transactions have ended. A transaction that has drawn an id and written nothing yet has no
//! transaction id to wait for.

use std::time::Duration;

use refrain_core::AlarmKind;
use sqlx::postgres::PgPool;

use super::Run;
use crate::database::{DatabaseError, begun_in};
use crate::ledger::Result;
use crate::store::alarms::{Alarm, raise};

/// A writing transaction that is older than this raises an alarm.
const PINNED: Duration = Duration::from_mins(5);

const READ: &str = include_str!("../../sql/horizon/read.postgres.sql");

#[derive(sqlx_macros::FromRow)]
struct Row {
    below: i64,
    pinned_since: Option<i64>,
    now: i64,
}

/// The transaction id below which a PostgreSQL source is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Horizon {
    below: i64,
    pinned_for: Duration,
}

impl Horizon {
    /// The first transaction id that is not complete: bind it as `changed_in < cast(cast($1 as text) as xid8)`.
    pub fn below(&self) -> i64 {
        self.below
    }

    /// For how long the oldest writing transaction has held the horizon back.
    pub fn pinned_for(&self) -> Duration {
        self.pinned_for
    }
}

impl Run {
    /// Reads the horizon of a source. Call it before you read the rows.
    ///
    /// A writing transaction that stays open keeps all later rows from being read; after five minutes it raises an alarm.
    /// Sessions of other users are visible only with the role `pg_read_all_stats`.
    pub async fn horizon(&self, source: &PgPool) -> Result<Horizon> {
        let Row { below, pinned_since, now } = read(source).await.map_err(DatabaseError::from)?;
        let pinned_for =
            Duration::from_micros(now.saturating_sub(pinned_since.unwrap_or(now)).unsigned_abs());
        if let Some(at) = pinned_since.filter(|_| pinned_for >= PINNED) {
            let minutes = pinned_for.as_secs() / 60;
            let message = format!(
                "a transaction that has been open for {minutes} minutes keeps its source from being read any further"
            );
            tracing::warn!(job = %self.job(), message);
            let (kind, subject) = (AlarmKind::HorizonPinned, self.job().to_string());
            raise(&self.surroundings.store, &Alarm { kind, job: None, at, subject, message }).await?;
        }
        Ok(Horizon { below, pinned_for })
    }
}

/// In a transaction, because behind a pooler two messages outside of a transaction may reach two connections.
async fn read(source: &PgPool) -> std::result::Result<Row, sqlx::Error> {
    let mut transaction = begun_in(source).await?;
    let row = sqlx::query_as(READ).persistent(false).fetch_one(&mut *transaction).await?;
    transaction.rollback().await?;
    Ok(row)
}
