//! Queries whose rows are published.

use std::sync::Arc;

use refrain_core::publish::Step;

use super::about::About;
use crate::job::{Job, JobError};
use crate::project::databases::Database;
use crate::run::Run;

/// A job that publishes what queries give.
#[derive(Debug, Clone)]
pub(crate) struct Publishing {
    pub(crate) steps: Vec<Step>,
    /// The database that is asked.
    pub(crate) source: Option<Arc<Database>>,
    pub(crate) about: About,
}

impl Job for Publishing {
    const NAME: &'static str = "publish";

    async fn run(&self, _run: &mut Run) -> Result<(), JobError> {
        Err(JobError::for_good("not built"))
    }
}
