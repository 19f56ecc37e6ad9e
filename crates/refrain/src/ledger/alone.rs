//! The ledger standing alone: once per key, inside a program's own transaction, with no store and no engine.

use std::marker::PhantomData;
use std::time::Duration;

use refrain_core::{JobName, ProjectName, Scope};
use sqlx::Pool;

use super::backend::Backend;
use super::destination::{Destination, attach};
use super::fence::open;
use super::{Result, migrate};

/// How long a transaction of ours may be silent.
const IDLE: Duration = Duration::from_secs(10);

/// A ledger in a program's own database.
#[derive(Debug, Clone)]
pub struct Ledger<DB: Backend> {
    destination: Destination,
    id: i64,
    database: PhantomData<fn() -> DB>,
}

impl<DB: Backend> Ledger<DB> {
    /// Opens the ledger of a project under a name: that of a job, or any other.
    pub async fn open(pool: &Pool<DB>, project: &str, name: &str) -> Result<Ledger<DB>> {
        let (project, name) = (ProjectName::parse(project)?, JobName::parse(name)?);
        let destination = attach(DB::database(pool, IDLE), &project, None).await?;
        let id = open(&destination, &project, &name, &Scope::default(), "").await?;
        Ok(Ledger { destination, id, database: PhantomData })
    }

    /// Makes the tables of the ledger in a database, or brings them up to date. Gives the names of the steps that were
    /// taken. A SQLite file gets them at first use.
    pub async fn migrate(pool: &Pool<DB>) -> Result<Vec<&'static str>> {
        migrate::migrate(&DB::database(pool, IDLE)).await
    }
}
