//! A file as a tree in which everything knows where it stands.
//!
//! The tree is TOML's own; what is added is the way back: from a part of a text to the bytes of the file, so that
//! the fourth field of a cron pattern is underlined and not the line it is in. That is exact where the text stands
//! in the file letter by letter, and the whole value where TOML's escapes lie between.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::PROBLEMS_MAX;
use super::problem::{Problem, Source};
use crate::ParseError;

/// A file that was read.
pub(crate) struct Document<'s> {
    source: &'s Source,
    root: Spanned<DeTable<'s>>,
    /// What is no TOML in it.
    pub(crate) faults: Vec<Problem>,
}

/// A value and where it stands.
#[derive(Clone, Copy)]
pub(crate) struct Value<'d> {
    source: &'d Source,
    spanned: &'d Spanned<DeValue<'d>>,
}

/// The keys of a table and where it stands.
#[derive(Clone)]
pub(crate) struct Entries<'d> {
    source: &'d Source,
    table: &'d DeTable<'d>,
    span: Range<usize>,
}

/// A text and where it stands.
#[derive(Debug, Clone)]
pub(crate) struct Text {
    pub(crate) value: String,
    pub(crate) path: String,
    pub(crate) span: Range<usize>,
    /// Where its letters begin in the file, if they stand there one by one.
    letters: Option<usize>,
}

impl<'s> Document<'s> {
    pub(crate) fn read(source: &'s Source) -> Document<'s> {
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

/// TOML's own words are a parser's; the commonest slips get ours. One slip may be the cause of many faults on its
/// line, so each line has one.
fn faults(source: &Source, errors: &[toml::de::Error]) -> Vec<Problem> {
    let positions = source.positions();
    let line = |error: &toml::de::Error| positions.line(error.span().map_or(0, |span| span.start));
    let mut sorted: Vec<&toml::de::Error> = errors.iter().collect();
    sorted.sort_by_key(|error| error.span().map_or(0, |span| span.start));
    sorted.dedup_by_key(|error| line(error));
    sorted.into_iter().take(PROBLEMS_MAX + 1).map(|error| fault(source, error)).collect()
}

fn fault(source: &Source, error: &toml::de::Error) -> Problem {
    let span = error.span().unwrap_or(0..0);
    let words = error.message().lines().next().unwrap_or_default();
    let here = source.text.get(span.clone()).unwrap_or_default();
    let rest = source.text.get(span.start..).unwrap_or_default();
    let problem = |label: &str, help: &str| {
        Problem::new(&source.path, span.clone(), "this is not TOML", label).help(help)
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
    Problem::new(&source.path, span, "this is not TOML", words)
}

impl<'d> Entries<'d> {
    pub(crate) fn path(&self) -> &'d str {
        &self.source.path
    }

    /// Where the table stands: its header, or its braces.
    pub(crate) fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    pub(crate) fn get(&self, name: &str) -> Option<Value<'d>> {
        self.table.get(name).map(|spanned| Value { source: self.source, spanned })
    }

    pub(crate) fn text(&self, name: &str) -> Option<Text> {
        self.get(name)?.text()
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.table.contains_key(name)
    }

    /// Where a key stands.
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

    /// What it is, in a sentence.
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

    pub(crate) fn text(self) -> Option<Text> {
        let value = self.spanned.get_ref().as_str()?.to_owned();
        let raw = self.written();
        let opening = if raw.starts_with("\"\"\"") || raw.starts_with("'''") { 3 } else { 1 };
        let inner = raw.get(opening..).unwrap_or_default();
        let newline =
            inner.len() - inner.strip_prefix("\r\n").or(inner.strip_prefix('\n')).unwrap_or(inner).len();
        let skipped = opening + if opening == 3 { newline } else { 0 };
        let letters = raw.get(skipped..).filter(|letters| letters.starts_with(&value));
        Some(Text {
            letters: letters.map(|_| self.span().start + skipped),
            value,
            path: self.source.path.clone(),
            span: self.span(),
        })
    }

    /// A date or a time as it is written, or a text.
    pub(crate) fn moment(self) -> Option<Text> {
        match self.spanned.get_ref() {
            DeValue::Datetime(_) => {
                let value = self.written().replacen(' ', "T", 1).to_ascii_uppercase();
                let (path, span) = (self.source.path.clone(), self.span());
                Some(Text { value, path, letters: Some(span.start), span })
            }
            _ => self.text(),
        }
    }

    pub(crate) fn flag(self) -> Option<bool> {
        self.spanned.get_ref().as_bool()
    }

    /// A whole number; none if it is none, or too large for any use.
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

    /// The same value in JSON; a date becomes a text.
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

impl Text {
    /// All of a file.
    pub(crate) fn of_file(source: Source) -> Text {
        let span = 0..source.text.len();
        Text { value: source.text, path: source.path, span, letters: Some(0) }
    }

    /// The bytes of the file where a part of the text stands.
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

    /// A problem with all of the text.
    pub(crate) fn wrong(&self, message: impl Into<String>, label: impl Into<String>) -> Problem {
        Problem::new(&self.path, self.span.clone(), message, label)
    }

    /// What a parser said about the text.
    pub(crate) fn unreadable(&self, message: impl Into<String>, error: &ParseError) -> Problem {
        let span = if error.span().is_empty() { self.span.clone() } else { self.locate(error.span()) };
        let problem = Problem::new(&self.path, span, message, error.reason());
        Problem { help: error.advice().map(str::to_owned), ..problem }
    }
}
