//! What needs the attention of the operator: the jobs with their newest runs, and what to look at first.

use std::collections::BTreeMap;

use refrain_core::Window;
use refrain_core::state::EffectState;
use serde::Serialize;

use super::{EffectRecord, JobRecord, Refrain, RunStatus, RunSummary};
use crate::error::Error;

/// The jobs of a store with their newest runs, and what needs attention.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct StatusReport {
    /// The jobs, by name.
    pub jobs: Vec<JobStatus>,
    /// How many of these runs wait for a decision of an operator.
    pub undecided: usize,
    /// How many effects of these jobs are recorded but not sent.
    pub pending_effects: usize,
    /// How many effects wait for a decision of an operator: in doubt, refused, or to be approved. At most a thousand of each.
    pub undecided_effects: usize,
    /// The run that needs attention first, if one does: before all others one that an operator must decide about, because it
    /// cannot succeed by itself.
    pub first: Option<String>,
}

/// A job with its newest runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct JobStatus {
    /// The job.
    pub job: JobRecord,
    /// Its newest runs, the oldest of them first.
    pub runs: Vec<RunSummary>,
}

impl JobStatus {
    /// One status for each window, in the order of the runs: of several scopes the one that needs most attention.
    pub fn grid(&self) -> Vec<RunStatus> {
        let mut grid: Vec<(Option<Window>, RunStatus)> = Vec::new();
        for run in &self.runs {
            match grid.last_mut() {
                Some((window, status)) if window.is_some() && *window == run.record.window => {
                    *status = run.status.max(*status);
                }
                _ => grid.push((run.record.window, run.status)),
            }
        }
        grid.into_iter().map(|(_, status)| status).collect()
    }

    /// How many of its runs have each status.
    pub fn counts(&self) -> BTreeMap<RunStatus, usize> {
        let mut counts = BTreeMap::new();
        for run in &self.runs {
            *counts.entry(run.status).or_default() += 1;
        }
        counts
    }
}

impl Refrain {
    /// All jobs, or one, each with at most `runs` of its newest runs (no more than 500), and what needs attention among them.
    ///
    /// ```
    /// # use refrain::{Definition, Job, JobError, Refrain, Run};
    /// # struct Welcome;
    /// # impl Job for Welcome {
    /// #     const NAME: &'static str = "welcome";
    /// #     async fn run(&self, _: &mut Run) -> Result<(), JobError> {
    /// #         Err(JobError::for_good("no such customer"))
    /// #     }
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let address = format!("sqlite:{}", directory.path().join("refrain.db").display());
    /// # let refrain = Refrain::at(&address, "shop")?.job(Definition::of(Welcome)?).open().await?;
    /// # refrain.enqueue("welcome", "42", &()).await?;
    /// # refrain.tick().await?;
    /// let status = refrain.status(None, 40).await?;
    /// assert_eq!(status.first.as_deref(), Some("welcome#42"));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn status(&self, job: Option<&str>, runs: usize) -> Result<StatusReport, Error> {
        let now = self.now().await?;
        let mut jobs = Vec::new();
        for record in self.job_records(job).await? {
            let view = self.view(&record.name).await?;
            let latest = self.latest(&record.name, None, runs).await?.into_iter().rev();
            let runs = latest.map(|run| view.summary(run, now)).collect();
            jobs.push(JobStatus { job: record, runs });
        }
        let all = || jobs.iter().flat_map(|job| &job.runs).filter(|run| run.status >= RunStatus::Late);
        let undecided = all().filter(|run| run.needs_a_person()).count();
        let first = all().max_by_key(|run| (run.needs_a_person(), run.status)).map(|run| run.name.clone());
        let is_meant = |effect: &&EffectRecord| job.is_none() || effect.job.as_deref() == job;
        let effects = self.effects().await?;
        // One that was held before and is free again is sent by the next call of its program.
        let is_pending = |effect: &&EffectRecord| effect.state == EffectState::Pending && effect.sends == 0;
        let pending_effects = effects.iter().filter(is_meant).filter(is_pending).count();
        let mut undecided_effects = self.effects_without_sender().await?.iter().filter(is_meant).count();
        for state in [EffectState::InDoubt, EffectState::Refused, EffectState::Waiting] {
            undecided_effects += self.effects_in(state, None).await?.iter().filter(is_meant).count();
        }
        Ok(StatusReport { jobs, undecided, pending_effects, undecided_effects, first })
    }
}
