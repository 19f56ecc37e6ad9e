//! `refrain backup`: a copy of the store, while it is in use.

use std::fmt;
use std::path::PathBuf;

use clap::Args;
use refrain::core::terminal::typed;
use serde::Serialize;

use crate::context::Context;
use crate::exit::{CliError, Exit};

#[derive(Args)]
#[command(after_help = "Examples:\n  refrain backup refrain-2026-06-09.db\n\nA copy made by other \
    means may lack the write-ahead log. On PostgreSQL use pg_dump. After a restore: `refrain recover`.")]
pub(crate) struct Arguments {
    /// The new file; it must not exist.
    pub(crate) file: PathBuf,
}

#[derive(Serialize)]
struct Copied {
    file: String,
    bytes: u64,
}

impl fmt::Display for Copied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "copied the store into {}, {} bytes", self.file, self.bytes)
    }
}

pub(crate) async fn backup(context: &Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let opened = context.look().await?;
    let bytes = opened.refrain.backup(&arguments.file).await?;
    opened.close().await;
    let file = arguments.file.display().to_string();
    context.output.result(&Copied { file: file.clone(), bytes })?;
    context.output.say(format_args!("check it: refrain --store {} fsck", typed(&format!("sqlite:{file}"))));
    Ok(Exit::Done)
}
