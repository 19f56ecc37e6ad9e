//! `refrain recover`: a new or restored store goes on where another one was.

use std::fmt;

use clap::Args;
use serde::Serialize;

use crate::exit::{Exit, Fault};
use crate::person::Deciding;
use crate::place::Place;

/// Let a new or restored store go on where another one was.
///
/// A database remembers the store that wrote to it. Another store does nothing there, for it would take old work for undone,
/// until a person has looked. What was applied in those databases stays applied.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  refrain recover             shows what it would do, and asks\n  refrain recover --yes"
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) deciding: Deciding,
}

#[derive(Serialize)]
struct Recovered {
    is_done: bool,
    databases: Vec<Found>,
}

#[derive(Serialize)]
struct Found {
    database: String,
    was: String,
    now: String,
    stranded: u64,
}

impl fmt::Display for Recovered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.databases.is_empty() {
            return f.write_str("every database belongs to this store; there is nothing to recover");
        }
        for (at, Found { database, was, now, stranded }) in self.databases.iter().enumerate() {
            let line = if at == 0 { "" } else { "\n" };
            let verb = if self.is_done { "belonged" } else { "belongs" };
            write!(f, "{line}{database}: {verb} to the store {was}, and this one is {now}")?;
            if *stranded > 0 {
                write!(
                    f,
                    "\n  {stranded} wishes are for the other store, and are never carried out by this one"
                )?;
            }
        }
        Ok(())
    }
}

pub(crate) async fn recover(place: &Place, _: &Arguments) -> Result<Exit, Fault> {
    let output = place.output;
    let project = place.project()?;
    let opening = place.prepared(&project).await?;
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
        output.result(&Recovered { is_done: true, databases })?;
        return Ok(Exit::Done);
    }
    output.say(
        "runs that the other store has done, and this one does not know, are done again; their units are not",
    );
    let is_done = output.ask("Let this store go on there?");
    if is_done {
        opening.recover(Some(&found)).await?;
    }
    project.close().await;
    output.result(&Recovered { is_done, databases })?;
    if is_done {
        output.say("next: refrain status, then refrain serve");
        return Ok(Exit::Done);
    }
    output.say("nothing was changed; say yes with `refrain recover --yes`");
    Ok(Exit::Waits)
}
