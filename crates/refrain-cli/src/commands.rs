//! One file per command: what it takes, what it asks of the library, what it prints.

pub(crate) mod backup;
pub(crate) mod cancel;
pub(crate) mod check;
pub(crate) mod checkpoint;
pub(crate) mod completions;
pub(crate) mod enqueue;
pub(crate) mod fsck;
pub(crate) mod init;
pub(crate) mod logs;
pub(crate) mod man;
pub(crate) mod migrate;
pub(crate) mod next;
pub(crate) mod pause;
pub(crate) mod prune;
pub(crate) mod reconcile;
pub(crate) mod recover;
pub(crate) mod retry;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod schema;
pub(crate) mod serve;
pub(crate) mod show;
pub(crate) mod status;
pub(crate) mod tick;
pub(crate) mod trace;
pub(crate) mod why;
