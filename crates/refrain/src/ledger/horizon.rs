//! The horizon of a PostgreSQL source: up to where everything that will ever be there is there.
//!
//! Rows become visible in the order of commits, not of their ids or times: a reader that goes on after the highest id it has
//! seen never sees a lower one that is committed later. What can be relied on is the number of a transaction, kept in the
//! row: below [`Horizon::below`] every transaction has ended. So the source has a column
//! `changed_in xid8 not null default pg_current_xact_id()` with an index, set anew by every update; a reader takes rows whose
//! number is below the horizon, in the order of (number, id), and its cursor is that pair.
//!
//! Rejected: waiting until all transactions that were open have ended. One that has drawn an id and written nothing yet has
//! no number to wait for.

use std::time::Duration;

use refrain_core::AlarmKind;
use sqlx::postgres::PgPool;

use super::Result;
use crate::database::{DatabaseError, begun_in};
use crate::run::Run;
use crate::store::alarms::{Alarm, raise};

/// A writer that is older than this pins the horizon.
const PINNED: Duration = Duration::from_mins(5);

const READ: &str = include_str!("../../sql/horizon/read.postgres.sql");

#[derive(sqlx_macros::FromRow)]
struct Row {
    below: i64,
    pinned_since: Option<i64>,
    now: i64,
}

/// Up to where a PostgreSQL source is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Horizon {
    below: i64,
    pinned_for: Duration,
}

impl Horizon {
    /// The first transaction number that is not complete: bind it as `changed_in < cast(cast($1 as text) as xid8)`.
    pub fn below(&self) -> i64 {
        self.below
    }

    /// For how long the oldest transaction that writes has been keeping the horizon where it is.
    pub fn pinned_for(&self) -> Duration {
        self.pinned_for
    }
}

impl Run {
    /// Reads the horizon of a source. Do it before the rows are read.
    ///
    /// A transaction that was left open by whoever writes there keeps everything after it from being read; when it has
    /// lasted for five minutes an alarm is raised. Sessions of other users are seen only with the role `pg_read_all_stats`.
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

/// In a transaction: behind a pooler two messages outside of one may reach two connections.
async fn read(source: &PgPool) -> std::result::Result<Row, sqlx::Error> {
    let mut transaction = begun_in(source).await?;
    let row = sqlx::query_as(READ).persistent(false).fetch_one(&mut *transaction).await?;
    transaction.rollback().await?;
    Ok(row)
}
