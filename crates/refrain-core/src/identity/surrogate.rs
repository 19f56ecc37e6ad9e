//! [`SurrogateKey`](crate::SurrogateKey) as SQL: the same id where the rows are, with no function that somebody must install.
//!
//! The expression stands in the place of a value, in a query, an update or a view, and may use the columns around it. In
//! PostgreSQL it is made of built in functions and costs little more than `md5`; SQLite has none that hash, so there it is
//! SHA-256 in arithmetic, about a thousand rows a second, and whoever has many computes in Rust. What is hashed is the
//! [encoding](crate::encoding) of what [`text`] makes of each part.

use crate::encoding::{Domain, EncodingError};
use crate::project::Dialect;
use crate::publish::text::names::{FOUND, HASH};

const SQLITE: &str = include_str!("../../sql/surrogate/sqlite.sql");

/// The id of the row whose natural key is these expressions, in order: a `uuid` on PostgreSQL, its text on SQLite.
///
/// The expressions are put into the text as they are: a name must be quoted already. A file of SQLite must be in UTF-8, which
/// it is unless somebody chose otherwise.
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

/// The text that a value has in a natural key.
///
/// On PostgreSQL it is the one that a cast gives, and so for some types a matter of the session. On SQLite an integer is in
/// decimal, a real has 17 digits (a cast gives 15, and two keys could become one), and a blob is in lower-case hexadecimal
/// digits after `\x`, as PostgreSQL writes it.
pub fn text(dialect: Dialect, part: &str) -> String {
    match dialect {
        Dialect::Postgres => format!("cast({part} as text)"),
        Dialect::Sqlite => format!(
            r"case typeof({part}) when 'real' then printf('%!.17g', {part}) when 'blob' then '\x' || lower(hex({part})) else cast({part} as text) end"
        ),
    }
}

/// The same id on PostgreSQL, where names of somebody else are around it: their functions are not taken for the server's own.
pub(crate) fn apart(parts: &[String]) -> String {
    in_postgres(parts, "pg_catalog.", HASH, FOUND)
}

/// The hash is named in a query of its own, and `offset 0` keeps the planner from computing it wherever the name stands. Bytes
/// are written without a backslash, whose meaning in a string is a setting.
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
    // In this order, for a part may look like anything.
    body.trim_end().replace(":text", &text(Dialect::Sqlite, "value")).replace(":parts", &rows.join(", "))
}
