//! One file per command, each a skin over the facade.

pub(crate) mod fsck;
pub(crate) mod migrate;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod tick;
