//! Modules of a crate use only those below them: the whole graph, not single forbidden edges.
//!
//! Each crate's modules stand in rows, the lowest first. A module may use those of the rows below its own. Those of
//! one row do not use each other, except in a row that allows it. A new module must be put into a row; ARCHITECTURE
//! draws the same rows.

use std::collections::BTreeMap;

use super::{File, Finding, syntax};

/// A crate and its rows, the lowest first.
struct Graph {
    package: &'static str,
    root: &'static str,
    rows: &'static [Row],
}

struct Row {
    modules: &'static [&'static str],
    /// Whether these may use each other.
    together: bool,
}

const fn row(modules: &'static [&'static str]) -> Row {
    Row { modules, together: false }
}

const fn together(modules: &'static [&'static str]) -> Row {
    Row { modules, together: true }
}

const GRAPHS: [Graph; 2] = [
    Graph {
        package: "refrain",
        root: "lib.rs",
        rows: &[
            row(&["failpoint", "lease", "process"]),
            row(&["database", "supervision"]),
            row(&["schemas", "user_database"]),
            row(&["store"]),
            row(&["ledger"]),
            row(&["run"]),
            row(&["bind", "error", "job"]),
            row(&["engine", "publish"]),
            row(&["action", "effect"]),
            row(&["project"]),
            row(&["refrain"]),
            row(&["admin", "effects", "host", "testing"]),
        ],
    },
    Graph {
        package: "refrain-cli",
        root: "main.rs",
        rows: &[
            together(&["exit", "output", "problems"]),
            row(&[
                "arguments",
                "context",
                "decision_line",
                "doubts",
                "left_out",
                "person",
                "progress",
                "report",
                "run_line",
                "signals",
            ]),
            row(&["health", "reload", "run_report"]),
            // `man` and `completions` print the definition of the command line, which contains all commands.
            together(&["cli", "commands"]),
            row(&["log"]),
        ],
    },
];

impl Graph {
    fn row(&self, module: &str) -> Option<usize> {
        self.rows.iter().position(|row| row.modules.contains(&module))
    }

    /// Why one module may not use another; none if it may.
    fn objection(&self, from: usize, module: &str, to: &str) -> Option<String> {
        let at = self.row(to)?;
        let allowed = module == to || at < from || (at == from && self.rows.get(at)?.together);
        let how = if at == from { "stands beside it" } else { "stands above it" };
        (!allowed)
            .then(|| format!("`{module}` may not use `{to}`, which {how}: move what both need below them"))
    }
}

pub(crate) fn use_only_those_below(files: &[File]) -> Vec<Finding> {
    GRAPHS.iter().flat_map(|graph| of_crate(graph, files)).collect()
}

fn of_crate(graph: &Graph, files: &[File]) -> Vec<Finding> {
    let sources = files.iter().filter_map(|file| Some((file, file.source_of(graph.package)?)));
    let sources: Vec<(&File, &str)> = sources.collect();
    let Some((root, _)) = sources.iter().find(|(_, path)| *path == graph.root) else { return Vec::new() };
    let exported = exported(root, graph);
    let mut findings = Vec::new();
    for (file, path) in sources.iter().filter(|(_, path)| *path != graph.root) {
        let module = path.split(['/', '.']).next().unwrap_or_default();
        let finding = |line, what| Finding { path: file.path.clone(), line, rule: "modules", what };
        let Some(row) = graph.row(module) else {
            findings
                .push(finding(1, format!("`{module}` stands in no row: put it into one in tidy/modules.rs")));
            continue;
        };
        for reference in references(file, path) {
            let what = match exported.get(reference.name.as_str()) {
                _ if reference.name == "*" || reference.name == "self" => {
                    Some("the whole crate is imported: name what is used".to_owned())
                }
                Some(home) => graph.objection(row, module, home),
                None => graph.objection(row, module, &reference.name),
            };
            findings.extend(what.map(|what| finding(reference.line, what)));
        }
    }
    let there = |module: &str| {
        let (file, folder) = (format!("{module}.rs"), format!("{module}/"));
        sources.iter().any(|(_, path)| *path == file || path.starts_with(&folder))
    };
    let gone = graph.rows.iter().flat_map(|row| row.modules).filter(|module| !there(module));
    findings.extend(gone.map(|module| Finding {
        path: root.path.clone(),
        line: 1,
        rule: "modules",
        what: format!("there is no module `{module}`: take it out of its row in tidy/modules.rs"),
    }));
    findings
}

/// What the root of the crate exports under another path: `crate::Ledger` leads into `ledger`.
fn exported(root: &File, graph: &Graph) -> BTreeMap<String, &'static str> {
    let modules: Vec<&'static str> = graph.rows.iter().flat_map(|row| row.modules).copied().collect();
    let paths = syntax::paths(root).into_iter();
    let exports = paths.filter_map(|path| {
        let (first, rest) = path.text.split_once("::")?;
        let home = modules.iter().find(|module| **module == first)?;
        Some((rest.rsplit("::").next()?.to_owned(), *home))
    });
    exports.filter(|(name, _)| !modules.contains(&name.as_str())).collect()
}

struct Reference {
    line: usize,
    /// The first name after the root of the crate; `*` if everything is imported.
    name: String,
}

/// Every path that leads to the root of the crate, by `crate::` or by as many `super::` as the file is deep. In a
/// module within the file one more is needed, so a path there may be taken for one that leads further up than it
/// does.
fn references(file: &File, path: &str) -> Vec<Reference> {
    let depth = path.trim_end_matches(".rs").split('/').count();
    let to_root = |text: &str| {
        let mut parts = text.split("::").skip_while(|part| *part == "self").peekable();
        let mut ups = 0;
        while parts.next_if(|part| *part == "super").is_some() {
            ups += 1;
        }
        let from_crate = parts.next_if(|part| *part == "crate").is_some();
        let name = parts.next();
        // `use super::*` in a test module within the file leads to the file, not to the root.
        (from_crate || (ups >= depth && name.is_some())).then(|| name.unwrap_or("*").to_owned())
    };
    let paths = syntax::paths(file).into_iter();
    paths.filter_map(|path| Some(Reference { line: path.line, name: to_root(&path.text)? })).collect()
}

/// A crate with a module for each name of its rows, and these additional files.
#[cfg(test)]
fn found(extra: &[(&str, &str)]) -> Vec<String> {
    let [graph, _] = &GRAPHS;
    let root = "crates/refrain/src/lib.rs".to_owned();
    let mut files =
        vec![(root, "//! Why.\npub use engine::settings::Settings;\npub use store::StoreError;\n")];
    for module in graph.rows.iter().flat_map(|row| row.modules) {
        files.push((format!("crates/refrain/src/{module}/x.rs"), "//! Why.\n"));
    }
    files.extend(extra.iter().map(|(path, text)| (format!("crates/refrain/src/{path}"), *text)));
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
    super::planted(use_only_those_below, &files)
}

#[test]
fn an_edge_upwards_is_found_however_it_is_written() {
    for (path, fault) in [
        ("store/claim.rs", "use crate::engine::Worker;"),
        ("store/claim.rs", "use crate::{engine, database};"),
        ("store/claim.rs", "use super::super::ledger;"),
        ("store/claim.rs", "fn f() { crate::run::leaving::settle(); }"),
        ("store/claim.rs", "fn f(settings: crate::Settings) {}"),
        ("store/claim.rs", "use crate::*;"),
        ("store.rs", "use super::engine;"),
        ("ledger/apply/trial.rs", "use super::super::super::action;"),
        ("bind/values.rs", "use crate::job::Job;"),
        ("lease.rs", "fn f() { assert!(crate::store::is_held()); }"),
        ("project.rs", "macro_rules! m { () => { $crate::refrain::Refrain } }"),
    ] {
        assert_eq!(found(&[(path, fault)]), [format!("crates/refrain/src/{path}:1")], "{fault}");
    }
}

#[test]
fn an_edge_downwards_and_one_within_a_module_are_clean() {
    for (path, clean) in [
        ("store/claim.rs", "use crate::database::{Database, lease};"),
        ("store/claim.rs", "use super::error::Error; use super::{engine, run_row};"),
        ("store/claim.rs", "fn f() -> Result<(), crate::StoreError> {}"),
        ("lease.rs", "mod tests { use super::*; }"),
        ("ledger/apply/trial.rs", "use super::super::action;"),
        ("refrain/run.rs", "use crate::engine::Engine; use crate::refrain::run;"),
    ] {
        assert!(found(&[(path, clean)]).is_empty(), "{clean}");
    }
}

#[test]
fn a_module_in_no_row_and_a_row_of_no_module_are_found() {
    let stray = "crates/refrain/src/stray.rs";
    assert_eq!(found(&[("stray.rs", "//! Why.\n")]), [format!("{stray}:1")]);
    let alone = [("crates/refrain/src/lib.rs", "//! Why.\n"), ("crates/refrain/src/store.rs", "//! Why.\n")];
    let [graph, _] = &GRAPHS;
    let others = graph.rows.iter().flat_map(|row| row.modules).count() - 1;
    assert_eq!(super::planted(use_only_those_below, &alone).len(), others);
}
