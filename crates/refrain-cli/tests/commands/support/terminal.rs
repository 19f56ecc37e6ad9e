//! A command on a terminal of its own: only there are escape sequences not stripped.

use std::ffi::OsStr;
use std::process::Command;

use super::{CommandOutput, output_of};

/// Runs its first argument on a terminal, and copies the output to standard output.
const PTY: &str = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))";

/// Runs a command to its end on a terminal; all of its output is in `stdout`.
pub(crate) fn on_a_terminal(command: &Command) -> CommandOutput {
    let mut terminal = Command::new("python3");
    terminal.args(["-c", PTY]).arg(command.get_program()).args(command.get_args()).env("TERM", "xterm");
    terminal.current_dir(command.get_current_dir().unwrap());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) if name != OsStr::new("NO_COLOR") => terminal.env(name, value),
            _ => terminal.env_remove(name),
        };
    }
    output_of(&mut terminal)
}

/// All control characters and escape sequences except colours, line ends and tabs.
pub(crate) fn sequences(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| (c.is_control() && !"\r\n\t".contains(c)) || is_turn(c)) {
        let from = &rest[at..];
        let letter = from.chars().next().unwrap();
        let end = from.find('m').filter(|_| from.starts_with("\u{1b}[")).unwrap_or(0);
        let is_colour = end > 0 && from[2..end].chars().all(|c| c.is_ascii_digit() || c == ';');
        if !is_colour {
            found.push(from.chars().take(12).collect());
        }
        rest = &from[letter.len_utf8()..];
    }
    found
}

fn is_turn(letter: char) -> bool {
    matches!(letter, '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}
