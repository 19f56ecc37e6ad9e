//! Every command line in the documents is tried: a document that cannot be followed is a fault.
#![expect(clippy::unwrap_used, reason = "in a test a panic is the failure report")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The lines of all `sh` blocks of a document.
fn command_lines(document: &str) -> Vec<String> {
    let text = std::fs::read_to_string(root().join(document)).unwrap();
    let mut lines = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        match line {
            "```sh" => inside = true,
            "```" => inside = false,
            line if inside && !line.trim().is_empty() => lines.push(line.to_owned()),
            _ => {}
        }
    }
    lines
}

/// Runs a line as it is printed, but for `./test`, which would run this test again: its plan must be sound.
fn run(line: &str) -> Output {
    let mut words = line.split_whitespace();
    let mut command = Command::new(words.next().unwrap());
    command.current_dir(root()).args(words);
    if line.starts_with("./test") {
        command.arg("--plan");
    }
    command.output().unwrap()
}

#[test]
fn every_command_line_in_the_documents_works() {
    let mut tried = 0;
    for document in ["README.md", "CONTRIBUTING.md"] {
        for line in command_lines(document) {
            let output = run(&line);
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{document}: `{line}` failed:\n{said}");
            tried += 1;
        }
    }
    assert!(tried >= 6, "only {tried} command lines were found");
}

#[test]
fn the_test_command_refuses_what_it_does_not_know() {
    for line in ["./test --bogus", "./test one two"] {
        let output = run(line);
        assert_eq!(output.status.code(), Some(2), "{line}");
        assert!(String::from_utf8_lossy(&output.stderr).starts_with("test: "), "{line}");
    }
}

#[test]
fn the_plan_of_the_whole_suite_names_every_step() {
    let plan = String::from_utf8(run("./test").stderr).unwrap();
    for step in ["== format", "== lints", "== docs", "== a scratch PostgreSQL", "== tests"] {
        assert!(plan.contains(step), "{step} is missing in:\n{plan}");
    }
    let filtered = String::from_utf8(run("./test --full every_zone").stderr).unwrap();
    assert_eq!(
        filtered,
        "== a scratch PostgreSQL\n== tests with \"every_zone\" in their name, long forms too\n"
    );
}
