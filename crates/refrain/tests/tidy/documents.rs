//! Documents mention only what exists: a path in backticks or in a link must lead somewhere.

use std::collections::BTreeSet;

use super::{File, Finding};

/// Files and directories that are there at run time, or are the user's.
const ELSEWHERE: [&str; 4] = ["refrain.toml", "jobs/", ".refrain/", "target/"];

pub(crate) fn paths_exist(files: &[File]) -> Vec<Finding> {
    let known = known_paths(files);
    let mentions = files.iter().flat_map(|file| {
        let text = move |(line, text): (usize, &str)| (line, text.to_owned());
        let documented: Vec<(usize, String)> = if file.is(".md") {
            file.lines().map(text).collect()
        } else if file.is(".rs") {
            file.lines().filter(|(_, line)| line.trim_start().starts_with("//!")).map(text).collect()
        } else {
            Vec::new()
        };
        documented.into_iter().flat_map(move |(line, text)| {
            paths_in(&text).into_iter().map(move |path| (file, line, path)).collect::<Vec<_>>()
        })
    });
    mentions
        .filter(|(file, _, path)| !exists(&known, &file.path, path))
        .map(|(file, line, path)| Finding {
            path: file.path.clone(),
            line,
            rule: "documents",
            what: format!("`{path}` does not exist: mend the text or the tree"),
        })
        .collect()
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

/// A path may be given from the root, from the document's own directory, or by its end, as in `zone.rs`.
fn exists(known: &BTreeSet<String>, document: &str, path: &str) -> bool {
    let path = path.trim_start_matches("./").trim_end_matches('/');
    let beside = document.rsplit_once('/').map_or(path.to_owned(), |(here, _)| format!("{here}/{path}"));
    let ending = format!("/{path}");
    known.contains(path) || known.contains(&beside) || known.iter().any(|file| file.ends_with(&ending))
}

fn paths_in(line: &str) -> Vec<String> {
    let quoted = line.split('`').skip(1).step_by(2).map(str::to_owned);
    let linked = line
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split_once(')'))
        .map(|(target, _)| target.split('#').next().unwrap_or_default().to_owned());
    quoted.chain(linked).filter(|text| is_path(text)).collect()
}

fn is_path(text: &str) -> bool {
    let plain = !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
    let ends = [".rs", ".md", ".sql", ".toml", ".py", ".json"].iter().any(|ending| text.ends_with(ending));
    let begins = ["crates/", "docs/", "./"].iter().any(|beginning| text.starts_with(beginning));
    let elsewhere = ELSEWHERE.iter().any(|path| text.starts_with(path));
    plain && (ends || begins) && !elsewhere && !text.starts_with('.') | text.starts_with("./")
}

#[test]
fn a_path_that_leads_nowhere_is_found() {
    let zone = ("crates/refrain-core/src/zone.rs", "//! Why, see `docs/GONE.md`.\n");
    let page = |text| ("docs/PAGE.md", text);
    assert_eq!(super::planted(paths_exist, &[zone, page("in `zone.rs` and `grid.rs`")]).len(), 2);
    for clean in [
        "in `zone.rs`",
        "[map](PAGE.md#part)",
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
    assert_eq!(super::planted(paths_exist, &[page("[map](GONE.md)"), page("run `./gone`")]).len(), 2);
}
