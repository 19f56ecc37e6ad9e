//! Units that a job file describes: where they come from, what tells them apart, and what is done with each.

use std::time::Duration;

use crate::call::Call;
use crate::project::Sql;
use crate::publish::TablePublish;
use crate::state::{InDoubtPolicy, OnChange};
use crate::{KeyTemplate, Template};

words! {
    /// For how long a unit's key is remembered.
    Per, "span of a key" {
        /// One application per key, whatever the window. For syncs and queues.
        Ever = "ever",
        /// One application per key and window: the next window's unit of the same key is another one.
        Window = "window",
    }
}

/// Units and what is done with them.
#[derive(Debug, Clone, PartialEq)]
pub struct Feed {
    /// Where they come from.
    pub source: FeedSource,
    /// What tells one from another.
    pub key: KeyTemplate,
    /// The field by which newer content is told from older.
    pub order: Option<String>,
    /// What other content under a known key means.
    pub on_change: OnChange,
    /// The fields that count as content; all of them if none is named.
    pub fields: Option<Vec<String>>,
    /// For how long a key is remembered.
    pub per: Per,
    /// Progress by time.
    pub watermark: Option<FeedWatermark>,
    /// Progress by a token of the source.
    pub cursor: Option<FeedCursor>,
    /// What is done with each.
    pub apply: Apply,
}

/// Where units come from.
#[derive(Debug, Clone, PartialEq)]
pub enum FeedSource {
    /// What a command prints, a JSON object a line.
    Command(Vec<Template>),
    /// The rows of a query.
    Query(Sql),
}

/// Progress by time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedWatermark {
    /// The field of a unit that holds its time.
    pub field: String,
    /// How far to read back.
    pub overlap: Duration,
}

/// Progress by a token of the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedCursor {
    /// What the cursor is called.
    pub name: String,
    /// For how long its position is remembered: for ever, or within a window, so that each window begins at the beginning.
    pub per: Per,
}

/// What is done with a unit.
#[derive(Debug, Clone, PartialEq)]
pub enum Apply {
    /// It is a row of a table.
    Publish(Box<TablePublish>),
    /// A command is executed for each, some of them at once.
    Command {
        /// The program and its arguments.
        argv: Vec<Template>,
        /// How many at once.
        parallel: u32,
    },
    /// A call is made for each, some of them at once.
    Http {
        /// Whom to call, and with what.
        call: Box<Call>,
        /// How many at once.
        parallel: u32,
        /// What is done about one whose answer was lost.
        in_doubt: InDoubtPolicy,
        /// How long the other side remembers a key, if that is said.
        provider_ttl: Option<Duration>,
    },
}
