//! A run as lists show it: with its name, and whether it is late or outdated. It serializes to the object that
//! `refrain status`, `runs` and `show` print with `--json`.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use refrain_core::ParseError;
use refrain_core::state::{FailureReason, RunOutcome};
use serde::{Serialize, Serializer};

use super::{JobView, Refrain, RunRecord};
use crate::error::Error;
use crate::store::show::QueuePosition;

/// How many runs are read for a list that is filtered by status: nothing indexes the status.
pub const LISTED_RUNS_MAX: usize = 100_000;

/// How many runs are read at once.
const PAGE: usize = 500;

/// A run with its name and its status.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunSummary {
    /// The name, as every command reads it: `export@2026-06-09`, `welcome#42`.
    pub name: String,
    /// What the store has recorded.
    pub record: RunRecord,
    /// Whether it should have been done by now, and is not.
    pub is_late: bool,
    /// Whether it was done under a lower version than the one known here.
    pub is_outdated: bool,
    /// Its state, or that it is late or outdated.
    pub status: RunStatus,
}

/// The state of a run as one word, or that it is late or outdated. The later in this list, the more it needs
/// attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum RunStatus {
    /// Done under the version of the job that is known here.
    Done,
    /// Done under a lower version.
    Outdated,
    /// Passed over, with a recorded reason.
    Skipped,
    /// Cancelled by an operator.
    Cancelled,
    /// Done but for effects or a decision of an operator.
    Waiting,
    /// Queued, delayed, or behind another run of its lane.
    Due,
    /// A worker does it now.
    Running,
    /// Not done although the grace after its tick has passed.
    Late,
    /// Some of its units failed.
    Partial,
    /// Failed, and not retried automatically.
    Failed,
}

impl RunStatus {
    /// Every status.
    pub const ALL: [RunStatus; 10] = [
        RunStatus::Done,
        RunStatus::Outdated,
        RunStatus::Skipped,
        RunStatus::Cancelled,
        RunStatus::Waiting,
        RunStatus::Due,
        RunStatus::Running,
        RunStatus::Late,
        RunStatus::Partial,
        RunStatus::Failed,
    ];

    /// The name of the status, as printed and as parsed.
    pub fn name(self) -> &'static str {
        match self {
            RunStatus::Done => "done",
            RunStatus::Outdated => "outdated",
            RunStatus::Skipped => "skipped",
            RunStatus::Cancelled => "cancelled",
            RunStatus::Waiting => "waiting",
            RunStatus::Due => "due",
            RunStatus::Running => "running",
            RunStatus::Late => "late",
            RunStatus::Partial => "partial",
            RunStatus::Failed => "failed",
        }
    }

    fn of(run: &RunRecord, is_late: bool, is_outdated: bool) -> RunStatus {
        match (run.place, run.standing.outcome) {
            (Some(QueuePosition::Running), _) => RunStatus::Running,
            _ if is_late => RunStatus::Late,
            (Some(_), _) | (None, None) => RunStatus::Due,
            (None, Some(RunOutcome::Done)) if is_outdated => RunStatus::Outdated,
            (None, Some(RunOutcome::Done)) => RunStatus::Done,
            (None, Some(RunOutcome::Waiting)) => RunStatus::Waiting,
            (None, Some(RunOutcome::Partial)) => RunStatus::Partial,
            (None, Some(RunOutcome::Failed)) => RunStatus::Failed,
            (None, Some(RunOutcome::Cancelled)) => RunStatus::Cancelled,
            (None, Some(RunOutcome::Skipped)) => RunStatus::Skipped,
        }
    }
}

impl fmt::Display for RunStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for RunStatus {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<RunStatus, ParseError> {
        RunStatus::ALL.into_iter().find(|status| status.name() == text).ok_or_else(|| {
            let words = RunStatus::ALL.map(RunStatus::name).join(", ");
            ParseError::whole("run status", text, "this is not a valid run status")
                .help(format!("write one of: {words}"))
        })
    }
}

impl RunSummary {
    /// Whether an operator must decide before it can go on.
    pub fn needs_a_person(&self) -> bool {
        let run = &self.record;
        !run.standing.is_open() && run.reason.is_some_and(FailureReason::needs_a_person)
    }
}

impl JobView {
    /// The run with its name and its status at a time.
    pub fn summary(&self, run: RunRecord, now: Timestamp) -> RunSummary {
        let (is_late, is_outdated) = (self.is_late(&run, now), self.is_outdated(&run));
        let status = RunStatus::of(&run, is_late, is_outdated);
        RunSummary { name: self.name_of(&run), record: run, is_late, is_outdated, status }
    }
}

#[expect(clippy::struct_excessive_bools, reason = "each is a field of the object that programs read")]
#[derive(Serialize)]
struct RunSummaryJson<'r> {
    run: &'r str,
    job: &'r str,
    key: &'r str,
    #[serde(skip_serializing_if = "Option::is_none")]
    window_start: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    window_end: Option<Timestamp>,
    scope: &'r str,
    state: String,
    is_open: bool,
    is_late: bool,
    is_outdated: bool,
    attempt: u64,
    version: Option<u32>,
    opened_at: Timestamp,
    started_at: Option<Timestamp>,
    ended_at: Option<Timestamp>,
    again_at: Option<Timestamp>,
    message: Option<&'r str>,
    reason: Option<String>,
    needs_a_person: bool,
}

impl Serialize for RunSummary {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let run = &self.record;
        let json = RunSummaryJson {
            run: &self.name,
            job: &run.job,
            key: &run.key,
            window_start: run.window.map(|window| window.start().timestamp()),
            window_end: run.window.map(|window| window.end().timestamp()),
            scope: run.scope(),
            state: run.standing.node().to_string(),
            is_open: run.standing.is_open(),
            is_late: self.is_late,
            is_outdated: self.is_outdated,
            attempt: run.attempt,
            version: run.version,
            opened_at: run.opened_at,
            started_at: run.started_at,
            ended_at: run.ended_at,
            again_at: run.again_at(),
            message: run.message.as_deref(),
            reason: run.reason.map(|reason| reason.to_string()),
            needs_a_person: self.needs_a_person(),
        };
        json.serialize(serializer)
    }
}

/// Runs of all jobs, the newest first, read a page at a time. It comes from [`Refrain::list_runs`].
pub struct RunList {
    refrain: Refrain,
    job: Option<String>,
    status: Option<RunStatus>,
    now: Timestamp,
    before: Option<i64>,
    read: usize,
    views: HashMap<String, JobView>,
}

impl Refrain {
    /// Runs of all jobs, or of one, the newest first; of all statuses, or of one.
    ///
    /// ```
    /// # use refrain::{Definition, Job, JobError, Refrain, Run};
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
    /// # let refrain = Refrain::at(&address, "shop")?.job(Definition::of(Welcome)?).open().await?;
    /// # refrain.enqueue("welcome", "42", &()).await?;
    /// let mut list = refrain.list_runs(Some("welcome"), None).await?;
    /// while let Some(page) = list.next_page().await? {
    ///     for run in page {
    ///         println!("{} {}", run.name, run.status);
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn list_runs(&self, job: Option<&str>, status: Option<RunStatus>) -> Result<RunList, Error> {
        let mut views = HashMap::new();
        if let Some(job) = job {
            views.insert(job.to_owned(), self.view(job).await?);
        }
        let (refrain, job, now) = (self.clone(), job.map(str::to_owned), self.now().await?);
        Ok(RunList { refrain, job, status, now, before: None, read: 0, views })
    }

    /// What lists show of these runs.
    pub(super) async fn summaries(&self, runs: Vec<RunRecord>) -> Result<Vec<RunSummary>, Error> {
        let now = self.now().await?;
        let mut views = HashMap::new();
        let mut summaries = Vec::with_capacity(runs.len());
        for run in runs {
            summaries.push(self.view_in(&mut views, &run.job).await?.summary(run, now));
        }
        Ok(summaries)
    }

    async fn view_in<'v>(
        &self,
        views: &'v mut HashMap<String, JobView>,
        job: &str,
    ) -> Result<&'v JobView, Error> {
        let view = match views.remove(job) {
            Some(view) => view,
            None => self.view(job).await?,
        };
        Ok(views.entry(job.to_owned()).or_insert(view))
    }
}

impl RunList {
    /// The next runs, of which there may be none in a page that was read; `None` when there are no more, or when
    /// [`LISTED_RUNS_MAX`] were read.
    pub async fn next_page(&mut self) -> Result<Option<Vec<RunSummary>>, Error> {
        if self.is_cut() {
            return Ok(None);
        }
        let page = self.refrain.recent(self.before, PAGE).await?;
        let Some(last) = page.last() else { return Ok(None) };
        self.before = Some(last.number());
        self.read += page.len();
        let mut listed = Vec::new();
        for run in page {
            if self.job.as_ref().is_some_and(|job| *job != run.job) {
                continue;
            }
            let summary = self.refrain.view_in(&mut self.views, &run.job).await?.summary(run, self.now);
            if self.status.is_none_or(|status| status == summary.status) {
                listed.push(summary);
            }
        }
        Ok(Some(listed))
    }

    /// Whether it ended because [`LISTED_RUNS_MAX`] runs were read.
    pub fn is_cut(&self) -> bool {
        self.read >= LISTED_RUNS_MAX
    }
}
