//! Runs tests without a guard, each in a process of its own.
//!
//! An invalid statement would fail every test and prove nothing, so the validity of all weakened
//! texts is checked first.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use tempfile::TempDir;

use crate::row::{Expected, Row, Test, here};

/// Its own tests are in a program of this name.
pub(crate) const LIBRARY: &str = "refrain";

/// How many tests run at once.
const SEATS: usize = 2;

/// The weakened texts that a database rejects, prepared several at a time.
pub(crate) fn misread(rows: &[Row]) -> Vec<String> {
    let mut rounds: Vec<BTreeMap<String, &Row>> = Vec::new();
    for row in rows {
        let free = rounds.iter_mut().find(|round| !round.contains_key(&row.statement));
        match free {
            Some(round) => drop(round.insert(row.statement.clone(), row)),
            None => rounds.push([(row.statement.clone(), row)].into()),
        }
    }
    let test = "both_databases_understand_every_statement";
    let failed = rounds.iter().filter_map(|round| {
        let rows: Vec<&Row> = round.values().copied().collect();
        run("statements", test, &rows, 0).err()
    });
    failed.collect()
}

/// The rows whose test passes without their guard.
pub(crate) fn unmissed(rows: &[Row]) -> Vec<String> {
    let (waiting, kept) = (Mutex::new(rows.iter()), Mutex::new(Vec::new()));
    let next = || waiting.lock().unwrap().next();
    std::thread::scope(|scope| {
        for seat in 0..SEATS {
            let (next, kept) = (&next, &kept);
            scope.spawn(move || {
                while let Some(row) = next() {
                    if let Expected::Test(Test { program, name }) = &row.expected
                        && run(program, name, &[row], seat).is_ok()
                    {
                        kept.lock().unwrap().push(format!("{row} | {program} {name}"));
                    }
                }
            });
        }
    });
    kept.into_inner().unwrap()
}

/// Runs one test without the guards of these rows; returns its output if it has failed. The output goes to a file: a
/// process that a failed test leaves behind would keep a pipe open.
fn run(program: &str, name: &str, rows: &[&Row], seat: usize) -> Result<(), String> {
    let directory = TempDir::new().unwrap();
    let weak = |(number, row): (usize, &&Row)| {
        let path = directory.path().join(format!("{number}.sql"));
        std::fs::write(&path, row.weak()).unwrap();
        format!("{}={}", row.path(), path.display())
    };
    let weakened: Vec<String> = rows.iter().enumerate().map(weak).collect();
    let mine = std::env::var("REFRAIN_TEST_SEAT").unwrap_or_else(|_| std::process::id().to_string());
    let path = directory.path().join("printed");
    let mut command = Command::new(executable(program));
    command.args(["--exact", name]).current_dir(here()).env("REFRAIN_WEAKENED", weakened.join(";"));
    command.env("REFRAIN_TEST_SEAT", format!("{mine}_guards_{seat}")).env_remove("REFRAIN_FULL");
    let status = command.stdout(File::create(&path).unwrap()).stderr(Stdio::null()).status().unwrap();
    let printed = String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned();
    assert!(printed.contains("running 1 test"), "{program} has no test {name}: {printed}");
    if status.success() { Ok(()) } else { Err(printed) }
}

/// The test program that was built last under this name, beside this one. Of those that are named like the library,
/// it is the one that lists tests of the store.
fn executable(program: &str) -> PathBuf {
    let running = std::env::current_exe().unwrap();
    let beside = std::fs::read_dir(running.parent().unwrap()).unwrap().map(|entry| entry.unwrap().path());
    let is_meant = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let hash = name.strip_prefix(program).and_then(|rest| rest.strip_prefix('-'));
        hash.is_some_and(|hash| !hash.contains(['.', '-'])) && (program != LIBRARY || is_of_the_library(path))
    };
    let built = |path: &PathBuf| Path::metadata(path).and_then(|about| about.modified()).unwrap();
    let newest = beside.filter(is_meant).max_by_key(built);
    newest.unwrap_or_else(|| panic!("{program} is not built: cargo test --workspace --locked --no-run"))
}

fn is_of_the_library(path: &Path) -> bool {
    let listed = Command::new(path).args(["--list", "store::"]).stdin(Stdio::null()).output();
    listed.is_ok_and(|listed| String::from_utf8_lossy(&listed.stdout).contains(": test"))
}
