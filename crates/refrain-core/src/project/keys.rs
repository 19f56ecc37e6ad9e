//! The one table of keys: which keys a file accepts, with which type and form, and what each is for.
//!
//! The reader and the JSON Schema are both generated from it, so an editor never accepts what the reader rejects. A key that is
//! planned but not built is listed too: it is checked like any other, and then rejected with an alternative. Building it
//! removes its one `not_yet`.

mod job;
mod settings;
mod then;

pub(crate) use job::JOB;
pub(crate) use settings::PROJECT;

use super::text_form::TextForm;
use crate::Word;

/// A table of a file and its keys.
#[derive(Debug)]
pub(crate) struct Table {
    /// Its name in the schema.
    pub(crate) name: &'static str,
    pub(crate) doc: &'static str,
    pub(crate) keys: &'static [FileKey],
}

/// A key and the values that it accepts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FileKey {
    pub(crate) name: &'static str,
    pub(crate) kind: KeyKind,
    /// An example value, as it is written in a file.
    pub(crate) example: &'static str,
    /// Its purpose, in one line.
    pub(crate) doc: &'static str,
    /// The default value, as it would be written.
    pub(crate) default: Option<&'static str>,
    pub(crate) is_required: bool,
    pub(crate) support: Support,
}

/// Whether a key is supported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Support {
    /// It is supported.
    Built,
    /// It is checked, but not built; the text says what to do instead.
    NotYet(&'static str),
}

/// The words that a key accepts, with their meanings.
pub(crate) type Words = fn() -> Vec<(&'static str, &'static str)>;

/// The values that a key accepts.
#[derive(Debug, Clone, Copy)]
pub(crate) enum KeyKind {
    Text(TextForm),
    Word(Words),
    Flag,
    /// A whole number between these bounds, both included.
    Number(u32, u32),
    /// A date, a date and time, or a string that names one.
    Moment,
    List(&'static KeyKind),
    Table(&'static Table),
    /// `[[name]]`, any number of times.
    Tables(&'static Table),
    /// A table whose names the user chooses.
    Map(&'static KeyKind),
    /// Any value, with templates in its strings.
    Json,
    /// Several kinds that differ in their TOML type.
    OneOf(&'static [KeyKind]),
}

impl Table {
    pub(crate) fn key(&self, name: &str) -> Option<&'static FileKey> {
        self.keys.iter().find(|key| key.name == name)
    }
}

impl KeyKind {
    /// The tables directly below it.
    pub(crate) fn tables(self) -> Vec<&'static Table> {
        match self {
            KeyKind::Table(table) | KeyKind::Tables(table) => vec![table],
            KeyKind::List(inner) | KeyKind::Map(inner) => inner.tables(),
            KeyKind::OneOf(kinds) => kinds.iter().flat_map(|kind| kind.tables()).collect(),
            KeyKind::Text(_)
            | KeyKind::Word(_)
            | KeyKind::Flag
            | KeyKind::Number(..)
            | KeyKind::Moment
            | KeyKind::Json => {
                vec![]
            }
        }
    }

    /// Its type, for a sentence.
    pub(crate) fn noun(self) -> String {
        match self {
            KeyKind::Text(_) | KeyKind::Word(_) => "a string".to_owned(),
            KeyKind::Flag => "true or false".to_owned(),
            KeyKind::Number(..) => "a whole number".to_owned(),
            KeyKind::Moment => "a date".to_owned(),
            KeyKind::List(KeyKind::Text(_) | KeyKind::Word(_)) => "a list of strings".to_owned(),
            KeyKind::List(_) => "a list".to_owned(),
            KeyKind::Table(_) | KeyKind::Map(_) => "a table".to_owned(),
            KeyKind::Tables(table) => format!("a list of tables, each written [[{}]]", table.name),
            KeyKind::Json => "a value".to_owned(),
            KeyKind::OneOf(kinds) => kinds.iter().map(|kind| kind.noun()).collect::<Vec<_>>().join(" or "),
        }
    }
}

const fn key(name: &'static str, kind: KeyKind, example: &'static str, doc: &'static str) -> FileKey {
    FileKey { name, kind, example, doc, default: None, is_required: false, support: Support::Built }
}

impl FileKey {
    const fn required(self) -> FileKey {
        FileKey { is_required: true, ..self }
    }

    const fn default(self, default: &'static str) -> FileKey {
        FileKey { default: Some(default), ..self }
    }

    const fn not_yet(self, instead: &'static str) -> FileKey {
        FileKey { support: Support::NotYet(instead), ..self }
    }
}

/// The highest version: both databases store it as a signed four-byte integer.
const VERSION_MAX: u32 = i32::MAX as u32;
/// The most programs or calls at once: each needs file descriptors, of which a process usually has 1,024.
const PARALLEL_MAX: u32 = 1_000;

/// The words of an enum.
fn of<W: Word>() -> Vec<(&'static str, &'static str)> {
    W::ALL.iter().map(|word| (word.name(), word.meaning())).collect()
}

const TEXTS: KeyKind = KeyKind::List(&KeyKind::Text(TextForm::Plain));
const TEMPLATES: KeyKind = KeyKind::List(&KeyKind::Text(TextForm::Argument));
