//! The cost of writing the lines of a script to a table as units, and of recognising all of them the second time,
//! against a hand-written loader that reads the same script and upserts a thousand lines at a time without
//! remembering them.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use refrain::project::Project;
use refrain::{Ask, Refrain};

use super::units::resident;
use crate::report::{Figure, Report, Target, Unit};
use crate::scratch::{Plain, Scratch, Server};
use crate::{Plan, Result};

const LINES: u32 = 1_000_000;
const FEW: u32 = 10_000;
const BATCH: usize = 1_000;
pub(super) const TABLE: &str =
    "create table invoices (id text primary key, amount bigint not null, note text not null)";
const UPSERT: &str = "on conflict (id) do update set amount = excluded.amount, note = excluded.note
    where invoices.amount <> excluded.amount or invoices.note <> excluded.note";

pub(crate) async fn measure(plan: &Plan, server: &Server, report: &mut Report) -> Result<()> {
    let count = plan.scaled(LINES);
    let (mut first, mut second, mut grown) = (Vec::new(), Vec::new(), Vec::new());
    let mut context = [String::new(), String::new()];
    for _ in 0..plan.repetitions {
        let folder = tempfile::tempdir()?;
        written(&folder.path().join("few"), FEW)?;
        written(&folder.path().join("many"), count)?;
        let by_hand = by_hand(server, &folder.path().join("many")).await?;
        let (ours, memory) = fed(server, folder.path()).await?;
        for ((times, context), (hand, ours)) in
            [&mut first, &mut second].into_iter().zip(&mut context).zip(by_hand.into_iter().zip(ours))
        {
            times.push(hand.as_secs_f64() / ours.as_secs_f64());
            let each = |took: Duration| f64::from(count) / took.as_secs_f64();
            *context = format!("{:.0}/s, by hand {:.0}/s", each(ours), each(hand));
        }
        grown.push(memory);
    }
    let [once, twice] = context;
    for (what, values, target, context) in [
        (format!("{count} lines of a script as units, against a loader by hand"), first, Target::Open, once),
        ("the same lines again, all known".to_owned(), second, Target::Open, twice),
        (format!("memory after {count} lines, against {FEW}"), grown, Target::AtMost(1.3), String::new()),
    ] {
        report.add(server.name(), Figure { what, unit: Unit::Times, values, target, context });
    }
    Ok(())
}

pub(super) fn written(path: &Path, count: u32) -> Result<()> {
    let mut file = std::io::BufWriter::new(std::fs::File::create(path)?);
    for at in 0..count {
        writeln!(
            file,
            r#"{{"id":"{at:010}","amount":{at},"note":"some payload of a row of ordinary length, eighty bytes or so"}}"#
        )?;
    }
    Ok(file.flush()?)
}

/// Measures both passes.
async fn by_hand(server: &Server, lines: &Path) -> Result<[Duration; 2]> {
    let scratch = server.database().await?;
    let mut plain = server.connect(&scratch).await?;
    plain.run(TABLE).await?;
    let took = [loaded(&mut plain, lines).await?, loaded(&mut plain, lines).await?];
    plain.close().await?;
    server.remove(scratch).await?;
    Ok(took)
}

async fn loaded(plain: &mut Plain, lines: &Path) -> Result<Duration> {
    let begun = Instant::now();
    let mut script = Command::new("cat").arg(lines).stdout(Stdio::piped()).spawn()?;
    let mut printed = BufReader::new(script.stdout.take().ok_or("no output")?).lines();
    loop {
        let batch = printed.by_ref().take(BATCH).collect::<std::io::Result<Vec<_>>>()?;
        if batch.is_empty() {
            break;
        }
        upsert(plain, &format!("[{}]", batch.join(","))).await?;
    }
    script.wait()?;
    Ok(begun.elapsed())
}

async fn upsert(plain: &mut Plain, rows: &str) -> Result<()> {
    match plain {
        Plain::Sqlite(connection) => {
            let source =
                "select value ->> 'id', value ->> 'amount', value ->> 'note' from jsonb_each($1) where true";
            let text = format!("insert into invoices (id, amount, note) {source} {UPSERT}");
            sqlx::query(sqlx::AssertSqlSafe(text)).bind(rows).execute(connection).await?;
        }
        Plain::Postgres(connection) => {
            let source = "select id, amount, note from json_to_recordset(cast($1 as json)) \
                 as r (id text, amount bigint, note text)";
            let text = format!("insert into invoices (id, amount, note) {source} {UPSERT}");
            sqlx::query(sqlx::AssertSqlSafe(text)).bind(rows).execute(connection).await?;
        }
    }
    Ok(())
}

/// Measures both passes, and their memory against that of a small one.
async fn fed(server: &Server, folder: &Path) -> Result<([Duration; 2], f64)> {
    let scratch = server.database().await?;
    let mut plain = server.connect(&scratch).await?;
    plain.run(TABLE).await?;
    plain.close().await?;
    let refrain = opened(folder, &scratch).await?;
    timed(&refrain, "few#1").await?;
    let before = resident()?;
    let took = [timed(&refrain, "many#1").await?, timed(&refrain, "many#2").await?];
    let grown = resident()? / before;
    refrain.close().await;
    server.remove(scratch).await?;
    Ok((took, grown))
}

pub(super) async fn timed(refrain: &Refrain, run: &str) -> Result<Duration> {
    let begun = Instant::now();
    let report = refrain.run(run, Ask::Once).await?;
    let took = begun.elapsed();
    if !report.is_done() {
        return Err(format!("{run}: {:?}", report.run.message).into());
    }
    Ok(took)
}

async fn opened(folder: &Path, scratch: &Scratch) -> Result<Refrain> {
    Ok(prepared(folder, scratch).await?.opening(None).await?.open().await?)
}

/// A project with two jobs, and its tables.
pub(super) async fn prepared(folder: &Path, scratch: &Scratch) -> Result<Project> {
    let address = &scratch.address;
    let project = format!(
        r#"
            [project]
            name = "bench"
            [store]
            url = "{address}"
            [databases]
            shop = "{address}"
        "#
    );
    std::fs::write(folder.join("refrain.toml"), project)?;
    std::fs::create_dir(folder.join("jobs"))?;
    for name in ["few", "many"] {
        let job = format!(
            r#"
                queue = true
                command = ["cat", "{name}"]
                output = "units"
                [unit]
                key = "invoice:{{id}}"
                [publish]
                table = "invoices"
                mode = "merge"
                key = ["id"]
            "#
        );
        std::fs::write(folder.join(format!("jobs/{name}.toml")), job)?;
    }
    let project = Project::load(folder)?;
    project.migrate().await?;
    Ok(project)
}
