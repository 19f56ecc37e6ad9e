//! Text: how input is parsed and how output is made safe.
//!
//! Parse errors with a position, templates, closed sets of words, terminal escaping and redaction of secrets. The modules
//! are re-exported at the crate root.

pub mod parse_error;
pub mod redact;
pub mod template;
pub mod terminal;
#[macro_use]
pub(crate) mod word;
