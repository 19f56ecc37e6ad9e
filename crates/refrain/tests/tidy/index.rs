//! The index of ARCHITECTURE has a line for every source file: its path, and what it is for.
//!
//! The line is the first sentence of the file's own header, so the two cannot disagree. `REFRAIN_BLESS=1` writes the index.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{File, Finding, tree};

const DOCUMENT: &str = "docs/ARCHITECTURE.md";
const BEGIN: &str = "<!-- index: begin -->\n```text\n";
const END: &str = "```\n<!-- index: end -->";

pub(crate) fn has_every_file(files: &[File]) -> Vec<Finding> {
    let Some(document) = files.iter().find(|file| file.path == DOCUMENT) else { return Vec::new() };
    let finding = |line, what| Finding { path: DOCUMENT.to_owned(), line, rule: "index", what };
    let bless = "REFRAIN_BLESS=1 cargo test --workspace --test tidy index";
    let Some((before, index, _)) = parts(&document.text) else {
        return vec![finding(1, "there is no index between its two marks".to_owned())];
    };
    let first = before.lines().count() + 1;
    let expected = index_of(files);
    let missing = expected.lines().filter(|line| !index.lines().any(|there| there == *line));
    let missing = missing.map(|line| finding(first, format!("the index lacks \"{}\": {bless}", line.trim())));
    let stale = index.lines().enumerate().filter(|(_, line)| !expected.lines().any(|right| right == *line));
    let stale =
        stale.map(|(at, line)| finding(first + at, format!("\"{}\" is out of date: {bless}", line.trim())));
    let mut findings: Vec<Finding> = missing.chain(stale).collect();
    if findings.is_empty() && index != expected {
        findings.push(finding(first, format!("the index is out of order: {bless}")));
    }
    findings
}

/// The text before the index, the index, and the text after it.
fn parts(text: &str) -> Option<(&str, &str, &str)> {
    let begin = text.find(BEGIN)? + BEGIN.len();
    let length = text.get(begin..)?.find(END)?;
    Some((text.get(..begin)?, text.get(begin..begin + length)?, text.get(begin + length..)?))
}

/// A heading for each folder, then its files.
fn index_of(files: &[File]) -> String {
    let mut folders: BTreeMap<&str, Vec<(&str, String)>> = BTreeMap::new();
    let is_source = |path: &str| path.strip_prefix("crates/").is_some_and(|path| path.contains("/src/"));
    for file in files.iter().filter(|file| file.is(".rs") && is_source(&file.path)) {
        let Some((folder, name)) = file.path.rsplit_once('/') else { continue };
        folders.entry(folder).or_default().push((name, purpose(file)));
    }
    let mut text = String::new();
    for (folder, mut names) in folders {
        names.sort();
        let width = names.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
        let _ = writeln!(text, "{folder}/");
        for (name, purpose) in names {
            let _ = writeln!(text, "  {name:width$}  {purpose}");
        }
    }
    text
}

/// The first sentence of a header.
fn purpose(file: &File) -> String {
    let header = file.text.lines().map_while(|line| line.strip_prefix("//!").map(str::trim));
    let paragraph: Vec<&str> = header.take_while(|line| !line.is_empty()).collect();
    let paragraph = paragraph.join(" ");
    let end = paragraph.find(". ").map_or(paragraph.len(), |end| end + 1);
    paragraph.get(..end).unwrap_or_default().to_owned()
}

#[test]
fn the_index_is_rewritten_on_demand() {
    if std::env::var_os("REFRAIN_BLESS").is_none() {
        return;
    }
    let files = tree::of_this_repository();
    let document = files.iter().find(|file| file.path == DOCUMENT).unwrap();
    let (before, _, after) = parts(&document.text).unwrap();
    std::fs::write(tree::root().join(DOCUMENT), format!("{before}{}{after}", index_of(&files))).unwrap();
}

#[test]
fn a_file_that_is_missing_and_a_line_that_is_wrong_are_found() {
    let found = |index: &str| {
        let document = format!("# A\n{BEGIN}{index}{END}\n");
        let files = [
            (DOCUMENT, document.as_str()),
            ("crates/a/src/lib.rs", "//! The root of a. And more.\n"),
            ("crates/a/src/store/claim.rs", "//! Hands out runs,\n//! each once.\n//!\n//! More.\n"),
            ("crates/a/tests/claim.rs", "//! Not a source.\n"),
        ];
        super::planted(has_every_file, &files)
    };
    let whole = "crates/a/src/\n  lib.rs  The root of a.\ncrates/a/src/store/\n  claim.rs  Hands out runs, each once.\n";
    assert!(found(whole).is_empty());
    let at = |line: usize| format!("{DOCUMENT}:{line}");
    assert_eq!(found("crates/a/src/\n  lib.rs  The root of a.\n").len(), 2, "a folder with its file");
    assert_eq!(found(&whole.replace("each once", "some twice")), [at(4), at(7)]);
    assert_eq!(found(&format!("{whole}  gone.rs  It was.\n")), [at(8)]);
    assert_eq!(super::planted(has_every_file, &[(DOCUMENT, "# A\n")]), [at(1)]);
}
