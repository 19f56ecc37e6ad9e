//! Where a result goes, according to the job file: into a table, by one of five modes, or into files.
//!
//! A publish replaces the rows that its window owns and never merely adds, so a window that runs again leaves the same
//! rows as one run. This module holds the values; [`text`] turns them into statements.

use std::fmt;

use self::text::names::is_own;
use crate::project::Sql;
use crate::state::OnChange;
use crate::{ParseError, Per, Template};

pub mod directory;
pub mod target;
pub mod text;

words! {
    /// How a publish treats existing rows.
    Mode, "publish mode" {
        /// Replaces the rows that the window owns.
        Overwrite = "overwrite",
        /// Replaces rows with the same key.
        Merge = "merge",
        /// Adds each row once.
        AppendOnce = "append-once",
        /// Applies the difference to the amounts that this window applied before.
        ApplyDelta = "apply-delta",
        /// Adds rows as they arrive, each with its source and a hash of its content.
        Land = "land",
    }
}

words! {
    /// The format of published files.
    #[derive(Default)]
    FileFormat, "file format" {
        /// Comma-separated values with a header line.
        #[default]
        Csv = "csv",
        /// One JSON object per line.
        JsonLines = "jsonl",
    }
}

impl Mode {
    /// Whether Refrain reads the rows even if source and table are in one database: their content is hashed.
    pub fn goes_through_us(self) -> bool {
        self == Mode::Land
    }
}

/// The destination of a result.
#[derive(Debug, Clone, PartialEq)]
pub enum Publish {
    /// A table.
    Table(Box<TablePublish>),
    /// A directory of files.
    Files(FilesPublish),
}

/// A table and how it is written.
#[derive(Debug, Clone, PartialEq)]
pub struct TablePublish {
    /// The database, by its name in the project.
    pub database: String,
    /// The table.
    pub table: TableName,
    /// How existing rows are treated.
    pub mode: Mode,
    /// The condition for the rows that the window owns.
    pub owns: Option<Sql>,
    /// The columns that identify a row.
    pub key: Vec<String>,
    /// The columns that a difference is applied to.
    pub columns: Vec<String>,
    /// Derived columns: each with the columns that it is derived from.
    pub surrogate: Vec<(String, Vec<String>)>,
    /// Conditions that all staged rows must meet.
    pub checks: Vec<Sql>,
    /// The column that stores the version of the job.
    pub stamp: Option<String>,
    /// Whether to delete owned rows that are missing from the result.
    pub delete_missing: bool,
    /// Whether a difference may insert a row that does not exist yet.
    pub insert_missing: bool,
    /// How long an appended row is remembered.
    pub per: Per,
    /// What different content under the key of an appended row means, for rows that are not units.
    pub on_change: OnChange,
    /// Whether each unit has an entry in the ledger; otherwise each page has one.
    pub has_ledger: bool,
    /// The view that shows landed rows without duplicates.
    pub view: Option<TableName>,
}

/// A directory and the format of its files.
#[derive(Debug, Clone, PartialEq)]
pub struct FilesPublish {
    /// The directory, relative to the project.
    pub path: Template,
    /// The format of the rows. Files that a command writes are taken unchanged.
    pub format: FileFormat,
}

/// A query and the destination of its rows.
#[derive(Debug, Clone, PartialEq)]
pub struct PublishStep {
    /// The query.
    pub query: Sql,
    /// The destination.
    pub publish: Publish,
}

/// The name of a table, optionally with its schema. It is case-sensitive.
///
/// ```
/// use refrain_core::publish::TableName;
///
/// let table = TableName::parse("sales.revenue_daily")?;
/// assert_eq!(table.quoted(), "\"sales\".\"revenue_daily\"");
/// assert!(TableName::parse("a.b.c").is_err());
/// # Ok::<(), refrain_core::ParseError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableName {
    schema: Option<String>,
    name: String,
}

impl TableName {
    /// Reads `table` or `schema.table`.
    pub fn parse(text: &str) -> Result<TableName, ParseError> {
        const WHAT: &str = "table name";
        let parts: Vec<&str> = text.split('.').collect();
        let is_name =
            |part: &&str| !part.trim().is_empty() && !part.contains(|c: char| c.is_control() || c == '"');
        if !parts.iter().all(is_name) {
            let reason = "a table name must not be empty or contain quotes or control characters";
            return Err(ParseError::whole(WHAT, text, reason).help("write revenue_daily, for example"));
        }
        if parts.iter().any(|part| is_own(part)) {
            let reason = "names that begin with `refrain:` are reserved for Refrain";
            return Err(ParseError::whole(WHAT, text, reason).help("give the table another name"));
        }
        match parts.as_slice() {
            [name] => Ok(TableName { schema: None, name: (*name).to_owned() }),
            [schema, name] => Ok(TableName { schema: Some((*schema).to_owned()), name: (*name).to_owned() }),
            _ => Err(ParseError::whole(WHAT, text, "it has more than one dot")
                .help("write sales.revenue_daily, for example")),
        }
    }

    /// The schema, if one was given.
    pub fn schema(&self) -> Option<&str> {
        self.schema.as_deref()
    }

    /// The name without the schema.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name as quoted identifiers, ready for a statement.
    pub fn quoted(&self) -> String {
        match &self.schema {
            Some(schema) => format!("{}.{}", quoted(schema), quoted(&self.name)),
            None => quoted(&self.name),
        }
    }
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(schema) = &self.schema {
            write!(f, "{schema}.")?;
        }
        f.write_str(&self.name)
    }
}

/// Quotes an identifier; the result is valid in both databases.
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
