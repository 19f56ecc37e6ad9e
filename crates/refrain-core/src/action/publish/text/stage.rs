//! Staging rows, and what can be wrong with them there. What is wrong is a count and an example of it.

use super::names::{FOUND, HOLDS, ROW, SHOWN, TARGET};
use super::{Texts, list};
use crate::project::Dialect;
use crate::publish::quoted;

impl Texts {
    /// Removes what an attempt that was cut off has left on this connection. A server needs no such word.
    pub fn clear(&self) -> Vec<String> {
        match self.dialect {
            Dialect::Postgres => Vec::new(),
            Dialect::Sqlite => {
                let names = [self.stage.clone(), self.keyed(), self.change()];
                names.iter().map(|name| format!("drop table if exists temp.{}", quoted(name))).collect()
            }
        }
    }

    /// Makes the table for staged rows.
    pub fn make(&self) -> String {
        let derived: Vec<&String> = match self.dialect {
            Dialect::Postgres => Vec::new(),
            // Ids are filled in from outside there: it has no hash.
            Dialect::Sqlite => self.derived.iter().map(|(column, _)| column).collect(),
        };
        let columns = self.columns.iter().chain(derived);
        self.temporary(&self.stage, &list(columns.map(|column| format!("{TARGET}.{}", quoted(column)))))
    }

    /// Fills it with what a query gives, in the order of the query's columns.
    pub fn fill(&self, query: &str) -> String {
        let columns = list(self.columns.iter().map(|column| quoted(column)));
        format!("insert into {} ({columns})\n{query}", self.stage())
    }

    /// Makes and fills it in one go, where the types are those of the table anyway: a server does that in two thirds of the
    /// time. SQLite does not.
    pub fn make_filled(&self, query: &str) -> Option<String> {
        let name = self.stage();
        (self.dialect == Dialect::Postgres)
            .then(|| format!("create temporary table {name} on commit drop as\n{query}"))
    }

    /// What SQLite calls the number of a staged row: one of three names, of which a column may have two.
    pub fn row_number(&self) -> Option<&'static str> {
        let is_free = |name: &&str| self.names().all(|column| !column.eq_ignore_ascii_case(name));
        ["_rowid_", "rowid", "oid"].into_iter().find(is_free)
    }

    /// Tells the planner how much there is.
    pub fn count_rows(&self) -> Option<String> {
        (self.dialect == Dialect::Postgres).then(|| format!("analyze {}", self.stage()))
    }

    /// How many rows are staged.
    pub fn staged(&self) -> String {
        self.counted(&self.stage())
    }

    /// Rows that are not owned, those of which it cannot be said among them.
    pub fn outside(&self, owns: &str) -> String {
        self.finding(&format!("({owns}\n) is not true"))
    }

    /// Rows without a whole key.
    pub fn keyless(&self) -> String {
        let missing: Vec<String> =
            self.keys().map(|column| format!("{ROW}.{} is null", quoted(column))).collect();
        self.finding(&missing.join(" or "))
    }

    /// Rows whose columns hold nothing.
    pub fn empty(&self, columns: &[String]) -> String {
        let missing: Vec<String> =
            columns.iter().map(|column| format!("{ROW}.{} is null", quoted(column))).collect();
        self.finding(&missing.join(" or "))
    }

    /// Keys that several rows have.
    pub fn twins(&self) -> String {
        let key = list(self.keys().map(|column| format!("{ROW}.{}", quoted(column))));
        let (stage, shown) = (self.stage(), self.key_text(ROW));
        let [count, min] = ["count", "min"].map(|name| self.built_in(name));
        format!(
            "select {count}(*), {min}({FOUND}.{SHOWN}) from (select {shown} as {SHOWN} from {stage} as {ROW} group by {key} \
             having {count}(*) > 1) as {FOUND}"
        )
    }

    /// Rows of which a check does not hold; a check of all of them together is one row.
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
