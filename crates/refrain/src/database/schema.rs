//! Numbered migrations, and which releases may use the tables after them.
//!
//! All pending migrations are one transaction, under a lock that ends with it: two machines that start at
//! once apply each migration once, and a failed one leaves nothing. An applied migration is never edited;
//! each change is a new one.
//!
//! A migration is additive if releases that do not know it can go on using the tables; otherwise it is
//! breaking. Each record has the oldest schema that a release must know, so an older release, which knows no
//! later migration, still learns whether it may use the tables. A release that may not is refused before it
//! reads anything else.

use std::fmt::Write as _;

use super::statement::Statement;
use super::{Database, DatabaseError, Place, Transaction};

/// One numbered change, for both databases.
pub(crate) struct Migration {
    pub(crate) name: &'static str,
    pub(crate) change: Change,
    pub(crate) sqlite: &'static str,
    pub(crate) postgres: &'static str,
}

/// Whether a release that does not know a migration can go on using the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    Additive,
    Breaking,
}

/// The tables of the store, or those of the ledger.
pub(crate) struct Schema {
    /// The table of applied migrations, without the prefix.
    pub(crate) table: &'static str,
    /// The statement that makes that table.
    pub(crate) first: Migration,
    pub(crate) migrations: &'static [Migration],
    /// The oldest schema whose tables all reading statements understand.
    pub(crate) readable: i32,
    pub(crate) place: Place,
    pub(crate) latest: &'static Statement,
    pub(crate) oldest: &'static Statement,
    pub(crate) record: &'static Statement,
    /// What a migration on PostgreSQL executes before it changes tables that are in use.
    pub(crate) hold: Option<&'static str>,
}

/// The schema of a database, compared with what this release knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compatibility {
    /// No tables.
    Missing,
    /// Migrations are pending.
    Older { found: i32 },
    /// Everything that this release knows, and perhaps additive migrations that it does not know.
    Usable,
    /// A breaking migration that this release does not know.
    Newer { found: i32 },
}

/// `migrations!("store", [Breaking "0001_initial"])`: the files in `migrations/store`.
macro_rules! migrations {
    ($folder:literal, [$($change:ident $name:literal),+ $(,)?]) => {
        &[$(crate::database::schema::migration!($folder, $change, $name)),+]
    };
}
macro_rules! migration {
    ($folder:literal, $change:ident, $name:literal) => {
        crate::database::schema::Migration {
            name: $name,
            change: crate::database::schema::Change::$change,
            sqlite: include_str!(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/migrations/",
                $folder,
                "/sqlite/",
                $name,
                ".sql"
            )),
            postgres: include_str!(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/migrations/",
                $folder,
                "/postgres/",
                $name,
                ".sql"
            )),
        }
    };
}
pub(crate) use {migration, migrations};

/// A server has another catalogue of tables than a file, so these are in no catalogue of statements.
static EXISTS_SQLITE: Statement =
    Statement::new("sql/migration/exists.sqlite.sql", include_str!("../../sql/migration/exists.sqlite.sql"));
static EXISTS_POSTGRES: Statement = Statement::new(
    "sql/migration/exists.postgres.sql",
    include_str!("../../sql/migration/exists.postgres.sql"),
);

impl Schema {
    /// The newest migration that this release knows.
    pub(crate) fn known(&self) -> i32 {
        i32::try_from(self.migrations.len()).unwrap_or(i32::MAX)
    }

    /// The oldest schema that a release must know to use the tables that this release leaves.
    pub(crate) fn oldest(&self) -> i32 {
        let numbered = (1i32..).zip(self.migrations);
        numbered
            .filter(|(_, one)| one.change == Change::Breaking)
            .map(|(number, _)| number)
            .max()
            .unwrap_or(0)
    }

    pub(crate) async fn compatibility(
        &'static self,
        database: &Database,
    ) -> Result<Compatibility, DatabaseError> {
        let mut transaction = database.read().await?;
        let exists = if database.is_sqlite() { &EXISTS_SQLITE } else { &EXISTS_POSTGRES };
        if self.number(&mut transaction, exists.bind(self.table)).await? == 0 {
            return Ok(Compatibility::Missing);
        }
        self.compared(&mut transaction).await
    }

    /// Compares inside a transaction, where the table of migrations exists.
    pub(crate) async fn compared(
        &'static self,
        transaction: &mut Transaction,
    ) -> Result<Compatibility, DatabaseError> {
        let found = self.number(transaction, self.latest.bound()).await?;
        Ok(match found - self.known() {
            0 => Compatibility::Usable,
            ..0 => Compatibility::Older { found },
            1.. if self.number(transaction, self.oldest.bound()).await? <= self.known() => {
                Compatibility::Usable
            }
            1.. => Compatibility::Newer { found },
        })
    }

    /// Whether reading commands understand the tables that were found.
    pub(crate) fn can_read(&self, compatibility: Compatibility) -> bool {
        match compatibility {
            Compatibility::Usable => true,
            Compatibility::Older { found } => found >= self.readable,
            Compatibility::Missing | Compatibility::Newer { .. } => false,
        }
    }

    /// Begins to migrate: makes the table of migrations if it is missing, and locks out other processes until
    /// the transaction ends.
    pub(crate) async fn begin(&'static self, database: &Database) -> Result<Transaction, DatabaseError> {
        let mut transaction = database.write().await?;
        let first = if database.is_sqlite() { self.first.sqlite } else { self.first.postgres };
        transaction.script(first).await?;
        Ok(transaction)
    }

    /// Applies the migrations after `found` and commits. Returns their names.
    pub(crate) async fn apply(
        &'static self,
        mut transaction: Transaction,
        found: i32,
    ) -> Result<Vec<&'static str>, DatabaseError> {
        let is_sqlite = matches!(transaction, Transaction::Sqlite(..));
        if let Some(hold) = self.hold.filter(|_| found > 0 && !is_sqlite) {
            transaction.script(hold).await?;
        }
        let pending = || self.numbered().filter(|(number, _, _)| *number > found);
        for (_, _, migration) in pending() {
            let text = if is_sqlite { migration.sqlite } else { migration.postgres };
            transaction.script(text).await?;
        }
        // After all of them: the record has columns that the first migrations do not know.
        let mut applied = Vec::new();
        for (number, oldest, migration) in pending() {
            transaction.execute(self.record.bind(number).bind(migration.name).bind(oldest)).await?;
            applied.push(migration.name);
        }
        transaction.commit(self.place).await?;
        Ok(applied)
    }

    /// The whole migration as a script for PostgreSQL, for an operator who reads it or executes it as another
    /// user.
    pub(crate) fn script(&self) -> String {
        let mut script = format!("begin;\n{}", self.first.postgres);
        for (_, _, migration) in self.numbered() {
            let _ = write!(script, "\n{}", migration.postgres);
        }
        let table = self.table;
        let _ = write!(script, "\ninsert into refrain.{table} (number, name, applied_at, oldest)\nvalues");
        for (number, oldest, migration) in self.numbered() {
            let comma = if number == 1 { "" } else { "," };
            let name = migration.name;
            let _ = write!(
                script,
                "{comma}\n    ({number}, '{name}', (select now from refrain.clock), {oldest})"
            );
        }
        script + ";\ncommit;\n"
    }

    /// Each migration with its number, and the oldest schema that a release must know from then on.
    fn numbered(&self) -> impl Iterator<Item = (i32, i32, &'static Migration)> {
        let numbered = (1i32..).zip(self.migrations);
        numbered.scan(0, |oldest, (number, migration)| {
            if migration.change == Change::Breaking {
                *oldest = number;
            }
            Some((number, *oldest, migration))
        })
    }

    async fn number(
        &self,
        transaction: &mut Transaction,
        bound: super::statement::Bound<'_>,
    ) -> Result<i32, DatabaseError> {
        let row: Option<(i32,)> = transaction.fetch_optional(bound).await?;
        Ok(row.map_or(0, |(number,)| number))
    }
}
