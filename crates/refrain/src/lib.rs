//! Run it again. Nothing happens twice.
//!
//! Refrain is a scheduler, worker and ledger for jobs that will run more than once. This crate is the library
//! that the `refrain` binary is made of; what it decides by is [`core`], pure values without I/O.
//!
//! # Layout
//!
//! - [`core`]: keys, windows, schedules, catch-up, states, retries. Begin with [`core::tick`].
//! - [`Refrain`], [`Job`], [`Run`]: a store, what is run in it, and what an attempt sees.
//! - [`Fence`], [`Units`], [`Batch`], [`Cursor`], [`Watermark`]: rows that are written once.
//! - [`Ledger`]: once per key in a transaction of your own, without any of the above.
#![forbid(unsafe_code)]

pub mod action;
mod database;
mod engine;
mod error;
#[doc(hidden)]
pub mod failpoint;
mod job;
mod lease;
mod leaving;
mod ledger;
mod payload;
mod process;
mod project;
mod publish;
mod refrain;
mod run;
mod store;
#[cfg(feature = "failpoints")]
#[doc(hidden)]
pub mod testing;

pub use action::feed::reconcile::Reconciled;
pub use action::supervisor::supervise;
pub use database::DatabaseError;
pub use database::file_system::FileSystemError;
pub use engine::finisher::Counts;
pub use engine::settings::Settings;
pub use error::Error;
pub use job::{Definition, Job, JobError, TIMEOUT, WhileRunning};
pub use ledger::{
    Applying, Backend, Batch, BatchError, Claim, Cursor, Fence, Fetched, Horizon, Intent, Ledger,
    LedgerError, Page, Past, Per, Step, UnitCounts, UnitRecord, Units, Watermark,
};
pub use payload::PAYLOAD_BYTES_MAX;
pub use process::{is_root, keep_memory_private, user_id};
pub use project::{FILE, JOBS, Problems, Project, ProjectError, Unopened};
pub use publish::comparison::{Difference, Differences};
pub use refrain::{
    Adopted, AlarmRecord, Ask, AttemptRecord, AttemptUnits, Cancelling, CheckpointError, CheckpointOf,
    CheckpointRecord, DecisionRecord, DedupeRecord, Did, DoubtRecord, EffectRecord, Enqueued, JobRecord,
    JobView, OpenOptions, OutputPlace, OutputRecord, POSITION_BYTES_MAX, Patience, Refrain, RunRecord,
    RunReport, Serving, Settlement, Statement, StopHandle, Trace, UnitDedupes, Unwell, Why, WorkerRecord,
};
pub use refrain_core as core;
pub use refrain_core::{CatchUp, key};
pub use run::Run;
pub use store::StoreError;
pub use store::fsck::Finding;
pub use store::identity::IdentityDoubt;
pub use store::outputs::OutputStream;
pub use store::show::QueuePosition;

/// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// And those of the guide.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/LEDGER.md")]
struct Guide;

/// And those about ids.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/SURROGATE.md")]
struct Ids;
