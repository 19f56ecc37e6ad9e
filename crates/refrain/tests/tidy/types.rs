//! One word, one meaning: no two types that other files can see share a name.
//!
//! Two types of one name are told apart by their paths only, and a reader who searches for the name finds both.
//! Every type with a visibility counts (`pub(crate)` too): such a name is read far from its declaration.
//!
//! `types.txt` has the names that are still shared. It may only shrink: a name that is not shared any more is a
//! finding until its line is deleted.

use std::collections::{BTreeMap, BTreeSet};

use super::{File, Finding, syntax};

/// Names that several types may have, and why.
const SHARED: [(&str, &str); 2] = [
    ("Arguments", "each command has its own, and only `cli.rs` sees them: `commands::run::Arguments`"),
    ("Result", "the `Result` of the standard library with the error of a layer"),
];

const STILL_SHARED: &str = "crates/refrain/tests/tidy/types.txt";

pub(crate) fn have_names_of_their_own(files: &[File]) -> Vec<Finding> {
    let mut places: BTreeMap<String, Vec<(&str, usize)>> = BTreeMap::new();
    for file in files.iter().filter(|file| is_source(file)) {
        for name in syntax::visible_types(file) {
            places.entry(name.text).or_default().push((&file.path, name.line));
        }
    }
    places.retain(|name, places| places.len() > 1 && !SHARED.iter().any(|(shared, _)| shared == name));
    let listed = files.iter().find(|file| file.path == STILL_SHARED).map_or("", |file| file.text.as_str());
    let listed: BTreeSet<&str> = listed.lines().collect();
    let finding = |path: &str, line, what| Finding { path: path.to_owned(), line, rule: "types", what };
    let unlisted = places.iter().filter(|(name, _)| !listed.contains(name.as_str()));
    let shared = unlisted.flat_map(|(name, places)| {
        let one = |(path, line): &(&str, usize)| {
            finding(
                path,
                *line,
                format!("`{name}` is the name of {} types: rename all but one", places.len()),
            )
        };
        places.iter().map(one).collect::<Vec<_>>()
    });
    let unshared = listed.iter().filter(|name| !places.contains_key(**name));
    let stale = unshared
        .map(|name| finding(STILL_SHARED, 1, format!("`{name}` is not shared any more: delete its line")));
    shared.chain(stale).collect()
}

fn is_source(file: &File) -> bool {
    let inside = file.path.strip_prefix("crates/").and_then(|path| path.split_once('/'));
    inside.is_some_and(|(_, path)| path.starts_with("src/"))
}

#[test]
fn a_name_of_two_visible_types_is_found() {
    let one = ("crates/refrain/src/a.rs", "pub(crate) struct Line;\nstruct Private;\n");
    let found = |other: &str, listed: &str| {
        let other = ("crates/refrain-core/src/b.rs", other);
        super::planted(have_names_of_their_own, &[one, other, (STILL_SHARED, listed)])
    };
    let both = ["crates/refrain/src/a.rs:1", "crates/refrain-core/src/b.rs:1"];
    for other in [
        "pub enum Line {}",
        "pub(super) trait Line {}",
        "words! { pub union Line {} }",
        "pub type Line = u8;",
    ] {
        assert_eq!(found(other, ""), both, "{other}");
    }
    assert!(found("pub enum Line {}", "Line\n").is_empty(), "a name that is still shared");
    assert_eq!(found("pub enum Row {}", "Line\n"), [format!("{STILL_SHARED}:1")], "the list may only shrink");
    for other in ["struct Line;", "pub struct Private;", "pub fn line() {}", "impl A { type Line = u8; }"] {
        assert!(found(other, "").is_empty(), "{other}");
    }
    let test = ("crates/refrain/tests/a.rs", "pub struct Line;\n");
    assert!(super::planted(have_names_of_their_own, &[one, test]).is_empty(), "tests may use any name");
}
