//! Where a store is, and whether it may be a copy or an older version of itself.
//!
//! A store that was copied, or restored from an older copy, does not know what was done since: it would run and send again. It cannot
//! tell that from its rows, so it records where it is. A file is identified by its inode and its creation time; a database on a
//! server by the server, its oid, and the timeline of the server, which changes after a failover or a restore. A store that is
//! elsewhere runs nothing until the operator declares what it is.
//!
//! The device is not compared: its number may change with each boot. What cannot be read is not compared, either.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::UNIX_EPOCH;

use super::{Result, Store};
use crate::database::statement::Statement;
use crate::database::{Address, Database, DatabaseError, Transaction};

/// Where a store is: each known property of its place, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct StoreIdentity(BTreeMap<String, String>);

/// SQLite has no such statements, so they are in no catalogue.
static DATABASE: Statement =
    Statement::new("sql/store/database.postgres.sql", include_str!("../../sql/store/database.postgres.sql"));
static SERVER: Statement =
    Statement::new("sql/store/server.postgres.sql", include_str!("../../sql/store/server.postgres.sql"));

static SERVER_TIMELINE: Statement =
    Statement::new("sql/store/timeline.postgres.sql", include_str!("../../sql/store/timeline.postgres.sql"));

/// The property that may change although nothing was copied.
const TIMELINE: &str = "timeline";

/// Why a store may be older than what it has done, or not the only one of its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum IdentityDoubt {
    /// It is elsewhere than before.
    Elsewhere,
    /// Its server has another timeline.
    Timeline,
    /// It was created by a backup.
    Backup,
    /// A database remembers a newer attempt than the store does.
    Behind,
}

impl IdentityDoubt {
    const ALL: [IdentityDoubt; 4] =
        [IdentityDoubt::Elsewhere, IdentityDoubt::Timeline, IdentityDoubt::Backup, IdentityDoubt::Behind];

    /// Its name in the store and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            IdentityDoubt::Elsewhere => "elsewhere",
            IdentityDoubt::Timeline => "timeline",
            IdentityDoubt::Backup => "backup",
            IdentityDoubt::Behind => "behind",
        }
    }

    /// The doubt with this name; an unknown name is a doubt, too.
    pub fn named(name: &str) -> IdentityDoubt {
        let found = IdentityDoubt::ALL.into_iter().find(|doubt| doubt.name() == name);
        found.unwrap_or(IdentityDoubt::Elsewhere)
    }
}

impl fmt::Display for IdentityDoubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            IdentityDoubt::Elsewhere => "this store is not where it was: it was moved, copied, or restored from a copy",
            IdentityDoubt::Timeline => {
                "the server of this store has another timeline: it failed over, or was restored from a backup"
            }
            IdentityDoubt::Backup => "this store was made by `refrain backup`",
            IdentityDoubt::Behind => "a database remembers a newer attempt than this store: the store is older than what it has done",
        })
    }
}

impl fmt::Display for StoreIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<String> = self.0.iter().map(|(name, value)| format!("{name}={value}")).collect();
        f.write_str(&words.join(" "))
    }
}

impl StoreIdentity {
    /// Reads it as it is stored.
    pub(crate) fn stored(text: &str) -> StoreIdentity {
        let words = text.split(' ').filter_map(|word| word.split_once('='));
        StoreIdentity(words.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }

    /// Where a store is now.
    pub(crate) async fn of(database: &Database, address: &Address) -> Result<StoreIdentity> {
        match address {
            Address::Sqlite { path } => Ok(StoreIdentity::of_file(path)),
            Address::Postgres { .. } => Ok(StoreIdentity::of_server(database).await?),
        }
    }

    fn of_file(path: &Path) -> StoreIdentity {
        let mut known = BTreeMap::new();
        if let Ok(file) = fs::metadata(path) {
            known.insert("inode".to_owned(), file.ino().to_string());
            let born = file.created().ok().and_then(|born| born.duration_since(UNIX_EPOCH).ok());
            known.extend(born.map(|born| ("born".to_owned(), born.as_micros().to_string())));
        }
        StoreIdentity(known)
    }

    async fn of_server(database: &Database) -> std::result::Result<StoreIdentity, DatabaseError> {
        let mut known = BTreeMap::new();
        let mut reading = database.read().await?;
        let number: Option<(String,)> = reading.fetch_optional(DATABASE.bound()).await?;
        reading.rollback().await?;
        known.extend(number.map(|(number,)| ("database".to_owned(), number)));
        // Some servers do not allow this query. It has a transaction of its own, because a refusal ends the transaction.
        let mut reading = database.read().await?;
        let server: std::result::Result<Option<(String, String)>, DatabaseError> =
            reading.fetch_optional(SERVER.bound()).await;
        drop(reading);
        match server {
            Ok(None) => {}
            Ok(Some((system, timeline))) => {
                known.insert("system".to_owned(), system);
                known.insert(TIMELINE.to_owned(), timeline);
            }
            Err(error) if error.is_transient() => return Err(error),
            Err(error) => tracing::debug!(%error, "the server does not tell its identity"),
        }
        Ok(StoreIdentity(known))
    }

    /// Why the store may not be the same, compared with where it is now.
    pub(crate) fn doubt(&self, now: &StoreIdentity) -> Option<IdentityDoubt> {
        let both = self.0.iter().filter_map(|(name, was)| Some((name.as_str(), was, now.0.get(name)?)));
        let moved: Vec<&str> = both.filter(|(_, was, is)| was != is).map(|(name, ..)| name).collect();
        let is_apart = !self.0.is_empty() && !self.0.keys().any(|name| now.0.contains_key(name));
        match moved.as_slice() {
            [] if !is_apart => None,
            [TIMELINE] => Some(IdentityDoubt::Timeline),
            _ => Some(IdentityDoubt::Elsewhere),
        }
    }
}

impl Store {
    /// An error if the store is not what and where it was when it was opened, or if that could not be checked. A failover behind the
    /// same URL is recorded in the store, for all processes.
    pub(crate) async fn stays_in_place(&self) -> Result<()> {
        self.is_in_place()?;
        self.is_sure()?;
        if self.database.is_sqlite() {
            return Ok(());
        }
        let now = StoreIdentity::of(&self.database, &self.address).await?;
        match self.identity.doubt(&now) {
            None => Ok(()),
            Some(doubt) => Err(self.is_doubted(doubt).await?),
        }
    }

    /// Whether the server of an open transaction has the timeline that it had when the store was opened: the check once a second may
    /// come after a claim. A server that does not tell its timeline is not asked.
    pub(crate) async fn goes_on_in(&self, transaction: &mut Transaction) -> Result<bool> {
        let Some(was) = self.identity.0.get(TIMELINE) else { return Ok(true) };
        let now: Option<(String,)> = transaction.fetch_optional(SERVER_TIMELINE.bound()).await?;
        Ok(now.is_none_or(|(now,)| now == *was))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_elsewhere_when_a_property_of_its_place_has_changed() {
        let was = StoreIdentity::stored("database=5 system=9 timeline=1");
        for (now, doubt) in [
            ("database=5 system=9 timeline=1", None),
            ("database=5", None),
            ("database=5 system=9 timeline=2", Some(IdentityDoubt::Timeline)),
            ("database=6 system=9 timeline=1", Some(IdentityDoubt::Elsewhere)),
            ("database=5 system=8 timeline=2", Some(IdentityDoubt::Elsewhere)),
            ("inode=5 born=7", Some(IdentityDoubt::Elsewhere)),
        ] {
            assert_eq!(was.doubt(&StoreIdentity::stored(now)), doubt, "{now}");
        }
        assert_eq!(StoreIdentity::stored("").doubt(&was), None, "no place was recorded");
        assert_eq!(StoreIdentity::stored(&was.to_string()), was);
    }

    #[test]
    fn a_stored_doubt_can_be_read_even_if_its_kind_is_unknown() {
        for doubt in IdentityDoubt::ALL {
            assert_eq!(IdentityDoubt::named(doubt.name()), doubt);
        }
        assert_eq!(IdentityDoubt::named("of a later release"), IdentityDoubt::Elsewhere);
    }
}
