//! The program that runs the tests: it leaves none out, reports failures with their output, and
//! does not hang.
#![expect(clippy::unwrap_used, reason = "in a test a panic is the failure report")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

/// Answers as a test program does. One of its tests leaves a process behind that keeps its output open.
const PROGRAM: &str = r#"#!/bin/sh
tests() { printf '%s: test\n' well leaving badly absent; echo 'fast: benchmark'; }
[ "$1" != --list ] || { tests; exit; }
[ "$2" != --list ] || { tests | grep -e "$1"; exit 0; }
[ "$2" = --exact ] || exit 2
echo "$1 in seat $REFRAIN_TEST_SEAT"
case "$1" in
  leaving) sleep 1000 & echo $! > left ;;
  badly) exit 101 ;;
  absent) echo 'test result: ok. 0 passed'; exit 0 ;;
esac
echo 'test result: ok. 1 passed; 0 failed'
"#;

/// A package with one test program, and what cargo would say of it.
fn package() -> TempDir {
    let package = tempfile::tempdir().unwrap();
    let program = package.path().join("program");
    fs::write(&program, PROGRAM).unwrap();
    fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    let artifact = |test: bool, name: &str| {
        serde_json::json!({
            "reason": "compiler-artifact",
            "manifest_path": package.path().join("Cargo.toml"),
            "target": { "name": name },
            "profile": { "test": test },
            "executable": program,
        })
    };
    let messages = format!("not JSON\n{}\n{}\n", artifact(false, "example"), artifact(true, "story"));
    fs::write(package.path().join("messages.json"), messages).unwrap();
    package
}

/// Runs the tests of the package; gives the exit code and what was printed.
fn suite(package: &Path, name: Option<&str>) -> (Option<i32>, String) {
    let mut suite = Command::new(env!("CARGO_BIN_EXE_suite"));
    suite.arg(package.join("messages.json")).args(name).env("REFRAIN_TEST_JOBS", "2");
    let output = suite.output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn every_test_runs_and_a_failed_one_is_reported_with_its_output() {
    let package = package();
    let (code, printed) = suite(package.path(), None);
    let left: i32 = fs::read_to_string(package.path().join("left")).unwrap().trim().parse().unwrap();
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(left).unwrap(),
        rustix::process::Signal::KILL,
    )
    .unwrap();
    assert_eq!(code, Some(101), "{printed}");
    for words in ["running 4 tests, 2 at once", "badly in seat ", "2 passed, 2 failed", "the slowest:"] {
        assert!(printed.contains(words), "{words:?} is not in {printed}");
    }
    let failed: Vec<&str> = printed.lines().filter_map(|line| line.strip_prefix("FAILED: ")).collect();
    let is_told = |name: &str| failed.iter().any(|one| one.ends_with(&format!("::story::{name}")));
    assert!(
        failed.len() == 2 && is_told("badly") && is_told("absent"),
        "one that did not run has not passed: {failed:?}"
    );
    let times = fs::read_to_string(package.path().join("messages.times")).unwrap();
    assert_eq!(times.lines().count(), 4, "{times}");
}

#[test]
fn a_filter_selects_tests_and_one_that_matches_none_is_an_error() {
    let package = package();
    let (code, printed) = suite(package.path(), Some("well"));
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("1 passed, 0 failed"), "{printed}");
    assert_eq!(suite(package.path(), Some("nowhere")).0, Some(4));
}

#[test]
fn without_a_list_of_programs_the_suite_fails() {
    let package = tempfile::tempdir().unwrap();
    assert_eq!(suite(package.path(), None).0, Some(2));
}
