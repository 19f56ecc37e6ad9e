//! Files of at most 400 lines, functions of at most 70: what is longer has two subjects.

use super::tokens::{self, Function};
use super::{File, Finding};

const FILE_LINES_MAX: usize = 400;
const FUNCTION_LINES_MAX: usize = 70;

pub(crate) fn is_bounded(files: &[File]) -> Vec<Finding> {
    let is_source = |file: &&File| {
        [".rs", ".sql", ".py", ".sh"].iter().any(|end| file.is(end)) || file.text.starts_with("#!/")
    };
    let long_files = files.iter().filter(is_source).filter_map(|file| {
        let lines = file.text.lines().count();
        (lines > FILE_LINES_MAX).then(|| Finding {
            path: file.path.clone(),
            line: FILE_LINES_MAX + 1,
            rule: "length",
            what: format!("the file has {lines} lines, more than {FILE_LINES_MAX}: split it by subject"),
        })
    });
    long_files.chain(files.iter().filter(|file| file.is(".rs")).flat_map(long_functions)).collect()
}

fn long_functions(file: &File) -> Vec<Finding> {
    let find = |line, what| Finding { path: file.path.clone(), line, rule: "length", what };
    let functions = match tokens::functions(&file.text) {
        Ok(functions) => functions,
        Err(fault) => return vec![find(1, fault)],
    };
    let lines = |function: &Function| function.last - function.first + 1;
    functions
        .iter()
        .filter(|function| lines(function) > FUNCTION_LINES_MAX)
        .map(|function| {
            let (name, lines) = (&function.name, lines(function));
            find(
                function.first,
                format!("`{name}` has {lines} lines, more than {FUNCTION_LINES_MAX}: split it"),
            )
        })
        .collect()
}

#[test]
fn what_is_too_long_is_found() {
    let body = |lines: usize| format!("fn f() {{\n{}}}\n", "    g();\n".repeat(lines - 2));
    assert!(super::planted(is_bounded, &[("a.rs", &body(70))]).is_empty());
    assert_eq!(super::planted(is_bounded, &[("a.rs", &body(71))]), ["a.rs:1"]);
    let method = format!("struct S;\nimpl S {{\n{}}}\n", body(71));
    assert_eq!(super::planted(is_bounded, &[("a.rs", &method)]), ["a.rs:3"]);
    let story = format!("both_databases! {{\n{}}}\n", body(71));
    assert_eq!(super::planted(is_bounded, &[("a.rs", &story)]), ["a.rs:2"]);
    assert_eq!(super::planted(is_bounded, &[("a.rs", "fn f( {")]), ["a.rs:1"]);
    assert_eq!(super::planted(is_bounded, &[("a.rs", &"// x\n".repeat(401))]), ["a.rs:401"]);
    assert!(super::planted(is_bounded, &[("a.rs", &"// x\n".repeat(400))]).is_empty());
    assert_eq!(
        super::planted(is_bounded, &[("test", &format!("#!/bin/sh\n{}", "echo\n".repeat(400)))]),
        ["test:401"]
    );
}
