//! Each guard of the statements is removed once: its test must fail without it.
//!
//! `list/` has a row for each guard (`row.rs` describes the format). `./test` checks only that the
//! rows fit the statements and the tests; with `REFRAIN_FULL` every guard is removed, one at a
//! time, in a process of its test alone. Nothing is rebuilt: a test process reads a weakened text
//! from `REFRAIN_WEAKENED`. Guards in Rust are listed as well (`rust.rs`).
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "in a test a panic is the failure report"
)]

mod row;
mod rust;
mod trial;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use row::{Expected, Row, Test};

#[test]
fn every_guard_of_the_list_is_in_its_statement_once() {
    let mut seen = BTreeSet::new();
    for row in row::all() {
        let found = row.body().matches(&row.guard).count();
        assert_eq!(found, 1, "{row}: how often it is there");
        assert_ne!(row.weak(), row.body(), "{row}: nothing is taken away");
        assert!(seen.insert((row.statement.clone(), row.weak())), "{row}: it is listed twice");
    }
}

#[test]
fn every_guard_in_rust_is_in_its_file_once() {
    let mut seen = BTreeSet::new();
    for guard in rust::all() {
        assert_eq!(guard.found(), 1, "{guard}: how often it is there");
        assert_ne!(guard.text, guard.instead, "{guard}: nothing is taken away");
        assert!(seen.insert(guard.to_string()), "{guard}: it is listed twice");
    }
}

#[test]
fn every_test_of_the_list_is_there() {
    let mut texts = BTreeMap::new();
    let of_statements = row::all().into_iter().map(|row| (row.to_string(), row.expected));
    let of_rust = rust::all().into_iter().map(|guard| (guard.to_string(), guard.expected));
    for (row, expected) in of_statements.chain(of_rust) {
        if let Expected::Test(Test { program, name }) | Expected::Itself(Test { program, name }) = expected {
            let text = texts.entry(program.clone()).or_insert_with(|| sources(&program));
            let function = name.rsplit("::").find(|part| !DATABASES.contains(part)).unwrap();
            let is_there = ['(', '<'].iter().any(|after| text.contains(&format!("fn {function}{after}")));
            assert!(is_there, "{row}: the test {function} does not exist");
        }
    }
}

/// What is appended to the name of a test for each database.
const DATABASES: [&str; 3] = ["sqlite", "postgres", "pgbouncer"];

/// All sources of a test program, in whichever crate.
fn sources(program: &str) -> String {
    let below = if program == trial::LIBRARY { "src".to_owned() } else { format!("tests/{program}") };
    let paths = [".", "../refrain-cli"].map(|one| row::here().join(one).join(&below));
    let is_there = |path: &&PathBuf| path.is_dir() || path.with_extension("rs").exists();
    let path = paths.iter().find(is_there).unwrap_or_else(|| panic!("there is no program {program}"));
    if path.is_dir() { texts(path) } else { std::fs::read_to_string(path.with_extension("rs")).unwrap() }
}

fn texts(folder: &Path) -> String {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let text = |path: PathBuf| match path.extension() {
        Some(extension) if extension == "rs" => std::fs::read_to_string(path).unwrap(),
        _ if path.is_dir() => texts(&path),
        _ => String::new(),
    };
    entries.map(text).collect()
}

#[test]
fn every_removed_guard_fails_its_test() {
    if std::env::var_os("REFRAIN_FULL").is_none() {
        return;
    }
    let rows: Vec<Row> = row::all();
    let misread = trial::misread(&rows);
    assert!(misread.is_empty(), "not understood without their guards:\n{}", misread.join("\n"));
    let kept = trial::unmissed(&rows);
    assert!(kept.is_empty(), "{} guards are not missed:\n{}", kept.len(), kept.join("\n"));
}
