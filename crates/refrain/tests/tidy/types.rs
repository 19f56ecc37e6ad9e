//! One word, one meaning: no two types that other files can see share a name.
//!
//! Two types of one name are told apart by their paths only, and a reader who searches for the name finds both.
//! Every type with a visibility counts (`pub(crate)` too): such a name is read far from its declaration.

use std::collections::BTreeMap;

use super::{File, Finding, syntax};

/// Names that several types may have, and why.
const SHARED: [(&str, &str); 2] = [
    ("Arguments", "each command has its own, and only `cli.rs` sees them: `commands::run::Arguments`"),
    ("Result", "the `Result` of the standard library with the error of a layer"),
];

pub(crate) fn have_names_of_their_own(files: &[File]) -> Vec<Finding> {
    let mut places: BTreeMap<String, Vec<(&str, usize)>> = BTreeMap::new();
    for file in files.iter().filter(|file| is_source(file)) {
        for name in syntax::visible_types(file) {
            places.entry(name.text).or_default().push((&file.path, name.line));
        }
    }
    places.retain(|name, places| places.len() > 1 && !SHARED.iter().any(|(shared, _)| shared == name));
    let finding = |path: &str, line, what| Finding { path: path.to_owned(), line, rule: "types", what };
    let shared = places.iter().flat_map(|(name, places)| {
        let one = |(path, line): &(&str, usize)| {
            finding(
                path,
                *line,
                format!("`{name}` is the name of {} types: rename all but one", places.len()),
            )
        };
        places.iter().map(one).collect::<Vec<_>>()
    });
    shared.collect()
}

fn is_source(file: &File) -> bool {
    let inside = file.path.strip_prefix("crates/").and_then(|path| path.split_once('/'));
    inside.is_some_and(|(_, path)| path.starts_with("src/"))
}

#[test]
fn a_name_of_two_visible_types_is_found() {
    let one = ("crates/refrain/src/a.rs", "pub(crate) struct Line;\nstruct Private;\n");
    let found = |other: &str| {
        super::planted(have_names_of_their_own, &[one, ("crates/refrain-core/src/b.rs", other)])
    };
    let both = ["crates/refrain/src/a.rs:1", "crates/refrain-core/src/b.rs:1"];
    for other in [
        "pub enum Line {}",
        "pub(super) trait Line {}",
        "words! { pub union Line {} }",
        "pub type Line = u8;",
    ] {
        assert_eq!(found(other), both, "{other}");
    }
    for other in ["struct Line;", "pub struct Private;", "pub fn line() {}", "impl A { type Line = u8; }"] {
        assert!(found(other).is_empty(), "{other}");
    }
    let test = ("crates/refrain/tests/a.rs", "pub struct Line;\n");
    assert!(super::planted(have_names_of_their_own, &[one, test]).is_empty(), "tests may use any name");
}
