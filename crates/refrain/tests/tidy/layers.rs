//! Dependencies point one way: `refrain-cli → refrain → refrain-core`, commands and pages to the facade, engine to
//! store.

use super::{File, Finding, syntax};

/// Where it is forbidden (crate, and beginning of the path inside it), what is forbidden, and why.
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

/// The core gets the time from outside, through one file.
const CLOCKS: [&str; 4] = ["Timestamp::now", "Zoned::now", "SystemTime::now", "Instant::now"];
const CLOCK_DOOR: &str = "time/clock.rs";

/// Which of our crates may depend on which.
const ALLOWED: [(&str, &[&str]); 5] = [
    ("refrain-core", &[]),
    ("refrain", &["refrain-core"]),
    ("refrain-cli", &["refrain"]),
    ("refrain-harness", &["refrain", "refrain-harness-macros"]),
    ("refrain-harness-macros", &[]),
];

/// Crates that only tests may depend on.
const HARNESS: &str = "refrain-harness";

pub(crate) fn point_one_way(files: &[File]) -> Vec<Finding> {
    let paths = files.iter().flat_map(forbidden_paths);
    paths.chain(files.iter().flat_map(forbidden_dependencies)).collect()
}

fn forbidden_paths(file: &File) -> Vec<Finding> {
    let rules: Vec<_> = FORBIDDEN
        .iter()
        .filter(|(name, inside, ..)| file.source_of(name).is_some_and(|path| path.starts_with(inside)))
        .collect();
    let timeless = file.source_of("refrain-core").is_some_and(|path| path != CLOCK_DOOR);
    let reason = |path: &str| {
        let forbidden = rules.iter().find(|(_, _, module, _)| is_in(path, module)).map(|(.., why)| *why);
        let clock = timeless && CLOCKS.iter().any(|clock| is_at_end(path, clock));
        forbidden.or(clock.then_some("time comes in from outside, as an argument or a `Clock`"))
    };
    let paths = syntax::paths(file).into_iter();
    paths
        .filter_map(|path| Some((reason(&path.text)?, path)))
        .map(|(why, path)| Finding {
            path: file.path.clone(),
            line: path.line,
            rule: "layers",
            what: format!("`{}` may not be used here: {why}", path.text),
        })
        .collect()
}

/// Whether a path leads into a module. The crate's own root can be written in many ways, or not at all after `use
/// super::*`.
fn is_in(path: &str, module: &str) -> bool {
    let (path, module) = match module.strip_prefix("crate::") {
        Some(module) => (from_root(path), module),
        None => (path, module),
    };
    path.strip_prefix(module).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

fn from_root(path: &str) -> &str {
    let above = ["crate::", "self::", "super::"].iter().find_map(|root| path.strip_prefix(root));
    above.map_or(path, from_root)
}

fn is_at_end(path: &str, end: &str) -> bool {
    path.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with("::"))
}

/// A crate may name itself in its dev-dependencies: that is how its tests turn on a feature.
fn forbidden_dependencies(file: &File) -> Vec<Finding> {
    let Some((own, allowed)) =
        ALLOWED.iter().find(|(name, _)| file.path == format!("crates/{name}/Cargo.toml"))
    else {
        return Vec::new();
    };
    let ours = |line: &str| ALLOWED.map(|(name, _)| name).into_iter().find(|name| names_crate(line, name));
    let mut section = "";
    file.lines()
        .filter_map(|(line, text)| {
            section = if text.starts_with('[') { text } else { section };
            Some((line, section, ours(text)?))
        })
        .filter(|(_, section, name)| *section != "[dev-dependencies]" || (name != own && *name != HARNESS))
        .map(|(line, _, name)| (line, name))
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
    let core = "crates/refrain-core/src/time/tick.rs";
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
    let engine = "crates/refrain/src/engine/worker.rs";
    assert!(
        super::planted(point_one_way, &[(engine, "use crate::store::runs;\nuse tokio::time;\n")]).is_empty()
    );
}

#[test]
fn a_forbidden_path_is_found_however_it_is_written() {
    let core = "crates/refrain-core/src/time/tick.rs";
    let store = "crates/refrain/src/store.rs";
    let ledger = "crates/refrain/src/ledger/entry.rs";
    for (path, fault) in [
        (core, "use std::{fmt, fs};"),
        (core, "use std::fs as disk;"),
        (core, "use tokio as runtime;"),
        (core, "fn f(file: &::std::fs::File) {}"),
        (core, "fn f() { assert!(std::env::args().len() > 1); }"),
        (core, "#[tokio::test] async fn f() {}"),
        (core, "fn f() -> Timestamp { jiff::Timestamp::now() }"),
        (core, "fn f(now: Option<Zoned>) -> Zoned { now.unwrap_or_else(Zoned::now) }"),
        (core, "fn f() { println!(\"{:?}\", SystemTime::now()); }"),
        (core, "fn f() { std::time::Instant::now(); }"),
        (store, "use crate::{engine, store};"),
        (store, "use super::engine;"),
        (store, "use super::{engine::Worker, ledger};"),
        (store, "fn f() -> super::super::engine::Worker {}"),
        (store, "use super::*; fn f(worker: engine::Worker) {}"),
        (ledger, "use crate::engine::*;"),
        ("crates/refrain-cli/src/http/runs.rs", "use refrain::{core, store::Runs};"),
    ] {
        assert_eq!(super::planted(point_one_way, &[(path, fault)]), [format!("{path}:1")], "{fault}");
    }
    for (path, clean) in [
        (core, "use std::{fmt, io::{self, Write as fs}};"),
        (core, "/// std::fs::read()\nfn f() { \"tokio::time\"; } // Instant::now()"),
        (core, "fn f(clock: &dyn Clock) { clock.now(); MyInstant::now(); }"),
        ("crates/refrain-core/src/time/clock.rs", "fn f() { Instant::now(); }"),
        ("crates/refrain-core/tests/retry.rs", "use std::fs;"),
        (store, "use crate::{store, ledger}; fn f(engine: &Engine) { engine.name(); }"),
        (store, "use other::engine;"),
        ("crates/refrain/src/action.rs", "use crate::engine;"),
    ] {
        assert!(super::planted(point_one_way, &[(path, clean)]).is_empty(), "{clean}");
    }
}

#[test]
fn a_dependency_against_the_direction_is_found() {
    let core = "crates/refrain-core/Cargo.toml";
    let faults = [(core, "[dependencies]\nrefrain.workspace = true\njiff.workspace = true\n")];
    assert_eq!(super::planted(point_one_way, &faults), [format!("{core}:2")]);
    let tested =
        "[dependencies]\nrefrain-core.workspace = true\n\n[dev-dependencies]\nrefrain = { path = \".\" }\n";
    assert!(super::planted(point_one_way, &[("crates/refrain/Cargo.toml", tested)]).is_empty());
    let support = "[dev-dependencies]\nrefrain-harness.workspace = true\n";
    assert!(super::planted(point_one_way, &[("crates/refrain/Cargo.toml", support)]).is_empty());
    let shipped = [("crates/refrain-cli/Cargo.toml", "[dependencies]\nrefrain-harness.workspace = true\n")];
    assert_eq!(super::planted(point_one_way, &shipped).len(), 1, "what tests stand on is not shipped");
    let itself = [("crates/refrain/Cargo.toml", "[dependencies]\nrefrain.workspace = true\n")];
    assert_eq!(super::planted(point_one_way, &itself).len(), 1, "not among what it is made of");
    let other = [(core, "[dev-dependencies]\nrefrain.workspace = true\n")];
    assert_eq!(super::planted(point_one_way, &other).len(), 1, "and no other crate either");
}
