//! Names are whole words that say what a thing is.

use super::{File, Finding, syntax};

/// Names for collections of unrelated things.
const DRAWERS: [&str; 7] = ["util", "utils", "helper", "helpers", "common", "manager", "misc"];
/// Words that mean nothing as the name of a file or a directory, but can mean something in a longer name.
const DRAWERS_ON_DISK: [&str; 3] = ["shared", "stuff", "base"];

pub(crate) fn are_whole_words(files: &[File]) -> Vec<Finding> {
    files.iter().flat_map(|file| paths(file).chain(declared(file))).collect()
}

fn paths(file: &File) -> impl Iterator<Item = Finding> {
    let parts = file.path.split(['/', '.', '_', '-']).map(str::to_ascii_lowercase);
    parts.filter(|part| is_drawer(part) || DRAWERS_ON_DISK.contains(&part.as_str())).map(|part| {
        let what = format!("`{part}` is a drawer, not a name: say what is in it");
        Finding { path: file.path.clone(), line: 1, rule: "names", what }
    })
}

fn declared(file: &File) -> impl Iterator<Item = Finding> {
    let names = syntax::names(file).into_iter();
    names.filter(|name| words(&name.text).iter().any(|word| is_drawer(word))).map(|name| {
        let what = format!("`{}` is a drawer, not a name: say what is in it", name.text);
        Finding { path: file.path.clone(), line: name.line, rule: "names", what }
    })
}

fn is_drawer(word: &str) -> bool {
    DRAWERS.contains(&word)
}

/// The words of a name: `run` and `manager` of `RunManager`, and of `run_manager`.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for character in name.chars() {
        if character == '_' || character.is_uppercase() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut() {
            word.extend(character.to_lowercase().filter(|c| *c != '_'));
        }
    }
    words
}

#[test]
fn a_drawer_is_found() {
    let found = super::planted(
        are_whole_words,
        &[
            ("crates/refrain/src/utils.rs", "//! Why.\n"),
            ("crates/refrain/src/common/run.rs", "//! Why.\n"),
            ("crates/refrain/src/run.rs", "//! Why.\nmod time_helpers;\n"),
        ],
    );
    assert_eq!(
        found,
        [
            "crates/refrain/src/utils.rs:1",
            "crates/refrain/src/common/run.rs:1",
            "crates/refrain/src/run.rs:2"
        ]
    );
    let clean = [("crates/refrain/src/database.rs", "//! Why.\nmod utility_of_nothing;\n")];
    assert!(super::planted(are_whole_words, &clean).is_empty());
}

#[test]
fn a_drawer_is_found_as_a_word_of_any_declared_name() {
    let path = "crates/refrain/src/run.rs";
    for drawer in [
        "struct RunManager;",
        "enum Misc {}",
        "pub(crate) trait HTTPUtils {}",
        "type CommonRun = Run;",
        "impl Run { fn parse_helper(&self) {} }",
        "fn f() { fn util() {} }",
        "mod run_utils {}",
        "proptest! { fn helpers(a in b()) {} }",
    ] {
        assert_eq!(super::planted(are_whole_words, &[(path, drawer)]), [format!("{path}:1")], "{drawer}");
    }
    for clean in [
        "struct Utility;",
        "fn managers_are_people() {}",
        "fn f(helper: Helper) { manager(); }",
        "// fn util",
        "struct SharedBase;",
    ] {
        assert!(super::planted(are_whole_words, &[(path, clean)]).is_empty(), "{clean}");
    }
}
