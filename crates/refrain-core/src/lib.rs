//! The decisions of Refrain, as values.
//!
//! Nothing here touches the world: no files, no sockets, no database, no clock that was not handed in. A
//! decision (which windows a tick opens, whether a missed one still runs, what a key is, whether a state may
//! follow another) is a value that can be printed and tested by table; the `refrain` crate acts on it.

pub mod content;
pub mod encoding;
pub mod id;
pub mod key;
pub mod name;
pub mod parse_error;

pub use content::{ContentError, Fingerprint};
pub use id::{IdempotencyKey, RunId, SurrogateKey};
pub use key::template::KeyTemplate;
pub use key::{Key, KeyError, KeyPart};
pub use name::{JobName, ProjectName, Scope};
pub use parse_error::ParseError;
