//! Advice names commands: each `refrain WORD --option` that a reader may type is a command with that option.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use clap::{Command, CommandFactory as _};

use super::Arguments;

/// What follows `refrain ` where it is not a command: "a newer refrain has upgraded it", "grant … on schema refrain to …".
const PROSE: [&str; 2] = ["has", "to"];

/// Where a command ends in a text.
const ENDS: [char; 6] = ['`', '\n', '"', ';', ')', '\\'];

/// The long options of each command, and of all the commands inside it.
fn commands() -> BTreeMap<String, BTreeSet<String>> {
    fn add(command: &Command, options: &mut BTreeSet<String>) {
        options.extend(command.get_arguments().filter_map(|one| one.get_long()).map(str::to_owned));
        command.get_subcommands().for_each(|inner| add(inner, options));
    }
    let mut all = Arguments::command();
    all.build();
    let of = |command: &Command| {
        let mut options = BTreeSet::new();
        add(command, &mut options);
        (command.get_name().to_owned(), options)
    };
    all.get_subcommands().map(of).collect()
}

/// Each `refrain WORD` of a text, with the options behind it.
fn mentioned(text: &str) -> Vec<(String, Vec<String>)> {
    let is_word = |letter: char| letter.is_ascii_lowercase() || letter == '-';
    let mut found = Vec::new();
    for (at, _) in text.match_indices("refrain ") {
        let is_begin = text[..at].chars().next_back().is_none_or(|before| !before.is_alphanumeric());
        let rest = &text[at + "refrain ".len()..];
        let word: String = rest.chars().take_while(|letter| is_word(*letter)).collect();
        if !is_begin || word.is_empty() || word.starts_with('-') {
            continue;
        }
        // What follows ` -- ` are the words of another program.
        let line = rest.split(ENDS).next().and_then(|line| line.split(" -- ").next()).unwrap_or_default();
        let options = line.split_whitespace().filter_map(|part| part.strip_prefix("--"));
        let options = options.map(|option| option.chars().take_while(|letter| is_word(*letter)).collect());
        found.push((word, options.filter(|option: &String| !option.is_empty()).collect()));
    }
    found
}

/// The commands and options of a text that do not exist.
fn unknown(text: &str) -> Vec<String> {
    let commands = commands();
    let mut unknown = Vec::new();
    for (word, options) in mentioned(text) {
        match commands.get(&word) {
            None if PROSE.contains(&word.as_str()) => {}
            None => unknown.push(format!("refrain {word}")),
            Some(known) => {
                let missing = options.into_iter().filter(|option| !known.contains(option));
                unknown.extend(missing.map(|option| format!("refrain {word} --{option}")));
            }
        }
    }
    unknown
}

/// The files that are read by users, or printed to them.
fn files(folder: &Path, all: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        match path.file_name().and_then(|name| name.to_str()).unwrap_or_default() {
            name if name.starts_with('.') || ["target", "tests"].contains(&name) => {}
            _ if path.is_dir() => files(&path, all),
            _ if ["rs", "md", "sql", "toml", "txt", "json"].contains(&extension) => all.push(path),
            _ => {}
        }
    }
}

#[test]
fn advice_names_only_commands_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut all = Vec::new();
    files(&root, &mut all);
    let mut findings = Vec::new();
    let mut seen = 0;
    for path in all.into_iter().filter(|path| !path.ends_with("src/cli/tests.rs")) {
        let text = std::fs::read_to_string(&path).unwrap();
        seen += mentioned(&text).len();
        findings.extend(unknown(&text).into_iter().map(|what| format!("{}: {what}", path.display())));
    }
    assert!(seen > 300, "only {seen} commands were found");
    assert!(findings.is_empty(), "these commands do not exist:\n{}", findings.join("\n"));
}

#[test]
fn a_command_or_an_option_that_does_not_exist_is_found() {
    let text = "look: refrain backfill export; `refrain run X --agian`, or refrain checkpoint set --window W\n\
        a newer refrain has it; Refrain does nothing; refrain --json runs; `refrain retry RUN --done`; refrain once KEY -- curl --fail";
    assert_eq!(unknown(text), ["refrain backfill", "refrain run --agian"]);
}
