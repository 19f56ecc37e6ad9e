//! The rules of style as tests, so that no reviewer has to repeat them.
//!
//! A rule is a pure function from the files of the tree to findings; `tidy_holds` runs all of them over the
//! repository and prints every finding. Each rule also has a test with a planted fault, so that a rule that stops
//! working is noticed. `exceptions.rs` is the only place for exceptions, and an exception that is not needed any more
//! is a finding too.
#![expect(clippy::unwrap_used, reason = "in a test a panic is the failure report")]

mod databases;
mod documents;
mod exceptions;
mod growth;
mod headers;
mod index;
mod layers;
mod length;
mod migrations;
mod modules;
mod names;
mod phrases;
mod statements;
mod syntax;
mod transactions;
mod tree;
mod types;
mod words;

use std::fmt;

use tree::File;

/// A violation of a rule: where, what, and what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    path: String,
    line: usize,
    rule: &'static str,
    what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {} ({})", self.path, self.line, self.what, self.rule)
    }
}

type Rule = fn(&[File]) -> Vec<Finding>;

const RULES: [Rule; 17] = [
    databases::are_known_where_listed,
    documents::paths_exist,
    growth::public_types_may_grow,
    headers::modules_say_why,
    index::has_every_file,
    layers::point_one_way,
    length::is_bounded,
    migrations::are_never_edited,
    migrations::are_numbered_alike,
    modules::use_only_those_below,
    names::are_whole_words,
    phrases::are_plain,
    statements::are_in_place_and_used,
    statements::can_be_rewritten,
    transactions::begin_in_one_place,
    types::have_names_of_their_own,
    words::are_fit_to_print,
];

fn findings(files: &[File]) -> Vec<Finding> {
    let mut findings: Vec<Finding> = RULES.iter().flat_map(|rule| rule(files)).collect();
    findings.sort();
    findings
}

#[test]
fn tidy_holds() {
    let files = tree::of_this_repository();
    assert!(files.len() > 50, "only {} files were found", files.len());
    let shown: Vec<String> =
        exceptions::apply(findings(&files)).into_iter().map(|finding| finding.to_string()).collect();
    assert!(shown.is_empty(), "{} findings:\n{}", shown.len(), shown.join("\n"));
}

/// What a rule finds in a tree of the given files, each a path and a text.
#[cfg(test)]
fn planted(rule: Rule, files: &[(&str, &str)]) -> Vec<String> {
    let files: Vec<File> = files.iter().map(|(path, text)| File::new(path, text)).collect();
    rule(&files).iter().map(|finding| format!("{}:{}", finding.path, finding.line)).collect()
}
