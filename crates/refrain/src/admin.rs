//! What happened and why, and the decisions of operators: the types behind `refrain status`, `runs`, `show`, `why`,
//! `trace`, `checkpoint`, `reconcile` and `recover`.
//!
//! The methods that return them are methods of [`Refrain`](crate::Refrain). Records serialize to the JSON of the
//! command line, and get more fields in later versions.

pub use crate::action::feed::reconcile::Reconciled;
pub use crate::engine::vitals::Unwell;
pub use crate::error::checkpoint::POSITION_BYTES_MAX;
pub use crate::publish::comparison::{Difference, Differences};
pub use crate::refrain::{
    AlarmRecord, AttemptEnd, AttemptRecord, AttemptUnits, Cancelling, CheckpointMove, CheckpointOf,
    CheckpointRecord, DecisionRecord, DedupeRecord, DoubtRecord, EnqueueReport, ForeignLedger, JobRecord,
    JobStatus, JobView, LISTED_RUNS_MAX, OutputPlace, OutputRecord, RequestWay, RunDetails, RunList,
    RunRecord, RunRequest, RunStatus, RunSummary, ScopeError, Settlement, StatusReport, StoreOrigin, Trace,
    UnitDedupes, Why, WorkerRecord,
};
pub use crate::store::fsck::Finding;
pub use crate::store::identity::IdentityDoubt;
pub use crate::store::outputs::OutputStream;
pub use crate::store::payload::PAYLOAD_BYTES_MAX;
pub use crate::store::show::QueuePosition;
