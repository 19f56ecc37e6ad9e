//! The one canonical encoding: everything that is hashed into an id or a fingerprint is encoded this way first.
//!
//! Strings that are merely joined run together: `a:b` and `c` give the same bytes as `a` and `b:c`, and a separator that
//! "cannot occur" occurs. Here every part carries its own length, and the purpose of the hash (its [`Domain`]) comes
//! first, so two different lists never give the same bytes, and an id of one kind never equals one of another. JSON and
//! the like were rejected: they have too many ways to write the same value.
//!
//! # The format
//!
//! ```text
//! encoding  =  length domain  count  part part …
//! part      =  00                    null
//!           |  01 length text        a text; the empty text is not null
//! ```
//!
//! `length` and `count` are four bytes, unsigned, most significant first; a length counts bytes. `domain`
//! and `text` are UTF-8, exactly as they are: nothing is trimmed, folded or normalised. There is at least
//! one part, and all the parts together take at most 16 MiB. The hash is the SHA-256 of the encoding. The
//! same, for two columns `a` and `b`, in PostgreSQL (a database in UTF-8):
//!
//! ```sql
//! sha256(int4send(20) || 'refrain/v1/surrogate'::bytea || int4send(2)
//!     || coalesce('\x01'::bytea || int4send(octet_length(a)) || convert_to(a, 'UTF8'), '\x00'::bytea)
//!     || coalesce('\x01'::bytea || int4send(octet_length(b)) || convert_to(b, 'UTF8'), '\x00'::bytea))
//! ```
//!
//! The format is frozen, because ids made from it are stored: a change is a new domain, `refrain/v2/…`,
//! beside the old one. `tests/vectors` holds examples made by an independent implementation.

use sha2::{Digest, Sha256};

/// The most bytes that all parts of one encoding may take together. Far above any use, and far below what four bytes can
/// count, so the answer is the same on every machine.
pub const PARTS_BYTES_MAX: usize = 16 * 1024 * 1024;

/// What a hash is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Domain {
    /// The id of a run: [`RunId`](crate::RunId).
    Run,
    /// The idempotency key of an effect: [`IdempotencyKey`](crate::IdempotencyKey).
    Effect,
    /// The key of a row: [`SurrogateKey`](crate::SurrogateKey).
    Surrogate,
    /// The content of a unit: [`Fingerprint`](crate::Fingerprint).
    Content,
}

impl Domain {
    /// Every domain.
    pub const ALL: [Domain; 4] = [Domain::Run, Domain::Effect, Domain::Surrogate, Domain::Content];

    /// The name that is hashed.
    pub const fn name(self) -> &'static str {
        match self {
            Domain::Run => "refrain/v1/run",
            Domain::Effect => "refrain/v1/effect",
            Domain::Surrogate => "refrain/v1/surrogate",
            Domain::Content => "refrain/v1/content",
        }
    }
}

/// Why something could not be encoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EncodingError {
    /// There are no parts.
    #[error("there is nothing to hash: an empty list has the same hash everywhere; name at least one part")]
    NoParts,
    /// The parts are too long. They are never cut.
    #[error(
        "the parts take {bytes} bytes, the limit is {PARTS_BYTES_MAX}; use a shorter text, such as an id"
    )]
    TooLong {
        /// The length of the encoded parts.
        bytes: usize,
    },
}

/// The parts of an encoding, in order.
///
/// ```
/// use refrain_core::encoding::{Domain, Parts};
///
/// let joined = Parts::of(&[Some("a:b"), Some("c")])?.sha256(Domain::Surrogate)?;
/// assert_ne!(joined, Parts::of(&[Some("a"), Some("b:c")])?.sha256(Domain::Surrogate)?);
/// assert_ne!(joined, Parts::of(&[Some("a:b"), Some("c"), None])?.sha256(Domain::Surrogate)?);
/// # Ok::<(), refrain_core::encoding::EncodingError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parts {
    count: usize,
    bytes: Vec<u8>,
}

impl Parts {
    /// An empty list of parts.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty list of parts with reserved capacity.
    pub(crate) fn with_room(bytes: usize) -> Self {
        Self { count: 0, bytes: Vec::with_capacity(bytes) }
    }

    /// A list of these parts; `None` is null.
    pub fn of(parts: &[Option<&str>]) -> Result<Self, EncodingError> {
        let mut all = Self::new();
        for part in parts {
            all.push(*part)?;
        }
        Ok(all)
    }

    /// Adds a part; `None` is null.
    pub fn push(&mut self, part: Option<&str>) -> Result<(), EncodingError> {
        let bytes = self.bytes.len() + part.map_or(1, |text| 5 + text.len());
        if bytes > PARTS_BYTES_MAX {
            return Err(EncodingError::TooLong { bytes });
        }
        match part {
            None => self.bytes.push(0),
            Some(text) => {
                let [a, b, c, d] = four_bytes(text.len())?;
                self.bytes.extend_from_slice(&[1, a, b, c, d]);
                self.bytes.extend_from_slice(text.as_bytes());
            }
        }
        self.count += 1;
        Ok(())
    }

    /// The encoded bytes.
    pub fn encode(&self, domain: Domain) -> Result<Vec<u8>, EncodingError> {
        let (length, count) = self.frame(domain)?;
        Ok([&length, domain.name().as_bytes(), &count, self.bytes.as_slice()].concat())
    }

    /// The hash of the encoding.
    pub fn sha256(&self, domain: Domain) -> Result<[u8; 32], EncodingError> {
        let (length, count) = self.frame(domain)?;
        let hash = Sha256::new().chain_update(length).chain_update(domain.name()).chain_update(count);
        Ok(hash.chain_update(&self.bytes).finalize().into())
    }

    /// The length of the domain, and the number of parts.
    fn frame(&self, domain: Domain) -> Result<([u8; 4], [u8; 4]), EncodingError> {
        if self.count == 0 {
            return Err(EncodingError::NoParts);
        }
        Ok((four_bytes(domain.name().len())?, four_bytes(self.count)?))
    }
}

fn four_bytes(count: usize) -> Result<[u8; 4], EncodingError> {
    let count = u32::try_from(count).map_err(|_| EncodingError::TooLong { bytes: count })?;
    Ok(count.to_be_bytes())
}
