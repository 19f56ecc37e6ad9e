//! Every command line in the documents is executed: a document that cannot be followed is a defect.
#![expect(clippy::unwrap_used, reason = "in a test a panic is the failure report")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// What a reader does with a document: writes files, types lines, reads what they print.
enum Act {
    /// A `toml` block whose first line is a comment that is its path.
    Write { path: String, text: String },
    /// The lines of a `sh` block.
    Type(Vec<String>),
    /// A `text` block right below a `sh` block: what its lines print on stdout. `…` stands for anything.
    Read(Vec<String>),
}

fn acts(document: &str) -> Vec<Act> {
    let text = std::fs::read_to_string(root().join(document)).unwrap();
    let mut acts = Vec::new();
    let mut block: Option<(&str, Vec<&str>)> = None;
    let mut was_typed = false;
    for line in text.lines() {
        match (&mut block, line.strip_prefix("```")) {
            (None, Some(language)) => block = Some((language, Vec::new())),
            (Some((language, lines)), Some(_)) => {
                let act = done(language, lines, was_typed);
                was_typed = matches!(act, Some(Act::Type(_)));
                acts.extend(act);
                block = None;
            }
            (Some((_, lines)), None) => lines.push(line),
            (None, None) => was_typed &= line.is_empty(),
        }
    }
    acts
}

fn done(language: &str, lines: &[&str], was_typed: bool) -> Option<Act> {
    let path = lines.first().and_then(|first| first.strip_prefix("# ")).filter(|path| is_toml(path));
    let kept = lines.iter().map(|line| (*line).to_owned());
    match (language, path) {
        ("sh", _) => Some(Act::Type(kept.filter(|line| !line.trim().is_empty()).collect())),
        ("text", _) if was_typed => Some(Act::Read(kept.collect())),
        ("toml", Some(path)) => Some(Act::Write { path: path.to_owned(), text: lines.join("\n") }),
        _ => None,
    }
}

fn is_toml(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|extension| extension == "toml")
}

/// Whether a line matches a printed line of a document, where `…` stands for anything.
fn is_like(printed: &str, line: &str) -> bool {
    let mut parts = printed.split('…');
    let Some(mut rest) = line.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let mut is_open = false;
    for part in parts {
        let Some((_, after)) = rest.split_once(part) else { return false };
        (rest, is_open) = (if part.is_empty() { "" } else { after }, part.is_empty());
    }
    is_open || rest.is_empty()
}

/// The lines of all `sh` blocks of a document.
fn command_lines(document: &str) -> Vec<String> {
    let lines = acts(document).into_iter().filter_map(|act| match act {
        Act::Type(lines) => Some(lines),
        Act::Write { .. } | Act::Read(_) => None,
    });
    lines.flatten().collect()
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

/// A test in `crates/refrain-core/tests/timetable/tick_rule.rs` is `tick_rule::…`: the root file of a test program is
/// not a module, and the name of the program is not part of a test's name.
fn test_name(path: &Path, function: &str) -> String {
    let path = path.with_extension("");
    let mut parts = path.iter().map(|part| part.to_str().unwrap()).skip(2);
    if parts.next() == Some("tests") {
        parts.next();
    }
    let modules = parts.filter(|part| !["main", "lib", "mod"].contains(part));
    modules.chain([function]).collect::<Vec<_>>().join("::")
}

/// The attributes that mark a function as a test, or as several.
const TEST_ATTRIBUTES: [&str; 5] =
    ["#[test]", "#[tokio::test]", "#[both_databases]", "#[every_store]", "#[both_shops]"];

/// Functions under a test attribute.
fn test_functions(text: &str) -> Vec<&str> {
    let (mut names, mut is_marked) = (Vec::new(), false);
    for line in text.lines().map(str::trim_start) {
        if TEST_ATTRIBUTES.contains(&line) {
            is_marked = true;
        } else if let Some(name) = line.strip_prefix("async ").unwrap_or(line).strip_prefix("fn ") {
            if is_marked {
                names.extend(name.split(['(', '<']).next());
            }
            is_marked = false;
        }
    }
    names
}

/// Runs a line as printed, by a shell; except `./test`, which would run this test again: only its plan is checked.
/// Commands of `refrain` run in one directory per document, line after line, beside a copy of the examples.
fn run(line: &str, desk: &Path) -> Output {
    let built = line.strip_prefix("target/debug/");
    let is_ours = built.unwrap_or(line).starts_with("refrain ");
    let line = match built {
        Some(line) => line.to_owned(),
        None if line.starts_with("./test") => format!("{line} --plan"),
        None => line.to_owned(),
    };
    let programs = Path::new(env!("CARGO_BIN_EXE_refrain")).parent().unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let mut command = Command::new("sh");
    command
        .args(["-c", &line])
        .current_dir(if is_ours { desk.to_owned() } else { root() })
        .env("PATH", path)
        .env_remove("REFRAIN_STORE")
        .env_remove("REFRAIN_PROJECT");
    // The variables that cargo sets for a test. Build scripts depend on them, and nearly all crates would be rebuilt.
    let told = std::env::vars_os().map(|(name, _)| name.into_string().unwrap_or_default());
    for name in told.filter(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")) {
        command.env_remove(name);
    }
    command.output().unwrap()
}

/// Copies tracked files, without the results of a reader's own runs.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_name() == ".refrain" {
        } else if entry.path().is_dir() {
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// Executes everything in a document; returns how many lines were executed.
fn follow(document: &str) -> usize {
    let desk = tempfile::tempdir().unwrap();
    copy(&root().join("examples"), &desk.path().join("examples"));
    let (mut typed, mut printed) = (0, String::new());
    for act in acts(document) {
        match act {
            Act::Write { path, text } => {
                let path = desk.path().join(path);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, text).unwrap();
            }
            Act::Type(lines) => {
                printed.clear();
                for line in lines {
                    let output = run(&line, desk.path());
                    let result = String::from_utf8_lossy(&output.stderr);
                    assert!(output.status.success(), "{document}: `{line}` failed:\n{result}");
                    printed += &String::from_utf8(output.stdout).unwrap();
                    typed += 1;
                }
            }
            Act::Read(expected) => {
                let same = printed.lines().count() == expected.len()
                    && printed.lines().zip(&expected).all(|(line, like)| is_like(like, line));
                assert!(
                    same,
                    "{document} prints\n{}\nand the commands print\n{printed}",
                    expected.join("\n")
                );
            }
        }
    }
    typed
}

#[test]
fn every_command_line_in_the_documents_works_and_prints_what_they_say() {
    let documents = [
        "CONTRIBUTING.md",
        "docs/EFFECTS.md",
        "docs/FILES.md",
        "docs/JOBS.md",
        "docs/PUBLISH.md",
        "docs/SCHEDULES.md",
        "docs/START.md",
        "docs/UNITS.md",
    ];
    let typed: usize = documents.into_iter().map(follow).sum();
    assert!(typed >= 15, "only {typed} command lines were found");
}

#[test]
fn the_readme_begins_with_one_command_and_shows_what_it_prints() {
    assert_eq!(command_lines("README.md"), ["./demo"]);
    let reads = acts("README.md").iter().filter(|act| matches!(act, Act::Read(_))).count();
    assert_eq!(reads, 1, "what it prints is shown");
    assert_eq!(follow("README.md"), 1);
}

#[test]
fn the_page_of_commands_names_every_command() {
    let help = String::from_utf8(run("refrain --help", &root()).stdout).unwrap();
    let page = std::fs::read_to_string(root().join("docs/COMMANDS.md")).unwrap();
    let names = commands(&help);
    assert!(names.len() > 20, "{help}");
    for name in names {
        assert!(page.contains(&format!("`{name}")), "docs/COMMANDS.md does not name `{name}`");
    }
}

#[test]
fn the_page_of_effects_types_every_verb_and_names_every_policy() {
    let help = String::from_utf8(run("refrain effects --help", &root()).stdout).unwrap();
    let typed = command_lines("docs/EFFECTS.md");
    let verbs = commands(&help);
    assert!(verbs.contains(&"confirm"), "{help}");
    let calls = verbs.iter().map(|verb| format!("refrain -C shop effects {verb} ")).chain([
        "refrain -C shop effects".to_owned(),
        "refrain -C shop effects --suppressed".to_owned(),
        "refrain -C shop once ".to_owned(),
    ]);
    for call in calls {
        assert!(typed.iter().any(|line| line.starts_with(&call)), "docs/EFFECTS.md does not type `{call}`");
    }
    let policies = ["hold", "provider-key", "at-most-once", "at-least-once"];
    let page = std::fs::read_to_string(root().join("docs/EFFECTS.md")).unwrap();
    for word in policies {
        assert!(page.contains(&format!("`{word}")), "docs/EFFECTS.md does not explain `{word}`");
    }
}

/// The commands that a `--help` lists.
fn commands(help: &str) -> Vec<&str> {
    let listed =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names = listed.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    names.filter(|name| !["", "help"].contains(name)).collect()
}

#[test]
fn only_an_ellipsis_matches_any_text() {
    for (printed, line, expected) in [
        ("hello@…: done", "hello@2026-06-09: done", true),
        ("hello@…: done", "hello@2026-06-09: failed", false),
        ("next …", "next week", true),
        ("… ●  1 done", "  2026-06-09 ●  1 done", true),
        ("a…b…c", "a1b2c", true),
        ("a…b…c", "a1b2cd", false),
        ("done", "done ", false),
        ("…", "", true),
    ] {
        assert_eq!(is_like(printed, line), expected, "{printed:?} {line:?}");
    }
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
                #[both_databases]\nasync fn two(database: TestDatabase) {\n}\n\
                proptest! {\n    #[test]\n    fn three(a in b()) {}\n}\n\
                #[tokio::test]\nasync fn four() {}\nasync fn story() {}\n\
                #[both_shops]\nasync fn five<DB: Backend>(shop: Shop<DB>) {}\n";
    assert_eq!(test_functions(text), ["one", "two", "three", "four", "five"]);
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
    for step in [
        "== format",
        "== lints",
        "== advisories",
        "== docs",
        "== build",
        "== a scratch PostgreSQL",
        "== tests",
    ] {
        assert!(plan.contains(step), "{step} is missing in:\n{plan}");
    }
    let repeated = String::from_utf8(run("./test --repeat 2 --busy every_zone", &root()).stderr).unwrap();
    for step in ["burn every core and sync the disk", "in their name, 1 of 2\n", "in their name, 2 of 2\n"] {
        assert!(repeated.contains(step), "{step} is missing in:\n{repeated}");
    }
    let filtered = String::from_utf8(run("./test --full every_zone", &root()).stderr).unwrap();
    assert_eq!(
        filtered,
        "== build\n== PostgreSQL's and PgBouncer's programs\n== a scratch PostgreSQL\n\
         == tests with \"every_zone\" in their name, long forms too\n"
    );
}
