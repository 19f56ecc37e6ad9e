//! Dependencies point one way: `refrain-cli → refrain → refrain-core`, skins to the facade, engine to store.

use super::{File, Finding};

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

fn forbidden_imports(file: &File) -> Vec<Finding> {
    let rules = FORBIDDEN.iter().filter(|(name, inside, ..)| {
        file.source_of(name).is_some_and(|path| inside.is_empty() || path.starts_with(inside))
    });
    rules
        .flat_map(|(_, _, import, why)| {
            let code = file.lines().filter(|(_, line)| !line.trim_start().starts_with("//"));
            code.filter(|(_, line)| mentions(line, import)).map(move |(line, _)| Finding {
                path: file.path.clone(),
                line,
                rule: "layers",
                what: format!("`{import}` may not be used here: {why}"),
            })
        })
        .collect()
}

/// Whether a path stands in a line as such, not as the end of a longer word.
fn mentions(line: &str, import: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(import).any(|(at, _)| {
        let before = line.get(..at).and_then(|text| text.chars().next_back());
        let after = line.get(at + import.len()..).and_then(|text| text.chars().next());
        !before.is_some_and(|c| is_word(c) || c == ':')
            && after.is_some_and(|c| c == ':' || c == ';' || c == ',')
    })
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
    let engine = "crates/refrain/src/engine/worker.rs";
    assert!(
        super::planted(point_one_way, &[(engine, "use crate::store::runs;\nuse tokio::time;\n")]).is_empty()
    );
}

#[test]
fn a_dependency_against_the_direction_is_found() {
    let core = "crates/refrain-core/Cargo.toml";
    let faults = [(core, "[dependencies]\nrefrain.workspace = true\njiff.workspace = true\n")];
    assert_eq!(super::planted(point_one_way, &faults), [format!("{core}:2")]);
    let clean = [("crates/refrain/Cargo.toml", "[dependencies]\nrefrain-core.workspace = true\n")];
    assert!(super::planted(point_one_way, &clean).is_empty());
}
