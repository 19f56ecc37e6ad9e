//! The ledger without a store or an engine: once per key, inside a program's own transaction.

use std::marker::PhantomData;
use std::time::Duration;

use jiff::Timestamp;
use refrain_core::state::{RefusedUnit, UnitEvent};
use refrain_core::{Fingerprint, JobName, Key, ProjectName, Scope};
use serde::Serialize;
use sqlx::Pool;

use super::claim_group::{ClaimRequest, Claims};
use super::destination::{Destination, attach};
use super::ledger_id::LedgerName;
use super::{LedgerError, Result, catalog, migrate, unit_state};
use crate::store::instant;
use crate::user_database::Backend;

/// How long a transaction of ours may be idle.
const IDLE: Duration = Duration::from_secs(10);

/// Whether a key was free.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    /// It was free, and is yours if your transaction commits.
    Fresh,
    /// It was claimed before: this is a dedupe, neither success nor failure.
    Done(PriorClaim),
}

impl Claim {
    /// Whether the key was free.
    pub fn is_fresh(&self) -> bool {
        matches!(self, Claim::Fresh)
    }
}

/// The earlier claim of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PriorClaim {
    /// When it was claimed, by the clock of the database.
    pub at: Timestamp,
    /// The key of the run that claimed it, if a run did.
    pub run: Option<String>,
}

/// A ledger in a program's own database.
///
/// ```
/// use refrain::{Claim, Ledger, key};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let file = sqlx::sqlite::SqliteConnectOptions::new().filename(directory.path().join("shop.db"));
/// # let pool = sqlx::SqlitePool::connect_with(file.create_if_missing(true)).await?;
/// # sqlx::query("create table digests (org text, root text)").execute(&pool).await?;
/// let ledger = Ledger::open(&pool, "shop", "digests").await?;
///
/// for _ in 0..2 {
///     let mut tx = pool.begin().await?;
///     match ledger.claim(&mut tx, key!("digest", "acme", "2026-06-09")?).await? {
///         Claim::Fresh => {
///             let insert = "insert into digests (org, root) values ('acme', 'c0ffee')";
///             sqlx::query(insert).execute(&mut *tx).await?;
///         }
///         Claim::Done(past) => println!("done already, at {}", past.at),
///     }
///     tx.commit().await?; // your commit is the record; nothing to call afterwards
/// }
///
/// let digests: i64 = sqlx::query_scalar("select count(*) from digests").fetch_one(&pool).await?;
/// assert_eq!(digests, 1);
/// # Ok(())
/// # }
/// ```
pub struct Ledger<DB: Backend> {
    pub(crate) destination: Destination,
    pub(crate) project: ProjectName,
    pub(super) name: JobName,
    id: i64,
    claims: Claims,
    database: PhantomData<fn() -> DB>,
}

impl<DB: Backend> Clone for Ledger<DB> {
    fn clone(&self) -> Self {
        Ledger {
            destination: self.destination.clone(),
            project: self.project.clone(),
            name: self.name.clone(),
            id: self.id,
            claims: self.claims.clone(),
            database: PhantomData,
        }
    }
}

impl<DB: Backend> std::fmt::Debug for Ledger<DB> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ledger")
            .field("project", &self.project)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// The row of an earlier claim.
#[derive(sqlx_macros::FromRow)]
pub(crate) struct PriorClaimRow {
    pub(super) at: i64,
    pub(super) fingerprint: Option<i64>,
    pub(super) status: String,
    pub(super) run: Option<String>,
}

/// The answer to a second claim of a key.
pub(super) fn second_claim(key: &Key, fingerprint: Option<i64>, past: &PriorClaimRow) -> Result<Claim> {
    if fingerprint.is_some() && past.fingerprint.is_some() && fingerprint != past.fingerprint {
        return Err(LedgerError::Refused { key: key.to_string(), reason: RefusedUnit::OtherContent });
    }
    if past.status != "applied" {
        return Err(LedgerError::NotApplied { key: key.to_string() });
    }
    Ok(Claim::Done(PriorClaim { at: instant(past.at)?, run: past.run.clone() }))
}

impl<DB: Backend> Ledger<DB> {
    /// Opens the ledger of a project under a name: that of a job, or any other.
    pub async fn open(pool: &Pool<DB>, project: &str, name: &str) -> Result<Ledger<DB>> {
        let (project, name) = (ProjectName::parse(project)?, JobName::parse(name)?);
        let destination = attach(DB::database(pool, IDLE), &project, None).await?;
        let (scope, window) = (Scope::default(), String::new());
        let book = LedgerName { project: project.clone(), job: name.clone(), scope, window };
        let id = destination.ledgers.find(&destination.database, book).await?;
        let claims = Claims::new(destination.database.clone(), project.clone());
        Ok(Ledger { destination, project, name, id, claims, database: PhantomData })
    }

    /// Creates or migrates the tables of the ledger in a database. Returns the names of the applied migrations. A SQLite file
    /// gets its tables at first use.
    pub async fn migrate(pool: &Pool<DB>) -> Result<Vec<&'static str>> {
        migrate::migrate(&DB::database(pool, IDLE)).await
    }

    /// What [`migrate`](Self::migrate) would execute on PostgreSQL, as a script.
    pub fn migration_script() -> String {
        crate::schemas::LEDGER.script()
    }

    /// Claims a key inside your own transaction. After a commit it is claimed for ever; after a rollback it never was. A
    /// concurrent claim of the same key waits for the outcome.
    ///
    /// It takes a transaction and nothing less. On a plain connection the claim would be committed before the work, and a
    /// crash in between would lose the work:
    ///
    /// ```compile_fail,E0308
    /// # async fn example(ledger: refrain::Ledger<sqlx::Sqlite>, pool: sqlx::SqlitePool) -> Result<(), refrain::ledger::LedgerError> {
    /// let mut connection = pool.acquire().await.unwrap();
    /// ledger.claim(&mut connection, refrain::key!("invoice", 7)?).await?;
    /// # Ok(()) }
    /// ```
    pub async fn claim(&self, tx: &mut sqlx::Transaction<'_, DB>, key: Key) -> Result<Claim> {
        self.claimed(tx, &key, None).await
    }

    /// Claims a key together with its content: the same key with other content is an error, and nothing happens.
    pub async fn claim_content(
        &self,
        tx: &mut sqlx::Transaction<'_, DB>,
        key: Key,
        content: &impl Serialize,
    ) -> Result<Claim> {
        let fingerprint = Fingerprint::of_json(&serde_json::to_string(content)?)?.to_number();
        self.claimed(tx, &key, Some(fingerprint)).await
    }

    async fn claimed(
        &self,
        tx: &mut sqlx::Transaction<'_, DB>,
        key: &Key,
        fingerprint: Option<i64>,
    ) -> Result<Claim> {
        let mut connection = DB::widened(&mut **tx, self.destination.database.is_persistent());
        let claim = unit_state::claim(UnitEvent::Applied, self.id, key.as_str(), fingerprint)?;
        if connection.execute(claim).await? == 1 {
            return Ok(Claim::Fresh);
        }
        let past = catalog::UNIT_PAST.bind(self.id).bind(key.as_str());
        let past: Option<PriorClaimRow> = connection.fetch_optional(past).await?;
        past.map_or(Err(LedgerError::Contended), |past| second_claim(key, fingerprint, &past))
    }

    /// Claims a key in a transaction of its own, which concurrent claims share.
    ///
    /// The claim is committed before the work: if the process dies in between, the work is never done. If that is worse than
    /// doing it twice, claim inside the transaction of the work.
    pub async fn claim_alone(&self, key: Key) -> Result<Claim> {
        let request = ClaimRequest { ledger: self.id, key, fingerprint: None, version: 1, claimant: None };
        self.claims.claim(request).await
    }
}
