//! Secrets, and how they are kept out of everything that people read.
//!
//! A [`Secret`] has no text form of its own: it can be passed on, not printed. But a command may print its arguments, a
//! library may put them into an error, and they may be encoded on the way. So all output goes through a [`Redactor`]. It
//! searches for the trimmed value, for each line of a multi-line value, and for both in base64 (both alphabets, at each
//! of the three alignments, also broken into lines) and hexadecimal (`redact/forms.rs`); and it reads the text in every
//! spelling at once: percent-encoded, JSON, HTML and Python escapes, once or twice, in any mixture
//! (`redact/spelling.rs`).
//!
//! Output arrives in chunks, and a secret may cross their border: a [`RedactingStream`] holds back what may be the beginning
//! of one, and not a byte more, so a line is visible as soon as it is written.
//!
//! Not searched for: values shorter than [`SHORTEST`] bytes (hiding every `7` makes output useless), base32, base64 of
//! base64, hexadecimal with spaces between the bytes (`od`, `xxd`), compressed or encrypted forms. JOBS.md says so.
//!
//! Rejected: a regular expression, or each form with each spelling as a pattern of its own. A secret of some kilobytes
//! then takes megabytes per byte, and a secret that repeats one letter makes the search quadratic. Here one automaton
//! searches for all forms (`redact/automaton.rs`), and the spellings are edges in the text (`redact/scan.rs`): memory is
//! linear in the secret, time is linear in the text.

mod automaton;
mod forms;
mod scan;
mod spelling;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use automaton::Automaton;
use scan::Scan;

/// The replacement for a secret.
pub const HIDDEN: &str = "••••";

/// The shortest secret that is searched for, in bytes.
pub const SHORTEST: usize = 4;

/// A value that must not be shown. It can be compared and passed on, not printed.
///
/// ```
/// use refrain_core::Secret;
///
/// let secret = Secret::new("hunter2");
/// assert_eq!(format!("{secret:?}"), "••••");
/// assert_eq!(secret.expose(), b"hunter2");
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Secret(Vec<u8>);

impl Secret {
    /// Takes a value that must not be shown. It need not be text: an environment variable may hold any bytes.
    pub fn new(value: impl Into<Vec<u8>>) -> Secret {
        Secret(value.into())
    }

    /// The value, for the code that needs it.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

/// Hides secrets in text. Clones share the automaton.
///
/// ```
/// use refrain_core::redact::{Redactor, Secret};
///
/// let redactor = Redactor::new(&[Secret::new("s3cret/key")]);
/// assert_eq!(redactor.redact("GET /?k=s3cret%2Fkey"), "GET /?k=••••");
///
/// let mut stream = redactor.stream();
/// assert_eq!(stream.push("key: s3cr"), "key: ");
/// assert_eq!(stream.push("et/key."), "••••.");
/// assert_eq!(stream.finish(), "");
/// ```
#[derive(Clone, Default)]
pub struct Redactor(Arc<Searched>);

/// The secrets, in order, and the automaton that finds them.
#[derive(Default)]
struct Searched {
    secrets: Vec<Secret>,
    automaton: Automaton,
}

/// Hides secrets in text that arrives in chunks.
pub struct RedactingStream {
    redactor: Redactor,
    scan: Scan,
}

impl Redactor {
    /// A redactor for these secrets.
    pub fn new(secrets: &[Secret]) -> Redactor {
        let mut secrets: Vec<Secret> =
            secrets.iter().filter(|secret| secret.expose().len() >= SHORTEST).cloned().collect();
        secrets.sort_unstable();
        secrets.dedup();
        let automaton = Automaton::of(secrets.iter().flat_map(|secret| forms::of(secret.expose())));
        Redactor(Arc::new(Searched { secrets, automaton }))
    }

    /// Whether it hides every secret that the other one hides.
    pub fn covers(&self, other: &Redactor) -> bool {
        let hides = |secret: &Secret| self.0.secrets.binary_search(secret).is_ok();
        Arc::ptr_eq(&self.0, &other.0) || other.0.secrets.iter().all(hides)
    }

    /// The text with every secret hidden.
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.0.automaton.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut scan = Scan::default();
        scan.push(text);
        let shown = scan.go_on(&self.0.automaton, true);
        if shown == text { Cow::Borrowed(text) } else { Cow::Owned(shown) }
    }

    /// Begins a text that arrives in chunks.
    pub fn stream(&self) -> RedactingStream {
        RedactingStream { redactor: self.clone(), scan: Scan::default() }
    }

    /// Its approximate size in memory, in bytes.
    pub fn size(&self) -> usize {
        self.0.automaton.size() + self.0.secrets.iter().map(|secret| secret.0.capacity()).sum::<usize>()
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Redactor")
    }
}

impl RedactingStream {
    /// Takes the next chunk and returns the text that can be shown by now.
    pub fn push(&mut self, chunk: &str) -> String {
        if self.redactor.0.automaton.is_empty() {
            return chunk.to_owned();
        }
        self.scan.push(chunk);
        self.scan.go_on(&self.redactor.0.automaton, false)
    }

    /// Returns the text that was held back.
    pub fn finish(&mut self) -> String {
        let shown = self.scan.go_on(&self.redactor.0.automaton, true);
        self.scan = Scan::default();
        shown
    }
}
