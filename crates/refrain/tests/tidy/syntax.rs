//! What Rust code mentions and declares, read from its tokens.
//!
//! It reads tokens, not a syntax tree, because a tree ends where a macro begins, and much of a test and of `vec![…]`
//! is inside one. Comments and strings, including examples in documentation, contain neither paths nor names.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::File;

/// A path such as `std::fs::read`, or the name that an item was given, with its line.
pub(crate) struct Word {
    pub(crate) line: usize,
    pub(crate) text: String,
}

/// Every path of two words or more, and every import; `use a::{b, c}` mentions `a::b` and `a::c`.
pub(crate) fn paths(file: &File) -> Vec<Word> {
    let mut found = Vec::new();
    paths_in(tokens(file), "", &mut found);
    found
}

/// The names of functions, types, traits and modules, where they are declared.
pub(crate) fn names(file: &File) -> Vec<Word> {
    let mut found = Vec::new();
    names_in(tokens(file), &mut found);
    found
}

/// The names of types and traits that are declared with a visibility: `pub`, `pub(crate)`, `pub(super)`.
pub(crate) fn visible_types(file: &File) -> Vec<Word> {
    let mut found = Vec::new();
    visible_types_in(tokens(file), &mut found);
    found
}

/// None if the file is not Rust; the rule on length reports a Rust file that cannot be parsed.
fn tokens(file: &File) -> TokenStream {
    if file.is(".rs") { file.text.parse().unwrap_or_default() } else { TokenStream::new() }
}

fn paths_in(tokens: TokenStream, prefix: &str, found: &mut Vec<Word>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut rest = tokens.as_slice();
    let mut imports = !prefix.is_empty();
    while let [token, after @ ..] = rest {
        rest = after;
        match token {
            TokenTree::Ident(keyword) if keyword == "use" => imports = true,
            TokenTree::Ident(keyword) if keyword == "as" && imports => {
                rest = after.get(1..).unwrap_or_default();
            }
            TokenTree::Ident(first) => {
                let (path, after) = whole_path(format!("{prefix}{first}"), after);
                rest = after;
                match rest {
                    [TokenTree::Group(tree), after @ ..] if path.ends_with("::") => {
                        rest = after;
                        paths_in(tree.stream(), &path, found);
                    }
                    _ if imports || path.contains("::") => {
                        let text = path.trim_end_matches("::").to_owned();
                        found.push(Word { line: first.span().start().line, text });
                    }
                    _ => {}
                }
            }
            TokenTree::Group(group) => paths_in(group.stream(), "", found),
            // `use<'a>` on a returned type imports nothing.
            TokenTree::Punct(end) if [';', '<'].contains(&end.as_char()) => imports = false,
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}

/// Appends `::b::c` to the path; it ends in `::` if a group of imports follows.
fn whole_path(mut path: String, mut rest: &[TokenTree]) -> (String, &[TokenTree]) {
    while let [TokenTree::Punct(one), TokenTree::Punct(two), after @ ..] = rest
        && (one.as_char(), two.as_char()) == (':', ':')
    {
        match after {
            [TokenTree::Ident(next), after @ ..] => {
                path = format!("{path}::{next}");
                rest = after;
            }
            [TokenTree::Group(tree), ..] if tree.delimiter() == Delimiter::Brace => {
                return (path + "::", after);
            }
            _ => break,
        }
    }
    (path, rest)
}

fn names_in(tokens: TokenStream, found: &mut Vec<Word>) {
    let mut declares = false;
    for token in tokens {
        match &token {
            TokenTree::Ident(name) if declares => {
                found.push(Word { line: name.span().start().line, text: name.to_string() });
            }
            TokenTree::Group(group) => names_in(group.stream(), found),
            _ => {}
        }
        declares = matches!(&token, TokenTree::Ident(word)
            if ["fn", "struct", "enum", "trait", "type", "mod"].iter().any(|keyword| word == keyword));
    }
}

fn visible_types_in(tokens: TokenStream, found: &mut Vec<Word>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    for (at, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Group(group) => visible_types_in(group.stream(), found),
            TokenTree::Ident(word) if word == "pub" => {
                let after = tokens.get(at + 1..).unwrap_or_default();
                let after = match after {
                    [TokenTree::Group(to), after @ ..] if to.delimiter() == Delimiter::Parenthesis => after,
                    after => after,
                };
                if let [TokenTree::Ident(keyword), TokenTree::Ident(name), ..] = after
                    && ["struct", "enum", "union", "trait", "type"].iter().any(|word| keyword == word)
                {
                    found.push(Word { line: name.span().start().line, text: name.to_string() });
                }
            }
            _ => {}
        }
    }
}

#[test]
fn paths_are_found_however_they_are_written() {
    let mentioned = |text: &str| {
        let paths = paths(&File::new("a.rs", text));
        paths.into_iter().map(|path| format!("{} {}", path.line, path.text)).collect::<Vec<_>>()
    };
    let imports =
        "use std::{\n    fmt,\n    fs::{self, File},\n    io as disk,\n};\nuse tokio as t;\nuse ::a::*;\n";
    assert_eq!(
        mentioned(imports),
        ["2 std::fmt", "3 std::fs::self", "3 std::fs::File", "4 std::io", "6 tokio", "7 a"]
    );
    let code = "fn f(a: &b::C) -> d::E {\n    assert!(g::<h::I>(a.j) == k::l!());\n}\n#[m::n]\nstruct O;\n";
    assert_eq!(mentioned(code), ["1 b::C", "1 d::E", "2 h::I", "2 k::l", "4 m::n"]);
    assert_eq!(mentioned("fn f() -> impl A + use<> {}\nfn g() {}\nuse b as c;"), ["3 b"]);
    assert!(mentioned("//! `a::b`\n/// c::d\nconst E: &str = \"f::g\"; // h::i\n").is_empty());
}

#[test]
fn names_are_found_where_they_are_declared() {
    let code = "mod a {\n    pub(crate) const fn b<C>(d: fn()) {}\n}\n\
                proptest! {\n    fn e(f in g()) {}\n}\ntype H = I;\n";
    let names = names(&File::new("a.rs", code));
    let names: Vec<String> = names.into_iter().map(|name| format!("{} {}", name.line, name.text)).collect();
    assert_eq!(names, ["1 a", "2 b", "5 e", "7 H"]);
}
