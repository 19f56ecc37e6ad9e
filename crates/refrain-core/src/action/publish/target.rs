//! A table as its database describes it, and whether a result fits into it. Everything that can be said before a row is
//! written is said here, with what to do about it.

mod compared;
mod view;

use super::text::Texts;
use super::text::names::{OWN, ROW, is_own};
use super::{Mode, TablePublish, quoted};
use crate::project::Dialect;
use crate::project::suggest::nearest;

/// The column that says where a landed row came from.
pub const SOURCE: &str = "source";
/// The column that says what a landed row says.
pub const CONTENT_HASH: &str = "content_hash";
/// The column that tells landed rows of one source that say the same apart.
pub const OCCURRENCE: &str = "occurrence";
/// All that `land` writes beside the columns of a row.
pub const LANDED: [&str; 3] = [SOURCE, CONTENT_HASH, OCCURRENCE];

/// Types of PostgreSQL that know no equality.
const INCOMPARABLE: [&str; 9] = ["json", "xml", "point", "line", "lseg", "box", "path", "polygon", "circle"];

/// Types of PostgreSQL that hold what they are given, as the driver calls them and as the server writes them.
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

/// A table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Target {
    /// What it is called, however it is written in a job file.
    pub name: String,
    /// Its columns, in order.
    pub columns: Vec<Column>,
    /// The columns of each unique constraint of all its rows.
    pub unique: Vec<Vec<String>>,
    /// Whether it is a view.
    pub is_view: bool,
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its type, as the database writes it.
    pub kind: String,
    /// Whether the database itself fills it, and nobody else may.
    pub is_generated: bool,
}

/// A result that fits.
#[derive(Debug, Clone)]
pub struct Fitting {
    /// Its statements.
    pub texts: Texts,
    /// Columns that a row that is there is compared by as text.
    pub incomparable: Vec<String>,
    /// Ids that are filled in row by row: the column, and what it is made of.
    pub filled: Vec<(String, Vec<String>)>,
}

impl Target {
    /// Fits rows with these columns, or says why they do not fit. `stage` is a name for the staged rows.
    pub fn fit(
        &self,
        publish: &TablePublish,
        rows: &[String],
        dialect: Dialect,
        version: u32,
        stage: &str,
    ) -> Result<Fitting, String> {
        self.has_no_own(publish)?;
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
        let texts = Texts { dialect, table, stage, columns, derived, key };
        if dialect == Dialect::Sqlite && !publish.surrogate.is_empty() && texts.row_number().is_none() {
            return Err(format!(
                "`{}` has columns called `rowid`, `oid` and `_rowid_`, so nothing is left by which SQLite tells its rows apart\n  \
                 rename one of them, or leave `surrogate` out",
                publish.table
            ));
        }
        Ok(Fitting {
            texts,
            incomparable: self.incomparable(),
            filled: match dialect {
                Dialect::Postgres => Vec::new(),
                Dialect::Sqlite => publish.surrogate.clone(),
            },
        })
    }

    /// Whether all that a mode relies on is there.
    pub fn is_ready(&self, publish: &TablePublish) -> Result<(), String> {
        self.has_no_own(publish)?;
        self.key(publish).map(drop)
    }

    /// Whether columns of these types, as the driver calls them, are exactly those of the table.
    pub fn has_types(&self, columns: &[String], kinds: &[String]) -> bool {
        let is_same = |(name, kind): (&String, &String)| {
            let column = self.find(name).map(|column| column.kind.as_str());
            PLAIN.iter().any(|(driver, server)| driver == kind && Some(*server) == column)
        };
        columns.len() == kinds.len() && columns.iter().zip(kinds).all(is_same)
    }

    /// Its columns of a type that knows no equality.
    fn incomparable(&self) -> Vec<String> {
        let is_one = |column: &&Column| INCOMPARABLE.contains(&column.kind.as_str());
        self.columns.iter().filter(is_one).map(|column| column.name.clone()).collect()
    }

    fn find(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// Whether no column has a name of the form that is kept for ours: both stand in the same statements.
    fn has_no_own(&self, publish: &TablePublish) -> Result<(), String> {
        let Some(column) = self.columns.iter().find(|column| is_own(&column.name)) else { return Ok(()) };
        Err(format!(
            "`{}` has a column `{}`, and names that begin with `{OWN}` are kept for columns of Refrain's own\n  \
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
                let told = format!("the result has a column `{name}`, and `{table}` has none of that name");
                return Err(format!("{told}\n  {}", self.advice(name)));
            };
            if column.is_generated {
                let told = format!("the column `{name}` of `{table}` is filled by the database itself");
                return Err(format!("{told}\n  leave it out of the result"));
            }
        }
        self.derived_fit(publish, rows)?;
        named_fit(publish, rows)
    }

    /// Columns that are filled by us are there, are nobody else's, and are made of something.
    fn derived_fit(&self, publish: &TablePublish, rows: &[String]) -> Result<(), String> {
        let made = publish.surrogate.iter().map(|(column, _)| ("surrogate", column));
        for (key, name) in made.chain(publish.stamp.iter().map(|column| ("stamp", column))) {
            if self.find(name).is_none() {
                let told = format!(
                    "`{key}` fills the column `{name}`, and `{}` has none of that name",
                    publish.table
                );
                return Err(format!("{told}\n  {}", self.advice(name)));
            }
            if rows.contains(name) {
                let told = format!("`{key}` fills the column `{name}`, and so does the result");
                return Err(format!("{told}\n  leave one of them out"));
            }
        }
        for (column, parts) in &publish.surrogate {
            if parts.is_empty() {
                let advice = "name the columns that identify a row";
                return Err(format!("`{column}` is made of nothing\n  {advice}"));
            }
            if let Some(part) = parts.iter().find(|part| !rows.contains(part)) {
                let told = format!("`{column}` is made of `{part}`, which the result lacks");
                return Err(format!("{told}\n  the result has {}", rows.join(", ")));
            }
        }
        Ok(())
    }

    /// The key, which must be unique where a mode relies on it.
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
        // Where rows are added once, their keys are in the ledger, unless that is to have none.
        let needs_unique = publish.mode != Mode::AppendOnce || !publish.has_ledger;
        if needs_unique && !self.unique.iter().any(|unique| is_same(unique, &names)) {
            let (table, mode, columns) = (&publish.table, publish.mode, names.join(", "));
            let index = quoted(&format!("{}_{}", table.name(), names.join("_")));
            let quoted = names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ");
            return Err(format!(
                "`{mode}` needs a unique constraint on `{table}` ({columns}), and there is none\n  \
                 add it: create unique index {index} on {} ({quoted})",
                table.quoted()
            ));
        }
        Ok(key)
    }

    /// An id on PostgreSQL, of a staged row.
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

/// Columns that the job names are in the result.
fn named_fit(publish: &TablePublish, rows: &[String]) -> Result<(), String> {
    if let Some((column, parts)) = publish.surrogate.iter().find(|(column, _)| publish.key.contains(column)) {
        let told = format!("`key` names `{column}`, which is derived");
        return Err(format!("{told}\n  write what it is made of: key = {parts:?}"));
    }
    let given = |name: &String| rows.contains(name);
    let named = publish.key.iter().map(|name| ("key", name));
    for (what, name) in named.chain(publish.columns.iter().map(|name| ("columns", name))) {
        if !given(name) {
            let told = format!("`{what}` names the column `{name}`, which the result lacks");
            return Err(format!("{told}\n  the result has {}", rows.join(", ")));
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
        let column = |(name, kind, is_generated): (&str, &str, bool)| Column {
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

    fn fit(publish: &TablePublish, rows: &[&str]) -> Result<Fitting, String> {
        let rows: Vec<String> = rows.iter().map(|name| (*name).to_owned()).collect();
        target().fit(publish, &rows, Dialect::Postgres, 3, "stage")
    }

    #[test]
    fn what_does_not_fit_is_said_with_what_to_do() {
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
            (surrogate("sk", &[]), &["day"], "made of nothing"),
            (surrogate("sk", &["region"]), &["day"], "made of `region`, which the result lacks"),
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
    fn a_key_is_unique_in_any_order_of_its_columns() {
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
