//! Copies SQLite files, and makes the ids by which a database is told from its copies.

use sqlx::{Connection as _, Executor as _};

use super::connection::Connection;
use super::statement::Bound;
use super::{Database, Result};

impl Database {
    /// Copies one snapshot of a file; false for a server.
    pub(crate) async fn copy_into(&self, path: &std::path::Path) -> Result<bool> {
        let Database::Sqlite { readers, .. } = self else { return Ok(false) };
        let path = path.to_string_lossy().into_owned();
        let mut reader = readers.acquire().await?;
        // `vacuum into` writes only the copy, but a read-only connection would refuse it as well.
        reader.execute("pragma query_only = 0").await?;
        let copied = sqlx::query("vacuum into $1").bind(path).execute(&mut *reader).await;
        reader.execute("pragma query_only = 1").await?;
        copied?;
        Ok(true)
    }

    /// Executes one statement in a file that no other process uses.
    pub(crate) async fn amend(path: &std::path::Path, bound: Bound<'_>) -> Result<u64> {
        let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path);
        let mut connection = sqlx::SqliteConnection::connect_with(&options).await?;
        let changed = Connection::Sqlite(&mut connection).execute(bound).await?;
        sqlx::Connection::close(connection).await?;
        Ok(changed)
    }
}

/// A random id of 128 bits from the system.
pub(crate) fn random_id() -> String {
    let mut bytes = [0; 16];
    #[expect(clippy::expect_used, reason = "without randomness, a store and a copy of it look the same")]
    getrandom::getrandom(&mut bytes).expect("the system gives random bytes");
    format!("{:032x}", u128::from_be_bytes(bytes))
}
