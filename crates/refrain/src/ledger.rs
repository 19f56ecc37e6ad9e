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

pub(crate) mod apply;
pub(crate) mod backend;
mod batch;
mod bulk_page;
pub(crate) mod catalog;
mod checkpoint;
pub(crate) mod checkpoint_admin;
mod claim;
pub(crate) mod claim_group;
mod cursor;
pub(crate) mod destination;
mod entry;
mod error;
mod external_work;
pub(crate) mod fence;
mod horizon;
mod intents;
mod judge;
pub(crate) mod ledger_id;
pub(crate) mod malformed_records;
pub(crate) mod migrate;
mod page;
pub(crate) mod pending_intents;
mod retry_requests;
mod step;
pub(crate) mod tally;
pub(crate) mod trace;
pub(crate) mod unapplied;
mod unit_list;
mod units;
mod watermark;

pub use apply::Applying;
pub use backend::Backend;
pub use batch::{Batch, BatchError};
pub(crate) use bulk_page::BulkPage;
pub use claim::{Claim, Ledger, Past};
pub use cursor::{Cursor, Fetched};
pub use error::LedgerError;
pub(crate) use external_work::ExternalWork;
pub use fence::Fence;
pub use horizon::Horizon;
pub use intents::Intent;
pub(crate) use judge::Arrival;
pub(crate) use malformed_records::MalformedRecord;
pub use page::Page;
pub(crate) use retry_requests::RetryRequest;
pub use step::Step;
pub use tally::UnitCounts;
pub use trace::UnitRecord;
pub(crate) use units::FAILED_MAX;
pub use units::{Per, Units};
pub use watermark::Watermark;

pub(crate) type Result<T> = std::result::Result<T, LedgerError>;
