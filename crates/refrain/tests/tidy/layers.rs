//! Dependencies point one way: `refrain-cli → refrain → refrain-core`, skins to the facade, engine to store.

use super::{File, Finding, tokens};

/// Where it is forbidden (crate, and beginning of the path inside it), what, and why.
const FORBIDDEN: [(&str, &str, &str, &str); 14] = [
    ("refrain-core", "", "tokio", "the core does no I/O"),
    ("refrain-core", "", "sqlx", "the core does no I/O"),
    ("refrain-core", "", "std::fs", "the core does no I/O"),
    ("refrain-core", "", "std::net", "the core does no I/O"),
    ("refrain-core", "", "std::process", "the core does no I/O"),
    ("refrain-core", "", "std::env", "the core does no I/O"),
    ("refrain-core", "", "std::thread", "the core does no I/O"),
    ("refrain", "", "clap", "the library knows no command line"),
    ("refrain", "store", "crate::engine", "the store does not know who drives it"),
    ("refrain", "ledger", "crate::engine", "the ledger does not know who drives it"),
    ("refrain-cli", "", "sqlx", "the binary talks to the facade"),
    ("refrain-cli", "commands", "refrain::store", "a command is a skin over the facade"),
    ("refrain-cli", "http", "refrain::store", "a route is a skin over the facade"),
    ("refrain-cli", "dashboard", "refrain::store", "a page is a skin over the facade"),
];

/// Which of our crates may depend on which.
const ALLOWED: [(&str, &[&str]); 3] =
    [("refrain-core", &[]), ("refrain", &["refrain-core"]), ("refrain-cli", &["refrain"])];

pub(crate) fn point_one_way(files: &[File]) -> Vec<Finding> {
    let imports = files.iter().flat_map(forbidden_imports);
    imports.chain(files.iter().flat_map(forbidden_dependencies)).collect()
}

/// The core is handed the time: reading a clock there would make a decision that cannot be made again.
pub(crate) fn the_core_reads_no_clock(files: &[File]) -> Vec<Finding> {
    let core = files.iter().filter(|file| file.source_of("refrain-core").is_some());
    core.flat_map(|file| {
        let paths = tokens::paths(&file.text).unwrap_or_default();
        paths.into_iter().filter(|(_, path)| path.ends_with("::now")).map(|(line, path)| Finding {
            path: file.path.clone(),
            line,
            rule: "clock",
            what: format!("`{path}` reads a clock: take the time as an argument"),
        })
    })
    .collect()
}

fn forbidden_imports(file: &File) -> Vec<Finding> {
    let rules = FORBIDDEN.iter().filter_map(|(name, inside, import, why)| {
        let within = file.source_of(name)?.strip_prefix(inside)?;
        (inside.is_empty() || within.starts_with(['/', '.'])).then_some((import, why))
    });
    let rules: Vec<_> = rules.collect();
    let paths = if rules.is_empty() { Vec::new() } else { tokens::paths(&file.text).unwrap_or_default() };
    let used = paths.into_iter().map(|(line, path)| (line, from_the_crate(&file.path, path)));
    used.filter_map(|(line, path)| Some((line, rules.iter().find(|(import, _)| **import == path)?)))
        .map(|(line, (import, why))| Finding {
            path: file.path.clone(),
            line,
            rule: "layers",
            what: format!("`{import}` may not be used here: {why}"),
        })
        .collect()
}

/// `super::super::engine` in `store/runs.rs` is `crate::engine`.
fn from_the_crate(file: &str, path: String) -> String {
    let Some((_, inside)) = file.split_once("/src/") else { return path };
    let inside = inside.trim_end_matches(".rs").trim_end_matches("/mod");
    let mut module: Vec<&str> = inside.split('/').collect();
    let mut rest = path.as_str();
    while let Some(after) = rest.strip_prefix("super::") {
        module.pop();
        rest = after;
    }
    if rest.len() == path.len() {
        path
    } else {
        ["crate"].into_iter().chain(module).chain([rest]).collect::<Vec<_>>().join("::")
    }
}

fn forbidden_dependencies(file: &File) -> Vec<Finding> {
    let Some((_, allowed)) =
        ALLOWED.iter().find(|(name, _)| file.path == format!("crates/{name}/Cargo.toml"))
    else {
        return Vec::new();
    };
    let ours = |line: &str| ALLOWED.map(|(name, _)| name).into_iter().find(|name| names_crate(line, name));
    file.lines()
        .filter_map(|(line, text)| Some((line, ours(text)?)))
        .filter(|(_, name)| !allowed.contains(name))
        .map(|(line, name)| Finding {
            path: file.path.clone(),
            line,
            rule: "layers",
            what: format!("this crate may not depend on {name}: the direction is cli → refrain → core"),
        })
        .collect()
}

fn names_crate(line: &str, name: &str) -> bool {
    line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['.', ' ', '=']))
}

#[test]
fn an_import_against_the_direction_is_found() {
    let core = "crates/refrain-core/src/tick.rs";
    let faults = [(
        core,
        "//! Why.\nuse tokio::time;\nfn f() {\n    std::fs::read(\"x\");\n}\nuse croner::tokio_like;\n",
    )];
    assert_eq!(super::planted(point_one_way, &faults), [format!("{core}:2"), format!("{core}:4")]);
    let store = "crates/refrain/src/store/runs.rs";
    assert_eq!(
        super::planted(point_one_way, &[(store, "use crate::engine::Worker;\n")]),
        [format!("{store}:1")]
    );
    for other in
        ["use super::super::engine;", "use crate::{engine::Worker, store};", "m!(crate::engine::f())"]
    {
        assert_eq!(super::planted(point_one_way, &[(store, other)]), [format!("{store}:1")], "{other}");
    }
    let storefront = "crates/refrain/src/storefront.rs";
    let engine = "crates/refrain/src/engine/worker.rs";
    assert!(
        super::planted(point_one_way, &[(storefront, "use crate::engine;"), (core, "use std::{fmt, str};")])
            .is_empty()
    );
    assert!(
        super::planted(point_one_way, &[(engine, "use crate::store::runs;\nuse tokio::time;\n")]).is_empty()
    );
}

#[test]
fn a_clock_that_is_read_in_the_core_is_found() {
    let core = "crates/refrain-core/src/tick.rs";
    let found =
        super::planted(the_core_reads_no_clock, &[(core, "//! Why.\nlet now = jiff::Zoned::now();\n")]);
    assert_eq!(found, [format!("{core}:2")]);
    let clean = [(core, "let due = clock.now();"), ("crates/refrain/src/engine.rs", "Instant::now()")];
    assert!(super::planted(the_core_reads_no_clock, &clean).is_empty());
}

#[test]
fn a_dependency_against_the_direction_is_found() {
    let core = "crates/refrain-core/Cargo.toml";
    let faults = [(core, "[dependencies]\nrefrain.workspace = true\njiff.workspace = true\n")];
    assert_eq!(super::planted(point_one_way, &faults), [format!("{core}:2")]);
    let clean = [("crates/refrain/Cargo.toml", "[dependencies]\nrefrain-core.workspace = true\n")];
    assert!(super::planted(point_one_way, &clean).is_empty());
}
