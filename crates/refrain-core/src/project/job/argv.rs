//! Commands as lists of words: the program is fixed, and no value becomes part of a script.
//!
//! A value is data: a payload that any caller may enqueue, a line that a script printed, a scope from a table. As a word of
//! its own it stays data; pasted into a text that another program interprets, it is code. Words of known programs are
//! followed one by one ([`chain`]). The other programs that interpret their arguments cannot be listed, so options that
//! announce a script are recognized for every program. JOBS.md says what is not detected.

mod chain;

use std::collections::BTreeSet;

use chain::Misplaced;

use super::JobReader;
use crate::Template;
use crate::project::document::LocatedText;
use crate::project::names::Names;

/// Long options that announce a script.
const ANNOUNCEMENTS: [&str; 7] =
    ["--command", "--eval", "--exec", "--execute", "--expression", "--print", "--split-string"];
/// The last letters of short options that announce a script: to any program, and to known ones.
const ANNOUNCED_BY: [char; 3] = ['c', 'e', 'E'];
const LETTERS_MAX: usize = 3;
const ANNOUNCED_BY_IN: [(&str, char); 4] = [("php", 'r'), ("env", 'S'), ("node", 'p'), ("ruby", 'E')];

impl JobReader<'_> {
    /// Parses the templates of a command; `None` without any words.
    pub(super) fn argv(&mut self, elements: &[LocatedText], names: Names) -> Option<Vec<Template>> {
        let (program, _) = elements.split_first()?;
        let misplaced = chain::misplaced(elements);
        let script = match misplaced {
            Some(Misplaced::Script(script)) => Some(script),
            _ => pasted(elements),
        };
        if let Some(script) = script {
            let problem = script.wrong("a value would become part of a script", "pasted into a script");
            let help = "read it from the environment, as in \"$REFRAIN_DS\", or give it as an argument of its own: \
                        [\"sh\", \"-c\", \"echo \\\"$1\\\"\", \"sh\", \"{ds}\"]";
            self.problems.push(problem.help(help));
        }
        let templates: Option<Vec<Template>> =
            elements.iter().map(|element| self.template(element, names)).collect();
        if let Some(Misplaced::Program(program)) = misplaced {
            let problem =
                program.wrong("the program is fixed; only its arguments take values", "a value in here");
            self.problems
                .push(problem.help("write the program first, and each argument as an element of its own"));
        }
        if program.value.trim().is_empty() {
            self.problems.push(program.wrong("the first element is the program to run", "it is empty"));
        }
        templates
    }
}

/// The first word that is a script and contains a value.
fn pasted(elements: &[LocatedText]) -> Option<&LocatedText> {
    let mut programs = BTreeSet::new();
    for (at, word) in elements.iter().enumerate() {
        let after = elements.get(at + 1..).unwrap_or_default();
        let script = announced(word, &programs, after).or_else(|| chain::first_of(program(word), after));
        if script.is_some() {
            return script;
        }
        // Arguments after the script file are for the script, not for its interpreter.
        if is_file(word) && !chain::is_interpreter(program(word)) {
            programs.clear();
        }
        programs.insert(program(word));
    }
    None
}

fn is_file(word: &LocatedText) -> bool {
    !word.value.starts_with('-') && word.value.contains(['/', '.'])
}

/// The script that a word announces to one of the programs before it, if it contains a value.
fn announced<'t>(
    word: &'t LocatedText,
    programs: &BTreeSet<&str>,
    after: &'t [LocatedText],
) -> Option<&'t LocatedText> {
    let is_known = programs.iter().any(|name| chain::is_interpreter(name));
    let (option, attached) = match word.value.split_once('=') {
        Some((option, _)) => (option, true),
        None => (word.value.as_str(), false),
    };
    if attached && ANNOUNCEMENTS.contains(&option) && has_value(word) {
        return Some(word);
    }
    // A script may stand in the same word as a short option: `-eprint`.
    let is_attached = word.value.strip_prefix('-').is_some_and(|rest| rest.starts_with(ANNOUNCED_BY));
    if is_known && is_attached && has_value(word) {
        return Some(word);
    }
    if !ANNOUNCEMENTS.contains(&option) && !is_short_announcement(option, programs) {
        return None;
    }
    let script = script_after(after)?;
    // For an unknown program, a value that is the whole word may be a pattern or a name.
    let is_script = if is_known { has_value(script) } else { has_value(script) && !is_value(script) };
    is_script.then_some(script)
}

/// `-c`, `-ec`, `-qc`: letters after one dash, of which the last announces a script; to a shell `c` does in any position, as
/// in `-cx`. For an unknown program several letters are one name, as in `-source`.
fn is_short_announcement(option: &str, programs: &BTreeSet<&str>) -> bool {
    let Some(letters) = option.strip_prefix('-') else { return false };
    let is_cluster = letters.chars().all(|letter| letter.is_ascii_alphabetic());
    let is_named = |(name, letter): (&str, char)| letters.ends_with(letter) && programs.contains(name);
    let is_of_shell = || letters.contains('c') && programs.iter().any(|name| chain::is_shell(name));
    let is_name = letters.len() > LETTERS_MAX && !programs.iter().any(|name| chain::is_interpreter(name));
    is_cluster
        && !is_name
        && (letters.ends_with(ANNOUNCED_BY) || is_of_shell() || ANNOUNCED_BY_IN.into_iter().any(is_named))
}

/// The first word that is not an option; a shell's `-o` takes the next word with it.
fn script_after(words: &[LocatedText]) -> Option<&LocatedText> {
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.value.as_str() {
            "-o" | "+o" | "-O" | "+O" => drop(words.next()),
            "--" => {}
            option if option.len() > 1 && option.starts_with(['-', '+']) && !has_value(word) => {}
            _ => return Some(word),
        }
    }
    None
}

/// The name of a program without its directory and version: `python` for `/usr/bin/python3.11`.
fn program(word: &LocatedText) -> &str {
    let name = word.value.rsplit('/').next().unwrap_or_default();
    name.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.' || letter == '-')
}

fn has_value(word: &LocatedText) -> bool {
    Template::parse(&word.value).is_ok_and(|template| template.names().next().is_some())
}

/// Whether the word is one value and nothing else.
fn is_value(word: &LocatedText) -> bool {
    Template::parse(&word.value).is_ok_and(|template| template.only_name().is_some())
}
