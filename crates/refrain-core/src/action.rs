//! Actions as values: HTTP calls, units of a source, published results and bound values.
//!
//! The `refrain` crate executes them. The modules are re-exported at the crate root.

pub mod call;
pub mod feed;
pub mod publish;
pub mod values;
