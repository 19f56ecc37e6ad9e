//! The first pass: checks a file against the table of its keys.
//!
//! It finds unknown and missing keys, wrong types, strings that their parser rejects, variables that are not set, and keys
//! that are not supported yet. How the values fit together is for the second pass, which relies on this one having reported
//! every value that cannot be read, and does not report it again.

use std::ffi::OsStr;

use super::document::{Entries, LocatedText, Value};
use super::environment::{Reference, expand, passwords, references};
use super::keys::{FileKey, KeyKind, Support, Table, Words};
use super::problem::Problem;
use super::text_form::TextForm;
use super::{Files, PROBLEMS_MAX, suggest};
use crate::redact::Secret;

/// Checks one file against a table of keys.
pub(crate) struct KeyCheck<'f> {
    files: &'f Files<'f>,
    /// The table of the whole file.
    root: &'static Table,
    pub(crate) problems: Vec<Problem>,
    /// The values that came from the environment, and literal passwords.
    pub(crate) secrets: Vec<Secret>,
}

/// The position in a file, as messages describe it.
#[derive(Clone, Copy)]
struct Place<'k> {
    /// The key, as a sentence names it.
    name: &'k str,
    example: &'k str,
    is_element: bool,
}

impl<'f> KeyCheck<'f> {
    /// Checks a file against its table.
    pub(crate) fn of(root: &'static Table, entries: &Entries<'_>, files: &'f Files<'f>) -> KeyCheck<'f> {
        let mut shape = KeyCheck { files, root, problems: Vec::new(), secrets: Vec::new() };
        shape.check(root, entries);
        shape
    }

    fn check(&mut self, table: &'static Table, entries: &Entries<'_>) {
        for (name, span, value) in entries.iter() {
            match table.key(name) {
                // A suggestion costs time; a file with more unknown keys than are shown is another kind of file.
                None if self.problems.len() > PROBLEMS_MAX => {}
                None => self.problems.push(unknown(self.root, table, entries, name).at(span)),
                Some(key) => {
                    self.value(key.kind, value, Place { name, example: key.example, is_element: false });
                    self.problems.extend(unsupported(key, value).map(|problem| problem.at(span)));
                }
            }
        }
        for key in table.keys.iter().filter(|key| key.is_required && !entries.has(key.name)) {
            let message = format!("`{}` is missing", key.name);
            let label = if entries.span().is_empty() { "in this file" } else { "in this table" };
            let help = format!("add {} = {}", key.name, key.example);
            self.problems.push(Problem::new(entries.path(), entries.span(), message, label).help(help));
        }
    }

    fn value(&mut self, kind: KeyKind, value: Value<'_>, place: Place<'_>) {
        if !fits(kind, value) {
            if self.problems.len() <= PROBLEMS_MAX {
                self.problems.push(wrong_type(kind, value, place));
            }
            return;
        }
        match kind {
            KeyKind::OneOf(kinds) => {
                if let Some(kind) = kinds.iter().find(|kind| fits(**kind, value)) {
                    self.value(*kind, value, place);
                }
            }
            KeyKind::Text(form) => self.text(form, value, place),
            KeyKind::Word(words) => {
                self.problems.extend(value.text().and_then(|text| unknown_word(words, &text, place)));
            }
            KeyKind::Number(least, most) => self.problems.extend(out_of_range(least, most, value, place)),
            KeyKind::List(inner) => self.list(*inner, value, place),
            KeyKind::Table(table) => {
                if let Some(entries) = value.table() {
                    self.check(table, &entries);
                }
            }
            KeyKind::Tables(table) => {
                for entries in value.list().into_iter().flatten().filter_map(Value::table) {
                    self.check(table, &entries);
                }
            }
            KeyKind::Map(inner) => {
                for (name, _, value) in value.table().iter().flat_map(Entries::iter) {
                    self.value(
                        *inner,
                        value,
                        Place { name, example: example_within(*inner, place), is_element: false },
                    );
                }
            }
            KeyKind::Json => self.json(value, place),
            KeyKind::Flag | KeyKind::Moment => {}
        }
    }

    fn list(&mut self, inner: KeyKind, value: Value<'_>, place: Place<'_>) {
        let elements = value.list().unwrap_or_default();
        if elements.is_empty() {
            let help = format!("write {} = {}, or leave it out", place.name, place.example);
            let message = format!("`{}` is an empty list", place.name);
            self.problems.push(Problem::new(value.path(), value.span(), message, "no elements").help(help));
        }
        for element in elements {
            self.value(inner, element, Place { is_element: true, ..place });
        }
    }

    fn json(&mut self, value: Value<'_>, place: Place<'_>) {
        if value.text().is_some() {
            self.text(TextForm::Body, value, place);
        }
        let elements = value.list().into_iter().flatten();
        let fields: Vec<_> =
            value.table().iter().flat_map(|table| table.iter().map(|(.., value)| value)).collect();
        elements.chain(fields).for_each(|value| self.json(value, place));
    }

    fn text(&mut self, form: TextForm, value: Value<'_>, place: Place<'_>) {
        let Some(text) = value.text() else { return };
        if form.is_expanded() {
            let (expanded, secrets) = expand(&text.value, self.files.environment);
            self.secrets.extend(secrets.into_iter().chain(passwords(&expanded)));
        }
        let mut is_sound = true;
        for reference in references(&text.value) {
            let fault = if !form.is_expanded() {
                let message = format!("`{}` does not expand environment variables", place.name);
                let problem = text.problem(reference.span.clone(), message, "not expanded here");
                Some(problem.help(form.instead_of_environment()))
            } else if !reference.is_name() {
                let problem = text.problem(
                    reference.span.clone(),
                    "this is not a valid environment variable",
                    "not a name",
                );
                Some(problem.help("write ${NAME}, with letters, digits and `_`"))
            } else {
                unusable((self.files.environment)(&reference.name).as_deref(), &reference, &text)
            };
            is_sound &= fault.is_none();
            self.problems.extend(fault);
        }
        if self.problems.len() <= PROBLEMS_MAX
            && let Err(error) = form.check(&text.value)
            && is_sound
        {
            let message = format!("`{}` cannot be read as {}", place.name, form.noun());
            self.problems.push(text.unreadable(message, &error));
        }
    }
}

/// Why a variable cannot be filled into a string.
fn unusable(value: Option<&OsStr>, reference: &Reference, text: &LocatedText) -> Option<Problem> {
    let name = &reference.name;
    let (state, help) = match value.map(OsStr::to_str) {
        Some(Some(_)) => return None,
        Some(None) => ("not UTF-8", "set it to a UTF-8 string where Refrain runs".to_owned()),
        None => ("not set", format!("set it where Refrain runs, as in: export {name}=…")),
    };
    let message = format!("the environment variable {name} is {state}");
    Some(text.problem(reference.span.clone(), message, state).help(help))
}

/// Whether the TOML type is right.
fn fits(kind: KeyKind, value: Value<'_>) -> bool {
    match kind {
        KeyKind::Text(_) | KeyKind::Word(_) => value.text().is_some(),
        KeyKind::Flag => value.flag().is_some(),
        KeyKind::Number(..) => value.is_number(),
        KeyKind::Moment => value.moment().is_some(),
        KeyKind::List(_) => value.list().is_some(),
        KeyKind::Tables(_) => {
            value.list().is_some_and(|list| list.iter().all(|value| value.table().is_some()))
        }
        KeyKind::Table(_) | KeyKind::Map(_) => value.table().is_some(),
        KeyKind::Json => true,
        KeyKind::OneOf(kinds) => kinds.iter().any(|kind| fits(*kind, value)),
    }
}

fn wrong_type(kind: KeyKind, value: Value<'_>, Place { name, example, is_element }: Place<'_>) -> Problem {
    let (noun, other) = (kind.noun(), value.noun());
    let message = match kind {
        _ if is_element => format!("each element of `{name}` is {noun}, not {other}"),
        KeyKind::Flag | KeyKind::Tables(_) => format!("`{name}` is {noun}, not {other}"),
        _ => format!("`{name}` is {noun} such as {example}, not {other}"),
    };
    let label = format!("this is {}", value.noun());
    let help = match (kind, value.text()) {
        (KeyKind::Number(..) | KeyKind::Flag, Some(text))
            if text.value.parse::<u32>().is_ok() || is_flag(&text.value) =>
        {
            format!("write {name} = {}, without quotes", text.value)
        }
        (KeyKind::List(KeyKind::Text(TextForm::Argument)), Some(text)) => {
            let words: Vec<String> = text.value.split_whitespace().map(|word| format!("{word:?}")).collect();
            format!("write each argument as an element of its own: {name} = [{}]", words.join(", "))
        }
        (KeyKind::List(KeyKind::Text(_)), Some(_)) => format!("write {name} = [{}]", value.written()),
        (KeyKind::Tables(_), _) => format!("write [[{name}]] on a line of its own, and its keys below"),
        _ => format!("write {name} = {example}"),
    };
    Problem::new(value.path(), value.span(), message, label).help(help)
}

fn is_flag(text: &str) -> bool {
    ["true", "false"].contains(&text)
}

fn unknown_word(words: Words, text: &LocatedText, place: Place<'_>) -> Option<Problem> {
    let words = words();
    let known = || words.iter().map(|(word, _)| *word);
    if known().any(|word| word == text.value) {
        return None;
    }
    let help = match suggest::nearest(&text.value, known()) {
        Some(word) => format!("did you mean \"{word}\"?"),
        None => format!("write {}", suggest::list(known(), "\"")),
    };
    let message = format!("`{}` cannot be \"{}\"", place.name, text.value);
    Some(text.wrong(message, "not one of the allowed values").help(help))
}

fn out_of_range(least: u32, most: u32, value: Value<'_>, place: Place<'_>) -> Option<Problem> {
    let number = value.number();
    let is_within = number.is_some_and(|number| (i64::from(least)..=i64::from(most)).contains(&number));
    let (bound, label, instead) = match number {
        Some(number) if number < i64::from(least) => {
            (format!("at least {least}"), "too small", least.to_string())
        }
        _ => (format!("at most {most}"), "too large", place.example.to_owned()),
    };
    let message = format!("`{}` must be {bound}", place.name);
    let help = format!("write {} = {instead}", place.name);
    (!is_within).then(|| Problem::new(value.path(), value.span(), message, label).help(help))
}

/// An example of one entry of a table whose names the user chooses.
fn example_within(kind: KeyKind, place: Place<'_>) -> &str {
    match kind {
        KeyKind::List(_) => r#"["order_date", "region"]"#,
        KeyKind::OneOf(_) => r#""sqlite:shop.db""#,
        KeyKind::Text(_) => r#""application/json""#,
        _ => place.example,
    }
}

fn unsupported(key: &FileKey, value: Value<'_>) -> Option<Unplaced> {
    let Support::NotYet(instead) = key.support else { return None };
    let path = value.path().to_owned();
    Some(Unplaced {
        path,
        message: format!("`{}` is not supported yet", key.name),
        label: "not supported yet",
        help: instead.into(),
    })
}

/// A problem without a position, which the caller adds.
struct Unplaced {
    path: String,
    message: String,
    label: &'static str,
    help: String,
}

impl Unplaced {
    fn at(self, span: std::ops::Range<usize>) -> Problem {
        Problem::new(&self.path, span, self.message, self.label).help(self.help)
    }
}

fn unknown(root: &'static Table, table: &'static Table, entries: &Entries<'_>, name: &str) -> Unplaced {
    let is_above = root.name != table.name && root.key(name).is_some();
    let below =
        || table.keys.iter().flat_map(|key| key.kind.tables().into_iter().map(move |below| (key, below)));
    let inside = below().find(|(_, below)| below.key(name).is_some()).map(|(key, _)| key.name);
    let help = match (suggest::nearest(name, table.keys.iter().map(|key| key.name)), inside) {
        (None, _) if name == "name" && table.name == "job-file" => {
            "a job is named after its file: rename the file".to_owned()
        }
        _ if is_above => format!("`{name}` is a key of the file itself: write it above the first [table]"),
        (Some(known), _) => format!("did you mean `{known}`?"),
        (None, Some(table)) => format!("it belongs into `{table}`: write [{table}] above it"),
        (None, None) => {
            format!("valid keys: {}", table.keys.iter().map(|key| key.name).collect::<Vec<_>>().join(", "))
        }
    };
    let path = entries.path().to_owned();
    Unplaced { path, message: format!("`{name}` is not a valid key here"), label: "unknown key", help }
}
