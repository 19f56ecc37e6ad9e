//! What happens outside the database, at most once: reserve it, do it, record the answer.
//!
//! The order is the promise. A reservation is committed before the first byte is sent, so a process that dies in between leaves a
//! doubt and never a second send. An answer is recorded once it is known; nothing is inferred from a missing one.
//!
//! The records are in the store: `store/effect_reservation.rs` reserves and records answers. Here is what happens around them: waiting
//! for another sender, the worker that holds a reservation, and the commands of `once`. Nothing sends effects by HTTP yet; calls of
//! units are made by `action/http.rs`.
//!
//! Rejected: recording only what succeeded. A send whose record is lost would look as if it had never begun.

pub(crate) mod admission;
pub(crate) mod answer;
pub(crate) mod command;
pub(crate) mod sending_worker;
