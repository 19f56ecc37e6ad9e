//! The ledger: what lives beside the rows, in the database that holds them.
//!
//! One file per noun. The rules that hold everywhere:
//!
//! - **A unit's rows and its entry are one transaction**, in the database of the rows. Neither is ever there alone.
//! - **A fence is raised before anything is read**, in a transaction of its own, and held in every one that writes.
//! - **A unit is judged by its key, version and content**, and by nothing else; the judgement is a value, and what it was
//!   based on is compared again when it is written.
//! - **A checkpoint passes only what is settled**: applied, or failed with its input kept.
//! - **What is wished for is a row among the rows**: an intent. A relay copies it onto a key that exists once.
//! - **Locks are taken in one order**: fence, then keys ascending.

mod alone;
pub(crate) mod apply;
mod asked;
pub(crate) mod backend;
mod batch;
mod bulk;
pub(crate) mod catalog;
mod checkpoint;
pub(crate) mod checkpoints;
pub(crate) mod claims;
mod cursor;
pub(crate) mod destination;
mod entry;
mod error;
pub(crate) mod fence;
mod horizon;
mod intents;
mod judge;
pub(crate) mod ledgers;
mod list;
pub(crate) mod migrate;
mod outside;
mod page;
mod step;
pub(crate) mod tally;
pub(crate) mod touched;
pub(crate) mod trace;
mod units;
pub(crate) mod unreadable;
pub(crate) mod waiting;
mod watermark;

pub use alone::{Claim, Ledger, Past};
pub use apply::Applying;
pub(crate) use asked::Asked;
pub use backend::Backend;
pub use batch::{Batch, BatchError};
pub(crate) use bulk::BulkPage;
pub use cursor::{Cursor, Fetched};
pub use error::LedgerError;
pub use fence::Fence;
pub use horizon::Horizon;
pub use intents::Intent;
pub(crate) use judge::Arrival;
pub(crate) use outside::Outside;
pub use page::Page;
pub use step::Step;
pub use tally::UnitCounts;
pub use trace::UnitRecord;
pub(crate) use units::FAILED_MAX;
pub use units::{Per, Units};
pub(crate) use unreadable::Unreadable;
pub use watermark::Watermark;

pub(crate) type Result<T> = std::result::Result<T, LedgerError>;
