//! Units, version 1: the samples, and the script that checks whether a program conforms.
#![expect(clippy::unwrap_used, reason = "in a test a panic is the failure report")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const REFRAIN: &str = env!("CARGO_BIN_EXE_refrain");

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The samples, without the results of a reader's own runs.
fn samples() -> tempfile::TempDir {
    let desk = tempfile::tempdir().unwrap();
    fs::create_dir(desk.path().join("jobs")).unwrap();
    for name in ["refrain.toml", "invoices.csv", "list-invoices.py", "list-invoices.sh", "book.sh"]
        .into_iter()
        .chain(["jobs/by-time.toml", "jobs/by-page.toml"])
    {
        fs::copy(root().join("examples/units").join(name), desk.path().join(name)).unwrap();
    }
    desk
}

fn run(desk: &Path, arguments: &[&str]) -> String {
    let output = Command::new(REFRAIN).arg("-C").arg(desk).arg("run").args(arguments).output().unwrap();
    let result = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{result}{}", String::from_utf8_lossy(&output.stderr));
    result.lines().last().unwrap_or_default().to_owned()
}

fn booked(desk: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(desk.join("booked"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// Checks whether a program conforms: the exit code, and the output.
fn conformance(program: &Path, key: &str) -> (i32, String) {
    let output = Command::new(root().join("docs/units-conformance.sh"))
        .arg(program)
        .env("REFRAIN", REFRAIN)
        .env("UNITS_KEY", key)
        .output()
        .unwrap();
    let result = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
    (output.status.code().unwrap(), result)
}

#[test]
fn the_samples_in_python_and_shell_book_each_invoice_once_and_resume() {
    for job in ["by-time", "by-page"] {
        let desk = samples();
        let at = |window: &str| run(desk.path(), &[job, "--window", window]);
        assert_eq!(at("2026-06-09T12:00"), "5 processed, 0 skipped, 0 deduplicated, 0 failed", "{job}");
        assert_eq!(booked(desk.path()).len(), 5);
        let more = "INV-6,2026-06-09T13:00:00Z,1.00\n";
        let invoices = desk.path().join("invoices.csv");
        fs::write(&invoices, fs::read_to_string(&invoices).unwrap() + more).unwrap();
        let seen_again = i32::from(job == "by-time");
        let expected = format!("1 processed, 0 skipped, {seen_again} deduplicated, 0 failed");
        assert_eq!(at("2026-06-09T13:00"), expected, "{job}");
        assert_eq!(booked(desk.path()).len(), 6);
    }
}

#[test]
fn the_samples_conform() {
    for (program, pages) in [("list-invoices.py", ""), ("list-invoices.sh", ", pages ended by cursors")] {
        let (code, result) = conformance(&root().join("examples/units").join(program), "invoice:{id}");
        let expected = format!(
            "well-formed: 5 units, each key once{pages}\n\
             stable: the second reading is deduplicated, all 5 of it\nconforms\n"
        );
        assert_eq!((code, result), (0, expected), "{program}");
    }
}

#[test]
fn the_check_says_why_a_program_does_not_conform() {
    let desk = tempfile::tempdir().unwrap();
    for (script, key, why) in [
        ("echo hello", "{id}", "1 lines are not units"),
        ("echo '{\"id\":1}'; echo '{\"id\":1}'", "{id}", "1 keys were printed more than once"),
        ("echo \"{\\\"id\\\":\\\"$$\\\"}\"", "{id}", "the second reading brought 1 new or changed units"),
        (
            "echo \"{\\\"id\\\":1,\\\"at\\\":\\\"$$\\\"}\"",
            "{id}",
            "the second reading brought 1 new or changed units",
        ),
        (
            "[ -e seen ] || { : > seen; echo '{\"id\":1}'; }",
            "{id}",
            "the second reading brought 0 of 1 units",
        ),
        (":", "{id}", "it printed no units"),
        ("echo '{\"id\":1}'; exit 3", "{id}", "the first reading failed"),
        ("echo '{\"id\":1}'", "{no}", "1 lines are not units"),
    ] {
        let program = desk.path().join("list");
        let seen = desk.path().join("seen");
        let script = script.replace("seen", &seen.display().to_string());
        fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        let (code, result) = conformance(&program, key);
        assert_eq!(code, 1, "{script}: {result}");
        assert!(result.contains(&format!("does not conform: {why}")), "{script}: {result}");
    }
    let (code, result) = conformance(Path::new("./nowhere"), "{id}");
    assert_eq!((code, result.as_str()), (2, "units-conformance: `./nowhere` cannot be executed\n"));
}

#[test]
fn every_key_that_the_page_documents_is_accepted_in_a_job() {
    let page = fs::read_to_string(root().join("docs/UNITS.md")).unwrap();
    let blocks = page.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next());
    let units: Vec<&str> = blocks.filter(|block| block.starts_with("[unit]")).collect();
    assert!(units.len() >= 2, "{units:?}");
    for unit in units {
        let desk = tempfile::tempdir().unwrap();
        fs::create_dir(desk.path().join("jobs")).unwrap();
        fs::write(desk.path().join("refrain.toml"), "[project]\nname = \"desk\"\n").unwrap();
        let job = format!(
            r#"
                schedule = "@hourly"
                command = ["./list"]
                output = "units"
                {unit}
            "#
        );
        fs::write(desk.path().join("jobs/book.toml"), job).unwrap();
        let mut check = Command::new(REFRAIN);
        check.arg("-C").arg(desk.path()).arg("check");
        check.envs([("BOOKS_URL", "https://books.example.org"), ("BOOKS_TOKEN", "secret")]);
        let output = check.output().unwrap();
        assert!(output.status.success(), "{unit}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
