//! Decisions of the operator, recorded.
//!
//! A decision about a run or a job is recorded in the transaction that carries it out, by [`record`]: both are committed or neither.
//! A decision about something in another database (a unit, a checkpoint, the owner of a ledger) is recorded *before* it is carried
//! out, by [`record_alone`]: no transaction spans two databases, and after a crash a recorded decision that was not carried out is
//! harmless. The operator repeats the command; a change without a decision could not be explained. Only a migration is recorded
//! afterwards, because before the first one there is no table.

use refrain_core::person::Verb;
use refrain_core::{Person, Word as _};

use super::{Result, Store, catalog};
use crate::database::{Database, DatabaseError, Transaction, place, retried};

/// The most decisions about one subject that are listed.
pub(crate) const LISTED: i64 = 1_000;

/// A decision and the operator who made it.
#[derive(Debug, Clone)]
pub(crate) struct Decision {
    /// None if a program decided and named no person.
    pub(crate) person: Option<Person>,
    pub(crate) verb: Verb,
    /// What it is about, as written on the command line: a run, a job, a store.
    pub(crate) subject: String,
    /// The run, if it is about one.
    pub(crate) run: Option<i64>,
    /// The key of the unit, if it is about one.
    pub(crate) unit: Option<String>,
    /// Details of the decision.
    pub(crate) detail: Option<String>,
}

impl Decision {
    pub(crate) fn new(person: Option<&Person>, verb: Verb, subject: impl Into<String>) -> Decision {
        let (person, subject) = (person.cloned(), subject.into());
        Decision { person, verb, subject, run: None, unit: None, detail: None }
    }

    pub(crate) fn of_run(self, run: i64) -> Decision {
        Decision { run: Some(run), ..self }
    }

    pub(crate) fn of_unit(self, key: &str) -> Decision {
        Decision { unit: Some(key.to_owned()), ..self }
    }

    pub(crate) fn detailed(self, detail: impl Into<String>) -> Decision {
        Decision { detail: Some(detail.into()), ..self }
    }
}

/// A decision as it is stored.
#[derive(Debug, Clone, sqlx_macros::FromRow)]
pub(crate) struct AuditRow {
    pub(crate) at: i64,
    pub(crate) who: Option<String>,
    pub(crate) verb: String,
    pub(crate) subject: String,
    pub(crate) unit: Option<String>,
    pub(crate) detail: Option<String>,
    pub(crate) why: Option<String>,
}

/// Records a decision in the transaction that carries it out.
pub(crate) async fn record(
    transaction: &mut Transaction,
    decision: &Decision,
) -> std::result::Result<(), DatabaseError> {
    let Decision { person, verb, subject, run, unit, detail } = decision;
    let record = catalog::AUDIT_RECORD
        .bind(person.as_ref().map(|person| person.name().to_owned()))
        .bind(verb.name())
        .bind(subject.as_str())
        .bind(*run)
        .bind(unit.clone())
        .bind(detail.clone())
        .bind(person.as_ref().and_then(Person::why).map(str::to_owned));
    transaction.execute(record).await?;
    Ok(())
}

/// Records decisions in a transaction of their own. After a lost answer one may be recorded, and shown, twice.
pub(crate) async fn record_alone(database: &Database, decisions: &[Decision]) -> Result<()> {
    if decisions.is_empty() {
        return Ok(());
    }
    Ok(retried(|| async {
        let mut transaction = database.write().await?;
        for decision in decisions {
            record(&mut transaction, decision).await?;
        }
        transaction.commit(place!("audit")).await
    })
    .await?)
}

/// The decisions about a run, oldest first.
pub(crate) async fn of_run(store: &Store, run: i64) -> Result<Vec<AuditRow>> {
    let mut transaction = store.database.read().await?;
    Ok(transaction.fetch_all(catalog::AUDIT_OF_RUN.bind(run).bind(LISTED)).await?)
}

/// The decisions about units of this key, oldest first.
pub(crate) async fn of_unit(store: &Store, key: &str) -> Result<Vec<AuditRow>> {
    let mut transaction = store.database.read().await?;
    Ok(transaction.fetch_all(catalog::AUDIT_OF_UNIT.bind(key).bind(LISTED)).await?)
}

/// All decisions, newest first.
pub(crate) async fn list(store: &Store, limit: i64) -> Result<Vec<AuditRow>> {
    let mut transaction = store.database.read().await?;
    Ok(transaction.fetch_all(catalog::AUDIT_LIST.bind(limit)).await?)
}
