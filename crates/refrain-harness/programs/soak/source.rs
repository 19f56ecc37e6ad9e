//! The sources: lists of changes in files that Refrain never writes.
//!
//! A source only grows. Its lines have one width, so that the number of a change gives its position, and their times
//! increase, so that they can be searched. An item occurs repeatedly with other content; some contents are rejected
//! when they are applied, until they are corrected.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;

use jiff::Timestamp;
use refrain::core::random::{Random, SeededRandom};
use serde::{Deserialize, Serialize};

/// Read page by page, by a cursor.
pub(crate) const FEEDS: [&str; 2] = ["north", "south"];
/// Read by time, with a watermark.
pub(crate) const MARKED: &str = "marked";
/// Single orders, each with a run of its own.
pub(crate) const ORDERS: &str = "orders";

/// How many items a source has.
const ITEMS: u64 = 300;
/// One item in this many may have contents that are refused.
const FRAGILE: u64 = 50;
const WIDTH: usize = 62;

/// One content of one item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Change {
    pub(crate) source: String,
    pub(crate) id: i64,
    /// Its position in the source, by which newer content is told from older.
    pub(crate) seq: i64,
    /// When it was written, in microseconds.
    pub(crate) at: i64,
    pub(crate) value: i64,
    pub(crate) is_bad: bool,
}

impl Change {
    /// An order, by its number; it has one content.
    pub(crate) fn order(number: i64) -> Change {
        Change { source: ORDERS.into(), id: number, seq: number, at: 0, value: number * 7, is_bad: false }
    }

    fn line(&self) -> String {
        let Change { id, seq, at, value, is_bad, .. } = self;
        format!("{seq:012} {id:06} {at:016} {value:020} {} .\n", u8::from(*is_bad))
    }

    fn parse(source: &str, line: &str) -> Option<Change> {
        let mut numbers = line.split(' ').map_while(|word| word.parse::<i64>().ok());
        let mut next = || numbers.next();
        let (seq, id, at, value) = (next()?, next()?, next()?, next()?);
        Some(Change { source: source.to_owned(), id, seq, at, value, is_bad: next()? == 1 })
    }
}

/// A source, as its writer knows it.
pub(crate) struct Source {
    pub(crate) name: &'static str,
    file: File,
    random: SeededRandom,
    pub(crate) changes: Vec<Change>,
}

impl Source {
    pub(crate) fn create(directory: &Path, name: &'static str, random: SeededRandom) -> Source {
        let file = OpenOptions::new().append(true).create_new(true).open(directory.join(name)).unwrap();
        Source { name, file, random, changes: Vec::new() }
    }

    pub(crate) fn grow(&mut self, count: usize) {
        let mut lines = String::new();
        for _ in 0..count {
            let last = self.changes.last().map_or(0, |change| change.at);
            let draw = self.random.next_u64();
            let id = draw % ITEMS;
            let change = Change {
                source: self.name.into(),
                id: id.cast_signed(),
                seq: i64::try_from(self.changes.len()).unwrap(),
                at: Timestamp::now().as_microsecond().max(last + 1),
                value: (draw >> 8).cast_signed(),
                is_bad: id.is_multiple_of(FRAGILE) && draw >> 63 == 1,
            };
            lines.push_str(&change.line());
            self.changes.push(change);
        }
        self.file.write_all(lines.as_bytes()).unwrap();
    }
}

/// The changes from a position on, as many as exist.
pub(crate) fn read(directory: &Path, name: &str, from: usize, limit: usize) -> Vec<Change> {
    let file = File::open(directory.join(name)).unwrap();
    let mut bytes = vec![0; WIDTH * limit];
    let mut length = 0;
    while let Ok(more @ 1..) =
        file.read_at(bytes.get_mut(length..).unwrap_or_default(), (from * WIDTH + length) as u64)
    {
        length += more;
    }
    let whole = bytes.get(..length).unwrap_or_default().chunks_exact(WIDTH);
    whole.map_while(|line| Change::parse(name, std::str::from_utf8(line).ok()?)).collect()
}

/// The position of the first change at a time or later.
pub(crate) fn first_since(directory: &Path, name: &str, at: i64) -> usize {
    let length = File::open(directory.join(name)).unwrap().metadata().unwrap().len();
    let (mut low, mut high) = (0, usize::try_from(length).unwrap() / WIDTH);
    while low < high {
        let middle = usize::midpoint(low, high);
        let is_before = read(directory, name, middle, 1).first().is_some_and(|change| change.at < at);
        (low, high) = if is_before { (middle + 1, high) } else { (low, middle) };
    }
    low
}
