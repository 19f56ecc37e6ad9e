//! Alarms: facts for the operator, each recorded once.
//!
//! Every engine watches by itself, and all come to the same result; the first to record an alarm has raised it.

use refrain_core::{AlarmKind, Word};

use super::queue_line::JobNumber;
use super::{Result, Store, catalog};
use crate::database::{place, retried};

/// An alarm to raise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Alarm {
    pub(crate) kind: AlarmKind,
    pub(crate) job: Option<JobNumber>,
    /// In microseconds since 1970. Kind, subject and this time identify an alarm, so the time follows from the fact and not from when
    /// it was noticed.
    pub(crate) at: i64,
    pub(crate) subject: String,
    pub(crate) message: String,
}

/// An alarm as it is stored.
#[derive(Debug, Clone, sqlx_macros::FromRow)]
pub(crate) struct AlarmRow {
    pub(crate) kind: String,
    pub(crate) job: Option<String>,
    pub(crate) at: i64,
    pub(crate) subject: String,
    pub(crate) message: String,
}

/// Raises an alarm; returns whether it is new. After a lost answer an existing alarm may be our own, and counts as new: reporting it
/// twice is better than never.
pub(crate) async fn raise(store: &Store, alarm: &Alarm) -> Result<bool> {
    let mut is_first = true;
    let raised = retried(|| {
        let again = !std::mem::replace(&mut is_first, false);
        async move {
            let mut transaction = store.database.write().await?;
            let raise =
                catalog::ALARM_RAISE.bind(alarm.kind.name()).bind(alarm.job.map(i64::from)).bind(alarm.at);
            let raise = raise.bind(alarm.subject.as_str()).bind(alarm.message.as_str());
            let new = transaction.execute(raise).await?;
            transaction.commit(place!("alarm")).await?;
            Ok(new > 0 || again)
        }
    });
    Ok(raised.await?)
}

/// The alarms that were raised last, the newest first.
pub(crate) async fn list(store: &Store, limit: i64) -> Result<Vec<AlarmRow>> {
    let mut transaction = store.database.read().await?;
    Ok(transaction.fetch_all(catalog::ALARM_LIST.bind(limit)).await?)
}
