//! Errors of the store, each with what to do about it.

use std::path::PathBuf;

use jiff::Timestamp;
use refrain_core::ProjectName;
use refrain_core::terminal::typed;

use super::identity::IdentityDoubt;
use crate::database::DatabaseError;

/// An error of the store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// An error of the database.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// The tables do not exist.
    #[error("there is no store in this database yet\n  make it: refrain migrate")]
    Missing,
    /// The tables are of an older release.
    #[error("the store has schema {found}, and this release needs {needed}\n  upgrade it: refrain migrate")]
    TooOld {
        /// The schema of the store.
        found: i32,
        /// The schema that this release needs.
        needed: i32,
    },
    /// The tables are so old that not even a look understands them.
    #[error(
        "the store has schema {found}, and this release reads schema {oldest} and later\n  upgrade it: refrain migrate; or look at it with the release that made it"
    )]
    Unreadable {
        /// The schema of the store.
        found: i32,
        /// The oldest that can be read.
        oldest: i32,
    },
    /// The tables are of a newer release, which changed more than this one can follow.
    #[error(
        "the store has schema {found}, and this release supports only up to {known}\n  a newer refrain has upgraded it; use that one here too"
    )]
    TooNew {
        /// The schema of the store.
        found: i32,
        /// The newest schema that this release knows.
        known: i32,
    },
    /// A worker of an older release would break on the tables that this one needs.
    #[error(
        "worker {worker} ({process}) is of an older release and still uses this store, so it is not upgraded\n  stop that process; then the same command upgrades the store"
    )]
    OlderWorker {
        /// Its number.
        worker: i64,
        /// The process: boot, namespace, number, start.
        process: String,
    },
    /// The store belongs to another project.
    #[error(
        "this store belongs to the project `{found}`, not to `{asked}`\n  give each project a store of its own"
    )]
    OtherProject {
        /// The project that the store belongs to.
        found: String,
        /// The project that opened it.
        asked: ProjectName,
    },
    /// Schedules have read the real clock here, and must not read another one.
    #[error(
        "this store has real runs or workers, so its clock cannot be set\n  set it in a new store, which is simulated from then on"
    )]
    Real,
    /// Schedules read a clock that was set here, and serving would mix it with the real one.
    #[error("this store is simulated: its clock was set once, and it stays so\n  serve a store of its own")]
    Simulated,
    /// Effects of a simulated store would be real.
    #[error("this store is simulated, so nothing is sent from it\n  use a store of its own for real work")]
    SimulatedSend,
    /// A row has a value that Refrain does not write.
    #[error("{0}\n  `refrain fsck` lists what is wrong")]
    Broken(String),
    /// The clocks of the database and of this machine disagree, and schedules can trust neither.
    #[error(
        "the clock of the store says {store:.0} and that of this machine {machine:.0}, more than an hour apart: no window is opened\n  set the one that is wrong; what is due then is caught up"
    )]
    ClocksApart {
        /// The time by the database.
        store: Timestamp,
        /// The time by the machine.
        machine: Timestamp,
    },
    /// The file of the store is not where it was.
    #[error(
        "the file of the store, {}, was moved, removed or replaced while it was in use: this process stops, because what it writes would be lost\n  put the file back, and start again", .0.display()
    )]
    Moved(PathBuf),
    /// The store may be older than what it has done, or a copy of another one.
    #[error(
        "{0}\n  it may not know what was done since, so nothing runs before you declare what it is: `refrain recover --moved` (the same store, and nothing is lost), `--restored` (older than what it has done) or `--copied` (another one goes on where it was)"
    )]
    Unsure(IdentityDoubt),
    /// A run may not make this transition.
    #[error(transparent)]
    Transition(#[from] refrain_core::state::Refusal),
    /// A higher version of the fact is recorded, and only the highest is ever sent.
    #[error(
        "`{key}` has a version {highest}, so version {version} is never sent\n  decide about that one: {key}@{highest}"
    )]
    LowerVersion {
        /// The key of the fact.
        key: String,
        /// The version of the decision.
        version: i32,
        /// The highest version.
        highest: i32,
    },
    /// A sender holds the effect.
    #[error(
        "`{key}` is being sent now, so nothing is decided about it\n  use the same command when its sender has ended"
    )]
    BeingSent {
        /// The key of the fact.
        key: String,
    },
    /// The last message of an effect may still be on its way.
    #[error(
        "the last message of `{key}` may still arrive until {until:.0}, so it is not sent again before\n  use the same command then; if it has arrived: refrain effects confirm {}",
        typed(.key)
    )]
    TooEarly {
        /// The key of the fact.
        key: String,
        /// Until when it may arrive.
        until: Timestamp,
    },
    /// The timetable is refused.
    #[error(transparent)]
    Edit(#[from] refrain_core::EditError),
    /// A loop of a process that serves has ended before it was told to.
    #[error(
        "the {0} of this process has ended because of a bug in refrain, so the process stops\n  start it again: it continues the work. Please report the error in the log"
    )]
    LoopEnded(&'static str),
}
