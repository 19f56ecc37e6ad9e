//! Stages rows and finds faults in them. A fault is a count and one example.

use super::names::{FOUND, HOLDS, ROW, SHOWN, TARGET};
use super::{TableStatements, list};
use crate::project::Dialect;
use crate::publish::quoted;

impl TableStatements {
    /// Drops what an interrupted attempt left on this connection. PostgreSQL drops it at the end of the transaction.
    pub fn clear(&self) -> Vec<String> {
        match self.dialect {
            Dialect::Postgres => Vec::new(),
            Dialect::Sqlite => {
                let names = [self.stage.clone(), self.keyed(), self.change()];
                names.iter().map(|name| format!("drop table if exists temp.{}", quoted(name))).collect()
            }
        }
    }

    /// Creates the table for staged rows.
    pub fn make(&self) -> String {
        let derived: Vec<&String> = match self.dialect {
            Dialect::Postgres => Vec::new(),
            // SQLite has no hash function: surrogate keys are filled in by the caller.
            Dialect::Sqlite => self.derived.iter().map(|(column, _)| column).collect(),
        };
        let columns = self.columns.iter().chain(derived);
        self.temporary(&self.stage, &list(columns.map(|column| format!("{TARGET}.{}", quoted(column)))))
    }

    /// Fills it from a query; the column order is the query's.
    pub fn fill(&self, query: &str) -> String {
        let columns = list(self.columns.iter().map(|column| quoted(column)));
        format!("insert into {} ({columns})\n{query}", self.stage())
    }

    /// Creates and fills it in one statement, if the query already has the types of the table: PostgreSQL then needs two
    /// thirds of the time. SQLite gains nothing.
    pub fn make_filled(&self, query: &str) -> Option<String> {
        let name = self.stage();
        (self.dialect == Dialect::Postgres)
            .then(|| format!("create temporary table {name} on commit drop as\n{query}"))
    }

    /// SQLite's name for the number of a staged row: one of three names, of which columns may shadow two.
    pub fn row_number(&self) -> Option<&'static str> {
        let is_free = |name: &&str| self.names().all(|column| !column.eq_ignore_ascii_case(name));
        ["_rowid_", "rowid", "oid"].into_iter().find(is_free)
    }

    /// Updates the planner's statistics.
    pub fn count_rows(&self) -> Option<String> {
        (self.dialect == Dialect::Postgres).then(|| format!("analyze {}", self.stage()))
    }

    /// Counts the staged rows.
    pub fn staged(&self) -> String {
        self.counted(&self.stage())
    }

    /// Finds rows that the window does not own, including those for which `owns` is null.
    pub fn outside(&self, owns: &str) -> String {
        self.finding(&format!("({owns}\n) is not true"))
    }

    /// Finds rows with a null in their key.
    pub fn keyless(&self) -> String {
        let missing: Vec<String> =
            self.keys().map(|column| format!("{ROW}.{} is null", quoted(column))).collect();
        self.finding(&missing.join(" or "))
    }

    /// Finds rows with a null in one of these columns.
    pub fn empty(&self, columns: &[String]) -> String {
        let missing: Vec<String> =
            columns.iter().map(|column| format!("{ROW}.{} is null", quoted(column))).collect();
        self.finding(&missing.join(" or "))
    }

    /// Finds keys that several rows share.
    pub fn twins(&self) -> String {
        let key = list(self.keys().map(|column| format!("{ROW}.{}", quoted(column))));
        let (stage, shown) = (self.stage(), self.key_text(ROW));
        let [count, min] = ["count", "min"].map(|name| self.built_in(name));
        format!(
            "select {count}(*), {min}({FOUND}.{SHOWN}) from (select {shown} as {SHOWN} from {stage} as {ROW} group by {key} \
             having {count}(*) > 1) as {FOUND}"
        )
    }

    /// Finds rows that fail a check; a check over all rows together counts as one row.
    pub fn failing(&self, check: &str) -> String {
        let found = format!("(select ({check}\n) as {HOLDS} from {}) as {FOUND}", self.stage());
        format!("{} where {FOUND}.{HOLDS} is not true", self.counted(&found))
    }

    fn finding(&self, which: &str) -> String {
        let (shown, stage) = (self.shown(ROW), self.stage());
        let [count, min] = ["count", "min"].map(|name| self.built_in(name));
        format!("select {count}(*), {min}({shown}) from {stage} as {ROW} where {which}")
    }
}
