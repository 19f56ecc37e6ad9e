//! `refrain backup`: a copy of the store, while it is in use.

use std::fmt;
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use crate::context::Context;
use crate::exit::{Exit, Fault};

#[derive(Args)]
#[command(
    after_help = "Examples:\n  refrain backup refrain-2026-06-09.db\n\nA copy of the file by other means may lack its log. On \
    PostgreSQL use pg_dump. Restored, a store is let in with `refrain recover`."
)]
pub(crate) struct Arguments {
    /// Where to; it must not exist.
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

pub(crate) async fn backup(context: &Context, arguments: &Arguments) -> Result<Exit, Fault> {
    let opened = context.look().await?;
    let bytes = opened.refrain.backup(&arguments.file).await?;
    opened.close().await;
    let file = arguments.file.display().to_string();
    context.output.result(&Copied { file: file.clone(), bytes })?;
    context.output.say(format_args!("look at it: refrain --store sqlite:{file} fsck"));
    Ok(Exit::Done)
}
