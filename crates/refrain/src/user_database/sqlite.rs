//! What Refrain asks of a SQLite file of the user. SQLite cannot hash and has few types, so some of it is done here.

mod content_hash;
pub(crate) mod surrogate;

use std::future::poll_fn;
use std::time::Duration;

use futures_util::StreamExt as _;
use refrain_core::project::Dialect;
use refrain_core::publish::target::Target;
use refrain_core::publish::text::TableStatements;
use refrain_core::publish::text::names::ROW;
use refrain_core::publish::{TableName, quoted};
use sqlx::sqlite::SqliteRow;
use sqlx::{
    AssertSqlSafe, Column as _, ConnectOptions as _, Executor as _, Pool, Row as _, SqlSafeStr as _, Sqlite,
    SqliteConnection, Statement as _, TypeInfo as _,
};
use tokio::sync::mpsc;

use super::backend::{Backend, Identity, column, unique};
use super::cell::{Cell, Row};
use super::pages::{RowPage, RowPages};
use super::query::{BoundQuery, QueryArgument, alike, as_objects, as_texts, numbered, query};
use crate::database::connection::Connection;
use crate::database::staging::Stage;
use crate::database::{Database, Transaction};

impl Backend for Sqlite {
    const DIALECT: Dialect = Dialect::Sqlite;
    const LEDGER: &'static str = "refrain_";

    alike!(Sqlite);

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

    async fn target(connection: &mut SqliteConnection, table: &TableName) -> Result<Target, sqlx::Error> {
        let schema = table.schema().unwrap_or("main");
        let columns = sqlx::query_as(include_str!("../../sql/target/columns.sqlite.sql"));
        let columns: Vec<(String, String, bool)> =
            columns.bind(table.name()).bind(schema).fetch_all(&mut *connection).await?;
        let found = sqlx::query_scalar(include_str!("../../sql/target/unique.sqlite.sql"));
        let found: Vec<String> = found.bind(table.name()).bind(schema).fetch_all(&mut *connection).await?;
        let name = sqlx::query_as(include_str!("../../sql/target/name.sqlite.sql"));
        let name: Option<(String, bool)> =
            name.bind(table.name()).bind(schema).fetch_optional(&mut *connection).await?;
        let (name, is_view) = name.unwrap_or_default();
        Ok(Target {
            name,
            columns: columns.into_iter().map(column).collect(),
            unique: unique(&found),
            is_view,
        })
    }

    async fn load(
        connection: &mut SqliteConnection,
        stage: &str,
        columns: &[String],
        rows: &[Row],
    ) -> Result<u64, sqlx::Error> {
        insert(connection, stage, columns, rows).await
    }

    async fn identify(
        connection: &mut SqliteConnection,
        texts: &TableStatements,
        column: &str,
        parts: &[String],
    ) -> Result<(), sqlx::Error> {
        let taken = || sqlx::Error::Encode("the table has columns named rowid, oid and _rowid_".into());
        let number = texts.row_number().ok_or_else(taken)?;
        let parts: Vec<String> = parts.iter().map(|part| format!("{ROW}.{}", quoted(part))).collect();
        surrogate::fill(connection, &quoted(&texts.stage), number, &quoted(column), &parts).await
    }

    async fn hash(connection: &mut SqliteConnection, texts: &TableStatements) -> Result<(), sqlx::Error> {
        content_hash::fill(connection, texts).await
    }

    /// Does nothing: SQLite has one writer.
    async fn lock(_: &mut SqliteConnection, _: &TableName) -> Result<(), sqlx::Error> {
        Ok(())
    }

    /// A column with its type. A real is not converted to text by SQLite, whose text may be that of another number.
    fn shown(name: &str) -> String {
        let text = refrain_core::surrogate::text(Dialect::Sqlite, name);
        format!("typeof({name}), case typeof({name}) when 'real' then {name} else {text} end")
    }

    fn sorted(name: &str) -> String {
        Self::shown(name)
    }

    fn cells(row: &SqliteRow, kinds: &[String]) -> Result<Row, sqlx::Error> {
        let cell = |at: usize| {
            let (kind, at) = (row.try_get::<&str, _>(2 * at)?, 2 * at + 1);
            Ok(match kind {
                "null" => Cell::Null,
                "real" => real(row.try_get_unchecked(at)?),
                "integer" => Cell::Number(row.try_get_unchecked(at)?),
                "blob" => Cell::Bytes(row.try_get_unchecked(at)?),
                _ => Cell::Text(row.try_get_unchecked(at)?),
            })
        };
        (0..kinds.len()).map(cell).collect()
    }
}

/// Loads rows into a stage in SQLite.
pub(crate) async fn insert(
    connection: &mut SqliteConnection,
    stage: &str,
    columns: &[String],
    rows: &[Row],
) -> Result<u64, sqlx::Error> {
    let texts = sqlx::query_scalar(include_str!("../../sql/target/texts.sqlite.sql"));
    let texts: Vec<String> = texts.bind(stage).fetch_all(&mut *connection).await?;
    let is_text: Vec<bool> = columns.iter().map(|column| texts.contains(column)).collect();
    let mut text = String::from("[");
    for (number, row) in rows.iter().enumerate() {
        text.push_str(if number == 0 { "[" } else { ",[" });
        for (at, (cell, is_text)) in row.iter().zip(&is_text).enumerate() {
            if at > 0 {
                text.push(',');
            }
            if *is_text { cell.json_text(&mut text) } else { cell.json(&mut text) }
        }
        text.push(']');
    }
    text.push(']');
    let names: Vec<String> = columns.iter().map(|column| quoted(column)).collect();
    let values: Vec<String> = (0..columns.len()).map(|at| format!("value ->> {at}")).collect();
    let statement = format!(
        "insert into {} ({}) select {} from jsonb_each($1)",
        quoted(stage),
        names.join(", "),
        values.join(", ")
    );
    let inserted = sqlx::query(AssertSqlSafe(statement)).bind(text).execute(connection).await?;
    Ok(inserted.rows_affected())
}

/// A number as the shortest text that reads back as the same number. Infinity becomes text: neither JSON nor a server's
/// numeric has it.
fn real(number: f64) -> Cell {
    if number.is_finite() { Cell::Number(format!("{number:?}")) } else { Cell::Text(number.to_string()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_real_is_as_short_as_it_can_be() {
        for (number, expected) in [
            (0.1, Cell::Number("0.1".to_owned())),
            (3.0, Cell::Number("3.0".to_owned())),
            (1e300, Cell::Number("1e300".to_owned())),
            (f64::INFINITY, Cell::Text("inf".to_owned())),
        ] {
            assert_eq!(real(number), expected);
        }
    }
}
