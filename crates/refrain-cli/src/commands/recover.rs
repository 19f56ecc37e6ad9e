//! `refrain recover`: an operator states what a new, restored, moved or copied store is, and it continues.

use std::fmt;

use clap::Args;
use refrain::OpenOptions;
use refrain::admin::{IdentityDoubt, StoreOrigin};
use serde::Serialize;

use crate::context::Context;
use crate::exit::{CliError, Exit};
use crate::person::Deciding;

/// State what a moved, restored or copied store is, and let it continue.
///
/// A store knows its location, and a database remembers the store that wrote to it. A store that was moved, is on another
/// timeline of its server, is a backup, or is older than a database remembers runs and sends nothing until an operator has
/// stated what it is. The same holds for a database that belongs to another store. Units applied there stay applied.
/// Reading (`status`, `show`, `why`) always works.
#[expect(clippy::struct_excessive_bools, reason = "each is a flag, and only one may be given")]
#[derive(Args)]
#[command(
    after_help = "Examples:\n  refrain recover             show what is in doubt, and ask\n  refrain recover --moved     the folder was moved; nothing is lost\n  refrain recover --restored  a backup, or a failover that lost its last commits\n  refrain recover --yes\n\nA restored or copied store does not know which calls were made since. So each call for a unit that it \
    does not know is held in doubt until `refrain recover --settled`. Stop all processes that serve the store first. A \
    SQLite file that was restored in place is not recognised: use --restored."
)]
pub(crate) struct Arguments {
    /// The same store in another place; it knows everything that it has done.
    #[arg(long, conflicts_with_all = ["restored", "copied", "settled"])]
    moved: bool,
    /// The same store, older than what it has done.
    #[arg(long, conflicts_with_all = ["copied", "settled"])]
    restored: bool,
    /// A copy; the original continues elsewhere, and this one gets an id of its own.
    #[arg(long, conflicts_with = "settled")]
    copied: bool,
    /// Everything that a restored store may not know was checked: calls for new units are made again.
    #[arg(long)]
    settled: bool,
    #[command(flatten)]
    pub(crate) deciding: Deciding,
}

#[derive(Serialize)]
struct Recovered {
    is_done: bool,
    /// Why an operator must state what the store is, if so.
    doubt: Option<&'static str>,
    /// What the operator has stated.
    stated: Option<&'static str>,
    databases: Vec<Found>,
}

#[derive(Serialize)]
struct Found {
    database: String,
    was: String,
    now: String,
    stranded: u64,
}

impl Arguments {
    fn statement(&self) -> Option<StoreOrigin> {
        let said = [
            (self.moved, StoreOrigin::Moved),
            (self.restored, StoreOrigin::Restored),
            (self.copied, StoreOrigin::Copied),
            (self.settled, StoreOrigin::Settled),
        ];
        said.into_iter().find(|(is_said, _)| *is_said).map(|(_, statement)| statement)
    }
}

impl fmt::Display for Recovered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = Vec::new();
        lines.extend(self.doubt.map(|doubt| IdentityDoubt::named(doubt).to_string()));
        lines.extend(self.stated.map(|stated| format!("the store is recorded as {stated}")));
        for Found { database, was, now, stranded } in &self.databases {
            let verb = if self.is_done { "belonged" } else { "belongs" };
            lines.push(format!("{database}: {verb} to the store {was}; this store is {now}"));
            if *stranded > 0 {
                lines.push(format!(
                    "  {stranded} pending intents belong to the other store and will not be relayed"
                ));
            }
        }
        if lines.is_empty() {
            lines.push("every database belongs to this store; nothing to recover".to_owned());
        }
        f.write_str(&lines.join("\n"))
    }
}

pub(crate) async fn recover(context: &Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let output = context.output;
    let project = context.project()?;
    let opening = context.prepared(&project).await?;
    let said = arguments.statement();
    if let Some(statement) = said {
        opening.state(statement).await?;
    }
    let stated = said.map(StoreOrigin::name);
    let doubt = opening.doubt().await?;
    if let Some(doubt) = doubt {
        let recovered =
            Recovered { is_done: false, doubt: Some(doubt.name()), stated, databases: Vec::new() };
        output.result(&recovered)?;
        output.say("state what it is: `refrain recover --moved` (the same store, nothing is lost), `--restored` (older than what it has done) or `--copied` (the original continues elsewhere)");
        return Ok(Exit::Waits);
    }
    let exit = adopt(context, &opening, stated).await?;
    project.close().await;
    Ok(exit)
}

/// Adopts databases that belong to another store, if the operator confirms.
async fn adopt(
    context: &Context,
    opening: &OpenOptions,
    stated: Option<&'static str>,
) -> Result<Exit, CliError> {
    let output = context.output;
    let found = opening.recover(None).await?;
    let databases: Vec<Found> = found
        .iter()
        .map(|one| Found {
            database: one.database.clone().unwrap_or_else(|| "the database of the store".to_owned()),
            was: one.was.clone(),
            now: one.now.clone(),
            stranded: one.stranded,
        })
        .collect();
    if databases.is_empty() {
        output.result(&Recovered { is_done: true, doubt: None, stated, databases })?;
        return Ok(Exit::Done);
    }
    output.say("runs that only the other store has recorded are done again; their units are not");
    let is_done = output.ask("Adopt these databases?");
    if is_done {
        opening.recover(Some(&found)).await?;
    }
    output.result(&Recovered { is_done, doubt: None, stated, databases })?;
    if is_done {
        output.say("next: refrain status, then refrain serve");
        return Ok(Exit::Done);
    }
    let there = if stated.is_some() { " there" } else { "" };
    output.say(format_args!("nothing was changed{there}; to confirm: refrain recover --yes"));
    Ok(Exit::Waits)
}
