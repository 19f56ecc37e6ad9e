//! Real databases for tests: a SQLite file of its own, a database of its own in the scratch
//! PostgreSQL.
//!
//! A test is written once and runs on both. Without a server the PostgreSQL half fails and says
//! what to type; it is never skipped, because a skipped test looks like a passed one.
//!
//! And tools that inject faults: a server that can be stopped, a pooler, a network that fails,
//! processes to kill.
#![expect(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "support of tests: a panic is the failure report"
)]

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool, SqlitePoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Executor};
use tempfile::TempDir;

pub mod address;
pub mod black_hole;
pub mod children;
pub mod eventually;
pub mod golden;
pub mod history;
pub mod pgbouncer;
pub mod programs;
pub mod project;
pub mod proxy;
pub mod server;
pub mod work;

pub use refrain_harness_macros::{both_databases, both_shops, every_store};

use address::ServerUrl;
use pgbouncer::PgBouncer;

/// A database of one test, which is dropped with this value.
pub enum TestDatabase {
    Sqlite {
        pool: SqlitePool,
        directory: TempDir,
    },
    /// The pooler is dropped first: it holds connections to the database.
    Postgres {
        pool: PgPool,
        pooler: Option<Box<PgBouncer>>,
        scratch: Box<Scratch>,
    },
}

/// A database in the PostgreSQL server. A schema would not do: that of Refrain has a fixed name, which tests would share.
///
/// Emptying a database is cheaper than creating one, so databases are reused by later tests: in the same
/// process, and, when `suite` runs the tests, in the same seat. The last ones are removed with the server.
pub struct Scratch {
    server: PgConnectOptions,
    name: String,
}

static LEFT: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Ends remaining connections, because a test that panicked may have left a transaction open, and drops everything.
const EMPTIED: &str = "
    select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid();
    do $$ declare found name; begin
        execute format('alter database %I reset all', current_database());
        for found in select nspname from pg_namespace where nspname !~ '^(pg_|information_schema$)' loop
            execute format('drop schema %I cascade', found);
        end loop;
    end $$;
    create schema public;";

/// PostgreSQL's error code for a database that does not exist.
const NO_DATABASE: &str = "3D000";

impl Scratch {
    async fn create(server: PgConnectOptions) -> Scratch {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let left = LEFT.lock().unwrap().pop();
        let new = || format!("test_{}_{}", seat(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let name = left.unwrap_or_else(new);
        match server.clone().database(&name).connect().await {
            Ok(mut connection) => {
                connection.execute(EMPTIED).await.unwrap();
                connection.close().await.unwrap();
            }
            Err(sqlx::Error::Database(fault)) if fault.code().as_deref() == Some(NO_DATABASE) => {
                let mut connection = server.connect().await.unwrap();
                connection.execute(AssertSqlSafe(format!("create database {name}"))).await.unwrap();
            }
            Err(error) => panic!("{name}: {error}"),
        }
        Scratch { server, name }
    }
}

/// A name that no other test process uses meanwhile.
fn seat() -> String {
    std::env::var("REFRAIN_TEST_SEAT")
        .map_or_else(|_| format!("process_{}", std::process::id()), |seat| format!("seat_{seat}"))
}

impl Drop for Scratch {
    fn drop(&mut self) {
        LEFT.lock().unwrap().push(std::mem::take(&mut self.name));
    }
}

impl TestDatabase {
    pub async fn sqlite() -> TestDatabase {
        let directory = tempfile::tempdir().unwrap();
        // A user version makes the file non-empty; an empty one would be taken for a truncated store.
        let options = SqliteConnectOptions::new()
            .filename(directory.path().join("test.db"))
            .pragma("user_version", "1")
            .create_if_missing(true);
        let pool = SqlitePoolOptions::new().max_connections(1).connect_with(options).await.unwrap();
        TestDatabase::Sqlite { pool, directory }
    }

    pub async fn postgres() -> TestDatabase {
        let url = std::env::var("REFRAIN_TEST_POSTGRES")
            .expect("this test needs a PostgreSQL server: run ./test, which starts one");
        let server: PgConnectOptions = url.parse().unwrap();
        let scratch = Scratch::create(server).await;
        let options = scratch.server.clone().database(&scratch.name);
        let pool = PgPoolOptions::new().max_connections(4).connect_with(options).await.unwrap();
        TestDatabase::Postgres { pool, pooler: None, scratch: Box::new(scratch) }
    }

    /// The same kind of database, empty.
    pub async fn like(other: &TestDatabase) -> TestDatabase {
        if other.is_sqlite() { TestDatabase::sqlite().await } else { TestDatabase::postgres().await }
    }

    /// A PostgreSQL whose URL leads through a pooler in transaction mode.
    pub async fn pgbouncer() -> TestDatabase {
        let mut database = TestDatabase::postgres().await;
        if let TestDatabase::Postgres { pooler, scratch, .. } = &mut database {
            *pooler = Some(Box::new(PgBouncer::in_front_of(scratch.server.to_url_lossy().as_str()).await));
        }
        database
    }

    /// The URL of a store in this database.
    pub fn url(&self) -> String {
        match self {
            TestDatabase::Sqlite { directory, .. } => {
                format!("sqlite:{}", directory.path().join("test.db").display())
            }
            TestDatabase::Postgres { pooler: None, scratch, .. } => {
                ServerUrl::of(scratch.server.to_url_lossy().as_str()).url(&scratch.name)
            }
            TestDatabase::Postgres { pooler: Some(pooler), scratch, .. } => {
                format!("{}?statement-cache-capacity=0", pooler.url(&scratch.name))
            }
        }
    }

    /// Runs a statement with texts bound to its parameters.
    pub async fn execute(&self, statement: &'static str, texts: &[&str]) -> Result<u64, sqlx::Error> {
        match self {
            TestDatabase::Sqlite { pool, .. } => {
                let query = texts.iter().fold(sqlx::query(statement), |query, text| query.bind(*text));
                Ok(query.execute(pool).await?.rows_affected())
            }
            TestDatabase::Postgres { pool, .. } => {
                let query = texts.iter().fold(sqlx::query(statement), |query, text| query.bind(*text));
                Ok(query.execute(pool).await?.rows_affected())
            }
        }
    }

    /// The first column of every row.
    pub async fn texts(&self, query: &'static str) -> Vec<String> {
        match self {
            TestDatabase::Sqlite { pool, .. } => sqlx::query_scalar(query).fetch_all(pool).await.unwrap(),
            TestDatabase::Postgres { pool, .. } => sqlx::query_scalar(query).fetch_all(pool).await.unwrap(),
        }
    }

    /// Executes a statement on the tables of a store, with their SQLite names. Returns how many rows it changed.
    pub async fn store(&self, text: &str) -> u64 {
        match self {
            TestDatabase::Sqlite { pool, .. } => {
                pool.execute(AssertSqlSafe(text)).await.unwrap().rows_affected()
            }
            TestDatabase::Postgres { pool, .. } => {
                pool.execute(AssertSqlSafe(in_schema(text))).await.unwrap().rows_affected()
            }
        }
    }

    /// The integers of a one-column query on the tables of a store, with their SQLite names.
    pub async fn store_numbers(&self, query: &str) -> Vec<i64> {
        match self {
            TestDatabase::Sqlite { pool, .. } => {
                sqlx::query_scalar(AssertSqlSafe(query)).fetch_all(pool).await.unwrap()
            }
            TestDatabase::Postgres { pool, .. } => {
                sqlx::query_scalar(AssertSqlSafe(in_schema(query))).fetch_all(pool).await.unwrap()
            }
        }
    }

    /// The texts of a one-column query on the tables of a store, with their SQLite names.
    pub async fn store_texts(&self, query: &str) -> Vec<String> {
        match self {
            TestDatabase::Sqlite { pool, .. } => {
                sqlx::query_scalar(AssertSqlSafe(query)).fetch_all(pool).await.unwrap()
            }
            TestDatabase::Postgres { pool, .. } => {
                sqlx::query_scalar(AssertSqlSafe(in_schema(query))).fetch_all(pool).await.unwrap()
            }
        }
    }

    pub fn is_sqlite(&self) -> bool {
        matches!(self, TestDatabase::Sqlite { .. })
    }
}

/// Tables have a schema on PostgreSQL, and a prefix on SQLite.
fn in_schema(text: &str) -> String {
    text.replace("refrain_", "refrain.")
}
