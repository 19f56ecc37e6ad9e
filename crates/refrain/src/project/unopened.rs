//! A database that jobs speak to, and that cannot be opened: which one, why, and what to check.

use std::fmt;

use crate::database::{Address, DatabaseError};

/// Why a database of a project cannot be opened.
#[derive(Debug)]
pub struct Unopened {
    /// What the project calls it.
    pub name: String,
    /// Where it should be, without the password.
    pub address: String,
    fault: Option<DatabaseError>,
}

impl Unopened {
    pub(super) fn missing(name: &str, address: &Address) -> Unopened {
        Unopened { name: name.to_owned(), address: address.to_string(), fault: None }
    }

    pub(super) fn of(name: &str, address: &Address, error: sqlx::Error) -> Unopened {
        Unopened { fault: Some(error.into()), ..Unopened::missing(name, address) }
    }

    /// Whether the same may succeed a moment later.
    pub fn is_transient(&self) -> bool {
        self.fault.as_ref().is_some_and(DatabaseError::is_transient)
    }
}

impl fmt::Display for Unopened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Unopened { name, address, fault } = self;
        let place = format!("its address in refrain.toml under [databases], {address}");
        match fault {
            None => write!(
                f,
                "there is no file for the database `{name}`\n  check {place}; a path counts from the project, and a \
                 database of yours is never made here"
            ),
            Some(DatabaseError::Unreachable(said)) => write!(
                f,
                "the database `{name}` cannot be reached: {said}\n  is the server running? check {place}"
            ),
            Some(DatabaseError::Refused(said)) => {
                write!(
                    f,
                    "the database `{name}` refuses us: {said}\n  check user, password and database of {place}"
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

impl std::error::Error for Unopened {}
