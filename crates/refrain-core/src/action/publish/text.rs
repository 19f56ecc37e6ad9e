//! The statements of a publish, as SQL text for one of the two databases.
//!
//! They name tables and columns of the user, so they cannot be files. Names are quoted, and values are never
//! interpolated: the parameters of `owns` keep their numbers, and further parameters follow them. Rows are first staged
//! in a temporary table with the column types of the target, so every fault in them is known before the user's rows
//! change.

pub mod append;
pub mod delta;
pub mod names;
pub mod reconcile;
pub mod stage;
pub mod swap;

use self::names::{ROW, TARGET};
use super::{TableName, quoted};
use crate::project::Dialect;

/// What all statements of one publish share.
#[derive(Debug, Clone)]
pub struct TableStatements {
    /// The SQL dialect.
    pub dialect: Dialect,
    /// The table that is written.
    pub table: TableName,
    /// The temporary table for staged rows.
    pub stage: String,
    /// The columns of the rows.
    pub columns: Vec<String>,
    /// Derived columns, each with its expression over a staged row, [`names::ROW`].
    pub derived: Vec<(String, String)>,
    /// The columns that identify a row, each with its type as the database writes it.
    pub key: Vec<(String, String)>,
}

impl TableStatements {
    fn names(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().chain(self.derived.iter().map(|(column, _)| column)).map(String::as_str)
    }

    /// The columns of the table that get a value, as a list.
    fn into(&self) -> String {
        list(self.names().map(quoted))
    }

    /// Their values from a staged row, as a list.
    fn values(&self) -> String {
        let staged = self.columns.iter().map(|column| format!("{ROW}.{}", quoted(column)));
        list(staged.chain(self.derived.iter().map(|(_, expression)| expression.clone())))
    }

    fn table(&self) -> String {
        self.table.quoted()
    }

    fn stage(&self) -> String {
        quoted(&self.stage)
    }

    fn keys(&self) -> impl Iterator<Item = &str> {
        self.key.iter().map(|(column, _)| column.as_str())
    }

    /// The condition that two rows have the same key.
    fn same_key(&self, one: &str, other: &str) -> String {
        let same = |column: &str| format!("{one}.{0} = {other}.{0}", quoted(column));
        self.keys().map(same).collect::<Vec<_>>().join(" and ")
    }

    /// The key of a row as one text; equal keys in one database give equal texts.
    fn key_text(&self, row: &str) -> String {
        let columns = self.keys().map(|column| format!("{row}.{}", quoted(column)));
        match self.dialect {
            Dialect::Postgres => {
                let texts = columns.map(|column| self.as_text(&column));
                self.as_text(&format!("{}({})", self.built_in("json_build_array"), list(texts)))
            }
            Dialect::Sqlite => format!("json_array({})", list(columns)),
        }
    }

    /// A function or type of the database itself.
    fn built_in(&self, name: &str) -> String {
        self.dialect.built_in(name)
    }

    /// An expression cast to text.
    fn as_text(&self, expression: &str) -> String {
        format!("cast({expression} as {})", self.built_in("text"))
    }

    /// Selects a count and no example, from a table or a parenthesized query.
    fn counted(&self, from: &str) -> String {
        format!("select {}(*), {} from {from}", self.built_in("count"), self.as_text("null"))
    }

    /// A string literal, for names that serve as values; values of a run are bound. What a backslash means is a server
    /// setting, unless the literal begins with `E`.
    fn literal(&self, text: &str) -> String {
        let text = text.replace('\'', "''");
        match self.dialect {
            Dialect::Postgres if text.contains('\\') => format!("E'{}'", text.replace('\\', "\\\\")),
            _ => format!("'{text}'"),
        }
    }

    /// A row as JSON, for messages.
    fn shown(&self, row: &str) -> String {
        match self.dialect {
            Dialect::Postgres => self.as_text(&format!("{}({row})", self.built_in("row_to_json"))),
            Dialect::Sqlite => {
                let field = |column: &String| {
                    let value = format!("{row}.{}", quoted(column));
                    let shown =
                        format!("case typeof({value}) when 'blob' then hex({value}) else {value} end");
                    format!("{}, {shown}", self.literal(column))
                };
                format!("json_object({})", list(self.columns.iter().map(field)))
            }
        }
    }

    /// An index on staged rows.
    fn index(&self, name: &str, columns: &str) -> String {
        let place = if self.dialect == Dialect::Sqlite { "temp." } else { "" };
        let name = quoted(&format!("{}:{name}", self.stage));
        format!("create index {place}{name} on {} ({columns})", self.stage())
    }

    /// Indexes staged rows by key.
    fn index_keys(&self) -> String {
        let staged = self.keys().filter(|key| self.names().any(|name| name == *key));
        self.index("key", &list(staged.map(quoted)))
    }

    /// A temporary table with the columns of a query that returns no rows.
    fn temporary(&self, name: &str, columns: &str) -> String {
        let (name, table) = (quoted(name), self.table());
        match self.dialect {
            Dialect::Postgres => format!(
                "create temporary table {name} on commit drop as select {columns} from {table} as {TARGET} with no data"
            ),
            Dialect::Sqlite => {
                format!(
                    "create temporary table {name} as select {columns} from {table} as {TARGET} where false"
                )
            }
        }
    }
}

fn list(parts: impl IntoIterator<Item = String>) -> String {
    parts.into_iter().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
