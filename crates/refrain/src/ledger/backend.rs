//! The two databases by their sqlx types: what a program's own pool and transaction are made of.

use std::sync::Arc;
use std::time::Duration;

use sqlx::{Pool, Postgres, Sqlite};

use crate::database::connection::Connection;
use crate::database::{Database, Transaction};

/// PostgreSQL or SQLite, as sqlx knows them: [`sqlx::Postgres`] and [`sqlx::Sqlite`].
///
/// Nobody else can implement it.
pub trait Backend: Sealed {}

impl Backend for Sqlite {}
impl Backend for Postgres {}

/// What the ledger needs of a database.
pub trait Sealed: sqlx::Database {
    /// A caller's pool as one of our databases.
    #[doc(hidden)]
    fn database(pool: &Pool<Self>, idle: Duration) -> Database;

    /// Tells pools apart.
    #[doc(hidden)]
    fn identity(pool: &Pool<Self>) -> usize;

    /// The connection of a transaction that was begun on such a database.
    #[doc(hidden)]
    fn narrowed(transaction: &mut Transaction) -> Option<&mut Self::Connection>;

    /// A caller's own connection.
    #[doc(hidden)]
    fn widened(connection: &mut Self::Connection, persistent: bool) -> Connection<'_>;
}

impl Sealed for Sqlite {
    fn database(pool: &Pool<Sqlite>, _: Duration) -> Database {
        Database::Sqlite { writer: pool.clone(), readers: pool.clone() }
    }

    fn identity(pool: &Pool<Sqlite>) -> usize {
        Arc::as_ptr(&pool.connect_options()).addr()
    }

    fn narrowed(transaction: &mut Transaction) -> Option<&mut Self::Connection> {
        match transaction {
            Transaction::Sqlite(inner, _) => Some(&mut **inner),
            Transaction::Postgres(..) => None,
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

    fn identity(pool: &Pool<Postgres>) -> usize {
        Arc::as_ptr(&pool.connect_options()).addr()
    }

    fn narrowed(transaction: &mut Transaction) -> Option<&mut Self::Connection> {
        match transaction {
            Transaction::Postgres(inner, ..) => Some(&mut **inner),
            Transaction::Sqlite(..) => None,
        }
    }

    fn widened(connection: &mut Self::Connection, persistent: bool) -> Connection<'_> {
        Connection::Postgres(connection, persistent)
    }
}
