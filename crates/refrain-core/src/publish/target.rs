//! A table as its database describes it, and whether a result fits into it. Everything that can be said before a row is
//! written is said here, with what to do about it.

use super::text::Texts;
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

/// A table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Target {
    /// Its columns, in order.
    pub columns: Vec<Column>,
    /// The columns of each unique constraint of all its rows.
    pub unique: Vec<Vec<String>>,
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
        self.columns_fit(publish, rows)?;
        let key = self.key(publish)?;
        let mut columns = rows.to_vec();
        let mut counted = None;
        if publish.mode == Mode::Land {
            columns.extend([SOURCE, CONTENT_HASH].map(str::to_owned));
            let occurrence = format!("row_number() over (partition by s.{})", quoted(CONTENT_HASH));
            counted = Some((OCCURRENCE.to_owned(), occurrence));
        }
        let derived = publish.surrogate.iter().map(|(column, parts)| {
            let expression = match dialect {
                Dialect::Postgres => self.surrogate(column, parts),
                Dialect::Sqlite => format!("s.{}", quoted(column)),
            };
            (column.clone(), expression)
        });
        let stamp = publish.stamp.iter().map(|column| (column.clone(), version.to_string()));
        let derived = derived.chain(stamp).chain(counted).collect();
        let is_incomparable = |column: &&Column| INCOMPARABLE.contains(&column.kind.as_str());
        Ok(Fitting {
            texts: Texts {
                dialect,
                table: publish.table.clone(),
                stage: stage.to_owned(),
                columns,
                derived,
                key,
            },
            incomparable: self
                .columns
                .iter()
                .filter(is_incomparable)
                .map(|column| column.name.clone())
                .collect(),
            filled: match dialect {
                Dialect::Postgres => Vec::new(),
                Dialect::Sqlite => publish.surrogate.clone(),
            },
        })
    }

    fn find(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name == name)
    }

    fn columns_fit(&self, publish: &TablePublish, rows: &[String]) -> Result<(), String> {
        let table = &publish.table;
        let mut seen: Vec<&String> = Vec::new();
        for name in rows {
            if seen.contains(&name) {
                return Err(format!(
                    "two columns of the result are called `{name}`\n  give one of them another name: … as other"
                ));
            }
            seen.push(name);
            let Some(column) = self.find(name) else {
                return Err(format!(
                    "the result has a column `{name}`, and `{table}` has none of that name\n  {}",
                    self.advice(name)
                ));
            };
            if column.is_generated {
                return Err(format!(
                    "the column `{name}` of `{table}` is filled by the database itself\n  leave it out of the result"
                ));
            }
        }
        let made = publish.surrogate.iter().map(|(column, _)| ("surrogate", column));
        for (key, name) in made.chain(publish.stamp.iter().map(|column| ("stamp", column))) {
            if self.find(name).is_none() {
                return Err(format!(
                    "`{key}` fills the column `{name}`, and `{table}` has none of that name\n  {}",
                    self.advice(name)
                ));
            }
            if rows.contains(name) {
                return Err(format!(
                    "`{key}` fills the column `{name}`, and so does the result\n  leave one of them out"
                ));
            }
        }
        let parts =
            publish.surrogate.iter().flat_map(|(column, parts)| parts.iter().map(move |part| (column, part)));
        if let Some((column, _)) = publish.surrogate.iter().find(|(_, parts)| parts.is_empty()) {
            return Err(format!(
                "`{column}` is made of nothing\n  name the columns that tell one row from another"
            ));
        }
        for (column, part) in parts {
            if !rows.contains(part) {
                return Err(format!(
                    "`{column}` is made of `{part}`, which the result has not\n  add it to the result: {}",
                    rows.join(", ")
                ));
            }
        }
        let given =
            |name: &String| rows.contains(name) || publish.surrogate.iter().any(|(column, _)| column == name);
        for (what, name) in publish
            .key
            .iter()
            .map(|name| ("key", name))
            .chain(publish.columns.iter().map(|name| ("columns", name)))
        {
            if !given(name) {
                return Err(format!(
                    "`{what}` names the column `{name}`, which the result has not\n  it has {}",
                    rows.join(", ")
                ));
            }
        }
        if publish.mode == Mode::ApplyDelta
            && let Some(other) =
                rows.iter().find(|name| !publish.key.contains(name) && !publish.columns.contains(name))
        {
            return Err(format!(
                "the result has a column `{other}` that is neither in `key` nor in `columns`\n  leave it out, or name it in one of them"
            ));
        }
        match rows {
            [] => {
                Err("the result has no columns\n  a unit needs fields that are columns of the table"
                    .to_owned())
            }
            _ => Ok(()),
        }
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
        let needs_unique = publish.mode != Mode::AppendOnce;
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

    /// An id on PostgreSQL, of a staged row `s`.
    fn surrogate(&self, column: &str, parts: &[String]) -> String {
        let columns: Vec<String> = parts.iter().map(|part| format!("s.{}", quoted(part))).collect();
        let id = crate::surrogate::expression(Dialect::Postgres, &columns).unwrap_or_default();
        match self.find(column).map(|column| column.kind.as_str()) {
            Some("uuid") | None => id,
            Some(kind) => format!("cast(cast({id} as text) as {kind})"),
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

/// Whether two lists name the same columns, in any order.
fn is_same(one: &[String], other: &[String]) -> bool {
    one.len() == other.len() && one.iter().all(|name| other.contains(name))
}
