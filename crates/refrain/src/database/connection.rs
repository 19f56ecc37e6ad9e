//! A connection inside a transaction, our own or a caller's: runs statements.

use sqlx::postgres::{PgConnection, PgRow};
use sqlx::query::{Query, QueryAs};
use sqlx::sqlite::{SqliteConnection, SqliteRow};
use sqlx::{FromRow, Postgres, Sqlite};

use super::Result;
use super::error::DatabaseError;
use super::statement::rows::Column;
use super::statement::{Argument, Bound};

/// A row of either database.
pub(crate) trait Record:
    for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow> + Send + Unpin
{
}

impl<T> Record for T where T: for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow> + Send + Unpin {}

/// A row with a number that can be read even if another column is invalid, and the rest of the row if it is
/// valid.
pub(crate) struct Numbered<T> {
    pub(crate) id: i64,
    pub(crate) read: Result<T>,
}

impl<'r, R, T> FromRow<'r, R> for Numbered<T>
where
    R: sqlx::Row,
    T: FromRow<'r, R>,
    i64: sqlx::Decode<'r, R::Database> + sqlx::Type<R::Database>,
    i32: sqlx::Decode<'r, R::Database> + sqlx::Type<R::Database>,
    &'static str: sqlx::ColumnIndex<R>,
{
    fn from_row(row: &'r R) -> sqlx::Result<Numbered<T>> {
        // PostgreSQL's driver decodes a column of four bytes only as `i32`.
        let id = row.try_get::<i64, _>("id").or_else(|_| row.try_get::<i32, _>("id").map(i64::from))?;
        Ok(Numbered { id, read: T::from_row(row).map_err(DatabaseError::from) })
    }
}

/// A connection of either database.
#[derive(Debug)]
pub enum Connection<'c> {
    /// A SQLite connection.
    Sqlite(&'c mut SqliteConnection),
    /// A PostgreSQL connection, and whether statements stay prepared.
    Postgres(&'c mut PgConnection, bool),
}

impl Connection<'_> {
    /// Runs a statement and returns how many rows it changed.
    pub(crate) async fn execute(&mut self, bound: Bound<'_>) -> Result<u64> {
        bound.has_all_arguments();
        Ok(match self {
            Connection::Sqlite(inner) => {
                let query = for_sqlite(sqlx::query(bound.statement.sqlite()), bound.arguments);
                query.execute(&mut **inner).await?.rows_affected()
            }
            Connection::Postgres(inner, persistent) => {
                let query = for_postgres(sqlx::query(bound.statement.postgres()), bound.arguments);
                query.persistent(*persistent && bound.is_kept).execute(&mut **inner).await?.rows_affected()
            }
        })
    }

    /// All rows of a statement.
    pub(crate) async fn fetch_all<T: Record>(&mut self, bound: Bound<'_>) -> Result<Vec<T>> {
        bound.has_all_arguments();
        Ok(match self {
            Connection::Sqlite(inner) => {
                let query = for_sqlite(sqlx::query_as(bound.statement.sqlite()), bound.arguments);
                query.fetch_all(&mut **inner).await?
            }
            Connection::Postgres(inner, persistent) => {
                let query = for_postgres(sqlx::query_as(bound.statement.postgres()), bound.arguments);
                query.persistent(*persistent && bound.is_kept).fetch_all(&mut **inner).await?
            }
        })
    }

    /// The row of a statement that returns at most one.
    pub(crate) async fn fetch_optional<T: Record>(&mut self, bound: Bound<'_>) -> Result<Option<T>> {
        Ok(self.fetch_all(bound).await?.pop())
    }
}

/// A query to which arguments can be added one by one.
trait Bind<'q, DB: sqlx::Database>: Sized {
    fn push<V: 'q + Send + sqlx::Encode<'q, DB> + sqlx::Type<DB>>(self, value: V) -> Self;
}

impl<'q, DB: sqlx::Database> Bind<'q, DB> for Query<'q, DB, DB::Arguments> {
    fn push<V: 'q + Send + sqlx::Encode<'q, DB> + sqlx::Type<DB>>(self, value: V) -> Self {
        self.bind(value)
    }
}

impl<'q, DB: sqlx::Database, T> Bind<'q, DB> for QueryAs<'q, DB, T, DB::Arguments> {
    fn push<V: 'q + Send + sqlx::Encode<'q, DB> + sqlx::Type<DB>>(self, value: V) -> Self {
        self.bind(value)
    }
}

fn for_sqlite<'q, Q: Bind<'q, Sqlite>>(query: Q, arguments: Vec<Argument<'q>>) -> Q {
    arguments.into_iter().fold(query, |query, argument| match argument {
        Argument::Integer(value) => query.push(value),
        Argument::Text(value) => query.push(value),
        Argument::Boolean(value) => query.push(value),
        Argument::Rows(rows) => query.push(rows.json()),
    })
}

fn for_postgres<'q, Q: Bind<'q, Postgres>>(query: Q, arguments: Vec<Argument<'q>>) -> Q {
    arguments.into_iter().fold(query, |query, argument| match argument {
        Argument::Integer(value) => query.push(value),
        Argument::Text(value) => query.push(value),
        Argument::Boolean(value) => query.push(value),
        Argument::Rows(rows) => rows.columns.into_iter().fold(query, |query, column| match column {
            Column::Integers(values) => query.push(values),
            Column::Texts(values) => query.push(values),
            Column::Booleans(values) => query.push(values),
        }),
    })
}
