//! The decisions of Refrain, as values.
//!
//! Nothing here touches the world: no files, no sockets, no database, no clock that was not handed in. A
//! decision (which windows a tick opens, whether a missed one still runs, what a key is, whether a state may
//! follow another) is a value that can be printed and tested by table; the `refrain` crate acts on it.
//!
//! # Layout
//!
//! - `identity/`: [`name`], [`mod@key`], [`encoding`], [`id`], [`surrogate`], [`content`], [`run_name`]
//! - `time/`: [`zone`], [`duration`], [`window`], [`grid`], [`window_name`], [`schedule`], [`timetable`], [`tick`] (the tick
//!   rule), [`catch_up`], [`revision`], [`revisions`], [`expectation`], [`clock`], [`clock_watch`]
//! - `policy/`: [`retry`], [`redo`], [`person`], [`spike`], [`search`], [`AlarmKind`], [`WhileRunning`]
//! - `action/`: [`call`], [`feed`], [`publish`], [`values`]
//! - `text/`: [`parse_error`], [`template`], [`terminal`], [`redact`]
//! - [`project`] (job files), [`state`] (which state may follow which), [`why`] (why a run happened or not), [`random`]
#![forbid(unsafe_code)]

#[macro_use]
mod text;
mod action;
mod identity;
mod policy;
mod time;

pub mod project;
pub mod random;
pub mod state;
pub mod why;

pub use action::{call, feed, publish, values};
pub use identity::{content, encoding, id, key, name, run_name, surrogate};
pub use policy::{AlarmKind, WhileRunning, person, redo, retry, search, spike};
pub(crate) use text::word;
pub use text::{parse_error, redact, template, terminal};
pub use time::{
    catch_up, clock, clock_watch, duration, expectation, grid, revision, revisions, schedule, tick,
    timetable, window, window_name, zone,
};

pub use catch_up::{CatchUp, CatchUpVerdict, SkipReason};
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
pub use project::ProjectConfig;
pub use random::{Random, SeededRandom, SystemRandom};
pub use redact::Secret;
pub use redo::Redo;
pub use retry::{Backoff, Retry};
pub use revision::{EditError, Revision};
pub use revisions::{Revisions, RevisionsError};
pub use run_name::{RunKey, RunName};
pub use schedule::{Dst, Fold, Gap, Schedule, Ticks};
pub use template::{Template, TemplateError};
pub use tick::{DueWindow, TickPlan, WindowShape};
pub use timetable::Timetable;
pub use values::Values;
pub use window::{LogicalTime, Window, WindowError};
pub use word::Word;
pub use zone::{Jump, Zone};
