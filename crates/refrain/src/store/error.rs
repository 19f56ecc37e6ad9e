//! Why the store did not do what it was asked, each with what to do about it.

use std::path::PathBuf;

use jiff::Timestamp;
use refrain_core::ProjectName;

use super::identity::IdentityDoubt;
use crate::database::DatabaseError;

/// Why the store did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database said no.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// There are no tables yet.
    #[error("there is no store in this database yet\n  make it: refrain migrate")]
    Missing,
    /// The tables are of an older release.
    #[error(
        "the store has schema {found}, and this release needs {needed}\n  bring it up to date: refrain migrate"
    )]
    TooOld {
        /// What is there.
        found: i32,
        /// What is needed.
        needed: i32,
    },
    /// The tables are of a newer release.
    #[error(
        "the store has schema {found}, and this release knows only up to {known}\n  a newer refrain has used it; use that one here too"
    )]
    FromTheFuture {
        /// What is there.
        found: i32,
        /// What is known.
        known: i32,
    },
    /// The store belongs to another project.
    #[error(
        "this store belongs to the project `{found}`, not to `{asked}`\n  give each project a store of its own"
    )]
    OtherProject {
        /// Whose it is.
        found: String,
        /// Who came.
        asked: ProjectName,
    },
    /// Schedules have read the real clock here, and are not to read another one.
    #[error(
        "this store has real runs or workers, so its clock cannot be set\n  set it in a new store, which is simulated from then on"
    )]
    Real,
    /// Schedules read a clock that was set, and serving would mix it with the real one.
    #[error("this store is simulated: its clock was set once, and it stays so\n  serve a store of its own")]
    Simulated,
    /// A row is not what was written; something else writes here.
    #[error("{0}\n  `refrain fsck` lists what is wrong")]
    Broken(String),
    /// The clock of the database and that of this machine do not agree, and schedules can believe neither.
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
        "the file of the store, {}, was moved, removed or replaced while it was in use: this process ends, for what it wrote would be lost\n  put the file back, and start again", .0.display()
    )]
    Moved(PathBuf),
    /// The store may be older than what it has done, or not the only one of its kind.
    #[error(
        "{0}\n  it may not know what was done since, so nothing runs before a person has said what it is: `refrain recover --moved` (the same store, and nothing is lost), `--restored` (older than what it has done) or `--copied` (another one goes on where it was)"
    )]
    Unsure(IdentityDoubt),
    /// The timetable cannot be taken.
    #[error(transparent)]
    Edit(#[from] refrain_core::EditError),
    /// A loop of a process that serves has ended, which none does before it is told to.
    #[error(
        "the {0} of this process has ended by a fault of refrain's own: this process ends, for it would go on without it\n  start it again; what was begun goes on there. The log has the fault: please report it"
    )]
    LoopEnded(&'static str),
}
