//! Units that come from a command or a query.

use std::fmt;
use std::sync::Arc;

use refrain_core::feed::Feed;

use super::about::About;
use super::command::Command;
use crate::job::{Job, JobError};
use crate::project::databases::Database;
use crate::run::Run;

/// A job that does something with each unit of a source.
#[derive(Clone)]
pub(crate) struct Feeding {
    pub(crate) feed: Arc<Feed>,
    /// The database that is asked, if the source is a query.
    pub(crate) source: Option<Arc<Database>>,
    /// What is executed, if the source is a command.
    pub(crate) command: Arc<dyn Fn(&Run) -> Result<Command, JobError> + Send + Sync>,
    pub(crate) about: About,
}

impl fmt::Debug for Feeding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Feeding").field("feed", &self.feed).finish_non_exhaustive()
    }
}

impl Job for Feeding {
    const NAME: &'static str = "units";

    async fn run(&self, _run: &mut Run) -> Result<(), JobError> {
        Err(JobError::for_good("not built"))
    }
}
