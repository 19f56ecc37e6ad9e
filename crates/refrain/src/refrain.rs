//! The facade: every use case of Refrain is a method of [`Refrain`] or [`OpenOptions`].

mod alarms;
mod attention;
mod backup;
mod cancel;
mod checkpoints;
mod decisions;
mod doubts;
mod effect_decisions;
mod effect_error;
mod effects;
mod enqueue;
mod inbox;
mod job_view;
mod jobs;
mod migrate;
mod once;
mod open_options;
mod open_project;
mod output;
mod patience;
mod pause;
mod perform;
mod prune;
mod reconcile;
mod recover;
mod run;
mod run_details;
mod run_report;
mod run_summary;
mod run_target;
mod serve;
mod show;
mod status;
mod tick;
mod trace;
mod units;
mod why;
mod workers;

use jiff::Timestamp;
use refrain_core::{JobName, Person, ProjectName};

pub use alarms::AlarmRecord;
pub use attention::{JobStatus, StatusReport};
pub use cancel::Cancelling;
pub use checkpoints::{CheckpointMove, CheckpointOf, CheckpointRecord};
pub use decisions::DecisionRecord;
pub use doubts::{DoubtRecord, Settlement};
pub use effect_decisions::{DecidedEffect, EffectVerb};
pub use effect_error::{EffectError, NotPerformed};
pub use effects::EffectRecord;
pub use enqueue::{EnqueueReport, Enqueued};
pub use inbox::{DecidedEntry, InboxEntry};
pub use job_view::JobView;
pub use once::{Once, OnceReport};
pub use open_options::OpenOptions;
pub use output::{OutputPlace, OutputRecord};
pub use patience::Patience;
pub use perform::{EffectKey, EffectRequestBuilder, Performed, RECEIPT_BYTES_MAX};
pub use recover::{ForeignLedger, StoreOrigin};
pub use run::Ask;
pub use run_details::RunDetails;
pub use run_report::{Did, RunReport, ScopeError};
pub use run_summary::{LISTED_RUNS_MAX, RunList, RunStatus, RunSummary};
pub use serve::{Serving, StopHandle};
pub use show::{AttemptEnd, AttemptRecord, DedupeRecord, RequestWay, RunRecord, RunRequest};
pub use status::JobRecord;
pub use trace::Trace;
pub use units::{AttemptUnits, UnitDedupes};
pub use why::Why;
pub use workers::WorkerRecord;

use crate::database::Address;
use crate::effect::sending_worker::SendingWorker;
use crate::engine::Engine;
use crate::engine::notify::Notifier;
use crate::engine::service::Stop;
use crate::error::Error;
use crate::store::Store;
use crate::store::fsck::{self, Finding};

/// An open store of a project, with the jobs of this process.
///
/// - Work: [`enqueue`](Self::enqueue), [`run`](Self::run), [`retry`](Self::retry), [`tick`](Self::tick), [`serve`](Self::serve).
/// - Look: [`status`](Self::status), [`list_runs`](Self::list_runs), [`details`](Self::details), [`why`](Self::why),
///   [`trace`](Self::trace), [`output`](Self::output), [`alarms`](Self::alarms), [`effects`](Self::effects),
///   [`workers`](Self::workers).
/// - Decide, [`by`](Self::by) an operator: [`cancel`](Self::cancel), [`pause`](Self::pause), [`resume`](Self::resume),
///   [`settle_units`](Self::settle_units), [`settle_held`](Self::settle_held), [`set_checkpoint`](Self::set_checkpoint).
/// - Maintain: [`migrate`](Self::migrate), [`fsck`](Self::fsck), [`backup`](Self::backup), [`prune`](Self::prune),
///   [`reconcile`](Self::reconcile).
///
/// ```
/// use refrain::{Definition, Job, JobError, Refrain, Run};
///
/// struct Welcome;
///
/// impl Job for Welcome {
///     const NAME: &'static str = "welcome";
///     async fn run(&self, run: &mut Run) -> Result<(), JobError> {
///         println!("welcome, {}", run.key());
///         Ok(())
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let address = format!("sqlite:{}", directory.path().join("refrain.db").display());
/// let refrain = Refrain::at(&address, "shop")?.job(Definition::of(Welcome)?).open().await?;
///
/// assert!(refrain.enqueue("welcome", "42", &()).await?.is_new());
/// assert!(!refrain.enqueue("welcome", "42", &()).await?.is_new(), "a key is new once");
///
/// let report = refrain.tick().await?;
/// assert_eq!(report.ended, 1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Refrain {
    engine: Engine,
    notifier: Notifier,
    stop: Stop,
    simulated: Option<Timestamp>,
    /// The operator who decides; none if a program decides and names no operator.
    person: Option<Person>,
    /// The worker that holds the effects which this process sends by itself.
    sending: SendingWorker,
}

impl Refrain {
    /// Names a store: `sqlite:PATH` or `postgres://USER:PASSWORD@HOST/DATABASE`, and the project that it belongs to.
    pub fn at(address: &str, project: &str) -> Result<OpenOptions, Error> {
        Ok(OpenOptions::at(Address::parse(address)?, ProjectName::parse(project)?))
    }

    /// Checks the store for inconsistencies.
    pub async fn fsck(&self) -> Result<Vec<Finding>, Error> {
        Ok(fsck::fsck(&self.engine.store).await?)
    }

    /// The URL of the store, without its password.
    pub fn address(&self) -> String {
        self.store().address()
    }

    /// The names of the jobs of this process.
    pub fn jobs(&self) -> Vec<JobName> {
        let mut names: Vec<JobName> = self.engine.jobs.now().names().cloned().collect();
        names.sort();
        names
    }

    /// A handle that ends [`run`](Self::run) and [`tick`](Self::tick) of this value and of its clones. A [`Serving`] has a
    /// handle of its own.
    pub fn stop_handle(&self) -> StopHandle {
        StopHandle::of(&self.stop)
    }

    /// Closes the connections to the store, of all clones. An effect that is being sent is in doubt then.
    pub async fn close(self) {
        self.sending.retire(self.store()).await;
        self.engine.store.database.close().await;
    }

    pub(crate) fn store(&self) -> &Store {
        &self.engine.store
    }
}
