//! Invalid projects and their problems: one folder each, with the text in its `expected.txt`.
//!
//! `REFRAIN_BLESS=1` writes the present text; read it as the user who made the mistake before you keep it.
#![expect(clippy::unwrap_used, reason = "in a test a panic is the failure report")]

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use refrain_core::project::{Files, Problem, ProjectConfig, SourceFile, read};

/// The environment of every project here except the one that lacks it.
fn environment(name: &str) -> Option<OsString> {
    let value = match name {
        "DATABASE_URL" => "mongodb://admin:hunter2@db",
        "MAIL_URL" | "SLACK_URL" => "https://mail.internal/v1",
        "API_TOKEN" => "token-of-the-test",
        _ => return None,
    };
    Some(value.into())
}

fn folders() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/projects");
    let mut folders: Vec<PathBuf> = fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    folders
}

fn file(folder: &Path, path: &str) -> SourceFile {
    SourceFile::new(path, fs::read_to_string(folder.join(path)).unwrap())
}

/// Reads a project as its folder has it, all of its files by path.
fn project(folder: &Path) -> (BTreeMap<String, SourceFile>, Result<ProjectConfig, Vec<Problem>>) {
    let mut names: Vec<String> = fs::read_dir(folder.join("jobs"))
        .unwrap()
        .map(|entry| format!("jobs/{}", entry.unwrap().file_name().into_string().unwrap()))
        .collect();
    names.sort();
    let is_job = |source: &&SourceFile| !source.path.contains(".sql");
    let sources: Vec<SourceFile> = names.iter().map(|name| file(folder, name)).collect();
    let jobs: Vec<SourceFile> = sources.iter().filter(is_job).cloned().collect();
    let settings = file(folder, "refrain.toml");
    let sibling = |name: &str| fs::read_to_string(folder.join(format!("jobs/{name}.txt"))).ok().map(Ok);
    let is_lacking = folder.ends_with("missing-environment");
    let environment = |name: &str| environment(name).filter(|_| !is_lacking);
    let files = Files { project: &settings, jobs: &jobs, environment: &environment, sibling: &sibling };
    let read = read(&files);
    let all = sources.into_iter().chain([settings]);
    let all = all.map(|source| (source.path.trim_end_matches(".txt").to_owned(), source)).collect();
    (all, read)
}

fn problems_of(folder: &Path) -> String {
    let (sources, read) = project(folder);
    let problems = read.err().unwrap_or_default();
    let print = |problem: &Problem| problem.print(sources.get(&problem.path).unwrap());
    let lines: Vec<String> = problems.iter().map(print).collect();
    lines.join("\n\n") + "\n"
}

#[test]
fn what_is_said_about_broken_projects_is_what_a_person_needs() {
    let mut differing = Vec::new();
    for folder in folders() {
        let (problems_of, expected) = (problems_of(&folder), folder.join("expected.txt"));
        if std::env::var_os("REFRAIN_BLESS").is_some() {
            fs::write(&expected, problems_of).unwrap();
        } else if fs::read_to_string(&expected).ok().as_deref() != Some(&problems_of) {
            differing.push(format!("{}:\n{problems_of}", folder.display()));
        }
    }
    assert!(differing.is_empty(), "REFRAIN_BLESS=1 keeps what is said now:\n{}", differing.join("\n"));
    assert!(folders().len() > 25);
}

#[test]
fn every_problem_points_into_its_file_and_says_what_to_do() {
    for folder in folders() {
        let (sources, read) = project(&folder);
        for problem in read.err().unwrap_or_default() {
            let text = &sources.get(&problem.path).unwrap().text;
            assert!(text.get(problem.span.clone()).is_some(), "{problem:?}");
            assert!(!problem.label.is_empty() && !problem.message.ends_with('.'), "{problem:?}");
        }
    }
}

#[test]
fn s19_no_problem_tells_what_the_environment_holds() {
    for folder in folders() {
        let (_, read) = project(&folder);
        let output = format!("{read:?}");
        for secret in ["hunter2", "mongodb", "token-of-the-test"] {
            assert!(!output.contains(secret), "{}: {secret}", folder.display());
        }
    }
}

#[test]
fn the_project_that_uses_every_key_lacks_nothing_but_support() {
    let folder = folders().into_iter().find(|folder| folder.ends_with("every-key")).unwrap();
    let (_, read) = project(&folder);
    let wrong: Vec<Problem> =
        read.unwrap_err().into_iter().filter(|problem| problem.label != "not supported yet").collect();
    assert_eq!(wrong, []);
}
