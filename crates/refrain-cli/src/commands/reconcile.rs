//! `refrain reconcile`: what a source has now, beside the table that its units went to.

use std::fmt;

use clap::Args;
use refrain::core::Per;
use refrain::core::feed::{Apply, Feed, FeedCursor};
use refrain::core::project::Action;
use refrain::core::publish::Mode;
use refrain::core::terminal;
use refrain::{Difference, Differences, Project, Reconciled};
use serde::Serialize;

use crate::arguments::run_name;
use crate::context::{Context, job};
use crate::exit::{Exit, Fault};
use crate::output::harmless;
use crate::signals::Signals;

#[derive(Args)]
#[command(
    after_help = "Examples:\n  refrain reconcile invoice-sync                    as its latest whole window sees it\n  \
    refrain reconcile invoice-sync --window 2026-06-09\n\nThe source is read once more, from its beginning. Nothing is written \
    to the table, and no checkpoint moves. Exit code 1: they differ."
)]
pub(crate) struct Arguments {
    /// JOB, JOB@WINDOW, JOB@WINDOW/SCOPE or JOB#KEY.
    #[arg(value_name = "JOB")]
    pub(crate) job: String,
    /// The window, by its start: 2026-06-09, 2026-06-09T14:00, 2026-06-09T12:00:00Z.
    #[arg(long, value_name = "W")]
    pub(crate) window: Option<String>,
    /// The scope, for a job that has scopes.
    #[arg(long, value_name = "S")]
    pub(crate) scope: Option<String>,
}

#[derive(Serialize)]
struct Told {
    run: String,
    table: String,
    units: u64,
    unreadable: u64,
    agrees: bool,
    lost: Found,
    duplicated: Found,
    changed: Found,
    extra: Found,
    unfit: Found,
}

#[derive(Serialize)]
struct Found {
    count: u64,
    first: Vec<String>,
}

impl From<Difference> for Found {
    fn from(Difference { count, first }: Difference) -> Found {
        Found { count, first }
    }
}

impl From<Reconciled> for Told {
    fn from(reconciled: Reconciled) -> Told {
        let agrees = agrees(&reconciled);
        let Reconciled { run, table, units, unreadable, differences } = reconciled;
        let Differences { lost, duplicated, changed, extra, unfit } = differences;
        let (lost, duplicated, changed) = (lost.into(), duplicated.into(), changed.into());
        Told {
            run,
            table,
            units,
            unreadable,
            agrees,
            lost,
            duplicated,
            changed,
            extra: extra.into(),
            unfit: unfit.into(),
        }
    }
}

fn agrees(Reconciled { unreadable, differences, .. }: &Reconciled) -> bool {
    *unreadable == 0 && differences.is_empty()
}

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Told { run, table, units, unreadable, agrees, .. } = self;
        let word = if *agrees { "agrees" } else { "does not agree" };
        write!(f, "{}: {units} units in the source, and `{}` {word}", harmless(run), harmless(table))?;
        if *unreadable > 0 {
            write!(f, "\n{unreadable} unreadable: lines of the source that are no units")?;
        }
        for (found, what) in [
            (&self.lost, "lost: in the source, and not in the table"),
            (&self.duplicated, "duplicated: more than once in the table"),
            (&self.changed, "changed: the table says something else"),
            (&self.extra, "extra: owned by the job, and not in the source"),
            (&self.unfit, "unfit: no row of the table can hold them"),
        ] {
            if found.count == 0 {
                continue;
            }
            write!(f, "\n{} {what}", found.count)?;
            for key in &found.first {
                write!(f, "\n  {}", harmless(key))?;
            }
            if found.count > found.first.len() as u64 {
                write!(f, "\n  …")?;
            }
        }
        Ok(())
    }
}

pub(crate) async fn reconcile(context: &Context, arguments: &Arguments) -> Result<Exit, Fault> {
    let output = context.output;
    let Arguments { job, window, scope } = arguments;
    let mut name = run_name(job, window.as_deref(), scope.as_deref(), None)?;
    let signals = Signals::listen()?;
    let opened = context.look_around().await?;
    let refrain = &opened.refrain;
    if !name.contains(['@', '#']) {
        name = refrain.latest_window(&name).await?;
    }
    let stop = refrain.stop_handle();
    // Nothing is written, so it may end anywhere.
    let work = Box::pin(refrain.reconcile(&opened.project, &name));
    let ended = signals.see_through(work, &stop, &[], output).await;
    let Some(compared) = ended.result.transpose()? else { return Ok(Exit::Interrupted) };
    let is_whole = agrees(&compared);
    let is_done = refrain.show(&name).await?.is_some_and(|run| run.standing.is_done());
    let advice = if is_done {
        advice(&opened.project, &name, &compared.differences)
    } else {
        vec![format!("next: refrain run {}", terminal::typed(&name))]
    };
    opened.close().await;
    output.result(&Told { run: name, ..Told::from(compared) })?;
    if is_whole {
        return Ok(Exit::Done);
    }
    for line in &advice {
        output.say(line);
    }
    Ok(Exit::Failed)
}

/// What to do about differences.
fn advice(project: &Project, run: &str, differences: &Differences) -> Vec<String> {
    let mut advice = Vec::new();
    let name = run.split(['@', '#']).next().unwrap_or_default();
    let Ok(Action::Units(feed)) = job(project, name).map(|job| &job.action) else { return advice };
    let Feed { apply: Apply::Publish(publish), cursor, watermark, .. } = &**feed else { return advice };
    let is_incomplete = differences.lost.count + differences.changed.count > 0;
    if is_incomplete && publish.mode == Mode::AppendOnce && publish.has_ledger {
        advice.push("next: add what is lost yourself; the ledger says that it was added".to_owned());
    } else if is_incomplete {
        let before = match (cursor, watermark) {
            (Some(FeedCursor { name: name_of, per: Per::Ever }), _) => {
                format!("refrain checkpoint set {name} {} TOKEN, ", terminal::typed(name_of))
            }
            (Some(FeedCursor { name: name_of, per: Per::Window }), _) => {
                let window = run.split(['@', '/']).nth(1).unwrap_or_default();
                let name_of = terminal::typed(name_of);
                format!("refrain checkpoint set {name} {name_of} TOKEN --window {window}, ")
            }
            (None, Some(_)) => format!("refrain checkpoint rewind {name} watermark --by DURATION, "),
            (None, None) => String::new(),
        };
        advice.push(format!(
            "next: raise `version` in jobs/{name}.toml, {before}then refrain run {} --again",
            terminal::typed(run)
        ));
    }
    if differences.duplicated.count > 0 {
        advice.push(
            "next: delete the rows that are there too often; which ones, somebody must decide".to_owned(),
        );
    }
    advice
}
