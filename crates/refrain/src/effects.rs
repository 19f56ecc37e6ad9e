//! What happens outside the database, at most once: the types around [`Refrain::effect`](crate::Refrain::effect) and
//! [`Refrain::once`](crate::Refrain::once), and the decisions of operators about effects.

pub use crate::effect::command::NOT_DONE;
pub use crate::refrain::{
    DecidedEffect, DecidedEntry, EffectError, EffectKey, EffectRecord, EffectRequestBuilder, EffectVerb,
    InboxEntry, NotPerformed, Once, OnceReport, Performed, RECEIPT_BYTES_MAX,
};
