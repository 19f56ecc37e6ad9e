//! `refrain man`: the manual, as pages.

use std::path::PathBuf;

use clap::{Args, CommandFactory as _};
use clap_mangen::Man;

use crate::cli;
use crate::exit::{Exit, Fault};
use crate::place::Place;

#[derive(Args)]
#[command(after_help = "Examples:\n  refrain man | man -l -\n  refrain man ~/.local/share/man/man1")]
pub(crate) struct Arguments {
    /// Write a page for each command into this directory; without it, the first page is printed.
    pub(crate) dir: Option<PathBuf>,
}

pub(crate) fn man(place: &Place, arguments: &Arguments) -> Result<Exit, Fault> {
    let command = cli::Arguments::command();
    let Some(dir) = &arguments.dir else {
        let mut text = Vec::new();
        Man::new(command).render(&mut text).map_err(Fault::Output)?;
        place.output.text(String::from_utf8_lossy(&text))?;
        return Ok(Exit::Done);
    };
    let failed = |source| Fault::Write { path: dir.clone(), source };
    std::fs::create_dir_all(dir).map_err(failed)?;
    clap_mangen::generate_to(command, dir).map_err(failed)?;
    place.output.say(format_args!("wrote the pages into {}; read them: man refrain", dir.display()));
    Ok(Exit::Done)
}
