//! What Refrain asks of a database of the user, PostgreSQL or SQLite, by their sqlx types.
//!
//! One trait, so that code is written once for both. What differs is in `sqlite.rs` and `postgres.rs`.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use refrain_core::project::Dialect;
use refrain_core::publish::TableName;
use refrain_core::publish::target::{Target, TargetColumn};
use refrain_core::publish::text::TableStatements;
use sqlx::Pool;
use tokio::sync::mpsc;

use super::cell::Row;
use super::pages::RowPage;
use super::query::BoundQuery;
use crate::database::connection::Connection;
use crate::database::held::Holds;
use crate::database::staging::Stage;
use crate::database::{Database, Transaction};

/// Clones of a pool share their connect options with each other and with no other pool.
#[derive(Clone)]
pub struct Identity(pub(super) Arc<dyn Any + Send + Sync>);

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

/// PostgreSQL or SQLite, as sqlx knows them: [`sqlx::Postgres`] and [`sqlx::Sqlite`].
///
/// No other type can implement it.
pub trait Backend: Holds {
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

    /// The language that its statements are written in.
    #[doc(hidden)]
    const DIALECT: Dialect;

    /// Executes a statement; gives how many rows it changed.
    #[doc(hidden)]
    fn execute_bound(
        connection: &mut Self::Connection,
        bound: &BoundQuery,
    ) -> impl Future<Output = Result<u64, sqlx::Error>> + Send;

    /// The only column of each row, as text; none where it is null.
    #[doc(hidden)]
    fn texts(
        pool: &Pool<Self>,
        bound: &BoundQuery,
    ) -> impl Future<Output = Result<Vec<Option<String>>, sqlx::Error>> + Send;

    /// The rows of a query with these columns, each as a JSON object, into a channel.
    #[doc(hidden)]
    fn objects(
        connection: &mut Self::Connection,
        bound: &BoundQuery,
        columns: &[String],
        taker: mpsc::Sender<String>,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;

    /// The prefix of the ledger's tables.
    #[doc(hidden)]
    const LEDGER: &'static str;

    /// A count, and an example of the rows that were counted.
    #[doc(hidden)]
    fn finding(
        connection: &mut Self::Connection,
        bound: &BoundQuery,
    ) -> impl Future<Output = Result<(i64, Option<String>), sqlx::Error>> + Send;

    /// The columns of a query: their names, and their types as the driver names them.
    #[doc(hidden)]
    fn columns(
        connection: &mut Self::Connection,
        bound: &BoundQuery,
    ) -> impl Future<Output = Result<(Vec<String>, Vec<String>), sqlx::Error>> + Send;

    /// The definition of a table; without columns if there is no such table.
    #[doc(hidden)]
    fn target(
        connection: &mut Self::Connection,
        table: &TableName,
    ) -> impl Future<Output = Result<Target, sqlx::Error>> + Send;

    /// Loads rows into a stage.
    #[doc(hidden)]
    fn load(
        connection: &mut Self::Connection,
        stage: &str,
        columns: &[String],
        rows: &[Row],
    ) -> impl Future<Output = Result<u64, sqlx::Error>> + Send;

    /// Fills in derived ids, if the database cannot do that itself.
    #[doc(hidden)]
    fn identify(
        connection: &mut Self::Connection,
        texts: &TableStatements,
        column: &str,
        parts: &[String],
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;

    /// Fills in the content hashes of keyed rows, if the database cannot do that itself.
    #[doc(hidden)]
    fn hash(
        connection: &mut Self::Connection,
        texts: &TableStatements,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;

    /// Locks a table against other publishes until the transaction ends.
    #[doc(hidden)]
    fn lock(
        connection: &mut Self::Connection,
        table: &TableName,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;

    /// Reads a query to its end, page by page.
    #[doc(hidden)]
    fn read(
        pool: Pool<Self>,
        bound: BoundQuery,
        kinds: Vec<String>,
        sorts: bool,
        pages: mpsc::Sender<RowPage>,
    ) -> impl Future<Output = ()> + Send;

    /// The expression that selects a column without losing anything of its value.
    #[doc(hidden)]
    fn shown(name: &str) -> String;

    /// The expression that sorts by a column in the same order on every machine.
    #[doc(hidden)]
    fn sorted(name: &str) -> String;

    /// The values of a row that was selected so; `kinds` are the types of its columns.
    #[doc(hidden)]
    fn cells(row: &Self::Row, kinds: &[String]) -> Result<Row, sqlx::Error>;
}

pub(super) fn column((name, kind, is_generated): (String, String, bool)) -> TargetColumn {
    TargetColumn { name, kind, is_generated }
}

pub(super) fn unique(found: &[String]) -> Vec<Vec<String>> {
    found.iter().filter_map(|columns| serde_json::from_str(columns).ok()).collect()
}
