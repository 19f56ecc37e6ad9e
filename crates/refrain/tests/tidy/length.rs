//! Files of at most 400 lines, functions of at most 70: what is longer has two subjects.

use syn::visit::{self, Visit};

use super::{File, Finding};

const FILE_LINES_MAX: usize = 400;
const FUNCTION_LINES_MAX: usize = 70;

pub(crate) fn is_bounded(files: &[File]) -> Vec<Finding> {
    let written_by_hand = |file: &&File| file.is(".rs") || file.is(".sql") || !file.path.contains('.');
    let long_files = files.iter().filter(written_by_hand).filter_map(|file| {
        let lines = file.text.lines().count();
        (lines > FILE_LINES_MAX && !file.path.starts_with("LICENSE")).then(|| Finding {
            path: file.path.clone(),
            line: FILE_LINES_MAX + 1,
            rule: "length",
            what: format!("the file has {lines} lines, more than {FILE_LINES_MAX}: split it by subject"),
        })
    });
    long_files.chain(files.iter().filter(|file| file.is(".rs")).flat_map(long_functions)).collect()
}

fn long_functions(file: &File) -> Vec<Finding> {
    let mut functions = Functions { path: &file.path, findings: Vec::new() };
    match syn::parse_file(&file.text) {
        Ok(parsed) => functions.visit_file(&parsed),
        Err(error) => functions.find(1, format!("the file cannot be read as Rust: {error}")),
    }
    functions.findings
}

struct Functions<'f> {
    path: &'f str,
    findings: Vec<Finding>,
}

impl Functions<'_> {
    fn find(&mut self, line: usize, what: String) {
        self.findings.push(Finding { path: self.path.to_owned(), line, rule: "length", what });
    }

    fn measure(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let (first, last) = (signature.fn_token.span.start().line, block.brace_token.span.close().end().line);
        let lines = last - first + 1;
        if lines > FUNCTION_LINES_MAX {
            let name = &signature.ident;
            self.find(first, format!("`{name}` has {lines} lines, more than {FUNCTION_LINES_MAX}: split it"));
        }
    }
}

impl<'ast> Visit<'ast> for Functions<'_> {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.measure(&function.sig, &function.block);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.measure(&function.sig, &function.block);
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        if let Some(block) = &function.default {
            self.measure(&function.sig, block);
        }
        visit::visit_trait_item_fn(self, function);
    }
}

#[test]
fn files_and_functions_that_are_too_long_are_found() {
    let body = |lines: usize| format!("fn f() {{\n{}}}\n", "    g();\n".repeat(lines - 2));
    assert!(super::planted(is_bounded, &[("a.rs", &body(70))]).is_empty());
    assert_eq!(super::planted(is_bounded, &[("a.rs", &body(71))]), ["a.rs:1"]);
    let method = format!("struct S;\nimpl S {{\n{}}}\n", body(71));
    assert_eq!(super::planted(is_bounded, &[("a.rs", &method)]), ["a.rs:3"]);
    assert_eq!(super::planted(is_bounded, &[("a.rs", &"// x\n".repeat(401))]), ["a.rs:401"]);
    assert!(super::planted(is_bounded, &[("a.rs", &"// x\n".repeat(400))]).is_empty());
    assert_eq!(super::planted(is_bounded, &[("test", &"echo\n".repeat(401))]), ["test:401"]);
}
