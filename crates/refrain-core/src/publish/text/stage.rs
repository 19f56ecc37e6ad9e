//! Staging rows, and what can be wrong with them there. What is wrong is a count and an example of it.

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
        self.temporary(&self.stage, &list(columns.map(|column| format!("t.{}", quoted(column)))))
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

    /// Tells the planner how much there is.
    pub fn count_rows(&self) -> Option<String> {
        (self.dialect == Dialect::Postgres).then(|| format!("analyze {}", self.stage()))
    }

    /// How many rows are staged.
    pub fn staged(&self) -> String {
        format!("select count(*), cast(null as text) from {}", self.stage())
    }

    /// Rows that are not owned, those of which it cannot be said among them.
    pub fn outside(&self, owns: &str) -> String {
        self.finding(&format!("({owns}\n) is not true"))
    }

    /// Rows without a whole key.
    pub fn keyless(&self) -> String {
        let missing: Vec<String> =
            self.keys().map(|column| format!("s.{} is null", quoted(column))).collect();
        self.finding(&missing.join(" or "))
    }

    /// Rows whose columns hold nothing.
    pub fn empty(&self, columns: &[String]) -> String {
        let missing: Vec<String> =
            columns.iter().map(|column| format!("s.{} is null", quoted(column))).collect();
        self.finding(&missing.join(" or "))
    }

    /// Keys that several rows have.
    pub fn twins(&self) -> String {
        let (stage, key) = (self.stage(), list(self.keys().map(|column| format!("s.{}", quoted(column)))));
        let shown = self.key_text("s");
        format!(
            "select count(*), min(shown) from (select {shown} as shown from {stage} as s group by {key} having count(*) > 1) as twins"
        )
    }

    /// Rows of which a check does not hold; a check of all of them together is one row.
    pub fn failing(&self, check: &str) -> String {
        let stage = self.stage();
        format!(
            "select count(*), cast(null as text) from (select ({check}\n) as holds from {stage}) as checked where holds is not true"
        )
    }

    fn finding(&self, which: &str) -> String {
        let (shown, stage) = (self.shown("s"), self.stage());
        format!("select count(*), min({shown}) from {stage} as s where {which}")
    }
}
