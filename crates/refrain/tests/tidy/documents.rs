//! Documents mention only existing files: a path in backticks or in a link must lead to one, a link from the
//! directory of its document.

use std::collections::BTreeSet;

use super::{File, Finding};

/// Files and directories that exist only at run time, or are the user's.
const ELSEWHERE: [&str; 4] = ["refrain.toml", "jobs/", ".refrain/", "target/"];

pub(crate) fn paths_exist(files: &[File]) -> Vec<Finding> {
    let known = known_paths(files);
    let mut findings = Vec::new();
    for file in files {
        let spoken = |line: &str| file.is(".md") || (file.is(".rs") && line.trim_start().starts_with("//!"));
        for (line, text) in file.lines().filter(|(_, line)| spoken(line)) {
            let missing = quoted(text)
                .filter(|path| !is_known(&known, path))
                .chain(linked(text).filter(|path| !known.contains(&beside(&file.path, path))));
            findings.extend(missing.map(|path| Finding {
                path: file.path.clone(),
                line,
                rule: "documents",
                what: format!("`{path}` leads nowhere: mend the text or the tree"),
            }));
        }
    }
    findings
}

/// Every file and every directory above one.
fn known_paths(files: &[File]) -> BTreeSet<String> {
    let mut known = BTreeSet::new();
    for file in files {
        let mut path = file.path.as_str();
        known.insert(path.to_owned());
        while let Some((directory, _)) = path.rsplit_once('/') {
            known.insert(directory.to_owned());
            path = directory;
        }
    }
    known
}

/// A path in backticks may be given from the root or by its end, as in `zone.rs`.
fn is_known(known: &BTreeSet<String>, path: &str) -> bool {
    let path = path.trim_end_matches('/');
    if let Some(path) = path.strip_prefix("./") {
        return known.contains(path);
    }
    let ending = format!("/{path}");
    known.contains(path) || known.iter().any(|file| file.ends_with(&ending))
}

/// A link is followed from the directory of its document.
fn beside(document: &str, link: &str) -> String {
    let mut parts: Vec<&str> = document.split('/').collect();
    parts.pop();
    for part in link.trim_end_matches('/').split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2).filter(|text| is_path(text))
}

fn linked(line: &str) -> impl Iterator<Item = &str> {
    let targets = line.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0));
    let paths = targets.map(|target| target.split_once('#').map_or(target, |(path, _)| path));
    paths.filter(|path| !path.is_empty() && path.chars().all(is_plain))
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "/._-".contains(c)
}

fn is_path(text: &str) -> bool {
    let plain = !text.is_empty() && text.chars().all(is_plain);
    let ends = [".rs", ".md", ".sql", ".toml", ".py", ".json"].iter().any(|ending| text.ends_with(ending));
    let begins = ["crates/", "docs/", "./"].iter().any(|beginning| text.starts_with(beginning));
    let elsewhere = ELSEWHERE.iter().any(|path| text.starts_with(path));
    plain && (ends || begins) && !elsewhere && !text.starts_with('.') | text.starts_with("./")
}

#[test]
fn a_path_that_leads_nowhere_is_found() {
    let zone = ("crates/refrain-core/src/time/zone.rs", "//! Why, see `docs/GONE.md`.\n");
    let page = |text| ("docs/PAGE.md", text);
    assert_eq!(super::planted(paths_exist, &[zone, page("in `zone.rs` and `grid.rs`")]).len(), 2);
    for clean in [
        "in `zone.rs`",
        "[map](PAGE.md#part), [site](https://example.org/a.md), [here](#part)",
        "[zone](../crates/refrain-core/src/time/zone.rs)",
        "`crates/refrain-core/src/`",
        "`refrain.toml`",
        "`a::b`, `1.5`",
    ] {
        assert_eq!(
            super::planted(paths_exist, &[zone, page(clean)]).len(),
            1,
            "{clean}: only the planted one"
        );
    }
    for broken in ["[map](GONE.md)", "run `./gone`", "run `./zone.rs`", "[zone](zone.rs)", "[up](../PAGE.md)"]
    {
        assert_eq!(
            super::planted(paths_exist, &[zone, page(broken)]).len(),
            2,
            "{broken}: and the planted one"
        );
    }
}
