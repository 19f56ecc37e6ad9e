//! Copies of SQLite files, and the ids by which one database is told from its copies.

use sqlx::{Connection as _, Executor as _};

use super::connection::Connection;
use super::statement::Bound;
use super::{Database, Result};

impl Database {
    /// Copies a file as it is at one instant; false for a server.
    pub(crate) async fn copy_into(&self, path: &std::path::Path) -> Result<bool> {
        let Database::Sqlite { readers, .. } = self else { return Ok(false) };
        let path = path.to_string_lossy().into_owned();
        let mut reader = readers.acquire().await?;
        // It writes to the copy alone, and a connection that only looks would refuse that as well.
        reader.execute("pragma query_only = 0").await?;
        let copied = sqlx::query("vacuum into $1").bind(path).execute(&mut *reader).await;
        reader.execute("pragma query_only = 1").await?;
        copied?;
        Ok(true)
    }

    /// Executes one statement in a file that nobody else uses.
    pub(crate) async fn amend(path: &std::path::Path, bound: Bound<'_>) -> Result<u64> {
        let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path);
        let mut connection = sqlx::SqliteConnection::connect_with(&options).await?;
        let changed = Connection::Sqlite(&mut connection).execute(bound).await?;
        sqlx::Connection::close(connection).await?;
        Ok(changed)
    }
}

/// An id that nothing else has: 128 bits of the system's randomness.
pub(crate) fn random_id() -> String {
    let mut bytes = [0; 16];
    #[expect(
        clippy::expect_used,
        reason = "a system without randomness cannot make a store that is told from others"
    )]
    getrandom::getrandom(&mut bytes).expect("the system gives random bytes");
    format!("{:032x}", u128::from_be_bytes(bytes))
}
