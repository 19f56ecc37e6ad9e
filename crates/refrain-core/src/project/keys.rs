//! The one table of keys: what may stand in which file, of which type, in which form, and what it is for.
//!
//! The reader and the JSON Schema are both made of it, so an editor never praises what the reader refuses. A key
//! that is known but not built is part of it too: it is checked like any other, and then refused by name with what
//! can be done instead. When it is built, its one `not_yet` goes.

mod job;
mod settings;
mod then;

pub(crate) use job::JOB;
pub(crate) use settings::PROJECT;

use super::form::Form;
use crate::Word;

/// A table of a file: its keys.
#[derive(Debug)]
pub(crate) struct Table {
    /// What it is called in the schema.
    pub(crate) name: &'static str,
    pub(crate) doc: &'static str,
    pub(crate) keys: &'static [Key],
}

/// A key, and what may stand behind it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// A value, as it would be written.
    pub(crate) example: &'static str,
    /// What it is for, in a line.
    pub(crate) doc: &'static str,
    /// What holds where it is not written, as it would be written.
    pub(crate) default: Option<&'static str>,
    pub(crate) is_required: bool,
    pub(crate) support: Support,
}

/// Whether a key does something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Support {
    /// It does.
    Built,
    /// It is known and checked, but not built; this can be done instead.
    NotYet(&'static str),
}

/// Words that may stand in one place, with what they mean.
pub(crate) type Words = fn() -> Vec<(&'static str, &'static str)>;

/// What may stand behind a key.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    Text(Form),
    Word(Words),
    Flag,
    /// A whole number, at least this, and at most that.
    Number(u32, u32),
    /// A date, a date and time, or a text that names one.
    Moment,
    List(&'static Kind),
    Table(&'static Table),
    /// `[[name]]`, any number of times.
    Tables(&'static Table),
    /// Names of the user's own.
    Map(&'static Kind),
    /// Any value, with templates in its texts.
    Json,
    /// Kinds that TOML itself tells apart.
    OneOf(&'static [Kind]),
}

impl Table {
    pub(crate) fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }
}

impl Kind {
    /// The tables that lie directly below.
    pub(crate) fn tables(self) -> Vec<&'static Table> {
        match self {
            Kind::Table(table) | Kind::Tables(table) => vec![table],
            Kind::List(inner) | Kind::Map(inner) => inner.tables(),
            Kind::OneOf(kinds) => kinds.iter().flat_map(|kind| kind.tables()).collect(),
            Kind::Text(_) | Kind::Word(_) | Kind::Flag | Kind::Number(..) | Kind::Moment | Kind::Json => {
                vec![]
            }
        }
    }

    /// What it is called in a sentence.
    pub(crate) fn noun(self) -> String {
        match self {
            Kind::Text(_) | Kind::Word(_) => "a string".to_owned(),
            Kind::Flag => "true or false".to_owned(),
            Kind::Number(..) => "a whole number".to_owned(),
            Kind::Moment => "a date".to_owned(),
            Kind::List(Kind::Text(_) | Kind::Word(_)) => "a list of strings".to_owned(),
            Kind::List(_) => "a list".to_owned(),
            Kind::Table(_) | Kind::Map(_) => "a table".to_owned(),
            Kind::Tables(table) => format!("a list of tables, each written [[{}]]", table.name),
            Kind::Json => "a value".to_owned(),
            Kind::OneOf(kinds) => kinds.iter().map(|kind| kind.noun()).collect::<Vec<_>>().join(" or "),
        }
    }
}

const fn key(name: &'static str, kind: Kind, example: &'static str, doc: &'static str) -> Key {
    Key { name, kind, example, doc, default: None, is_required: false, support: Support::Built }
}

impl Key {
    const fn required(self) -> Key {
        Key { is_required: true, ..self }
    }

    const fn default(self, default: &'static str) -> Key {
        Key { default: Some(default), ..self }
    }

    const fn not_yet(self, instead: &'static str) -> Key {
        Key { support: Support::NotYet(instead), ..self }
    }
}

/// The highest version: both databases keep it as a signed number of four bytes.
const VERSION_MAX: u32 = i32::MAX as u32;
/// The most programs or calls at once: each takes descriptors, of which a process usually has 1,024.
const PARALLEL_MAX: u32 = 1_000;

/// The words of an enum.
fn of<W: Word>() -> Vec<(&'static str, &'static str)> {
    W::ALL.iter().map(|word| (word.name(), word.meaning())).collect()
}

const TEXTS: Kind = Kind::List(&Kind::Text(Form::Plain));
const TEMPLATES: Kind = Kind::List(&Kind::Text(Form::Argument));
