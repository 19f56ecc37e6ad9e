//! `refrain completions`: what a shell completes.

use std::fmt;

use clap::{Args, CommandFactory as _};
use clap_complete::{Shell, generate};
use serde::Serialize;

use crate::cli;
use crate::context::Context;
use crate::exit::{CliError, Exit};

#[derive(Args)]
#[command(
    after_help = "Examples:\n  refrain completions bash > ~/.local/share/bash-completion/completions/refrain\n  \
    refrain completions zsh > ~/.zfunc/_refrain"
)]
pub(crate) struct Arguments {
    /// Which shell.
    pub(crate) shell: Shell,
}

#[derive(Serialize)]
struct Script {
    shell: String,
    script: String,
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.script)
    }
}

pub(crate) fn completions(context: &Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let mut text = Vec::new();
    generate(arguments.shell, &mut cli::Arguments::command(), "refrain", &mut text);
    let script = String::from_utf8_lossy(&text).into_owned();
    context.output.result(&Script { shell: arguments.shell.to_string(), script })?;
    Ok(Exit::Done)
}
