//! The two databases by their sqlx types: what a program's own pool and transaction are made of.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use sqlx::{Pool, Postgres, Sqlite};

use crate::database::connection::Connection;
use crate::database::held::Holds;
use crate::database::staging::Stage;
use crate::database::{Database, Transaction};

/// PostgreSQL or SQLite, as sqlx knows them: [`sqlx::Postgres`] and [`sqlx::Sqlite`].
///
/// Nobody else can implement it.
pub trait Backend: Sealed {}

impl Backend for Sqlite {}
impl Backend for Postgres {}

/// Clones of a pool share how they connect, and nobody else does.
#[derive(Clone)]
pub struct Identity(Arc<dyn Any + Send + Sync>);

impl PartialEq for Identity {
    fn eq(&self, other: &Identity) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Identity")
    }
}

/// What the ledger needs of a database.
pub trait Sealed: Holds {
    /// A caller's pool as one of our databases.
    #[doc(hidden)]
    fn database(pool: &Pool<Self>, idle: Duration) -> Database;

    /// Tells pools apart, as long as it is kept.
    #[doc(hidden)]
    fn identity(pool: &Pool<Self>) -> Identity;

    /// The connection of a transaction that was begun on such a database.
    #[doc(hidden)]
    fn narrowed(transaction: &mut Transaction) -> Option<&mut Self::Connection>;

    /// The connection of a place to compute in, on such a database.
    #[doc(hidden)]
    fn staged(stage: &mut Stage) -> Option<&mut Self::Connection>;

    /// A caller's own connection.
    #[doc(hidden)]
    fn widened(connection: &mut Self::Connection, persistent: bool) -> Connection<'_>;
}

impl Sealed for Sqlite {
    fn database(pool: &Pool<Sqlite>, _: Duration) -> Database {
        Database::Sqlite { writer: pool.clone(), readers: pool.clone() }
    }

    fn identity(pool: &Pool<Sqlite>) -> Identity {
        Identity(pool.connect_options())
    }

    fn narrowed(transaction: &mut Transaction) -> Option<&mut Self::Connection> {
        match transaction {
            Transaction::Sqlite(inner, _) => Some(&mut **inner),
            Transaction::Postgres(..) => None,
        }
    }

    fn staged(stage: &mut Stage) -> Option<&mut Self::Connection> {
        match stage {
            Stage::Sqlite(connection, _) => Some(&mut **connection),
            Stage::Postgres(..) => None,
        }
    }

    fn widened(connection: &mut Self::Connection, _: bool) -> Connection<'_> {
        Connection::Sqlite(connection)
    }
}

impl Sealed for Postgres {
    fn database(pool: &Pool<Postgres>, idle: Duration) -> Database {
        Database::of_postgres(pool.clone(), idle)
    }

    fn identity(pool: &Pool<Postgres>) -> Identity {
        Identity(pool.connect_options())
    }

    fn narrowed(transaction: &mut Transaction) -> Option<&mut Self::Connection> {
        match transaction {
            Transaction::Postgres(inner, ..) => Some(&mut **inner),
            Transaction::Sqlite(..) => None,
        }
    }

    fn staged(stage: &mut Stage) -> Option<&mut Self::Connection> {
        match stage {
            Stage::Sqlite(..) => None,
            Stage::Postgres(transaction, _) => Self::narrowed(transaction),
        }
    }

    fn widened(connection: &mut Self::Connection, persistent: bool) -> Connection<'_> {
        Connection::Postgres(connection, persistent)
    }
}
