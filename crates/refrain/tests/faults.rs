//! The catalogue of faults and the tests agree: every mark has a test, and the mark of every test is in the catalogue.
//!
//! Only a function below a test attribute counts, also inside a macro such as `proptest!`: a helper, a comment or a string
//! that begins with a mark proves nothing.
#![expect(clippy::unwrap_used, reason = "in a test a panic is the failure report")]

use std::collections::BTreeSet;
use std::path::Path;

use proc_macro2::{TokenStream, TokenTree};

/// Attributes that make tests of a function.
const TESTS: [&str; 4] = ["test", "both_databases", "every_store", "both_shops"];

/// `f15` of `f15_a_fixed_time_in_a_gap…`: one letter of the catalogue, then a number.
fn mark(name: &str) -> Option<&str> {
    let mark = name.split('_').next()?;
    let number = mark.strip_prefix(['f', 'h', 'i', 'm', 's', 'x'])?;
    (!number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())).then_some(mark)
}

/// The names of the test functions in a piece of Rust.
fn test_names(code: TokenStream, names: &mut Vec<String>) {
    let (mut is_test, mut is_name, mut after_hash) = (false, false, false);
    for token in code {
        let is_hash = matches!(&token, TokenTree::Punct(mark) if mark.as_char() == '#');
        match token {
            TokenTree::Group(attribute) if after_hash => is_test |= is_test_attribute(attribute.stream()),
            TokenTree::Group(group) => test_names(group.stream(), names),
            TokenTree::Ident(name) if is_name => {
                names.extend(is_test.then(|| name.to_string()));
                (is_name, is_test) = (false, false);
            }
            TokenTree::Ident(word) => is_name = word == "fn",
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
        after_hash = is_hash;
    }
}

/// Whether the path of an attribute ends in one of the names: `test`, `tokio::test(flavor = "multi_thread")`.
fn is_test_attribute(attribute: TokenStream) -> bool {
    let path = attribute.into_iter().take_while(|token| !matches!(token, TokenTree::Group(_)));
    let last = path.filter(|token| matches!(token, TokenTree::Ident(_))).last();
    last.is_some_and(|last| TESTS.contains(&last.to_string().as_str()))
}

fn marks_of_tests(directory: &Path, marks: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            marks_of_tests(&path, marks);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let mut names = Vec::new();
            test_names(std::fs::read_to_string(&path).unwrap().parse().unwrap(), &mut names);
            marks.extend(names.iter().filter_map(|name| mark(name)).map(str::to_owned));
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

#[test]
fn only_functions_below_a_test_attribute_are_tests() {
    let code = r##"
        /// fn f1_comment() {}
        const TEXT: &str = "#[test] fn f2_string() {}";
        fn f3_function_that_a_test_calls() {}
        #[test]
        #[should_panic]
        fn one() { fn f4_inner() {} }
        #[cfg(test)]
        mod tests { fn f5_support() {} #[tokio::test(flavor = "multi_thread")] async fn two() {} }
        proptest! { #[test] fn three(a in b()) {} }
        #[both_databases]
        async fn four(database: TestDatabase) {}
        #[refrain_harness::both_shops]
        async fn five<DB: Backend>(shop: Shop<DB>) {}
    "##;
    let mut names = Vec::new();
    test_names(code.parse().unwrap(), &mut names);
    assert_eq!(names, ["one", "two", "three", "four", "five"]);
}
