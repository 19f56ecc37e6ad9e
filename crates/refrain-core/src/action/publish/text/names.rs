//! The names that our statements introduce: aliases, temporary tables, additional columns.
//!
//! The user's names appear in the same statements and may be anything: `s`, `order`, `refrain_key`. So our names have a
//! form of their own and are always quoted, and a table or column with a name of that form is refused before a
//! statement is built. Functions and types of PostgreSQL are written with their schema: otherwise a user's function of
//! the same name could match the arguments better and be called instead.

use crate::project::Dialect;

/// The prefix of every name of ours. `:` needs quotes, so no such name arises by accident.
pub const OWN: &str = "refrain:";

/// A staged row.
pub const ROW: &str = "\"refrain:row\"";
/// A row of the target table.
pub const TARGET: &str = "\"refrain:target\"";
/// A staged row that arrived later.
pub const LATER: &str = "\"refrain:later\"";
/// The ledger entry of a row.
pub const ENTRY: &str = "\"refrain:entry\"";
/// A difference to be applied.
pub const CHANGE: &str = "\"refrain:change\"";
/// An amount that was applied before.
pub const AMOUNT: &str = "\"refrain:amount\"";
/// Amounts of a key that has vanished.
pub const GONE: &str = "\"refrain:gone\"";
/// The result of a subquery.
pub const FOUND: &str = "\"refrain:found\"";
/// The result of a subquery one level deeper.
pub const INNER: &str = "\"refrain:inner\"";

/// The column with the key of a row as one text.
pub const KEY: &str = "\"refrain:key\"";
/// The column with the hash of a row's content.
pub const CONTENT: &str = "\"refrain:content\"";
/// The column with the hash of a natural key.
pub const HASH: &str = "\"refrain:hash\"";
/// The column with the text that a message shows.
pub const SHOWN: &str = "\"refrain:shown\"";
/// The column with the result of a check.
pub const HOLDS: &str = "\"refrain:holds\"";
/// The column with the number of a row.
pub const NUMBER: &str = "\"refrain:number\"";
/// The column that counts how often the source has a content.
pub const EXPECTED: &str = "\"refrain:expected\"";
/// The column that counts how often the table has a content.
pub const THERE: &str = "\"refrain:there\"";

/// Whether a name has the form of ours. SQLite compares names case-insensitively.
pub fn is_own(name: &str) -> bool {
    name.get(..OWN.len()).is_some_and(|beginning| beginning.eq_ignore_ascii_case(OWN))
}

impl Dialect {
    /// A function or type of the database itself, even if the user has one of the same name.
    pub(crate) fn built_in(self, name: &str) -> String {
        match self {
            Dialect::Postgres => format!("pg_catalog.{name}"),
            Dialect::Sqlite => name.to_owned(),
        }
    }
}
