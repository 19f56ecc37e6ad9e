//! What the library returns may grow: public enums and records are `#[non_exhaustive]`.
//!
//! Without it each new field or variant would break programs that use the library. A struct with a private field is left out:
//! no other crate can build it or take it apart.

use syn::{Attribute, Fields, Item, Visibility};

use super::{File, Finding};

/// Types that are exhaustive on purpose, and why.
const EXHAUSTIVE: [(&str, &str); 9] = [
    ("Claim", "a program must handle each answer"),
    ("FetchedPage", "a program builds it"),
    ("OutputPlace", "a program stores its two numbers and gives them back"),
    ("Command", "in a hidden module, for the harness"),
    ("Database", "behind the sealed trait `Backend`"),
    ("Transaction", "behind the sealed trait `Backend`"),
    ("Connection", "behind the sealed trait `Backend`"),
    ("Stage", "behind the sealed trait `Backend`"),
    ("Cell", "behind the sealed trait `Backend`"),
];

pub(crate) fn public_types_may_grow(files: &[File]) -> Vec<Finding> {
    let library = files.iter().filter(|file| file.path.starts_with("crates/refrain/src/") && file.is(".rs"));
    library.flat_map(fixed).collect()
}

/// The types of a file that can never get another field or variant.
fn fixed(file: &File) -> Vec<Finding> {
    // A file that cannot be read is found by the rule on length.
    let items = syn::parse_file(&file.text).map(|parsed| parsed.items).unwrap_or_default();
    let is_public = |visibility: &Visibility| matches!(visibility, Visibility::Public(_));
    let is_open = |fields: &Fields| !fields.is_empty() && fields.iter().all(|field| is_public(&field.vis));
    let names = items.iter().filter_map(|item| match item {
        Item::Enum(item) if is_public(&item.vis) => Some((&item.ident, &item.attrs)),
        Item::Struct(item) if is_public(&item.vis) && is_open(&item.fields) => {
            Some((&item.ident, &item.attrs))
        }
        _ => None,
    });
    let may_grow =
        |attributes: &[Attribute]| attributes.iter().any(|one| one.path().is_ident("non_exhaustive"));
    let is_listed = |name: &str| EXHAUSTIVE.iter().any(|(listed, _)| *listed == name);
    let fixed = names.filter(|(name, attributes)| !may_grow(attributes) && !is_listed(&name.to_string()));
    let finding = |name: &syn::Ident| Finding {
        path: file.path.clone(),
        line: name.span().start().line,
        rule: "growth",
        what: format!("`{name}` can never grow: make it #[non_exhaustive], or list it with the reason"),
    };
    fixed.map(|(name, _)| finding(name)).collect()
}

#[test]
fn a_record_or_an_enum_that_cannot_grow_is_found() {
    let found = |text: &str| super::planted(public_types_may_grow, &[("crates/refrain/src/a.rs", text)]);
    for fixed in ["pub struct Record { pub a: u8 }", "pub enum Answer { Yes }", "pub struct Pair(pub u8);"] {
        assert_eq!(found(fixed), ["crates/refrain/src/a.rs:1"], "{fixed}");
    }
    for fit in [
        "#[non_exhaustive] pub struct Record { pub a: u8 }",
        "#[derive(Debug)] #[non_exhaustive] pub enum Answer { Yes }",
        "pub struct Handle { pub a: u8, b: u8 }",
        "pub struct Unit;",
        "pub(crate) enum Answer { Yes }",
        "struct Record { pub a: u8 }",
        "pub enum Claim { Fresh }",
    ] {
        assert!(found(fit).is_empty(), "{fit}");
    }
}
