//! Which word of a command is the program, and which words are its script, after all programs that only start another one.
//!
//! `env`, `timeout` and the like are followed to the program that they start; an interpreter accepts no value before its
//! script was named, since such a word is code or selects it. A word that is an ordinary argument of another program is
//! not examined, whatever its text. No list of programs is complete, and JOBS.md says so.

use super::{has_value, program};
use crate::project::document::LocatedText;

/// A word that contains a value in a position where none is allowed.
#[derive(Clone, Copy)]
pub(super) enum Misplaced<'t> {
    /// The word is a script or part of one.
    Script(&'t LocatedText),
    /// The word selects the program.
    Program(&'t LocatedText),
}

/// A program that starts another one.
struct Wrapper {
    name: &'static str,
    /// Its options whose value is the next word.
    with_value: &'static [&'static str],
    /// Its options whose value is a script.
    scripts: &'static [&'static str],
    /// The number of its own words before the program.
    own: usize,
    /// What it does with the words that follow.
    then: Then,
}

#[derive(PartialEq)]
enum Then {
    /// It executes them unchanged.
    Executes,
    /// It joins them into one script for a shell.
    Joins,
    /// It does not execute them.
    Nothing,
}

const fn wrapper(name: &'static str, own: usize, with_value: &'static [&'static str]) -> Wrapper {
    Wrapper { name, with_value, scripts: &[], own, then: Then::Executes }
}

const COMMAND: &[&str] = &["-c", "--command", "--session-command"];

static WRAPPERS: [Wrapper; 21] = [
    Wrapper {
        scripts: &["-S", "--split-string"],
        ..wrapper("env", 0, &["-u", "--unset", "-C", "--chdir", "-a", "--argv0"])
    },
    wrapper("nohup", 0, &[]),
    wrapper("timeout", 1, &["-k", "--kill-after", "-s", "--signal"]),
    wrapper("nice", 0, &["-n", "--adjustment"]),
    wrapper("ionice", 0, &["-c", "--class", "-n", "--classdata"]),
    wrapper("setsid", 0, &[]),
    wrapper("sudo", 0, &["-u", "-g", "-h", "-p", "-C", "-D", "-R", "-r", "-t", "-T", "--user", "--group"]),
    wrapper("doas", 0, &["-u", "-C"]),
    Wrapper { scripts: COMMAND, ..wrapper("su", 1, &["-g", "-G", "-s", "-w", "--group", "--shell"]) },
    Wrapper { scripts: COMMAND, ..wrapper("runuser", 1, &["-g", "-G", "-s", "-w", "--group", "--shell"]) },
    Wrapper {
        scripts: COMMAND,
        ..wrapper("flock", 1, &["-w", "--wait", "--timeout", "-E", "--conflict-exit-code"])
    },
    Wrapper {
        scripts: COMMAND,
        then: Then::Nothing,
        ..wrapper("script", 1, &["-E", "-I", "-O", "-B", "-T", "-m", "-o"])
    },
    wrapper("xargs", 0, &["-a", "--arg-file", "-d", "-E", "-I", "-L", "-n", "-P", "-s", "--max-args"]),
    wrapper("stdbuf", 0, &["-i", "-o", "-e", "--input", "--output", "--error"]),
    wrapper("chroot", 1, &[]),
    wrapper("time", 0, &["-o", "--output", "-f", "--format"]),
    wrapper("taskset", 1, &[]),
    wrapper("chrt", 1, &["-T", "-P", "-D"]),
    wrapper("busybox", 0, &[]),
    Wrapper { then: Then::Joins, ..wrapper("watch", 0, &["-n", "--interval"]) },
    Wrapper { then: Then::Joins, ..wrapper("parallel", 0, &["-j", "--jobs", "-a", "--arg-file", "-S"]) },
];

/// Variables that select what is executed. Not `ENV`: a shell reads that file only when it is interactive.
const CHOOSING: [&str; 6] = ["PATH", "BASH_ENV", "PERL5OPT", "RUBYOPT", "NODE_OPTIONS", "PYTHONPATH"];

const SHELLS: [&str; 10] = ["sh", "ash", "bash", "dash", "zsh", "ksh", "mksh", "fish", "csh", "tcsh"];

/// Their options that take the next word, which is never a script.
const OF_SHELLS: [&str; 6] = ["-o", "+o", "-O", "+O", "--rcfile", "--init-file"];

/// Another interpreter.
struct Interpreter {
    name: &'static str,
    /// The letters that announce a script.
    letters: &'static str,
    /// Its options that take the next word, which is never a script.
    with_value: &'static [&'static str],
}

const fn interpreter(
    name: &'static str,
    letters: &'static str,
    with_value: &'static [&'static str],
) -> Interpreter {
    Interpreter { name, letters, with_value }
}

static INTERPRETERS: [Interpreter; 9] = [
    interpreter("python", "c", &["-W", "-X"]),
    interpreter("pypy", "c", &["-W", "-X"]),
    interpreter("perl", "eE", &[]),
    interpreter("ruby", "e", &["-r", "-I"]),
    interpreter("node", "ep", &["-r", "--require", "--import"]),
    interpreter("deno", "", &[]),
    interpreter("bun", "ep", &["-r", "--preload"]),
    interpreter("php", "rBREFf", &["-d", "-c"]),
    interpreter("lua", "e", &["-l"]),
];
/// Their words that only announce what follows.
const SUBCOMMANDS: [&str; 3] = ["run", "eval", "exec"];
const LONG_SCRIPTS: [&str; 3] = ["--eval", "--print", "--command"];

/// Programs whose first argument after the options is a script: with the letters of the options that hold a script or name its
/// file, and the options with values, of one word and of two.
const SCRIPT_FIRST: [(&str, &str); 7] = [
    ("awk", "feEil"),
    ("gawk", "feEil"),
    ("mawk", "feEil"),
    ("nawk", "feEil"),
    ("sed", "fe"),
    ("gsed", "fe"),
    ("jq", "fL"),
];
const SCRIPT_OPTIONS: [&str; 6] =
    ["--expression", "--file", "--from-file", "--source", "--exec", "--include"];
const ONE_VALUE: [&str; 5] = ["-v", "-F", "--assign", "--field-separator", "--indent"];
const TWO_VALUES: [&str; 4] = ["--arg", "--argjson", "--slurpfile", "--rawfile"];

/// Programs with an option that takes a script or a command, in one word or several.
const COMMANDERS: [(&str, &str); 9] = [
    ("git", "-c"),
    ("psql", "-c"),
    ("mysql", "-e"),
    ("mariadb", "-e"),
    ("vim", "-c"),
    ("rsync", "-e"),
    ("xterm", "-e"),
    ("expect", "-c"),
    ("gdb", "-ex"),
];

/// The first word that contains a value in the position of a program or a script.
pub(super) fn misplaced(elements: &[LocatedText]) -> Option<Misplaced<'_>> {
    let mut commands = vec![elements];
    while let Some(command) = commands.pop() {
        let Some((first, words)) = command.split_first() else { continue };
        if has_value(first) {
            return Some(Misplaced::Program(first));
        }
        let name = program(first);
        let found = if let Some(wrapper) = WRAPPERS.iter().find(|wrapper| wrapper.name == name) {
            wrapper.read(words, &mut commands)
        } else if name == "find" {
            commands.extend(executed_by_find(words));
            None
        } else if SHELLS.contains(&name) {
            of_shell(words)
        } else if let Some(interpreter) = INTERPRETERS.iter().find(|known| known.name == name) {
            interpreter.read(words)
        } else {
            first_of(name, words).or_else(|| commanded(name, words)).map(Misplaced::Script)
        };
        if found.is_some() {
            return found;
        }
    }
    None
}

pub(super) fn is_shell(name: &str) -> bool {
    SHELLS.contains(&name)
}

/// Whether a program is an interpreter.
pub(super) fn is_interpreter(name: &str) -> bool {
    is_shell(name) || INTERPRETERS.iter().any(|known| known.name == name)
}

/// The script of a program that needs no option for it, if it contains a value.
pub(super) fn first_of<'t>(name: &str, words: &'t [LocatedText]) -> Option<&'t LocatedText> {
    let (_, letters) = SCRIPT_FIRST.iter().find(|(known, _)| *known == name)?;
    script_first(words, letters)
}

impl Wrapper {
    /// Reads up to the program, which is added to the commands to examine.
    fn read<'t>(
        &self,
        words: &'t [LocatedText],
        commands: &mut Vec<&'t [LocatedText]>,
    ) -> Option<Misplaced<'t>> {
        let (mut own, mut takes_options, mut has_script, mut joins) =
            (self.own, true, false, self.then == Then::Joins);
        let mut at = 0;
        while let Some(word) = words.get(at) {
            at += 1;
            let text = word.value.as_str();
            if takes_options && text == "--" {
                takes_options = false;
            } else if takes_options && text.starts_with('-') {
                let (is_script, takes_next) = self.option(text);
                let script = if takes_next { words.get(at) } else { Some(word) };
                if let Some(script) = script.filter(|script| is_script && has_value(script)) {
                    return Some(Misplaced::Script(script));
                }
                has_script |= is_script;
                joins &= !["-x", "--exec"].contains(&text);
                at += usize::from(takes_next);
            } else if let Some(name) = assigned(word) {
                if has_value(word) && (CHOOSING.contains(&name) || name.starts_with("LD_")) {
                    return Some(Misplaced::Program(word));
                }
            } else if own > 0 {
                own -= 1;
            } else if self.then != Then::Nothing && !has_script {
                let rest = words.get(at - 1..).unwrap_or_default();
                if joins {
                    return joined(rest);
                }
                commands.push(rest);
                return None;
            }
        }
        None
    }

    /// Whether an option contains or announces a script, and whether its value is the next word.
    fn option(&self, option: &str) -> (bool, bool) {
        if option.starts_with("--") {
            let (name, is_alone) = option.split_once('=').map_or((option, true), |(name, _)| (name, false));
            let is_script = self.scripts.contains(&name);
            return (is_script, is_alone && (is_script || self.with_value.contains(&name)));
        }
        let is_in = |known: &[&str], letter: char| {
            known.iter().filter_map(|option| option.strip_prefix('-')).any(|known| known.chars().eq([letter]))
        };
        let letters = option.trim_start_matches('-');
        for (at, letter) in letters.char_indices() {
            let is_script = is_in(self.scripts, letter);
            if is_script || is_in(self.with_value, letter) {
                return (is_script, at + letter.len_utf8() == letters.len());
            }
        }
        (false, false)
    }
}

/// The name in `NAME=value`, if it is fixed.
fn assigned(word: &LocatedText) -> Option<&str> {
    let (name, _) = word.value.split_once('=')?;
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    is_name.then_some(name)
}

/// Words that are joined into one script for a shell. `parallel` quotes the words after `:::`, if a command precedes them.
fn joined(words: &[LocatedText]) -> Option<Misplaced<'_>> {
    let end = words.iter().position(|word| word.value.starts_with(":::"));
    let is_command = |word: &LocatedText| !word.value.starts_with('-');
    let script = match end.and_then(|end| words.get(..end)) {
        Some(before) if before.iter().any(is_command) => before,
        _ => words,
    };
    script.iter().find(|word| has_value(word)).map(Misplaced::Script)
}

/// The words after each `-exec`, up to its end.
fn executed_by_find(words: &[LocatedText]) -> Vec<&[LocatedText]> {
    let mut commands = Vec::new();
    let mut rest = words;
    let is_start = |word: &LocatedText| ["-exec", "-execdir", "-ok", "-okdir"].contains(&word.value.as_str());
    while let Some(after) = rest.iter().position(is_start).and_then(|at| rest.get(at + 1..)) {
        let is_end = |word: &LocatedText| [";", "+"].contains(&word.value.as_str());
        let end = after.iter().position(is_end).unwrap_or(after.len());
        commands.extend(after.get(..end));
        rest = after.get(end..).unwrap_or_default();
    }
    commands
}

fn is_option(word: &LocatedText) -> bool {
    word.value.len() > 1 && word.value.starts_with(['-', '+'])
}

/// The first word after a shell's options is a script, or the file of one.
fn of_shell(words: &[LocatedText]) -> Option<Misplaced<'_>> {
    let mut is_text = false;
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let take = if is_text { Misplaced::Script } else { Misplaced::Program };
        let text = word.value.as_str();
        if !is_option(word) {
            return has_value(word).then_some(take(word));
        }
        is_text |= text.strip_prefix('-').is_some_and(|letters| {
            letters == "-command" || !letters.starts_with('-') && letters.contains('c')
        });
        if has_value(word) {
            return Some(if is_text { Misplaced::Script(word) } else { Misplaced::Program(word) });
        }
        if OF_SHELLS.contains(&text)
            && let Some(value) = words.next().filter(|value| has_value(value))
        {
            return Some(Misplaced::Program(value));
        }
    }
    None
}

impl Interpreter {
    /// Other interpreters accept options also after an announced script, up to the first word that is not an option; but all
    /// words after a Python script belong to the script.
    fn read<'t>(&self, words: &'t [LocatedText]) -> Option<Misplaced<'t>> {
        let mut is_given = false;
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let text = word.value.as_str();
            if text == "--" {
                return words.next().filter(|word| !is_given && has_value(word)).map(Misplaced::Program);
            }
            if SUBCOMMANDS.contains(&text) {
                continue;
            }
            if !is_option(word) {
                return (!is_given && has_value(word)).then_some(Misplaced::Program(word));
            }
            if has_value(word) {
                let is_attached = text.get(1..2).is_some_and(|letter| self.letters.contains(letter));
                return Some(if is_attached { Misplaced::Script(word) } else { Misplaced::Program(word) });
            }
            let is_script = LONG_SCRIPTS.contains(&text) || announces(text, self.letters);
            if is_script || self.with_value.contains(&text) {
                if let Some(value) = words.next().filter(|value| has_value(value)) {
                    return Some(if is_script {
                        Misplaced::Script(value)
                    } else {
                        Misplaced::Program(value)
                    });
                }
                is_given |= is_script;
            }
            if is_script && self.letters == "c" {
                return None;
            }
        }
        None
    }
}

/// Whether the last letter of `-abc` is one of these.
fn announces(option: &str, letters: &str) -> bool {
    let Some(cluster) = option.strip_prefix('-') else { return false };
    cluster.chars().all(|letter| letter.is_ascii_alphabetic())
        && cluster.ends_with(|last| letters.contains(last))
}

fn script_first<'t>(words: &'t [LocatedText], letters: &str) -> Option<&'t LocatedText> {
    let mut is_elsewhere = false;
    let mut script = None;
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let text = word.value.as_str();
        let named = text.split_once('=').map_or(text, |(name, _)| name);
        if TWO_VALUES.contains(&text) {
            words.nth(1);
        } else if ONE_VALUE.contains(&text) {
            words.next();
        } else if SCRIPT_OPTIONS.contains(&text) || announces(text, letters) {
            is_elsewhere = true;
            if let Some(value) = words.next().filter(|value| has_value(value)) {
                return Some(value);
            }
        } else if is_option(word) {
            let is_attached = text.get(1..2).is_some_and(|letter| letters.contains(letter));
            if has_value(word) && (is_attached || SCRIPT_OPTIONS.contains(&named)) {
                return Some(word);
            }
            is_elsewhere |= SCRIPT_OPTIONS.contains(&named);
        } else {
            script = script.or(Some(word));
        }
    }
    script.filter(|script| !is_elsewhere && has_value(script))
}

/// The complete values that options of known programs take as scripts.
fn commanded<'t>(name: &str, words: &'t [LocatedText]) -> Option<&'t LocatedText> {
    let (_, option) = COMMANDERS.iter().find(|(known, _)| *known == name)?;
    let is_script = |pair: &&[LocatedText]| pair.first().is_some_and(|word| word.value == *option);
    let mut scripts = words.windows(2).filter(is_script).filter_map(<[LocatedText]>::last);
    scripts.find(|script| has_value(script))
}
