//! `refrain man`: the manual pages.

use std::fmt;
use std::path::PathBuf;

use clap::{Args, CommandFactory as _};
use clap_mangen::Man;
use serde::Serialize;

use crate::cli;
use crate::context::Context;
use crate::exit::{CliError, Exit};

#[derive(Args)]
#[command(after_help = "Examples:\n  refrain man | man -l -\n  refrain man ~/.local/share/man/man1")]
pub(crate) struct Arguments {
    /// Write a page for each command into this directory; without it, print the first page.
    pub(crate) dir: Option<PathBuf>,
}

#[derive(Serialize)]
struct Page {
    page: String,
}

impl fmt::Display for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.page)
    }
}

#[derive(Serialize)]
struct Written {
    directory: String,
    pages: usize,
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "wrote {} pages into {}", self.pages, self.directory)
    }
}

pub(crate) fn man(context: &Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let command = cli::Arguments::command();
    let Some(dir) = &arguments.dir else {
        let mut text = Vec::new();
        Man::new(command).render(&mut text).map_err(CliError::Output)?;
        context.output.result(&Page { page: String::from_utf8_lossy(&text).into_owned() })?;
        return Ok(Exit::Done);
    };
    let failed = |source| CliError::Write { path: dir.clone(), source };
    std::fs::create_dir_all(dir).map_err(failed)?;
    clap_mangen::generate_to(command, dir).map_err(failed)?;
    let pages = std::fs::read_dir(dir).map_err(failed)?.flatten();
    let pages = pages.filter(|entry| entry.file_name().to_string_lossy().starts_with("refrain")).count();
    context.output.result(&Written { directory: dir.display().to_string(), pages })?;
    context.output.say("read them: man refrain");
    Ok(Exit::Done)
}
