//! `refrain recover`: a store that is new, restored, moved or copied goes on, as a person says.

use std::fmt;

use clap::Args;
use refrain::{IdentityDoubt, OpenOptions, Statement};
use serde::Serialize;

use crate::context::Context;
use crate::exit::{Exit, Fault};
use crate::person::Deciding;

/// Say what a store is that was moved, restored or copied, and let it go on.
///
/// A store knows its place, and a database remembers the store that wrote to it. A store that is somewhere else, on another
/// timeline of its server, a backup, or older than what a database remembers runs and sends nothing until a person has said
/// what it is; nor does it in a database that belongs to another store. What was applied in those databases stays applied.
/// Looking (`status`, `show`, `why`) always works.
#[expect(clippy::struct_excessive_bools, reason = "each is a flag, and only one may be given")]
#[derive(Args)]
#[command(
    after_help = "Examples:\n  refrain recover             shows what is in doubt, and asks\n  refrain recover --moved     the folder has another place; nothing is lost\n  refrain recover --restored  a backup, or a failover that lost its last commits\n  refrain recover --yes\n\nA store that was restored or copied does not know which calls were made since. So each call for a unit that \
    it does not know is held in doubt, until `refrain recover --settled`. Let no process serve the store meanwhile. A \
    SQLite file that was put back over itself is not recognised: say --restored then."
)]
pub(crate) struct Arguments {
    /// It is the same store in another place, and knows everything that it has done.
    #[arg(long, conflicts_with_all = ["restored", "copied", "settled"])]
    moved: bool,
    /// It is the same store, and older than what it has done.
    #[arg(long, conflicts_with_all = ["copied", "settled"])]
    restored: bool,
    /// It is a copy, and another store goes on where it was; this one gets a name of its own.
    #[arg(long, conflicts_with = "settled")]
    copied: bool,
    /// All that a restored store may have forgotten was looked at: calls for new units are made again.
    #[arg(long)]
    settled: bool,
    #[command(flatten)]
    pub(crate) deciding: Deciding,
}

#[derive(Serialize)]
struct Recovered {
    is_done: bool,
    /// Why the store itself waits for a person, if it does.
    doubt: Option<&'static str>,
    /// What the person has said that it is.
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
    fn statement(&self) -> Option<Statement> {
        let said = [
            (self.moved, Statement::Moved),
            (self.restored, Statement::Restored),
            (self.copied, Statement::Copied),
            (self.settled, Statement::Settled),
        ];
        said.into_iter().find(|(is_said, _)| *is_said).map(|(_, statement)| statement)
    }
}

impl fmt::Display for Recovered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = Vec::new();
        lines.extend(self.doubt.map(|doubt| IdentityDoubt::named(doubt).to_string()));
        lines.extend(self.stated.map(|stated| format!("the store is {stated}, as a person says")));
        for Found { database, was, now, stranded } in &self.databases {
            let verb = if self.is_done { "belonged" } else { "belongs" };
            lines.push(format!("{database}: {verb} to the store {was}, and this one is {now}"));
            if *stranded > 0 {
                lines.push(format!(
                    "  {stranded} wishes are for the other store, and are never carried out by this one"
                ));
            }
        }
        if lines.is_empty() {
            lines.push("every database belongs to this store; there is nothing to recover".to_owned());
        }
        f.write_str(&lines.join("\n"))
    }
}

pub(crate) async fn recover(context: &Context, arguments: &Arguments) -> Result<Exit, Fault> {
    let output = context.output;
    let project = context.project()?;
    let opening = context.prepared(&project).await?;
    let said = arguments.statement();
    if let Some(statement) = said {
        opening.state(statement).await?;
    }
    let stated = said.map(Statement::name);
    let doubt = opening.doubt().await?;
    if let Some(doubt) = doubt {
        let recovered =
            Recovered { is_done: false, doubt: Some(doubt.name()), stated, databases: Vec::new() };
        output.result(&recovered)?;
        output.say("say what it is: `refrain recover --moved` (the same store, and nothing is lost), `--restored` (older than what it has done) or `--copied` (another one goes on where it was)");
        return Ok(Exit::Waits);
    }
    let exit = adopt(context, &opening, stated).await?;
    project.close().await;
    Ok(exit)
}

/// Lets the store go on in databases that belong to another one, if the person wants that.
async fn adopt(
    context: &Context,
    opening: &OpenOptions,
    stated: Option<&'static str>,
) -> Result<Exit, Fault> {
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
    output.say(
        "runs that the other store has done, and this one does not know, are done again; their units are not",
    );
    let is_done = output.ask("Let this store go on there?");
    if is_done {
        opening.recover(Some(&found)).await?;
    }
    output.result(&Recovered { is_done, doubt: None, stated, databases })?;
    if is_done {
        output.say("next: refrain status, then refrain serve");
        return Ok(Exit::Done);
    }
    let there = if stated.is_some() { " there" } else { "" };
    output.say(format_args!("nothing was changed{there}; say yes with `refrain recover --yes`"));
    Ok(Exit::Waits)
}
