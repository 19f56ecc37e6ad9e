//! Rust as tokens: enough to see functions and paths, and to see them inside macros too.

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};

/// A function with a body, from its first line to its last.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) first: usize,
    pub(crate) last: usize,
}

/// The functions of a text, nested ones too; an error if it is no Rust.
pub(crate) fn functions(text: &str) -> Result<Vec<Function>, String> {
    let mut found = Vec::new();
    collect_functions(read(text)?, &mut found);
    Ok(found)
}

/// The paths of a text with their lines, and each beginning of one: `use a::{b, c::d}` has `a`, `a::b`, `a::c`
/// and `a::c::d`.
pub(crate) fn paths(text: &str) -> Result<Vec<(usize, String)>, String> {
    let mut found = Vec::new();
    collect_paths(read(text)?, "", &mut found);
    Ok(found)
}

fn read(text: &str) -> Result<TokenStream, String> {
    text.parse().map_err(|error| format!("it cannot be read as Rust: {error}"))
}

fn collect_functions(tokens: TokenStream, found: &mut Vec<Function>) {
    let mut keyword = None;
    let mut signature = None;
    for token in tokens {
        let line = token.span().start().line;
        match token {
            TokenTree::Ident(word) if word == "fn" => keyword = Some(line),
            TokenTree::Ident(name) => {
                signature = keyword.take().map(|first| (name.to_string(), first)).or(signature);
            }
            TokenTree::Group(group) => {
                if group.delimiter() == Delimiter::Brace
                    && let Some((name, first)) = signature.take()
                {
                    found.push(Function { name, first, last: group.span_close().end().line });
                }
                collect_functions(group.stream(), found);
            }
            TokenTree::Punct(mark) if mark.as_char() == ';' => signature = None,
            TokenTree::Punct(_) => keyword = None,
            TokenTree::Literal(_) => {}
        }
    }
}

fn collect_paths(tokens: TokenStream, parent: &str, found: &mut Vec<(usize, String)>) {
    let mut path = String::new();
    let mut colons = 0;
    for token in tokens {
        let line = token.span().start().line;
        match token {
            TokenTree::Punct(mark) if mark.as_char() == ':' && (colons == 1 || is_joint(&mark)) => {
                colons += 1
            }
            TokenTree::Ident(name) => {
                let before = if colons == 2 { path.as_str() } else { parent };
                path = if before.is_empty() { name.to_string() } else { format!("{before}::{name}") };
                found.push((line, path.clone()));
                colons = 0;
            }
            TokenTree::Group(group) => {
                let within = if colons == 2 { path.as_str() } else { "" };
                collect_paths(group.stream(), within, found);
                (path, colons) = (String::new(), 0);
            }
            _ => (path, colons) = (String::new(), 0),
        }
    }
}

fn is_joint(mark: &proc_macro2::Punct) -> bool {
    mark.spacing() == Spacing::Joint
}

#[test]
fn functions_are_seen_in_modules_and_in_macros() {
    let text = "mod a {\n    pub fn one() -> u8 {\n        1\n    }\n}\ntrait T {\n    fn none(&self);\n}\n\
                both! {\n    async fn two(x: [u8; 2]) {\n    }\n}\nconst F: fn(u8) = |_| {};\n";
    let names: Vec<(String, usize, usize)> =
        functions(text).unwrap().into_iter().map(|f| (f.name, f.first, f.last)).collect();
    assert_eq!(names, [("one".to_owned(), 2, 4), ("two".to_owned(), 10, 11)]);
    assert!(functions("fn one( {").is_err());
}

#[test]
fn paths_are_seen_in_groups_and_in_code() {
    let found = |text: &str| paths(text).unwrap().into_iter().map(|(_, path)| path).collect::<Vec<_>>();
    assert_eq!(found("use a::{b, c::d};"), ["use", "a", "a::b", "a::c", "a::c::d"]);
    assert_eq!(found("x: ::a::b"), ["x", "a", "a::b"]);
    assert_eq!(found("m!(a::b(c))"), ["m", "a", "a::b", "c"]);
    assert_eq!(paths("//! a::b\n\"a::b\";\n/* a::b */ c::d;").unwrap().last(), Some(&(3, "c::d".to_owned())));
}
