//! `refrain schema`: the JSON Schema of the project's files, for editors.

use std::fmt;

use refrain::core::project;

use serde_json::Value;

use crate::context::Context;
use crate::exit::{CliError, Exit};

/// Printed without an envelope, also with `--json`: it is a schema, not a result.
struct Schema(Value);

impl fmt::Display for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#}", self.0)
    }
}

pub(crate) fn schema(context: &Context) -> Result<Exit, CliError> {
    context.output.text(Schema(project::schema()))?;
    context.output.say("save it beside the project, and begin a file with `#:schema ../refrain.schema.json`");
    Ok(Exit::Done)
}
