//! A row of the list: a guard, its replacement, and the test that must fail.
//!
//! ```text
//! queue/hold | lease = $3 | | crash zombies::a_stopped_worker::sqlite
//! ```
//!
//! The columns: the statement, by its file below `sql/`; the text of the guard, which occurs once; its
//! replacement; and the test, after the name of its program. An empty third column replaces the guard
//! by a condition that always holds, `-` deletes it. A guard that no test can miss has `survives:` and
//! the reason instead of a test; a guard that a test removes by itself, often together with a second
//! one that would cover for it, has `itself:` before that test.
//!
//! A statement is read as one line, without its header.

use std::fmt;
use std::path::Path;

pub(crate) struct Row {
    pub(crate) statement: String,
    pub(crate) guard: String,
    instead: String,
    pub(crate) expected: Expected,
}

pub(crate) struct Test {
    pub(crate) program: String,
    pub(crate) name: String,
}

/// What a row says about its guard.
pub(crate) enum Expected {
    /// This test fails without the guard.
    Test(Test),
    /// This test removes the guard by itself.
    Itself(Test),
    /// No test can miss it, for a stated reason.
    Unmissed,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} | {} | {}", self.statement, self.guard, self.instead)
    }
}

impl Test {
    fn parse(text: &str) -> Test {
        let (program, name) = text.split_once(' ').expect(text);
        Test { program: program.to_owned(), name: name.to_owned() }
    }
}

impl Expected {
    pub(crate) fn parse(expected: &str) -> Expected {
        if let Some(reason) = expected.strip_prefix("survives:") {
            assert!(!reason.is_empty(), "{expected}: why does no test miss it?");
            return Expected::Unmissed;
        }
        match expected.strip_prefix("itself: ") {
            Some(story) => Expected::Itself(Test::parse(story)),
            None => Expected::Test(Test::parse(expected)),
        }
    }
}

impl Row {
    fn parse(line: &str) -> Row {
        let columns: Vec<&str> = line.split(" |").map(str::trim).collect();
        let [statement, guard, instead, expected] = columns.try_into().expect(line);
        let [statement, guard, instead] = [statement, guard, instead].map(str::to_owned);
        Row { statement, guard, instead, expected: Expected::parse(expected) }
    }

    /// The path by which a process knows the statement: `sql/queue/hold.sql`.
    pub(crate) fn path(&self) -> String {
        format!("sql/{}.sql", self.statement)
    }

    pub(crate) fn body(&self) -> String {
        let text = std::fs::read_to_string(here().join(self.path())).expect(&self.statement);
        let lines = text.lines().filter(|line| !line.starts_with("--"));
        lines.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ")
    }

    /// The statement without the guard.
    pub(crate) fn weak(&self) -> String {
        let instead = match self.instead.as_str() {
            "" => format!("({} or true)", self.guard),
            "-" => String::new(),
            instead => instead.to_owned(),
        };
        self.body().replace(&self.guard, &instead)
    }
}

pub(crate) fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every row of the statements, of both lists.
pub(crate) fn all() -> Vec<Row> {
    let lists = [include_str!("list/store.txt"), include_str!("list/ledger.txt")];
    let lines = lists.into_iter().flat_map(str::lines);
    lines.filter(|line| !line.is_empty() && !line.starts_with('#')).map(Row::parse).collect()
}
