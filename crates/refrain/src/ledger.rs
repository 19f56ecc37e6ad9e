//! The ledger: the record of what was done, next to the rows, in the database that holds them.
//!
//! The rules that hold everywhere:
//!
//! - **A unit's rows and its entry are one transaction**, in the database of the rows. Neither exists without the other.
//! - **A fence is raised before anything is read**, in a transaction of its own, and held in every transaction that writes.
//! - **A unit is judged by its key, version and content**, and by nothing else; the judgement is a value, and the entries
//!   that it is based on are compared again when it is written.
//! - **A checkpoint passes only what is settled**: applied, or failed with its input kept.
//! - **An intent is a row among the rows.** A relay copies it to the store under a key that exists once.
//! - **Locks are taken in one order**: fence, then keys ascending.

pub(crate) mod apply;
mod batch;
mod bulk_page;
pub(crate) mod catalog;
mod checkpoint;
pub(crate) mod checkpoint_admin;
pub(crate) mod circuit_breaker;
mod claim;
pub(crate) mod claim_group;
mod cursor;
pub(crate) mod destination;
mod entry;
mod error;
mod external_work;
pub(crate) mod fence;
mod intents;
mod judge;
pub(crate) mod ledger_id;
pub(crate) mod malformed_records;
pub(crate) mod migrate;
mod page;
pub(crate) mod pending_intents;
mod retry_requests;
pub(crate) mod tally;
pub(crate) mod trace;
pub(crate) mod unapplied;
mod unit_list;
pub(crate) mod unit_state;
mod units;
mod watermark;

pub use crate::store::counts::UnitCounts;
pub use crate::user_database::Backend;
pub use apply::Batches;
pub use batch::{Batch, BatchError};
pub(crate) use bulk_page::BulkPage;
pub(crate) use claim::PriorClaimRow;
pub use claim::{Claim, Ledger, PriorClaim};
pub use cursor::{Cursor, FetchedPage};
pub use error::LedgerError;
pub(crate) use external_work::ExternalWork;
pub use fence::Fence;
pub use intents::Intent;
pub(crate) use judge::Arrival;
pub(crate) use malformed_records::MalformedRecord;
pub use page::Page;
pub(crate) use retry_requests::RetryRequest;
pub use trace::UnitRecord;
pub(crate) use units::FAILED_MAX;
pub use units::{Per, Units};
pub use watermark::Watermark;

pub(crate) type Result<T> = std::result::Result<T, LedgerError>;
