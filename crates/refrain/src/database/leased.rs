//! A transaction that is committed only while the lease of its worker is valid.
//!
//! A worker that was silent for too long may have been replaced. The writes of its open transaction are rolled back,
//! because it is unknown what its successor has read meanwhile. The check is part of the commit, so no caller can
//! skip it.

use super::Transaction;
use crate::failpoint;
use crate::lease::Lease;

impl Transaction {
    /// From here on the transaction is committed only while a lease is valid.
    pub(crate) fn only_under(&mut self, lease: Lease) {
        match self {
            Transaction::Sqlite(inner, _) => inner.only_under(lease),
            Transaction::Postgres(inner, ..) => inner.only_under(lease),
        }
    }

    /// Whether it may be committed.
    pub(super) fn is_leased(&self) -> bool {
        let is_good = match self {
            Transaction::Sqlite(inner, _) => inner.is_leased(),
            Transaction::Postgres(inner, ..) => inner.is_leased(),
        };
        is_good || failpoint::is_weakened("lease.unseen")
    }
}
