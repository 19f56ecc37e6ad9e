//! A TOML file as a tree in which every part knows its position.
//!
//! The tree comes from the TOML parser. This module adds the way back, from a part of a string to the bytes of the file, so
//! that the fourth field of a cron pattern is underlined and not its whole line. The position is exact if the string stands
//! in the file verbatim, and covers the whole value if it contains TOML escapes.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::PROBLEMS_MAX;
use super::problem::{Problem, SourceFile};
use crate::ParseError;

/// A parsed file.
pub(crate) struct Document<'s> {
    source: &'s SourceFile,
    root: Spanned<DeTable<'s>>,
    /// The TOML errors.
    pub(crate) faults: Vec<Problem>,
}

/// A value and its position.
#[derive(Clone, Copy)]
pub(crate) struct Value<'d> {
    source: &'d SourceFile,
    spanned: &'d Spanned<DeValue<'d>>,
}

/// The keys of a table and its position.
#[derive(Clone)]
pub(crate) struct Entries<'d> {
    source: &'d SourceFile,
    table: &'d DeTable<'d>,
    span: Range<usize>,
}

/// A string and its position.
#[derive(Debug, Clone)]
pub(crate) struct LocatedText {
    pub(crate) value: String,
    pub(crate) path: String,
    pub(crate) span: Range<usize>,
    /// Where its characters begin in the file, if they stand there verbatim.
    letters: Option<usize>,
}

impl<'s> Document<'s> {
    pub(crate) fn read(source: &'s SourceFile) -> Document<'s> {
        let (root, errors) = DeTable::parse_recoverable(&source.text);
        let faults = faults(source, &errors);
        Document { source, root, faults }
    }

    pub(crate) fn path(&self) -> &str {
        &self.source.path
    }

    pub(crate) fn root(&self) -> Entries<'_> {
        Entries { source: self.source, table: self.root.get_ref(), span: 0..0 }
    }
}

/// The messages of the TOML parser address programmers; the most common mistakes get messages of ours. One mistake may
/// cause many errors on its line, so each line reports only one.
fn faults(source: &SourceFile, errors: &[toml::de::Error]) -> Vec<Problem> {
    let positions = source.positions();
    let line = |error: &toml::de::Error| positions.line(error.span().map_or(0, |span| span.start));
    let mut sorted: Vec<&toml::de::Error> = errors.iter().collect();
    sorted.sort_by_key(|error| error.span().map_or(0, |span| span.start));
    sorted.dedup_by_key(|error| line(error));
    sorted.into_iter().take(PROBLEMS_MAX + 1).map(|error| fault(source, error)).collect()
}

fn fault(source: &SourceFile, error: &toml::de::Error) -> Problem {
    let span = error.span().unwrap_or(0..0);
    let words = error.message().lines().next().unwrap_or_default();
    let here = source.text.get(span.clone()).unwrap_or_default();
    let rest = source.text.get(span.start..).unwrap_or_default();
    let problem = |label: &str, help: &str| {
        Problem::new(&source.path, span.clone(), "this is not valid TOML", label).help(help)
    };
    if words.contains("must be quoted") {
        let help = format!("write \"{}\"", here.trim().replace('"', "\\\""));
        return problem("strings must be quoted", &help);
    }
    if words.contains("duplicate key") {
        let message = format!("`{here}` is written twice");
        return Problem::new(&source.path, span, message, "the second time").help("leave one of them out");
    }
    if words.contains("invalid unquoted key") && rest.starts_with(':') {
        return problem("a colon", "write `=` between a key and its value");
    }
    if words.contains("array") {
        let help = "end the list with `]`, and write `,` between its elements";
        return problem("the list before this is not closed, or a comma is missing", help);
    }
    if words.contains("string, expected") {
        return problem("the string before this is not closed", "end it with its opening quote");
    }
    Problem::new(&source.path, span, "this is not valid TOML", words)
}

impl<'d> Entries<'d> {
    pub(crate) fn path(&self) -> &'d str {
        &self.source.path
    }

    /// The position of the table: its header, or its braces.
    pub(crate) fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    pub(crate) fn get(&self, name: &str) -> Option<Value<'d>> {
        self.table.get(name).map(|spanned| Value { source: self.source, spanned })
    }

    pub(crate) fn text(&self, name: &str) -> Option<LocatedText> {
        self.get(name)?.text()
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.table.contains_key(name)
    }

    /// The position of a key.
    pub(crate) fn key_span(&self, name: &str) -> Range<usize> {
        self.iter().find(|(key, ..)| *key == name).map_or(self.span(), |(_, span, _)| span)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'d str, Range<usize>, Value<'d>)> {
        let source = self.source;
        self.table
            .iter()
            .map(move |(key, spanned)| (key.get_ref().as_ref(), key.span(), Value { source, spanned }))
    }
}

impl<'d> Value<'d> {
    pub(crate) fn path(self) -> &'d str {
        &self.source.path
    }

    pub(crate) fn span(self) -> Range<usize> {
        self.spanned.span()
    }

    /// Its type, for a sentence.
    pub(crate) fn noun(self) -> &'static str {
        match self.spanned.get_ref() {
            DeValue::String(_) => "a string",
            DeValue::Integer(_) => "a number",
            DeValue::Float(_) => "a number with a fraction",
            DeValue::Boolean(_) => "true or false",
            DeValue::Datetime(_) => "a date or a time",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        }
    }

    pub(crate) fn written(self) -> &'d str {
        self.source.text.get(self.span()).unwrap_or_default()
    }

    pub(crate) fn text(self) -> Option<LocatedText> {
        let value = self.spanned.get_ref().as_str()?.to_owned();
        let raw = self.written();
        let opening = if raw.starts_with("\"\"\"") || raw.starts_with("'''") { 3 } else { 1 };
        let inner = raw.get(opening..).unwrap_or_default();
        let newline =
            inner.len() - inner.strip_prefix("\r\n").or(inner.strip_prefix('\n')).unwrap_or(inner).len();
        let skipped = opening + if opening == 3 { newline } else { 0 };
        let letters = raw.get(skipped..).filter(|letters| letters.starts_with(&value));
        Some(LocatedText {
            letters: letters.map(|_| self.span().start + skipped),
            value,
            path: self.source.path.clone(),
            span: self.span(),
        })
    }

    /// A date or time as written, or a string.
    pub(crate) fn moment(self) -> Option<LocatedText> {
        match self.spanned.get_ref() {
            DeValue::Datetime(_) => {
                let value = self.written().replacen(' ', "T", 1).to_ascii_uppercase();
                let (path, span) = (self.source.path.clone(), self.span());
                Some(LocatedText { value, path, letters: Some(span.start), span })
            }
            _ => self.text(),
        }
    }

    pub(crate) fn flag(self) -> Option<bool> {
        self.spanned.get_ref().as_bool()
    }

    /// A whole number; `None` for another type or a number that is too large for any use.
    pub(crate) fn number(self) -> Option<i64> {
        let number = self.spanned.get_ref().as_integer()?;
        i64::from_str_radix(number.as_str(), number.radix()).ok()
    }

    pub(crate) fn is_number(self) -> bool {
        self.spanned.get_ref().is_integer()
    }

    pub(crate) fn list(self) -> Option<Vec<Value<'d>>> {
        let source = self.source;
        let array = self.spanned.get_ref().as_array()?;
        Some(array.iter().map(|spanned| Value { source, spanned }).collect())
    }

    pub(crate) fn table(self) -> Option<Entries<'d>> {
        let table = self.spanned.get_ref().as_table()?;
        Some(Entries { source: self.source, table, span: self.span() })
    }

    /// The same value as JSON; a date becomes a string.
    pub(crate) fn json(self) -> serde_json::Value {
        match self.spanned.get_ref() {
            DeValue::String(text) => text.as_ref().into(),
            DeValue::Integer(_) => self.number().into(),
            DeValue::Float(number) => number.as_str().parse::<f64>().ok().into(),
            DeValue::Boolean(flag) => (*flag).into(),
            DeValue::Datetime(moment) => moment.to_string().into(),
            DeValue::Array(_) => self.list().into_iter().flatten().map(Value::json).collect(),
            DeValue::Table(_) => {
                let entries = self.table().into_iter();
                let object = entries.flat_map(|entries| entries.iter().collect::<Vec<_>>());
                serde_json::Value::Object(
                    object.map(|(key, _, value)| (key.to_owned(), value.json())).collect(),
                )
            }
        }
    }
}

impl LocatedText {
    /// The whole text of a file.
    pub(crate) fn of_file(source: SourceFile) -> LocatedText {
        let span = 0..source.text.len();
        LocatedText { value: source.text, path: source.path, span, letters: Some(0) }
    }

    /// The byte range in the file of a part of the text.
    pub(crate) fn locate(&self, part: Range<usize>) -> Range<usize> {
        match self.letters {
            Some(from) => from + part.start..from + part.end,
            None => self.span.clone(),
        }
    }

    /// A problem with a part of the text.
    pub(crate) fn problem(
        &self,
        part: Range<usize>,
        message: impl Into<String>,
        label: impl Into<String>,
    ) -> Problem {
        Problem::new(&self.path, self.locate(part), message, label)
    }

    /// A problem with the whole text.
    pub(crate) fn wrong(&self, message: impl Into<String>, label: impl Into<String>) -> Problem {
        Problem::new(&self.path, self.span.clone(), message, label)
    }

    /// The error of another parser about the text.
    pub(crate) fn unreadable(&self, message: impl Into<String>, error: &ParseError) -> Problem {
        let span = if error.span().is_empty() { self.span.clone() } else { self.locate(error.span()) };
        let problem = Problem::new(&self.path, span, message, error.reason());
        Problem { help: error.advice().map(str::to_owned), ..problem }
    }
}
