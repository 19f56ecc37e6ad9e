//! `refrain schema`: what may stand in the files, for editors.

use std::fmt;

use refrain::core::project;

use serde_json::Value;

use crate::context::Context;
use crate::exit::{Exit, Fault};

/// Printed as it is, also with `--json`: it is a schema, not a result that has one.
struct Schema(Value);

impl fmt::Display for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#}", self.0)
    }
}

pub(crate) fn schema(context: &Context) -> Result<Exit, Fault> {
    context.output.text(Schema(project::schema()))?;
    context
        .output
        .say("write it beside the project, and begin a file with `#:schema ../refrain.schema.json`");
    Ok(Exit::Done)
}
