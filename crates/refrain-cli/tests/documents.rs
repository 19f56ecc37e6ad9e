//! Every command line in the documents is tried: a document that cannot be followed is a fault.
#![expect(clippy::unwrap_used, reason = "in a test a panic is the failure report")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// What a reader does with a document: writes files, types lines.
enum Act {
    /// A `toml` block whose first line is a comment that is its path.
    Write { path: String, text: String },
    /// A line of a `sh` block.
    Type(String),
}

fn acts(document: &str) -> Vec<Act> {
    let text = std::fs::read_to_string(root().join(document)).unwrap();
    let mut acts = Vec::new();
    let mut block: Option<(&str, Vec<&str>)> = None;
    for line in text.lines() {
        match (&mut block, line.strip_prefix("```")) {
            (None, Some(language)) => block = Some((language, Vec::new())),
            (Some(_), Some(_)) => {
                acts.extend(block.take().into_iter().flat_map(|(of, lines)| done(of, &lines)));
            }
            (Some((_, lines)), None) => lines.push(line),
            (None, None) => {}
        }
    }
    acts
}

fn done(language: &str, lines: &[&str]) -> Vec<Act> {
    let path = lines.first().and_then(|first| first.strip_prefix("# ")).filter(|path| is_toml(path));
    match (language, path) {
        ("sh", _) => {
            let lines = lines.iter().filter(|line| !line.trim().is_empty());
            lines.map(|line| Act::Type((*line).to_owned())).collect()
        }
        ("toml", Some(path)) => vec![Act::Write { path: path.to_owned(), text: lines.join("\n") }],
        _ => Vec::new(),
    }
}

fn is_toml(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|extension| extension == "toml")
}

/// The lines of all `sh` blocks of a document.
fn command_lines(document: &str) -> Vec<String> {
    let lines = acts(document).into_iter().filter_map(|act| match act {
        Act::Type(line) => Some(line),
        Act::Write { .. } => None,
    });
    lines.collect()
}

/// The names of all tests, as `./test NAME` matches them: the modules, then the function.
fn test_names(directory: &Path, names: &mut Vec<String>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            test_names(&path, names);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let path = path.strip_prefix(root()).unwrap();
            names.extend(test_functions(&text).into_iter().map(|function| test_name(path, function)));
        }
    }
}

/// A test in `crates/refrain-core/tests/timetable/tick_rule.rs` is `tick_rule::…`: the file that a test program
/// begins with is no module, and the name of the program is no part of a test's name.
fn test_name(path: &Path, function: &str) -> String {
    let path = path.with_extension("");
    let mut parts = path.iter().map(|part| part.to_str().unwrap()).skip(2);
    if parts.next() == Some("tests") {
        parts.next();
    }
    let modules = parts.filter(|part| !["main", "lib", "mod"].contains(part));
    modules.chain([function]).collect::<Vec<_>>().join("::")
}

/// Functions under a test attribute, or inside `both_databases!`, which writes the attributes itself.
fn test_functions(text: &str) -> Vec<&str> {
    let (mut names, mut both, mut marked) = (Vec::new(), false, false);
    for line in text.lines() {
        match line.trim_start() {
            "#[test]" | "#[tokio::test]" => marked = true,
            "both_databases! {" => both = true,
            _ if line == "}" => both = false,
            code => {
                let name = code.strip_prefix("async ").unwrap_or(code).strip_prefix("fn ");
                if let Some(name) = name.filter(|_| both || marked) {
                    names.extend(name.split('(').next());
                    marked = false;
                }
            }
        }
    }
    names
}

/// Runs a line as it is printed, by a shell, but for `./test`, which would run this test again: its plan must be sound. What
/// is said of `refrain` is typed in a directory of its own, line after line.
fn run(line: &str, desk: &Path) -> Output {
    let is_ours = line.starts_with("refrain ");
    let line = if line.starts_with("./test") { format!("{line} --plan") } else { line.to_owned() };
    let programs = Path::new(env!("CARGO_BIN_EXE_refrain")).parent().unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let mut command = Command::new("sh");
    command
        .args(["-c", &line])
        .current_dir(if is_ours { desk.to_owned() } else { root() })
        .env("PATH", path)
        .env_remove("REFRAIN_STORE")
        .env_remove("REFRAIN_PROJECT");
    command.output().unwrap()
}

#[test]
fn every_command_line_in_the_documents_works() {
    let mut tried = 0;
    for document in ["README.md", "CONTRIBUTING.md", "docs/JOBS.md"] {
        let desk = tempfile::tempdir().unwrap();
        for act in acts(document) {
            match act {
                Act::Write { path, text } => {
                    let path = desk.path().join(path);
                    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                    std::fs::write(path, text).unwrap();
                }
                Act::Type(line) => {
                    let output = run(&line, desk.path());
                    let said = String::from_utf8_lossy(&output.stderr);
                    assert!(output.status.success(), "{document}: `{line}` failed:\n{said}");
                    tried += 1;
                }
            }
        }
    }
    assert!(tried >= 20, "only {tried} command lines were found");
}

/// NAME of a documented `./test NAME`.
fn filter(line: &str) -> Option<&str> {
    line.strip_prefix("./test ")?.split_whitespace().find(|word| !word.starts_with('-'))
}

#[test]
fn every_documented_name_of_a_test_matches_one() {
    let mut names = Vec::new();
    test_names(&root().join("crates"), &mut names);
    let mut tried = 0;
    for document in ["README.md", "CONTRIBUTING.md"] {
        for line in command_lines(document) {
            let Some(filter) = filter(&line) else { continue };
            assert!(
                names.iter().any(|name| name.contains(filter)),
                "{document}: `{line}` runs nothing: no test has \"{filter}\" in its name"
            );
            tried += 1;
        }
    }
    assert!(tried >= 3, "only {tried} names of tests were found");
}

#[test]
fn a_test_is_named_by_its_modules_and_its_function_but_not_by_its_program() {
    for (path, name) in [
        ("crates/refrain-core/tests/timetable/tick_rule.rs", "tick_rule::f"),
        ("crates/refrain-core/tests/timetable/main.rs", "f"),
        ("crates/refrain-core/tests/states.rs", "f"),
        ("crates/refrain-core/src/state/unit.rs", "state::unit::f"),
        ("crates/refrain-core/src/lib.rs", "f"),
    ] {
        assert_eq!(test_name(Path::new(path), "f"), name, "{path}");
    }
    let text = "fn plain() {}\n\
                #[test]\n#[should_panic]\nfn one() {\n    fn inner() {}\n}\n\
                both_databases! {\n    async fn two(database) {\n    }\n}\n\
                proptest! {\n    #[test]\n    fn three(a in b()) {}\n}\n\
                #[tokio::test]\nasync fn four() {}\nasync fn story() {}\n";
    assert_eq!(test_functions(text), ["one", "two", "three", "four"]);
    assert_eq!(filter("./test --full every_zone"), Some("every_zone"));
    assert_eq!(filter("./test --help"), None);
}

#[test]
fn the_test_command_refuses_what_it_does_not_know() {
    for line in ["./test --bogus", "./test one two"] {
        let output = run(line, &root());
        assert_eq!(output.status.code(), Some(2), "{line}");
        assert!(String::from_utf8_lossy(&output.stderr).starts_with("test: "), "{line}");
    }
}

#[test]
fn the_plan_of_the_whole_suite_names_every_step() {
    let plan = String::from_utf8(run("./test", &root()).stderr).unwrap();
    for step in ["== format", "== lints", "== docs", "== a scratch PostgreSQL", "== tests"] {
        assert!(plan.contains(step), "{step} is missing in:\n{plan}");
    }
    let filtered = String::from_utf8(run("./test --full every_zone", &root()).stderr).unwrap();
    assert_eq!(
        filtered,
        "== PostgreSQL's and PgBouncer's programs\n== a scratch PostgreSQL\n\
         == tests with \"every_zone\" in their name, long forms too\n"
    );
}
