//! Names are whole words that say what a thing is.

use super::{File, Finding};

/// Drawers into which anything fits.
const DRAWERS: [&str; 10] =
    ["util", "utils", "helper", "helpers", "common", "manager", "misc", "shared", "stuff", "base"];

pub(crate) fn are_whole_words(files: &[File]) -> Vec<Finding> {
    let finding = |file: &File, line, name: &str| Finding {
        path: file.path.clone(),
        line,
        rule: "names",
        what: format!("`{name}` is a drawer, not a name: say what is in it"),
    };
    let paths = files.iter().flat_map(|file| drawers(&file.path).map(move |name| finding(file, 1, &name)));
    let modules = files.iter().filter(|file| file.is(".rs")).flat_map(|file| {
        let modules = file.lines().filter_map(|(line, text)| Some((line, module_name(text)?)));
        modules.flat_map(move |(line, name)| drawers(name).map(move |drawer| finding(file, line, &drawer)))
    });
    paths.chain(modules).collect()
}

fn module_name(line: &str) -> Option<&str> {
    let line = line.trim();
    let declared = line.strip_prefix("pub(crate) ").or(line.strip_prefix("pub ")).unwrap_or(line);
    declared.strip_prefix("mod ")?.strip_suffix([';', '{']).map(str::trim)
}

/// The parts of a path or name that are drawers.
fn drawers(path: &str) -> impl Iterator<Item = String> + use<> {
    let parts: Vec<String> = path.split(['/', '.', '_', '-']).map(str::to_ascii_lowercase).collect();
    parts.into_iter().filter(|part| DRAWERS.contains(&part.as_str()))
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
