//! The decisions of Refrain, as values.
//!
//! Nothing here touches the world: no files, no sockets, no database, no clock that was not handed in. A
//! decision (which windows a tick opens, whether a missed one still runs, what a key is, whether a state may
//! follow another) is a value that can be printed and tested by table; the `refrain` crate acts on it.
//!
//! # Layout
//!
//! - Identity: [`name`], [`mod@key`], [`encoding`], [`id`], [`surrogate`], [`content`], [`run_name`]
//! - Time: [`zone`], [`duration`], [`window`], [`grid`], [`window_name`], [`schedule`], [`timetable`]
//! - What to do when: [`tick`] (the tick rule), [`catch_up`], [`revision`], [`revisions`], [`expectation`],
//!   [`retry`], [`while_running`]
//! - What may follow what: [`state`]
//! - What a person should hear of: [`alarm`], [`spike`]; asks: [`why`]; and decides: [`person`], [`redo`]
//! - From outside: [`clock`], [`clock_watch`], [`random`]
//! - What a person wrote: [`project`] (job files), [`template`], [`call`], [`values`], [`parse_error`]; what is shown to one: [`terminal`]
//! - What nobody may read: [`redact`]
#![forbid(unsafe_code)]

#[macro_use]
mod word;

pub mod alarm;
pub mod call;
pub mod catch_up;
pub mod clock;
pub mod clock_watch;
pub mod content;
pub mod duration;
pub mod encoding;
pub mod expectation;
pub mod feed;
pub mod grid;
pub mod id;
pub mod key;
pub mod name;
pub mod parse_error;
pub mod person;
pub mod project;
pub mod publish;
pub mod random;
pub mod redact;
pub mod redo;
pub mod retry;
pub mod revision;
pub mod revisions;
pub mod run_name;
pub mod schedule;
pub mod search;
pub mod spike;
pub mod state;
pub mod surrogate;
pub mod template;
pub mod terminal;
pub mod tick;
pub mod timetable;
pub mod values;
pub mod while_running;
pub mod why;
pub mod window;
pub mod window_name;
pub mod zone;

pub use alarm::AlarmKind;
pub use catch_up::{CatchUp, SkipReason, Verdict};
pub use clock::{Clock, ManualClock, SystemClock};
pub use content::{ContentError, Fingerprint};
pub use expectation::Expectation;
pub use feed::Per;
pub use grid::Grid;
pub use id::{IdempotencyKey, RunId, SurrogateKey};
pub use key::template::KeyTemplate;
pub use key::{Key, KeyError, KeyPart};
pub use name::{JobName, ProjectName, Scope};
pub use parse_error::ParseError;
pub use person::Person;
pub use project::Project;
pub use random::{Random, SeededRandom, SystemRandom};
pub use redact::Secret;
pub use redo::Redo;
pub use retry::{Backoff, Retry};
pub use revision::{EditError, Revision};
pub use revisions::{Revisions, RevisionsError};
pub use run_name::{RunKey, RunName};
pub use schedule::{Dst, Fold, Gap, Schedule, Ticks};
pub use template::{Template, TemplateError};
pub use tick::{Opening, Pass, Shape};
pub use timetable::Timetable;
pub use values::Values;
pub use while_running::WhileRunning;
pub use window::{LogicalTime, Window, WindowError};
pub use word::Word;
pub use zone::{Jump, Zone};
