//! What Refrain asks of a PostgreSQL server of the user.

use std::future::poll_fn;
use std::time::Duration;

use futures_util::StreamExt as _;
use jiff::Timestamp;
use jiff::civil::DateTime;
use refrain_core::project::Dialect;
use refrain_core::publish::target::Target;
use refrain_core::publish::text::TableStatements;
use refrain_core::publish::{TableName, quoted};
use sqlx::postgres::PgRow;
use sqlx::{
    AssertSqlSafe, Column as _, ConnectOptions as _, Executor as _, PgConnection, Pool, Postgres, Row as _,
    SqlSafeStr as _, Statement as _, TypeInfo as _,
};
use tokio::sync::mpsc;

use super::backend::{Backend, Identity, column, unique};
use super::cell::{Cell, Row};
use super::pages::{RowPage, RowPages};
use super::query::{BoundQuery, QueryArgument, alike, as_objects, as_texts, numbered, query};
use crate::database::connection::Connection;
use crate::database::staging::Stage;
use crate::database::{Database, Transaction};

impl Backend for Postgres {
    const DIALECT: Dialect = Dialect::Postgres;
    const LEDGER: &'static str = "refrain.";

    alike!(Postgres);

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

    async fn target(connection: &mut PgConnection, table: &TableName) -> Result<Target, sqlx::Error> {
        let name = table.quoted();
        let columns = sqlx::query_as(include_str!("../../sql/target/columns.postgres.sql"));
        let columns = columns.persistent(false).bind(&name);
        let columns: Vec<(String, String, bool)> = columns.fetch_all(&mut *connection).await?;
        let found = sqlx::query_scalar(include_str!("../../sql/target/unique.postgres.sql"));
        let found = found.persistent(false).bind(&name);
        let found: Vec<String> = found.fetch_all(&mut *connection).await?;
        let called = sqlx::query_as(include_str!("../../sql/target/name.postgres.sql"));
        let called: Option<(String, bool)> =
            called.persistent(false).bind(&name).fetch_optional(&mut *connection).await?;
        let (name, is_view) = called.unwrap_or_default();
        Ok(Target {
            name,
            columns: columns.into_iter().map(column).collect(),
            unique: unique(&found),
            is_view,
        })
    }

    async fn load(
        connection: &mut Self::Connection,
        stage: &str,
        columns: &[String],
        rows: &[Row],
    ) -> Result<u64, sqlx::Error> {
        copy(connection, stage, columns, rows).await
    }

    async fn identify(
        _: &mut Self::Connection,
        _: &TableStatements,
        _: &str,
        _: &[String],
    ) -> Result<(), sqlx::Error> {
        Ok(())
    }

    async fn hash(_: &mut Self::Connection, _: &TableStatements) -> Result<(), sqlx::Error> {
        Ok(())
    }

    async fn lock(connection: &mut Self::Connection, table: &TableName) -> Result<(), sqlx::Error> {
        let statement = include_str!("../../sql/target/lock.postgres.sql");
        sqlx::query(statement).persistent(false).bind(table.quoted()).execute(connection).await?;
        Ok(())
    }

    fn shown(name: &str) -> String {
        format!("cast({name} as pg_catalog.text)")
    }

    /// By bytes: collations of a language may change with the system.
    fn sorted(name: &str) -> String {
        format!("cast({name} as pg_catalog.text) collate pg_catalog.\"C\"")
    }

    fn cells(row: &PgRow, kinds: &[String]) -> Result<Row, sqlx::Error> {
        let cell = |(at, kind): (usize, &String)| {
            let Some(text) = row.try_get::<Option<String>, _>(at)? else { return Ok(Cell::Null) };
            Ok(match kind.as_str() {
                "BOOL" => Cell::Boolean(text == "true"),
                "INT2" | "INT4" | "INT8" | "OID" => Cell::Number(text),
                // NaN and infinity stay text: neither JSON nor SQLite has them.
                "FLOAT4" | "FLOAT8" | "NUMERIC" if text.bytes().any(|byte| byte.is_ascii_digit()) => {
                    Cell::Number(text)
                }
                "BYTEA" => Cell::Bytes(text),
                "TIMESTAMPTZ" | "TIMESTAMP" => timestamp(&text).map_or(Cell::Text(text), Cell::Timestamp),
                _ => Cell::Text(text),
            })
        };
        kinds.iter().enumerate().map(cell).collect()
    }
}

/// Loads rows into a stage in PostgreSQL.
pub(crate) async fn copy(
    connection: &mut PgConnection,
    stage: &str,
    columns: &[String],
    rows: &[Row],
) -> Result<u64, sqlx::Error> {
    let mut text = String::new();
    for row in rows {
        for (at, cell) in row.iter().enumerate() {
            if at > 0 {
                text.push('\t');
            }
            cell.write_copy(&mut text);
        }
        text.push('\n');
    }
    let names: Vec<String> = columns.iter().map(|column| quoted(column)).collect();
    let statement = format!("copy {} ({}) from stdin", quoted(stage), names.join(", "));
    let mut copying = connection.copy_in_raw(&statement).await?;
    copying.send(text.into_bytes()).await?;
    copying.finish().await
}

/// A timestamp as PostgreSQL writes it, such as `2026-06-09 12:00:00+00`; in UTC if it has no offset.
fn timestamp(text: &str) -> Option<Timestamp> {
    let civil: Option<DateTime> = text.parse().ok();
    let with_offset = || text.parse().ok();
    let utc = |civil: DateTime| civil.to_zoned(jiff::tz::TimeZone::UTC).ok().map(|zoned| zoned.timestamp());
    with_offset().or_else(|| civil.and_then(utc))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timestamp_is_read_as_postgres_writes_it() {
        for (text, expected) in [
            ("2026-06-09 12:00:00+00", Some("2026-06-09T12:00:00Z")),
            ("2026-06-09 12:00:00.25+02", Some("2026-06-09T10:00:00.25Z")),
            ("2026-06-09 12:00:00", Some("2026-06-09T12:00:00Z")),
            ("infinity", None),
        ] {
            assert_eq!(timestamp(text).map(|at| at.to_string()).as_deref(), expected, "{text}");
        }
    }
}
