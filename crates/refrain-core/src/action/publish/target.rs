//! A table as its database describes it, and whether a result fits into it. Everything that can be checked before a row
//! is written is checked here, and every error says what to do about it.

mod compared;
mod view;

use super::text::TableStatements;
use super::text::names::{OWN, ROW, is_own};
use super::{Mode, TablePublish, quoted};
use crate::project::Dialect;
use crate::project::suggest::nearest;

/// The column with the source of a landed row.
pub const SOURCE: &str = "source";
/// The column with the hash of a landed row's content.
pub const CONTENT_HASH: &str = "content_hash";
/// The column that numbers landed rows of one source with equal content.
pub const OCCURRENCE: &str = "occurrence";
/// The columns that `land` writes besides those of the row.
pub const LANDED: [&str; 3] = [SOURCE, CONTENT_HASH, OCCURRENCE];

/// PostgreSQL types without an equality operator.
const INCOMPARABLE: [&str; 9] = ["json", "xml", "point", "line", "lseg", "box", "path", "polygon", "circle"];

/// PostgreSQL types that store a value unchanged: the driver's name and the server's name.
const PLAIN: [(&str, &str); 12] = [
    ("BOOL", "boolean"),
    ("DATE", "date"),
    ("FLOAT4", "real"),
    ("FLOAT8", "double precision"),
    ("INT2", "smallint"),
    ("INT4", "integer"),
    ("INT8", "bigint"),
    ("NUMERIC", "numeric"),
    ("TEXT", "text"),
    ("TIMESTAMP", "timestamp without time zone"),
    ("TIMESTAMPTZ", "timestamp with time zone"),
    ("UUID", "uuid"),
];

/// A table or view.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Target {
    /// Its full name as the database knows it, however the job file spells it.
    pub name: String,
    /// Its columns, in order.
    pub columns: Vec<TargetColumn>,
    /// The columns of each unique constraint that covers all rows.
    pub unique: Vec<Vec<String>>,
    /// Whether it is a view.
    pub is_view: bool,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetColumn {
    /// The name.
    pub name: String,
    /// The type, as the database writes it.
    pub kind: String,
    /// Whether only the database may fill it (a generated column).
    pub is_generated: bool,
}

/// How the columns of a result map to those of a table.
#[derive(Debug, Clone)]
pub struct ColumnMapping {
    /// The statements that write the result.
    pub texts: TableStatements,
    /// Columns that are compared as text, because their type has no equality operator.
    pub incomparable: Vec<String>,
    /// Surrogate keys that are filled in row by row: the column, and the columns it is derived from.
    pub filled: Vec<(String, Vec<String>)>,
}

impl Target {
    /// Maps result columns to this table, or says why they do not fit. `stage` is the name of the staging table.
    pub fn fit(
        &self,
        publish: &TablePublish,
        rows: &[String],
        dialect: Dialect,
        version: u32,
        stage: &str,
    ) -> Result<ColumnMapping, String> {
        self.has_no_reserved_names(publish)?;
        self.columns_fit(publish, rows)?;
        let key = self.key(publish)?;
        let mut columns = rows.to_vec();
        let mut counted = None;
        if publish.mode == Mode::Land {
            columns.extend([SOURCE, CONTENT_HASH].map(str::to_owned));
            let (number, hash) = (dialect.built_in("row_number"), quoted(CONTENT_HASH));
            let occurrence = format!("{number}() over (partition by {ROW}.{hash})");
            counted = Some((OCCURRENCE.to_owned(), occurrence));
        }
        let derived = publish.surrogate.iter().map(|(column, parts)| {
            let expression = match dialect {
                Dialect::Postgres => self.surrogate(column, parts),
                Dialect::Sqlite => format!("{ROW}.{}", quoted(column)),
            };
            (column.clone(), expression)
        });
        let stamp = publish.stamp.iter().map(|column| (column.clone(), version.to_string()));
        let derived = derived.chain(stamp).chain(counted).collect();
        let (table, stage) = (publish.table.clone(), stage.to_owned());
        let texts = TableStatements { dialect, table, stage, columns, derived, key };
        if dialect == Dialect::Sqlite && !publish.surrogate.is_empty() && texts.row_number().is_none() {
            return Err(format!(
                "`{}` has columns called `rowid`, `oid` and `_rowid_`, so SQLite has no name left for the number of a row\n  \
                 rename one of them, or leave `surrogate` out",
                publish.table
            ));
        }
        Ok(ColumnMapping {
            texts,
            incomparable: self.incomparable(),
            filled: match dialect {
                Dialect::Postgres => Vec::new(),
                Dialect::Sqlite => publish.surrogate.clone(),
            },
        })
    }

    /// Whether everything that the mode relies on exists.
    pub fn is_ready(&self, publish: &TablePublish) -> Result<(), String> {
        self.has_no_reserved_names(publish)?;
        self.key(publish).map(drop)
    }

    /// Whether columns of these types, as the driver calls them, have exactly the types of the table.
    pub fn has_types(&self, columns: &[String], kinds: &[String]) -> bool {
        let is_same = |(name, kind): (&String, &String)| {
            let column = self.find(name).map(|column| column.kind.as_str());
            PLAIN.iter().any(|(driver, server)| driver == kind && Some(*server) == column)
        };
        columns.len() == kinds.len() && columns.iter().zip(kinds).all(is_same)
    }

    /// The columns whose type has no equality operator.
    fn incomparable(&self) -> Vec<String> {
        let is_one = |column: &&TargetColumn| INCOMPARABLE.contains(&column.kind.as_str());
        self.columns.iter().filter(is_one).map(|column| column.name.clone()).collect()
    }

    fn find(&self, name: &str) -> Option<&TargetColumn> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// Refuses columns with a reserved name: both kinds of names appear in the same statements.
    fn has_no_reserved_names(&self, publish: &TablePublish) -> Result<(), String> {
        let Some(column) = self.columns.iter().find(|column| is_own(&column.name)) else { return Ok(()) };
        Err(format!(
            "`{}` has a column `{}`, and names that begin with `{OWN}` are reserved for Refrain\n  \
             rename it: alter table {} rename column {} to another_name",
            publish.table,
            column.name,
            publish.table.quoted(),
            quoted(&column.name)
        ))
    }

    fn columns_fit(&self, publish: &TablePublish, rows: &[String]) -> Result<(), String> {
        if rows.is_empty() {
            return Err(
                "the result has no columns\n  a unit needs fields that are columns of the table".to_owned()
            );
        }
        let table = &publish.table;
        for (at, name) in rows.iter().enumerate() {
            if rows.iter().take(at).any(|before| before == name) {
                let advice = "give one of them another name: … as other";
                return Err(format!("two columns of the result are called `{name}`\n  {advice}"));
            }
            let Some(column) = self.find(name) else {
                let message =
                    format!("the result has a column `{name}`, and `{table}` has none of that name");
                return Err(format!("{message}\n  {}", self.advice(name)));
            };
            if column.is_generated {
                let message = format!("the column `{name}` of `{table}` is filled by the database itself");
                return Err(format!("{message}\n  leave it out of the result"));
            }
        }
        self.derived_fit(publish, rows)?;
        named_fit(publish, rows)
    }

    /// Checks derived columns: each exists in the table, is not in the result, and is derived from at least one column.
    fn derived_fit(&self, publish: &TablePublish, rows: &[String]) -> Result<(), String> {
        let made = publish.surrogate.iter().map(|(column, _)| ("surrogate", column));
        for (key, name) in made.chain(publish.stamp.iter().map(|column| ("stamp", column))) {
            if self.find(name).is_none() {
                let message = format!(
                    "`{key}` fills the column `{name}`, and `{}` has none of that name",
                    publish.table
                );
                return Err(format!("{message}\n  {}", self.advice(name)));
            }
            if rows.contains(name) {
                let message = format!("`{key}` fills the column `{name}`, and so does the result");
                return Err(format!("{message}\n  leave one of them out"));
            }
        }
        for (column, parts) in &publish.surrogate {
            if parts.is_empty() {
                let advice = "name the columns that identify a row";
                return Err(format!("`{column}` is derived from no columns\n  {advice}"));
            }
            if let Some(part) = parts.iter().find(|part| !rows.contains(part)) {
                let message = format!("`{column}` is derived from `{part}`, which the result lacks");
                return Err(format!("{message}\n  the result has {}", rows.join(", ")));
            }
        }
        Ok(())
    }

    /// The key columns with their types; they must be unique where the mode relies on it.
    fn key(&self, publish: &TablePublish) -> Result<Vec<(String, String)>, String> {
        let names: Vec<String> = match publish.mode {
            Mode::Overwrite => return Ok(Vec::new()),
            Mode::Land => LANDED.map(str::to_owned).to_vec(),
            Mode::Merge | Mode::AppendOnce | Mode::ApplyDelta => publish.key.clone(),
        };
        let key = names.iter().map(|name| {
            let missing = || format!("`{}` has no column `{name}`\n  {}", publish.table, self.advice(name));
            self.find(name).map(|column| (name.clone(), column.kind.clone())).ok_or_else(missing)
        });
        let key: Vec<(String, String)> = key.collect::<Result<_, _>>()?;
        // `append-once` keeps its keys in the ledger, unless the job has none.
        let needs_unique = publish.mode != Mode::AppendOnce || !publish.has_ledger;
        if needs_unique && !self.unique.iter().any(|unique| is_same(unique, &names)) {
            let (table, mode, columns) = (&publish.table, publish.mode, names.join(", "));
            let index = quoted(&format!("{}_{}", table.name(), names.join("_")));
            let quoted = names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ");
            return Err(format!(
                "`{mode}` needs a unique constraint on `{table}` ({columns}), which does not exist\n  \
                 add it: create unique index {index} on {} ({quoted})",
                table.quoted()
            ));
        }
        Ok(key)
    }

    /// The expression that derives a surrogate key of a staged row on PostgreSQL.
    fn surrogate(&self, column: &str, parts: &[String]) -> String {
        let columns: Vec<String> = parts.iter().map(|part| format!("{ROW}.{}", quoted(part))).collect();
        let id = crate::surrogate::apart(&columns);
        match self.find(column).map(|column| column.kind.as_str()) {
            Some("uuid") | None => id,
            Some(kind) => format!("cast(cast({id} as pg_catalog.text) as {kind})"),
        }
    }

    fn advice(&self, name: &str) -> String {
        let names = self.columns.iter().map(|column| column.name.as_str());
        match nearest(name, names.clone()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("it has {}", names.collect::<Vec<_>>().join(", ")),
        }
    }
}

/// Checks that the result has every column that the job names.
fn named_fit(publish: &TablePublish, rows: &[String]) -> Result<(), String> {
    if let Some((column, parts)) = publish.surrogate.iter().find(|(column, _)| publish.key.contains(column)) {
        let message = format!("`key` names `{column}`, which is derived");
        return Err(format!("{message}\n  name the columns it is derived from: key = {parts:?}"));
    }
    let given = |name: &String| rows.contains(name);
    let named = publish.key.iter().map(|name| ("key", name));
    for (what, name) in named.chain(publish.columns.iter().map(|name| ("columns", name))) {
        if !given(name) {
            let message = format!("`{what}` names the column `{name}`, which the result lacks");
            return Err(format!("{message}\n  the result has {}", rows.join(", ")));
        }
    }
    let other = rows.iter().find(|name| !publish.key.contains(name) && !publish.columns.contains(name));
    match other {
        Some(other) if publish.mode == Mode::ApplyDelta => Err(format!(
            "the result has a column `{other}` that is neither in `key` nor in `columns`\n  leave it out, or name it in one of them"
        )),
        _ => Ok(()),
    }
}

/// Whether two lists name the same columns, in any order.
fn is_same(one: &[String], other: &[String]) -> bool {
    one.len() == other.len() && one.iter().all(|name| other.contains(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Per;
    use crate::publish::TableName;

    fn target() -> Target {
        let column = |(name, kind, is_generated): (&str, &str, bool)| TargetColumn {
            name: name.to_owned(),
            kind: kind.to_owned(),
            is_generated,
        };
        let columns = [
            ("sk", "uuid", false),
            ("day", "date", false),
            ("region", "text", false),
            ("amount", "bigint", false),
            ("made", "bigint", true),
            ("body", "json", false),
            ("version", "integer", false),
        ];
        Target {
            name: "sales.revenue".to_owned(),
            columns: columns.map(column).to_vec(),
            unique: vec![vec!["region".to_owned(), "day".to_owned()], vec!["sk".to_owned()]],
            is_view: false,
        }
    }

    fn publish(mode: Mode, key: &[&str]) -> TablePublish {
        TablePublish {
            database: "shop".to_owned(),
            table: TableName::parse("sales.revenue").unwrap(),
            mode,
            owns: None,
            key: key.iter().map(|name| (*name).to_owned()).collect(),
            columns: Vec::new(),
            surrogate: Vec::new(),
            checks: Vec::new(),
            stamp: None,
            delete_missing: false,
            insert_missing: false,
            per: Per::Window,
            on_change: crate::state::OnChange::Reject,
            has_ledger: true,
            view: None,
        }
    }

    fn fit(publish: &TablePublish, rows: &[&str]) -> Result<ColumnMapping, String> {
        let rows: Vec<String> = rows.iter().map(|name| (*name).to_owned()).collect();
        target().fit(publish, &rows, Dialect::Postgres, 3, "stage")
    }

    #[test]
    fn a_misfit_is_reported_with_advice() {
        let overwrite = publish(Mode::Overwrite, &[]);
        let surrogate = |column: &str, parts: &[&str]| TablePublish {
            surrogate: vec![(column.to_owned(), parts.iter().map(|part| (*part).to_owned()).collect())],
            ..overwrite.clone()
        };
        let stamp = TablePublish { stamp: Some("versoin".to_owned()), ..overwrite.clone() };
        for (publish, rows, expected) in [
            (overwrite.clone(), &[][..], "no columns"),
            (overwrite.clone(), &["dya"], "did you mean `day`?"),
            (overwrite.clone(), &["day", "day"], "two columns of the result are called `day`"),
            (overwrite.clone(), &["made"], "filled by the database itself"),
            (stamp, &["day"], "did you mean `version`?"),
            (surrogate("ks", &["day"]), &["day"], "`surrogate` fills the column `ks`"),
            (surrogate("sk", &["day"]), &["day", "sk"], "and so does the result"),
            (surrogate("sk", &[]), &["day"], "derived from no columns"),
            (surrogate("sk", &["region"]), &["day"], "derived from `region`, which the result lacks"),
            (publish(Mode::Merge, &["region"]), &["day"], "`key` names the column `region`"),
            (
                publish(Mode::Merge, &["amount"]),
                &["amount"],
                "create unique index \"revenue_amount\" on \"sales\".\"revenue\" (\"amount\")",
            ),
            (publish(Mode::Land, &[]), &["day"], "has no column `source`"),
        ] {
            let error = fit(&publish, rows).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn a_unique_constraint_matches_a_key_in_any_column_order() {
        let fitting = fit(&publish(Mode::Merge, &["day", "region"]), &["region", "day", "body"]).unwrap();
        assert_eq!(fitting.incomparable, ["body"]);
        let kinds: Vec<&str> = fitting.texts.key.iter().map(|(_, kind)| kind.as_str()).collect();
        assert_eq!(kinds, ["date", "text"]);
        assert!(
            fit(&publish(Mode::AppendOnce, &["amount"]), &["amount"]).is_ok(),
            "its keys are in the ledger"
        );
        let bulk = TablePublish { has_ledger: false, ..publish(Mode::AppendOnce, &["amount"]) };
        assert!(
            fit(&bulk, &["amount"]).unwrap_err().contains("needs a unique constraint"),
            "they are nowhere else"
        );
    }
}
