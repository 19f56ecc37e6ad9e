//! `refrain completions`: what a shell completes.

use clap::{Args, CommandFactory as _};
use clap_complete::{Shell, generate};

use crate::cli;
use crate::exit::{Exit, Fault};
use crate::place::Place;

#[derive(Args)]
#[command(
    after_help = "Examples:\n  refrain completions bash > ~/.local/share/bash-completion/completions/refrain\n  \
    refrain completions zsh > ~/.zfunc/_refrain"
)]
pub(crate) struct Arguments {
    /// Which shell.
    pub(crate) shell: Shell,
}

pub(crate) fn completions(place: &Place, arguments: &Arguments) -> Result<Exit, Fault> {
    let mut text = Vec::new();
    generate(arguments.shell, &mut cli::Arguments::command(), "refrain", &mut text);
    place.output.text(String::from_utf8_lossy(&text))?;
    Ok(Exit::Done)
}
