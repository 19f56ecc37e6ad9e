//! The statements that a publish becomes, as texts for one of the two databases.
//!
//! They name tables and columns of somebody else, so they cannot stand in files; names go in quoted, values never go in
//! at all: what `owns` binds keeps its places, and whatever else is bound comes after them. Rows are staged in a temporary
//! table first, with the types of the table that they are meant for, so that everything that can be wrong with them is known
//! before anybody else's rows are touched.

pub mod append;
pub mod delta;
pub mod names;
pub mod reconcile;
pub mod stage;
pub mod swap;

use self::names::{ROW, TARGET};
use super::{TableName, quoted};
use crate::project::Dialect;

/// What all statements of one publish are about.
#[derive(Debug, Clone)]
pub struct Texts {
    /// Whose SQL it is.
    pub dialect: Dialect,
    /// The table.
    pub table: TableName,
    /// The table that rows are staged in.
    pub stage: String,
    /// The columns that the rows have.
    pub columns: Vec<String>,
    /// Columns that are derived from those, each with its expression over a staged row, [`names::ROW`].
    pub derived: Vec<(String, String)>,
    /// The columns that identify a row, each with its type as the database writes it.
    pub key: Vec<(String, String)>,
}

impl Texts {
    fn names(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().chain(self.derived.iter().map(|(column, _)| column)).map(String::as_str)
    }

    /// The columns of the table that get a value.
    fn into(&self) -> String {
        list(self.names().map(quoted))
    }

    /// Their values, of a staged row.
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

    /// Whether a row of one and a row of the other have the same key.
    fn same_key(&self, one: &str, other: &str) -> String {
        let same = |column: &str| format!("{one}.{0} = {other}.{0}", quoted(column));
        self.keys().map(same).collect::<Vec<_>>().join(" and ")
    }

    /// The key of a row as one text, the same for the same values in the same database.
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

    /// A function or a type of the database itself.
    fn built_in(&self, name: &str) -> String {
        self.dialect.built_in(name)
    }

    /// An expression as text.
    fn as_text(&self, expression: &str) -> String {
        format!("cast({expression} as {})", self.built_in("text"))
    }

    /// A count and nothing to show of it, from a table or a query in brackets.
    fn counted(&self, from: &str) -> String {
        format!("select {}(*), {} from {from}", self.built_in("count"), self.as_text("null"))
    }

    /// A text as a value in a statement. For names that became values; values of a run are bound. What a backslash means on
    /// a server is a setting, unless the text begins with `E`.
    fn literal(&self, text: &str) -> String {
        let text = text.replace('\'', "''");
        match self.dialect {
            Dialect::Postgres if text.contains('\\') => format!("E'{}'", text.replace('\\', "\\\\")),
            _ => format!("'{text}'"),
        }
    }

    /// A row as JSON, to show it to a person.
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

    /// An index of staged rows.
    fn index(&self, name: &str, columns: &str) -> String {
        let place = if self.dialect == Dialect::Sqlite { "temp." } else { "" };
        let name = quoted(&format!("{}:{name}", self.stage));
        format!("create index {place}{name} on {} ({columns})", self.stage())
    }

    /// Finds staged rows by their keys.
    fn index_keys(&self) -> String {
        let staged = self.keys().filter(|key| self.names().any(|name| name == *key));
        self.index("key", &list(staged.map(quoted)))
    }

    /// A temporary table with the columns of a query that gives no rows.
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
