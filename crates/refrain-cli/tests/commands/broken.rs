//! Broken projects and what `refrain check` prints about each: place, problem, remedy.
//!
//! The projects are those of `crates/refrain-core/tests/projects`; the output for each is a file
//! here. `REFRAIN_BLESS=1` rewrites them: read the difference as the user who made the mistake.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::transcript::matches;
use crate::support::{CommandOutput, Desk, output_of};

fn projects() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../refrain-core/tests/projects");
    let mut folders: Vec<PathBuf> = fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    folders
}

fn name(folder: &Path) -> &str {
    folder.file_name().unwrap().to_str().unwrap()
}

/// The same project in a directory; scripts are stored as text files, so that tidy does not take them for ours.
fn copy(folder: &Path) -> Desk {
    let desk = Desk::of(&[("jobs/.keep", "")]);
    fs::copy(folder.join("refrain.toml"), desk.file("refrain.toml")).unwrap();
    for entry in fs::read_dir(folder.join("jobs")).unwrap() {
        let file = entry.unwrap().file_name().into_string().unwrap();
        let copied = desk.file("jobs").join(file.strip_suffix(".txt").unwrap_or(&file));
        fs::copy(folder.join("jobs").join(&file), copied).unwrap();
    }
    desk
}

fn check(folder: &Path, line: &str) -> CommandOutput {
    let desk = copy(folder);
    let mut command = desk.command(line);
    if name(folder) != "missing-environment" {
        command
            .env("DATABASE_URL", "mongodb://admin:hunter2@db")
            .env("MAIL_URL", "https://mail.internal/v1")
            .env("SLACK_URL", "https://mail.internal/v1")
            .env("API_TOKEN", "token-of-the-test");
    }
    let output = output_of(&mut command);
    for secret in ["hunter2", "mail.internal", "token-of-the-test"] {
        assert!(
            !output.stdout.contains(secret) && !output.stderr.contains(secret),
            "{}: {output:?}",
            name(folder)
        );
    }
    output
}

#[test]
fn every_broken_project_is_reported_with_place_and_advice() {
    let folders = projects();
    for folder in &folders {
        let output = check(folder, "check");
        output.refuses(2, &[]);
        matches(&format!("broken/{}.txt", name(folder)), &output.stderr);
    }
    let drawn = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/commands/broken");
    assert_eq!(fs::read_dir(drawn).unwrap().count(), folders.len(), "a drawing without a project");
    assert!(folders.len() > 20);
}

#[test]
fn json_reports_the_place_and_text_of_every_problem() {
    let folder = projects().into_iter().find(|folder| name(folder) == "unknown-key").unwrap();
    let output = check(&folder, "--json --quiet check");
    assert_eq!(output.code, Some(2), "{output:?}");
    let object: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
    matches("broken-json.txt", &format!("{object:#}\n"));
}

#[test]
fn colours_appear_only_on_terminals_and_the_width_is_fixed() {
    let folder = projects().into_iter().find(|folder| name(folder) == "bad-cron").unwrap();
    let desk = copy(&folder);
    let plain = desk.refrain("check");
    for (name, value) in [("COLUMNS", "40"), ("TERM", "dumb"), ("CLICOLOR", "1"), ("NO_COLOR", "")] {
        let printed = output_of(desk.command("check").env(name, value));
        assert_eq!(printed.stderr, plain.stderr, "{name}={value}");
        assert!(!printed.stderr.contains('\u{1b}'), "{name}={value}");
    }
}
