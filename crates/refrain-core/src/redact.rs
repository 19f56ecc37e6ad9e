//! Secrets, and how they are kept out of everything that people read.
//!
//! A secret has no text form of its own: [`Secret`] can be handed on, not printed. But a command may print what it
//! was given, a library may put it into an error, and it may be encoded on the way. So all output goes through a
//! [`Redactor`], which finds each secret as it is, in base64 (both alphabets, at each of the three alignments), in
//! hexadecimal, percent-encoded and JSON-escaped, once or twice, and in any mixture of the last two. Output comes
//! in chunks, and a secret may lie across their border: a [`Stream`] holds back what may be the beginning of one,
//! and not a byte more, so that a line is seen when it is written.
//!
//! What is shorter than [`SHORTEST`] bytes is not searched for: hiding every `7` tells nothing to anyone.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

/// What stands in the place of a secret.
pub const HIDDEN: &str = "••••";

/// The shortest secret that is searched for, in bytes.
pub const SHORTEST: usize = 4;

/// A value that must not be shown. It can be compared and handed on, not printed.
///
/// ```
/// use refrain_core::Secret;
///
/// let secret = Secret::new("hunter2");
/// assert_eq!(format!("{secret:?}"), "••••");
/// assert_eq!(secret.expose(), "hunter2");
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Secret(String);

impl Secret {
    /// Takes a value that must not be shown.
    pub fn new(value: impl Into<String>) -> Secret {
        Secret(value.into())
    }

    /// The value, for the one who must have it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

/// Hides secrets in text.
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
pub struct Redactor(Arc<Patterns>);

/// Hides secrets in text that comes in chunks.
pub struct Stream {
    redactor: Redactor,
    held: String,
}

impl Redactor {
    /// One that hides these.
    pub fn new(secrets: &[Secret]) -> Redactor {
        let long_enough = secrets.iter().map(Secret::expose).filter(|secret| secret.len() >= SHORTEST);
        Redactor(Arc::new(Patterns::of(long_enough)))
    }

    /// The text with every secret hidden.
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.0.find(text, true) {
            (found, _) if found.is_empty() => Cow::Borrowed(text),
            (found, _) => Cow::Owned(hide(text, &found)),
        }
    }

    /// Begins a text that comes in chunks.
    pub fn stream(&self) -> Stream {
        Stream { redactor: self.clone(), held: String::new() }
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Redactor")
    }
}

impl Stream {
    /// Takes the next chunk and gives what can be shown by now.
    pub fn push(&mut self, chunk: &str) -> String {
        self.held.push_str(chunk);
        let (found, sure) = self.redactor.0.find(&self.held, false);
        let rest = self.held.get(sure..).unwrap_or_default().to_owned();
        let text = std::mem::replace(&mut self.held, rest);
        hide(text.get(..sure).unwrap_or_default(), &found)
    }

    /// Gives what was held back.
    pub fn finish(self) -> String {
        self.redactor.redact(&self.held).into_owned()
    }
}

fn hide(text: &str, found: &[Range<usize>]) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut copied = 0;
    for secret in found {
        shown.push_str(text.get(copied..secret.start).unwrap_or_default());
        shown.push_str(HIDDEN);
        copied = secret.end;
    }
    shown.push_str(text.get(copied..).unwrap_or_default());
    shown
}

/// A secret in one of its forms: each character in each of its spellings.
struct Pattern(Vec<Vec<Spelling>>);

/// One way to write a character.
#[derive(PartialEq, Eq)]
struct Spelling {
    bytes: Vec<u8>,
    any_case: bool,
}

/// All forms of all secrets, and which of them may begin with which byte.
#[derive(Default)]
struct Patterns {
    all: Vec<Pattern>,
    by_first_byte: Vec<Vec<usize>>,
    /// The longest text that any of them fits. Secrets that overlap without end are not held back longer.
    longest: usize,
}

/// What was found at one place: the longest secret that is whole, and whether one might go on behind the text.
#[derive(Default)]
struct Found {
    end: Option<usize>,
    is_cut: bool,
}

impl Patterns {
    fn of<'s>(secrets: impl Iterator<Item = &'s str>) -> Patterns {
        let mut forms: Vec<String> = secrets.flat_map(forms).collect();
        forms.sort_unstable();
        forms.dedup();
        let patterns: Vec<Pattern> = forms.iter().map(|form| Pattern::of(form)).collect();
        let begins = |pattern: &Pattern, byte: u8| {
            pattern.0.first().is_some_and(|first| first.iter().any(|spelling| spelling.begins_with(byte)))
        };
        let indexes = |byte: u8| {
            (0..)
                .zip(&patterns)
                .filter(|(_, pattern)| begins(pattern, byte))
                .map(|(index, _)| index)
                .collect()
        };
        let by_first_byte = (0..=u8::MAX).map(indexes).collect();
        let longest = patterns.iter().map(Pattern::longest).max().unwrap_or_default();
        Patterns { all: patterns, by_first_byte, longest }
    }

    /// The secrets in a text, and up to where that is sure: in a text that goes on, a secret may have begun there.
    fn find(&self, text: &str, is_whole: bool) -> (Vec<Range<usize>>, usize) {
        let bytes = text.as_bytes();
        let mut secrets = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            let (end, is_cut) = self.overlapping(bytes, at);
            if is_cut && !is_whole && bytes.len() - at <= self.longest {
                return (secrets, at);
            }
            if end > at {
                secrets.push(at..end);
            }
            at = end.max(at + 1);
        }
        (secrets, bytes.len())
    }

    /// The end of the secret that begins here and of all that overlap it.
    fn overlapping(&self, text: &[u8], at: usize) -> (usize, bool) {
        let Found { end, mut is_cut } = self.at(text, at);
        let mut end = end.unwrap_or(at);
        let mut inside = at + 1;
        while inside < end && !is_cut {
            let found = self.at(text, inside);
            end = end.max(found.end.unwrap_or(end));
            is_cut = found.is_cut;
            inside += 1;
        }
        (end, is_cut)
    }

    fn at(&self, text: &[u8], at: usize) -> Found {
        let candidates = text.get(at).and_then(|byte| self.by_first_byte.get(usize::from(*byte)));
        let patterns = candidates.into_iter().flatten().filter_map(|index| self.all.get(*index));
        patterns.map(|pattern| pattern.at(text, at)).fold(Found::default(), |one, other| Found {
            end: one.end.max(other.end),
            is_cut: one.is_cut || other.is_cut,
        })
    }
}

impl Pattern {
    fn of(form: &str) -> Pattern {
        Pattern(form.chars().map(spellings).collect())
    }

    fn longest(&self) -> usize {
        let longest = |ways: &Vec<Spelling>| ways.iter().map(|way| way.bytes.len()).max().unwrap_or_default();
        self.0.iter().map(longest).sum()
    }

    /// A character may be spelled in ways of which one begins like another, so all that fit are followed.
    fn at(&self, text: &[u8], at: usize) -> Found {
        let mut is_cut = false;
        let mut ends = vec![at];
        for character in &self.0 {
            let mut next = Vec::new();
            for (from, spelling) in ends.iter().flat_map(|from| character.iter().map(move |way| (*from, way)))
            {
                let rest = text.get(from..).unwrap_or_default();
                let length = spelling.bytes.len().min(rest.len());
                let fits = rest.get(..length).is_some_and(|here| spelling.fits(here));
                is_cut |= fits && length < spelling.bytes.len();
                let end = from + length;
                if fits && length == spelling.bytes.len() && !next.contains(&end) {
                    next.push(end);
                }
            }
            if next.is_empty() {
                return Found { end: None, is_cut };
            }
            ends = next;
        }
        Found { end: ends.into_iter().max(), is_cut }
    }
}

impl Spelling {
    /// Whether this is how it begins.
    fn fits(&self, here: &[u8]) -> bool {
        let expected = self.bytes.get(..here.len()).unwrap_or_default();
        if self.any_case { expected.eq_ignore_ascii_case(here) } else { expected == here }
    }

    fn begins_with(&self, byte: u8) -> bool {
        self.fits(&[byte])
    }
}

/// The texts that give a secret away: itself, in hexadecimal, and in base64 wherever it begins within a group of
/// three bytes. Of the last, the characters that hold bits of its neighbours are left out.
fn forms(secret: &str) -> Vec<String> {
    let lower = encode(secret.bytes(), |byte| format!("{byte:02x}"));
    let mut forms = vec![secret.to_owned(), lower.to_ascii_uppercase(), lower];
    for before in 0..3 {
        let padded = [&vec![0; before], secret.as_bytes()].concat();
        let (from, until) = ((before * 8).div_ceil(6), padded.len() * 8 / 6);
        for encoded in [STANDARD_NO_PAD.encode(&padded), URL_SAFE_NO_PAD.encode(&padded)] {
            forms.extend(encoded.get(from..until).map(str::to_owned));
        }
    }
    forms
}

/// The ways to write a character: raw, percent-encoded, JSON-escaped; each encoding once or twice.
fn spellings(character: char) -> Vec<Spelling> {
    let mut raw = [0; 4];
    let raw = character.encode_utf8(&mut raw);
    let percent = |sign: &str| encode(raw.bytes(), |byte| format!("{sign}{byte:02X}"));
    let mut units = [0; 2];
    let units = character.encode_utf16(&mut units);
    let escape = |sign: &str| encode(units.iter(), |unit| format!("{sign}u{unit:04x}"));
    let mut encoded = vec![percent("%"), percent("%25"), escape("\\"), escape("\\\\")];
    let short = match character {
        ' ' => &["+"][..],
        '\n' => &["\\n", "\\\\n"],
        '\r' => &["\\r", "\\\\r"],
        '\t' => &["\\t", "\\\\t"],
        '\u{8}' => &["\\b", "\\\\b"],
        '\u{c}' => &["\\f", "\\\\f"],
        '/' => &["\\/", "\\\\/"],
        '"' => &["\\\"", "\\\\\\\""],
        '\\' => &["\\\\", "\\\\\\\\"],
        _ => &[],
    };
    encoded.extend(short.iter().map(|&text| text.to_owned()));
    let raw = Spelling { bytes: raw.as_bytes().to_vec(), any_case: false };
    let encoded = encoded.into_iter().map(|text| Spelling { bytes: text.into_bytes(), any_case: true });
    std::iter::once(raw).chain(encoded).collect()
}

fn encode<T>(units: impl Iterator<Item = T>, unit: impl Fn(T) -> String) -> String {
    units.map(unit).collect()
}
