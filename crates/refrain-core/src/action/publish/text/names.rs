//! The names that our statements give: aliases, temporary tables, columns beside those of a result.
//!
//! Somebody else's names stand in the same statements, and may be any: `s`, `order`, `refrain_key`. So ours have a form of their own,
//! are always quoted, and a table or a column of that form is refused before a statement is made. Functions and
//! types of PostgreSQL are named with their schema: one of the same name that a user made may fit the arguments better, and
//! would be taken.

use crate::project::Dialect;

/// How every name of ours begins. `:` needs quotes, so no name of this form comes about by chance.
pub const OWN: &str = "refrain:";

/// A staged row.
pub const ROW: &str = "\"refrain:row\"";
/// A row of the table.
pub const TARGET: &str = "\"refrain:target\"";
/// A staged row that came later.
pub const LATER: &str = "\"refrain:later\"";
/// The ledger's entry of a row.
pub const ENTRY: &str = "\"refrain:entry\"";
/// A difference that is to be applied.
pub const CHANGE: &str = "\"refrain:change\"";
/// An amount that was applied before.
pub const AMOUNT: &str = "\"refrain:amount\"";
/// Amounts of a key that has vanished.
pub const GONE: &str = "\"refrain:gone\"";
/// The result of a query within a statement.
pub const FOUND: &str = "\"refrain:found\"";
/// The same, one level further in.
pub const INNER: &str = "\"refrain:inner\"";

/// The column with the key of a row as one text.
pub const KEY: &str = "\"refrain:key\"";
/// The column with the hash of what a row says.
pub const CONTENT: &str = "\"refrain:content\"";
/// The column with the hash of a natural key.
pub const HASH: &str = "\"refrain:hash\"";
/// The column with what is shown to a person.
pub const SHOWN: &str = "\"refrain:shown\"";
/// The column that says whether a check holds.
pub const HOLDS: &str = "\"refrain:holds\"";
/// The column with the number of a row.
pub const NUMBER: &str = "\"refrain:number\"";
/// The column that says how often something was told.
pub const TOLD: &str = "\"refrain:told\"";
/// The column that says how often something is there.
pub const THERE: &str = "\"refrain:there\"";

/// Whether a name has the form of ours. SQLite compares names without regard to case.
pub fn is_own(name: &str) -> bool {
    name.get(..OWN.len()).is_some_and(|beginning| beginning.eq_ignore_ascii_case(OWN))
}

impl Dialect {
    /// A function or a type of the database itself, whatever a user has made of that name.
    pub(crate) fn built_in(self, name: &str) -> String {
        match self {
            Dialect::Postgres => format!("pg_catalog.{name}"),
            Dialect::Sqlite => name.to_owned(),
        }
    }
}
