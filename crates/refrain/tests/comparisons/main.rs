//! Each comparison of a statement by itself: it matches the expected row, and no row that differs
//! in one column.
//!
//! Most of these comparisons matter between a read and a write, a moment that another process must
//! hit; and often one covers for another. Here each statement runs without that other process, so
//! that each comparison must work alone. On SQLite only: both databases have the same text and
//! understand it alike. Locks are tested in `locks.rs`, on PostgreSQL.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "in a test a panic is the failure report")]

mod locks;
mod once;
mod store;
mod transitions;
mod units;

use refrain::{Refrain, testing};
use refrain_harness::TestDatabase;
use sqlx::{AssertSqlSafe, Executor as _, Row as _};

/// A statement by the name of its file, for SQLite and for PostgreSQL.
fn texts(statement: &str) -> (&'static str, &'static str) {
    let path = format!("sql/{statement}.sql");
    let named = testing::statements().into_iter().find(|(name, ..)| *name == path);
    let (_, sqlite, postgres) = named.expect(statement);
    (sqlite, postgres)
}

/// A text with its arguments in their places.
fn with(text: &str, arguments: &[&str]) -> String {
    // The last first: `$1` begins `$10` as well.
    let places = arguments.iter().enumerate().rev();
    places.fold(text.to_owned(), |text, (at, argument)| text.replace(&format!("${}", at + 1), argument))
}

/// A statement, its arguments as they are written in SQL, and the rows that it finds.
struct Case {
    database: TestDatabase,
    text: String,
    given: &'static str,
}

impl Case {
    async fn of(statement: &str, arguments: &[&str], given: &'static str) -> Case {
        let database = TestDatabase::sqlite().await;
        Refrain::migrate(&database.url()).await.unwrap();
        let (sqlite, _) = texts(statement);
        Case { database, text: with(sqlite, arguments), given }
    }

    /// How many rows it meets, or counts, when this was changed before; nothing of it is kept.
    async fn met(&self, change: &str) -> u64 {
        let TestDatabase::Sqlite { pool, .. } = &self.database else { unreachable!() };
        let mut transaction = pool.begin().await.unwrap();
        transaction.execute(AssertSqlSafe(self.given)).await.unwrap();
        if !change.is_empty() {
            let changed = transaction.execute(AssertSqlSafe(change)).await.expect(change);
            assert!(changed.rows_affected() > 0, "{change}");
        }
        let text = AssertSqlSafe(self.text.clone());
        let met = if self.text.starts_with("select count(") {
            let count: i64 = transaction.fetch_one(text).await.unwrap().get(0);
            count.unsigned_abs()
        } else if self.text.starts_with("select") || self.text.starts_with("with") {
            transaction.fetch_all(text).await.unwrap().len() as u64
        } else {
            transaction.execute(text).await.unwrap().rows_affected()
        };
        transaction.rollback().await.unwrap();
        met
    }

    /// It meets the row as it was given, and no row after any of these changes.
    async fn compares(&self, changes: &[&str]) {
        assert_eq!(self.met("").await, 1, "as it was given: {}", self.text);
        for change in changes {
            assert_eq!(self.met(change).await, 0, "{change}: {}", self.text);
        }
    }
}
