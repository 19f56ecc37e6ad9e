//! `refrain fsck`: what must not be in a store.

use std::fmt;

use serde::Serialize;

use crate::context::Context;
use crate::exit::{Exit, Fault};
use crate::output::harmless;

#[derive(Serialize)]
struct Findings {
    store: String,
    findings: Vec<Finding>,
}

#[derive(Serialize)]
struct Finding {
    what: &'static str,
    row: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
}

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Finding { what, row, detail } in &self.findings {
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

pub(crate) async fn fsck(context: &Context) -> Result<Exit, Fault> {
    let opened = context.look().await?;
    let store = opened.refrain.address();
    let findings = opened.refrain.fsck().await?;
    opened.close().await;
    let findings: Vec<Finding> = findings
        .into_iter()
        .map(|one| Finding { what: one.what, row: one.row, detail: one.detail })
        .collect();
    let is_clean = findings.is_empty();
    context.output.result(&Findings { store, findings })?;
    if is_clean {
        return Ok(Exit::Done);
    }
    context
        .output
        .say("nothing was changed; stop what uses this store, and restore a backup or repair these rows");
    Ok(Exit::Failed)
}
