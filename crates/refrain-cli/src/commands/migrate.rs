//! `refrain migrate`: the tables of the store, and those of the ledgers in the databases that jobs write to.

use std::fmt;

use clap::Args;
use refrain::Refrain;
use refrain::project::Project;
use serde::Serialize;

use crate::context::Context;
use crate::exit::{CliError, Exit};
use crate::person::Deciding;

/// Create the tables of the store and of the ledgers, or bring them up to date.
///
/// SQLite files are kept up to date by every command. On PostgreSQL you decide when, with this command.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  refrain migrate\n  refrain migrate --print > store.sql\n  refrain migrate --print=shop > shop.sql"
)]
pub(crate) struct Arguments {
    /// Print the script for PostgreSQL and change nothing: for the store, or for a database that jobs write to.
    #[arg(long, value_name = "DATABASE", num_args = 0..=1, require_equals = true)]
    #[expect(clippy::option_option, reason = "an option that may have a value is three cases to the parser")]
    pub(crate) print: Option<Option<String>>,
    #[command(flatten)]
    pub(crate) deciding: Deciding,
}

#[derive(Serialize)]
struct Migrated {
    databases: Vec<Steps>,
}

#[derive(Serialize)]
struct Steps {
    database: String,
    steps: Vec<&'static str>,
}

impl fmt::Display for Migrated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, Steps { database, steps }) in self.databases.iter().enumerate() {
            if at > 0 {
                writeln!(f)?;
            }
            for step in steps {
                writeln!(f, "applied {step}")?;
            }
            match steps.len() {
                1 => write!(f, "{database} is up to date, 1 migration applied")?,
                count => write!(f, "{database} is up to date, {count} migrations applied")?,
            }
        }
        Ok(())
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

pub(crate) async fn migrate(context: &Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let output = context.output;
    if let Some(database) = &arguments.print {
        let script = match database {
            None => Refrain::migration_script(),
            Some(name) => ledger_script(&context.project()?, name)?,
        };
        output.result(&Script { script })?;
        output.say("nothing was changed; run this script on PostgreSQL as the owner of the tables");
        return Ok(Exit::Done);
    }
    let project = context.project()?;
    let opening = context.prepared(&project).await?;
    let mut databases = vec![Steps { database: opening.address(), steps: opening.migrate().await? }];
    let beside = project.migrate().await?;
    opening.record_migrations(&beside).await?;
    databases.extend(beside.into_iter().map(|(database, steps)| Steps { database, steps }));
    project.close().await;
    output.result(&Migrated { databases })?;
    output.say("next: refrain check, or refrain serve");
    Ok(Exit::Done)
}

fn ledger_script(project: &Project, name: &str) -> Result<String, CliError> {
    project.migration_script(name).ok_or_else(|| {
        CliError::Refused(format!(
            "`{name}` is not a PostgreSQL database that jobs write to\n  see [databases] in refrain.toml; SQLite files need no script"
        ))
    })
}
