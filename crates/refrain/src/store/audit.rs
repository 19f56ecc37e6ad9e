//! Decisions of people, written down.
//!
//! A decision about a run or a job is recorded inside the transaction that carries it out, by a call to [`record`] there:
//! either both are there or neither. A decision whose subject lies in another database (a unit, a checkpoint, whose ledger
//! it is) is recorded *before* it is carried out, by [`record_alone`]: no transaction spans two databases, and of the two
//! ways to be wrong after a crash, a decision that was taken and not carried out is the harmless one. It is said again by the
//! same command; a deed without a decision could not be explained. Only the making of tables is recorded after
//! the fact, for before it there is nothing to write to.

use refrain_core::person::Verb;
use refrain_core::{Person, Word as _};

use super::{Result, Store, catalog};
use crate::database::{Database, DatabaseError, Transaction, place, retried};

/// The most decisions about one subject that are listed.
pub(crate) const LISTED: i64 = 1_000;

/// What was decided, and by whom.
#[derive(Debug, Clone)]
pub(crate) struct Decision {
    /// None: a program decided, and named no person.
    pub(crate) person: Option<Person>,
    pub(crate) verb: Verb,
    /// What it is about, as people write it: a run, a job, a store.
    pub(crate) subject: String,
    /// The run that it is about, if it is about one.
    pub(crate) run: Option<i64>,
    /// The key of the unit that it is about, if it is about one.
    pub(crate) unit: Option<String>,
    /// What else there is to say of it.
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

/// Records decisions by themselves. After a lost answer one may be there twice: it was decided once, and is shown twice.
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

/// What people have decided about a run, oldest first.
pub(crate) async fn of_run(store: &Store, run: i64) -> Result<Vec<AuditRow>> {
    let mut transaction = store.database.read().await?;
    Ok(transaction.fetch_all(catalog::AUDIT_OF_RUN.bind(run).bind(LISTED)).await?)
}

/// What people have decided about units of this key, oldest first.
pub(crate) async fn of_unit(store: &Store, key: &str) -> Result<Vec<AuditRow>> {
    let mut transaction = store.database.read().await?;
    Ok(transaction.fetch_all(catalog::AUDIT_OF_UNIT.bind(key).bind(LISTED)).await?)
}

/// What people have decided, newest first.
pub(crate) async fn list(store: &Store, limit: i64) -> Result<Vec<AuditRow>> {
    let mut transaction = store.database.read().await?;
    Ok(transaction.fetch_all(catalog::AUDIT_LIST.bind(limit)).await?)
}
