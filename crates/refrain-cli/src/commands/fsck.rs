//! `refrain fsck`: inconsistencies of a store.

use std::fmt;

use refrain::admin::Finding;
use serde::Serialize;

use crate::context::Context;
use crate::exit::{CliError, Exit};
use crate::output::harmless;

#[derive(Serialize)]
struct Findings {
    store: String,
    findings: Vec<Finding>,
}

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Finding { what, row, detail, .. } in &self.findings {
            match detail {
                Some(detail) => writeln!(f, "{what}: {}", harmless(detail))?,
                None => writeln!(f, "{what} (row {row})")?,
            }
        }
        match self.findings.len() {
            1 => write!(f, "{}: 1 finding", self.store),
            findings => write!(f, "{}: {findings} findings", self.store),
        }
    }
}

pub(crate) async fn fsck(context: &Context) -> Result<Exit, CliError> {
    let opened = context.look().await?;
    let store = opened.refrain.address();
    let findings = opened.refrain.fsck().await?;
    opened.close().await;
    let is_clean = findings.is_empty();
    context.output.result(&Findings { store, findings })?;
    if is_clean {
        return Ok(Exit::Done);
    }
    context
        .output
        .say("nothing was changed; stop the processes that use this store, then restore a backup or repair these rows");
    Ok(Exit::Failed)
}
