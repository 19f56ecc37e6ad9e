//! A set of tables that is brought to what this release knows.
//!
//! All steps are one transaction, under a lock that ends with it, so two machines that start at once make the tables
//! once, and a step that fails leaves nothing. A schema from the future is refused by everyone who meets it: an old
//! release does not know what it would break.

use std::fmt::Write as _;

use super::statement::Statement;
use super::{Database, DatabaseError, Place, Transaction};

/// One step, in both databases.
pub(crate) struct Migration {
    pub(crate) name: &'static str,
    pub(crate) sqlite: &'static str,
    pub(crate) postgres: &'static str,
}

/// Tables that go together. Where their steps are recorded cannot be a step itself: before it there is nothing.
pub(crate) struct Schema {
    pub(crate) migrations: &'static [Migration],
    pub(crate) place: Place,
    pub(crate) before_sqlite: &'static str,
    pub(crate) before_postgres: &'static str,
    pub(crate) exists_sqlite: Statement,
    pub(crate) exists_postgres: Statement,
    pub(crate) latest: Statement,
    pub(crate) applied: Statement,
    /// How a step is recorded in a script.
    pub(crate) recorded: &'static str,
}

/// What is there, compared with what is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    Missing,
    Older { found: i32 },
    Known,
    Newer { found: i32 },
}

/// `schema!("store", "migrations", place, ["0001_initial"])`: the steps in `migrations/store`, recorded in
/// `refrain_migrations`.
macro_rules! schema {
    ($folder:literal, $table:literal, $place:expr, [$($name:literal),+ $(,)?]) => {
        crate::database::schema::Schema {
            migrations: &[$(crate::database::schema::Migration {
                name: $name,
                sqlite: include_str!(concat!("../../migrations/", $folder, "/sqlite/", $name, ".sql")),
                postgres: include_str!(concat!("../../migrations/", $folder, "/postgres/", $name, ".sql")),
            }),+],
            place: $place,
            before_sqlite: concat!(
                "create table if not exists refrain_", $table,
                " (number integer not null primary key, name text not null, applied_at integer not null) strict"
            ),
            before_postgres: concat!(
                "select pg_advisory_xact_lock(7381140026);\ncreate schema if not exists refrain;\n",
                "create table if not exists refrain.", $table,
                " (\n    number integer not null primary key, name text collate \"C\" not null, applied_at bigint not null)"
            ),
            exists_sqlite: crate::database::statement::Statement::new(
                "migrate/exists",
                concat!("select count(*) as number from sqlite_schema where name = 'refrain' || '_", $table, "'"),
            ),
            exists_postgres: crate::database::statement::Statement::new(
                "migrate/exists",
                concat!(
                    "select count(*) as number from pg_tables where schemaname = 'refrain' and tablename = '",
                    $table, "'"
                ),
            ),
            latest: crate::database::statement::Statement::new(
                "migrate/latest",
                concat!("select coalesce(cast(max(number) as integer), 0) as number from refrain_", $table),
            ),
            applied: crate::database::statement::Statement::new(
                "migrate/applied",
                concat!(
                    "insert into refrain_", $table,
                    " (number, name, applied_at) values ($1, $2, (select now from refrain_clock))"
                ),
            ),
            recorded: concat!("insert into refrain.", $table, " (number, name, applied_at) values"),
        }
    };
}
pub(crate) use schema;

impl Schema {
    /// The number that this release knows.
    pub(crate) fn known(&self) -> i32 {
        i32::try_from(self.migrations.len()).unwrap_or(i32::MAX)
    }

    /// What is there.
    pub(crate) async fn standing(&'static self, database: &Database) -> Result<Standing, DatabaseError> {
        let mut transaction = database.read().await?;
        let exists = if database.is_sqlite() { &self.exists_sqlite } else { &self.exists_postgres };
        let there: Option<(i64,)> = transaction.fetch_optional(exists.bound()).await?;
        if there == Some((0,)) {
            return Ok(Standing::Missing);
        }
        let found = self.latest(&mut transaction).await?;
        Ok(self.compared(found))
    }

    /// Takes the steps that are missing, in one transaction. Gives their names, or how the tables stand if nothing may
    /// be done about it.
    pub(crate) async fn migrate(
        &'static self,
        database: &Database,
    ) -> Result<Result<Vec<&'static str>, Standing>, DatabaseError> {
        let mut transaction = database.write().await?;
        transaction
            .script(if database.is_sqlite() { self.before_sqlite } else { self.before_postgres })
            .await?;
        let found = self.latest(&mut transaction).await?;
        if let newer @ Standing::Newer { .. } = self.compared(found) {
            return Ok(Err(newer));
        }
        let mut taken = Vec::new();
        for (number, migration) in (1i32..).zip(self.migrations) {
            if number > found {
                let text = if database.is_sqlite() { migration.sqlite } else { migration.postgres };
                transaction.script(text).await?;
                transaction.execute(self.applied.bind(number).bind(migration.name)).await?;
                taken.push(migration.name);
            }
        }
        transaction.commit(self.place).await?;
        Ok(Ok(taken))
    }

    /// The same on PostgreSQL, for whoever wants to read it or to run it as somebody else.
    pub(crate) fn script(&self) -> String {
        let mut script = format!("begin;\n{};\n", self.before_postgres);
        for (number, migration) in (1..).zip(self.migrations) {
            let _ = write!(
                script,
                "\n{}\n{} ({number}, '{}', (select now from refrain.clock));\n",
                migration.postgres, self.recorded, migration.name
            );
        }
        script + "commit;\n"
    }

    fn compared(&self, found: i32) -> Standing {
        match found.cmp(&self.known()) {
            std::cmp::Ordering::Less => Standing::Older { found },
            std::cmp::Ordering::Equal => Standing::Known,
            std::cmp::Ordering::Greater => Standing::Newer { found },
        }
    }

    async fn latest(&'static self, transaction: &mut Transaction) -> Result<i32, DatabaseError> {
        let row: Option<(i32,)> = transaction.fetch_optional(self.latest.bound()).await?;
        Ok(row.map_or(0, |(number,)| number))
    }
}
