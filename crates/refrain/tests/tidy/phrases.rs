//! Plain English, as far as a machine can hold it: phrases that `docs/STYLE.md` replaces by a noun or a verb of the field.
//!
//! Searched: documents, comments, doc comments, strings (errors, help, logs) and names of functions. A phrase may
//! cross the end of a line. Exempt: quotations (`> `), blocks of code in documents, the left column of the pairs in
//! `docs/STYLE.md`, the nouns of `docs/GLOSSARY.md` (the first column; definitions are searched), migrations (an
//! applied one is never edited), and this file.
//!
//! The rule is absolute: no folder may have a finding.

use proc_macro2::{TokenStream, TokenTree};

use super::{File, Finding, tree};

/// A phrase (`*` stands for one word) and the suggestion.
const PHRASES: [(&str, &str); 34] = [
    ("whoever", "name the actor: the worker, the run, the caller"),
    ("whomever", "name the actor"),
    ("whom", "name the actor"),
    ("somebody", "name the actor: the operator, another worker, a caller"),
    ("someone", "name the actor"),
    ("nobody", "name the actor, or use the passive: \"is not read\""),
    ("anybody", "name the actor"),
    ("a person's word", "\"a decision of the operator\""),
    ("a person says", "\"the operator decides\""),
    ("a person has", "\"the operator has\""),
    ("its word", "\"its result\", \"its message\""),
    ("own affair", "say what Refrain does and does not do"),
    ("is no *", "\"is not a valid …\", \"is not …\""),
    ("are no *", "\"are not …\", \"there are no …\""),
    ("known are", "\"known jobs: …\""),
    ("under way", "\"running\" (attempts), \"in flight\" (requests, commits)"),
    ("wish", "\"intent\""),
    ("wishes", "\"intents\", \"requests\""),
    ("wished", "\"requested\", or the noun: intents"),
    ("what is there", "\"the existing rows\", \"the existing files\""),
    ("what was there", "\"the existing rows\", \"the former rows\""),
    ("so manieth", "\"the nth\""),
    ("done is done", "\"already done\""),
    ("call off", "\"cancel\""),
    ("calls off", "\"cancels\""),
    ("called off", "\"cancelled\""),
    ("calling off", "\"cancel\""),
    ("written down", "\"recorded\""),
    ("writes down", "\"records\""),
    ("what it was given", "\"its input\", \"its payload\""),
    ("said aloud", "\"logged\", \"reported\""),
    ("made elsewhere", "say where"),
    ("hears nothing", "\"receives no notification\""),
    ("be told", "\"be reported\", \"be logged\""),
];

/// Words after which "is no" and "are no" are plain English: "there is no lock", "is no longer held".
const PLAIN_AFTER_NO: [&str; 6] = ["longer", "more", "less", "later", "older", "newer"];

/// Doc comments that say nothing by themselves.
const HOLLOW: [&str; 9] =
    ["which", "the same", "both", "it", "this", "that", "what it is called", "it is there", "the other"];

/// A word of prose in lower case; an end of a sentence or of a string is the word `.`.
struct Prose {
    line: usize,
    word: String,
}

pub(crate) fn are_plain(files: &[File]) -> Vec<Finding> {
    files.iter().flat_map(phrases).collect()
}

fn phrases(file: &File) -> Vec<Finding> {
    let exempt = file.is("tidy/phrases.rs");
    if exempt || file.path.contains("/migrations/") {
        return Vec::new();
    }
    let finding = |line, what| Finding { path: file.path.clone(), line, rule: "phrases", what };
    let prose = prose(file);
    let mut findings = Vec::new();
    for at in 0..prose.len() {
        let rest = prose.get(at..).unwrap_or_default();
        let before = at.checked_sub(1).and_then(|at| prose.get(at)).map_or("", |before| before.word.as_str());
        for (phrase, instead) in PHRASES.iter().filter(|(phrase, _)| begins(rest, phrase, before)) {
            findings
                .extend(rest.first().map(|first| finding(first.line, format!("\"{phrase}\" → {instead}"))));
        }
    }
    for (line, text) in file.lines().filter(|_| file.is(".rs")) {
        let message = text.trim_start().strip_prefix("///").unwrap_or_default().trim().trim_end_matches('.');
        if HOLLOW.contains(&message.to_lowercase().as_str()) {
            findings.push(finding(line, "a doc comment is complete by itself: name the thing".to_owned()));
        }
    }
    findings
}

fn begins(rest: &[Prose], phrase: &str, before: &str) -> bool {
    let there = phrase.ends_with(" *") && ["there", "that"].contains(&before);
    let same = |at: usize, part: &str| match (rest.get(at), part) {
        (Some(prose), "*") => prose.word != "." && !PLAIN_AFTER_NO.contains(&prose.word.as_str()),
        (Some(prose), part) => prose.word == part,
        (None, _) => false,
    };
    !there && phrase.split(' ').enumerate().all(|(at, part)| same(at, part))
}

fn prose(file: &File) -> Vec<Prose> {
    let mut prose = Vec::new();
    if file.is(".md") {
        document(file, &mut prose);
    } else if file.is(".rs") {
        for (line, text) in file.lines() {
            match text
                .split_once("//")
                .filter(|(before, _)| before.trim().is_empty() || before.ends_with(' '))
            {
                Some((_, comment)) if !comment.starts_with(['/', '!']) => words(line, comment, &mut prose),
                _ => {}
            }
        }
        prose.push(Prose { line: 0, word: ".".to_owned() });
        strings(file.text.parse().unwrap_or_default(), &mut prose);
    } else if [".sql", ".sh", "/test", "/soak", "/bench"]
        .iter()
        .any(|end| format!("/{}", file.path).ends_with(end))
    {
        let mark = if file.is(".sql") { "--" } else { "#" };
        for (line, text) in file.lines() {
            words(line, text.split_once(mark).map_or(".", |(_, comment)| comment), &mut prose);
        }
    }
    prose
}

/// Skips quotations and blocks of code; of a pair in `docs/STYLE.md` it reads the right column, and of a noun in the
/// glossary the columns with its definition.
fn document(file: &File, prose: &mut Vec<Prose>) {
    let mut in_block = false;
    for (line, text) in file.lines() {
        if text.trim_start().starts_with("```") {
            in_block = !in_block;
        } else if !in_block && !text.starts_with("> ") {
            let is_pair = file.path == "docs/STYLE.md" && text.starts_with("| \"");
            let is_noun = file.path == "docs/GLOSSARY.md" && text.starts_with("| ");
            let text = match text.splitn(3, '|').nth(2) {
                Some(rest) if is_pair => rest.split('|').next().unwrap_or_default(),
                Some(rest) if is_noun => rest,
                _ => text,
            };
            words(line, text, prose);
        }
    }
}

/// Strings and doc comments (which are strings to the compiler), and the names of functions.
fn strings(tokens: TokenStream, prose: &mut Vec<Prose>) {
    let mut declares = false;
    for token in tokens {
        match &token {
            TokenTree::Group(group) => strings(group.stream(), prose),
            TokenTree::Literal(literal) if literal.to_string().contains('"') => {
                let first = literal.span().start().line;
                let text = literal.to_string().replace("\\n", "\n");
                let ends = if text.starts_with("\" ") || text.starts_with("r\" ") { "" } else { "." };
                words(first, ends, prose);
                for (at, part) in literal.to_string().lines().enumerate() {
                    words(first + at, part, prose);
                }
            }
            TokenTree::Ident(name) if declares => {
                words(
                    name.span().start().line,
                    &format!(". {} .", name.to_string().replace('_', " ")),
                    prose,
                );
            }
            TokenTree::Ident(_) | TokenTree::Literal(_) | TokenTree::Punct(_) => {}
        }
        declares = matches!(&token, TokenTree::Ident(word) if word == "fn");
    }
}

fn words(line: usize, text: &str, prose: &mut Vec<Prose>) {
    let mut push = |word: &str| prose.push(Prose { line, word: word.to_lowercase() });
    let text = text.replace("\\n", " . ").replace("\\\"", " . ").replace(['’'], "'");
    let mut word = String::new();
    for character in text.chars() {
        if character.is_alphanumeric() || character == '\'' {
            word.push(character);
            continue;
        }
        if !word.is_empty() {
            push(&word);
            word.clear();
        }
        if ".:;?!|,()`\"".contains(character) {
            push(".");
        }
    }
    if !word.is_empty() {
        push(&word);
    }
}

/// Prints every finding below the folder in `REFRAIN_PHRASES`.
#[test]
#[expect(clippy::print_stdout, reason = "the list is the output that the caller asks for")]
fn findings_are_listed_on_demand() {
    if let Ok(folder) = std::env::var("REFRAIN_PHRASES") {
        let mut found = are_plain(&tree::of_this_repository());
        found.sort();
        let below = found.iter().filter(|finding| finding.path.starts_with(&folder));
        let shown: Vec<String> = below.map(ToString::to_string).collect();
        println!("{}\n{} findings below {folder:?}", shown.join("\n"), shown.len());
    }
}

#[test]
fn a_banned_phrase_is_found_in_prose_strings_and_names() {
    for (path, text) in [
        ("docs/A.md", "It is\nno name."),
        ("docs/A.md", "Whoever asks."),
        ("docs/GLOSSARY.md", "| **bell** | wakes whoever waits | `a.rs` |\n"),
        ("a.rs", "// nobody reads it\n"),
        ("a.rs", "/// Which.\nstruct A;\n"),
        ("a.rs", "/// The run was\n/// called off.\nstruct A;\n"),
        ("a.rs", "fn f() { g(\"this is no address\") }\n"),
        ("a.rs", "both! { fn f1_somebody_asks(a) {} }\n"),
        ("sql/a.sql", "-- Attempts under way.\nselect 1;\n"),
    ] {
        assert_eq!(super::planted(are_plain, &[(path, text)]).len(), 1, "{text}");
    }
    for (path, text) in [
        ("docs/A.md", "There is no lock. It is no longer held.\n> Somebody said so.\n```\nnobody\n```\n"),
        ("docs/STYLE.md", "| \"nobody reads it\" | \"it is not read\" |\n"),
        ("docs/GLOSSARY.md", "| **wish** | an intent | `a.rs` |\n| somebody | the operator | |\n"),
        ("a.rs", "let nobody = 1; // a guest\n"),
        ("a.rs", "/// Which run it is.\nstruct A;\n"),
    ] {
        assert!(super::planted(are_plain, &[(path, text)]).is_empty(), "{text}");
    }
}
