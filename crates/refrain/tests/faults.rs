//! The catalogue of faults and the tests agree: every mark has a test, every marked test is in the catalogue.
#![expect(clippy::unwrap_used, reason = "in a test a panic is the failure report")]

use std::collections::BTreeSet;
use std::path::Path;

/// `f15` of `f15_a_fixed_time_in_a_gap…`: one letter of the catalogue, then a number.
fn mark(name: &str) -> Option<&str> {
    let mark = name.split('_').next()?;
    let number = mark.strip_prefix(['f', 'h', 'i', 'm', 's', 'x'])?;
    (!number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())).then_some(mark)
}

fn marks_of_tests(directory: &Path, marks: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            marks_of_tests(&path, marks);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let functions = text.split("fn ").skip(1).filter_map(|rest| rest.split('(').next());
            marks.extend(functions.filter_map(mark).map(str::to_owned));
        }
    }
}

#[test]
fn every_mark_has_a_test_and_every_marked_test_is_in_the_catalogue() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut tested = BTreeSet::new();
    marks_of_tests(&root.join("crates"), &mut tested);
    let catalogue = std::fs::read_to_string(root.join("docs/FAULTS.md")).unwrap();
    let rows = catalogue.lines().filter_map(|line| line.strip_prefix("| ")?.split(' ').next());
    let listed: BTreeSet<String> = rows.filter_map(mark).map(str::to_owned).collect();
    assert_eq!(listed, tested, "left: docs/FAULTS.md, right: names of tests");
}
