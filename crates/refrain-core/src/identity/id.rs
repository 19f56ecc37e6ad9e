//! Derived ids: the same input gives the same id on every machine, in every run and in every release.
//!
//! An id is the first 16 bytes of the SHA-256 of an [encoding](crate::encoding), shaped as a UUID of
//! version 8 (RFC 9562: the version is the high half of byte 6, the variant the two high bits of byte 8),
//! so that it fits a `uuid` column and looks familiar. Random ids and sequences were rejected: a row that is written
//! again would get another id, and every reference to it would dangle. Each kind has its own domain and its own type, so
//! one cannot be mistaken for another. The hashed parts are part of the contract and documented at each `of`.

use std::{fmt, str};

use crate::encoding::{Domain, EncodingError, Parts};
use crate::key::Key;
use crate::name::{JobName, ProjectName};
use crate::parse_error::ParseError;
use crate::run_name::RunKey;

/// The public id of a run.
///
/// ```
/// use refrain_core::{JobName, Key, ProjectName, RunId, RunKey};
///
/// let (project, job) = (ProjectName::parse("shop")?, JobName::parse("welcome-email")?);
/// let key = RunKey::queued(Key::parse("42")?);
/// let id = RunId::of(&project, &job, &key);
/// assert_eq!(id.to_string().parse(), Ok(id));
/// assert_eq!(id, RunId::of(&project, &job, &key));
/// # Ok::<(), refrain_core::ParseError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(Uuid);

/// The `Idempotency-Key` that the provider of an effect receives: the same for every attempt and rerun, until the rule
/// gets a new version.
///
/// ```
/// use refrain_core::{IdempotencyKey, Key, ProjectName};
///
/// let (project, fact) = (ProjectName::parse("shop")?, Key::parse("notify:new-invoice:INV-7")?);
/// let first = IdempotencyKey::of(&project, &fact, 1);
/// assert_eq!(first, IdempotencyKey::of(&project, &fact, 1));
/// assert_ne!(first, IdempotencyKey::of(&project, &fact, 2));
/// # Ok::<(), refrain_core::ParseError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IdempotencyKey(Uuid);

/// The key of a row, derived from its natural key.
///
/// ```
/// use refrain_core::SurrogateKey;
///
/// let row = SurrogateKey::of(&[Some("2026-06-09"), Some("EU")])?;
/// assert_eq!(row.to_string(), "7307c0ae-2941-86b3-a801-096c4b8112d6");
/// assert_ne!(row, SurrogateKey::of(&[Some("2026-06-09"), None])?);
/// # Ok::<(), refrain_core::encoding::EncodingError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SurrogateKey(Uuid);

impl RunId {
    /// Hashes the project, the job and the run's key.
    pub fn of(project: &ProjectName, job: &JobName, key: &RunKey) -> Self {
        Self(Uuid::of_bounded(Domain::Run, &[project.as_str(), job.as_str(), key.as_key().as_str()]))
    }
}

impl IdempotencyKey {
    /// Hashes the project, the effect's key and its version in decimal.
    pub fn of(project: &ProjectName, key: &Key, version: u32) -> Self {
        Self(Uuid::of_bounded(Domain::Effect, &[project.as_str(), key.as_str(), &version.to_string()]))
    }
}

impl SurrogateKey {
    /// Hashes the columns of the natural key, in order; `None` is null.
    pub fn of(parts: &[Option<&str>]) -> Result<Self, EncodingError> {
        Uuid::of(Domain::Surrogate, parts).map(Self)
    }
}

macro_rules! uuid_type {
    ($($name:ident: $what:literal),+) => {$(
        impl $name {
            /// The 16 bytes, as a `uuid` column holds them.
            pub fn to_bytes(self) -> [u8; 16] {
                self.0.0.to_be_bytes()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0.text())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({self})", stringify!($name))
            }
        }

        impl str::FromStr for $name {
            type Err = ParseError;

            fn from_str(text: &str) -> Result<Self, ParseError> {
                let id = Uuid::parse(text).map(Self);
                id.ok_or_else(|| ParseError::whole($what, text, "this is not a derived id").help(FORM))
            }
        }
    )+};
}

const FORM: &str =
    "an id is 32 hexadecimal digits, as in 00000000-0000-8000-8000-000000000000, where the 8 is fixed";

uuid_type!(RunId: "run id", IdempotencyKey: "idempotency key", SurrogateKey: "surrogate key");

/// A UUID of version 8; as a number it is ordered as its bytes and its text are.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Uuid(u128);

impl Uuid {
    fn of(domain: Domain, parts: &[Option<&str>]) -> Result<Self, EncodingError> {
        let hash = Parts::of(parts)?.sha256(domain)?;
        Ok(Self::shaped(hash.iter().take(16).fold(0, |number, byte| (number << 8) | u128::from(*byte))))
    }

    #[expect(clippy::expect_used, reason = "names and keys are bounded by their types, far below the limit")]
    fn of_bounded(domain: Domain, parts: &[&str; 3]) -> Self {
        Self::of(domain, &parts.map(Some)).expect("three parts of at most 512 bytes can be encoded")
    }

    fn shaped(number: u128) -> Self {
        let (version, variant) = (0xf << 76, 0b11 << 62);
        Self((number & !version & !variant) | (8 << 76) | (0b10 << 62))
    }

    fn text(self) -> String {
        let Self(number) = self;
        let group = |shift: u32| (number >> shift) & 0xffff;
        let (head, tail) = (number >> 96, number & 0xffff_ffff_ffff);
        format!("{head:08x}-{:04x}-{:04x}-{:04x}-{tail:012x}", group(80), group(64), group(48))
    }

    fn parse(text: &str) -> Option<Self> {
        let id = Self::shaped(u128::from_str_radix(&text.replace('-', ""), 16).ok()?);
        id.text().eq_ignore_ascii_case(text).then_some(id)
    }
}
