//! What publishing asks of a database, whichever it is.

use refrain_core::publish::target::{Column, Target};
use refrain_core::publish::text::Texts;
use refrain_core::publish::text::names::ROW;
use refrain_core::publish::{TableName, quoted};
use sqlx::{
    AssertSqlSafe, Column as _, Executor as _, PgConnection, Postgres, SqlSafeStr as _, Sqlite,
    SqliteConnection, Statement as _, TypeInfo as _,
};

use super::rows::{self, Row};
use super::{content, surrogate};
use crate::action::binds::{Argument, Bound};
use crate::project::databases::Speaks;

/// What publishing asks of a database.
pub(crate) trait Publishes: Speaks {
    /// How the ledger's tables begin there.
    const LEDGER: &'static str;

    /// A count, and an example of what was counted.
    fn finding(
        connection: &mut Self::Connection,
        bound: &Bound,
    ) -> impl Future<Output = Result<(i64, Option<String>), sqlx::Error>> + Send;

    /// The columns that a query gives: their names, and what the driver calls their types.
    fn columns(
        connection: &mut Self::Connection,
        bound: &Bound,
    ) -> impl Future<Output = Result<(Vec<String>, Vec<String>), sqlx::Error>> + Send;

    /// A table as the database describes it; without columns if there is none.
    fn target(
        connection: &mut Self::Connection,
        table: &TableName,
    ) -> impl Future<Output = Result<Target, sqlx::Error>> + Send;

    /// Loads rows into a staged table.
    fn load(
        connection: &mut Self::Connection,
        stage: &str,
        columns: &[String],
        rows: &[Row],
    ) -> impl Future<Output = Result<u64, sqlx::Error>> + Send;

    /// Fills in derived ids, where the database cannot do that itself.
    fn identify(
        connection: &mut Self::Connection,
        texts: &Texts,
        column: &str,
        parts: &[String],
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;

    /// Fills in hashes of what keyed rows say, where the database cannot do that itself.
    fn hash(
        connection: &mut Self::Connection,
        texts: &Texts,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;

    /// Keeps others that publish into a table from it until the transaction ends.
    fn lock(
        connection: &mut Self::Connection,
        table: &TableName,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;
}

/// A query with the values of its places.
macro_rules! query {
    ($query:expr, $bound:expr) => {
        $bound.arguments.iter().fold($query, |query, argument| match argument {
            Argument::Text(text) => query.bind(text.as_str()),
            Argument::Integer(number) => query.bind(*number),
            Argument::Real(number) => query.bind(*number),
            Argument::Boolean(value) => query.bind(*value),
            Argument::Timed(value) => query.bind(*value),
        })
    };
}

pub(crate) use query;

macro_rules! asks {
    ($database:ty) => {
        async fn finding(
            connection: &mut Self::Connection,
            bound: &Bound,
        ) -> Result<(i64, Option<String>), sqlx::Error> {
            let text = AssertSqlSafe(bound.text.as_str());
            let query =
                query!(sqlx::query_as::<$database, (i64, Option<String>)>(text).persistent(false), bound);
            query.fetch_one(connection).await
        }

        async fn columns(
            connection: &mut Self::Connection,
            bound: &Bound,
        ) -> Result<(Vec<String>, Vec<String>), sqlx::Error> {
            let statement = connection.prepare(AssertSqlSafe(bound.text.clone()).into_sql_str()).await?;
            let columns = statement.columns().iter();
            Ok(columns.map(|column| (column.name().to_owned(), column.type_info().name().to_owned())).unzip())
        }
    };
}

fn column((name, kind, is_generated): (String, String, bool)) -> Column {
    Column { name, kind, is_generated }
}

fn unique(found: &[String]) -> Vec<Vec<String>> {
    found.iter().filter_map(|columns| serde_json::from_str(columns).ok()).collect()
}

impl Publishes for Sqlite {
    const LEDGER: &'static str = "refrain_";

    asks!(Sqlite);

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
        rows::insert(connection, stage, columns, rows).await
    }

    async fn identify(
        connection: &mut SqliteConnection,
        texts: &Texts,
        column: &str,
        parts: &[String],
    ) -> Result<(), sqlx::Error> {
        let taken = || sqlx::Error::Encode("all three names of a row's number are those of columns".into());
        let number = texts.row_number().ok_or_else(taken)?;
        let parts: Vec<String> = parts.iter().map(|part| format!("{ROW}.{}", quoted(part))).collect();
        surrogate::fill(connection, &quoted(&texts.stage), number, &quoted(column), &parts).await
    }

    async fn hash(connection: &mut SqliteConnection, texts: &Texts) -> Result<(), sqlx::Error> {
        content::fill(connection, texts).await
    }

    /// A file has one writer.
    async fn lock(_: &mut SqliteConnection, _: &TableName) -> Result<(), sqlx::Error> {
        Ok(())
    }
}

impl Publishes for Postgres {
    const LEDGER: &'static str = "refrain.";

    asks!(Postgres);

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
        rows::copy(connection, stage, columns, rows).await
    }

    async fn identify(_: &mut Self::Connection, _: &Texts, _: &str, _: &[String]) -> Result<(), sqlx::Error> {
        Ok(())
    }

    async fn hash(_: &mut Self::Connection, _: &Texts) -> Result<(), sqlx::Error> {
        Ok(())
    }

    async fn lock(connection: &mut Self::Connection, table: &TableName) -> Result<(), sqlx::Error> {
        let statement = include_str!("../../sql/target/lock.postgres.sql");
        sqlx::query(statement).persistent(false).bind(table.quoted()).execute(connection).await?;
        Ok(())
    }
}
