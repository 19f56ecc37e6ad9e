//! A user's database that cannot be opened: which one, why, and what to check.

use std::fmt;

use crate::database::{Address, DatabaseError};

/// Why a database of a project cannot be opened.
#[derive(Debug)]
#[non_exhaustive]
pub struct DatabaseUnavailable {
    /// Its name in the project.
    pub name: String,
    /// Its URL, without the password.
    pub address: String,
    fault: Option<DatabaseError>,
}

impl DatabaseUnavailable {
    pub(super) fn missing(name: &str, address: &Address) -> DatabaseUnavailable {
        DatabaseUnavailable { name: name.to_owned(), address: address.to_string(), fault: None }
    }

    pub(super) fn of(name: &str, address: &Address, error: DatabaseError) -> DatabaseUnavailable {
        DatabaseUnavailable { fault: Some(error), ..DatabaseUnavailable::missing(name, address) }
    }

    /// Whether the same may succeed a moment later.
    pub fn is_transient(&self) -> bool {
        self.fault.as_ref().is_some_and(DatabaseError::is_transient)
    }
}

impl fmt::Display for DatabaseUnavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DatabaseUnavailable { name, address, fault } = self;
        let place = format!("its URL in refrain.toml under [databases], {address}");
        match fault {
            None => write!(
                f,
                "the file of the database `{name}` does not exist\n  check {place}; a path is relative to the project, and \
                 Refrain never creates your databases"
            ),
            Some(DatabaseError::Unreachable(said)) => write!(
                f,
                "the database `{name}` cannot be reached: {said}\n  is the server running? check {place}"
            ),
            Some(DatabaseError::Refused(said)) => {
                write!(
                    f,
                    "the database `{name}` denied access: {said}\n  check user, password and database of {place}"
                )
            }
            Some(DatabaseError::ReadOnly(said)) => write!(
                f,
                "the database `{name}` cannot be opened: {said}\n  check the owner and the mode of the file, and {place}"
            ),
            Some(DatabaseError::Corrupt(said)) => {
                write!(
                    f,
                    "the database `{name}` is damaged, or is not a SQLite file: {said}\n  check {place}"
                )
            }
            Some(fault) => write!(f, "the database `{name}` cannot be opened: {fault}\n  check {place}"),
        }
    }
}

impl std::error::Error for DatabaseUnavailable {}
