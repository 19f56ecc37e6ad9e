//! The units of a job file: where they come from, what identifies each, and what is done with it.

use std::time::Duration;

use crate::call::Call;
use crate::project::Sql;
use crate::publish::TablePublish;
use crate::state::{InDoubtPolicy, OnChange};
use crate::{KeyTemplate, Template};

words! {
    /// How long the key of a unit is remembered.
    Per, "span of a key" {
        /// One application per key, in whatever window. For syncs and queues.
        Ever = "ever",
        /// One application per key and window: the same key in the next window is a new unit.
        Window = "window",
    }
}

/// The source of units and what is done with each of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Feed {
    /// The source of the units.
    pub source: FeedSource,
    /// The key that identifies a unit.
    pub key: KeyTemplate,
    /// The field that orders newer content after older content.
    pub order: Option<String>,
    /// What to do when a known key arrives with different content.
    pub on_change: OnChange,
    /// The fields that count as content; `None` means all of them.
    pub fields: Option<Vec<String>>,
    /// How long a key is remembered.
    pub per: Per,
    /// Progress by time.
    pub watermark: Option<FeedWatermark>,
    /// Progress by an opaque token of the source.
    pub cursor: Option<FeedCursor>,
    /// What is done with each unit.
    pub apply: Apply,
}

/// The source of units.
#[derive(Debug, Clone, PartialEq)]
pub enum FeedSource {
    /// The output of a command, one JSON object per line.
    Command(Vec<Template>),
    /// The rows of a query.
    Query(Sql),
}

/// Progress by time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedWatermark {
    /// The field of a unit that holds its timestamp.
    pub field: String,
    /// How far before the watermark to read again.
    pub overlap: Duration,
}

/// Progress by an opaque token of the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedCursor {
    /// The name of the cursor.
    pub name: String,
    /// How long its position is remembered: for ever, or per window, so that each window starts from the beginning.
    pub per: Per,
}

/// What is done with a unit.
#[derive(Debug, Clone, PartialEq)]
pub enum Apply {
    /// The unit becomes a row of a table.
    Publish(Box<TablePublish>),
    /// A command runs for each unit, some of them in parallel.
    Command {
        /// The program and its arguments.
        argv: Vec<Template>,
        /// The most commands that run at once.
        parallel: u32,
    },
    /// An HTTP call is made for each unit, some of them in parallel.
    Http {
        /// The request template.
        call: Box<Call>,
        /// The most calls that run at once.
        parallel: u32,
        /// What to do with a unit whose response was lost.
        in_doubt: InDoubtPolicy,
        /// How long the provider remembers an idempotency key, if the job file states it.
        provider_ttl: Option<Duration>,
    },
}
