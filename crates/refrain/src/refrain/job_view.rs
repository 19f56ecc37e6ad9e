//! What the timetables and policies of a job say about its runs: their names, when they open, whether they are late or
//! outdated.
//!
//! None of it is stored with the run. A view of the job is read once and applied to each run of a page, so that a list of
//! a hundred thousand windows costs no more reads than its pages.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use refrain_core::Revisions;
use refrain_core::state::RunOutcome;

use super::{Refrain, RunRecord};
use crate::error::Error;
use crate::job::Definition;
use crate::store::schedules;

/// A job as this process knows it, with all its timetables.
#[derive(Debug, Clone)]
pub struct JobView {
    pub(super) definition: Option<Arc<Definition>>,
    pub(super) revisions: Option<Revisions>,
}

impl JobView {
    /// The name of a run: `revenue-daily@2026-06-09`, `audit-digest@2026-06-09T14:00/acme`, `welcome-email#42`.
    /// A window has the name that it had under the timetable in force for it; every command reads it back.
    pub fn name_of(&self, run: &RunRecord) -> String {
        let Some(window) = run.window else { return format!("{}#{}", run.job, run.key) };
        let start = window.start().to_string();
        let name = self.revisions.as_ref().map_or(start, |revisions| revisions.name_of(window));
        match run.scope() {
            "" => format!("{}@{name}", run.job),
            scope => format!("{}@{name}/{scope}", run.job),
        }
    }

    /// The tick at which its window opens, if the timetable has that window.
    pub fn opens_at(&self, run: &RunRecord) -> Option<Timestamp> {
        self.revisions.as_ref()?.expectation(run.window?).tick()
    }

    /// When it becomes late unless it is done: its tick plus the grace of its job. None if the job has no grace, or this
    /// process does not know it.
    pub fn late_at(&self, run: &RunRecord) -> Option<Timestamp> {
        let grace = SignedDuration::try_from(self.definition.as_ref()?.grace?).ok()?;
        self.opens_at(run)?.checked_add(grace).ok()
    }

    /// Whether it should have been done by now, and is not. A skipped or cancelled run is not late.
    pub fn is_late(&self, run: &RunRecord, now: Timestamp) -> bool {
        run.is_awaited() && self.late_at(run).is_some_and(|late_at| late_at <= now)
    }

    /// Whether it was done under a lower version than this process has.
    pub fn is_outdated(&self, run: &RunRecord) -> bool {
        self.definition.as_ref().is_some_and(|definition| run.is_outdated(definition.version))
    }
}

impl RunRecord {
    /// Its scope; empty when there is only one.
    pub fn scope(&self) -> &str {
        self.window.map_or("", |_| crate::store::claim::scope_of(&self.key))
    }

    /// The start of its window as ledgers store it; empty if it has none.
    pub(crate) fn window_start(&self) -> String {
        self.window.map_or_else(String::new, |window| window.start().timestamp().to_string())
    }

    /// Whether it was done under a lower version than this one.
    pub fn is_outdated(&self, version: u32) -> bool {
        self.standing.is_done() && self.version.is_some_and(|done_under| done_under < version)
    }

    /// Whether a caller may wait for it: it is not done, and it was not cancelled.
    pub(crate) fn is_awaited(&self) -> bool {
        matches!(self.standing.outcome, None | Some(RunOutcome::Partial | RunOutcome::Failed))
    }
}

impl Refrain {
    /// A view of a job, to name and judge its runs. The job may be one that only the store knows.
    pub async fn view(&self, job: &str) -> Result<JobView, Error> {
        let (number, definition) = self.recorded_job(job).await?;
        Ok(JobView { definition, revisions: schedules::read(self.store(), number).await? })
    }

    /// The name of a run. For many runs of a job, use a [`view`](Self::view) of it.
    ///
    /// ```
    /// use refrain::{Definition, Job, JobError, Refrain, Run};
    ///
    /// # struct Welcome;
    /// # impl Job for Welcome {
    /// #     const NAME: &'static str = "welcome";
    /// #     async fn run(&self, _: &mut Run) -> Result<(), JobError> {
    /// #         Ok(())
    /// #     }
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let address = format!("sqlite:{}", directory.path().join("refrain.db").display());
    /// let refrain = Refrain::at(&address, "shop")?.job(Definition::of(Welcome)?).open().await?;
    /// refrain.enqueue("welcome", "42", &()).await?;
    /// let run = refrain.recent(None, 1).await?.remove(0);
    /// assert_eq!(refrain.name_of(&run).await?, "welcome#42");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn name_of(&self, run: &RunRecord) -> Result<String, Error> {
        Ok(self.view(&run.job).await?.name_of(run))
    }
}
