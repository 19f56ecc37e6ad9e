//! The databases that jobs read and write, opened when first needed.
//!
//! They are not ours: no file is made, no pragma stays, no mode is changed.

use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use refrain_core::project::{self as files, Dialect, TimeForm};
use refrain_core::publish::quoted;
use refrain_core::publish::text::names::{FOUND, SHOWN};
use sqlx::postgres::{PgPool, PgPoolOptions};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool, SqlitePoolOptions};
use sqlx::{
    AssertSqlSafe, Column as _, ConnectOptions as _, Connection as _, Executor as _, Pool, Postgres,
    SqlSafeStr as _, Sqlite, Statement as _, TypeInfo as _,
};
use tokio::sync::{OnceCell, mpsc};

use super::unopened::Unopened;
use crate::action::binds::{Argument, Bound};
use crate::database::Address;
use crate::database::held::close;
use crate::ledger::Backend;

/// Connections to one server; a file has one writer anyway.
const CONNECTIONS: u32 = 8;
/// How long a statement waits for somebody else's lock on a file.
const BUSY: Duration = Duration::from_secs(10);
/// How long to wait for a server to answer at all.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long to wait for a connection that is free.
const CONNECT: Duration = Duration::from_secs(30);

/// A role that is called like our schema finds our tables before its own by the usual search path: its `jobs` would be ours. On
/// a connection for statements of a job, the schema is the last of the path. It stays in it, for such a role may have made
/// tables of its own there.
const OWN_TABLES_FIRST: &str = r#"select set_config('search_path',
        trim(leading ', ' from regexp_replace(current_setting('search_path'), '"\$user",?\s*', '') || ', refrain'), false)
    where current_user = 'refrain' and current_setting('search_path') like '%"$user"%'"#;

/// A database of a project.
pub(crate) struct Database {
    /// What the project calls it.
    pub(crate) name: String,
    address: Address,
    time: TimeForm,
    connected: OnceCell<Connected>,
}

/// One that is open.
#[derive(Debug, Clone)]
pub(crate) enum Connected {
    Sqlite(SqlitePool),
    Postgres(PgPool),
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Database {
    pub(crate) fn new(name: &str, address: Address, file: &files::Database) -> Arc<Database> {
        let connected = OnceCell::new();
        Arc::new(Database { name: name.to_owned(), address, time: file.time, connected })
    }

    pub(crate) fn time(&self) -> TimeForm {
        self.time
    }

    /// Where it is, for people.
    pub(crate) fn address(&self) -> String {
        self.address.to_string()
    }

    pub(crate) fn is_postgres(&self) -> bool {
        matches!(self.address, Address::Postgres { .. })
    }

    /// Its pool, opened at the first call.
    pub(crate) async fn connect(&self) -> Result<&Connected, Unopened> {
        let opened = async || match &self.address {
            Address::Sqlite { path } if !path.exists() => Err(Unopened::missing(&self.name, &self.address)),
            address => open(address).await.map_err(|error| Unopened::of(&self.name, address, error)),
        };
        self.connected.get_or_try_init(opened).await
    }

    pub(crate) async fn close(&self) {
        match self.connected.get() {
            Some(Connected::Sqlite(pool)) => pool.close().await,
            Some(Connected::Postgres(pool)) => close(pool, None).await,
            None => {}
        }
    }
}

/// One that answers. A pool would ask a server that is down again and again, and then not say why.
async fn open(address: &Address) -> Result<Connected, sqlx::Error> {
    match address {
        Address::Sqlite { path } => {
            let options = SqliteConnectOptions::new().filename(path).busy_timeout(BUSY);
            let pool = SqlitePoolOptions::new().max_connections(4).acquire_timeout(CONNECT);
            let pool = pool.connect_with(options).await?;
            pool.execute("select name from sqlite_schema limit 1").await?;
            Ok(Connected::Sqlite(pool))
        }
        Address::Postgres { options, .. } => {
            let answer = tokio::time::timeout(PATIENCE, options.connect()).await;
            answer.map_err(|_| unanswered())??.close().await?;
            let pool = PgPoolOptions::new().max_connections(CONNECTIONS).acquire_timeout(CONNECT);
            let pool = pool.after_connect(|connection, _| {
                Box::pin(async move { connection.execute(OWN_TABLES_FIRST).await.map(drop) })
            });
            Ok(Connected::Postgres(pool.connect_lazy_with((**options).clone())))
        }
    }
}

fn unanswered() -> std::io::Error {
    let said = format!("no answer within {} seconds", PATIENCE.as_secs());
    std::io::Error::new(std::io::ErrorKind::ConnectionRefused, said)
}

/// What job files ask of a database, whichever it is.
pub(crate) trait Speaks: Backend {
    const DIALECT: Dialect;

    /// Executes a statement; gives how many rows it changed.
    fn execute(
        connection: &mut Self::Connection,
        bound: &Bound,
    ) -> impl Future<Output = Result<u64, sqlx::Error>> + Send;

    /// The only column of each row, as text; none where it is null.
    fn texts(
        pool: &Pool<Self>,
        bound: &Bound,
    ) -> impl Future<Output = Result<Vec<Option<String>>, sqlx::Error>> + Send;

    /// The rows of a query with these columns, each as a JSON object, to whoever takes them.
    fn objects(
        pool: &Pool<Self>,
        bound: &Bound,
        columns: &[String],
        taker: mpsc::Sender<String>,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;

    /// What the columns are called.
    fn names(
        pool: &Pool<Self>,
        bound: &Bound,
    ) -> impl Future<Output = Result<Vec<String>, sqlx::Error>> + Send;

    /// What the database calls the types of the columns.
    fn kinds(
        pool: &Pool<Self>,
        bound: &Bound,
    ) -> impl Future<Output = Result<Vec<String>, sqlx::Error>> + Send;
}

/// The only column of a query as text, on both databases.
fn as_texts(text: &str) -> String {
    format!("with {FOUND}({SHOWN}) as ({text}\n) select cast({SHOWN} as text) from {FOUND}")
}

/// The rows of a query as JSON objects. Both keep numbers exact.
fn as_objects(dialect: Dialect, text: &str, columns: &[String]) -> String {
    let object = match dialect {
        Dialect::Postgres => format!("cast(pg_catalog.row_to_json({FOUND}) as pg_catalog.text)"),
        Dialect::Sqlite => {
            let pair =
                |column: &String| format!("'{}', {FOUND}.{}", column.replace('\'', "''"), quoted(column));
            format!("json_object({})", columns.iter().map(pair).collect::<Vec<_>>().join(", "))
        }
    };
    format!("select {object} from ({text}\n) as {FOUND}")
}

macro_rules! speaks {
    ($database:ty, $dialect:expr) => {
        impl Speaks for $database {
            const DIALECT: Dialect = $dialect;

            async fn execute(connection: &mut Self::Connection, bound: &Bound) -> Result<u64, sqlx::Error> {
                let query = sqlx::query::<$database>(AssertSqlSafe(bound.text.as_str()));
                let query = bound.arguments.iter().fold(query, |query, argument| match argument {
                    Argument::Text(text) => query.bind(text.as_str()),
                    Argument::Integer(number) => query.bind(*number),
                    Argument::Real(number) => query.bind(*number),
                    Argument::Boolean(value) => query.bind(*value),
                    Argument::Timed(value) => query.bind(*value),
                });
                Ok(query.execute(connection).await?.rows_affected())
            }

            async fn texts(pool: &Pool<Self>, bound: &Bound) -> Result<Vec<Option<String>>, sqlx::Error> {
                let text = as_texts(&bound.text);
                let query = sqlx::query_scalar::<$database, Option<String>>(AssertSqlSafe(text));
                let query = bound.arguments.iter().fold(query, |query, argument| match argument {
                    Argument::Text(text) => query.bind(text.as_str()),
                    Argument::Integer(number) => query.bind(*number),
                    Argument::Real(number) => query.bind(*number),
                    Argument::Boolean(value) => query.bind(*value),
                    Argument::Timed(value) => query.bind(*value),
                });
                query.fetch_all(pool).await
            }

            async fn objects(
                pool: &Pool<Self>,
                bound: &Bound,
                columns: &[String],
                taker: mpsc::Sender<String>,
            ) -> Result<(), sqlx::Error> {
                let text = as_objects(Self::DIALECT, &bound.text, columns);
                let query = sqlx::query_scalar::<$database, String>(AssertSqlSafe(text));
                let query = bound.arguments.iter().fold(query, |query, argument| match argument {
                    Argument::Text(text) => query.bind(text.as_str()),
                    Argument::Integer(number) => query.bind(*number),
                    Argument::Real(number) => query.bind(*number),
                    Argument::Boolean(value) => query.bind(*value),
                    Argument::Timed(value) => query.bind(*value),
                });
                let mut rows = query.fetch(pool);
                while let Some(row) = poll_fn(|context| rows.as_mut().poll_next(context)).await {
                    if taker.send(row?).await.is_err() {
                        break;
                    }
                }
                Ok(())
            }

            async fn names(pool: &Pool<Self>, bound: &Bound) -> Result<Vec<String>, sqlx::Error> {
                let statement = pool.prepare(AssertSqlSafe(bound.text.clone()).into_sql_str()).await?;
                Ok(statement.columns().iter().map(|column| column.name().to_owned()).collect())
            }

            async fn kinds(pool: &Pool<Self>, bound: &Bound) -> Result<Vec<String>, sqlx::Error> {
                let statement = pool.prepare(AssertSqlSafe(bound.text.clone()).into_sql_str()).await?;
                Ok(statement.columns().iter().map(|column| column.type_info().name().to_owned()).collect())
            }
        }
    };
}

speaks!(Sqlite, Dialect::Sqlite);
speaks!(Postgres, Dialect::Postgres);
