//! `overwrite` and `merge`: staged rows replace existing ones.

use super::names::{ROW, TARGET};
use super::{TableStatements, list};
use crate::project::Dialect;
use crate::publish::quoted;

impl TableStatements {
    /// Deletes the rows that the window owns.
    pub fn delete_owned(&self, owns: &str) -> String {
        format!("delete from {} where ({owns}\n)", self.table())
    }

    /// Inserts the staged rows.
    pub fn insert(&self) -> String {
        let (table, into, values, stage) = (self.table(), self.into(), self.values(), self.stage());
        format!("insert into {table} ({into}) select {values} from {stage} as {ROW}")
    }

    /// Inserts the staged rows and updates existing rows of the same key. An equal row is left alone. `incomparable` are
    /// columns whose type has no equality operator.
    pub fn upsert(&self, incomparable: &[String]) -> String {
        let key: Vec<&str> = self.keys().collect();
        let others: Vec<&str> = self.names().filter(|name| !key.contains(name)).collect();
        let (table, into, values, stage) = (self.table(), self.into(), self.values(), self.stage());
        let conflict = list(key.into_iter().map(quoted));
        let action = if others.is_empty() {
            "do nothing".to_owned()
        } else {
            let set = list(others.iter().map(|name| format!("{0} = excluded.{0}", quoted(name))));
            let differs = |name: &&str| {
                let column = quoted(name);
                if incomparable.iter().any(|one| one == name) {
                    let text = |row: &str| self.as_text(&format!("{row}.{column}"));
                    format!("{} is distinct from {}", text(TARGET), text("excluded"))
                } else {
                    format!("{TARGET}.{column} is distinct from excluded.{column}")
                }
            };
            let differs: Vec<String> = others.iter().map(differs).collect();
            format!("do update set {set} where {}", differs.join(" or "))
        };
        format!(
            "insert into {table} as {TARGET} ({into}) select {values} from {stage} as {ROW} where true on conflict ({conflict}) {action}"
        )
    }

    /// Runs before [`TableStatements::delete_missing`]: SQLite builds no automatic index for `not exists` and would read all staged
    /// rows for each owned row. PostgreSQL hashes them.
    pub fn index_missing(&self) -> Option<String> {
        (self.dialect == Dialect::Sqlite).then(|| self.index_keys())
    }

    /// Deletes owned rows that the result lacks.
    pub fn delete_missing(&self, owns: &str) -> String {
        let (table, stage) = (self.table(), self.stage());
        // Unqualified names in `owns` are those of the target table: the staged rows are in a subquery.
        let staged = self.same_key(ROW, TARGET);
        format!(
            "delete from {table} as {TARGET} where ({owns}\n) and not exists (select 1 from {stage} as {ROW} where {staged})"
        )
    }
}
