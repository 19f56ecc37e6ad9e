//! `refrain migrate`: the tables of a store.

use std::fmt;

use refrain::Refrain;
use serde::Serialize;

use crate::cli::Migrate;
use crate::exit::{Exit, Fault};
use crate::store::Named;

#[derive(Serialize)]
struct Steps {
    store: String,
    steps: Vec<&'static str>,
}

impl fmt::Display for Steps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for step in &self.steps {
            writeln!(f, "took the step {step}")?;
        }
        match self.steps.len() {
            0 => write!(f, "{} is up to date, 0 steps taken", self.store),
            1 => write!(f, "{} is up to date, 1 step taken", self.store),
            steps => write!(f, "{} is up to date, {steps} steps taken", self.store),
        }
    }
}

#[derive(Serialize)]
struct Script {
    script: String,
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.script)
    }
}

pub(crate) async fn migrate(named: &Named, arguments: &Migrate) -> Result<Exit, Fault> {
    let output = named.output;
    if arguments.print {
        output.result(&Script { script: Refrain::migration_script() })?;
        output.say("nothing was changed; run this on PostgreSQL as the user who is to own the tables");
        return Ok(Exit::Done);
    }
    let store = named.prepared()?.address();
    let steps = Refrain::migrate(named.address()).await?;
    output.result(&Steps { store, steps })?;
    output.say("next: refrain run noop#1");
    Ok(Exit::Done)
}
