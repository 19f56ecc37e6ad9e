//! Published results: the rows that a window owns are replaced as a whole by the last publish, and
//! nothing happens twice.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "in a test a panic is the failure report")]

mod appended;
mod between;
mod chance;
mod design;
mod in_flight;
mod killed;
mod landing;
mod modes;
mod names;
mod polled;
mod refusals;
mod role;
mod swallowed;
mod together;
mod warehouse;
mod weakened;
