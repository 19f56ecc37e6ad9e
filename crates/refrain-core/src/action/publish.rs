//! Where a result goes, as a job file says it: into a table, by one of five modes, or into files.
//!
//! A publish replaces what its window owns and never merely adds, so that a window that is done again looks as if it had been
//! done once. These are the values; the statements that they become are in [`text`].

use std::fmt;

use self::text::names::is_own;
use crate::project::Sql;
use crate::state::OnChange;
use crate::{ParseError, Per, Template};

pub mod place;
pub mod target;
pub mod text;

words! {
    /// How rows that are there give way.
    Mode, "publish mode" {
        /// The rows that the window owns are replaced.
        Overwrite = "overwrite",
        /// Rows of the same key are replaced.
        Merge = "merge",
        /// Rows are added, once.
        AppendOnce = "append-once",
        /// The difference to what this window applied before is applied.
        ApplyDelta = "apply-delta",
        /// Rows are added as they came, each with its source and a hash of its content.
        Land = "land",
    }
}

words! {
    /// How rows are written into files.
    #[derive(Default)]
    FileFormat, "file format" {
        /// Comma-separated values, with a line of names.
        #[default]
        Csv = "csv",
        /// One JSON object a line.
        JsonLines = "jsonl",
    }
}

impl Mode {
    /// Whether rows pass through us although they stay in one database: what they say is hashed.
    pub fn goes_through_us(self) -> bool {
        self == Mode::Land
    }
}

/// Where a result goes.
#[derive(Debug, Clone, PartialEq)]
pub enum Publish {
    /// Into a table.
    Table(Box<TablePublish>),
    /// Into a directory.
    Files(FilesPublish),
}

/// Into which table, and how.
#[derive(Debug, Clone, PartialEq)]
pub struct TablePublish {
    /// The database, by its name in the project.
    pub database: String,
    /// The table.
    pub table: TableName,
    /// How rows that are there give way.
    pub mode: Mode,
    /// The rows that the window owns.
    pub owns: Option<Sql>,
    /// The columns that identify a row.
    pub key: Vec<String>,
    /// The columns that a difference is applied to.
    pub columns: Vec<String>,
    /// Columns that are derived from others: the column, and what it is made of.
    pub surrogate: Vec<(String, Vec<String>)>,
    /// What must hold of the staged rows.
    pub checks: Vec<Sql>,
    /// The column that gets the version of the job.
    pub stamp: Option<String>,
    /// Whether rows that the window owns and the result has not are deleted.
    pub delete_missing: bool,
    /// Whether a difference may make a row that is not there.
    pub insert_missing: bool,
    /// For how long an appended row is remembered.
    pub per: Per,
    /// What other content under the key of an appended row means, where rows are no units.
    pub on_change: OnChange,
    /// Whether each unit has an entry in the ledger, or only each page.
    pub has_ledger: bool,
    /// The view of landed rows without what came more than once.
    pub view: Option<TableName>,
}

/// Into which directory, and in which form.
#[derive(Debug, Clone, PartialEq)]
pub struct FilesPublish {
    /// The directory, from the project's own.
    pub path: Template,
    /// How rows are written; files of a command are taken as they are.
    pub format: FileFormat,
}

/// A query and where its rows go.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// What is asked.
    pub query: Sql,
    /// Where it goes.
    pub publish: Publish,
}

/// The name of a table, perhaps with that of its schema. It is taken as it is written, letter by letter.
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
        const WHAT: &str = "name of a table";
        let parts: Vec<&str> = text.split('.').collect();
        let is_name =
            |part: &&str| !part.trim().is_empty() && !part.contains(|c: char| c.is_control() || c == '"');
        if !parts.iter().all(is_name) {
            let reason = "a name is not empty, and has neither quotes nor control characters";
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

    /// Its schema, if it was said.
    pub fn schema(&self) -> Option<&str> {
        self.schema.as_deref()
    }

    /// Its own name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// As it stands in a statement.
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

/// A name as it stands in a statement, of both databases.
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
