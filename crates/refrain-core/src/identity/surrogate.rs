//! [`SurrogateKey`](crate::SurrogateKey) as an SQL expression: the same id inside the database, without installing a function.
//!
//! The expression can replace a value in a query, an update or a view, and may use the columns in scope. On PostgreSQL it
//! consists of built-in functions and costs little more than `md5`. SQLite has no hash function, so there it is SHA-256
//! in arithmetic, about a thousand rows a second; for many rows, compute the id in Rust. It hashes the
//! [encoding](crate::encoding) of what [`text`] makes of each part.

use crate::encoding::{Domain, EncodingError};
use crate::project::Dialect;
use crate::publish::text::names::{FOUND, HASH};

const SQLITE: &str = include_str!("../../sql/surrogate/sqlite.sql");

/// The id of the row whose natural key is these expressions, in order: a `uuid` on PostgreSQL, its text on SQLite.
///
/// The expressions are inserted unchanged: names must already be quoted. A SQLite file must be in UTF-8, which is the
/// default.
///
/// ```
/// use refrain_core::project::Dialect;
/// use refrain_core::surrogate;
///
/// let id = surrogate::expression(Dialect::Sqlite, &["order_date".to_owned(), "region".to_owned()])?;
/// let query = format!("select order_date, region, {id} as revenue_sk from daily");
/// assert!(query.contains("values (1, order_date), (2, region)"));
/// # Ok::<(), refrain_core::encoding::EncodingError>(())
/// ```
pub fn expression(dialect: Dialect, parts: &[String]) -> Result<String, EncodingError> {
    if parts.is_empty() {
        return Err(EncodingError::NoParts);
    }
    Ok(match dialect {
        Dialect::Postgres => in_postgres(parts, "", "hash", "hashed"),
        Dialect::Sqlite => in_sqlite(parts),
    })
}

/// The text of a value in a natural key.
///
/// On PostgreSQL it is the result of a cast, which for some types depends on the session. On SQLite an integer is in
/// decimal, a real has 17 digits (a cast gives 15, so two keys could become one), and a blob is `\x` and lower-case
/// hexadecimal digits, as PostgreSQL writes it.
pub fn text(dialect: Dialect, part: &str) -> String {
    match dialect {
        Dialect::Postgres => format!("cast({part} as text)"),
        Dialect::Sqlite => format!(
            r"case typeof({part}) when 'real' then printf('%!.17g', {part}) when 'blob' then '\x' || lower(hex({part})) else cast({part} as text) end"
        ),
    }
}

/// The same id on PostgreSQL inside a statement with the user's names: built-in functions are schema-qualified.
pub(crate) fn apart(parts: &[String]) -> String {
    in_postgres(parts, "pg_catalog.", HASH, FOUND)
}

/// The hash is computed in a subquery, and `offset 0` keeps the planner from computing it at every use. Bytes are written
/// without a backslash, whose meaning in a string is a setting.
fn in_postgres(parts: &[String], schema: &str, hash: &str, hashed: &str) -> String {
    let [decode, send, length, convert] =
        ["decode", "int4send", "octet_length", "convert_to"].map(|name| format!("{schema}{name}"));
    let [encode, set_byte, get_byte, substr, sha256] =
        ["encode", "set_byte", "get_byte", "substr", "sha256"].map(|name| format!("{schema}{name}"));
    let part = |part: &String| {
        let bytes = format!("{convert}(cast({part} as {schema}text), 'UTF8')");
        format!(
            "\n    || coalesce({decode}('01', 'hex') || {send}({length}({bytes})) || {bytes}, {decode}('00', 'hex'))"
        )
    };
    let (domain, count) = (Domain::Surrogate.name(), parts.len());
    format!(
        "(select cast({encode}({set_byte}({set_byte}({hash}, 6, {get_byte}({hash}, 6) & 15 | 128), 8, \
        {get_byte}({hash}, 8) & 63 | 128), 'hex') as {schema}uuid)\nfrom (select {substr}({sha256}(\n    \
        {send}({}) || cast('{domain}' as {schema}bytea) || {send}({count}){}\
        \n), 1, 16) as {hash} offset 0) as {hashed})",
        domain.len(),
        parts.iter().map(part).collect::<String>(),
    )
}

fn in_sqlite(parts: &[String]) -> String {
    let rows: Vec<String> = (1..).zip(parts).map(|(place, part)| format!("({place}, {part})")).collect();
    let body = SQLITE.find("(with").and_then(|at| SQLITE.get(at..)).unwrap_or(SQLITE);
    // In this order, because a part may contain any text.
    body.trim_end().replace(":text", &text(Dialect::Sqlite, "value")).replace(":parts", &rows.join(", "))
}
