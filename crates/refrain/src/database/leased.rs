//! A transaction that is committed only while the lease of its worker is good.
//!
//! A worker that was silent for too long may have been replaced. What it has written in an open transaction is rolled back, for
//! it is not known what the one in its place has read meanwhile. The look is part of the commit, so no caller can leave it out.

use super::Transaction;
use crate::failpoint;
use crate::lease::Lease;

impl Transaction {
    /// From here on it is committed only while a lease is good.
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
