//! Run it again. Nothing happens twice.
//!
//! Refrain is a scheduler, worker and ledger for jobs that will run more than once. A run exists once per window or
//! key, whichever process asks for it and however often:
//!
//! ```
//! use refrain::{Ask, Definition, Did, Job, JobError, Refrain, Run};
//!
//! #[derive(serde::Serialize, serde::Deserialize)]
//! struct Customer {
//!     name: String,
//! }
//!
//! struct Welcome;
//!
//! impl Job for Welcome {
//!     const NAME: &'static str = "welcome";
//!
//!     async fn run(&self, run: &mut Run) -> Result<(), JobError> {
//!         let Customer { name } = run.payload()?;
//!         println!("welcome, {name}, customer {}", run.key());
//!         Ok(())
//!     }
//! }
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! #   let folder = tempfile::tempdir()?;
//! #   std::env::set_current_dir(folder.path())?;
//!     let refrain = Refrain::at("sqlite:refrain.db", "shop")?.job(Definition::of(Welcome)?).open().await?;
//!
//!     let ada = Customer { name: "Ada".to_owned() };
//!     assert!(refrain.enqueue("welcome", "42", &ada).await?.is_new());
//!     assert!(!refrain.enqueue("welcome", "42", &ada).await?.is_new(), "there is one run for each key");
//!
//!     let first = refrain.run("welcome#42", Ask::Once).await?;
//!     let second = refrain.run("welcome#42", Ask::Once).await?;
//!     assert_eq!((first.did, second.did), (Did::Ran, Did::Deduplicated));
//!     Ok(())
//! }
//! ```
//!
//! A process that schedules and works all day calls [`Refrain::serve`]; cron and CI call [`Refrain::tick`].
//!
//! # Where to look
//!
//! - This page: [`Refrain`], a store with its jobs, and [`Job`], [`Definition`] and [`Run`], which describe the work.
//! - [`run`]: what an attempt sees and does besides.
//! - [`ledger`]: rows that are written once. [`Ledger::claim`] needs a transaction of yours and nothing else of this
//!   crate; [`ledger::Units`] apply batches inside a job.
//! - [`admin`]: what happened and why, and the decisions of operators: records that serialize to the JSON of the
//!   command line.
//! - [`effects`]: what happens outside the database, at most once: [`Refrain::effect`] and [`Refrain::once`].
//! - [`project`]: jobs that are described by files.
//! - [`error`](mod@error): what can go wrong, and what the caller can do about it.
//! - [`host`]: what a binary that executes commands calls first.
//! - [`core`]: keys, windows, schedules, states, retries: pure values without I/O, from which everything is decided.
//!
//! Timestamps are those of `jiff` 0.2, pools and transactions those of `sqlx` 0.9, and payloads and units implement the traits
//! of `serde` 1.
#![forbid(unsafe_code)]

#[doc(hidden)]
pub mod action;
pub mod admin;
mod bind;
mod database;
mod effect;
pub mod effects;
mod engine;
pub mod error;
#[doc(hidden)]
pub mod failpoint;
pub mod host;
mod job;
mod lease;
pub mod ledger;
mod process;
pub mod project;
mod publish;
mod refrain;
pub mod run;
mod schemas;
mod store;
mod supervision;
#[cfg(feature = "failpoints")]
#[doc(hidden)]
pub mod testing;
mod user_database;

pub use engine::finisher::Counts;
pub use engine::settings::Settings;
pub use error::Error;
pub use job::{Definition, Job};
pub use ledger::{Claim, Ledger};
pub use refrain::{
    Ask, Did, EffectError, Enqueued, NotPerformed, Once, OpenOptions, Patience, Refrain, RunReport, Serving,
    StopHandle,
};
pub use refrain_core as core;
pub use refrain_core::{CatchUp, WhileRunning, key};
pub use run::{JobError, Run};

/// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// And those of the guide.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/LEDGER.md")]
struct Guide;

/// And those about effects.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/EFFECTS.md")]
struct EffectsGuide;

/// And those about schedules.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/SCHEDULES.md")]
struct Schedules;

/// And those about ids.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/SURROGATE.md")]
struct Ids;
