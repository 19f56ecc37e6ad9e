//! How a source is compared with a table: by which columns, and what is staged. No unique constraint is required: its
//! absence may be the reason for the comparison.

use super::{CONTENT_HASH, ColumnMapping, SOURCE, Target, TargetColumn};
use crate::project::Dialect;
use crate::publish::text::TableStatements;
use crate::publish::{Mode, TablePublish};

impl Target {
    /// The statements that compare rows of a source with this table, or why they cannot be compared.
    pub fn compared(
        &self,
        publish: &TablePublish,
        dialect: Dialect,
        stage: &str,
    ) -> Result<ColumnMapping, String> {
        self.has_no_reserved_names(publish)?;
        let table = &publish.table;
        let lands = publish.mode == Mode::Land;
        let names: Vec<&str> =
            if lands { vec![SOURCE, CONTENT_HASH] } else { publish.key.iter().map(String::as_str).collect() };
        if names.is_empty() {
            let advice = "add key = [\"id\"] under [publish]: the columns that identify a row";
            return Err(format!("no column identifies a row of `{table}`\n  {advice}"));
        }
        let of = |name: &str| {
            let missing = || format!("`{table}` has no column `{name}`\n  {}", self.advice(name));
            self.find(name).map(|column| (name.to_owned(), column.kind.clone())).ok_or_else(missing)
        };
        let key = names.iter().map(|name| of(name)).collect::<Result<Vec<_>, _>>()?;
        let made = |column: &str| publish.surrogate.iter().any(|(name, _)| name == column);
        let is_given = |column: &&TargetColumn| {
            !column.is_generated && !made(&column.name) && publish.stamp.as_ref() != Some(&column.name)
        };
        let given = self.columns.iter().filter(is_given).map(|column| column.name.clone());
        let surrogate = publish.surrogate.iter().filter(|_| !lands);
        let derived =
            surrogate.clone().map(|(column, parts)| (column.clone(), self.surrogate(column, parts)));
        Ok(ColumnMapping {
            texts: TableStatements {
                dialect,
                table: table.clone(),
                stage: stage.to_owned(),
                columns: if lands { vec![CONTENT_HASH.to_owned()] } else { given.collect() },
                derived: derived.collect(),
                key,
            },
            incomparable: self.incomparable(),
            filled: match dialect {
                Dialect::Postgres => Vec::new(),
                Dialect::Sqlite => surrogate.cloned().collect(),
            },
        })
    }
}
